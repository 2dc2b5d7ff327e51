"""The rows that search asks for, from SQLite: statements and decoding, and no decisions."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import apsw

from lukasa.index import keyword
from lukasa.index.cache import AddedRow, LogPosition, ReadCache
from lukasa.index.postings import Postings
from lukasa.index.rows import AdjacentRow, CandidateRow, MatchedRow, Partition, VectorKey, VectorRow
from lukasa.model.arrays import at_hand, np
from lukasa.model.candidate import Candidate
from lukasa.model.entry import Access, Entry, Scope
from lukasa.model.selection import Filters, Selection
from lukasa.ports import EmbeddingModel
from lukasa.storage import row_rules
from lukasa.storage.entry_codec import KINDS, anchor_text, candidates_of, checked_entry, scope_of
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.execute import Row, all_rows, filter_bindings, json_list, one_row, one_value, rows_of_each

_OLDER_THAN_ALL, _NEWER_THAN_ALL = -(2**63), (2**63 - 1, 2**63 - 1)
_ROWID = 17  # position among the columns of a candidate


class Handle(apsw.Connection):
    """A connection of one thread with its read cache."""

    cache: ReadCache
    reads: bool  # inside a read transaction: a write transaction may be undone, so nothing is cached there


class AccessFile(NamedTuple):
    """Implements `storage.access_counts.CountRows` over the connection to the file of access counts."""

    db: Handle

    def cached(self) -> dict[str, Access | None]:
        self.db.cache.begin()
        return self.db.cache.snapshot("access counts", self)

    def snapshot_number(self) -> int:
        """SQLite's data version, which does not count the commits of this connection."""
        return int(one_value(self.db, sql.DATA_VERSION))

    def counts(self, ids: Sequence[str]) -> Iterable[tuple[str, int, int]]:
        return all_rows(self.db, sql.ACCESS, (json_list(ids),))

    def add(self, counts: Sequence[tuple[str, int, int]]) -> None:
        all_rows(self.db, sql.COUNT, (json_list(counts),))

    def drop(self, ids: Sequence[str]) -> None:
        all_rows(self.db, sql.DROP_ACCESS, (json_list(ids),))

    def ids(self) -> list[str]:
        return [id for (id,) in all_rows(self.db, sql.COUNTED)]


class VectorTable(NamedTuple):
    """The statements on one table of vectors."""

    name: str
    last: str
    seqs: str
    after: str
    by_seq: str
    blobs: bool


ENTRY_VECTORS = VectorTable(
    "entry vectors", sql.LAST_VECTOR, sql.VECTOR_SEQS, sql.VECTORS_SINCE, sql.VECTORS_BY_SEQ, blobs=True
)
ITEM_VECTORS = VectorTable(
    "item vectors",
    sql.LAST_ITEM_VECTOR,
    sql.ITEM_VECTOR_SEQS,
    sql.ITEM_VECTORS_SINCE,
    sql.ITEM_VECTORS_BY_SEQ,
    blobs=False,
)
PASSAGE_VECTORS = VectorTable(
    "passage vectors",
    sql.LAST_PASSAGE_VECTOR,
    sql.PASSAGE_VECTOR_SEQS,
    sql.PASSAGE_VECTORS_SINCE,
    sql.PASSAGE_VECTORS_BY_SEQ,
    blobs=False,
)


class _Rows:
    """A connection and its cache; outside a read transaction, a cache that is thrown away."""

    __slots__ = ("cache", "db")

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self.cache = db.cache if isinstance(db, Handle) and db.reads else ReadCache()

    def snapshot_number(self) -> int:
        all_rows(self.db, sql.LOOK)  # a transaction sees a snapshot once it has read something
        return self.db.data_version()


class SqliteVectorRows(_Rows):
    """Implements `index.rows.VectorRows` for one table."""

    __slots__ = ("_table", "blobs", "name")

    def __init__(self, db: apsw.Connection, table: VectorTable) -> None:
        super().__init__(db)
        self._table, self.name, self.blobs = table, table.name, table.blobs

    def last_seq(self, key: VectorKey) -> int:
        return int(one_value(self.db, self._table.last, key))

    def seqs(self, key: VectorKey) -> Iterable[int]:
        return [seq for (seq,) in all_rows(self.db, self._table.seqs, key)]

    def vectors_after(self, key: VectorKey, seq: int, limit: int) -> list[VectorRow]:
        return all_rows(self.db, self._table.after, (*key, seq, limit))

    def vectors_by_seq(self, seqs: Sequence[int]) -> list[VectorRow]:
        return all_rows(self.db, self._table.by_seq, (json_list(seqs),))

    def blobs_after(self, key: VectorKey, seq: int, limit: int) -> list[tuple[int, bytes, bytes, bytes, bytes]]:
        return all_rows(self.db, sql.PACKS, (*key, seq, limit))

    def blob_heads(self, key: VectorKey) -> list[tuple[int, int, bytes, bytes, bytes]]:
        return all_rows(self.db, sql.PACK_HEADS, key)

    def read_codes(self, ids: Sequence[int], into: memoryview) -> int | None:
        """Straight from the pages: a value of a row would be put together first, and then copied."""
        at = 0
        with self.db.blob_open("main", "packs", "codes", ids[0], False) as codes:
            for id in ids:
                codes.reopen(id)
                size = codes.length()
                if at + size > len(into):
                    return None
                codes.read_into(into, at, size)
                at += size
        return at


