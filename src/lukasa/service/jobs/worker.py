"""The worker: claims due jobs of every workspace in turn, runs them, and records what became of each.

    drain / run     until nothing is due / until told to stop
    └ _look         asks each workspace which work its triggers want
    └ step          one job of the next workspace that has one
      └ _attempt    the handler, with the lease renewed while it runs
        └ _record   finished, failed, put back, or lost

Any number of workers may run, in threads and processes: a claim is one transaction, and everything a job writes
carries the number of its claim. Nothing needs to be done after a crash, because a lease that ran out is free.
"""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from lukasa.model.errors import ChatUnavailable, LostClaim, LukasaError, StoreError
from lukasa.model.events import Actor
from lukasa.model.job import Job, JobDraft
from lukasa.model.telemetry import Level
from lukasa.ports import Chat, Clock, Span, no_span
from lukasa.service.jobs.allowance import LONGEST_ASKED, Allowance, NotNow
from lukasa.service.jobs.task import Handler, Task
from lukasa.storage.operations import Enqueue, FailJob, FinishJob, Operation, PostponeJob, Transaction
from lukasa.storage.port import Store

LEASE = timedelta(seconds=60)
LOOK = timedelta(seconds=30)  # how often triggers are asked
WAKE = 1.0  # seconds; the longest sleep, since another process may ask for work at any time
PATIENCE = timedelta(days=7)  # for which an outage costs a job no attempts
LONGEST_ERROR = 500

Outcome = Literal["done", "failed", "dead", "postponed", "lost"]
Wanted = Callable[[datetime, datetime | None], Sequence[JobDraft]]


class Station(Struct, frozen=True):
    """A workspace as a worker sees it: its store, what can be done there, and what its triggers want done."""

    workspace: str
    store: Store
    handlers: Mapping[str, Handler]
    actor: Callable[[str], Actor]
    wanted: Wanted = lambda now, started: ()


class Run(Struct, frozen=True):
    """One attempt at a job and what became of it. `job` is as it was claimed."""

    workspace: str
    job: Job
    outcome: Outcome
    duration_ms: float
    result: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    next_run: datetime | None = None


class Trouble(Struct, frozen=True):
    """A workspace that could not be worked on for now; the others go on."""

    workspace: str
    error: str


class Stop(Protocol):
    """A `threading.Event`, or what a test puts in its place."""

    def is_set(self) -> bool: ...
    def wait(self, timeout: float) -> bool: ...


Tell = Callable[[Run | Trouble], None]


