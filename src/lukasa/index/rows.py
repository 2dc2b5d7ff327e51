"""The rows and queries that search asks of a backend. Every answer is of one snapshot.

A backend implements `SearchRows` with its own statements and nothing else. Rows are whole numbers: an entry keeps its
row for as long as it exists, and a newer entry has a higher one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from lukasa.index.cache import ChangeRows, NumberedSnapshots, ReadCache
from lukasa.index.postings import Postings
from lukasa.model.candidate import Candidate
from lukasa.model.entry import Entry, Scope
from lukasa.model.selection import Filters, Selection
from lukasa.ports import EmbeddingModel


class Partition(NamedTuple):
    """One scope, visibility and owner: the rows that are searched together. `removals` counts removed vectors."""

    id: int
    size: int
    total_terms: int
    removals: int


class CandidateRow(NamedTuple):
    candidate: Candidate
    row: int


class MatchedRow(NamedTuple):
    """A row that a keyword search found: its index terms, separated by spaces, and how many these are."""

    candidate: Candidate
    terms: str
    length: int


class AdjacentRow(NamedTuple):
    """A row that was written close to entry `of`, in its partition and conversation."""

    candidate: Candidate
    row: int
    of: str


class KeywordRows(ChangeRows, Protocol):
    """Questions about partitions and words. A word is a term with its partition, as `postings.token` makes it."""

    cache: ReadCache

    def partitions(self, selection: Selection) -> list[Partition]:
        """The partitions of a selection, found by equality on every part of their key."""
        ...

    def frequencies(self, words: Sequence[str]) -> Iterable[tuple[str, int]]:
        """In how many indexed rows each word is; words that are in none may be left out."""
        ...

    def postings(self, words: Sequence[str]) -> Iterable[tuple[str, Postings]]:
        """The indexed rows of every word, also of a word that is not there."""
        ...

    def newest_postings(self, word: str, limit: int) -> Sequence[int]:
        """The newest indexed rows that hold a word, newest first."""
        ...

    def pending_rows(self) -> Iterable[tuple[int, int, str]]:
        """Pending index rows, oldest first: row, partition and terms of entries that the index does not have yet."""
        ...

    def filtered_rows(self, words: Sequence[str], pending: Collection[int], filters: Filters, limit: int) -> list[int]:
        """Rows that hold one of the words and that the filters admit: the pending ones, then the best of the index."""
        ...

    def lengths(self, rows: Sequence[int]) -> Mapping[int, int]:
        """The number of index terms of each row."""
        ...

    def trusts(self, rows: Sequence[int]) -> Iterable[tuple[int, int]]:
        """The trust of each row."""
        ...

    def matched(self, rows: Sequence[int]) -> dict[int, MatchedRow]: ...


class EntryRows(ChangeRows, Protocol):
    """Questions about entries by their ids."""

    cache: ReadCache

    def versions_and_rows(self, ids: Sequence[str]) -> Iterable[tuple[str, int, int]]: ...
    def candidate_rows(self, ids: Sequence[str], filters: Filters) -> list[CandidateRow]: ...
    def contents(self, ids: Sequence[str]) -> Iterable[tuple[str, str]]: ...
    def adjacent_rows(self, rows: Sequence[int], reach: int) -> list[AdjacentRow]:
        """The rows at most `reach` row numbers away, each row itself included, of its partition and conversation."""
        ...


VectorKey: TypeAlias = "tuple[int, int]"  # partition and model
VectorRow: TypeAlias = "tuple[int, int, bytes]"  # sequence number, entry row, little-endian float32


class VectorRows(NumberedSnapshots, Protocol):
    """Questions about one table of vectors. A sequence number is given once, in ascending order, and never reused."""

    cache: ReadCache
    name: str  # of the table
    blobs: bool  # whether the table has vector blobs

    def last_seq(self, key: VectorKey) -> int: ...
    def seqs(self, key: VectorKey) -> Iterable[int]: ...
    def vectors_after(self, key: VectorKey, seq: int, limit: int) -> list[VectorRow]: ...
    def vectors_by_seq(self, seqs: Sequence[int]) -> list[VectorRow]: ...
    def blobs_after(self, key: VectorKey, seq: int, limit: int) -> list[tuple[int, bytes, bytes, bytes, bytes]]:
        """Vector blobs in order: the last sequence number, then the four columns of `blobs.encoded`."""
        ...

    def blob_heads(self, key: VectorKey) -> list[tuple[int, int, bytes, bytes, bytes]]:
        """The same with an id first and without the codes."""
        ...

    def read_codes(self, ids: Sequence[int], into: memoryview) -> int | None:
        """Copy the codes of vector blobs into a buffer; return the number of bytes, or None if it is too small."""
        ...


class SearchRows(KeywordRows, EntryRows, Protocol):
    """All questions of a search; those about new texts and about single vectors come last."""

    def model_number(self, model: EmbeddingModel) -> int | None: ...
    def entry_vectors(self) -> VectorRows: ...
    def admitted(self, partition: int, filters: Filters) -> Iterable[int]:
        """The rows of a partition that the filters admit."""
        ...

    def vectors_of(self, rows: Sequence[int], model: int) -> list[tuple[int, bytes]]: ...
    def same_text(self, scope: Scope, owner: str, keys: Sequence[str]) -> Iterable[tuple[str, int]]:
        """The row of the active or held entry with each content key."""
        ...

    def newest_with_all(self, words: Sequence[str], limit: int) -> list[int]:
        """The newest indexed rows that hold all of these words, newest first."""
        ...

    def pending_in(self, partition: int) -> list[tuple[int, str]]:
        """Row and terms of the pending index rows of a partition, oldest first."""
        ...

    def terms_of(self, rows: Sequence[int]) -> list[tuple[int, str]]: ...
    def with_subject(self, partition: int, subjects: Sequence[int], limit: int) -> Iterable[tuple[int, int]]:
        """Subject and row of the newest rows with each of these subjects (`neighbours.word_key`)."""
        ...

    def with_role(self, partition: int, roles: Sequence[int], limit: int) -> Iterable[tuple[int, int]]: ...
    def entries_by_row(self, rows: Collection[int]) -> dict[int, Entry]: ...
