"""What was acknowledged is there after kill -9, and nothing is there by half."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from lukasa.model.ids import new_id
from lukasa.model.selection import Selection
from lukasa.model.values import State
from lukasa.storage.operations import SaveNamed
from lukasa.storage.sqlite import SqliteStore
from tests.helpers.processes import TORTURE, Tripwire, finish, fork, kill, until
from tests.helpers.stores import MODEL, WORK, change, commit, entry, move, named, put, stored, vector_of

ROUNDS = 3000 if TORTURE else 100
EVERYTHING = Selection((WORK,), owners=None)


def open_store(folder: Path, *, create: bool = False) -> SqliteStore:
    return SqliteStore(folder, role="workspace", create=create)


def acknowledge(log: int, **what: object) -> None:
    os.write(log, (json.dumps(what) + "\n").encode())


def write_until_killed(folder: Path, oracle: Path, seed: int) -> None:
    """Puts, updates, forgets and page edits, each noted in the oracle file only after the store has answered."""
    dice = random.Random(seed)
    store = open_store(folder)
    log = os.open(oracle, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    page = named(f"PAGE-{seed}", "0")
    commit(store, SaveNamed(page, 0))
    edits = 1
    while True:
        e = entry(f"fact {seed} {new_id()}")
        commit(store, put(e, vector_of(e.content)))
        acknowledge(log, id=e.id, version=1, content=e.content, state="active")
        if dice.random() < 0.5:
            commit(store, change(e, content=e.content + " corrected"))
            acknowledge(log, id=e.id, version=2, content=e.content + " corrected", state="active")
        if dice.random() < 0.3:
            now = stored(store, e)
            commit(store, move(now, State.FORGOTTEN))
            acknowledge(log, id=e.id, version=now.version + 1, content=now.content, state="forgotten")
        commit(store, SaveNamed(named(page.name, str(edits)), edits))
        edits += 1
        acknowledge(log, page=page.name, version=edits)


def read_oracle(oracle: Path) -> list[dict[str, str | int]]:
    return [json.loads(line) for line in oracle.read_text().splitlines()]


def assert_kept(store: SqliteStore, acknowledged: list[dict[str, str | int]]) -> None:
    last: dict[str, dict[str, str | int]] = {}
    for line in acknowledged:
        last[str(line.get("id") or line["page"])] = line
    entries = store.entries([id for id, line in last.items() if "id" in line])
    pages = {page.name: page.version for page in store.named()}
    for id, line in last.items():
        if "page" in line:
            assert pages[id] >= int(line["version"])
        elif entries[id].version == line["version"]:
            assert (entries[id].content, str(entries[id].state)) == (line["content"], line["state"])
        else:
            assert entries[id].version > int(line["version"])  # written, but not yet acknowledged


@pytest.mark.parametrize("batch", range(ROUNDS // 10))
def test_acknowledged_writes_survive_a_kill(tmp_path: Path, batch: int) -> None:
    """T01: two writers killed at a random moment, ten times over: every acknowledged write is there, nothing half."""
    dice = random.Random(batch)
    folder, oracle = tmp_path / "store", tmp_path / "acknowledged"
    open_store(folder, create=True).close()
    for round in range(10):
        oracle.unlink(missing_ok=True)
        seeds = (batch * 100 + round * 2, batch * 100 + round * 2 + 1)
        children = [fork(partial(write_until_killed, folder, oracle, seed)) for seed in seeds]
        until(lambda: oracle.exists() and oracle.stat().st_size > 0)
        time.sleep(dice.uniform(0.005, 0.06))
        assert [kill(pid) for pid in children] == [-signal.SIGKILL, -signal.SIGKILL]
        store = open_store(folder)
        assert_kept(store, read_oracle(oracle))
        assert store.check() == []
        commit(store, put(entry(f"life goes on {batch} {round}")))
        store.close()


@pytest.mark.parametrize("place", range(1, 64, 1 if TORTURE else 3))
def test_a_batch_is_whole_or_absent_wherever_the_power_goes(tmp_path: Path, place: int) -> None:
    """T01: killed at any statement of a transaction, all of its operations are there or none is."""
    folder = tmp_path / "store"
    store = open_store(folder, create=True)
    old = entry("old")
    commit(store, put(old, vector_of("old")))
    store.close()

    def work() -> None:
        wire = Tripwire(place)
        wire.install()
        store = open_store(folder)
        wire.armed = True
        commit(store, put(entry("new"), vector_of("new")), move(old, State.FORGOTTEN), SaveNamed(named(), 0))

    ended = finish(fork(work))
    store = open_store(folder)
    assert store.check() == []
    contents = {e.content for e in store.find(EVERYTHING)}
    if ended == 0:
        assert (contents, store.head()[0]) == ({"new"}, 4)
    else:
        assert ended == -signal.SIGKILL
        assert (contents, store.head()[0], store.named()) == ({"old"}, 1, [])
        assert [n.id for n in store.nearest(EVERYTHING, MODEL, vector_of("new"), 9)] == [old.id]
    store.close()


def test_a_rebuild_cut_short_changes_nothing(tmp_path: Path) -> None:
    """T01, T22: killed while rebuilding, the store is as it was, and can be rebuilt again."""
    folder = tmp_path / "store"
    store = open_store(folder, create=True)
    made = [entry(f"cat {i}") for i in range(20)]
    commit(store, *(put(e, vector_of(e.content)) for e in made))
    store.close()

    def work(place: int) -> None:
        wire = Tripwire(place)
        wire.install()
        store = open_store(folder)
        wire.armed = True
        store.rebuild()

    for place in (2, 9, 17, 30):
        assert finish(fork(partial(work, place))) == -signal.SIGKILL
        store = open_store(folder)
        assert store.check() == []
        assert len(store.keyword(EVERYTHING, ["cat"], 99).rows) == 20
        store.close()
