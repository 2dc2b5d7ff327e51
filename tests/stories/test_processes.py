"""Many processes and threads on one store."""

from __future__ import annotations

import multiprocessing
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from lukasa.model.errors import Conflict, StoreBusy, StoreError
from lukasa.model.selection import Selection
from lukasa.model.values import State
from lukasa.storage.operations import SaveNamed
from lukasa.storage.sqlite import SqliteStore
from lukasa.storage.sqlite.store_files import MEMORY
from tests.helpers.processes import TORTURE, finish, fork
from tests.helpers.stores import MODEL, NOW, OPEN, WORK, commit, entry, move, named, put, stored, unit, vector_of

WRITES = 4000 if TORTURE else 200
EVERYTHING = Selection((WORK,), owners=None)


def open_store(folder: Path, *, create: bool = False) -> SqliteStore:
    return SqliteStore(folder, role="workspace", create=create)


def count_up(store: SqliteStore, name: str) -> None:
    """Read, add one, write by version; read again on a conflict."""
    while True:
        (page,) = store.named(name)
        try:
            commit(store, SaveNamed(replace(page, body=str(int(page.body) + 1)), page.version))
        except Conflict:
            continue
        return


def mixed_writes(folder: Path, worker: int) -> None:
    store = open_store(folder)
    dice = random.Random(worker)
    for i in range(WRITES):
        if i % 5 == 0:
            count_up(store, "COUNTER")
            continue
        e = entry(f"worker {worker} fact {i}")
        commit(store, put(e, vector_of(e.content)))
        choice = dice.random()
        if choice < 0.2:
            commit(store, move(e, State.FORGOTTEN))
        elif choice < 0.4:
            assert store.touch([e.id], NOW)[e.id].count == 1
        elif choice < 0.6:
            assert e.id in {n.id for n in store.nearest(OPEN, MODEL, vector_of(e.content), 5)}
    store.close()


