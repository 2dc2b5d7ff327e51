"""A job that behaves like those of the pipeline, for tests that end processes in the middle of it.

It asks a model, journals the answer, stores an entry in one commit with the journal, and is acknowledged. Between any
two of these it passes a named point, at which a test may end it. Every call of the model is one line of a file, which
no crash takes back.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from lukasa.model.events import Actor
from lukasa.model.job import Job, JobDraft, JobState
from lukasa.model.selection import Selection
from lukasa.ports import Clock, Message, Reply, Tool, Usage
from lukasa.service.jobs.task import Task, ask
from lukasa.service.jobs.worker import JobSource, Worker
from lukasa.storage.operations import Enqueue, Transaction
from lukasa.storage.sqlite import SqliteStore
from tests.helpers.making import FixedClock
from tests.helpers.stores import ACTOR, WORK, entry, put

POINTS = ("claimed", "replied", "journaled", "stored")
LEASE = timedelta(seconds=60)
Passing = Callable[[str, Task], object]


class Model:
    """Answers everything, and leaves a line for each call before it does."""

    name = "fake:counting"

    def __init__(self, calls: Path, replied: Callable[[], object] = lambda: None) -> None:
        self._calls = calls
        self._replied = replied

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        with self._calls.open("a") as log:
            log.write(messages[-1].content + "\n")
        self._replied()
        return Reply('{"said": "yes"}', usage=Usage(100, 10))


class Bench:
    """A workspace's store in a folder, and workers on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._calls = folder / "calls"
        if not folder.exists():
            SqliteStore(folder / "store", role="workspace", create=True).close()
        self.store = SqliteStore(folder / "store", role="workspace", create=False)

    def ask_for(self, *keys: str, most: int = 5) -> None:
        drafts = (JobDraft("work", key, {"key": key}, max_attempts=most) for key in keys)
        self.store.apply(Transaction(ACTOR, FixedClock().now(), tuple(Enqueue(draft) for draft in drafts)))

    def worker(self, clock: Clock, passing: Passing = lambda point, task: None, **options: Any) -> Worker:
        held: list[Task] = []

        def work(task: Task) -> dict[str, Any]:
            held[:] = [task]
            passing("claimed", task)
            answer = ask(task, "ask", "Say yes.", task.job.payload["key"], lambda data: str(data["said"]))
            passing("journaled", task)
            if not task.journaled("store"):
                task.commit("store", 1, put(entry(f"{task.job.key} {answer}")))
            passing("stored", task)
            return {"stored": 1}

        model = Model(self._calls, lambda: passing("replied", held[0]))
        source = JobSource("bench", self.store, {"work": work}, lambda kind: Actor("lukasa", "worker", kind))
        return Worker(lambda: [source], clock=clock, chat=model, dice=lambda: 0.0, **options)

    def calls(self) -> Counter[str]:
        return Counter(self._calls.read_text().split()) if self._calls.exists() else Counter()

    def stored(self) -> Counter[str]:
        found = self.store.find(Selection((WORK,), owners=None), limit=10_000)
        return Counter(e.content.split()[0] for e in found)

    def job(self, key: str) -> Job:
        found = self.store.job(key)
        assert found is not None
        return found

    def states(self) -> dict[JobState, int]:
        return self.store.queue_depth()

    def close(self) -> None:
        self.store.close()


def later(minutes: float) -> FixedClock:
    """A clock that stands still, so many minutes after the jobs were asked for."""
    clock = FixedClock()
    clock.time += timedelta(minutes=minutes)
    return clock


def kill_at(point: str) -> Passing:
    """Ends the process without a word when a job passes the point."""

    def passing(here: str, task: Task) -> None:
        if here == point:
            os.kill(os.getpid(), 9)

    return passing
