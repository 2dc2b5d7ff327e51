"""What a connection remembers of the database: good for one state of it, and never for another room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from lukasa.model.entry import Scope
from lukasa.model.errors import NotFound
from lukasa.model.selection import Selection
from lukasa.model.values import State, Visibility
from lukasa.storage.operations import DropEntry, SaveNamed
from lukasa.storage.sqlite import SqliteStore
from lukasa.storage.sqlite.search import SqliteSearchRows
from lukasa.storage.sqlite.sqlite_store import cached_records
from tests.helpers.stores import MODEL, OPEN, WORK, change, commit, entry, move, named, put, stored, vector_of


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    yield store
    store.close()


def found(store: SqliteStore, selection: Selection = OPEN) -> tuple[set[str], set[str]]:
    words = {row.id for row in store.keyword(selection, ("lantern",), 9).rows}
    return words, {n.id for n in store.nearest(selection, MODEL, vector_of("lantern"), 9)}


def test_what_another_process_writes_is_seen_by_the_next_read(tmp_path: Path, store: SqliteStore) -> None:
    """T22: additions, changes, moves and drops through another handle, each after the answer was remembered."""
    other = SqliteStore(tmp_path / "store", role="workspace", create=False)
    a, b = entry("a lantern"), entry("another lantern")
    commit(store, put(a, vector_of("a")))
    assert found(store) == found(store) == ({a.id}, {a.id})
    commit(other, put(b, vector_of("b")))
    assert found(store) == ({a.id, b.id}, {a.id, b.id})
    assert store.entries([a.id])[a.id].importance == 0.5
    commit(other, change(stored(other, a), importance=0.9))
    assert store.entries([a.id])[a.id].importance == 0.9
    assert set(store.adjacent([a.id], 2)[a.id]) == {b.id}
    commit(other, DropEntry(b.id, 1, "gone"))
    assert found(store) == ({a.id}, {a.id})
    assert not store.entries([b.id])
    assert not store.adjacent([a.id], 2)
    commit(other, move(stored(other, a), State.HELD))
    assert found(store) == (set(), set())
    other.close()


def test_what_is_remembered_of_one_room_is_not_another_rooms(store: SqliteStore) -> None:
    """T22: the same question in another scope, for another owner, in another room, asked alternately."""
    elsewhere = Scope("workspace", (("workspace", "elsewhere"),))
    here, there = entry("a lantern"), entry("a lantern", scope=elsewhere)
    mine, held = entry("a lantern", owner="scout"), entry("a lantern, held", state=State.HELD)
    commit(store, *(put(e, vector_of(e.content)) for e in (here, there, mine, held)))
    rooms = {
        here.id: OPEN,
        there.id: Selection((elsewhere,), OPEN.visibilities, OPEN.owners),
        mine.id: Selection((WORK,), OPEN.visibilities, ("scout",)),
        held.id: Selection((WORK,), frozenset({Visibility.HELD}), OPEN.owners),
    }
    for _ in range(2):
        for id, selection in rooms.items():
            assert found(store, selection) == ({id}, {id})


def answers(db: apsw.Connection) -> dict[Any, Any]:
    rows = SqliteSearchRows(db)
    return rows.cache.snapshot("sort", rows)


def test_a_write_that_is_undone_leaves_nothing_behind(store: SqliteStore) -> None:
    """T22: nothing is remembered of a write transaction, whose changes may yet be undone."""
    a = entry("a lantern")
    commit(store, put(a, vector_of("a")))
    with store._connections.reading() as db:
        answers(db)["asked"] = 1
        assert answers(db) == {"asked": 1}
    with store._connections.writing() as db:
        assert answers(db) == {}
    with store._connections.reading() as db:
        assert answers(db) == {}


def test_what_stands_is_known_until_somebody_changes_it(tmp_path: Path, store: SqliteStore) -> None:
    """M8: pages are asked for by every put; a change is seen by the next, whoever made it."""
    other = SqliteStore(tmp_path / "store", role="workspace", create=False)

    def bodies() -> list[str]:
        return [page.body for page in store.named()]

    assert bodies() == []
    commit(store, SaveNamed(named(body="one"), 0))
    assert bodies() == bodies() == ["one"]
    commit(other, SaveNamed(named(body="two"), 1))
    assert bodies() == ["two"]
    commit(store, put(entry("a lantern")))
    assert bodies() == ["two"]
    store.named().clear()  # what is told is the caller's own
    assert bodies() == ["two"]
    other.close()


def test_what_stands_is_not_known_from_a_write_that_is_undone(store: SqliteStore) -> None:
    commit(store, SaveNamed(named(body="one"), 0))
    assert [page.body for page in store.named()] == ["one"]
    with pytest.raises(NotFound):
        commit(store, SaveNamed(named(body="two"), 1), SaveNamed(named("SOUL"), 7))
    assert [page.body for page in store.named()] == ["one"]


def test_what_is_much_is_not_kept(store: SqliteStore) -> None:
    """A million characters stay in memory, and no more; they are found all the same."""
    commit(store, SaveNamed(named(body="words " * 200_000), 0))
    assert [len(page.body) for page in store.named()] == [1_200_000]
    with store._connections.reading() as db:
        assert not cached_records(db)
    with store._connections.writing() as db:
        assert cached_records(db) == {}  # what it sees may yet be undone
