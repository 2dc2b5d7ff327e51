"""Texts in SQLite that are found by their words: rows with an index in FTS5, and passages with their vectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import apsw

from lukasa.index import texts
from lukasa.index.postings import Postings, token, tokens
from lukasa.index.vectors import Searched, VectorIndex
from lukasa.model.arrays import np
from lukasa.model.corpus import NO_PASSAGE_FILTERS, FoundPassage, PassageFilters
from lukasa.model.errors import Damaged
from lukasa.model.text import terms as words
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage import tables
from lukasa.storage.backend import PassageVector
from lukasa.storage.codec import TextTable
from lukasa.storage.entry_codec import vector_checksum
from lukasa.storage.port import UnembeddedPassage
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.entries import model_id
from lukasa.storage.sqlite.execute import all_rows, json_list, one_value, stream
from lukasa.storage.sqlite.search import PASSAGE_VECTORS, Handle, SqliteSearchRows, SqliteVectorRows, row_numbers

Value = TypeVar("Value")
_PARTITION = 0  # every index of texts has one
INDEX = cache(sql.text_index)


class TextRows:
    """Implements `index.texts.TextRows`."""

    def __init__(
        self, db: apsw.Connection, table: TextTable[Any], filters: PassageFilters = NO_PASSAGE_FILTERS
    ) -> None:
        self._db, self._table, self._index, self._filters = db, table, INDEX(table), filters

    def size(self) -> int:
        rows = SqliteSearchRows(self._db)
        known = rows.cache.snapshot("sizes of texts", rows)
        name = self._table.name
        if name not in known:
            known[name] = one_value(self._db, self._index.size)
        return int(known[name])

    def frequencies(self, terms: Sequence[str]) -> Iterable[tuple[str, int]]:
        asked = {token(_PARTITION, term): term for term in terms}
        found = all_rows(self._db, self._index.frequencies, (json_list(asked),))
        return [(asked[word], count) for word, count in found]

    def postings(self, terms: Sequence[str]) -> Iterable[tuple[str, Postings]]:
        asked = {token(_PARTITION, term): term for term in terms}
        found = all_rows(self._db, self._index.postings, (json_list(asked),))
        return [(asked[word], Postings(row_numbers(rows))) for word, rows in found]

    def lengths(self, rows: Sequence[int]) -> Mapping[int, int]:
        found: dict[int, int] = dict(all_rows(self._db, self._index.lengths, (json_list(rows),)))
        return {row: found.get(row, 0) for row in rows}

    def admitted(self, rows: Sequence[int]) -> Collection[int]:
        bound = _bound(self._filters) | {"rows": json_list(rows)}
        return [row for (row,) in all_rows(self._db, sql.PASSAGES_ADMITTED, bound)]


def _bound(filters: PassageFilters) -> dict[str, str | None]:
    asked = {name: getattr(filters, name) for name in ("collections", "tags", "documents")}
    return {name: json_list(values) if values else None for name, values in asked.items()}


def by_rows(db: apsw.Connection, table: TextTable[Value], rows: Sequence[int]) -> dict[int, Value]:
    """The values of these rows. Passages that are not what was written are left out; of a message, that is an error."""
    found = {}
    for row, *columns in all_rows(db, INDEX(table).by_row, (json_list(rows),)):
        try:
            found[row] = table.decode(tuple(columns))
        except Damaged:
            if table is not tables.PASSAGES:
                raise
    return found


def find(
    db: apsw.Connection,
    table: TextTable[Value],
    asked: Sequence[str],
    limit: int,
    filters: PassageFilters = NO_PASSAGE_FILTERS,
) -> list[tuple[Value, float]]:
    """The values with any of these terms and their scores, best first."""
    best = texts.search(TextRows(db, table, filters), asked, limit, filtered=bool(filters))
    values = by_rows(db, table, [row for row, _ in best])
    return [(values[row], score) for row, score in best if row in values]


def add(db: apsw.Connection, table: TextTable[Value], insert: str, values: Sequence[Value]) -> None:
    feed = INDEX(table).feed
    for value in values:
        db.execute(insert, table.encode(value))
        db.execute(feed, (db.last_insert_rowid(), tokens(_PARTITION, words(table.text(value)))))


def drop(db: apsw.Connection, table: TextTable[Any], rows: Sequence[int]) -> None:
    """Remove the index rows and the vectors of these rows, and then the rows."""
    if not rows:
        return
    db.executemany(INDEX(table).unfeed, [(row,) for row in rows])
    asked = (json_list(rows),)
    if table is tables.PASSAGES and all_rows(db, sql.TAKE_PASSAGE_VECTORS, asked):
        db.execute(sql.PASSAGE_VECTORS_REMOVED)
    db.execute(INDEX(table).drop, asked)


def rebuild(db: apsw.Connection, table: TextTable[Any]) -> None:
    """Make the keyword index of a table again."""
    index = INDEX(table)
    db.execute(index.empty)
    for row, *columns in stream(db, index.all):
        try:
            text = table.text(table.decode(tuple(columns)))
        except Damaged:  # a check says so; its words are nobody's
            text = ""
        db.execute(index.feed, (row, tokens(_PARTITION, words(text))))


# Vectors of passages


def set_vectors(db: apsw.Connection, vectors: Sequence[PassageVector]) -> None:
    for passage, model, blob in vectors:
        ((row, text_hash),) = all_rows(db, sql.PASSAGE_PLACE, passage)
        number = model_id(db, model)
        if all_rows(db, sql.TAKE_PASSAGE_VECTOR, (row, number)):
            db.execute(sql.PASSAGE_VECTORS_REMOVED)
        db.execute(sql.NEW_PASSAGE_VECTOR, (row, number, vector_checksum(text_hash, blob), blob))


def nearest(
    db: Handle, index: VectorIndex, model: EmbeddingModel, vector: Vector, limit: int, filters: PassageFilters
) -> list[FoundPassage]:
    """The passages with the best cosines among vectors of exactly this model."""
    rows = SqliteSearchRows(db)
    number = rows.model_number(model)
    if number is None or limit < 1:
        return []
    known = rows.cache.snapshot("sizes of texts", rows)
    if number not in known:
        known[number] = one_value(db, sql.PASSAGE_VECTOR_COUNT, (number,)), one_value(db, sql.PASSAGE_REMOVALS)
    size, removals = known[number]
    query = np.asarray(vector, dtype=np.float32)
    query = query / (np.linalg.norm(query) or 1.0)
    admitted = None
    if filters:
        admitted = np.array([row for (row,) in all_rows(db, sql.ADMITTED_PASSAGES, _bound(filters))], dtype=np.int64)
    where = Searched(_PARTITION, number, model.dimensions, removals, size)
    found = index.nearest(SqliteVectorRows(db, PASSAGE_VECTORS), where, query, limit, admitted)
    values = by_rows(db, tables.PASSAGES, [row for _, row in found])
    return [FoundPassage(values[row], cosine) for cosine, row in found if row in values]


def unembedded(db: Handle, model: EmbeddingModel, limit: int) -> list[UnembeddedPassage]:
    number = SqliteSearchRows(db).model_number(model)
    rows = [row for (row,) in all_rows(db, sql.UNEMBEDDED_PASSAGES, (number, limit))]
    found = [one for _, one in sorted(by_rows(db, tables.PASSAGES, rows).items())]
    return [UnembeddedPassage(one.document, one.version, one.number, one.indexed) for one in found]
