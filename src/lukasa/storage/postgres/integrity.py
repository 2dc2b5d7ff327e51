"""What of a check and a rebuild is PostgreSQL's own: blocks of postings, references, tenants' keys, vector indexes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from hashlib import blake2b
from itertools import zip_longest
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from lukasa.index.postings import tokens
from lukasa.model.arrays import np
from lukasa.model.entry import Entry
from lukasa.storage import integrity, tables
from lukasa.storage.codec import Query, TextTable
from lukasa.storage.entry_codec import scope_of
from lukasa.storage.integrity import Step, StoredVector, wrong
from lukasa.storage.port import Finding
from lukasa.storage.postgres import sql, text_rows
from lukasa.storage.postgres.entries import columns_of, tenant_keys
from lukasa.storage.postgres.execute import Handle, Row, vector_bytes
from lukasa.storage.postgres.postgres_rows import PostgresRows

Value = TypeVar("Value")
WINDOW = 1 << 22  # rows whose words are compared in one pass over all postings: eight bytes of memory for each
_FLUSHED = 2_000  # rows whose words are added to the postings together
_DERIVED_TABLES = ("vectors", "item_vectors", "item_prefixes", "passages", "passage_vectors")


def check(db: Handle, secret: bytes) -> list[Finding]:
    engine = PostgresEngine(PostgresRows(db, {}), secret)
    own = (
        Step("references", engine.reference_faults),
        Step("columns", engine.column_faults),
        Step("index", engine.index_faults, True),
        Step("vector_indexes", engine.vector_index_faults, True),
        *(Step(f"{t.row}_index", partial(engine.text_index_faults, t), True) for t in tables.text_tables()),
    )
    return integrity.check(engine, (*integrity.steps(engine), *own))


def rebuild(rows: PostgresRows, secret: bytes) -> None:
    """Inside a write transaction: all that can be computed from the rows is, and texts that have a sound copy."""
    integrity.rebuild(PostgresEngine(rows, secret))


class PostgresEngine:
    """Implements `lukasa.storage.integrity.Engine`."""

    sql: integrity.Statements = sql
    name = "database"
    # Not the errors of a server that is away or busy: they say nothing about what it keeps.
    errors: tuple[type[Exception], ...] = (
        *(psycopg.DataError, psycopg.IntegrityError, psycopg.InternalError, psycopg.ProgrammingError),
        *(errors.IoError, errors.UndefinedFile),
    )

    def __init__(self, rows: PostgresRows, secret: bytes) -> None:
        self.db, self.rows, self.secret = rows.db, rows, secret
        self._words: dict[str, list[int]] = {}  # of rows that are not in the postings yet
        self._waiting = self._last = 0

    def all(self, statement: str, *values: Any) -> list[Row]:
        return self.db.all(statement, *values)

    def stream(self, statement: str, *values: Any) -> Iterator[Row]:
        return self.db.stream(statement, *values)

    settled = stream  # a cursor shows what there was when it was opened

    def run(self, statement: str, *values: Any) -> None:
        self.db.run(statement, *values)

    def walk(self, query: Query[Value], *values: Any) -> Iterator[Value]:
        return self.rows.walk(query, *values)

    def apart(self) -> AbstractContextManager[object]:
        return self.db.session.cursor.connection.transaction()

    def is_derived(self, error: Exception) -> bool:
        return False

    def vectors(self) -> Iterator[StoredVector]:
        for entry, id, vector, *about, model in self.stream(sql.ALL_VECTORS):
            yield StoredVector((entry, model), id, vector_bytes(vector), *about)

    def item_vectors(self) -> Iterator[StoredVector]:
        for place, key, vector, *about in self.stream(sql.ALL_ITEM_VECTORS):
            yield StoredVector((place,), key, vector_bytes(vector), *about)

    def passage_vectors(self) -> Iterator[StoredVector]:
        for place, id, vector, *about in self.stream(sql.ALL_PASSAGE_VECTORS):
            yield StoredVector((place,), id, vector_bytes(vector), *about)

    def columns(self, entry: Entry) -> dict[str, Any]:
        return columns_of(entry) | {"scope_id": self.rows.partition(entry)[0]}

    # Checking

    def reference_faults(self) -> Iterator[Finding]:
        """Foreign keys hold as long as nobody switches them off."""
        for table, parent, statement in self.all(sql.REFERENCES):
            if count := self.db.value(statement):
                found = f"{count} rows point at nothing in {parent}"
                yield wrong("reference", table, found, derived=table in _DERIVED_TABLES)

    def column_faults(self) -> Iterator[Finding]:
        """What row-level security and filters compare follows from the scope and from the entry."""
        for id, tier, anchor, keys in self.stream(sql.SCOPE_KEYS):
            if keys != json.loads(tenant_keys(scope_of(tier, anchor))):
                yield wrong("partition", f"scope {id}", "is bound to the keys of another scope", derived=True)
        for what, subject, derived in self.stream(sql.KEYS_ASTRAY):
            yield wrong(what, subject, "is bound to the keys of another scope", derived=derived)
        for (id,) in self.stream(sql.COLUMNS_ASTRAY):
            yield wrong("index", id, "trust or merges do not follow from the entry", derived=True)

    def index_faults(self) -> Iterator[Finding]:
        """Every word of every row, no more and no less; then the counts of blocks, which ranking rests on.

        Rows have their words by row, and postings by word. So each row gets a sum of numbers, one for each of its
        words, that nobody can foresee; the postings take theirs off again, and what is not zero then does not match.
        """
        head = self.db.head
        last = self.db.value(sql.LAST_ROW) or 0
        if max(last, head.fed) > head.entries:
            yield wrong("index", "head", "it counts fewer rows than there are", derived=True)
        key = os.urandom(16)
        for start in range(0, max(last, head.entries) + 1, WINDOW):
            sums = np.zeros(WINDOW if last >= start + WINDOW else max(last, head.entries) - start + 1, np.uint64)
            for row, partition, words in self.stream(sql.WORDS_OF_ROWS, start, start + len(sums) - 1):
                if row <= head.fed:
                    marks = [_mark(word, key) for word in tokens(partition, words.split()).split()]
                    sums[row - start] = sum(marks) & 0xFFFF_FFFF_FFFF_FFFF
            for word, first, final, holders, data in self.stream(sql.ALL_POSTINGS):
                held = np.frombuffer(data, "<i4").astype(np.int64)
                if start == 0:
                    yield from _block_faults(word, first, final, holders, held, max(last, head.entries))
                inside = held[(held >= start) & (held < start + len(sums))] - start
                np.subtract.at(sums, inside, np.uint64(_mark(word, key)))
            yield from self._unmatched([start + int(row) for row in np.flatnonzero(sums)])

    def _unmatched(self, rows: list[int]) -> Iterator[Finding]:
        for batch in integrity.batches(rows):
            ids: dict[int, str] = dict(self.all(sql.IDS_OF_ROWS, batch))
            for row in batch:
                if row in ids:
                    yield wrong("index", ids[row], "the keyword index does not match the row", derived=True)
                else:
                    yield wrong("index", row, "the keyword index holds a row that is gone", derived=True)

    def vector_index_faults(self) -> Iterator[Finding]:
        for partition, model, _ in self.all(sql.LOST_VECTOR_INDEXES):
            found = f"its vector index for model {model} is missing or not valid"
            yield wrong("index", f"partition {partition}", found, derived=True)

    def text_index_faults(self, table: TextTable[Any]) -> Iterator[Finding]:
        found = self.stream(text_rows.INDEX(table).indexed)
        if any(one != other for one, other in zip_longest(text_rows.expected_words(self.db, table), found)):
            yield wrong("index", table.name, f"the index of {table.name} does not match them", derived=True)

    # Rebuilding

    def partition(self, entry: Entry) -> int:
        return self.rows.partition(entry)[1]

    def empty_index(self) -> None:
        self.run(sql.EMPTY_POSTINGS)

    def index(self, row: int, partition: int, terms: list[str]) -> None:
        for word in tokens(partition, terms).split():
            self._words.setdefault(word, []).append(row)
        self._waiting, self._last = self._waiting + 1, row
        if self._waiting >= _FLUSHED:
            self._flush()

    def _flush(self) -> None:
        self.rows.add_postings(self._words)
        self._words, self._waiting = {}, 0

    def finish_index(self) -> None:
        self._flush()
        self.rows.last = self.rows.fed = max(self.rows.last, self._last)

    def rebuild_own(self) -> None:
        for partition, model, _ in self.all(sql.LOST_VECTOR_INDEXES):
            self.run(sql.DROP_VECTOR_INDEX, partition, model)
        for id, tier, anchor, keys in self.settled(sql.SCOPE_KEYS):
            expected = tenant_keys(scope_of(tier, anchor))
            if keys != json.loads(expected):
                self.run(sql.BIND_SCOPE, id, expected)
        for statement in (*sql.BIND_AGAIN, sql.SET_COLUMNS):
            self.run(statement)

    def rebuild_texts(self, table: TextTable[Any]) -> None:
        self.rows.rebuild_texts(table)


def _mark(word: str, key: bytes) -> int:
    return int.from_bytes(blake2b(word.encode(), key=key, digest_size=8).digest(), "little")


def _block_faults(word: str, first: int, last: int, holders: int, held: Any, most: int) -> Iterator[Finding]:
    if not len(held) or len(np.unique(held)) != holders or held.min() < first or held.max() > last:
        yield wrong("index", word, "a block of the keyword index has wrong counts", derived=True)
    if len(held) and (held.min() < 0 or held.max() > most):
        yield wrong("index", word, "the keyword index holds rows that are gone", derived=True)
