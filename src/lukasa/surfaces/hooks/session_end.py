"""End a session, or prepare its compaction: note the transcript, and queue its observation.

A job reads the transcript, because the user waits for the hook. The hook starts a worker process for the job, because
no other worker may be running.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from lukasa.model import system
from lukasa.model.echo import unharnessed, unmarked
from lukasa.model.text import storable
from lukasa.service.sessions.distill import Distilled, Turn, by_rules
from lukasa.service.sessions.session import persist
from lukasa.service.sessions.transcripts import note
from lukasa.surfaces.hooks.harness import HarnessEvent, HookResult
from lukasa.surfaces.hooks.harness_sessions import HookSession, LeftSession, note_session
from lukasa.write.transforms import TRANSFORMS

# The session continues after these events; they only note where its transcript is. Hosts differ in capitals.
_GOES_ON = frozenset({"stop", "subagentstop", "precompact", "postcompact", "precompress", "afteragent"})
_OBSERVED = frozenset({"precompact", "precompress", "sessionend", ""})
MOST_SESSION = 150


def pre_compact(session: HookSession, event: HarnessEvent) -> HookResult:
    """O1: queue the observation of the transcript before the context is compacted. The session continues."""
    observed = note_session(session, event) and _queue_observation(session, event)
    return HookResult(queued=observed)


def observe_left(session: HookSession, left: Sequence[LeftSession]) -> bool:
    """Queue the observation of sessions that never said that they ended. Return whether one was queued."""
    for one in left:
        path = one.transcript
        note(session.workspace.ctx, one.id[:MOST_SESSION], path, os.stat(path).st_size)
        ended = {"id": one.id, "folder": one.folder, "ended": "without a word"}
        session.workspace.write_note(one.conversation.id, "session", ended)
    return bool(left)


def session_end(session: HookSession, event: HarnessEvent) -> HookResult:
    """Queue the observation of the transcript; then, unless the session continues, write its summary and end it."""
    readable = note_session(session, event)
    observed = readable and event.name.casefold() in _OBSERVED and _queue_observation(session, event)
    if session.conversation is None or event.name.casefold() in _GOES_ON:
        return HookResult(queued=observed)
    if "conversation" in session.workspace.ctx.keys:
        # A summary counts turns and shows questions; only the rules need the other texts.
        said = turns(event.transcript, questions=observed) if readable else ()
        persist(session.workspace, said, distil=_no_facts if observed else by_rules)
    else:
        session.workspace.end(session.conversation.id)
    # Ending may clear the notes, but the observation still needs this one.
    note_session(session, event, ended=event.reason or "unknown")
    return HookResult(queued=observed)


def _no_facts(said: Sequence[Turn]) -> Distilled:
    """Return no facts: the observation takes them from the whole transcript, and they must not be stored twice."""
    return Distilled(())


def _queue_observation(session: HookSession, event: HarnessEvent) -> bool:
    """Queue the observation of the transcript, once for each of its lengths. Return whether it was queued."""
    if event.session:
        ctx = session.workspace.ctx
        note(ctx, event.session[:MOST_SESSION], event.transcript, os.stat(event.transcript).st_size)
    return bool(event.session)


def start_worker(settings: Mapping[str, str]) -> None:
    """Start a worker that runs due jobs and stops. The hook does not wait for it, and does not end it."""
    command = [sys.executable, "-m", "lukasa.surfaces.cli.main", "worker", "--once"]
    system.start_apart(command, settings)


TAIL = 1_000_000
MOST_TURNS = 200
MOST_CHARACTERS = 8000
# Marks of records that the user did not say: notes of the harness, subagents, the summary after compaction.
_NOT_SAID = ("isMeta", "isSidechain", "isCompactSummary")


def turns(path: str, *, questions: bool = False) -> list[Turn]:
    """Return the user's last turns as text, without passages that Lukasa or the harness inserted.

    With `questions`, only questions have a text: redacting secrets in all turns takes longer than the rest of a hook.
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
    return storable(safe[:MOST_CHARACTERS])


def _may_ask(text: str) -> bool:
    """Return whether a text may end with a question mark after redaction. The end of a long text may be cut off."""
    return len(text) > MOST_CHARACTERS // 2 or storable(text).rstrip().endswith("?")


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
    return "\n".join(part for part in parts if isinstance(part, str))
