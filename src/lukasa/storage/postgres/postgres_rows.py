"""`Rows` for PostgreSQL: plain tables by the statements that their declarations make, and the log of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

from lukasa.model.scrub import holds_words
from lukasa.model.telemetry import MOST_DEBUG
from lukasa.storage import tables
from lukasa.storage.codec import NOTHING, Dialect, Query, Skipped, Table, TextTable
from lukasa.storage.postgres import sql
from lukasa.storage.postgres.text_rows import TextRowsTable
from lukasa.storage.tables import SealedEvent

Value = TypeVar("Value")
DIALECT = Dialect(
    mark="%s",
    among="{column} = ANY({mark})",
    holds="strpos({column}, {mark}) > 0",
    no_limit=None,
    tenant="store",
    clocked=False,
)
SELECT, COUNT, COUNT_BY = cache(DIALECT.select), cache(DIALECT.count), cache(DIALECT.count_by)
INSERT, SAVE, DELETE = cache(DIALECT.insert), cache(DIALECT.save), cache(DIALECT.delete)
NUMBERS = cache(DIALECT.numbers)
# A job may be claimed without the lock of the store: who changes one holds its row from the moment of reading it.
_HELD_ROWS = tables.JOBS.one


class PostgresRows(TextRowsTable):
    """Implements `lukasa.storage.backend.Rows` over an open transaction."""

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
        skipped, bound = _bound(query, values)
        if query.paged and after is not None:
            bound.append(after)
        statement = SELECT(query, skipped, behind=after is not None)
        if hold:
            statement += " FOR UPDATE SKIP LOCKED"
        elif query is _HELD_ROWS and self.db.writes:
            statement += " FOR UPDATE"
        found = self.db.all(statement, *bound, limit)
        return [query.given.decode(row) for row in found if only is None or only(row)]

    def walk(self, query: Query[Value], *values: Any) -> Iterator[Value]:
        """The values of a query, row by row."""
        skipped, bound = _bound(query, values)
        return map(query.given.decode, self.db.stream(SELECT(query, skipped, behind=False), *bound, None))

    def count(self, query: Query[Any], *values: Any) -> int:
        skipped, bound = _bound(query, values)
        return int(self.db.value(COUNT(query, skipped), *bound))

    def count_by(self, query: Query[Any], column: str, *values: Any) -> dict[Any, int]:
        skipped, bound = _bound(query, values)
        return dict(self.db.all(COUNT_BY(query, column, skipped), *bound))

    def insert(self, table: Table[Value], values: Sequence[Value]) -> None:
        self.db.run_many(INSERT(table), [table.encode(value) for value in values])

    def save(self, table: Table[Value], value: Value) -> None:
        self.db.run(SAVE(table), *table.encode(value))

    def delete(self, query: Query[Any], *values: Any) -> int:
        skipped, bound = _bound(query, values)
        return self.db.run(DELETE(query, skipped), *bound)

    # The event log

    def head(self) -> tuple[int, str]:
        return self.headed or (self.db.head.seq, self.db.head.digest)

    def append_events(self, events: Sequence[SealedEvent]) -> None:
        self.db.run_many(INSERT(tables.EVENTS), events)
        self.headed = events[-1].seq, events[-1].digest

    def redact_events(self, ranges: Sequence[tuple[int, int]], scrub: int) -> None:
        for first, last in ranges:
            self.db.run(sql.NEW_REDACTION, first, last, scrub)
            self.db.run(sql.REDACT, first, last)

    def write_head(self) -> None:
        """Note in the head how far this transaction has brought the log and the numbers."""
        self.db.run(sql.SET_HEAD, *self.head(), self.last, self.fed)
        if self.headed is not None:
            self.db.session.witness = (self.db.store, *self.headed)

    # Texts

    def drop_texts(self, query: Query[Any], *values: Any) -> int:
        assert isinstance(query.table, TextTable)
        skipped, bound = _bound(query, values)
        rows = [row for (row,) in self.db.all(NUMBERS(query, skipped), *bound)]
        self.take_texts(query.table, rows)
        return len(rows)

    # Telemetry

    def count_wordy_telemetry(self) -> int:
        return len(self._wordy())

    def empty_wordy_telemetry(self) -> None:
        self.db.run(sql.EMPTY_POINTS, self._wordy())

    def _wordy(self) -> list[int]:
        found = self.db.all(sql.MAYBE_WORDY)
        return [place for place, metadata in found if holds_words(json.loads(metadata))]

    def prune_debug(self) -> None:
        """Keep the newest telemetry events of level debug: reads report many."""
        self.db.run(sql.PRUNE_POINTS, MOST_DEBUG)


def _bound(query: Query[Any], values: Sequence[Any]) -> tuple[Skipped, list[Any]]:
    """The values of a query, without those of optional conditions that are not asked, and the places of these."""
    bound, skipped = query.bind(values), NOTHING
    if None in bound:
        skipped = frozenset(n for n, c in enumerate(query.where) if c.optional and bound[n] is None)
        bound = [value for n, value in enumerate(bound) if n not in skipped]
    return skipped, bound
