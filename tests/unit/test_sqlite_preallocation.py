"""The log is grown ahead of commits that come often, and what is committed to it is found whatever becomes of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lukasa.model.ids import new_id
from lukasa.storage.sqlite import SqliteStore, connection, sql
from lukasa.storage.sqlite.execute import all_rows
from tests.helpers.stores import commit, entry, put

PAGE = 4_096 + 24


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    yield store
    store.close()


def log(tmp_path: Path) -> Path:
    return tmp_path / "store" / "memory.db-wal"


def sizes(store: SqliteStore, tmp_path: Path, count: int) -> list[int]:
    """Of the log, after each of so many commits."""
    found = []
    for n in range(count):
        commit(store, put(entry(f"the harbour has {new_id()} and {n} boats")))
        found.append(log(tmp_path).stat().st_size)
    return found


def test_the_log_grows_for_many_commits_at_once(store: SqliteStore, tmp_path: Path) -> None:
    """T01: one who commits often finds room; the first few commits make it as long as they need."""
    found = sizes(store, tmp_path, 60)
    assert len(set(found[:4])) == 4
    assert len(set(found[-40:])) < 8
    assert found[-1] % PAGE == 0


def test_what_is_committed_survives_with_zeros_behind_it(store: SqliteStore, tmp_path: Path) -> None:
    """T01: the files as a crash would leave them, with a log that is longer than what is in it."""
    sizes(store, tmp_path, 60)
    assert log(tmp_path).read_bytes().endswith(bytes(PAGE))
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name in ("memory.db", "memory.db-wal", "access.db"):
        shutil.copy(tmp_path / "store" / name, crashed / name)
    found = SqliteStore(crashed, role="workspace", create=False)
    assert sum(sum(census.states.values()) for census in found.census()) == 60
    assert found.check() == []
    found.close()


def test_two_who_write_in_turn_overwrite_nothing(store: SqliteStore, tmp_path: Path) -> None:
    """T03: each grows the log behind what the other has put there."""
    other = SqliteStore(tmp_path / "store", role="workspace", create=False)
    for _ in range(40):
        sizes(store, tmp_path, 1)
        sizes(other, tmp_path, 2)
    assert sum(sum(census.states.values()) for census in other.census()) == 120
    assert store.check() == []
    other.close()


def test_a_long_log_is_written_back(store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T29: it is then written over from its beginning, and stays as long as it was."""
    monkeypatch.setattr(connection, "LONG_LOG", 200)
    found = sizes(store, tmp_path, 120)
    assert max(found) < 2 * (200 + 256) * PAGE
    assert len(set(found[-60:])) <= 2


def test_a_log_that_was_cut_off_is_grown_again(store: SqliteStore, tmp_path: Path) -> None:
    sizes(store, tmp_path, 60)
    all_rows(store._connections._pair().memory, sql.CHECKPOINT)
    assert log(tmp_path).stat().st_size == 0
    assert len(set(sizes(store, tmp_path, 60)[-40:])) < 8


def test_a_full_disk_is_left_to_the_database(store: SqliteStore, tmp_path: Path) -> None:
    """T18: where the log cannot be grown, commits go on as they would."""
    sizes(store, tmp_path, 20)
    pair = store._connections._pair()
    pair.log._log = tmp_path / "nowhere" / "memory.db-wal"
    before = log(tmp_path).stat().st_size
    sizes(store, tmp_path, 40)
    assert log(tmp_path).stat().st_size > before
    assert store.check() == []