class Worker:
    def __init__(
        self,
        stations: Callable[[], Sequence[Station]],
        *,
        clock: Clock,
        chat: Chat | None = None,
        allowance: Allowance | None = None,
        name: str = "",
        lease: timedelta = LEASE,
        dice: Callable[[], float] = random.random,
        tell: Tell = lambda what: None,
        span: Span = no_span,
    ) -> None:
        self.name = name or f"{os.getpid()}-{secrets.token_hex(3)}"
        self._stations = stations
        self._clock = clock
        self._chat = chat
        self._allowance = allowance or Allowance()
        self._lease = lease
        self._dice = dice
        self._tell = tell
        self._span = span
        self._turn = 0
        self._looked: dict[str, datetime] = {}
        self._resting: dict[str, datetime] = {}
        self._hand: tuple[Station, Job] | None = None
        self._letting_go = threading.Lock()

    # Loops

    def drain(self, limit: int | None = None) -> list[Run]:
        """Work until nothing is due; returns what was done. Work that is only due later is left for then."""
        done: list[Run] = []
        while limit is None or len(done) < limit:
            before = len(done)
            stations = self._stations()
            for station in stations:
                self._look(station, None)
            while (limit is None or len(done) < limit) and (run := self.step(stations)) is not None:
                done.append(run)
            if len(done) == before:
                break
        return done

    def run(self, stop: Stop) -> None:
        """Work until `stop` is set. In between it sleeps until the next job is due, and at most a second."""
        started = self._clock.now()
        while not stop.is_set():
            try:
                pause = self._pass(started)
            except Exception as error:  # noqa: BLE001 - a worker outlives whatever befalls the account it serves
                self._tell(Trouble("", said(error)))
                pause = WAKE
            if pause:
                stop.wait(pause)

    def _pass(self, started: datetime) -> float:
        """One job, if one is due; how long to sleep if none is."""
        stations = self._stations()
        for station in stations:
            if self._clock.now() - self._looked.get(station.workspace, started - LOOK) >= LOOK:
                self._look(station, started)
        return self._idle(stations) if self.step(stations) is None else 0.0

    def step(self, stations: Sequence[Station] | None = None) -> Run | None:
        """One job of the next workspace that has one due, in turn; None if none has."""
        stations = self._stations() if stations is None else stations
        for offset in range(len(stations)):
            place = (self._turn + offset) % len(stations)
            station = stations[place]
            job = self._claim(station)
            if job is not None:
                self._turn = place + 1
                return self._attempt(station, job)
        return None

    def release(self) -> bool:
        """Put back the job in hand, from another thread: this worker is being stopped. Whether there was one."""
        with self._letting_go:
            held, self._hand = self._hand, None
        if held is None:
            return False
        station, job = held
        now = self._clock.now()
        try:
            self._apply(station, job.kind, PostponeJob(job.id, job.claim, now, "its worker was stopped"))
        except LukasaError:
            return False  # the lease runs out by itself
        return True

    # One job

    def _claim(self, station: Station) -> Job | None:
        now = self._clock.now()
        if self._resting.get(station.workspace, now) > now:
            return None
        try:
            kinds = tuple(station.handlers)
            due = station.store.next_run(kinds)
            if due is None or due > now:
                return None  # looking is free; claiming takes the write lock
            return station.store.claim_job(self.name, now=now, lease_until=now + self._lease, kinds=kinds)
        except LukasaError as error:
            self._trouble(station, error)
            return None

    def _attempt(self, station: Station, job: Job) -> Run:
        actor = station.actor(job.kind)
        task = Task(job, station.store, self._clock, actor, self._chat, self._allowance, self._span)
        began = time.monotonic()
        self._hand = (station, job)
        try:
            with Heartbeat(lambda: self._renew(station, job), self._lease.total_seconds() / 3):
                run = self._outcome(station, task)
        except BaseException:
            self.release()  # a signal in the foreground: the job is nobody's fault, and somebody else's now
            raise
        finally:
            self._hand = None
        return self._record(station, task, run, (time.monotonic() - began) * 1000)

    def _outcome(self, station: Station, task: Task) -> Run:
        job = task.job
        try:
            with task.span(f"job.{job.kind}", {"lukasa.job": job.id, "lukasa.attempt": job.attempts}):
                result = station.handlers[job.kind](task)
        except LostClaim as error:
            return Run(station.workspace, job, "lost", 0.0, error=said(error))
        except NotNow as later:
            return Run(station.workspace, job, "postponed", 0.0, error=later.reason, next_run=later.until)
        except ChatUnavailable as error:
            return self._unanswered(station, job, error)
        except Exception as error:  # noqa: BLE001 - the worker's own handler: whatever a job does, the worker goes on
            return self._failed(station, job, error)
        return Run(station.workspace, job, "done", 0.0, result=result)

    def _unanswered(self, station: Station, job: Job, error: ChatUnavailable) -> Run:
        """While nobody gets an answer, it is not this job's fault: a week offline must not end in dead letters."""
        until = self._allowance.blocked(self._chat) if self._chat is not None else None
        if until is None or self._clock.now() - job.created_at >= PATIENCE:
            return self._failed(station, job, error, error.retry_after)
        return Run(station.workspace, job, "postponed", 0.0, error=said(error), next_run=until)

    def _failed(self, station: Station, job: Job, error: Exception, asked: float | None = None) -> Run:
        over = job.attempts >= job.max_attempts
        until = None if over else self._clock.now() + pause(job.attempts, self._dice(), asked)
        return Run(station.workspace, job, "dead" if over else "failed", 0.0, error=said(error), next_run=until)

    def _record(self, station: Station, task: Task, run: Run, took: float) -> Run:
        """The end of an attempt and its report, in one commit. If the claim is gone, only the report."""
        job = run.job
        end: tuple[Operation, ...] = ()
        level: Level = "info"
        match run.outcome:
            case "done":
                end = (FinishJob(job.id, job.claim, dict(run.result)),)
            case "failed" | "dead":
                end, level = (FailJob(job.id, job.claim, run.error, run.next_run),), "error"
            case "postponed":
                until = run.next_run or self._clock.now()
                end, level = (PostponeJob(job.id, job.claim, until, run.error),), "debug"
            case "lost":
                level = "warn"
        about = {"error": run.error} if run.error else {}
        success = run.outcome in ("done", "postponed")
        point = task.point(f"job.{run.outcome}", success=success, level=level, duration_ms=took, metadata=about)
        done = Run(run.workspace, job, run.outcome, took, run.result, run.error, run.next_run)
        try:
            self._apply(station, job.kind, *end, point)
        except LostClaim as error:
            return self._record(station, task, Run(run.workspace, job, "lost", 0.0, error=said(error)), took)
        except LukasaError as error:
            # It could not be written down: the lease runs out, and the job is taken up again with its journal.
            self._trouble(station, error)
        self._tell(done)
        return done

    def _renew(self, station: Station, job: Job) -> bool:
        return station.store.renew_lease(job.id, job.claim, self._clock.now() + self._lease)

    # Triggers

    def _look(self, station: Station, started: datetime | None) -> None:
        """Ask for the work that is wanted now. What was asked for before, by whomever, is not asked for again."""
        now = self._clock.now()
        self._looked[station.workspace] = now
        try:
            drafts = [draft for draft in station.wanted(now, started) if draft.kind in station.handlers]
            new = [draft for draft in drafts if station.store.job(draft.key) is None]
            if new:
                self._apply(station, "triggers", *(Enqueue(draft) for draft in new))
        except LukasaError as error:
            self._trouble(station, error)

    def _idle(self, stations: Sequence[Station]) -> float:
        now, soonest = self._clock.now(), WAKE
        for station in stations:
            try:
                due = station.store.next_run(tuple(station.handlers))
            except LukasaError as error:
                self._trouble(station, error)
                continue
            if due is not None and due > now:
                soonest = min(soonest, (due - now).total_seconds())
        return soonest

    def _trouble(self, station: Station, error: LukasaError) -> None:
        self._resting[station.workspace] = self._clock.now() + LOOK
        self._tell(Trouble(station.workspace, said(error)))

    def _apply(self, station: Station, kind: str, *operations: Operation) -> None:
        station.store.apply(Transaction(station.actor(kind), self._clock.now(), operations))


