"""Choose the part of a long text to show: the part with most of the asked terms. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from lukasa.model.text import terms

_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


class Part(NamedTuple):
    """A span of characters in a text."""

    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]


def excerpt(text: str, asked: Collection[str], most: int) -> Part:
    """At most `most` characters of a text: adjacent sentences and lines that hold most of the asked terms.

    A term that is rare in the text counts more. A text with none of the terms gives its beginning. A sentence that is
    too long is cut between words.
    """
    if len(text) <= most:
        return Part(0, len(text))
    pieces = [part for piece in _pieces(text) for part in _cut(text, piece, most)]
    if not pieces:
        return Part(0, 0)
    held = [frozenset(terms(piece.of(text))).intersection(asked) for piece in pieces]
    first, last = _fullest(pieces, held, most)
    return _grown(pieces, first, last, most)


def _pieces(text: str) -> list[Part]:
    """Sentences and lines, without surrounding white space."""
    marks = [0, *(found.end() for found in _SENTENCES.finditer(text)), len(text)]
    return [part for start, end in pairwise(marks) if (part := _trimmed(text, start, end)).start < part.end]


def _trimmed(text: str, start: int, end: int) -> Part:
    found = text[start:end]
    return Part(start + len(found) - len(found.lstrip()), start + len(found.rstrip()))


def _cut(text: str, piece: Part, most: int) -> list[Part]:
    """A piece as it is; a too long one in several parts, cut between words if it has any."""
    parts, at = [], piece.start
    while piece.end - at > most:
        space = text.rfind(" ", at + most // 2, at + most)
        end = space if space > at else at + most
        parts.append(_trimmed(text, at, end))
        at = end
    return [part for part in (*parts, _trimmed(text, at, piece.end)) if part.start < part.end]


def _fullest(pieces: Sequence[Part], held: Sequence[frozenset[str]], most: int) -> tuple[int, int]:
    """The first and last of the adjacent pieces whose terms are worth most, and no more pieces than needed.

    Of equal ranges, the first.
    """
    holders = Counter(term for those in held for term in those)
    worth = {term: math.log(1 + len(pieces) / count) for term, count in holders.items()}
    best, chosen = 0.0, (0, 0)
    inside: Counter[str] = Counter()
    first = 0
    for last in (position for position, those in enumerate(held) if those):
        inside.update(held[last])
        while pieces[last].end - pieces[first].start > most or all(inside[term] > 1 for term in held[first]):
            inside.subtract(held[first])
            first += 1
        value = sum(worth[term] for term in worth if inside[term])
        if value > best + 1e-9:
            best, chosen = value, (first, last)
    return chosen


def _grown(pieces: Sequence[Part], first: int, last: int, most: int) -> Part:
    """Extend a range by one piece before it, then by pieces after it, then before it, up to `most` characters."""
    start, end = pieces[first].start, pieces[last].end
    if first and end - pieces[first - 1].start <= most:
        first -= 1
        start = pieces[first].start
    while last + 1 < len(pieces) and pieces[last + 1].end - start <= most:
        last += 1
        end = pieces[last].end
    while first and end - pieces[first - 1].start <= most:
        first -= 1
        start = pieces[first].start
    return Part(start, end)
