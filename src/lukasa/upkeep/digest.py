"""Make one entry of several: verbatim by rules, or from a model's answer, which is checked against its sources."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from msgspec import Struct

from lukasa.model.errors import InvalidInput
from lukasa.model.statements import says_the_same, statement
from lukasa.model.text import content_key, fold, terms
from lukasa.upkeep.weighed import Weighed

SOURCE = "consolidation"
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+|\n")  # the first word of each part is always capitalised
FEWEST = 3  # notes that are worth combining
MOST_CHARS = 4000
FADED = 0.25  # relevance; an entry above it is still in use and stays separate


class Text(Struct, frozen=True):
    """A consolidated text, and the positions of its sources in the group, from 0."""

    content: str
    sources: tuple[int, ...]


def episodes(
    found: Iterable[Weighed], open_conversations: Collection[str], today: date, *, ripe_only: bool
) -> list[tuple[Weighed, ...]]:
    """Group the notes of an ended conversation or a past day by owner and trust, oldest first."""
    groups: dict[tuple[object, ...], list[Weighed]] = {}
    for w in sorted(found, key=lambda w: (w.entry.created_at, w.id)):
        e = w.entry
        if e.source == SOURCE or (ripe_only and (w.reads or w.relevance >= FADED)):
            continue
        conversation = e.conversation or e.scope.value("conversation")
        day = e.created_at.date()
        if conversation in open_conversations if conversation else day >= today:
            continue
        groups.setdefault((e.owner, e.trust, conversation or day.isoformat()), []).append(w)
    parts = [part for group in groups.values() for part in _parted(group)]
    return [part for part in parts if len(part) >= FEWEST]


def leaving(found: Iterable[Weighed]) -> list[tuple[Weighed, ...]]:
    """Group the notes that leave an ended scope by owner and trust, oldest first: each group becomes one entry.

    A note that is long, or was made of several, stays by itself.
    """
    groups: dict[tuple[object, ...], list[Weighed]] = {}
    alone: list[tuple[Weighed, ...]] = []
    for w in sorted(found, key=lambda w: (w.entry.created_at, w.id)):
        e = w.entry
        if e.source == SOURCE or len(e.content) + 3 > MOST_CHARS // 2:
            alone.append((w,))
        else:
            groups.setdefault((e.owner, e.trust), []).append(w)
    return [part for group in groups.values() for part in _parted(group) if part] + alone


def notes_of(content: str) -> tuple[str, list[str]]:
    """Return the head of a digest and its notes, as `digest` has joined them."""
    head, *lines = content.split("\n")
    return head, [line.removeprefix("- ") for line in lines]


def _parted(group: Sequence[Weighed]) -> list[tuple[Weighed, ...]]:
    """Split a group into parts small enough for one entry; a note that nearly fills one alone is left out."""
    parts: list[list[Weighed]] = [[]]
    size = 0
    for w in group:
        length = len(w.entry.content) + 3
        if length > MOST_CHARS // 2:
            continue
        if size + length > MOST_CHARS - 200:
            parts.append([])
            size = 0
        parts[-1].append(w)
        size += length
    return [tuple(part) for part in parts]


def digest(notes: Sequence[Weighed], label: str) -> Text:
    """Join the notes into one text, verbatim and in order; a note that repeats an earlier one is left out."""
    lines: list[str] = []
    for w in notes:
        flat = " ".join(w.entry.content.split())
        if not any(content_key(flat) == content_key(other) or says_the_same(flat, other) for other in lines):
            lines.append(flat)
    first, last = notes[0].entry.created_at.date(), notes[-1].entry.created_at.date()
    span = first.isoformat() if first == last else f"{first.isoformat()} to {last.isoformat()}"
    head = f"{span}{f', {label}' if label else ''}, {len(notes)} notes:"
    return Text("\n".join([head, *(f"- {line}" for line in lines)]), tuple(range(len(notes))))


def question(group: Sequence[Weighed]) -> str:
    """The sources for a model, as numbered lines of JSON."""
    return "\n".join(
        json.dumps(
            {"number": n, "said": f"{w.entry.confirmed_at:%Y-%m-%d}", "text": w.entry.content}, ensure_ascii=False
        )
        for n, w in enumerate(group, 1)
    )


def answer(data: Mapping[str, Any], group: Sequence[Weighed], most: int) -> Text | None:
    """Read a model's text for a group; None if it is empty. InvalidInput if it cannot be used."""
    text = data.get("text")
    if not isinstance(text, str):
        raise InvalidInput('"text" must be a string, empty if there is nothing to consolidate')
    if not text.strip():
        return None
    positions = _positions(data.get("sources"), len(group))
    content = text.strip()
    if len(content) > most:
        raise InvalidInput(f'"text" must not be longer than {most} characters')
    invented = _invented(content, question([group[position] for position in positions]))
    if invented:
        raise InvalidInput(f'"text" names what none of its sources says: {", ".join(sorted(invented)[:5])}')
    return Text(content, positions)


def _positions(listed: object, size: int) -> tuple[int, ...]:
    numbers = listed if isinstance(listed, list) else []
    good = [n for n in numbers if isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= size]
    if len(good) != len(numbers) or len(set(good)) < 2:
        raise InvalidInput(f'"sources" must list two or more different numbers from 1 to {size}')
    return tuple(n - 1 for n in dict.fromkeys(good))


def _invented(text: str, sources: str) -> set[str]:
    """The names and numbers of a text that none of its sources holds."""
    whole, known = fold(sources), set(terms(sources))
    claimed = {word for part in _SENTENCE.split(text) for word in statement(part).specifics}
    return {word for word in claimed if word not in whole and not set(terms(word)) <= known}
