"""Reads are counted in the process and written for many at once: none is counted twice, none waits for a lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import apsw
import pytest

from lukasa.model.entry import Access
from lukasa.model.timestamps import micros
from lukasa.storage import access_counts
from lukasa.storage.operations import DropEntry
from lukasa.storage.sqlite import SqliteStore
from lukasa.storage.sqlite.store_files import ACCESS
from tests.helpers.processes import finish, fork
from tests.helpers.stores import NOW, commit, entry, later, put


def open_store(folder: Path, *, create: bool = False) -> SqliteStore:
    return SqliteStore(folder, role="workspace", create=create, busy_timeout=0.2)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = open_store(tmp_path / "store", create=True)
    yield store
    store.close()


def written(folder: Path) -> dict[str, int]:
    """What is in the file, as anybody else sees it."""
    db = apsw.Connection(str(folder / ACCESS))
    try:
        return {str(id): int(str(count)) for id, count in db.execute("SELECT id, count FROM access").fetchall()}
    finally:
        db.close()


def test_reads_wait_in_the_process_and_are_in_its_answers(tmp_path: Path, store: SqliteStore) -> None:
    """D6: a count is exact in the answer at once, and in the file once the store is closed."""
    a, b = entry("a"), entry("b")
    commit(store, put(a), put(b))
    assert store.touch([a.id, b.id], NOW)[a.id] == Access(1, micros(NOW))
    assert store.touch([a.id], later(5))[a.id] == Access(2, micros(later(5)))
    assert written(tmp_path / "store") == {}
    assert store.access([a.id, b.id]) == {a.id: Access(2, micros(later(5))), b.id: Access(1, micros(NOW))}
    store.close()
    assert written(tmp_path / "store") == {a.id: 2, b.id: 1}
    again = open_store(tmp_path / "store")
    assert again.touch([a.id], later(9))[a.id] == Access(3, micros(later(9)))
    again.close()
    assert written(tmp_path / "store") == {a.id: 3, b.id: 1}


def test_many_are_written_without_being_asked(tmp_path: Path, store: SqliteStore) -> None:
    """D6: what waits is bounded; and what was written is not counted once more."""
    many = [entry(f"e{n}") for n in range(access_counts.MANY)]
    commit(store, *(put(e) for e in many))
    store.touch([e.id for e in many[1:]], NOW)
    assert written(tmp_path / "store") == {}
    store.touch([many[0].id], NOW)
    assert written(tmp_path / "store") == {e.id: 1 for e in many}
    assert store.touch([many[7].id], later(1)) == {many[7].id: Access(2, micros(later(1)))}
    found = store.access([many[7].id, many[8].id])
    assert found == {many[7].id: Access(2, micros(later(1))), many[8].id: Access(1, micros(NOW))}


def test_what_has_waited_long_is_written_with_the_next(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D6: whoever reads now and then writes every count."""
    monkeypatch.setattr(access_counts, "LONG", -1.0)
    e = entry("a")
    commit(store, put(e))
    store.touch([e.id], NOW)
    assert written(tmp_path / "store") == {e.id: 1}


def test_counts_of_several_stores_add_up(tmp_path: Path, store: SqliteStore) -> None:
    """D6, T03: each writes its own, and sees the others' as soon as they are written."""
    e = entry("a")
    commit(store, put(e))
    other = open_store(tmp_path / "store")
    assert store.touch([e.id], NOW)[e.id].count == 1
    assert other.touch([e.id], later(1))[e.id].count == 1
    other.close()
    assert store.access([e.id]) == {e.id: Access(2, micros(later(1)))}
    assert store.touch([e.id], later(2))[e.id].count == 3
    store.close()
    assert written(tmp_path / "store") == {e.id: 3}


