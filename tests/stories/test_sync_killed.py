"""Sync on every engine, and after a kill at any transaction: whoever goes on ends up where the others are."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa
from tests.helpers.edits import EDITS, edit
from tests.helpers.making import FixedClock
from tests.helpers.replicas import Machine, exchange, shown

_KILLED = """
import os, pickle, signal, sys
from pathlib import Path
from lukasa import Lukasa
from lukasa.storage.sqlite import SqliteStore
from tests.helpers.making import FixedClock
from tests.helpers.replicas import Machine

data, given, what, left = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
real = SqliteStore.apply
def apply(self, transaction):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    real(self, transaction)
machine = Machine("b", Lukasa.open(data, embedder="none", clock=FixedClock(), principal="ada"), FixedClock())
SqliteStore.apply = apply
if what == "absorb":
    machine.take(pickle.loads(given.read_bytes()))
else:
    machine.replica.collect()
"""


def lived(folder: Path | None, clock: FixedClock, name: str = "a") -> Machine:
    """Return a machine that did some of everything."""
    place: dict[str, Any] = {"in_memory": True} if folder is None else {"data": folder}
    made = Machine(name, Lukasa.open(embedder="none", clock=clock, principal="ada", **place), clock)
    for n, verb in enumerate(EDITS):
        edit(made, verb, n * 7)
    return made


def killed(data: Path, given: Path, what: str, after: int) -> bool:
    """Do it in a process that is killed before a transaction; return whether it came that far."""
    ended = subprocess.run([sys.executable, "-c", _KILLED, data, given, what, str(after)], check=False)
    return ended.returncode != 0


@pytest.mark.parametrize("what", ["absorb", "collect"])
def test_killed_it_goes_on(tmp_path: Path, what: str) -> None:
    """27: killed with -9 before any of its transactions, it goes on when it is asked again, and nothing is lost."""
    clock, data, given = FixedClock(), tmp_path / "b", tmp_path / "given"
    a = lived(None, clock)
    if what == "absorb":
        Lukasa.open(data, embedder="none", clock=clock, principal="ada").close()
    else:
        lived(data, clock, "b").memory.close()
    given.write_bytes(pickle.dumps(a.tell()))
    deaths = sum(killed(data, given, what, after) for after in (0, 1, 2, 3))
    assert deaths > 1
    b = Machine("b", Lukasa.open(data, embedder="none", clock=clock, principal="ada"), clock)
    exchange(a, b)
    one, other = shown(a), shown(b)
    assert one.keys() == other.keys()
    assert [key for key in one if not one[key].same(other[key])] == []
    assert a.replica.digests() == b.replica.digests()
    for machine in (a, b):
        assert machine.memory.account.check() == []
        machine.memory.close()


def test_every_engine_holds_the_same(tmp_path: Path, database_url: str) -> None:
    """27: one machine keeps its memory in the process, one in a folder, one in PostgreSQL."""
    clock = FixedClock()
    a = lived(None, clock)
    b = Machine("b", Lukasa.open(tmp_path / "b", embedder="none", clock=clock, principal="ada"), clock)
    opened = Lukasa.open(tmp_path / "c", database=database_url, embedder="none", clock=clock, principal="ada")
    c = Machine("c", opened, clock)
    exchange(a, b, c)
    for n, machine in enumerate((b, c, a) * 6):
        edit(machine, EDITS[n * 5 % len(EDITS)], n * 3)
    exchange(a, b, c)
    one = shown(a)
    for machine in (b, c):
        other = shown(machine)
        assert one.keys() == other.keys()
        assert [key for key in one if not one[key].same(other[key])] == []
        assert machine.replica.digests() == a.replica.digests()
        assert machine.memory.account.check() == []
        assert machine.workspace().check() == []
    for machine in (a, b, c):
        machine.memory.close()
