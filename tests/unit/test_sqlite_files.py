"""A store's files and connections: private, set up as promised, closed when done."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from lukasa.model.errors import Conflict, Refused, StoreError
from lukasa.storage.sqlite import SqliteStore, store_files
from lukasa.storage.sqlite.store_files import ACCESS, HEAD, MEMORY, OLDEST_LIBRARY, migrations
from tests.helpers.stores import NOW, OPEN, commit, entry, put, unit

PROMISED = {
    "journal_mode": "wal",
    "synchronous": 2,
    "foreign_keys": 1,
    "secure_delete": 1,
    "trusted_schema": 0,
    "cell_size_check": 1,
    "busy_timeout": 30000,
    "journal_size_limit": 16777216,
}
PROMISED_ACCESS = {"journal_mode": "wal", "synchronous": 1, "trusted_schema": 0, "busy_timeout": 30000}


@pytest.fixture
def opened() -> Iterator[list[apsw.Connection]]:
    """Every connection that is opened during the test."""
    seen: list[apsw.Connection] = []
    apsw.connection_hooks.append(seen.append)
    yield seen
    apsw.connection_hooks.remove(seen.append)


@pytest.mark.parametrize("mask", [0o000, 0o777])
def test_every_file_is_private(tmp_path: Path, mask: int) -> None:
    """T61: whatever the umask, the folder is 0700 and each file in it 0600, side files and all."""
    before = os.umask(mask)
    try:
        store = SqliteStore(tmp_path / "store", role="workspace", create=True)
        commit(store, put(entry(), unit(1, 0, 0, 0)))
        store.touch([store.find(OPEN)[0].id], NOW)
        modes = {f.name: stat.S_IMODE(f.stat().st_mode) for f in (tmp_path / "store").iterdir()}
        assert {MEMORY, f"{MEMORY}-wal", f"{MEMORY}-shm", ACCESS, f"{ACCESS}-wal", f"{ACCESS}-shm"} <= set(modes)
        assert set(modes.values()) == {0o600}
        assert stat.S_IMODE((tmp_path / "store").stat().st_mode) == 0o700
        store.close()
    finally:
        os.umask(before)


def test_settings_are_as_promised(tmp_path: Path, opened: list[apsw.Connection]) -> None:
    """T13: each pragma reads back what was set, on the connections of another thread too."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    thread = threading.Thread(target=store.head)
    opened.clear()
    thread.start()
    thread.join()
    with store._connections.reading() as memory, store._connections.counting() as access:
        for db, promised in ((memory, PROMISED), (access, PROMISED_ACCESS)):
            assert {name: db.execute(f"PRAGMA {name}").get for name in promised} == promised
    assert len(opened) == 2
    store.close()


def test_a_thread_takes_its_handles_with_it(tmp_path: Path) -> None:
    """T31: handles are by thread, and those of a thread that ended do not pile up."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        thread = threading.Thread(target=store.head)
        thread.start()
        thread.join()
    assert len(os.listdir("/proc/self/fd")) <= before + 6
    store.close()


def test_closing_leaves_one_whole_file(tmp_path: Path) -> None:
    """T12: after close the log is written back and gone, and calls are refused by name."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    commit(store, put(entry()))
    store.close()
    store.close()
    assert sorted(f.name for f in (tmp_path / "store").iterdir()) == [ACCESS, HEAD, MEMORY, "memory.lock", "reserve"]
    with pytest.raises(StoreError):
        store.find(OPEN)


def test_old_libraries_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """T12: a SQLite that can corrupt a log is not used."""
    assert OLDEST_LIBRARY == (3, 51, 3)
    monkeypatch.setattr(store_files, "OLDEST_LIBRARY", (99, 0, 0))
    with pytest.raises(StoreError, match="SQLite"):
        SqliteStore(tmp_path / "store", role="workspace", create=True)
    assert not (tmp_path / "store").exists()


def test_migrations_are_numbered_without_gaps() -> None:
    """T15: each migration sets the version it is numbered with."""
    assert [m.number for m in migrations()] == list(range(1, len(migrations()) + 1))
    for m in migrations():
        assert f"PRAGMA user_version = {m.number};" in m.text


