"""Items in SQLite. A namespace is found by equality with its beginnings; filters apply to decoded values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import apsw

from lukasa.index.ann import column_products
from lukasa.index.vectors import Searched, VectorIndex
from lukasa.model.arrays import np
from lukasa.model.errors import Damaged
from lukasa.model.item import Item, ItemAddress, ItemFilter, beginnings, item_id, namespace_of, path_text
from lukasa.model.text import content_hash
from lukasa.model.timestamps import micros, micros_or_none, moment, moment_or_none
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage.backend import FieldVector, StoredItem
from lukasa.storage.entry_codec import vector_checksum
from lukasa.storage.operations import ItemIndex
from lukasa.storage.port import FoundItem, ItemQuery, UnembeddedItem
from lukasa.storage.seals import intact
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.entries import model_id
from lukasa.storage.sqlite.execute import Row, all_rows, json_list, one_row, one_value
from lukasa.storage.sqlite.search import ITEM_VECTORS, SqliteVectorRows

_PAGE = 200


# Writes


def stored(db: apsw.Connection, place: ItemAddress) -> StoredItem | None:
    row = one_row(db, sql.STORED_ITEM, (path_text(place.namespace), place.key))
    if row is None:
        return None
    *columns, texts, indexer = row
    text, salt, digest = row[3], row[8], row[9]
    if not intact(text, digest):
        return StoredItem(_item(tuple(columns), {}), "", salt, _index(texts, indexer), damaged=True)
    return StoredItem(_item(tuple(columns), json.loads(text)), text.decode(), salt, _index(texts, indexer))


def save(db: apsw.Connection, new: StoredItem) -> None:
    item = new.item
    times = (micros(item.created_at), micros(item.updated_at), micros_or_none(item.expires_at))
    ttl = None if item.ttl is None else float(item.ttl)
    space = _space_id(db, item.place.namespace)
    sealed = (content_hash(new.text), new.salt, new.text)
    row = (space, item.place.key, *times, ttl, *sealed, _texts(new.index), new.index.by)
    ((rowid,),) = all_rows(db, sql.SAVE_ITEM, row)
    _take_vectors(db, rowid, space)


def _texts(index: ItemIndex) -> str:
    return json.dumps(index.texts, ensure_ascii=False, separators=(",", ":"))


def _index(texts: str, indexer: str) -> ItemIndex:
    return ItemIndex(tuple((field, text) for field, text in json.loads(texts)), indexer)


def _space_id(db: apsw.Connection, namespace: tuple[str, ...]) -> int:
    path = path_text(namespace)
    found = one_value(db, sql.SPACE_ID, (path,))
    if found is not None:
        return int(found)
    ((space,),) = all_rows(db, sql.NEW_SPACE, (path,))
    db.execute(sql.NEW_PREFIXES, (json_list(beginnings(namespace)), space))
    return int(space)


def _take_vectors(db: apsw.Connection, rowid: int, space: int) -> None:
    if all_rows(db, sql.TAKE_ITEM_VECTORS, (rowid,)):
        db.execute(sql.ITEM_VECTORS_REMOVED, (space,))


def _row_of(db: apsw.Connection, place: ItemAddress) -> tuple[int, int]:
    """The numbers of an item and of its namespace."""
    ((rowid, space),) = all_rows(db, sql.ITEM_PLACE, (path_text(place.namespace), place.key))
    return rowid, space


def models(db: apsw.Connection, place: ItemAddress) -> set[EmbeddingModel]:
    rowid, _ = _row_of(db, place)
    return {EmbeddingModel(*row) for row in all_rows(db, sql.ITEM_MODELS, (rowid,))}


def add_vectors(db: apsw.Connection, item: StoredItem, vectors: Sequence[FieldVector]) -> None:
    where, value_hash = _row_of(db, item.item.place), content_hash(item.text)
    for field, model, blob in vectors:
        checksum = vector_checksum(value_hash, blob)
        db.execute(sql.NEW_ITEM_VECTOR, (*where, model_id(db, model), field, checksum, blob))


def drop(db: apsw.Connection, place: ItemAddress) -> None:
    rowid, space = _row_of(db, place)
    _take_vectors(db, rowid, space)
    db.execute(sql.DROP_ITEM, (rowid,))
    db.execute(sql.DROP_SPACE, {"space": space})


def touch(db: apsw.Connection, places: Sequence[ItemAddress], at: datetime) -> None:
    for place in places:
        db.execute(sql.TOUCH_ITEM, {"at": micros(at), "key": place.key, "path": path_text(place.namespace)})


# Reads


def _item(row: Row, value: dict[str, Any]) -> Item:
    _, path, key, _, created_at, updated_at, expires_at, ttl, salt, _ = row
    place = ItemAddress(namespace_of(path), key)
    times = (moment(created_at), moment(updated_at), moment_or_none(expires_at))
    return Item(place, value, *times, ttl, item_id(salt, place))


def find(db: apsw.Connection, index: VectorIndex, query: ItemQuery, limit: int | None, offset: int) -> list[FoundItem]:
    """Order the rows by index alone, then decode values page by page until enough of them pass the filter."""
    admitted = _admitted(db, _order(db, index, query), query.filter)
    return list(islice(admitted, offset, None if limit is None else offset + limit))


def _order(db: apsw.Connection, index: VectorIndex, query: ItemQuery) -> list[tuple[int, float | None]]:
    bindings = {"prefix": path_text(query.prefix), "alive_at": micros_or_none(query.alive_at)}
    newest = [rowid for (rowid,) in all_rows(db, sql.ITEM_ROWS, bindings)]
    if query.near is None:
        return [(rowid, None) for rowid in newest]
    scores = _scores(db, index, path_text(query.prefix), *query.near)
    scored = sorted((rowid for rowid in newest if rowid in scores), key=lambda rowid: -scores[rowid])
    return [(rowid, scores[rowid]) for rowid in scored] + [(rowid, None) for rowid in newest if rowid not in scores]


def _scores(
    db: apsw.Connection, index: VectorIndex, prefix: str, model: EmbeddingModel, vector: Vector
) -> dict[int, float]:
    """The best cosine of each item that has a vector of the model."""
    found = one_value(db, sql.MODEL_ID, (model.name, model.dimensions, model.digest))
    query = np.asarray(vector, dtype=np.float32)
    query = query / (np.linalg.norm(query) or 1.0)
    best: dict[int, float] = {}
    for space, removals in all_rows(db, sql.SPACES_BELOW, (prefix,)) if found is not None else ():
        where = Searched(space, int(found), model.dimensions, removals, 0)
        held = index.partition(SqliteVectorRows(db, ITEM_VECTORS), where).floats
        cosines = np.clip(column_products(query, held.columns), -1.0, 1.0)
        order = np.argsort(cosines)  # ascending, so that of several for an item the best is the last
        best.update(zip(held.entries[order].tolist(), cosines[order].tolist(), strict=True))
    return best


def _admitted(
    db: apsw.Connection, order: Sequence[tuple[int, float | None]], condition: ItemFilter
) -> Iterator[FoundItem]:
    for start in range(0, len(order), _PAGE):
        page = order[start : start + _PAGE]
        rows = {row[0]: row for row in all_rows(db, sql.ITEMS_BY_ROW, (json_list(rowid for rowid, _ in page),))}
        for rowid, score in page:
            if not intact(rows[rowid][3], rows[rowid][9]):
                raise Damaged(f"item {rows[rowid][2]!r}")
            value = json.loads(rows[rowid][3])
            if condition.admits(value):  # before the rest is decoded: most of a large namespace may not pass
                yield FoundItem(_item(rows[rowid], value), score)


def unembedded(db: apsw.Connection, model: EmbeddingModel, indexer: str, limit: int) -> list[UnembeddedItem]:
    found = one_value(db, sql.MODEL_ID, (model.name, model.dimensions, model.digest))
    out = []
    for path, key, value, digest, texts in all_rows(db, sql.UNEMBEDDED_ITEMS, (indexer, found, limit)):
        if intact(value, digest):
            out.append(UnembeddedItem(ItemAddress(namespace_of(path), key), json.loads(value), _index(texts, indexer)))
    return out


def namespaces(db: apsw.Connection, prefix: tuple[str, ...], alive_at: datetime | None) -> list[tuple[str, ...]]:
    bindings = {"prefix": path_text(prefix), "alive_at": micros_or_none(alive_at)}
    return sorted(namespace_of(path) for (path,) in all_rows(db, sql.SPACES, bindings))


def expired(db: apsw.Connection, at: datetime, limit: int) -> list[ItemAddress]:
    return [ItemAddress(namespace_of(path), key) for path, key in all_rows(db, sql.EXPIRED, (micros(at), limit))]
