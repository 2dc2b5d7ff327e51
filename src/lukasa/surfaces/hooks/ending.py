"""The end of a session, and of a context: what was said is to be observed before anything of it is gone.

Both only ask for it. Reading a long transcript is left to a job, because a person waits for the hook; the job is left
to a worker of its own, because nobody may be running one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from lukasa.service.sessions.distill import Distilled, Turn, by_rules
from lukasa.service.sessions.session import persist
from lukasa.service.sessions.transcripts import note
from lukasa.surfaces.hooks import transcript
from lukasa.surfaces.hooks.payload import Payload
from lukasa.surfaces.hooks.pushed import Pushed
from lukasa.surfaces.hooks.sessions import Talk, point

# A session goes on after these: they are only occasions to note where its transcript is.
_GOES_ON = frozenset({"Stop", "SubagentStop", "PreCompact", "PostCompact"})
_OBSERVED = frozenset({"PreCompact", "SessionEnd", ""})
MOST_SESSION = 150


def pre_compact(talk: Talk, payload: Payload) -> Pushed:
    """O1: a context is about to be cut short; have what was said so far observed. The session goes on."""
    observed = point(talk, payload) and _ask(talk, payload)
    return Pushed(queued=observed)


def session_end(talk: Talk, payload: Payload) -> Pushed:
    """Have the transcript observed; then, unless the session goes on, write its summary and end it."""
    readable = point(talk, payload)
    observed = readable and payload.event in _OBSERVED and _ask(talk, payload)
    if talk.conversation is None or payload.event in _GOES_ON:
        return Pushed(queued=observed)
    if "conversation" in talk.world.ctx.keys:
        # A summary counts what was said, and shows what was asked; only the rules read the rest of it.
        said = transcript.turns(payload.transcript, questions=observed) if readable else ()
        persist(talk.world, said, distil=_left_to_the_observer if observed else by_rules)
    else:
        talk.world.end(talk.conversation.id)
    # Ending may clear the notes. What the session left to be observed outlives it.
    point(talk, payload, ended=payload.reason or "unknown")
    return Pushed(queued=observed)


def _left_to_the_observer(said: Sequence[Turn]) -> Distilled:
    """Facts come from the whole transcript, with their quotes; by the hook as well they would be stated twice."""
    return Distilled(())


def _ask(talk: Talk, payload: Payload) -> bool:
    """Have the transcript observed, once for each length it has had. Whether it was asked for."""
    if payload.session:
        ctx = talk.world.ctx
        note(ctx, payload.session[:MOST_SESSION], payload.transcript, os.stat(payload.transcript).st_size)
    return bool(payload.session)


def work(options: Sequence[str]) -> None:
    """A worker in the background does what is due, and stops. The hook does not wait, and neither ends the other."""
    command = [sys.executable, "-m", "lukasa.surfaces.cli.main", *options, "worker", "--once"]
    quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)]
    os.posix_spawn(command[0], command, os.environ, file_actions=quiet, setsid=True)
