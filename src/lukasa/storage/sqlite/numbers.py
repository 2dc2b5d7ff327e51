"""The row numbers of scopes, partitions and models, looked up once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from lukasa.model.entry import Entry, Scope
from lukasa.model.values import VISIBILITY, Visibility
from lukasa.ports import EmbeddingModel
from lukasa.storage.entry_codec import anchor_text
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.query import all_rows, one_value
from lukasa.storage.sqlite.search import Handle


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
    """The numbers that one write transaction uses. Those that it makes are cached once it is committed."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._committed: dict[Any, Any] = db.cache.fixed("numbers") if isinstance(db, Handle) else {}
        self._found: dict[Any, Any] = {}
        self._last: tuple[Scope, str, Visibility, tuple[int, int]] | None = None

    def partition(self, entry: Entry) -> tuple[int, int]:
        """The numbers of an entry's scope and partition. A batch mostly goes to one partition."""
        visibility, last = VISIBILITY[entry.state], self._last
        if last is not None and last[0] is entry.scope and last[1] == entry.owner and last[2] is visibility:
            return last[3]
        key = (entry.scope, entry.owner, visibility)
        found: tuple[int, int] | None = self._known(key)
        if found is None:
            scope = scope_id(self._db, entry.scope)
            found = self._found[key] = (scope, partition_id(self._db, scope, entry))
        self._last = (*key, found)
        return found

    def model(self, model: EmbeddingModel) -> int:
        found: int | None = self._known(model)
        if found is None:
            found = self._found[model] = model_id(self._db, model)
        return found

    def _known(self, key: object) -> Any:
        return self._committed.get(key) or self._found.get(key)

    def committed(self) -> None:
        """Keep the numbers: rows of partitions and models are never removed, and their numbers never reused."""
        self._committed.update(self._found)
