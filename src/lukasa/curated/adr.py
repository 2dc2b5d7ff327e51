"""Decision records: numbered markdown files with a few lines of front matter, read strictly and edited in place.

0007-one-writer.md

---
status: accepted
date: 2026-11-16
deciders: [ada, grace]
supersedes: [0003]
---

# 0007 One writer
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import date

from msgspec import Struct

from lukasa.model.errors import InvalidDecision, InvalidInput

STATUSES = ("proposed", "accepted", "shipped", "superseded", "deprecated", "rejected")
KEYS = ("status", "date", "deciders", "tags", "supersedes", "superseded-by")
PARTS = ("Context", "Decision", "Consequences", "Alternatives")
NAME = re.compile(r"(\d{4,6})-([\w-]+)\.md")
_HEAD = re.compile(r"---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r"^# +(?:(\d{4,6})[.:]? )?(\S.*)$", re.MULTILINE)
_WORD = re.compile(r"[^\s,\[\]#:\"'{}]+(?: [^\s,\[\]#:\"'{}]+)*")
MOST_TITLE = 120


class Decision(Struct, frozen=True):
    number: int
    title: str
    status: str
    date: str
    file: str
    deciders: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    supersedes: tuple[int, ...] = ()
    superseded_by: tuple[int, ...] = ()


class Fault(Struct, frozen=True):
    file: str
    what: str
    fix: str


# Reading


def parse(file: str, text: str) -> Decision:
    """Parse a decision from its file; InvalidDecision describes the first fault."""
    named = NAME.fullmatch(file)
    if named is None:
        raise InvalidDecision(f"{file}: not named like a decision", fix="name it like 0007-one-writer.md")
    number = int(named[1])
    fields = front_matter(file, text)
    title = _TITLE.search(text, _HEAD.match(text).end())  # type: ignore[union-attr]
    if title is None:
        raise InvalidDecision(f"{file}: it has no title", fix=f"write a line like: # {number:04d} One writer")
    if title[1] is not None and int(title[1]) != number:
        raise InvalidDecision(f"{file}: its title has the number {title[1]}", fix=f"write: # {number:04d} {title[2]}")
    return Decision(
        number,
        title[2].strip(),
        _status(file, fields),
        _date(file, fields),
        file,
        fields.get("deciders", ()),
        fields.get("tags", ()),
        _numbers(file, fields, "supersedes"),
        _numbers(file, fields, "superseded-by"),
    )


def front_matter(file: str, text: str) -> dict[str, tuple[str, ...]]:
    """Parse the front matter as keys and lists of words. Nothing else is allowed: no nesting, quotes or comments."""
    head = _HEAD.match(text)
    if head is None:
        raise InvalidDecision(f"{file}: it has no front matter", fix="begin it with ---, status, date and ---")
    fields: dict[str, tuple[str, ...]] = {}
    for row, line in enumerate(head[1].splitlines(), 2):
        key, colon, value = line.partition(":")
        if not colon or key not in KEYS:
            raise InvalidDecision(f"{file}, line {row}: unknown key {key[:40]!r}", fix=f"use: {', '.join(KEYS)}")
        if key in fields:
            raise InvalidDecision(f"{file}, line {row}: {key} is there twice", fix="keep one of them")
        fields[key] = _words(f"{file}, line {row}", key, value)
    return fields


def _words(where: str, key: str, value: str) -> tuple[str, ...]:
    value = value.strip()
    listed = value.startswith("[") and value.endswith("]")
    parts = [part.strip() for part in (value[1:-1] if listed else value).split(",")]
    if listed and parts == [""]:
        return ()
    if not all(_WORD.fullmatch(part) for part in parts):
        raise InvalidDecision(f"{where}: {key} cannot be read", fix=f"write {key}: word, or {key}: [one, two]")
    return tuple(parts)


def _status(file: str, fields: Mapping[str, tuple[str, ...]]) -> str:
    found = fields.get("status", ())
    if len(found) != 1 or found[0] not in STATUSES:
        raise InvalidDecision(
            f"{file}: its status is {', '.join(found) or 'not there'!r}", fix=f"use one of: {', '.join(STATUSES)}"
        )
    return found[0]


def _date(file: str, fields: Mapping[str, tuple[str, ...]]) -> str:
    found = fields.get("date", ())
    try:
        if len(found) == 1 and re.fullmatch(r"\d{4}-\d{2}-\d{2}", found[0]):
            return date.fromisoformat(found[0]).isoformat()
    except ValueError:
        pass
    raise InvalidDecision(f"{file}: its date is {', '.join(found) or 'not there'!r}", fix="write date: 2026-11-16")


def _numbers(file: str, fields: Mapping[str, tuple[str, ...]], key: str) -> tuple[int, ...]:
    found = fields.get(key, ())
    if not all(re.fullmatch(r"\d{1,6}", value, re.ASCII) for value in found):
        raise InvalidDecision(f"{file}: {key} names no numbers", fix=f"write {key}: [0007]")
    return tuple(int(value) for value in found)


# Writing


def file_name(number: int, title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    slug = "-".join(re.findall(r"[a-z0-9]+", plain))[:60].strip("-")
    return f"{number:04d}-{slug or 'decision'}.md"


def compose(number: int, title: str, status: str, day: date, fields: Mapping[str, Iterable[str]]) -> str:
    """A new record: front matter, a title, and empty sections to fill in."""
    flat = " ".join(title.split())
    if not flat or len(flat) > MOST_TITLE:
        raise InvalidInput(f"a title has 1 to {MOST_TITLE} characters", fix="say in a line what is decided")
    if status not in STATUSES:
        raise InvalidInput(f"unknown status {status[:40]!r}", fix=f"use one of: {', '.join(STATUSES)}")
    head = [("status", status), ("date", day.isoformat())]
    head += [(key, f"[{', '.join(values)}]") for key, values in ((k, list(v)) for k, v in fields.items()) if values]
    lines = "".join(f"{key}: {value}\n" for key, value in head)
    parts = "".join(f"\n## {part}\n" for part in PARTS)
    return f"---\n{lines}---\n\n# {number:04d} {flat}\n{parts}"


def with_field(file: str, text: str, key: str, values: Iterable[str]) -> str:
    """The same file with one line of its front matter set; every other byte stays."""
    front_matter(file, text)
    head = _HEAD.match(text)
    assert head is not None
    value = ", ".join(values)
    line = f"{key}: {value}\n" if key in ("status", "date") else f"{key}: [{value}]\n"
    there = re.search(rf"^{key}:.*\n", head[1], re.MULTILINE)
    if there is None:
        return text[: head.end(1)] + line + text[head.end(1) :]
    return text[: head.start(1) + there.start()] + line + text[head.start(1) + there.end() :]


# Checking


def faults(decisions: Iterable[Decision]) -> Iterator[Fault]:
    """The faults between valid records: numbers used twice, references to missing records, one-sided references."""
    found = list(decisions)
    known = {d.number: d for d in found}
    seen: dict[int, str] = {}
    for d in found:
        if d.number in seen:
            yield Fault(d.file, f"{seen[d.number]} has the number {d.number:04d} too", "numbers are used once")
        seen.setdefault(d.number, d.file)
        yield from _references(d, known)


def _references(d: Decision, known: Mapping[int, Decision]) -> Iterator[Fault]:
    if (d.status == "superseded") != bool(d.superseded_by):
        what = f"its status is {d.status}, and superseded-by names {len(d.superseded_by)} records"
        yield Fault(d.file, what, "set status: superseded and superseded-by: [NUMBER] together")
    yield from _mutual(d, known, "supersedes", d.supersedes)
    yield from _mutual(d, known, "superseded-by", d.superseded_by)


def _mutual(d: Decision, known: Mapping[int, Decision], key: str, numbers: Iterable[int]) -> Iterator[Fault]:
    back = "superseded-by" if key == "supersedes" else "supersedes"
    for number in numbers:
        other = known.get(number)
        if number == d.number:
            yield Fault(d.file, f"{key} names itself", "name the other record")
        elif other is None:
            yield Fault(d.file, f"{key} names {number:04d}, which is not here", "name a record that is")
        elif d.number not in (other.superseded_by if key == "supersedes" else other.supersedes):
            what = f"{key} names {number:04d}, which does not say so"
            yield Fault(d.file, what, f"add {back}: [{d.number:04d}] there")
