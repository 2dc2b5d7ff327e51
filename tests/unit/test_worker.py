"""The worker: one job at a time, every end of an attempt recorded, and nobody waits for the loudest workspace."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lukasa.model.errors import ChatUnavailable, InvalidInput, StoreBusy
from lukasa.model.events import Actor
from lukasa.model.job import Job, JobDraft, JobState
from lukasa.model.telemetry import TelemetryQuery
from lukasa.service.jobs.allowance import NotNow
from lukasa.service.jobs.task import Handler, Task
from lukasa.service.jobs.worker import JobSource, Run, Stop, Trouble, Worker
from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.operations import CancelJob, Enqueue, Transaction
from tests.helpers.making import FixedClock
from tests.helpers.stores import ACTOR


class Shop:
    """A store with one kind of work, a clock that the test moves, and a worker."""

    def __init__(self, work: Handler, **options: Any) -> None:
        self.clock = FixedClock()
        self.store = MemoryStore()
        self.told: list[Run | Trouble] = []
        self.source = JobSource("novel", self.store, {"work": work}, lambda kind: Actor("lukasa", "worker", kind))
        self.worker = Worker(
            lambda: [self.source], clock=self.clock, dice=lambda: 0.0, tell=self.told.append, **options
        )

    def ask(self, *keys: str, kind: str = "work", most: int = 5) -> None:
        drafts = [JobDraft(kind, key, {"key": key}, max_attempts=most) for key in keys]
        self.store.apply(Transaction(ACTOR, self.clock.now(), tuple(Enqueue(d) for d in drafts)))

    def job(self, key: str = "k") -> Job:
        found = self.store.job(key)
        assert found is not None
        return found

    def later(self, **pause: float) -> None:
        self.clock.time += timedelta(**pause)


def failing(error: Exception) -> Callable[[Task], dict[str, Any]]:
    def work(task: Task) -> dict[str, Any]:
        raise error

    return work


def test_a_job_is_done_and_its_result_kept() -> None:
    """O2, T1: the result is with the job, and the attempt has its report."""
    shop = Shop(lambda task: {"n": len(task.job.payload)})
    shop.ask("k")
    (run,) = shop.worker.drain()
    assert (run.outcome, run.result, shop.told) == ("done", {"n": 1}, [run])
    assert (shop.job().state, shop.job().result, shop.job().attempts) == (JobState.DONE, {"n": 1}, 1)
    (point,) = shop.store.points(TelemetryQuery(action="job.done"))
    assert (point.component, point.success, point.metadata["job"]) == ("work", True, run.job.id)
    assert shop.worker.drain() == []


def test_a_failure_is_tried_again_later_each_time_and_not_for_ever() -> None:
    """T06: pauses double, attempts are bounded, and the dead letter says why; never with what the job was about."""
    shop = Shop(failing(InvalidInput("n must be a number")))
    shop.ask("k", most=4)
    waits = []
    while shop.job().state is JobState.QUEUED:
        (run,) = shop.worker.drain()
        waits.append((run.next_run - shop.clock.now()).total_seconds() if run.next_run else None)
        shop.later(hours=2)
    assert waits == [15, 30, 60, None]
    assert (shop.job().state, shop.job().error) == (JobState.DEAD, "invalid-input: n must be a number")
    assert [p.level for p in shop.store.points(TelemetryQuery(action="job.dead"))] == ["error"]
    assert shop.worker.drain() == []


def test_a_providers_pause_is_kept() -> None:
    """T05: whoever answers 429 with Retry-After is not asked sooner."""
    shop = Shop(failing(ChatUnavailable("429", retry_after=600.0)))
    shop.ask("k")
    (run,) = shop.worker.drain()
    assert run.next_run == shop.clock.now() + timedelta(seconds=600)
    shop.later(seconds=599)
    assert shop.worker.drain() == []


def test_a_foreign_error_is_named_without_its_words() -> None:
    """T1: what a library says may quote a memory or a key, so only its name and place are kept."""
    shop = Shop(failing(ValueError("sk-secret and the villain is Malachar")))
    shop.ask("k")
    shop.worker.drain()
    assert shop.job().error.startswith("unexpected ValueError in work, line ")
    assert "Malachar" not in str(shop.store.points(TelemetryQuery()))


def test_not_now_costs_no_attempt() -> None:
    """T06: an open breaker or a spent budget is not the job's fault."""
    shop = Shop(lambda task: {})
    until = shop.clock.now() + timedelta(hours=1)
    shop.source = JobSource("novel", shop.store, {"work": failing(NotNow(until, "budget"))}, shop.source.actor)
    shop.ask("k", most=1)
    (run,) = shop.worker.drain()
    assert (run.outcome, shop.job().attempts, shop.job().run_after, shop.job().error) == (
        "postponed",
        0,
        until,
        "budget",
    )


