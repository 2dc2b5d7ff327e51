"""Background work under kill -9, SIGSTOP and rivals: nothing is lost, nothing is done twice, nothing is paid twice."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lukasa.model.job import JobState
from lukasa.model.telemetry import TelemetryQuery
from lukasa.ports import SystemClock
from lukasa.service.jobs.task import Task
from tests.helpers.processes import TORTURE, Tripwire, finish, fork, kill, until
from tests.helpers.work import POINTS, Bench, kill_at, later

KILLED = -signal.SIGKILL
ONE = Counter({"a": 1})


def work(folder: Path, *clock_and_passing: Any, **options: Any) -> None:
    """What a worker's process does: all that is due."""
    Bench(folder).worker(*clock_and_passing, **options).drain()


def drained(folder: Path, minutes: float) -> Bench:
    """The same folder after another worker has done whatever was left."""
    bench = Bench(folder)
    bench.worker(later(minutes)).drain()
    assert bench.store.check() == []
    return bench


@pytest.mark.parametrize("point", POINTS)
def test_killed_between_two_steps(tmp_path: Path, point: str) -> None:
    """T20, O2: between claim, reply, journal, commit and acknowledgement; redelivered ten times, one effect.

    An answer that was journaled is never paid for again; one that was not yet is, once for each kill.
    """
    folder = tmp_path / "bench"
    bench = Bench(folder)
    for _ in range(10):
        bench.ask_for("a", most=12)  # asked for again, it is still the one job
    bench.close()
    for round in range(10):
        assert finish(fork(partial(work, folder, later(2 * round), kill_at(point)))) == KILLED
    bench = drained(folder, 60)
    assert (bench.stored(), bench.states()) == (ONE, {JobState.DONE: 1})
    assert bench.calls()["a"] == {"claimed": 1, "replied": 11, "journaled": 1, "stored": 1}[point]
    assert bench.job("a").attempts == 11
    (spent,) = bench.store.spent("2000-01-01")
    assert spent.calls == 1  # those that died unjournaled were never written down


@pytest.mark.parametrize("place", range(1, 48, 1 if TORTURE else 5))
def test_killed_inside_a_step(tmp_path: Path, place: int) -> None:
    """T20, O2: at any SQL statement from claim to acknowledgement, inside every transaction on the way."""
    folder = tmp_path / "bench"
    bench = Bench(folder)
    bench.ask_for("a")
    bench.close()

    def cut() -> None:
        wire = Tripwire(place)
        wire.install()
        worker = Bench(folder).worker(later(0))
        wire.armed = True
        worker.drain()

    assert finish(fork(cut)) in (KILLED, 0)
    bench = Bench(folder)
    kept = bench.store.steps(bench.job("a").id)
    paid, stored = bench.calls()["a"], bench.stored()["a"]
    assert stored == ("store" in kept)
    bench.close()
    bench = drained(folder, 2)
    assert (bench.stored(), bench.states()) == (ONE, {JobState.DONE: 1})
    assert bench.calls()["a"] == (paid if "ask" in kept else paid + 1)


def test_workers_race_and_nothing_is_doubled(tmp_path: Path) -> None:
    """T20, O2: four processes over a hundred jobs; each is asked, stored and acknowledged once."""
    folder, count = tmp_path / "bench", 1000 if TORTURE else 100
    keys = [f"k{n}" for n in range(count)]
    bench = Bench(folder)
    bench.ask_for(*keys)
    bench.close()
    children = [fork(partial(work, folder, SystemClock())) for _ in range(4)]
    assert [finish(pid) for pid in children] == [0, 0, 0, 0]
    bench = Bench(folder)
    assert bench.stored() == bench.calls() == Counter(keys)
    assert bench.states() == {JobState.DONE: count}
    assert len({job.worker for job in bench.store.jobs(limit=count)}) > 1