def test_each_migration_leaves_its_own_number_so_that_a_store_opens_again(tmp_path: Path) -> None:
    """A store of this version, and of each earlier one, opens a second time: no migration runs twice."""
    for known in range(1, len(migrations()) + 1):
        for _ in range(2):
            SqliteStore(tmp_path / str(known), role="workspace", create=True, known=migrations()[:known]).close()


def test_counting_reads_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    """D1: while a transaction holds memory, retrievals are counted all the same."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True, busy_timeout=0.1)
    e = entry()
    commit(store, put(e))
    writer = apsw.Connection(str(tmp_path / "store" / MEMORY))
    writer.execute("BEGIN IMMEDIATE")
    assert store.touch([e.id], NOW)[e.id].count == 1
    writer.execute("ROLLBACK")
    writer.close()
    store.close()


def test_the_database_itself_refuses_what_the_code_would(tmp_path: Path) -> None:
    """X1, X2, W1: twins, linked rows and the log are guarded by constraints too, whoever writes."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    e = entry()
    commit(store, put(e))
    with store._connections.reading() as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(entries)") if row[1] not in ("rowid", "id")]
    copy = f"INSERT INTO entries (id, {', '.join(columns)}) SELECT 'other', {', '.join(columns)} FROM entries"
    link = "INSERT INTO actions VALUES ('a', '', 0); INSERT INTO action_links (action, entry) VALUES ('a', 1)"
    forbidden: tuple[tuple[str, type[Exception]], ...] = (
        (copy, Conflict),
        (f"{link}; DELETE FROM entries", Refused),
        ("DELETE FROM events", Refused),
        ("UPDATE events SET action = 'x'", Refused),
        ("UPDATE versions SET cause = 'x'", Refused),
    )
    for statement, error in forbidden:
        with pytest.raises(error), store._connections.writing() as db:
            for _ in db.execute(statement):
                pass
    assert store.check() == []
    store.close()


def test_links_and_sources_of_earlier_stores_become_rows() -> None:
    """M9: a store of the schema before has them as lists in its entries; afterwards each is a row, with its version."""
    db = apsw.Connection(":memory:")
    for step in migrations()[:6]:
        db.execute(step.text).fetchall()
    db.execute("INSERT INTO scopes VALUES (1, 'workspace', '[]')")
    db.execute("INSERT INTO partitions (id, scope_id, visibility, owner) VALUES (1, 1, 'open', 'shared')")
    document = "id, title, collection, body, origin, lifecycle, weight, standing, version, updated_at, removed"
    db.execute(f"INSERT INTO documents ({document}) VALUES ('guide', '', '', '', '', '', 1.0, '', 3, 0, 0)")
    given = {"origin": ["ada", "library", "x", 3], "links": [["guide", 2, "p. 4"]], "derived_from": ["b", "a"]}
    columns = "id partition_id scope_id owner state kind source curator lifetime importance created_at updated_at"
    columns += " confirmed_at version content_version term_count chars marks tags terms content_hash content_key salt"
    values = ["a", 1, 1, "shared", "active", "semantic", "user", "author", "long_term", 0.5, 0, 0, 0, 1, 1, 0, 1, 1]
    values += ["[]", "", "", "", b"", "x"]
    names = [*columns.split(), "content", "rest"]
    for id, rest in (("a", given), ("b", {"origin": given["origin"]})):
        row = [id, *values[1:-3], f"key {id}", b"", "x", json.dumps(rest)]
        db.execute(f"INSERT INTO entries ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", row)
    db.execute("INSERT INTO confirmations VALUES (1, 'a', 0, 'ada', 'user', '', 'x', '[]')")
    db.execute(migrations()[6].text).fetchall()
    assert db.execute("SELECT entry, document, version, locator, checked FROM canonical_links").fetchall() == [
        ("a", "guide", 2, "p. 4", 0)
    ]
    assert db.execute("SELECT entry, source FROM derivations ORDER BY place").fetchall() == [("a", "b"), ("a", "a")]
    kept = db.execute("SELECT id, marks, rest FROM entries ORDER BY id").fetchall()
    assert [(id, marks, json.loads(str(rest)).keys()) for id, marks, rest in kept] == [
        ("a", 9, {"origin"}),
        ("b", 1, {"origin"}),
    ]
    assert db.execute("SELECT trust, outcome FROM confirmations").fetchall() == [(0, "confirmed")]
