"""Check the arguments of callers before anything else happens. Each refusal says what to change."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from lukasa.model.errors import InvalidContent, InvalidImportance, InvalidInput, InvalidQuery

MAX_QUERY = 20_000
MAX_TAGS = 64
MAX_LABEL = 200
MAX_METADATA = 16_384
MAX_PATH = 400
MAX_PATH_NAME = 128
MAX_PATH_DEPTH = 16
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")


def text(value: object, what: str, limit: int) -> str:
    """Return non-empty text that every part of the system can hold exactly."""
    if isinstance(value, str) and not value.strip():
        raise InvalidContent(f"{what} is empty", fix="give the text to remember")
    return verbatim(value, what, limit)


def verbatim(value: object, what: str, limit: int) -> str:
    """Return text as it is; it may be empty or blank, like a file."""
    if not isinstance(value, str):
        raise InvalidContent(f"{what} must be text, not {type(value).__name__}", fix="pass a str")
    if len(value) > limit:
        raise InvalidContent(
            f"{what} has {len(value):,} characters, more than the {limit:,} allowed",
            fix="store a summary, or add the whole as a document and link to it",
        )
    storable(value, what)
    return value


def page(value: object, what: str, limit: int) -> str:
    """Return text that may be empty, like a page."""
    if value == "":
        return ""
    return text(value, what, limit)


def storable(value: str, what: str) -> None:
    """Refuse text that a database or a file cannot hold."""
    if "\x00" in value:
        raise InvalidContent(f"{what} holds a NUL character", fix="remove it")
    if value.isascii():
        return
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidContent(
            f"{what} holds a lone surrogate, which is not text", fix="decode it with the right encoding first"
        ) from None


def query(value: object) -> str:
    """Return the text of a query, without characters that cannot be stored."""
    if not isinstance(value, str):
        raise InvalidQuery(f"a query must be text, not {type(value).__name__}", fix="pass a str")
    if len(value) > MAX_QUERY:
        raise InvalidQuery(f"the query has {len(value):,} characters", fix=f"keep it under {MAX_QUERY:,}")
    # A query is not stored: a character that cannot be stored just matches nothing.
    if value.isascii() and "\x00" not in value:
        return value
    return value.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")


def importance(value: object, what: str = "importance") -> float:
    """Return an importance from 0 to 1."""
    if type(value) is float and 0 <= value <= 1:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidImportance(f"{what} must be a number, not {type(value).__name__}", fix="use 0.0 to 1.0")
    if not math.isfinite(value) or not 0 <= value <= 1:
        raise InvalidImportance(f"{what} {value} is outside [0, 1]", fix="use 0.0 (least) to 1.0 (most)")
    return float(value)


def label(value: object, what: str) -> str:
    """Return a short text, such as a name or a reason."""
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_LABEL:
        raise InvalidInput(
            f"{what} must be text of 1 to {MAX_LABEL} characters", fix="give a shorter text that is not blank"
        )
    storable(value, what)
    return value


# Of Unicode's formatting characters, those that turn the direction of what follows, so that a line reads as another.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BREAKING = frozenset({"Cc", "Zl", "Zp", "Cs"})


def is_one_line(value: str) -> bool:
    """Say whether a text is one line without control characters, so that wherever it is shown it stays in its place."""
    if value.isascii():
        return value.isprintable()
    return not any(unicodedata.category(c) in _BREAKING or c in _TURNING for c in value)


def one_line(value: object, what: str) -> str:
    """Return the name of something new: a label on one line, without control characters.

    This is the one rule for names. What was named before it can still be asked for by its name, with `label`.
    """
    text = label(value, what)
    if not is_one_line(text):
        raise InvalidInput(
            f"{what} holds a line break or another control character", fix="write it on one line of plain characters"
        )
    return text


def several(values: Iterable[T], what: str) -> list[T]:
    """Return a list; refuse a single text, which Python would split into letters."""
    if type(values) is not tuple and (isinstance(values, str) or not isinstance(values, Iterable)):
        raise InvalidInput(f"{what} must be a list", fix=f"write [{repr(values)[:60]}]")
    return list(values)


def tags(values: Iterable[object], check: Callable[[object, str], str] = one_line) -> tuple[str, ...]:
    """Return tags, each once; `check` is `label` for tags that are looked for."""
    values = several(values, "tags")
    found: dict[str, None] = {}
    for value in values:
        found[check(value, "a tag")] = None
        if len(found) > MAX_TAGS:
            raise InvalidInput(f"more than {MAX_TAGS} tags", fix="keep the tags that you would search by")
    return tuple(found)


def choice(value: object, kind: type[E], what: str) -> E:
    """Return a member of an enumeration by its value."""
    try:
        return kind(str(value))
    except ValueError:
        known = ", ".join(kind)
        raise InvalidInput(f"unknown {what} {str(value)[:60]!r}", fix=f"use one of: {known}") from None


def metadata(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as plain JSON data of its own."""
    if type(value) is dict and not value:
        return {}
    try:
        encoded = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("metadata must be plain JSON data", fix="use texts, numbers, lists and objects") from None
    if not isinstance(value, Mapping) or len(encoded) > MAX_METADATA:
        raise InvalidInput(
            f"metadata must be an object of at most {MAX_METADATA:,} bytes",
            fix="store less in metadata, and the rest as content",
        )
    storable(json.dumps(value, ensure_ascii=False), "metadata")
    return dict(json.loads(encoded))


