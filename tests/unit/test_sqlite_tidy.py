"""The index of words is put in order as it grows: each word is then looked for in few places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lukasa.storage.sqlite import SqliteStore, entries
from lukasa.storage.sqlite.execute import all_rows
from tests.helpers.stores import OPEN, commit, entry, put


@pytest.fixture(autouse=True)
def _fed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each transaction makes a segment."""
    monkeypatch.setattr(entries, "INDEX_STEP", 1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    yield store
    store.close()


def segments(store: SqliteStore) -> int:
    with store._connections.reading() as db:
        ((count,),) = all_rows(db, "SELECT count(DISTINCT segid) FROM fts_idx")
    return int(count)


def grow(store: SqliteStore, first: int, count: int) -> None:
    commit(store, *(put(entry(f"harbour {n}")) for n in range(first, first + count)))


def test_marks_are_a_quarter_apart() -> None:
    """R1: what it costs is shared by ever more entries: from a thousand to a million it is done some thirty times."""
    passed = [count for count in range(1, 5000) if entries.outgrown(count - 1, count)]
    assert passed == [1000, 1250, 1563, 1954, 2442, 3052, 3815, 4769]
    assert entries.outgrown(900, 1100)
    assert entries.outgrown(0, 1_000_000)
    assert not entries.outgrown(1_000, 1_200)


def test_an_index_is_in_one_piece_after_a_mark(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1: many small transactions leave many segments; the one that passes a mark leaves one, and the same is found."""
    monkeypatch.setattr(entries, "_FIRST_MARK", 40)
    for n in range(0, 36, 2):
        grow(store, n, 2)
    before = segments(store)
    grow(store, 36, 5)
    assert segments(store) == 1 < before
    found = store.keyword(OPEN, ("harbour",), 99)
    assert (found.frequencies, len(found.ids)) == ((41,), 41)
    assert store.check() == []


def scattered(folder: Path, count: int) -> SqliteStore:
    """With entries that came in many small transactions."""
    store = SqliteStore(folder, role="workspace", create=not folder.exists())
    for n in range(0, count, 2):
        grow(store, n, 2)
    return store


def left_behind(folder: Path) -> int:
    store = SqliteStore(folder, role="workspace", create=False)
    found = segments(store)
    store.close()
    return found


def test_who_added_much_leaves_an_index_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1: a process that asks next looks for each word in one place; who adds little does not wait for that."""
    monkeypatch.setattr(entries, "MANY", 30)
    scattered(tmp_path / "much", 40).close()
    assert left_behind(tmp_path / "much") == 1
    scattered(tmp_path / "little", 20).close()
    assert left_behind(tmp_path / "little") > 1
    assert SqliteStore(tmp_path / "much", role="workspace", create=False).check() == []


def test_much_is_a_share_of_all(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1: behind a few among very many, nothing is put in order."""
    for n in range(0, 20, 2):
        grow(store, n, 2)
    monkeypatch.setattr(entries, "MANY", 1)
    monkeypatch.setattr(entries, "_SHARE", 0.5)
    before = segments(store)
    with store._connections.writing() as db:
        entries.tidy(db, 9)
    assert segments(store) == before > 1
    with store._connections.writing() as db:
        entries.tidy(db, 10)
    assert segments(store) == 1


def test_nobody_waits_for_an_index_to_be_put_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1: while somebody else writes, it is left as it is, and closing goes on."""
    monkeypatch.setattr(entries, "MANY", 30)
    store, other = scattered(tmp_path / "store", 40), SqliteStore(tmp_path / "store", role="workspace", create=False)
    with other._connections.writing():
        store.close()
    other.close()
    assert left_behind(tmp_path / "store") > 1