def test_workers_are_killed_at_random_and_replaced(tmp_path: Path) -> None:
    """T20, T06: three at a time, killed without a word again and again; in the end each effect is there once."""
    folder, count = tmp_path / "bench", 400 if TORTURE else 30
    dice = random.Random(7)
    keys = [f"k{n}" for n in range(count)]
    bench = Bench(folder)
    bench.ask_for(*keys, most=1000)
    bench.close()

    def work_on() -> None:
        """Go on until all is done: the jobs of a killed worker are due only when its lease has run out."""
        mine = Bench(folder)
        worker = mine.worker(SystemClock(), lease=timedelta(seconds=0.2))
        until(lambda: worker.drain() == [] and mine.states() == {JobState.DONE: count})

    children = [fork(work_on) for _ in range(3)]
    bench = Bench(folder)
    for goal in range(count // 10, count, max(1, count // 10)):
        until(lambda goal=goal: sum(bench.stored().values()) >= goal)  # type: ignore[misc]
        place = dice.randrange(3)
        kill(children[place])
        children[place] = fork(work_on)
    until(lambda: bench.worker(SystemClock()).drain() == [] and bench.states() == {JobState.DONE: count})
    for pid in children:
        kill(pid)
    assert bench.stored() == Counter(keys)
    assert bench.store.check() == []


def test_a_job_that_kills_its_workers_is_bounded(tmp_path: Path) -> None:
    """T06: deaths are attempts too; the dead letter is there to be seen, and the job beside it is done."""
    folder = tmp_path / "bench"
    bench = Bench(folder)
    bench.ask_for("poison", "good", most=3)
    bench.close()

    def passing(point: str, task: Task) -> None:
        if task.job.key == "poison":
            os.kill(os.getpid(), signal.SIGKILL)

    deaths = 0
    for round in range(10):
        deaths += finish(fork(partial(work, folder, later(2 * round), passing))) == KILLED
    bench = Bench(folder)
    assert deaths == 3
    assert (bench.job("poison").state, bench.job("good").state) == (JobState.DEAD, JobState.DONE)
    assert bench.job("poison").error == "its worker stopped without a word on attempt 3 of 3"
    assert bench.calls() == Counter({"good": 1})


def test_a_zombie_writes_nothing(tmp_path: Path) -> None:
    """T24: stopped past its lease while another finishes the job; awake again, all it writes is refused."""
    folder = tmp_path / "bench"
    bench = Bench(folder)
    bench.ask_for("a")
    bench.close()
    ready_out, ready_in = os.pipe()
    go_out, go_in = os.pipe()

    def zombie() -> None:
        def passing(point: str, task: Task) -> None:
            if point == "journaled":
                os.write(ready_in, b".")
                os.read(go_out, 1)

        worker = Bench(folder).worker(SystemClock(), passing, lease=timedelta(seconds=0.3))
        (run,) = worker.drain()
        assert run.outcome == "lost"

    pid = fork(zombie)
    os.read(ready_out, 1)
    os.kill(pid, signal.SIGSTOP)
    bench = Bench(folder)
    worker = bench.worker(SystemClock())
    until(lambda: worker.step() is not None)
    assert (bench.stored(), bench.job("a").state, bench.job("a").claim) == (ONE, JobState.DONE, 2)
    os.kill(pid, signal.SIGCONT)
    os.write(go_in, b".")
    assert finish(pid) == 0
    assert (bench.stored(), bench.calls(), bench.job("a").claim) == (ONE, ONE, 2)
    assert [p.level for p in bench.store.points(TelemetryQuery(action="job.lost"))] == ["warn"]
    assert bench.store.check() == []


def test_a_lease_is_renewed_while_a_step_takes_long(tmp_path: Path) -> None:
    """T24: as long as its process lives, a job is not taken from a slow worker."""
    folder = tmp_path / "bench"
    bench = Bench(folder)
    bench.ask_for("a")
    lease = timedelta(seconds=0.15)
    leases = set()

    def passing(point: str, task: Task) -> None:
        def beaten() -> bool:
            leases.add(bench.job("a").lease_until)
            return len(leases) > 4

        if point == "claimed":
            until(beaten)

    (run,) = bench.worker(SystemClock(), passing, lease=lease).drain()
    assert (run.outcome, bench.job("a").attempts) == ("done", 1)
