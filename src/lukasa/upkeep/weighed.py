"""An entry as upkeep sees it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lukasa.model.arrays import np
from lukasa.model.entry import Entry
from lukasa.model.statements import contradicts, says_the_same
from lukasa.model.text import content_key, terms

if TYPE_CHECKING:
    from lukasa.ports import Vector


class Weighed(Struct, frozen=True):
    """An entry, its relevance now, and how often it was read."""

    entry: Entry
    relevance: float
    reads: int = 0

    @property
    def id(self) -> str:
        return self.entry.id


def support(w: Weighed) -> tuple[object, ...]:
    """What speaks for a statement among those that say the same: the greatest is kept."""
    e = w.entry
    said = len({quote.transcript for quote in e.evidence}) + e.merged_count
    return (e.trust, said, e.importance, w.reads, e.confirmed_at, e.id)


def recency(w: Weighed) -> tuple[object, ...]:
    """Where the latest wins, as with procedures: but never over what is more trusted."""
    e = w.entry
    return (e.trust, e.confirmed_at, e.created_at, e.id)


BLOCK = 1024
RELATED_COSINE = 0.8
RELATED_WORDS = 0.5  # of the words of both, for texts without vectors
COMMON = 64  # a word in more entries than this tells nothing about what they share
MOST_RELATED = 12

Order = Callable[[Weighed], tuple[object, ...]]
Pairs = Mapping[int, Sequence[int]]


class Copies(Struct, frozen=True):
    """A statement that is kept, and those that add nothing to it."""

    kept: Weighed
    copies: tuple[Weighed, ...]


def copies(found: Sequence[Weighed], vectors: Mapping[str, Vector], threshold: float, order: Order) -> list[Copies]:
    """Groups that say the same: same kind, near in meaning, and one adds nothing to the other.

    Each group is a star: every copy is like the one that is kept, not merely like another copy.
    """
    ranked = sorted(found, key=order, reverse=True)
    groups = []
    for place, others in _stars(ranked, _near(ranked, vectors, threshold), _same):
        groups.append(Copies(ranked[place], tuple(ranked[other] for other in others)))
    return groups


def related(found: Sequence[Weighed], vectors: Mapping[str, Vector], order: Order) -> list[tuple[Weighed, ...]]:
    """Groups about one thing, for a model to make one statement of: same kind, category and trust."""
    ranked = sorted(found, key=order, reverse=True)
    near = _near(ranked, vectors, RELATED_COSINE, words=RELATED_WORDS)
    return [
        tuple(ranked[at] for at in (place, *others[: MOST_RELATED - 1]))
        for place, others in _stars(ranked, near, _together)
    ]


def outdated(found: Sequence[Weighed], vectors: Mapping[str, Vector]) -> list[tuple[Weighed, Weighed, str]]:
    """Contradictions among what is there: the older, what holds in its place, and why both cannot."""
    ranked = sorted(found, key=lambda w: (w.entry.trust, w.entry.confirmed_at, w.id), reverse=True)
    gone: set[int] = set()
    out = []
    for place, others in _near(ranked, vectors, RELATED_COSINE, words=RELATED_WORDS).items():
        for other in others:
            if place in gone or other in gone or other <= place:
                continue
            new, old = ranked[place], ranked[other]
            why = contradicts(new.entry.content, old.entry.content) if _alike(new, old) else ""
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
    """What may be made into one: mixing in something less trusted would lower the trust of all of it."""
    a, b = one.entry, other.entry
    named = (a.category.name if a.category else "", b.category.name if b.category else "")
    return _alike(one, other) and a.trust is b.trust and named[0] == named[1]


def _stars(
    ranked: Sequence[Weighed], near: Pairs, belongs: Callable[[Weighed, Weighed], bool]
) -> Iterator[tuple[int, list[int]]]:
    taken: set[int] = set()
    for place in range(len(ranked)):
        if place in taken:
            continue
        fits = [
            other
            for other in sorted(near.get(place, ()))
            if other > place and other not in taken and belongs(ranked[place], ranked[other])
        ]
        if fits:
            taken.update(fits)
            yield place, fits


def _near(ranked: Sequence[Weighed], vectors: Mapping[str, Vector], threshold: float, words: float = 1.0) -> Pairs:
    """For each place the others that are near: by vector where both have one, by their words otherwise."""
    near: dict[int, list[int]] = defaultdict(list)
    with_vector = [i for i, w in enumerate(ranked) if w.id in vectors]
    for a, b in _close(with_vector, [vectors[ranked[i].id] for i in with_vector], threshold):
        near[a].append(b)
        near[b].append(a)
    if len(with_vector) < len(ranked):
        for a, b in _overlapping([w.entry.content for w in ranked], words):
            if ranked[a].id not in vectors or ranked[b].id not in vectors:
                near[a].append(b)
                near[b].append(a)
    return near


def _close(places: Sequence[int], vectors: Sequence[Vector], threshold: float) -> Iterator[tuple[int, int]]:
    """Pairs with a greater cosine, each once, a block of rows at a time."""
    if len(places) < 2:
        return
    matrix = np.asarray(vectors, dtype=np.float32)
    for start in range(0, len(places), BLOCK):
        rows = matrix[start : start + BLOCK]
        cosines = rows @ matrix[start:].T  # what is before was compared already, from the other side
        for row, column in zip(*np.nonzero(cosines > threshold), strict=True):
            if column > row:
                yield places[start + int(row)], places[start + int(column)]


def _overlapping(texts: Sequence[str], share: float) -> Iterator[tuple[int, int]]:
    """Pairs of texts that have at least this share of their words in common, each pair once."""
    words = [frozenset(terms(text)) for text in texts]
    holders: dict[str, list[int]] = defaultdict(list)
    for place, own in enumerate(words):
        for word in own:
            holders[word].append(place)
    for place, own in enumerate(words):
        for other in _candidates(place, own, holders):
            both = len(own & words[other])
            if both and both >= share * len(own | words[other]):
                yield place, other


def _candidates(place: int, own: Iterable[str], holders: Mapping[str, Sequence[int]]) -> set[int]:
    rare = [word for word in own if len(holders[word]) <= COMMON] or sorted(own, key=lambda w: len(holders[w]))[:1]
    return {other for word in rare for other in holders[word] if other > place}
