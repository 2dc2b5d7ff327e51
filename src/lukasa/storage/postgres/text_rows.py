"""Texts in PostgreSQL that are found by their words: rows with their postings, and passages with their vectors."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from sys import byteorder
from typing import Any, TypeVar

from lukasa.index import texts
from lukasa.index.postings import Postings
from lukasa.model.corpus import NO_PASSAGE_FILTERS, FoundPassage, PassageFilters
from lukasa.model.errors import Damaged
from lukasa.model.text import terms as words
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage import tables
from lukasa.storage.backend import PassageVector
from lukasa.storage.codec import TextTable
from lukasa.storage.entry_codec import vector_checksum
from lukasa.storage.port import UnembeddedPassage
from lukasa.storage.postgres import sql
from lukasa.storage.postgres.execute import Handle, PgVector
from lukasa.storage.postgres.item_rows import ItemTable
from lukasa.storage.postgres.search import PostgresSearchRows, bound_vector, cosine

Value = TypeVar("Value")
INDEX = cache(sql.text_index)
_PAGE = 500  # rows whose words are added or removed together


class TextRows:
    """Implements `index.texts.TextRows`."""

    def __init__(self, db: Handle, table: TextTable[Any], filters: PassageFilters = NO_PASSAGE_FILTERS) -> None:
        self._db, self._table, self._index, self._filters = db, table, INDEX(table), filters

    def size(self) -> int:
        known = self._db.cache.snapshot("sizes of texts", PostgresSearchRows(self._db))
        name = self._table.name
        if name not in known:
            known[name] = self._db.value(self._index.size)
        return int(known[name])

    def frequencies(self, terms: Sequence[str]) -> Iterable[tuple[str, int]]:
        return self._db.all(self._index.frequencies, list(terms))

    def postings(self, terms: Sequence[str]) -> Iterable[tuple[str, Postings]]:
        found: dict[str, bytes] = dict(self._db.all(self._index.postings, list(terms)))
        return [(term, Postings(_numbers(found.get(term, b"")))) for term in terms]

    def lengths(self, rows: Sequence[int]) -> Mapping[int, int]:
        found: dict[int, int] = dict(self._db.all(self._index.lengths, list(rows)))
        return {row: found.get(row, 0) for row in rows}

    def admitted(self, rows: Sequence[int]) -> Collection[int]:
        found = self._db.all(sql.PASSAGES_ADMITTED, *_bound(self._filters), list(rows))
        return [row for (row,) in found]


def _numbers(data: bytes) -> array[int]:
    numbers = array("q", bytes(data))
    if byteorder == "little":
        numbers.byteswap()
    return numbers


def _bound(filters: PassageFilters) -> tuple[list[str] | None, list[str] | None, str | None]:
    tags = json.dumps(filters.tags) if filters.tags else None
    return list(filters.collections) or None, list(filters.documents) or None, tags


def by_rows(db: Handle, table: TextTable[Value], rows: Sequence[int]) -> dict[int, Value]:
    """The values of these rows. Passages that are not what was written are left out; of a message, that is an error."""
    found = {}
    for row, *columns in db.all(INDEX(table).by_row, list(rows)):
        try:
            found[row] = table.decode(tuple(columns))
        except Damaged:
            if table is not tables.PASSAGES:
                raise
    return found


def find(
    db: Handle,
    table: TextTable[Value],
    asked: Sequence[str],
    limit: int,
    filters: PassageFilters = NO_PASSAGE_FILTERS,
) -> list[tuple[Value, float]]:
    """The values with any of these terms and their scores, best first."""
    best = texts.search(TextRows(db, table, filters), asked, limit, filtered=bool(filters))
    values = by_rows(db, table, [row for row, _ in best])
    return [(values[row], score) for row, score in best if row in values]


def nearest(
    db: Handle, model: EmbeddingModel, vector: Vector, limit: int, filters: PassageFilters
) -> list[FoundPassage]:
    """The passages with the best cosines among vectors of exactly this model: every one of them is compared."""
    number = PostgresSearchRows(db).model_number(model)
    if number is None or limit < 1:
        return []
    asked = (bound_vector(vector), number)
    if filters:
        found = db.all(sql.NEAREST_OF_PASSAGES, *asked, db.store, *_bound(filters), limit)
    else:
        found = db.all(sql.NEAREST_PASSAGES, *asked, limit)
    values = by_rows(db, tables.PASSAGES, [row for row, _ in found])
    return [FoundPassage(values[row], cosine(far)) for row, far in found if row in values]


def unembedded(db: Handle, model: EmbeddingModel, limit: int) -> list[UnembeddedPassage]:
    rows = [row for (row,) in db.all(sql.UNEMBEDDED_PASSAGES, PostgresSearchRows(db).model_number(model), limit)]
    found = [one for _, one in sorted(by_rows(db, tables.PASSAGES, rows).items())]
    return [UnembeddedPassage(one.document, one.version, one.number, one.indexed) for one in found]


def _counted(rows: Sequence[int], spoken: Iterable[str]) -> tuple[list[int], list[str], list[int]]:
    """The words of texts as columns: row, word, and how often it is in there."""
    held = [
        (row, *pair) for row, text in zip(rows, spoken, strict=True) for pair in sorted(Counter(words(text)).items())
    ]
    return [row for row, _, _ in held], [word for _, word, _ in held], [times for _, _, times in held]


def _words(table: TextTable[Any], columns: Sequence[Any]) -> set[str]:
    """The words of a row; none if it is not what was written: a check finds what is left of them in the index."""
    try:
        return set(words(table.text(table.decode(tuple(columns)))))
    except Damaged:
        return set()


class TextRowsTable(ItemTable):
    """The part of `lukasa.storage.backend.Rows` that is about texts, over one transaction."""

    def add_texts(self, table: TextTable[Value], values: Sequence[Value]) -> None:
        for start in range(0, len(values), _PAGE):
            page = values[start : start + _PAGE]
            rows = [row for (row,) in self.db.all(sql.NEW_NUMBERS, len(page))]
            self.db.run_many(
                INDEX(table).insert, [(*table.encode(one), row) for one, row in zip(page, rows, strict=True)]
            )
            self.db.run(INDEX(table).feed, *_counted(rows, map(table.text, page)))

    def take_texts(self, table: TextTable[Value], rows: Sequence[int]) -> None:
        """Remove rows with their postings; vectors go with their rows."""
        for start in range(0, len(rows), _PAGE):
            page = list(rows[start : start + _PAGE])
            held = [(row, *_words(table, columns)) for row, *columns in self.db.all(INDEX(table).by_row, page)]
            numbers = [row for row, *found in held for _ in found]
            self.db.run(INDEX(table).unfeed, numbers, [word for _, *found in held for word in found])
            self.db.run(INDEX(table).drop, page)

    def rebuild_texts(self, table: TextTable[Any]) -> None:
        """Make the keyword index of a table again."""
        index = INDEX(table)
        self.db.run(index.empty)
        for row, *columns in self.db.stream(index.all):
            try:
                text = table.text(table.decode(tuple(columns)))
            except Damaged:  # a check says so; its words are nobody's
                continue
            self.db.run(index.feed, *_counted([row], [text]))

    def set_passage_vectors(self, vectors: Sequence[PassageVector]) -> None:
        for passage, model, blob in vectors:
            ((row, text_hash),) = self.db.all(sql.PASSAGE_PLACE, *passage)
            about = (row, self.model(model), vector_checksum(text_hash, blob))
            self.db.run(sql.SET_PASSAGE_VECTOR, *about, PgVector(blob))


def expected_words(db: Handle, table: TextTable[Any]) -> Iterable[tuple[int, str, int]]:
    """Row, word and count as the index should have them, in its order."""

    def of(row: int, columns: Sequence[Any]) -> Iterable[tuple[int, str, int]]:
        try:
            return zip(*_counted([row], [table.text(table.decode(tuple(columns)))]), strict=True)
        except Damaged:
            return ()

    return chain.from_iterable(of(row, columns) for row, *columns in db.stream(INDEX(table).all))
