"""End a session, or prepare its compaction: note the transcript, and ask for it to be observed.

Reading a long transcript is left to a job, because a person waits for the hook. A worker process of its own runs the
job, because no other worker may be running.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import islice

from lukasa.model.echo import unharnessed, unmarked
from lukasa.service.sessions.distill import Distilled, Turn, by_rules
from lukasa.service.sessions.session import persist
from lukasa.service.sessions.transcripts import note
from lukasa.surfaces.hooks.harness import Payload, Pushed
from lukasa.surfaces.hooks.harness_sessions import Talk, point
from lukasa.write.transforms import TRANSFORMS

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
        said = turns(payload.transcript, questions=observed) if readable else ()
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


TAIL = 1_000_000
MOST_TURNS = 200
MOST_CHARACTERS = 8000
# Records that nobody said: notes of the harness, the work of subagents, the summary that compaction leaves.
_NOT_SAID = ("isMeta", "isSidechain", "isCompactSummary")


def turns(path: str, *, questions: bool = False) -> list[Turn]:
    """The last turns of a person, as text, without what Lukasa or the harness put in between.

    With `questions`, other turns are given without their words: to look for secrets in all of them takes longer than
    the rest of a hook.
    """
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - TAIL))
            tail = stream.read(TAIL)
    except (OSError, ValueError):
        return []
    lines = tail.split(b"\n")
    whole = lines if size <= TAIL else lines[1:]
    latest = islice((turn for line in reversed(whole) for turn in _turn(line, questions)), MOST_TURNS)
    return list(latest)[::-1]


def _turn(line: bytes, questions: bool) -> Iterator[Turn]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(record, dict) or any(record.get(mark) for mark in _NOT_SAID):
        return
    role, message = record.get("type"), record.get("message")
    if role != "user" or not isinstance(message, dict):
        return
    text = unharnessed(unmarked(_text(message.get("content")))).strip()
    if text:
        shown = "" if questions and not _may_ask(text) else _safe(text)
        yield Turn("user", shown, id=str(record.get("uuid") or "")[:100])


def _safe(text: str) -> str:
    safe, _ = TRANSFORMS["redact_secrets"](text)
    return _storable(safe[:MOST_CHARACTERS])


def _may_ask(text: str) -> bool:
    """Whether a text can end with a question mark once it is safe, which leaves no other end but a secret's; of a long
    one the end may be cut off."""
    return len(text) > MOST_CHARACTERS // 2 or _storable(text).rstrip().endswith("?")


def _storable(text: str) -> str:
    return text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
    return "\n".join(part for part in parts if isinstance(part, str))
