"""The read cache of one connection, and the one rule for when what it holds is stale.

The backend numbers the snapshots that a connection reads: a commit, whoever made it, gives the next snapshot another
number. The rule:

    An answer holds for the snapshot that it was read from. At another snapshot, the event log says what happened since:
    - `snapshot` answers are dropped.
    - `entries` answers stay if entries were added and nothing else happened to entries. The words of the new entries
      are added to the cached postings.
    - `records` answers stay if no named entry and no document was written or scrubbed.
    - `fixed` answers are about facts that no commit changes: the number of a committed partition, an entry at a
      version. Estimates that steer a search and decide nothing are kept there too.

Nothing is cached inside a write transaction, because that can be undone. The vectors in memory (`VectorIndex`) follow
the same rule: a vector with a sequence number never changes, and the numbers are compared at each new snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from lukasa.index import bm25
from lukasa.index.postings import Postings, tokens

Answers: TypeAlias = "dict[Any, Any]"
LIMIT = 20_000  # answers of one sort
_MOST_EVENTS = 64  # to look through; after more of them it is cheaper to ask again


class LogPosition(NamedTuple):
    """How far a snapshot has come: its last event, its last entry row, and how often its index was rebuilt."""

    seq: int
    row: int
    rebuilds: int


class AddedRow(NamedTuple):
    id: str
    row: int
    partition: int
    terms: str


class NumberedSnapshots(Protocol):
    def snapshot_number(self) -> int:
        """The number of the snapshot that is read now."""
        ...


class ChangeRows(NumberedSnapshots, Protocol):
    """The questions that the cache asks a backend about what happened since a snapshot."""

    def log_position(self) -> LogPosition: ...
    def rows_since(self, row: int) -> list[AddedRow]: ...
    def entries_changed_since(self, seq: int) -> set[str]:
        """Subjects of later events, but for those that are about no entry."""
        ...

    def records_changed_since(self, seq: int) -> bool:
        """Whether a later event is about a named entry, a document or a scrub."""
        ...


class ReadCache:
    """Answers of one connection, by name. The connections of a store may share the `fixed` ones."""

    __slots__ = ("_entries", "_entries_at", "_fixed", "_looked", "_number", "_records", "_records_at", "_snapshot")

    def __init__(self, fixed: dict[str, Answers] | None = None) -> None:
        self._fixed = {} if fixed is None else fixed
        self._number, self._looked = -1, False  # of the snapshot, and whether it is that of the present transaction
        self._snapshot: dict[str, Answers] = {}
        self._entries: dict[str, Answers] = {}
        self._entries_at: tuple[int, LogPosition] | None = None  # the snapshot that these answers are of
        self._records: Answers = {}
        self._records_at: int | None = None

    @property
    def latest(self) -> int:
        """The number of the last snapshot that was asked for."""
        return self._number

    def begin(self) -> None:
        """Say that a read transaction begins. Which snapshot it sees is only asked when that matters."""
        self._looked = False

    def number(self, rows: NumberedSnapshots) -> int:
        """The number of the snapshot; answers of another one are dropped."""
        if not self._looked:
            number = rows.snapshot_number()
            if number != self._number:
                self._snapshot.clear()
                self._number = number
            self._looked = True
        return self._number

    def snapshot(self, name: str, rows: NumberedSnapshots) -> Answers:
        self.number(rows)
        return _bounded(self._snapshot, name)

    def entries(self, name: str, rows: ChangeRows) -> Answers:
        if self._entries_at is None or self._entries_at[0] != self.number(rows):
            self._follow_entries(rows)
        return _bounded(self._entries, name)

    def records(self, rows: ChangeRows) -> Answers:
        """Named entries and documents. May be asked outside a transaction."""
        seq, before = rows.log_position().seq, self._records_at
        if seq != before:
            few = before is not None and before < seq <= before + _MOST_EVENTS
            if before is None or not few or rows.records_changed_since(before):
                self._records.clear()
            self._records_at = seq
        return self._records

    def fixed(self, name: str, limit: int = LIMIT) -> Answers:
        return _bounded(self._fixed, name, limit)

    def _follow_entries(self, rows: ChangeRows) -> None:
        now, before = rows.log_position(), self._entries_at
        added = _only_added(rows, before[1], now) if before is not None and self._entries else None
        if added is None:
            self._entries = {}
        elif added:
            _add_postings(self._entries.get("postings", {}), self._entries.get("frequencies", {}), added)
        self._entries_at = self._number, now


def _bounded(sections: dict[str, Answers], name: str, limit: int = LIMIT) -> Answers:
    answers = sections.get(name)
    if answers is None:
        answers = sections[name] = {}
    elif len(answers) > limit:
        answers.clear()
    return answers


def _only_added(rows: ChangeRows, before: LogPosition, now: LogPosition) -> list[AddedRow] | None:
    """The entries that were added in between; None if anything else may have happened to entries."""
    if now.rebuilds != before.rebuilds or not 0 <= now.seq - before.seq <= _MOST_EVENTS:
        return None
    if now.seq == before.seq:
        return []
    added = rows.rows_since(before.row)
    return added if rows.entries_changed_since(before.seq) <= {one.id for one in added} else None


def _add_postings(postings: dict[str, Postings], frequencies: dict[str, int], added: Sequence[AddedRow]) -> None:
    """Add the words of new entries, as the keyword index has them now. Postings that are not whole are dropped."""
    more: dict[str, list[int]] = {}
    for new in added:
        for word, count in Counter(tokens(new.partition, new.terms.split()).split()).items():
            if word in frequencies:
                frequencies[word] += 1
            if word in postings:
                more.setdefault(word, []).extend([new.row] * count)
    for word, found in more.items():
        held = postings.pop(word)
        if held.whole and len(held) + len(found) <= bm25.POSTING_BUDGET:
            postings[word] = held.plus(found)
