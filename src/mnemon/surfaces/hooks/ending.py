"""The end of a session, and of a context: what was said is to be observed before anything of it is gone.

Both only ask for it. Reading a long transcript is left to a job, because a person waits for the hook.
"""

from __future__ import annotations

import os

from mnemon.service.session import persist
from mnemon.service.transcripts import note
from mnemon.surfaces.hooks import transcript
from mnemon.surfaces.hooks.moments import Pushed
from mnemon.surfaces.hooks.payload import Payload
from mnemon.surfaces.hooks.sessions import Talk, point

# A session goes on after these: they are only occasions to note where its transcript is.
_GOES_ON = frozenset({"Stop", "SubagentStop", "PreCompact", "PostCompact"})
_OBSERVED = frozenset({"PreCompact", "SessionEnd", ""})
MOST_SESSION = 150


def pre_compact(talk: Talk, payload: Payload) -> Pushed:
    """O1: a context is about to be cut short; have what was said so far observed. The session goes on."""
    if point(talk, payload):
        _ask(talk, payload)
    return Pushed()


def session_end(talk: Talk, payload: Payload) -> Pushed:
    """Keep a pointer to the transcript; then, unless the session goes on, persist what was said and end it."""
    readable = point(talk, payload)
    if readable and payload.event in _OBSERVED:
        _ask(talk, payload)
    if talk.conversation is None or payload.event in _GOES_ON:
        return Pushed()
    if "conversation" in talk.world.room.keys:
        persist(talk.world, transcript.turns(payload.transcript) if readable else ())
    else:
        talk.world.end(talk.conversation.id)
    # Ending may clear the notes. What the session left to be observed outlives it.
    point(talk, payload, ended=payload.reason or "unknown")
    return Pushed()


def _ask(talk: Talk, payload: Payload) -> None:
    """Have the transcript observed, once for each length it has had."""
    if payload.session:
        room = talk.world.room
        note(room, payload.session[:MOST_SESSION], payload.transcript, os.stat(payload.transcript).st_size)
