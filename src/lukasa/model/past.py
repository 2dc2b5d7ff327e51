"""Memories that were written elsewhere: the statements of a file of another program, as values.

A statement keeps the words, the time and the writer that its file tells, and the place in the file that it comes from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from lukasa.model.values import Kind

IMPORTED = "imported"  # a key of an entry's metadata: the format, the file and the place in it
# The fields in which programs keep the words of a memory; the first that holds text counts.
_WORDS = ("text", "content", "memory", "data", "fact", "value", "body", "summary")
_DEEPEST = 4


class PastStatement(Struct, frozen=True):
    """One memory of another program, word for word.

    `item` is its place in the file: a line, an id, a heading. `key` is the same whenever the memory is read again, also
    from a file of another name. `by` names the program that wrote the words; empty if a person did. `folder` is that of
    the project that it belongs to, if the file says. With `rule`, somebody wrote it to be followed.
    """

    format: str
    text: str
    file: str
    item: str
    said_at: datetime | None = None
    key: str = ""
    by: str = ""
    kind: Kind | None = None
    rule: bool = False
    tags: tuple[str, ...] = ()
    folder: str = ""
    about: Mapping[str, Any] = {}

    @property
    def identity(self) -> str:
        """Name the memory: by its words, and by the id that its program gave it."""
        said = hashlib.sha256(self.text.strip().encode("utf-8", "replace")).hexdigest()
        return f"{self.format}\x1f{self.key}\x1f{said}"


class PastSkipped(Struct, frozen=True):
    """A file that holds nothing of its format, or a part of one; `reason` says why it is left out."""

    file: str
    reason: str


def words_of(value: object, deep: int = 0) -> str:
    """Return the words of a memory that a program keeps as JSON: its text, or else the JSON itself."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping) and deep < _DEEPEST:
        for name in _WORDS:
            found = value.get(name)
            if isinstance(found, str | Mapping) and (said := words_of(found, deep + 1)):
                return said
    if value in (None, "", [], {}):
        return ""
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    except (ValueError, RecursionError, TypeError):
        return ""


def moment_of(value: object) -> datetime | None:
    """Return the time that a file tells: ISO 8601, or seconds or milliseconds since 1970. None if it is neither."""
    try:
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        if isinstance(value, str) and value.strip():
            found = datetime.fromisoformat(value.strip())
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None