def json_value(value: object, what: str) -> Any:
    """Return a value as plain JSON data of its own."""
    try:
        encoded = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(f"{what} must be plain JSON data", fix="use texts, numbers, lists and objects") from None
    storable(encoded, what)
    return json.loads(encoded)


def moment(value: object, what: str) -> datetime:
    """Return a time in UTC; text is read as ISO 8601, and a time without a zone is taken as UTC."""
    if isinstance(value, str):
        value = _from_iso(value, what)
    if not isinstance(value, datetime):
        raise InvalidQuery(f"{what} must be a time, not {type(value).__name__}", fix="pass a datetime")
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


_SPAN = re.compile(r"(\d{1,5})\s*([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}


def since(value: object, what: str, now: datetime) -> datetime:
    """Return a time, or the time that long ago: 24h, 7d, 2w."""
    found = _SPAN.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return moment(value, what)
    return now - timedelta(hours=int(found[1]) * _HOURS[found[2]])


def _from_iso(value: str, what: str) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise InvalidQuery(f"{what} {value[:40]!r} is not a time", fix="write it as 2026-11-15T09:30") from None


def limit(value: object, most: int = 1000) -> int:
    """Return a number of results from 1 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidQuery(f"limit {repr(value)[:40]} is not a number from 1 to {most}", fix="choose one in that range")
    return value


def position(value: object, what: str) -> int:
    """Return a number of the log or of a list, from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise InvalidQuery(f"{what} {repr(value)[:40]} is not a number from 0 on", fix="give the number of an event")
    return value


def path(value: object) -> str:
    """Return a relative path of plain names, such as project/todo.md, in its one normalised spelling."""
    whole = unicodedata.normalize("NFC", value) if isinstance(value, str) else ""
    names = whole.split("/")
    if len(whole) > MAX_PATH or len(names) > MAX_PATH_DEPTH or not all(map(_plain_name, names)):
        raise InvalidInput(
            f"a path is at most {MAX_PATH_DEPTH} names joined by / and at most {MAX_PATH} characters, each name of 1 "
            f"to {MAX_PATH_NAME} printable characters without a backslash or spaces at its ends",
            fix="write it as project/todo.md",
        )
    return whole


def _plain_name(value: str) -> bool:
    plain = value.isprintable() and value == value.strip() and "\\" not in value
    return plain and 1 <= len(value) <= MAX_PATH_NAME and value not in (".", "..")


def name(value: object) -> str:
    """Return the name of a page, in capitals."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidInput(
            f"{str(value)[:60]!r} cannot be the name of a named entry",
            fix="use a letter, then letters, digits, - or _, at most 64 in all, such as RESEARCH_STYLE",
        )
    return value.upper()
