"""What a person said last in a harness's own record of a session. Never more than a bounded tail of it is read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import islice

from lukasa.model.echo import unharnessed, unmarked
from lukasa.service.sessions.distill import Turn
from lukasa.write.transforms import TRANSFORMS

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
