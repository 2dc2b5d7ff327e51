"""The structured log: the actions, tools, details and reasons, one JSON object a line. Lines are never changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec import Struct

from lukasa.model.errors import InvalidInput
from lukasa.model.text import fold

FIELDS = ("timestamp", "action", "tool", "detail", "reason")
MOST_TEXT = 4_000
_ACTION = re.compile(r"[a-z][a-z0-9-]{0,39}")
_TOOL = re.compile(r"[^\s\x00-\x1f\x7f]{1,80}")


class LogEntry(Struct, frozen=True):
    """One log entry. `number` is its line in the file, which never changes; 0 if it was not read from the file."""

    number: int
    timestamp: datetime
    action: str
    tool: str
    detail: str
    reason: str


class LogQuery(Struct, frozen=True):
    """Conditions that must all hold. `before` is a line number: only earlier lines match."""

    action: str | None = None
    tool: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    grep: str | None = None
    before: int | None = None
    limit: int = 20


class LogPage(Struct, frozen=True):
    """The entries, newest first; whether older ones match too; and the numbers of lines that hold no entry."""

    entries: tuple[LogEntry, ...]
    more: bool
    skipped: tuple[int, ...]


def compose(at: datetime, action: str, tool: str, detail: str, reason: str) -> str:
    """Format an entry as a line. The action is a verb and the tool a noun, so that both can be searched for."""
    if not isinstance(action, str) or not _ACTION.fullmatch(action):
        raise InvalidInput(f"{str(action)[:60]!r} is not an action", fix="use one verb in lower case, such as deploy")
    if not isinstance(tool, str) or not _TOOL.fullmatch(tool):
        raise InvalidInput(f"{str(tool)[:90]!r} is not a tool", fix="use one noun without spaces, such as gateway")
    for name, value in (("detail", detail), ("reason", reason)):
        if not isinstance(value, str) or len(value) > MOST_TEXT:
            raise InvalidInput(f"the {name} must be text of at most {MOST_TEXT:,} characters", fix="shorten it")
    if not detail.strip():
        raise InvalidInput("the detail is empty", fix="say what was done")
    values = (at.isoformat(), action, tool, detail, reason)
    line = json.dumps(dict(zip(FIELDS, values, strict=True)), ensure_ascii=False)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput("the entry holds a lone surrogate, which is not text", fix="decode it first") from None
    return line


def read(number: int, line: bytes) -> LogEntry | None:
    """Parse a line; None if it is cut off or holds no entry."""
    if not line.endswith(b"\n"):
        return None
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not all(isinstance(data.get(name), str) for name in FIELDS):
        return None
    at = _moment(data["timestamp"])
    return None if at is None else LogEntry(number, at, *(data[name] for name in FIELDS[1:]))


def _moment(value: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


def select(lines: Iterable[bytes], query: LogQuery) -> LogPage:
    """The newest entries that match. Keeps no more than a page of them in memory, however long the log is."""
    kept: list[LogEntry] = []
    skipped: list[int] = []
    matched = 0
    for number, line in enumerate(lines, 1):
        entry = read(number, line)
        if entry is None:
            if line.strip():
                skipped.append(number)
            continue
        if _admits(query, entry):
            matched += 1
            kept.append(entry)
            del kept[: -query.limit]
    return LogPage(tuple(reversed(kept)), matched > len(kept), tuple(skipped))


def _admits(query: LogQuery, entry: LogEntry) -> bool:
    return (
        (query.before is None or entry.number < query.before)
        and (query.action is None or entry.action == query.action)
        and (query.tool is None or entry.tool == query.tool)
        and (query.since is None or entry.timestamp >= query.since)
        and (query.until is None or entry.timestamp < query.until)
        and (query.grep is None or fold(query.grep) in fold(f"{entry.detail}\n{entry.reason}"))
    )
