"""The end of a session: what was said is persisted, what lived only in it goes, and its transcript stays findable."""

from __future__ import annotations

from mnemon.service.session import persist
from mnemon.surfaces.hooks import transcript
from mnemon.surfaces.hooks.moments import Pushed
from mnemon.surfaces.hooks.payload import Payload
from mnemon.surfaces.hooks.sessions import Talk, point

# A session goes on after these: they are only occasions to note where its transcript is.
_GOES_ON = frozenset({"Stop", "SubagentStop", "PreCompact", "PostCompact"})


def session_end(talk: Talk, payload: Payload) -> Pushed:
    """Keep a pointer to the transcript; then, unless the session goes on, persist what was said and end it."""
    readable = point(talk, payload)
    if talk.conversation is None or payload.event in _GOES_ON:
        return Pushed()
    if "conversation" in talk.world.room.keys:
        persist(talk.world, transcript.turns(payload.transcript) if readable else ())
    else:
        talk.world.end(talk.conversation.id)
    # Ending may clear the notes. What the session left to be observed outlives it.
    point(talk, payload, ended=payload.reason or "unknown")
    return Pushed()
