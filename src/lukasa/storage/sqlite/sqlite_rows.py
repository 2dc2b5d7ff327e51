"""`Rows` for SQLite: plain tables by the statements that their declarations make, and the log of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

from lukasa.model.errors import Damaged
from lukasa.model.item import ItemAddress
from lukasa.model.telemetry import MOST_DEBUG
from lukasa.ports import EmbeddingModel
from lukasa.storage import sqlite, tables
from lukasa.storage.backend import FieldVector, PassageVector, StoredItem
from lukasa.storage.codec import Dialect, Query, Table, TextTable
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.entries import EntryTable
from lukasa.storage.sqlite.execute import all_rows, one_row, one_value, stream
from lukasa.storage.tables import SealedEvent

Value = TypeVar("Value")
DIALECT = Dialect()
SELECT, COUNT, COUNT_BY = cache(DIALECT.select), cache(DIALECT.count), cache(DIALECT.count_by)
INSERT, SAVE, DELETE = cache(DIALECT.insert), cache(DIALECT.save), cache(DIALECT.delete)
NUMBERS = cache(DIALECT.numbers)


class SqliteRows(EntryTable):
    """Implements `lukasa.storage.backend.Rows` over a connection inside a transaction."""

    headed: tuple[int, str] | None = None  # the head of the log, if this transaction moved it

    # Plain tables

    def select(
        self,
        query: Query[Value],
        *values: Any,
        limit: int | None = None,
        after: str | None = None,
        hold: bool = False,
        only: Callable[[Sequence[Any]], bool] | None = None,
    ) -> list[Value]:
        bound = _bound(query, values)
        if query.paged:
            bound.append(after)
        bound.append(DIALECT.no_limit if limit is None else limit)
        decode = query.given.decode
        return [decode(row) for row in all_rows(self.db, SELECT(query), bound) if only is None or only(row)]

    def walk(self, query: Query[Value], *values: Any) -> Iterator[Value]:
        """The values of a query that is not paged, row by row."""
        return map(query.given.decode, stream(self.db, SELECT(query), [*_bound(query, values), DIALECT.no_limit]))

    def count(self, query: Query[Any], *values: Any) -> int:
        return int(one_value(self.db, COUNT(query), _bound(query, values)))

    def count_by(self, query: Query[Any], column: str, *values: Any) -> dict[Any, int]:
        return dict(all_rows(self.db, COUNT_BY(query, column), _bound(query, values)))

    def insert(self, table: Table[Value], values: Sequence[Value]) -> None:
        self.db.executemany(INSERT(table), [table.encode(value) for value in values])

    def save(self, table: Table[Value], value: Value) -> None:
        self.db.execute(SAVE(table), table.encode(value))

    def delete(self, query: Query[Any], *values: Any) -> int:
        self.db.execute(DELETE(query), _bound(query, values))
        return self.db.changes()

    # The event log

    def head(self) -> tuple[int, str]:
        found = one_row(self.db, sql.HEAD)
        if found is None:
            raise Damaged("the head of the log")
        return found[0], found[1]

    def append_events(self, events: Sequence[SealedEvent]) -> None:
        self.db.executemany(INSERT(tables.EVENTS), events)
        self.headed = events[-1].seq, events[-1].digest
        self.db.execute(sql.SET_HEAD, self.headed)

    def redact_events(self, ranges: Sequence[tuple[int, int]], scrub: int) -> None:
        for first, last in ranges:
            self.db.execute(sql.NEW_REDACTION, (first, last, scrub))
            self.db.execute(sql.REDACT, (first, last))

    # Items

    def stored_item(self, place: ItemAddress) -> StoredItem | None:
        return sqlite.item_rows.stored(self.db, place)

    def save_item(self, stored: StoredItem) -> None:
        sqlite.item_rows.save(self.db, stored)

    def item_models(self, place: ItemAddress) -> set[EmbeddingModel]:
        return sqlite.item_rows.models(self.db, place)

    def add_item_vectors(self, stored: StoredItem, vectors: Sequence[FieldVector]) -> None:
        sqlite.item_rows.add_vectors(self.db, stored, vectors)

    def drop_item(self, place: ItemAddress) -> None:
        sqlite.item_rows.drop(self.db, place)

    # Texts

    def add_texts(self, table: TextTable[Value], values: Sequence[Value]) -> None:
        sqlite.text_rows.add(self.db, table, INSERT(table), values)

    def drop_texts(self, query: Query[Any], *values: Any) -> int:
        assert isinstance(query.table, TextTable)
        rows = [row for (row,) in all_rows(self.db, NUMBERS(query), _bound(query, values))]
        sqlite.text_rows.drop(self.db, query.table, rows)
        return len(rows)

    def set_passage_vectors(self, vectors: Sequence[PassageVector]) -> None:
        sqlite.text_rows.set_vectors(self.db, vectors)

    # Telemetry

    def count_wordy_telemetry(self) -> int:
        return int(one_value(self.db, sql.COUNT_WORDY))

    def empty_wordy_telemetry(self) -> None:
        self.db.execute(sql.EMPTY_WORDY)

    def prune_debug(self) -> None:
        """Keep the newest telemetry events of level debug: reads report many."""
        self.db.execute(sql.PRUNE_POINTS, (MOST_DEBUG,))

    # The end of a transaction

    def write_vector_blobs(self) -> None:
        """Add vectors of this transaction to vector blobs, where enough of them are in none."""
        if self.grown:
            sqlite.vector_blobs.add(self.db, self.grown)


def _bound(query: Query[Any], values: Sequence[Any]) -> list[Any]:
    return [json.dumps(value) if isinstance(value, list) else value for value in query.bind(values)]
