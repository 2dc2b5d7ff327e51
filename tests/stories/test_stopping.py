"""Stopping a worker: the job in hand is finished or put back, and nobody waits for its lease."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa
from lukasa.model.job import JobDraft, JobState
from lukasa.ports import SystemClock
from lukasa.service.call import CallContext
from lukasa.service.jobs import handlers
from lukasa.service.jobs.task import Task
from lukasa.service.jobs.worker import Crew
from lukasa.storage.operations import Enqueue
from lukasa.surfaces.cli.main import cli
from tests.helpers.cli import COMMAND, Shell
from tests.helpers.processes import finish, fork, until
from tests.helpers.work import Bench

JOBS = 50


class Pipes:
    """A job tells here that it has begun, and waits here until it may end."""

    def __init__(self) -> None:
        self._begun = os.pipe()
        self._end = os.pipe()

    def work(self, ctx: CallContext, task: Task) -> dict[str, Any]:
        os.write(self._begun[1], b".")
        os.read(self._end[0], 1)
        return {"stored": 1}

    def await_begin(self) -> None:
        os.read(self._begun[0], 1)

    def let_end(self) -> None:
        os.write(self._end[1], b".")

    def close(self) -> None:
        for end in (*self._begun, *self._end):
            os.close(end)


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    opened = Pipes()
    yield opened
    opened.close()


def ask_for(data: Path, kind: str, count: int) -> None:
    with Lukasa.open(data, embedder="none") as memory:
        ctx = memory.workspace().ctx
        ctx.apply(ctx.local, *(Enqueue(JobDraft(kind, f"{kind}:{n}")) for n in range(count)))


def jobs(data: Path) -> dict[JobState, int]:
    with Lukasa.open(data, embedder="none") as memory:
        return memory.workspace().ctx.local.queue_depth()


def worker_process(data: Path, pipes: Pipes) -> int:
    """`lukasa worker` in a process of its own, with one more kind of work."""

    def serve() -> None:
        handlers.HANDLERS["slow"] = pipes.work
        with pytest.raises(SystemExit) as ended:
            cli.main(["worker", "--data", str(data), "--embedder", "none"])
        assert ended.value.code == 0

    return fork(serve)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_job_in_hand_is_finished(tmp_path: Path, pipes: Pipes, number: signal.Signals) -> None:
    """T21: one signal; the job that is being done is done, the other stays queued, and the command ends well."""
    ask_for(tmp_path, "slow", 2)
    pid = worker_process(tmp_path, pipes)
    pipes.await_begin()
    os.kill(pid, number)
    pipes.let_end()
    assert finish(pid) == 0
    assert jobs(tmp_path) == {JobState.DONE: 1, JobState.QUEUED: 1}


def test_a_second_signal_does_not_wait(tmp_path: Path, pipes: Pipes) -> None:
    """T21: the job in hand is put back at once, as if it had not begun."""
    ask_for(tmp_path, "slow", 1)
    pid = worker_process(tmp_path, pipes)
    pipes.await_begin()
    os.kill(pid, signal.SIGTERM)

    def ended() -> bool:
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            return True
        os.kill(pid, signal.SIGTERM)  # again: two that arrive together may be one
        return False

    until(ended)
    with Lukasa.open(tmp_path, embedder="none") as memory:
        (job,) = memory.workspace().jobs()
    assert (job.state, job.attempts, job.lease_until, job.error) == (
        JobState.QUEUED,
        0,
        None,
        "its worker was stopped",
    )


def test_a_job_that_does_not_end_is_put_back(tmp_path: Path) -> None:
    """T21, T24: after a while the crew stops waiting; what the thread writes after that is refused."""
    bench = Bench(tmp_path / "bench")
    bench.ask_for("a")
    begun, go, stop = threading.Event(), threading.Event(), threading.Event()
    runs: list[Any] = []

    def passing(point: str, task: Task) -> None:
        if point == "journaled":
            begun.set()
            go.wait()

    worker = bench.worker(SystemClock(), passing, lease=timedelta(minutes=5), tell=runs.append)
    crew = Crew([worker])
    served: list[bool] = []
    thread = threading.Thread(target=lambda: served.append(crew.serve(stop, threading.Event(), grace=0.01)))
    thread.start()
    begun.wait()
    stop.set()
    thread.join()
    assert served == [False]
    assert (bench.job("a").state, bench.job("a").attempts) == (JobState.QUEUED, 0)
    assert [run.outcome for run in bench.worker(SystemClock()).drain()] == ["done"]
    go.set()
    until(lambda: bool(runs))
    assert (runs[0].outcome, bench.stored(), bench.calls()) == ("lost", {"a": 1}, {"a": 1})


def test_many_jobs_and_a_stop_in_the_middle(tmp_path: Path) -> None:
    """T21: a real command among fifty jobs; each is done or waits, none is held, and the next worker does the rest."""
    shell = Shell(tmp_path)
    ask_for(tmp_path, "tidy", JOBS)
    command = [*COMMAND, "worker", "--json"]
    child = subprocess.Popen(
        command, env=shell.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    rest, complaints = child.communicate(timeout=30)
    assert (child.returncode, complaints) == (0, "")
    done = 1 + len(rest.splitlines())
    left = {JobState.QUEUED: JOBS - done} if done < JOBS else {}
    assert jobs(tmp_path) == {JobState.DONE: done, **left}
    told = shell.run("worker", "--once").splitlines()
    assert jobs(tmp_path) == {JobState.DONE: JOBS}
    assert len([line for line in told if line.startswith("done")]) == JOBS - done


def test_a_single_pass_is_interrupted(tmp_path: Path, pipes: Pipes) -> None:
    """T21: `worker --once` puts its job back on a signal too."""
    ask_for(tmp_path, "slow", 1)

    def serve() -> None:
        handlers.HANDLERS["slow"] = pipes.work
        with pytest.raises(SystemExit) as ended:
            cli.main(["worker", "--once", "--data", str(tmp_path), "--embedder", "none"])
        assert ended.value.code == 130

    pid = fork(serve)
    pipes.await_begin()
    os.kill(pid, signal.SIGTERM)
    assert finish(pid) == 0
    assert jobs(tmp_path) == {JobState.QUEUED: 1}
