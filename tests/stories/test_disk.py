"""A disk that is full or fails: a typed error, nothing acknowledged lost, and work goes on when it is mended."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from lukasa.model.errors import StoreError, StoreFull
from lukasa.model.values import State
from lukasa.storage.sqlite import SqliteStore
from lukasa.storage.sqlite.store_files import MEMORY, RESERVE
from tests.helpers.faulty import Fault, FaultyVFS
from tests.helpers.processes import TORTURE, finish, fork
from tests.helpers.stores import MODEL, OPEN, commit, entry, move, put, vector_of

PLACES = range(1, 201) if TORTURE else (*range(1, 16), *range(16, 80, 7))


@pytest.fixture(scope="module")
def disk() -> Iterator[FaultyVFS]:
    vfs = FaultyVFS("faulty")
    yield vfs
    vfs.unregister()


@pytest.mark.parametrize("fault", ["full", "write", "sync"])
@pytest.mark.parametrize("place", PLACES)
def test_a_failing_disk_loses_nothing_acknowledged(tmp_path: Path, disk: FaultyVFS, fault: Fault, place: int) -> None:
    """T18: at the k-th write or sync, a typed error; what was acknowledged is kept, and writes resume."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True, vfs="faulty")
    acknowledged: list[str] = []
    disk.arm(fault, place)
    failure: StoreError | None = None
    for i in range(30):
        e = entry(f"fact {i} " + "padding " * 40)
        try:
            commit(store, put(e, vector_of(e.content)), put(entry(f"beside {i}")))
        except StoreError as error:
            failure = error
            break
        acknowledged.append(e.id)
    assert (failure is not None) is (disk.hits > 0)
    if failure is not None:
        assert failure.fix
        assert isinstance(failure, StoreFull) is (fault == "full")
    assert set(store.entries(acknowledged)) == set(acknowledged)
    disk.mend()
    commit(store, put(entry("mended"), vector_of("mended")))
    assert store.check() == []
    store.close()
    reopened = SqliteStore(tmp_path / "store", role="workspace", create=False)
    assert reopened.check() == []
    assert set(reopened.entries(acknowledged)) == set(acknowledged)
    assert reopened.nearest(OPEN, MODEL, vector_of("mended"), 1)[0].cosine > 0.99
    reopened.close()


@pytest.mark.parametrize("fault", ["full", "write"])
@pytest.mark.parametrize("place", range(1, 60, 9))
def test_a_database_half_made_is_not_there(tmp_path: Path, disk: FaultyVFS, fault: Fault, place: int) -> None:
    """T16, T18: if making a database fails, the folder holds none, and the next attempt makes it."""
    folder = tmp_path / "store"
    disk.arm(fault, place)
    with pytest.raises(StoreError):
        SqliteStore(folder, role="workspace", create=True, vfs="faulty")
    disk.mend()
    assert not (folder / MEMORY).exists()
    assert not list(folder.glob("*.new*"))
    store = SqliteStore(folder, role="workspace", create=True, vfs="faulty")
    commit(store, put(entry("made after all")))
    store.close()


def test_the_reserve_is_given_up_and_set_aside_again(tmp_path: Path, disk: FaultyVFS) -> None:
    """T18: on a full disk the reserve makes room for a checkpoint; with room again it comes back."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True, vfs="faulty")
    reserve = tmp_path / "store" / RESERVE
    assert reserve.stat().st_size == 1 << 20
    disk.arm("full", 1)
    with pytest.raises(StoreFull):
        commit(store, put(entry("too much")))
    assert not reserve.exists()
    disk.mend()
    commit(store, put(entry("fits again")))
    assert reserve.stat().st_size == 1 << 20
    assert reserve.stat().st_mode & 0o777 == 0o600
    store.close()


def test_a_new_reader_opens_on_a_full_disk(tmp_path: Path, disk: FaultyVFS) -> None:
    """T18: where SQLite has no room to open a store, the reserve lends it some: reading works, and a write that finds
    no room is a typed error. With space again, writing works and the reserve is whole."""
    folder, kept = tmp_path / "store", entry("kept")
    store = SqliteStore(folder, role="workspace", create=True, vfs="faulty")
    commit(store, put(kept))
    store.close()
    reserve = folder / RESERVE
    disk.cram(reserve)
    reader = SqliteStore(folder, role="workspace", create=False, vfs="faulty")
    assert set(reader.entries([kept.id])) == {kept.id}
    assert 0 < reserve.stat().st_size < 1 << 20
    disk.arm("full", 1)
    with pytest.raises(StoreFull, match="no space left on the disk") as caught:
        commit(reader, put(entry("too much")))
    assert "free some space" in caught.value.fix
    assert set(reader.entries([kept.id])) == {kept.id}
    disk.mend()
    commit(reader, put(entry("fits again")))
    assert reserve.stat().st_size == 1 << 20
    assert reader.check() == []
    reader.close()


def test_a_disk_that_stays_full_is_said(tmp_path: Path, disk: FaultyVFS) -> None:
    """T18: with nothing left in reserve, opening is the same typed error, and opening works once there is space."""
    folder = tmp_path / "store"
    SqliteStore(folder, role="workspace", create=True, vfs="faulty").close()
    (tmp_path / "filler").write_bytes(b"x")
    disk.cram(tmp_path / "filler")
    with pytest.raises(StoreFull):
        SqliteStore(folder, role="workspace", create=False, vfs="faulty")
    assert not (folder / RESERVE).exists()
    disk.mend()
    store = SqliteStore(folder, role="workspace", create=False, vfs="faulty")
    commit(store, put(entry("fits")))
    assert (folder / RESERVE).stat().st_size == 1 << 20
    store.close()


def test_a_file_size_limit_is_a_typed_error(tmp_path: Path) -> None:
    """T18: under RLIMIT_FSIZE a write fails with a StoreError, reading goes on, and lifting the limit mends it."""
    folder = tmp_path / "store"

    def work() -> None:
        store = SqliteStore(folder, role="workspace", create=True)
        kept = entry("kept")
        commit(store, put(kept))
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
        acknowledged = [kept.id]
        for i in range(500):
            e = entry(f"fact {i} " + "padding " * 200)
            try:
                commit(store, put(e), move(e, State.STALE))
            except StoreError:
                break
            acknowledged.append(e.id)
        else:
            raise AssertionError("the limit was never met")
        assert set(store.entries(acknowledged)) == set(acknowledged)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        commit(store, put(entry("room again")))
        assert store.check() == []
        (tmp_path / "acknowledged").write_text("\n".join(acknowledged))
        store.close()

    assert finish(fork(work)) == 0
    acknowledged = (tmp_path / "acknowledged").read_text().split("\n")
    store = SqliteStore(folder, role="workspace", create=False)
    assert store.check() == []
    assert set(store.entries(acknowledged)) == set(acknowledged)
    store.close()