class SqliteSearchRows(_Rows):
    """Implements `index.rows.SearchRows`."""

    __slots__ = ()

    # Changes

    def log_position(self) -> LogPosition:
        ((seq, row, rebuilds),) = all_rows(self.db, sql.LOG_POSITION)
        return LogPosition(seq, row, rebuilds)

    def rows_since(self, row: int) -> list[AddedRow]:
        return [AddedRow(*found) for found in all_rows(self.db, sql.ROWS_SINCE, (row,))]

    def entries_changed_since(self, seq: int) -> set[str]:
        return {subject for (subject,) in all_rows(self.db, sql.SUBJECTS_SINCE, (seq,))}

    def records_changed_since(self, seq: int) -> bool:
        return bool(one_value(self.db, sql.RECORDS_CHANGED_SINCE, (seq,)))

    # Partitions and words

    def partitions(self, selection: Selection) -> list[Partition]:
        found: list[Row] = []
        for scope in dict.fromkeys(selection.scopes):
            for visibility in sorted(selection.visibilities):
                key = (scope.tier, anchor_text(scope), str(visibility))
                if selection.owners is None:
                    found += all_rows(self.db, sql.PARTITIONS_OF_ALL_OWNERS, key)
                else:
                    for owner in dict.fromkeys(selection.owners):
                        found += all_rows(self.db, sql.PARTITION, (*key, owner))
        return [Partition(*row) for row in found]

    def frequencies(self, words: Sequence[str]) -> Iterable[tuple[str, int]]:
        return all_rows(self.db, sql.FREQUENCIES, (json_list(words),))

    def postings(self, words: Sequence[str]) -> Iterable[tuple[str, Postings]]:
        found = all_rows(self.db, sql.POSTINGS, (json_list(words),))
        return [(word, Postings(row_numbers(rows))) for word, rows in found]

    def newest_postings(self, word: str, limit: int) -> Sequence[int]:
        return row_numbers(one_value(self.db, sql.NEWEST_POSTINGS, (f'"{word}"', limit)))

    def pending_rows(self) -> Iterable[tuple[int, int, str]]:
        return all_rows(self.db, sql.PENDING)

    def filtered_rows(self, words: Sequence[str], pending: Collection[int], filters: Filters, limit: int) -> list[int]:
        bound = filter_bindings(filters)
        newest = all_rows(self.db, sql.ROWS_ADMITTED, bound | {"rows": json_list(pending)}) if pending else []
        matching = bound | {"match": " OR ".join([f'"{word}"' for word in words]), "limit": limit}
        return [row for (row,) in [*newest, *all_rows(self.db, sql.MATCHES_FILTERED, matching)]][:limit]

    def lengths(self, rows: Sequence[int]) -> dict[int, int]:
        return dict(all_rows(self.db, sql.LENGTHS, (json_list(rows),)))

    def trusts(self, rows: Sequence[int]) -> list[tuple[int, int]]:
        return all_rows(self.db, sql.TRUSTS, (json_list(rows),))

    def matched(self, rows: Sequence[int]) -> dict[int, MatchedRow]:
        found = all_rows(self.db, sql.MATCHED, (json_list(rows),))
        candidates = self._candidates(found)
        return {row[_ROWID]: MatchedRow(one, row[-2], row[-1]) for row, one in zip(found, candidates, strict=True)}

    # Entries

    def versions_and_rows(self, ids: Sequence[str]) -> Iterable[tuple[str, int, int]]:
        return all_rows(self.db, sql.STAMPS, (json_list(ids),))

    def candidate_rows(self, ids: Sequence[str], filters: Filters) -> list[CandidateRow]:
        if filters:
            found = all_rows(self.db, sql.CARDS_ADMITTED, filter_bindings(filters) | {"ids": json_list(ids)})
        else:
            found = all_rows(self.db, sql.CARDS, {"ids": json_list(ids)})
        return [CandidateRow(one, row[_ROWID]) for row, one in zip(found, self._candidates(found), strict=True)]

    def contents(self, ids: Sequence[str]) -> Iterable[tuple[str, str]]:
        found = all_rows(self.db, sql.TEXTS, (json_list(ids),))
        return [(id, text.decode(errors="replace")) for id, text in found]

    def adjacent_rows(self, rows: Sequence[int], reach: int) -> list[AdjacentRow]:
        found = all_rows(self.db, sql.BESIDE, {"numbers": json_list(rows), "rows": reach})
        candidates = self._candidates(found)
        return [AdjacentRow(one, row[_ROWID], row[-1]) for row, one in zip(found, candidates, strict=True)]

    def _candidates(self, rows: Sequence[Row]) -> list[Candidate]:
        """Candidates of rows that begin with the columns of one."""
        scopes: dict[int, Scope] = self.cache.entries("scopes", self)
        if not {row[1] for row in rows} <= scopes.keys():
            found = all_rows(self.db, sql.SCOPES)
            scopes.update((partition, scope_of(tier, anchor)) for partition, tier, anchor in found)
        return candidates_of(rows, scopes)

    # Vectors

    def model_number(self, model: EmbeddingModel) -> int | None:
        numbers = self.cache.fixed("numbers")
        number: int | None = numbers.get(model)
        if number is None:
            number = one_value(self.db, sql.MODEL_ID, (model.name, model.dimensions, model.digest))
            if number is not None:
                numbers[model] = number
        return number

    def entry_vectors(self) -> SqliteVectorRows:
        return SqliteVectorRows(self.db, ENTRY_VECTORS)

    def admitted(self, partition: int, filters: Filters) -> Iterable[int]:
        bound = filter_bindings(filters) | {"partition": partition}
        return [row for (row,) in all_rows(self.db, sql.ADMITTED, bound)]

    def vectors_of(self, rows: Sequence[int], model: int) -> list[tuple[int, bytes]]:
        return all_rows(self.db, sql.VECTORS, (json_list(rows), model))

    # Neighbours of new texts

    def same_text(self, scope: Scope, owner: str, keys: Sequence[str]) -> Iterable[tuple[str, int]]:
        where = (scope.tier, anchor_text(scope), owner)
        return rows_of_each(self.db, sql.SAME_TEXT, [(*where, key) for key in keys])

    def newest_with_all(self, words: Sequence[str], limit: int) -> list[int]:
        together = " AND ".join([f'"{word}"' for word in words])
        return [row for (row,) in all_rows(self.db, sql.NEWEST_ROWS_OF, (together, limit))]

    def pending_in(self, partition: int) -> list[tuple[int, str]]:
        return all_rows(self.db, sql.PENDING_IN, (partition,))

    def terms_of(self, rows: Sequence[int]) -> list[tuple[int, str]]:
        return rows_of_each(self.db, sql.TERMS_OF_ROW, [(row,) for row in rows])

    def with_subject(self, partition: int, subjects: Sequence[int], limit: int) -> Iterable[tuple[int, int]]:
        asked = [(partition, subject, limit) for subject in subjects]
        return rows_of_each(self.db, sql.OF_SUBJECT, asked)

    def with_role(self, partition: int, roles: Sequence[int], limit: int) -> Iterable[tuple[int, int]]:
        return rows_of_each(self.db, sql.IN_ROLE, [(partition, role, limit) for role in roles])

    def entries_by_row(self, rows: Collection[int]) -> dict[int, Entry]:
        found = all_rows(self.db, sql.NUMBERED_ENTRIES, (json_list(rows),))
        entries = {row[-1]: checked_entry(row) for row in found}
        return {row: entry for row, entry in entries.items() if not entry.damaged}


