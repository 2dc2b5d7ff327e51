"""Items in PostgreSQL. A namespace is found by equality with its beginnings; filters apply to decoded values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from lukasa.model.errors import Damaged
from lukasa.model.item import Item, ItemAddress, ItemFilter, beginnings, item_id, namespace_of, path_text
from lukasa.model.text import content_hash
from lukasa.model.timestamps import micros, micros_or_none, moment, moment_or_none
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage import seals
from lukasa.storage.backend import FieldVector, StoredItem
from lukasa.storage.entry_codec import vector_checksum
from lukasa.storage.operations import ItemIndex
from lukasa.storage.port import FoundItem, ItemQuery, UnembeddedItem
from lukasa.storage.postgres import sql
from lukasa.storage.postgres.entries import EntryTable
from lukasa.storage.postgres.execute import Handle, PgVector, Row
from lukasa.storage.postgres.search import bound_vector, cosine

_PAGE = 200


class ItemTable(EntryTable):
    """The part of `lukasa.storage.backend.Rows` that is about items, over one transaction."""

    def stored_item(self, place: ItemAddress) -> StoredItem | None:
        row = self.db.one(sql.STORED_ITEM, path_text(place.namespace), place.key)
        if row is None:
            return None
        *columns, texts, indexer = row
        text, salt, digest = row[3], row[8], row[9]
        if not seals.intact(text, digest):
            return StoredItem(_item(tuple(columns), {}), "", salt, _index(texts, indexer), damaged=True)
        return StoredItem(_item(tuple(columns), json.loads(text)), text.decode(), salt, _index(texts, indexer))

    def save_item(self, stored: StoredItem) -> None:
        item = stored.item
        times = (micros(item.created_at), micros(item.updated_at), micros_or_none(item.expires_at))
        ttl = None if item.ttl is None else float(item.ttl)
        sealed = (content_hash(stored.text), stored.salt, stored.text)
        texts = json.dumps(stored.index.texts, ensure_ascii=False, separators=(",", ":"))
        row = (self._space(item.place.namespace), item.place.key, *times, ttl, *sealed, texts, stored.index.by)
        ((rowid,),) = self.db.all(sql.SAVE_ITEM, *row)
        self.db.run(sql.DROP_ITEM_VECTORS, rowid)

    def _space(self, namespace: tuple[str, ...]) -> int:
        path = path_text(namespace)
        found = self.db.value(sql.SPACE_ID, path)
        if found is None:
            found = self.db.value(sql.NEW_SPACE, path)
            self.db.run(sql.NEW_PREFIXES, beginnings(namespace), found)
        return int(found)

    def _row_of(self, place: ItemAddress) -> tuple[int, int]:
        """The numbers of an item and of its namespace."""
        ((rowid, space),) = self.db.all(sql.ITEM_PLACE, path_text(place.namespace), place.key)
        return rowid, space

    def item_models(self, place: ItemAddress) -> set[EmbeddingModel]:
        rowid, _ = self._row_of(place)
        return {EmbeddingModel(*row) for row in self.db.all(sql.ITEM_MODELS, rowid)}

    def add_item_vectors(self, stored: StoredItem, vectors: Sequence[FieldVector]) -> None:
        where, value_hash = self._row_of(stored.item.place), content_hash(stored.text)
        for field, model, vector in vectors:
            about = (self.model(model), field, vector_checksum(value_hash, vector))
            self.db.run(sql.NEW_ITEM_VECTOR, *where, *about, PgVector(vector))

    def drop_item(self, place: ItemAddress) -> None:
        rowid, space = self._row_of(place)
        self.db.run(sql.DROP_ITEM, rowid)
        self.db.run(sql.DROP_SPACE, space)


def touch(db: Handle, places: Sequence[ItemAddress], at: datetime) -> None:
    for place in places:
        db.run(sql.TOUCH_ITEM, micros(at), path_text(place.namespace), place.key)


# Reads


def _index(texts: str, indexer: str) -> ItemIndex:
    return ItemIndex(tuple((field, text) for field, text in json.loads(texts)), indexer)


def _item(row: Row, value: dict[str, Any]) -> Item:
    _, path, key, _, created_at, updated_at, expires_at, ttl, salt, _ = row
    place = ItemAddress(namespace_of(path), key)
    times = (moment(created_at), moment(updated_at), moment_or_none(expires_at))
    return Item(place, value, *times, ttl, item_id(bytes(salt), place))


def find(db: Handle, query: ItemQuery, limit: int | None, offset: int) -> list[FoundItem]:
    """Order the rows by index alone, then decode values page by page until enough of them pass the filter."""
    admitted = _admitted(db, _order(db, query), query.filter)
    return list(islice(admitted, offset, None if limit is None else offset + limit))


def _order(db: Handle, query: ItemQuery) -> list[tuple[int, float | None]]:
    alive_at = micros_or_none(query.alive_at)
    newest = [rowid for (rowid,) in db.all(sql.ITEM_ROWS, path_text(query.prefix), alive_at, alive_at)]
    if query.near is None:
        return [(rowid, None) for rowid in newest]
    scores = _scores(db, path_text(query.prefix), *query.near)
    scored = sorted((rowid for rowid in newest if rowid in scores), key=lambda rowid: -scores[rowid])
    return [(rowid, scores[rowid]) for rowid in scored] + [(rowid, None) for rowid in newest if rowid not in scores]


def _scores(db: Handle, prefix: str, model: EmbeddingModel, vector: Vector) -> dict[int, float]:
    """The best cosine of each item that has a vector of the model."""
    number = db.value(sql.MODEL_ID, model.name, model.dimensions, model.digest)
    if number is None:
        return {}
    return {item: cosine(far) for item, far in db.all(sql.ITEM_SCORES, bound_vector(vector), prefix, number)}


def _admitted(db: Handle, order: Sequence[tuple[int, float | None]], condition: ItemFilter) -> Iterator[FoundItem]:
    for start in range(0, len(order), _PAGE):
        page = order[start : start + _PAGE]
        rows = {row[0]: row for row in db.all(sql.ITEMS_BY_ROW, [rowid for rowid, _ in page])}
        for rowid, score in page:
            if not seals.intact(rows[rowid][3], rows[rowid][9]):
                raise Damaged(f"item {rows[rowid][2]!r}")
            value = json.loads(rows[rowid][3])
            if condition.admits(value):  # before the rest is decoded: most of a large namespace may not pass
                yield FoundItem(_item(rows[rowid], value), score)


def unembedded(db: Handle, model: EmbeddingModel, indexer: str, limit: int) -> list[UnembeddedItem]:
    number = db.value(sql.MODEL_ID, model.name, model.dimensions, model.digest)
    out = []
    for path, key, value, digest, texts in db.all(sql.UNEMBEDDED_ITEMS, indexer, number, limit):
        if seals.intact(value, digest):
            out.append(UnembeddedItem(ItemAddress(namespace_of(path), key), json.loads(value), _index(texts, indexer)))
    return out


def namespaces(db: Handle, prefix: tuple[str, ...], alive_at: datetime | None) -> list[tuple[str, ...]]:
    at = micros_or_none(alive_at)
    return sorted(namespace_of(path) for (path,) in db.all(sql.SPACES, path_text(prefix), at, at))


def expired(db: Handle, at: datetime, limit: int) -> list[ItemAddress]:
    return [ItemAddress(namespace_of(path), key) for path, key in db.all(sql.EXPIRED, micros(at), limit)]
