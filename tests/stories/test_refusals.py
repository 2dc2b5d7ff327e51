"""Files that are not ours to open: a clear refusal, not a byte changed, and never an empty database instead."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from functools import partial
from pathlib import Path

import apsw
import pytest

from lukasa.model.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreMissing,
    StoreNewer,
)
from lukasa.storage.sqlite import Role, SqliteStore
from lukasa.storage.sqlite.store_files import ACCESS, LOCK, MEMORY, Migration, migrations
from tests.helpers.processes import Tripwire, finish, fork, until
from tests.helpers.stores import OPEN, commit, entry, put

LAST = migrations()[-1].number
NEXT = Migration(
    LAST + 1,
    "next",
    f"""
    CREATE TABLE extra (x TEXT NOT NULL) STRICT;
    INSERT INTO extra SELECT content FROM entries;
    ALTER TABLE channels ADD COLUMN colour TEXT;
    PRAGMA user_version = {LAST + 1};
    """,
)
BOTH = (*migrations(), NEXT)


def open_store(folder: Path, *, create: bool = True, role: Role = "workspace", timeout: float = 30.0) -> SqliteStore:
    return SqliteStore(folder, role=role, create=create, busy_timeout=timeout)


def made(folder: Path) -> Path:
    store = open_store(folder)
    commit(store, *(put(entry(f"fact {i}")) for i in range(40)))
    store.close()
    return folder / MEMORY


def contents(folder: Path) -> dict[str, str]:
    """A digest of every file but the lock, which is empty and only ever locked."""
    files = (f for f in folder.rglob("*") if f.is_file() and f.name != LOCK)
    return {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def assert_refused(folder: Path, error: type[StoreError], **how: object) -> None:
    before = contents(folder)
    for create in (True, False):
        with pytest.raises(error) as caught:
            open_store(folder, create=create, **how)  # type: ignore[arg-type]
        assert caught.value.fix
        assert type(caught.value) is error
    assert contents(folder) == before


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    """T16: known to have existed and gone is an error; nothing is made in its place, not even a folder."""
    with pytest.raises(StoreMissing):
        open_store(tmp_path / "store", create=False)
    assert not (tmp_path / "store").exists()
    made(tmp_path / "other").unlink()
    with pytest.raises(StoreMissing):
        open_store(tmp_path / "other", create=False)
    assert not (tmp_path / "other" / MEMORY).exists()


def test_a_file_that_vanishes_under_us_is_missing(tmp_path: Path) -> None:
    """T16: nothing is acknowledged into a file that is gone or was replaced, and no other is made in its place."""
    folder, file = tmp_path / "store", tmp_path / "store" / MEMORY
    store = open_store(folder)
    file.rename(tmp_path / "away")
    with pytest.raises(StoreMissing):
        commit(store, put(entry()))

    def use_in_a_fork() -> None:
        with pytest.raises(StoreMissing):
            store.head()

    assert finish(fork(use_in_a_fork)) == 0
    assert not file.exists()
    shutil.copy(tmp_path / "away", file)
    with pytest.raises(StoreError, match="replaced"):
        commit(store, put(entry()))
    (tmp_path / "away").rename(file)
    commit(store, put(entry()))
    store.close()


@pytest.mark.parametrize("data", [b"", b"\0", b"not a database at all " * 400, b"SQLite format 3\0", b"\0" * 8192])
def test_a_file_that_is_no_database_is_damaged(tmp_path: Path, data: bytes) -> None:
    """T16: zero bytes, a few, or text: refused as damaged and left as it is."""
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / MEMORY).write_bytes(data)
    assert_refused(folder, StoreDamaged)


@pytest.mark.parametrize("part", [0.001, 0.1, 0.5, 0.99])
def test_a_half_copied_file_is_damaged(tmp_path: Path, part: float) -> None:
    """T16: a file cut short is refused."""
    file = made(tmp_path / "store")
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * part)])
    assert_refused(tmp_path / "store", StoreDamaged)


def test_a_directory_in_its_place_is_damaged(tmp_path: Path) -> None:
    """T16: what cannot be read as a file is refused."""
    (tmp_path / "store" / MEMORY).mkdir(parents=True)
    assert_refused(tmp_path / "store", StoreDamaged)


def test_a_folder_that_cannot_be_made_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    """T16: a file where the folder should be, or no permission: a plain StoreError that says what to check."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError) as caught:
        open_store(tmp_path / "file" / "store")
    assert caught.value.fix
    with pytest.raises(StoreError):
        open_store(Path("/proc/nowhere/store"))
    assert (tmp_path / "file").read_text() == "x"