def find(
    db: apsw.Connection, selection: Selection, limit: int, after: str | None, *, damaged: bool = False
) -> list[Entry]:
    """A page of entries, newest first, behind the entry `after`; without the damaged ones unless they are asked for."""
    filters = filter_bindings(selection.filters)
    since, until = filters["since"], filters["until"]
    before = _NEWER_THAN_ALL if after is None else _position(db, after)
    if until is not None:
        before = min(before, (until, 0))
    ends = {"after": _OLDER_THAN_ALL if since is None else since, "before": before[0], "before_row": before[1]}
    bound = filters | ends | {"limit": limit}
    partitions = keyword.partitions_of(SqliteSearchRows(db), selection)
    found: list[Entry] = []
    while True:
        newest: list[Row] = []
        for partition in partitions:
            for kind in selection.filters.kinds or KINDS:
                newest += all_rows(db, sql.NEWEST_OF_KIND, bound | {"partition": partition.id, "kind": str(kind)})
        page = sorted(newest, reverse=True)[: bound["limit"]]
        rows = all_rows(db, sql.ENTRIES_IN_ORDER, (json_list(row for _, row in page),))
        found += [entry for entry in map(checked_entry, rows) if damaged or not entry.damaged]
        if len(found) == limit or len(page) < bound["limit"]:
            return found
        bound |= {"before": page[-1][0], "before_row": page[-1][1], "limit": limit - len(found)}


def _position(db: apsw.Connection, id: str) -> tuple[int, int]:
    row = one_row(db, sql.MARK, (id,))
    if row is None:
        raise row_rules.missing("entry", id)
    return row[0], row[1]


def row_numbers(text: str) -> array[int]:
    """The numbers of a JSON list that SQLite made. numpy reads it in a fifth of the time of a JSON parser."""
    rows = array("q")
    if at_hand() and len(text) > len("[]"):
        rows.frombytes(np.fromstring(text[1:-1], dtype=np.int64, sep=",").tobytes())
    else:
        rows.extend(json.loads(text))
    return rows
