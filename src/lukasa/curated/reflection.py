"""Reflection: turn observations into a few lines that are worth loading every time. Pure, by rules or by a model."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lukasa.curated import document
from lukasa.model.entry import Entry
from lukasa.model.errors import InvalidInput
from lukasa.model.text import content_key
from lukasa.model.values import Kind, Trust
from lukasa.spec.taxonomy import Taxonomy

SHORTEST, LONGEST = 0.6, 0.8  # the length of all proposals, as a share of the length of the observations
MOST_CHANGE = 400
MOST_PROPOSALS = 50
UNSORTED = "other"


class Change(Struct, frozen=True):
    """A line proposed for the page: its category, its confidence, and the entries behind it."""

    section: str
    change: str
    confidence: float
    sources: tuple[str, ...]


class Reflection(Struct, frozen=True):
    """The proposals, the ids of the entries that were read but not proposed, and of those that the next one reads.

    `over` had no room within the length that a reflection may have.
    """

    changes: tuple[Change, ...]
    left: tuple[str, ...]
    over: tuple[str, ...] = ()


def length_range(texts: Iterable[str]) -> tuple[int, int]:
    """The least and the most characters that all proposals together should have."""
    total = sum(len(text) for text in texts)
    return round(total * SHORTEST), round(total * LONGEST)


UNHEARD = 0.8  # the most confidence in a note of an agent or an import that quotes nobody's words
MINOR = 0.5  # below this importance, an entry is a minor note, in which less is believed


def confidence(entry: Entry) -> float:
    """The confidence that an entry is worth a line: the gate's, more for each repetition, less for a minor note.

    A note of an agent or an import, without words that somebody said, is never surer than UNHEARD.
    """
    gate = entry.gate.confidence if entry.gate is not None else 0.5
    stated = max(entry.merged_count, len({quote.transcript for quote in entry.evidence}), 1)
    sure = 1 - (1 - gate) / stated
    if entry.trust is not Trust.AUTHOR and not entry.evidence:
        sure = min(sure, UNHEARD)
    return round(sure * min(1.0, 1 - MINOR + entry.importance), 3)


# By rules


def by_rules(entries: Sequence[Entry], body: str) -> Reflection:
    """Propose the weightiest facts that the page does not have, one line each, until their share of the length is full.

    Within a category the surest come first. At least one is proposed; otherwise a single observation never would be.
    Facts without room are left over for the next reflection.
    """
    facts = [e for e in entries if e.kind is not Kind.EPISODIC and not _there(body, e.content)]
    _, most = length_range(entry.content for entry in facts)
    chosen: list[Change] = []
    over: list[str] = []
    used, seen = 0, set[str]()
    for entry in sorted(facts, key=lambda e: (-confidence(e) * e.importance, e.created_at, e.id)):
        text, key = document.one_line(entry.content), content_key(entry.content)
        if key in seen or len(text) > MOST_CHANGE:
            continue
        if chosen and (used + len(text) > most or len(chosen) >= MOST_PROPOSALS):
            over.append(entry.id)
            continue
        chosen.append(Change(_category(entry), text, confidence(entry), (entry.id,)))
        used += len(text)
        seen.add(key)
    settled = {id for change in chosen for id in change.sources}.union(over)
    ordered = sorted(chosen, key=lambda change: (change.section, -change.confidence))
    return Reflection(tuple(ordered), tuple(e.id for e in entries if e.id not in settled), tuple(over))


def _there(body: str, text: str) -> bool:
    return document.twin(body, text) is not None


def _category(entry: Entry) -> str:
    return entry.category.name if entry.category is not None else UNSORTED


# By a model


def briefing(entries: Sequence[Entry], body: str) -> str:
    """The text for a model: the page, and the observations as numbered lines of JSON. All of it is data."""
    least, most = length_range(entry.content for entry in entries)
    rows = [
        json.dumps(
            {"n": n, "text": e.content, "category": _category(e), "importance": e.importance, "stated": e.merged_count},
            ensure_ascii=False,
        )
        for n, e in enumerate(entries, 1)
    ]
    page = json.dumps(body, ensure_ascii=False)
    return (
        f"The page as it is:\n{page}\n\nObservations:\n"
        + "\n".join(rows)
        + f"\n\nLength: {least} to {most} characters."
    )


def read_answer(data: Mapping[str, Any], ids: Sequence[str], taxonomy: Taxonomy) -> tuple[Change, ...]:
    """Read a model's proposals. InvalidInput if the answer does not have the requested form."""
    listed = data.get("proposals")
    if not isinstance(listed, list) or len(listed) > MOST_PROPOSALS:
        raise InvalidInput(f"proposals must be a list of at most {MOST_PROPOSALS}")
    return tuple(_read(n, given, ids, taxonomy) for n, given in enumerate(listed, 1))


def _read(n: int, given: Any, ids: Sequence[str], taxonomy: Taxonomy) -> Change:
    if not isinstance(given, dict):
        raise InvalidInput(f"proposal {n} is not an object")
    change, section = given.get("change"), given.get("section")
    if not isinstance(change, str) or not change.strip() or len(change) > MOST_CHANGE or "\x00" in change:
        raise InvalidInput(f"change of proposal {n} must be a text of 1 to {MOST_CHANGE} characters")
    known = [concept.id for concept in taxonomy.concepts]
    if section not in (*known, UNSORTED):
        raise InvalidInput(f"section of proposal {n} must be one of {', '.join((*known, UNSORTED))}")
    sources = given.get("sources")
    if not isinstance(sources, list) or not sources or not all(_is_listed(s, len(ids)) for s in sources):
        raise InvalidInput(f"sources of proposal {n} must be numbers of observations")
    named = tuple(dict.fromkeys(ids[s - 1] for s in sources))
    return Change(section, document.one_line(change), share(given.get("confidence"), f"proposal {n}"), named)


def _is_listed(value: Any, count: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= count


def share(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        raise InvalidInput(f"confidence of {what} must be a number from 0 to 1")
    return float(value)
