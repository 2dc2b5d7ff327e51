"""Judge expectations over what was read: pure functions that return what is wrong, or nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from lukasa.model.entry import Entry
from lukasa.model.text import estimate_tokens
from lukasa.spec.expectations import (
    ContextExpectation,
    EntriesExpectation,
    NeverExpectation,
    RecallExpectation,
)

BRIEF, SOME = 80, 3  # characters of a text in a message, and texts that it names


class Outcome(Struct, frozen=True):
    """Whether an expectation holds; if not, what was found instead, and the commands that explain it."""

    kind: str
    name: str
    key: str
    holds: bool
    said: str
    explain: tuple[str, ...] = ()


class Piece(Struct, frozen=True):
    """A text that could enter a prompt: an entry's, or a page's."""

    name: str  # an id, or "page NAME"
    text: str


def folded(text: str) -> str:
    return " ".join(text.casefold().split())


def holds(text: str, sought: str) -> bool:
    """Return whether a text holds another one, whatever the case and the line breaks."""
    return folded(sought) in folded(text)


def brief(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= BRIEF else f"{flat[: BRIEF - 1]}…"


def quoted(text: str) -> str:
    """Return a text as a word of a shell command."""
    return shlex.quote(text)


def recall_faults(one: RecallExpectation, hits: Sequence[Entry], moment: datetime | None) -> tuple[str, str]:
    """Return what is wrong with the hits and the id of the hit to look at; nothing if the expectation holds."""
    places = [n for n, hit in enumerate(hits, 1) if holds(hit.content, one.finds)]
    if one.absent:
        if not places:
            return "", ""
        hit = hits[places[0] - 1]
        return f"hit {places[0]} holds {one.finds!r}: {brief(hit.content)}", hit.id
    wanted = "first" if one.within == 1 else f"among the first {one.within}" if one.within else "among the hits"
    if not places:
        instead = f"; first is: {brief(hits[0].content)}" if hits else "; there is no hit"
        return f"no hit of {len(hits)} holds {one.finds!r}{instead}", ""
    hit = hits[places[0] - 1]
    if one.within and places[0] > one.within:
        return f"{one.finds!r} is hit {places[0]}, not {wanted}; first is: {brief(hits[0].content)}", hit.id
    if moment is not None and not hit.holds_at(moment):
        return f"the hit with {one.finds!r} did not hold at {moment.isoformat()}: {brief(hit.content)}", hit.id
    return "", ""


def context_faults(one: ContextExpectation, query: str, text: str) -> list[str]:
    """Return what is wrong with a context."""
    of = f"the context of {query!r}" if query else "the context without a query"
    wrong = [f"{of} does not hold {sought!r}" for sought in one.contains if not holds(text, sought)]
    wrong += [f"{of} holds {sought!r}" for sought in one.never if holds(text, sought)]
    tokens = estimate_tokens(text)
    if one.at_most_tokens and tokens > one.at_most_tokens:
        wrong.append(f"{of} takes {tokens:,} tokens, more than {one.at_most_tokens:,}")
    return wrong


def never_faults(one: NeverExpectation, pieces: Iterable[Piece]) -> list[tuple[Piece, str]]:
    """Return the texts that hold what none may, each with the words that were found."""
    pattern = re.compile(one.pattern) if one.pattern else None
    sought = [(text, folded(text)) for text in one.texts]
    found = []
    for piece in pieces:
        text = folded(piece.text) if sought else ""
        words = next((given for given, inner in sought if inner in text), "")
        if not words and pattern is not None and (match := pattern.search(piece.text)):
            words = match.group()
        if words:
            found.append((piece, words))
    return found


def count_fault(one: EntriesExpectation, found: int) -> str:
    """Return what is wrong with the number of entries; nothing if it is right."""
    if one.at_least <= found and (one.at_most < 0 or found <= one.at_most):
        return ""
    if one.at_most == one.at_least:
        wanted = "none" if not one.at_most else f"exactly {one.at_most:,}"
    elif found < one.at_least:
        wanted = f"at least {one.at_least:,}"
    else:
        wanted = f"at most {one.at_most:,}"
    return f"{found:,} {'entry meets' if found == 1 else 'entries meet'} the conditions, expected {wanted}"
