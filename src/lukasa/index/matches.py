"""The questions and answers of search, as values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from lukasa.model.candidate import Candidate
from lukasa.model.entry import Entry, Scope
from lukasa.ports import EmbeddingModel, Vector


class TermRow(NamedTuple):
    """How often each asked term is in one entry, in the order asked, and how long the entry is in terms."""

    id: str
    counts: tuple[int, ...]
    length: int


class KeywordMatches(Struct, frozen=True):
    """The best entries by keyword, with all that BM25 needs.

    `size`, `total_terms` and `frequencies` are about all searched entries. `counts` says for each term how often it is
    in each candidate.
    """

    size: int
    total_terms: int
    frequencies: tuple[int, ...]
    candidates: Sequence[Candidate] = ()
    lengths: Sequence[int] = ()
    counts: Sequence[Sequence[int]] = ()

    @property
    def ids(self) -> list[str]:
        return [candidate.id for candidate in self.candidates]

    def part(self, places: Sequence[int]) -> KeywordMatches:
        """The candidates at these places alone, as an addition to other matches of the same search."""
        counts = [[column[at] for at in places] for column in self.counts] if places else []
        chosen = [self.candidates[at] for at in places], [self.lengths[at] for at in places]
        return KeywordMatches(0, 0, (0,) * len(self.frequencies), *chosen, counts)

    @property
    def rows(self) -> tuple[TermRow, ...]:
        """The same, entry by entry."""
        return tuple(map(TermRow, self.ids, zip(*self.counts, strict=True), self.lengths))


class VectorMatch(NamedTuple):
    """A candidate that vector search found, and its cosine."""

    candidate: Candidate
    cosine: float

    @property
    def id(self) -> str:
        return self.candidate.id


class Neighbour(NamedTuple):
    """An entry of the same scope and owner that is close to a new text; cosine None if only words matched."""

    entry: Entry
    cosine: float | None


class NewText(NamedTuple):
    """A text that is about to be stored, its vector, if it has one, and its speaker."""

    content: str
    vector: Vector | None
    speaker: str = ""


class NeighbourQuery(Struct, frozen=True):
    """The scope and owner that new texts go to, and the cosine from which an entry counts whatever its words are.

    Without a floor, only entries with the words of a text are found.
    """

    scope: Scope
    owner: str
    model: EmbeddingModel | None
    floor: float | None
    limit: int  # of neighbours by vector, and of neighbours by each sort of words
