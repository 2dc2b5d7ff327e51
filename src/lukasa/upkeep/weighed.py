"""Entries with their relevance now, and groups of them: copies, related entries, contradictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lukasa.model.arrays import np
from lukasa.model.entry import Entry
from lukasa.model.statements import replaces, says_the_same
from lukasa.model.text import content_key, terms

if TYPE_CHECKING:
    from lukasa.ports import Vector


class Weighed(Struct, frozen=True):
    """An entry, its relevance now, and the number of its reads."""

    entry: Entry
    relevance: float
    reads: int = 0

    @property
    def id(self) -> str:
        return self.entry.id


def support(w: Weighed) -> tuple[object, ...]:
    """The order among statements that say the same: the greatest is kept. Trust and evidence come first."""
    e = w.entry
    said = len({quote.transcript for quote in e.evidence}) + e.merged_count
    return (e.trust, said, e.importance, w.reads, e.confirmed_at, e.id)


def recency(w: Weighed) -> tuple[object, ...]:
    """The order if the latest wins, as with procedures; a more trusted entry always comes first."""
    e = w.entry
    return (e.trust, e.confirmed_at, e.created_at, e.id)


BLOCK = 1024
RELATED_COSINE = 0.8
RELATED_WORDS = 0.5  # the share of common words, for texts without vectors
COMMON = 64  # a word in more entries than this does not relate them
MOST_RELATED = 12

Order = Callable[[Weighed], tuple[object, ...]]
Pairs = Mapping[int, Sequence[int]]


class Copies(Struct, frozen=True):
    """A statement that is kept, and the ones that add nothing to it."""

    kept: Weighed
    copies: tuple[Weighed, ...]


def copies(found: Sequence[Weighed], vectors: Mapping[str, Vector], threshold: float, order: Order) -> list[Copies]:
    """Group statements that say the same: same kind, close in meaning, and one adds nothing to the other.

    Each group is a star: every copy is like the kept one, not only like another copy.
    """
    ranked = sorted(found, key=order, reverse=True)
    groups = []
    for position, others in _stars(ranked, _neighbours(ranked, vectors, threshold), _same):
        groups.append(Copies(ranked[position], tuple(ranked[other] for other in others)))
    return groups


def related(found: Sequence[Weighed], vectors: Mapping[str, Vector], order: Order) -> list[tuple[Weighed, ...]]:
    """Group statements about one thing, from which a model makes one: same kind, category and trust."""
    ranked = sorted(found, key=order, reverse=True)
    neighbours = _neighbours(ranked, vectors, RELATED_COSINE, words=RELATED_WORDS)
    return [
        tuple(ranked[at] for at in (position, *others[: MOST_RELATED - 1]))
        for position, others in _stars(ranked, neighbours, _together)
    ]


def outdated(found: Sequence[Weighed], vectors: Mapping[str, Vector]) -> list[tuple[Weighed, Weighed, str]]:
    """Find contradictions: the older statement, the one that replaces it, and the reason why both cannot hold."""
    ranked = sorted(found, key=lambda w: (w.entry.trust, w.entry.confirmed_at, w.id), reverse=True)
    gone: set[int] = set()
    out = []
    for position, others in _neighbours(ranked, vectors, RELATED_COSINE, words=RELATED_WORDS).items():
        for other in others:
            if position in gone or other in gone or other <= position:
                continue
            new, old = ranked[position], ranked[other]
            why = replaces(new.entry.content, old.entry.content) if _alike(new, old) else ""
            if why:
                gone.add(other)
                out.append((old, new, why))
    return out


def _alike(one: Weighed, other: Weighed) -> bool:
    a, b = one.entry, other.entry
    return a.kind is b.kind and a.owner == b.owner


def _same(kept: Weighed, copy: Weighed) -> bool:
    if not _alike(kept, copy):
        return False
    a, b = copy.entry.content, kept.entry.content
    return content_key(a) == content_key(b) or says_the_same(a, b)


def _together(one: Weighed, other: Weighed) -> bool:
    """Whether two entries may become one: a less trusted part would lower the trust of the whole."""
    a, b = one.entry, other.entry
    named = (a.category.name if a.category else "", b.category.name if b.category else "")
    return _alike(one, other) and a.trust is b.trust and named[0] == named[1]


def _stars(
    ranked: Sequence[Weighed], neighbours: Pairs, belongs: Callable[[Weighed, Weighed], bool]
) -> Iterator[tuple[int, list[int]]]:
    taken: set[int] = set()
    for position in range(len(ranked)):
        if position in taken:
            continue
        fits = [
            other
            for other in sorted(neighbours.get(position, ()))
            if other > position and other not in taken and belongs(ranked[position], ranked[other])
        ]
        if fits:
            taken.update(fits)
            yield position, fits


def _neighbours(
    ranked: Sequence[Weighed], vectors: Mapping[str, Vector], threshold: float, words: float = 1.0
) -> Pairs:
    """For each position, the positions of its neighbours: by vector if both have one, else by words."""
    neighbours: dict[int, list[int]] = defaultdict(list)
    with_vector = [i for i, w in enumerate(ranked) if w.id in vectors]
    for a, b in _close(with_vector, [vectors[ranked[i].id] for i in with_vector], threshold):
        neighbours[a].append(b)
        neighbours[b].append(a)
    if len(with_vector) < len(ranked):
        for a, b in _overlapping([w.entry.content for w in ranked], words):
            if ranked[a].id not in vectors or ranked[b].id not in vectors:
                neighbours[a].append(b)
                neighbours[b].append(a)
    return neighbours


def _close(positions: Sequence[int], vectors: Sequence[Vector], threshold: float) -> Iterator[tuple[int, int]]:
    """Pairs with a cosine above the threshold, each once, computed by blocks of rows."""
    if len(positions) < 2:
        return
    matrix = np.asarray(vectors, dtype=np.float32)
    for start in range(0, len(positions), BLOCK):
        rows = matrix[start : start + BLOCK]
        cosines = rows @ matrix[start:].T  # earlier rows were compared in an earlier block
        for row, column in zip(*np.nonzero(cosines > threshold), strict=True):
            if column > row:
                yield positions[start + int(row)], positions[start + int(column)]


def _overlapping(texts: Sequence[str], share: float) -> Iterator[tuple[int, int]]:
    """Pairs of texts that share at least this part of their words, each pair once."""
    words = [frozenset(terms(text)) for text in texts]
    holders: dict[str, list[int]] = defaultdict(list)
    for position, own in enumerate(words):
        for word in own:
            holders[word].append(position)
    for position, own in enumerate(words):
        for other in _candidates(position, own, holders):
            both = len(own & words[other])
            if both and both >= share * len(own | words[other]):
                yield position, other


def _candidates(position: int, own: Iterable[str], holders: Mapping[str, Sequence[int]]) -> set[int]:
    rare = [word for word in own if len(holders[word]) <= COMMON] or sorted(own, key=lambda w: len(holders[w]))[:1]
    return {other for word in rare for other in holders[word] if other > position}