def said(error: Exception) -> str:
    """An error as it is kept with a job: its code and message if it is ours, else what it was and where.

    The message of a foreign error may quote what it was given, which is nothing for a log.
    """
    if isinstance(error, LukasaError):
        return f"{error.code}: {error.message}"[:LONGEST_ERROR]
    frames = traceback.extract_tb(error.__traceback__)
    where = (
        f" in {frames[-1].name}, line {frames[-1].lineno} of {os.path.basename(frames[-1].filename)}" if frames else ""
    )
    return f"unexpected {type(error).__name__}{where}"[:LONGEST_ERROR]


GRACE = 8.0  # seconds; whoever stops us usually kills after ten
_GLANCE = 0.05


class Crew:
    def __init__(self, workers: Sequence[Worker]) -> None:
        self.workers = tuple(workers)

    def serve(self, stop: threading.Event, hurry: threading.Event, *, grace: float = GRACE) -> bool:
        """Work until `stop` is set, then let each worker finish its job, for `grace` seconds or until `hurry` is set.

        Whether all of them did. A job that was not finished is put back, and what its thread still tries to write for
        it is refused; the thread itself ends with the process.
        """
        threads = [
            threading.Thread(target=partial(w.run, stop), name="lukasa-worker", daemon=True) for w in self.workers
        ]
        for thread in threads:
            thread.start()
        stop.wait()
        ends = time.monotonic() + grace
        while any(t.is_alive() for t in threads) and time.monotonic() < ends and not hurry.wait(_GLANCE):
            pass
        at_work = [worker for worker, thread in zip(self.workers, threads, strict=True) if thread.is_alive()]
        for worker in at_work:
            worker.release()
        return not at_work


class Heartbeat:
    """Calls `renew` every so many seconds from a thread of its own, until the work ends or the claim is lost."""

    def __init__(self, renew: Callable[[], bool], every: float) -> None:
        self._renew = renew
        self._every = every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lukasa-lease", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(self._every):
            try:
                if not self._renew():
                    return  # somebody else has the job now; the next write of this one will be refused
            except StoreError:
                continue  # the file is busy or full; there is a beat or two before the lease runs out


FIRST = 30.0  # seconds
LONGEST = 3600.0


def pause(attempt: int, dice: float, asked: float | None = None) -> timedelta:
    """The pause after the `attempt`-th failure. `dice` in [0, 1) spreads jobs that failed together."""
    doubled = min(FIRST * 2.0 ** min(attempt - 1, 30), LONGEST)
    seconds = doubled * (0.5 + 0.5 * dice)
    if asked is not None:
        seconds = max(seconds, min(asked, LONGEST_ASKED) * (1.0 + 0.1 * dice))
    return timedelta(seconds=seconds)
