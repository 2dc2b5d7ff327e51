"""The numbers that stand for scopes, partitions and models in rows, looked up once in a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from mnemon.adapters.store.sqlite import sql
from mnemon.adapters.store.sqlite.query import all_rows, one_value
from mnemon.adapters.store.sqlite.rows import anchor_text
from mnemon.model.entry import Entry, Scope
from mnemon.model.values import VISIBILITY, Visibility
from mnemon.ports.embedder import EmbeddingModel


def scope_id(db: apsw.Connection, scope: Scope) -> int:
    return _id(db, sql.SCOPE_ID, sql.NEW_SCOPE, (scope.tier, anchor_text(scope)))


def partition_id(db: apsw.Connection, scope: int, entry: Entry) -> int:
    key = (scope, str(VISIBILITY[entry.state]), entry.owner)
    return _id(db, sql.PARTITION_ID, sql.NEW_PARTITION, key)


def model_id(db: apsw.Connection, model: EmbeddingModel) -> int:
    return _id(db, sql.MODEL_ID, sql.NEW_MODEL, (model.name, model.dimensions, model.digest))


def _id(db: apsw.Connection, find: str, insert: str, key: Sequence[Any]) -> int:
    found = one_value(db, find, key)
    return int(found if found is not None else all_rows(db, insert, key)[0][0])


class Numbers:
    """Of one write transaction: what another one made may be undone. A batch mostly goes to one room."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._rooms: dict[Any, tuple[int, int]] = {}
        self._last: tuple[Scope, str, Visibility, tuple[int, int]] | None = None
        self._models: dict[EmbeddingModel, int] = {}

    def room(self, entry: Entry) -> tuple[int, int]:
        """Of an entry's scope and partition."""
        visibility, last = VISIBILITY[entry.state], self._last
        if last is not None and last[0] is entry.scope and last[1] == entry.owner and last[2] is visibility:
            return last[3]
        place = (entry.scope, entry.owner, visibility)
        found = self._rooms.get(place)
        if found is None:
            scope = scope_id(self._db, entry.scope)
            found = self._rooms[place] = (scope, partition_id(self._db, scope, entry))
        self._last = (*place, found)
        return found

    def model(self, model: EmbeddingModel) -> int:
        if model not in self._models:
            self._models[model] = model_id(self._db, model)
        return self._models[model]

    def clear(self) -> None:
        self._rooms.clear()
        self._last = None
        self._models.clear()