def test_another_programs_database_is_foreign(tmp_path: Path) -> None:
    """T16: a good database that is not Lukasa's is refused, with its log beside it untouched."""
    folder = tmp_path / "store"
    folder.mkdir()
    db = apsw.Connection(str(folder / MEMORY))
    for statement in ("PRAGMA journal_mode = WAL", "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)"):
        db.execute(statement).fetchall()
    before = contents(folder)
    assert f"{MEMORY}-wal" in before
    for create in (True, False):
        with pytest.raises(StoreForeign):
            open_store(folder, create=create)
    assert contents(folder) == before
    db.close()


def test_an_account_is_not_a_workspace(tmp_path: Path) -> None:
    """X3, T16: a file opened as what it is not is foreign."""
    made(tmp_path / "store")
    assert_refused(tmp_path / "store", StoreForeign, role="account")


def test_a_newer_database_is_left_alone(tmp_path: Path) -> None:
    """T16: a schema from the future is refused by name."""
    made(tmp_path / "store")
    SqliteStore(tmp_path / "store", role="workspace", create=False, known=BOTH).close()
    assert_refused(tmp_path / "store", StoreNewer)


def test_a_newer_schema_still_in_the_log_is_seen(tmp_path: Path) -> None:
    """T16: the main file looks old, the log beside it is newer: refused, and the log not written back."""
    file = made(tmp_path / "store")

    def migrate_and_die() -> None:
        store = SqliteStore(tmp_path / "store", role="workspace", create=False)
        db = apsw.Connection(str(file))
        db.execute("PRAGMA user_version = 99")
        os.kill(os.getpid(), signal.SIGKILL)
        store.close()

    assert finish(fork(migrate_and_die)) == -signal.SIGKILL
    before = hashlib.sha256(file.read_bytes()).digest()
    with pytest.raises(StoreNewer):
        open_store(tmp_path / "store")
    assert hashlib.sha256(file.read_bytes()).digest() == before


def test_a_migration_that_differs_is_refused(tmp_path: Path) -> None:
    """T16: a database migrated by other text of the same number is not trusted."""
    made(tmp_path / "store")
    before = contents(tmp_path / "store")
    other = Migration(1, "initial", migrations()[0].text + "-- edited")
    with pytest.raises(StoreDamaged):
        SqliteStore(tmp_path / "store", role="workspace", create=False, known=(other, *migrations()[1:]))
    assert contents(tmp_path / "store") == before


@pytest.mark.parametrize("data", [b"", b"garbage" * 999])
def test_damaged_read_statistics_are_refused(tmp_path: Path, data: bytes) -> None:
    """T16: the statistics file is held to the same standard."""
    made(tmp_path / "store")
    (tmp_path / "store" / ACCESS).write_bytes(data)
    assert_refused(tmp_path / "store", StoreDamaged)


def test_lost_read_statistics_start_again(tmp_path: Path) -> None:
    """T16: counts of reads are not memory: without their file, memory still opens."""
    made(tmp_path / "store")
    (tmp_path / "store" / ACCESS).unlink()
    store = open_store(tmp_path / "store", create=False)
    assert len(store.find(OPEN)) == 40
    store.close()


