"""A provider that is down: the worker goes on, asks rarely, spends little, and in the end everything is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from lukasa.model.errors import ChatUnavailable
from lukasa.model.events import Actor
from lukasa.model.job import MAX_ATTEMPTS, JobDraft, JobState
from lukasa.ports import Message, Reply, Tool, Usage
from lukasa.service.jobs.allowance import ModelGuard
from lukasa.service.jobs.budget import Budget, Price
from lukasa.service.jobs.task import Task, ask
from lukasa.service.jobs.worker import PATIENCE, WAKE, JobSource, Worker
from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.operations import Enqueue, Transaction
from tests.helpers.making import FixedClock
from tests.helpers.stores import ACTOR

JOBS = 500
HOUR = timedelta(hours=1)


class Provider:
    """Down until a time; then it answers."""

    name = "fake:down"

    def __init__(self, clock: FixedClock, up_at: datetime) -> None:
        self._clock = clock
        self._up_at = up_at
        self.failed = 0
        self.answered = 0

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        if self._clock.now() < self._up_at:
            self.failed += 1
            raise ChatUnavailable("no connection")
        self.answered += 1
        return Reply("{}", usage=Usage(100, 0))


OVERSLEPT = 12  # a machine under load; it also makes an hour pass quickly


class Until:
    """Sleeping moves the clock, by more than was asked for, until it has reached a time."""

    def __init__(self, clock: FixedClock, end: datetime) -> None:
        self._clock = clock
        self._end = end
        self.naps: list[float] = []

    def is_set(self) -> bool:
        return self._clock.now() >= self._end

    def wait(self, timeout: float) -> bool:
        assert timeout > 0  # the worker never spins
        self.naps.append(timeout)
        self._clock.time += timedelta(seconds=timeout * OVERSLEPT)
        return self.is_set()


class Plant:
    """500 jobs that each need one answer, and a worker with a guard."""

    def __init__(self, *, down: timedelta, budget: Budget | None = None, jobs: int = JOBS) -> None:
        self.clock = FixedClock()
        self.store = MemoryStore()
        self.provider = Provider(self.clock, self.clock.now() + down)
        guard = ModelGuard(self.clock, budget or Budget(), self.store.spent)
        source = JobSource("w", self.store, {"work": self.work}, lambda kind: Actor("lukasa", "worker", kind))
        self.worker = Worker(lambda: [source], clock=self.clock, chat=self.provider, allowance=guard, dice=lambda: 0.5)
        drafts = tuple(Enqueue(JobDraft("work", f"k{n}")) for n in range(jobs))
        self.store.apply(Transaction(ACTOR, self.clock.now(), drafts))

    def work(self, task: Task) -> dict[str, Any]:
        ask(task, "ask", "Say nothing.", task.job.key, dict)
        return {}

    def run(self, time: timedelta) -> Until:
        stop = Until(self.clock, self.clock.now() + time)
        self.worker.run(stop)
        return stop


def test_an_hour_without_a_provider() -> None:
    """T06: 500 jobs and nobody answers; the breaker lets through a handful of calls, and after it all are done.

    No job is dead: an outage is nobody's fault.
    """
    plant = Plant(down=HOUR)
    stop = plant.run(HOUR)
    assert plant.provider.failed <= 20
    assert plant.provider.failed <= JOBS * MAX_ATTEMPTS
    assert max(stop.naps) <= WAKE
    assert plant.store.queue_depth() == {JobState.QUEUED: JOBS}
    plant.run(HOUR)
    assert plant.store.queue_depth() == {JobState.DONE: JOBS}
    assert plant.provider.answered == JOBS
    assert max(job.attempts for job in plant.store.jobs(limit=JOBS)) <= MAX_ATTEMPTS


def test_an_outage_without_end_is_bounded() -> None:
    """T06: after a week without an answer attempts count again; the dead letter can be had tried again."""
    plant = Plant(down=timedelta(days=365), jobs=1)
    plant.run(HOUR)
    assert plant.store.queue_depth() == {JobState.QUEUED: 1}
    plant.clock.time += PATIENCE
    plant.run(10 * HOUR)
    assert plant.store.queue_depth() == {JobState.DEAD: 1}
    calls = plant.provider.failed
    plant.run(10 * HOUR)
    assert plant.provider.failed == calls <= 20


def test_a_budget_stops_spending() -> None:
    """T06: when the day's tokens are used, the rest waits for the next day without losing an attempt."""
    plant = Plant(down=timedelta(0), budget=Budget(tokens=20_000))
    plant.run(HOUR)
    assert plant.provider.answered == 200
    waiting = plant.store.jobs(states=[JobState.QUEUED], limit=JOBS)
    assert {(job.attempts, job.error) for job in waiting} == {(0, "the day's budget of 20,000 tokens is spent")}
    assert {job.run_after.isoformat() for job in waiting} == {"2026-11-16T00:00:00+00:00"}
    plant.clock.time = waiting[0].run_after
    plant.run(HOUR)
    assert plant.provider.answered == 400


def test_a_budget_in_money() -> None:
    """T06, T1: what calls cost is recorded where prices are set, and counts."""
    plant = Plant(down=timedelta(0), budget=Budget(cost=0.05, prices={"down": Price(10.0, 0.0)}))
    plant.run(HOUR)
    assert plant.provider.answered == 50
    (spent,) = plant.store.spent("2026-11-15")
    assert round(spent.cost, 6) == 0.05
