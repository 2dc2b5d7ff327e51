"""One entry out of several: word for word by rules, or from a model's answer, which is checked against its sources."""

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
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+|\n")  # the first word of each is capitalised whatever it is
FEWEST = 3  # notes worth compounding
MOST_CHARS = 4000
FADED = 0.25  # relevance; what is still in use keeps standing on its own


class Text(Struct, frozen=True):
    """A consolidated text and the places, counted from 0, of what went into it."""

    content: str
    sources: tuple[int, ...]


def episodes(
    found: Iterable[Weighed], open_conversations: Collection[str], today: date, *, ripe_only: bool
) -> list[tuple[Weighed, ...]]:
    """Notes of one conversation that is over, or of one past day: of one owner and one trust, oldest first."""
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


def _parted(group: Sequence[Weighed]) -> list[tuple[Weighed, ...]]:
    """Groups small enough for one entry; a note that fills one alone stays as it is."""
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
    """The notes as one text, word for word and in order; what says the same as one before it is left out."""
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
    """The sources as a model gets them: numbered lines of JSON."""
    return "\n".join(
        json.dumps(
            {"number": n, "said": f"{w.entry.confirmed_at:%Y-%m-%d}", "text": w.entry.content}, ensure_ascii=False
        )
        for n, w in enumerate(group, 1)
    )


def answer(data: Mapping[str, Any], group: Sequence[Weighed], most: int) -> Text | None:
    """What a model made of a group; None if it found nothing to make. InvalidInput for what cannot be used."""
    text = data.get("text")
    if not isinstance(text, str):
        raise InvalidInput('"text" must be a string, empty if there is nothing to consolidate')
    if not text.strip():
        return None
    places = _places(data.get("sources"), len(group))
    content = text.strip()
    if len(content) > most:
        raise InvalidInput(f'"text" must not be longer than {most} characters')
    invented = _invented(content, question([group[place] for place in places]))
    if invented:
        raise InvalidInput(f'"text" has what none of its sources says: {", ".join(sorted(invented)[:5])}')
    return Text(content, places)


def _places(listed: object, size: int) -> tuple[int, ...]:
    numbers = listed if isinstance(listed, list) else []
    good = [n for n in numbers if isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= size]
    if len(good) != len(numbers) or len(set(good)) < 2:
        raise InvalidInput(f'"sources" must list two or more different numbers from 1 to {size}')
    return tuple(n - 1 for n in dict.fromkeys(good))


def _invented(text: str, sources: str) -> set[str]:
    """Names and numbers of a text that stand in none of its sources."""
    whole, known = fold(sources), set(terms(sources))
    claimed = {word for part in _SENTENCE.split(text) for word in statement(part).specifics}
    return {word for word in claimed if word not in whole and not set(terms(word)) <= known}