def test_threads_lose_no_count(tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """D6, T31: every thread's reads are in the sum, though they are written in between; no two hear the same count."""
    monkeypatch.setattr(access_counts, "MANY", 2)
    a, b = entry("a"), entry("b")
    commit(store, put(a), put(b))
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda n: store.touch([a.id, b.id][: 1 + n % 2], NOW)[a.id].count, range(200)))
    assert sorted(counts) == list(range(1, 201))
    store.close()
    assert written(tmp_path / "store") == {a.id: 200, b.id: 100}


def test_what_is_gone_is_not_counted(tmp_path: Path, store: SqliteStore) -> None:
    """M3: an entry that somebody removed meanwhile gets no statistics of its own."""
    a, b = entry("a"), entry("b")
    commit(store, put(a), put(b))
    store.touch([a.id, b.id], NOW)
    other = open_store(tmp_path / "store")
    commit(other, DropEntry(a.id, 1, "gone"))
    other.close()
    store.close()
    assert written(tmp_path / "store") == {b.id: 1}


def test_what_went_before_many_were_written_is_not_counted(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M3: while memory is as it was, what is counted need not be looked for; once it has changed, it is."""
    monkeypatch.setattr(access_counts, "MANY", 2)
    a, b, c = entry("a"), entry("b"), entry("c")
    commit(store, put(a), put(b), put(c))
    store.touch([b.id, c.id], NOW)
    store.touch([a.id], NOW)
    other = open_store(tmp_path / "store")
    commit(other, DropEntry(a.id, 1, "gone"))
    other.close()
    store.touch([b.id], NOW)
    assert written(tmp_path / "store") == {b.id: 2, c.id: 1}


def test_a_locked_file_makes_nobody_wait_or_fail(tmp_path: Path, store: SqliteStore) -> None:
    """D1: reading goes on while somebody else writes there, and the counts wait on."""
    many = [entry(f"e{n}") for n in range(access_counts.MANY)]
    commit(store, *(put(e) for e in many))
    writer = apsw.Connection(str(tmp_path / "store" / ACCESS))
    writer.execute("BEGIN IMMEDIATE")
    assert len(store.touch([e.id for e in many], NOW)) == access_counts.MANY
    assert store.access([many[0].id])[many[0].id].count == 1
    writer.execute("ROLLBACK")
    writer.close()
    store.touch([many[0].id], NOW)
    assert written(tmp_path / "store")[many[0].id] == 2


def read_and(end: str, store: SqliteStore, id: str) -> None:
    store.touch([id], NOW)
    if end == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if end == "closed":
        store.close()


@pytest.mark.parametrize(("end", "status", "counted"), [("closed", 0, 2), ("killed", -signal.SIGKILL, 1)])
def test_a_fork_counts_its_own_reads(tmp_path: Path, store: SqliteStore, end: str, status: int, counted: int) -> None:
    """D6, T31: a child writes what it read and not what its parent did; killed, it takes that with it."""
    e = entry("a")
    commit(store, put(e))
    store.touch([e.id], NOW)
    assert finish(fork(partial(read_and, end, store, e.id))) == status
    store.close()
    assert written(tmp_path / "store") == {e.id: counted}


DROPPED = """
import sys
from datetime import datetime, UTC
from pathlib import Path
from lukasa.storage.sqlite import SqliteStore
SqliteStore(Path(sys.argv[1]), role="workspace", create=False).touch([sys.argv[2]], datetime.now(UTC))
"""
KEPT = DROPPED.replace("SqliteStore(Path", "store = SqliteStore(Path").replace(").touch", "); store.touch")


def test_a_program_that_ends_without_closing_has_counted(tmp_path: Path, store: SqliteStore) -> None:
    """D6: no count is lost where a program ends by itself, or drops a store that it opened."""
    e = entry("a")
    commit(store, put(e))
    for count, program in enumerate((DROPPED, KEPT), 1):
        subprocess.run([sys.executable, "-c", program, str(tmp_path / "store"), e.id], check=True)
        assert written(tmp_path / "store") == {e.id: count}
        assert store.access([e.id])[e.id].count == count
