"""The index of words is put in order as it grows: each word is then looked for in few places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mnemon.adapters.store.sqlite import SqliteStore, adding
from mnemon.adapters.store.sqlite.query import all_rows
from tests.helpers.stores import OPEN, commit, entry, put


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
    passed = [count for count in range(1, 5000) if adding.outgrown(count - 1, count)]
    assert passed == [1000, 1250, 1563, 1954, 2442, 3052, 3815, 4769]
    assert adding.outgrown(900, 1100)
    assert adding.outgrown(0, 1_000_000)
    assert not adding.outgrown(1_000, 1_200)


def test_an_index_is_in_one_piece_after_a_mark(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1: many small transactions leave many segments; the one that passes a mark leaves one, and the same is found."""
    monkeypatch.setattr(adding, "_FIRST_MARK", 40)
    for n in range(0, 36, 2):
        grow(store, n, 2)
    before = segments(store)
    grow(store, 36, 5)
    assert segments(store) == 1 < before
    found = store.keyword(OPEN, ("harbour",), 99)
    assert (found.frequencies, len(found.ids)) == ((41,), 41)
    assert store.check() == []