def test_an_opening_that_is_locked_out_says_so(tmp_path: Path) -> None:
    """T14, T16: while another process opens or migrates, we wait; when it takes too long, that is said."""
    made(tmp_path / "store")
    ready, done = tmp_path / "ready", tmp_path / "done"

    def hold() -> None:
        from lukasa.storage.sqlite.store_files import locked

        with locked(tmp_path / "store" / LOCK, 5):
            ready.touch()
            until(done.exists)

    pid = fork(hold)
    until(ready.exists)
    with pytest.raises(StoreBusy):
        open_store(tmp_path / "store", timeout=0.2)
    done.touch()
    assert finish(pid) == 0
    open_store(tmp_path / "store").close()


def killed_at(place: int, folder: Path) -> None:
    wire = Tripwire(place)
    wire.install()
    wire.armed = True
    SqliteStore(folder, role="workspace", create=True, known=BOTH).close()


def test_a_first_opening_killed_anywhere_leaves_nothing_or_all(tmp_path: Path) -> None:
    """T16: SIGKILL at every statement of making a database: none is there, or a whole one; the next try works."""
    ended = -signal.SIGKILL
    place = 0
    while ended != 0:
        place += 1
        folder = tmp_path / f"s{place}"
        ended = finish(fork(partial(killed_at, place, folder)))
        assert ended in (0, -signal.SIGKILL)
        existed = (folder / MEMORY).exists()
        store = SqliteStore(folder, role="workspace", create=not existed, known=BOTH)
        assert store.check() == []
        store.close()
        assert not list(folder.glob("*.new*"))
    assert place > 40


def test_a_migration_killed_anywhere_leaves_old_or_new(tmp_path: Path) -> None:
    """T16: SIGKILL at every statement of an upgrade: the old schema or the new one, with every row."""
    ended, seen = -signal.SIGKILL, set()
    place = 0
    while ended != 0:
        place += 1
        folder = tmp_path / f"s{place}"
        file = made(folder)
        ended = finish(fork(partial(killed_at, place, folder)))
        db = apsw.Connection(str(file))
        version = db.execute("PRAGMA user_version").get
        assert version == db.execute("SELECT max(number) FROM migrations").get
        assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'").get == version - LAST
        db.close()
        seen.add(version)
        store = SqliteStore(folder, role="workspace", create=False, known=BOTH)
        assert (len(store.find(OPEN)), store.check()) == (40, [])
        store.close()
    assert seen == {LAST, LAST + 1}


def test_a_failing_migration_is_undone(tmp_path: Path) -> None:
    """T16: an upgrade that cannot finish leaves the old database, usable as before."""
    made(tmp_path / "store")
    broken = Migration(LAST + 1, "broken", NEXT.text + "INSERT INTO nowhere VALUES (1);")
    with pytest.raises(StoreError):
        SqliteStore(tmp_path / "store", role="workspace", create=False, known=(*migrations(), broken))
    store = open_store(tmp_path / "store", create=False)
    assert (len(store.find(OPEN)), store.check()) == (40, [])
    store.close()


def test_an_older_store_has_conversations_of_no_tenant(tmp_path: Path) -> None:
    """T16, S4: what was there before tenants were kept apart stays, and is nobody's in particular."""
    tenants = next(migration.number for migration in migrations() if migration.name == "tenants")
    before = tuple(migration for migration in migrations() if migration.number < tenants)
    SqliteStore(tmp_path / "store", role="workspace", create=True, known=before).close()
    db = apsw.Connection(str(tmp_path / "store" / "memory.db"))
    columns = "id, workspace, name, description, is_default, created_at"
    db.execute(f"INSERT INTO channels ({columns}) VALUES ('c1', 'w', 'general', '', 1, 0)")
    row = ("t1", "abc", "c1", 0, "active")
    db.execute("INSERT INTO conversations (id, ref_code, channel, started_at, status) VALUES (?, ?, ?, ?, ?)", row)
    db.close()
    store = open_store(tmp_path / "store", create=False)
    found = store.conversation("abc")
    assert found is not None
    assert (found.id, found.keys) == ("t1", {})
    assert store.check() == []
    store.close()
