"""Stopping a worker or a server: what is in hand is finished or put back, and nobody waits for a lease."""

from __future__ import annotations

import os
import signal
import socket
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
from lukasa.surfaces.http import verb_routes
from tests.helpers.cli import COMMAND, Shell
from tests.helpers.processes import finish, fork, until
from tests.helpers.server import Answer, Client, raw_request
from tests.helpers.work import Bench

JOBS = 50


class Pipes:
    """A job tells here that it has begun, and waits here until it may end."""

    def __init__(self) -> None:
        self._begun = os.pipe()
        self._end = os.pipe()

    def work(self, ctx: CallContext, task: Task) -> dict[str, Any]:
        self.wait()
        return {"stored": 1}

    def await_begin(self) -> None:
        os.read(self._begun[0], 1)

    def wait(self) -> None:
        """Begin, and wait for the end, where it is not a job that does."""
        os.write(self._begun[1], b".")
        os.read(self._end[0], 1)

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


# A server

ENTRIES = "/v1/workspaces/main/entries"


class Served:
    """`lukasa serve` in a process of its own, in which reading entries takes until the pipes let it end."""

    def __init__(self, data: Path, pipes: Pipes, *options: str) -> None:
        with Lukasa.open(data, embedder="none") as memory:
            memory.workspace()
            self.token = memory.access.create("claude", workspaces=["main"], can=["read", "write"]).token
        real = verb_routes._answer

        def slow(authenticator: Any, asked: Any) -> Any:
            if asked.verb.name == "memory_list":
                pipes.wait()
            return real(authenticator, asked)

        def serve() -> None:
            verb_routes._answer = slow
            handlers.HANDLERS["slow"] = pipes.work
            with pytest.raises(SystemExit) as ended:
                cli.main(["serve", "--port", "0", "--no-open", "--data", str(data), "--embedder", "none", *options])
            assert ended.value.code == 0

        self.pid = fork(serve)
        self.answers: list[Answer] = []
        until(lambda: any(data.glob("account/serve-*.sock")))
        (link,) = data.glob("account/serve-*.sock")
        self.port = int(link.stem.partition("-")[2])

    @property
    def client(self) -> Client:
        return Client(self.port, {"authorization": f"Bearer {self.token}"})

    def ask(self) -> threading.Thread:
        """Ask for the entries in a thread, which takes its answer."""

        def asked() -> None:
            try:
                self.answers.append(self.client.get(ENTRIES))
            except OSError:
                return  # the process ended first

        thread = threading.Thread(target=asked)
        thread.start()
        return thread

    def signal(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def refuses(self) -> bool:
        with socket.socket() as wire:
            return wire.connect_ex(("127.0.0.1", self.port)) != 0


def test_a_request_in_progress_gets_its_answer(tmp_path: Path, pipes: Pipes) -> None:
    """U4: after SIGTERM nobody new is let in, the request that works gets its answer, and the process exits 0."""
    served = Served(tmp_path, pipes, "--no-worker")
    asking = served.ask()
    pipes.await_begin()
    served.signal()
    until(served.refuses)
    pipes.let_end()
    asking.join()
    assert [answer.status for answer in served.answers] == [200]
    assert finish(served.pid) == 0


def test_a_request_that_still_arrives_gets_its_answer(tmp_path: Path, pipes: Pipes) -> None:
    """U4: the head came before SIGTERM and the body after it; what the answer acknowledges is stored."""
    served = Served(tmp_path, pipes, "--no-worker")
    headers = {"Host": f"127.0.0.1:{served.port}", "Content-Type": "application/json", **served.client.headers}
    request = raw_request("POST", ENTRIES, headers, b'{"content": "The harbour freezes in January"}')
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as wire:
        wire.sendall(request[:-10])
        assert served.client.get("/live").status == 200  # so the server has seen the head by now
        served.signal()
        until(served.refuses)
        wire.sendall(request[-10:])
        reply = b"".join(iter(lambda: wire.recv(65536), b""))
    assert reply.startswith(b"HTTP/1.1 201 ")
    assert finish(served.pid) == 0
    with Lukasa.open(tmp_path, embedder="none") as memory:
        assert [hit.entry.content for hit in memory.workspace().read("harbour").hits] == [
            "The harbour freezes in January"
        ]


def test_a_second_signal_does_not_wait_for_a_request(tmp_path: Path, pipes: Pipes) -> None:
    """U4: the process ends although a thread still works on it, and says so to the client."""
    served = Served(tmp_path, pipes, "--no-worker")
    asking = served.ask()
    pipes.await_begin()
    served.signal()
    until(served.refuses)
    served.signal()
    assert finish(served.pid) == 0
    asking.join()
    assert [(answer.status, answer.json["type"]) for answer in served.answers] == [(503, "stopped")]


def test_a_request_that_never_ends_does_not_hold_a_stop(tmp_path: Path, pipes: Pipes) -> None:
    """U4: one signal is enough: the wait for requests has a bound."""
    served = Served(tmp_path, pipes, "--no-worker")
    asking = served.ask()
    pipes.await_begin()
    served.signal()
    assert finish(served.pid) == 0
    asking.join()


def test_a_server_that_drains_serves_on(tmp_path: Path, pipes: Pipes) -> None:
    """U4: /ready says at once that it stops, for the balancer; clients that still come are served until then."""
    served = Served(tmp_path, pipes, "--no-worker", "--drain", "3600")
    assert served.client.get("/ready").status == 200
    served.signal()
    until(lambda: served.client.get("/ready").status == 503)
    told = served.client.get("/ready").json
    assert (told["type"], told["part"], told["detail"]) == ("not-ready", "server", "the server is stopping")
    assert served.client.get("/live").status == 200
    assert served.client.post(ENTRIES, {"content": "The harbour freezes in January"}).status == 201
    served.signal()
    assert finish(served.pid) == 0


def test_a_drain_ends_by_itself(tmp_path: Path, pipes: Pipes) -> None:
    """U4: after the time of the drain the server stops as without one."""
    served = Served(tmp_path, pipes, "--no-worker", "--drain", "0.01")
    served.signal()
    assert finish(served.pid) == 0


def test_a_server_finishes_the_job_in_hand(tmp_path: Path, pipes: Pipes) -> None:
    """U4, T21: the worker beside the server stops with it; the other job stays queued."""
    ask_for(tmp_path, "slow", 2)
    served = Served(tmp_path, pipes)
    pipes.await_begin()
    served.signal()
    until(served.refuses)
    pipes.let_end()
    assert finish(served.pid) == 0
    assert jobs(tmp_path) == {JobState.DONE: 1, JobState.QUEUED: 1}


def test_a_server_in_a_hurry_puts_the_job_back(tmp_path: Path, pipes: Pipes) -> None:
    """U4, T21: a second signal waits for no job; it is queued again as if it had not begun."""
    ask_for(tmp_path, "slow", 1)
    served = Served(tmp_path, pipes)
    pipes.await_begin()
    served.signal()
    until(served.refuses)
    served.signal()
    assert finish(served.pid) == 0
    assert jobs(tmp_path) == {JobState.QUEUED: 1}
