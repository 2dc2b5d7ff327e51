"""What of a check and a rebuild is SQLite's own: its file, its keyword indexes in FTS5, and vector blobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from itertools import groupby, zip_longest
from typing import Any, TypeVar

import apsw

from lukasa.index.postings import token, tokens
from lukasa.model.entry import Entry
from lukasa.model.errors import Damaged
from lukasa.model.text import terms
from lukasa.storage import integrity, sqlite, tables
from lukasa.storage.codec import Query, TextTable
from lukasa.storage.entry_codec import entry_columns
from lukasa.storage.integrity import Kept, Step, StoredVector, wrong
from lukasa.storage.port import Finding
from lukasa.storage.sqlite import sql, vector_blobs
from lukasa.storage.sqlite.entries import partition_id, scope_id
from lukasa.storage.sqlite.execute import Row, all_rows, json_list, one_value, stream
from lukasa.storage.sqlite.sqlite_rows import SqliteRows

Value = TypeVar("Value")
_END: tuple[int, dict[str, int]] = (2**63 - 1, {})


def check(db: apsw.Connection) -> list[Finding]:
    engine = SqliteEngine(db)
    own = (Step("index", engine.index_faults, True), Step("vector_blobs", engine.blob_faults, True))
    words = [Step(f"{t.row}_index", partial(engine.text_index_faults, t), True) for t in tables.text_tables()]
    return integrity.check(engine, (Step("file", engine.file_faults), *integrity.steps(engine), *own, *words))


def rebuild(db: apsw.Connection) -> None:
    """Inside a write transaction: all that can be computed from the rows is, and texts that have a sound copy."""
    integrity.rebuild(SqliteEngine(db))


class SqliteEngine:
    """Implements `lukasa.storage.integrity.Engine`."""

    sql: integrity.Statements = sql
    name = "memory.db"
    errors: tuple[type[Exception], ...] = (apsw.Error,)

    def __init__(self, db: apsw.Connection) -> None:
        self.db, self.rows = db, SqliteRows(db)
        self._last = 0  # the last row that was indexed

    @property
    def secret(self) -> bytes:
        found: bytes = one_value(self.db, sql.META)
        return found

    def all(self, statement: str, *values: Any) -> list[Row]:
        return all_rows(self.db, statement, _bound(values))

    settled = all

    def stream(self, statement: str, *values: Any) -> Iterator[Row]:
        return stream(self.db, statement, _bound(values))

    def run(self, statement: str, *values: Any) -> None:
        self.db.execute(statement, _bound(values))

    def walk(self, query: Query[Value], *values: Any) -> Iterator[Value]:
        return self.rows.walk(query, *values)

    def apart(self) -> AbstractContextManager[None]:
        return nullcontext()

    def is_derived(self, error: Exception) -> bool:
        return "fts" in str(error)

    def vectors(self) -> Iterator[StoredVector]:
        return (StoredVector(row[:1], *row[1:]) for row in stream(self.db, sql.ALL_VECTORS))

    def item_vectors(self) -> Iterator[StoredVector]:
        return (StoredVector(row[:1], *row[1:]) for row in stream(self.db, sql.ALL_ITEM_VECTORS))

    def passage_vectors(self) -> Iterator[StoredVector]:
        return (StoredVector(row[:1], *row[1:]) for row in stream(self.db, sql.ALL_PASSAGE_VECTORS))

    def columns(self, entry: Entry) -> dict[str, Any]:
        return entry_columns(entry)

    # Checking

    def file_faults(self) -> Iterator[Finding]:
        for (message,) in stream(self.db, sql.INTEGRITY):
            if message != "ok":
                yield wrong("file", self.name, message, derived="fts5" in message.lower())
        for table, rowid, parent, _ in stream(self.db, sql.FOREIGN_KEYS):
            derived = table in ("vectors", "packs", "item_vectors", "item_prefixes", "passages", "passage_vectors")
            yield wrong("reference", f"{table}/{rowid}", f"points at nothing in {parent}", derived=derived)

    def index_faults(self) -> Iterator[Finding]:
        """Every term of every row, no more and no less; then what ranking rests on: lengths and totals."""
        indexed, last = _indexed(self.db), one_value(self.db, sql.LAST_INDEXED)
        frequencies: Counter[str] = Counter()
        lengths: dict[int, int] = {}
        doc, actual = next(indexed, _END)
        for row in stream(self.db, sql.ALL_ENTRIES):
            kept = Kept.of(row)
            while doc < kept.rowid:
                yield wrong("index", doc, "the keyword index holds a row that is gone", derived=True)
                doc, actual = next(indexed, _END)
            fed = kept.rowid <= last
            if fed:
                lengths[kept.rowid] = kept.term_count
            expected = Counter(token(kept.partition, t) for t in kept.terms.split() if fed)
            frequencies.update(expected.keys())
            found: dict[str, int] = {}
            if doc == kept.rowid:
                found, (doc, actual) = actual, next(indexed, _END)
            if expected != found:
                yield wrong("index", row[0], "the keyword index does not match the row", derived=True)
        if doc != _END[0]:
            yield wrong("index", doc, "the keyword index holds rows that are gone", derived=True)
        # A scan reads every page; a search seeks. A seek must find every row that the scan finds.
        for term, frequency in frequencies.items():
            if all_rows(self.db, sql.FREQUENCIES, (json_list([term]),)) != [(term, frequency)]:
                yield wrong("index", term, "the keyword index does not find what it holds", derived=True)
        yield from self._size_faults(lengths)

    def _size_faults(self, lengths: dict[int, int]) -> Iterator[Finding]:
        found = {id: _varints(size) for id, size in stream(self.db, sql.INDEX_LENGTHS)}
        if found != {rowid: [length] for rowid, length in lengths.items()}:
            yield wrong("index", "lengths", "the keyword index has wrong lengths", derived=True)
        totals = one_value(self.db, sql.INDEX_TOTALS)
        expected = [len(lengths), sum(lengths.values())]
        if lengths and (totals is None or _varints(totals) != expected):
            yield wrong("index", "totals", "the keyword index has wrong totals", derived=True)

    def blob_faults(self) -> Iterator[Finding]:
        for partition, model in vector_blobs.faults(self.db):
            yield wrong("pack", f"partition {partition}", f"not the vectors of model {model}", derived=True)

    def text_index_faults(self, table: TextTable[Any]) -> Iterator[Finding]:
        """Every row with as many words as its text has, and no other. Another step tells of a text that was altered."""
        index, none = sql.text_index(table), (None, b"")
        kept = stream(self.db, index.all)
        for (row, *columns), (id, size) in zip_longest(kept, stream(self.db, index.indexed), fillvalue=none):
            if row != id or not self._fits(table, columns, size):
                yield wrong("index", table.name, f"the index of {table.name} does not match them", derived=True)
                return

    def _fits(self, table: TextTable[Any], columns: Sequence[Any], size: bytes) -> bool:
        with suppress(Damaged):
            return _varints(size) == [len(terms(table.text(table.decode(tuple(columns)))))]
        return True

    # Rebuilding

    def partition(self, entry: Entry) -> int:
        return partition_id(self.db, scope_id(self.db, entry.scope), entry)

    def empty_index(self) -> None:
        self._last = 0
        try:
            self.db.execute(sql.EMPTY_INDEX)
        except apsw.Error:
            for statement in sql.REMAKE_INDEX:
                self.db.execute(statement)

    def index(self, row: int, partition: int, terms: list[str]) -> None:
        self._last = row
        self.db.execute(sql.INDEX_ROW, (row, tokens(partition, terms)))

    def finish_index(self) -> None:
        self.db.execute(sql.SET_LAST_INDEXED, (self._last,))

    def rebuild_own(self) -> None:
        vector_blobs.rebuild(self.db)
        self.db.execute(sql.ITEM_VECTORS_REMOVED_SOMEWHERE)
        self.db.execute(sql.PASSAGE_VECTORS_REMOVED)

    def rebuild_texts(self, table: TextTable[Any]) -> None:
        sqlite.text_rows.rebuild(self.db, table)


def _bound(values: Iterable[Any]) -> list[Any]:
    return [json_list(value) if isinstance(value, list) else value for value in values]


def _indexed(db: apsw.Connection) -> Iterator[tuple[int, dict[str, int]]]:
    """The rows of the keyword index in order, each with its terms and their counts."""
    for doc, rows in groupby(stream(db, sql.INDEXED), key=lambda row: int(row[0])):
        yield doc, {term: count for _, term, count in rows}


def _varints(data: bytes) -> list[int]:
    """SQLite's variable-length integers, big end first, seven bits a byte."""
    values, value = [], 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            values.append(value)
            value = 0
    return values