def test_eight_processes_lose_nothing(tmp_path: Path) -> None:
    """T03: mixed writes of eight processes: every one is there, the counter is the sum, nobody is turned away."""
    folder = tmp_path / "store"
    store = open_store(folder, create=True)
    commit(store, SaveNamed(named("COUNTER", "0"), 0))
    children = [fork(partial(mixed_writes, folder, w)) for w in range(8)]
    assert [finish(pid) for pid in children] == [0] * 8
    assert store.named("COUNTER")[0].body == str(8 * WRITES // 5)
    (census,) = store.census()
    assert sum(census.states.values()) == 8 * (WRITES - WRITES // 5)
    assert store.check() == []
    store.close()


def test_the_same_text_from_many_processes_is_one_entry(tmp_path: Path) -> None:
    """T03, W1: processes that race to store one text leave exactly one entry."""
    folder = tmp_path / "store"
    store = open_store(folder, create=True)

    def race() -> None:
        mine = open_store(folder)
        for i in range(20):
            try:
                commit(mine, put(entry(f"the same fact {i}")))
            except Conflict:
                continue

    children = [fork(race) for _ in range(4)]
    assert [finish(pid) for pid in children] == [0] * 4
    assert len(store.find(OPEN)) == 20
    store.close()


def test_six_processes_open_a_fresh_folder_at_once(tmp_path: Path) -> None:
    """T14: behind a barrier, forty times over: everybody opens, and there is one database."""
    rounds, processes = 40, 6
    barrier = multiprocessing.get_context("fork").Barrier(processes)

    def work(worker: int) -> None:
        for round in range(rounds):
            barrier.wait()
            store = open_store(tmp_path / f"s{round}", create=True)
            commit(store, put(entry(f"worker {worker}")))
            store.close()

    children = [fork(partial(work, w)) for w in range(processes)]
    assert [finish(pid) for pid in children] == [0] * processes
    for round in range(rounds):
        store = open_store(tmp_path / f"s{round}")
        assert len(store.find(OPEN)) == processes
        store.close()


def test_caches_follow_other_processes(tmp_path: Path) -> None:
    """T22: a vector search sees what another process added, changed and removed since the last one."""
    folder = tmp_path / "store"
    store = open_store(folder, create=True)
    a, b = entry("a"), entry("b")
    commit(store, put(a, unit(1, 0, 0, 0)), put(b, unit(0.9, 0.1, 0, 0)))
    assert [n.id for n in store.nearest(OPEN, MODEL, unit(1, 0, 0, 0), 9)] == [a.id, b.id]
    c = entry("c")

    def other() -> None:
        theirs = open_store(folder)
        commit(theirs, move(stored(theirs, a), State.FORGOTTEN), put(c, unit(0.5, 0.5, 0, 0)))
        theirs.close()

    assert finish(fork(other)) == 0
    assert [n.id for n in store.nearest(OPEN, MODEL, unit(1, 0, 0, 0), 9)] == [b.id, c.id]
    store.close()


def test_a_fork_after_opening_is_safe(tmp_path: Path) -> None:
    """T31: parent and children go on using one store object; nothing is lost and no handle is shared."""
    store = open_store(tmp_path / "store", create=True)
    commit(store, put(entry("before"), unit(1, 0, 0, 0)))
    store.nearest(OPEN, MODEL, unit(1, 0, 0, 0), 1)

    def child(number: int) -> None:
        for i in range(20):
            commit(store, put(entry(f"child {number} {i}"), unit(1, i, number, 0)))
            assert store.nearest(OPEN, MODEL, unit(1, i, number, 0), 1)
        store.close()

    children = [fork(partial(child, n)) for n in range(3)]
    for i in range(20):
        commit(store, put(entry(f"parent {i}")))
    assert [finish(pid) for pid in children] == [0] * 3
    assert len(store.find(OPEN, limit=999)) == 81
    assert store.check() == []
    store.close()


FORK_AND_EXIT = """
import os, sys, pathlib
from lukasa.storage.sqlite import SqliteStore
from tests.helpers.stores import OPEN, commit, entry, put
store = SqliteStore(pathlib.Path(sys.argv[1]), role="workspace", create=True)
commit(store, put(entry("one")))
pid = os.fork()
if pid:
    assert os.waitpid(pid, 0)[1] == 0
    commit(store, put(entry("two")))
    assert store.check() == []
    assert len(store.find(OPEN)) == 2
"""


def test_a_child_that_only_exits_leaves_the_parent_its_locks(tmp_path: Path) -> None:
    """T31: a fork that ends normally, interpreter clean-up and all, does not disturb the parent's handles."""
    subprocess.run([sys.executable, "-W", "error", "-c", FORK_AND_EXIT, str(tmp_path / "store")], check=True)
    store = open_store(tmp_path / "store")
    assert len(store.find(OPEN)) == 2
    store.close()


def test_sixteen_threads_share_a_store(tmp_path: Path) -> None:
    """T31: reads and writes of sixteen threads on one store object are all whole."""
    store = open_store(tmp_path / "store", create=True)
    commit(store, SaveNamed(named("COUNTER", "0"), 0))
    start = threading.Barrier(16)

    def work(worker: int) -> None:
        start.wait()
        for i in range(15):
            e = entry(f"thread {worker} fact {i}")
            commit(store, put(e, vector_of(e.content)))
            assert e.id in {r.id for r in store.keyword(OPEN, [str(worker), "fact"], 999).rows}
            assert e.id in {n.id for n in store.nearest(OPEN, MODEL, vector_of(e.content), 3)}
            store.touch([e.id], NOW)
            if i % 3 == 0:
                count_up(store, "COUNTER")
                commit(store, move(e, State.FORGOTTEN))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    assert store.named("COUNTER")[0].body == "80"
    assert len(store.find(OPEN, limit=999)) == 160
    assert store.check() == []
    store.close()
    with pytest.raises(StoreError):
        store.head()


def test_a_lock_held_too_long_is_named(tmp_path: Path) -> None:
    """T03: a writer that is never let in says so, and reading goes on meanwhile."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True, busy_timeout=0.2)
    commit(store, put(entry("one")))
    other = apsw.Connection(str(tmp_path / "store" / MEMORY))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy):
        commit(store, put(entry("two")))
    assert [e.content for e in store.find(OPEN)] == ["one"]
    assert store.touch([store.find(OPEN)[0].id], NOW)
    other.execute("ROLLBACK")
    other.close()
    commit(store, put(entry("two")))
    store.close()
