"""Numbers of rooms and models: looked up once, and never remembered of what was undone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from lukasa.model.entry import Scope
from lukasa.model.errors import Conflict
from lukasa.model.scrub import Extent, Mode, manifest_digest
from lukasa.model.selection import Selection
from lukasa.ports import EmbeddingModel
from lukasa.storage.operations import DropEntry, Scrub
from lukasa.storage.sqlite import SqliteStore
from tests.helpers.stores import MODEL, OPEN, commit, entry, put, vector_of

HERE = Scope("workspace", (("workspace", "here"),))
THERE = Scope("workspace", (("workspace", "there"),))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    yield store
    store.close()


def found(store: SqliteStore, scope: Scope, model: EmbeddingModel = MODEL) -> list[str]:
    return [n.id for n in store.nearest(Selection((scope,)), model, vector_of("q"), 10)]


def test_a_room_that_was_undone_is_not_remembered(store: SqliteStore) -> None:
    """T07: its number goes to the next room that is made, and what comes later must not land there."""
    used = entry("said before")
    commit(store, put(used))
    with pytest.raises(Conflict):
        commit(store, put(entry("undone", scope=HERE), vector_of("undone")), DropEntry(used.id, 7, "x"))
    there, here = entry("there", scope=THERE), entry("here", scope=HERE)
    commit(store, put(there, vector_of("there")))
    commit(store, put(here, vector_of("here")))
    assert (found(store, HERE), found(store, THERE)) == ([here.id], [there.id])


def test_a_model_that_was_undone_is_not_remembered(store: SqliteStore) -> None:
    other = EmbeddingModel("another", MODEL.dimensions, "d2")
    used, first, second = entry("said before"), entry("first"), entry("second")
    commit(store, put(used))
    with pytest.raises(Conflict):
        commit(store, put(entry("undone"), vector_of("undone"), other), DropEntry(used.id, 7, "x"))
    commit(store, put(first, vector_of("first")))
    commit(store, put(second, vector_of("second"), other))
    (scope,) = OPEN.scopes
    assert (found(store, scope), found(store, scope, other)) == ([first.id], [second.id])


def test_a_room_outlives_all_that_was_in_it(store: SqliteStore) -> None:
    """Numbers are remembered because rows of rooms and models stay: when their last entry goes, is scrubbed away, and
    when everything derived is made anew. Each time somebody who knew them puts the next one."""
    (scope,) = OPEN.scopes
    extent = Extent("main", Mode.FULL, scope)

    def drop() -> None:
        commit(store, *(DropEntry(id, 1, "x") for id in found(store, scope)))

    def scrub() -> None:
        commit(store, Scrub(extent, manifest_digest(extent, store.holdings(extent))))

    for empty in (drop, scrub, drop, store.rebuild):
        commit(store, put(entry("before"), vector_of("before")))
        empty()
        after = entry("after")
        commit(store, put(after, vector_of("after")))
        assert after.id in found(store, scope)
        assert store.check() == []
        drop()


def test_numbers_are_looked_up_once(store: SqliteStore) -> None:
    commit(store, put(entry("first"), vector_of("first")))
    run: list[dict[str, Any]] = []
    db = store._connections._pair().memory
    db.trace_v2(apsw.SQLITE_TRACE_STMT, run.append)
    commit(store, put(entry("second"), vector_of("second")))
    db.trace_v2(0, None)
    assert run
    assert not [event["sql"] for event in run if "FROM scopes" in event["sql"] or "FROM models" in event["sql"]]