def test_a_lost_job_is_dropped_with_a_report() -> None:
    """T24: whoever lost the claim writes nothing more, and says so."""

    def work(task: Task) -> dict[str, Any]:
        shop.store.apply(Transaction(ACTOR, shop.clock.now(), (CancelJob(task.job.id, "no longer wanted"),)))
        return {"n": 1}

    shop = Shop(work)
    shop.ask("k")
    (run,) = shop.worker.drain()
    assert (run.outcome, shop.job().state, shop.job().result) == ("lost", JobState.CANCELLED, {})
    assert [p.level for p in shop.store.points(TelemetryQuery(action="job.lost"))] == ["warn"]


def test_a_kind_without_a_handler_waits() -> None:
    """O5: work that this version cannot do is left for one that can."""
    shop = Shop(lambda task: {})
    shop.ask("k", kind="other")
    assert shop.worker.drain() == []
    assert shop.job().state is JobState.QUEUED


def test_workspaces_take_turns() -> None:
    """O2: ninety jobs of one workspace do not hold up the one job of another."""
    shops = [Shop(lambda task: {}) for _ in range(3)]
    for number, shop in enumerate(shops):
        shop.source = JobSource(f"w{number}", shop.store, shop.source.handlers, shop.source.actor)
        shop.ask(*(f"k{n}" for n in range((90, 1, 2)[number])))
    worker = Worker(lambda: [shop.source for shop in shops], clock=shops[0].clock)
    assert [run.workspace for run in worker.drain(limit=6)] == ["w0", "w1", "w2", "w0", "w2", "w0"]
    assert len(worker.drain()) == 87


def test_a_broken_workspace_does_not_stop_the_others() -> None:
    """T06: its store cannot be read; it is told, left alone for a while, and the others are served."""

    class Broken(MemoryStore):
        def next_run(self, kinds: Any = None) -> Any:
            raise StoreBusy("held too long")

    good = Shop(lambda task: {})
    told: list[Run | Trouble] = []
    good.ask("k")
    bad = JobSource("bad", Broken(), good.source.handlers, good.source.actor)
    worker = Worker(lambda: [bad, good.source], clock=good.clock, tell=told.append)
    assert [run.outcome for run in worker.drain()] == ["done"]
    assert told[0] == Trouble("bad", "store-busy: held too long")
    assert len([t for t in told if isinstance(t, Trouble)]) == 1


def test_an_interrupt_puts_the_job_back() -> None:
    """T21: Ctrl-C in the foreground releases the job in hand at once, with its attempt given back."""

    def work(task: Task) -> dict[str, Any]:
        raise KeyboardInterrupt

    shop = Shop(work)
    shop.ask("k")
    with pytest.raises(KeyboardInterrupt):
        shop.worker.drain()
    assert (shop.job().state, shop.job().attempts, shop.job().run_after) == (JobState.QUEUED, 0, shop.clock.now())


class HandBell:
    """A bell that a test rings; nothing else wakes the worker."""

    longest = 3600.0

    def __init__(self) -> None:
        self.asleep, self.rung = threading.Event(), threading.Event()

    def wait(self, stop: Stop, timeout: float) -> None:
        self.asleep.set()
        self.rung.wait()
        self.rung.clear()

    def rang(self, id: str) -> bool:
        return True


def test_a_bell_wakes_a_worker() -> None:
    """O2: a worker that sleeps runs a job that was queued meanwhile as soon as the bell rings."""
    bell, stop = HandBell(), threading.Event()
    done = threading.Event()

    def work(task: Task) -> dict[str, Any]:
        done.set()
        return {}

    shop = Shop(work, bell=bell)
    thread = threading.Thread(target=shop.worker.run, args=(stop,))
    thread.start()
    try:
        assert bell.asleep.wait(30)
        shop.ask("k")
        bell.rung.set()
        assert done.wait(30)
    finally:
        stop.set()
        bell.rung.set()
        thread.join(30)
    assert not thread.is_alive()
    assert shop.job().state is JobState.DONE
