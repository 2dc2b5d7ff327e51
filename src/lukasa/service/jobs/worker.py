"""The worker: claim due jobs of every workspace in turn, run them, and record the outcome of each.

    drain / run     until nothing is due / until told to stop
    └ _look         ask each workspace which jobs its triggers want
    └ step          one job of the next workspace that has one
      └ _attempt    the handler, while a thread renews the lease
        └ _record   finished, failed, put back, or lost

Any number of workers may run, in threads and processes: a claim is one transaction, and every write of a job carries
the number of its claim (a fencing token). After a crash nothing needs to be done: another worker takes the job when its
lease has run out.
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
LOOK = timedelta(seconds=30)  # how often a worker checks triggers
WAKE = 1.0  # seconds; the longest sleep without a bell, because another process may queue a job at any time
PATIENCE = timedelta(days=7)  # an outage up to this long costs a job no attempts
LONGEST_ERROR = 500

Outcome = Literal["done", "failed", "dead", "postponed", "lost"]
Wanted = Callable[[datetime, datetime | None], Sequence[JobDraft]]


class JobSource(Struct, frozen=True):
    """A workspace as a worker sees it: its store, its handlers, and the jobs that its triggers want."""

    workspace: str
    store: Store
    handlers: Mapping[str, Handler]
    actor: Callable[[str], Actor]
    wanted: Wanted = lambda now, started: ()
    id: str = ""  # as the bell calls it


class Run(Struct, frozen=True):
    """One attempt at a job, and its outcome. `job` is as it was claimed."""

    workspace: str
    job: Job
    outcome: Outcome
    duration_ms: float
    result: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    next_run: datetime | None = None


class Trouble(Struct, frozen=True):
    """An error that keeps a worker from one workspace for now; it goes on with the others."""

    workspace: str
    error: str


class Stop(Protocol):
    """A `threading.Event`, or a test's substitute."""

    def is_set(self) -> bool: ...
    def wait(self, timeout: float) -> bool: ...


Tell = Callable[[Run | Trouble], None]


class Bell(Protocol):
    """Wake workers when a job was queued, also by another process; a database can do that."""

    @property
    def longest(self) -> float:
        """Seconds that a worker may sleep, since the bell wakes it; it looks at triggers more often in any case."""
        ...

    def wait(self, stop: Stop, timeout: float) -> None:
        """Return when a job was queued, when `stop` is set, or after `timeout` seconds."""
        ...

    def rang(self, id: str) -> bool:
        """Say whether a workspace may have queued a job since this thread last asked about it."""
        ...


class NoBell:
    """Sleep until the time is over: a worker then looks for jobs once in a second, in every workspace."""

    longest = WAKE

    def rang(self, id: str) -> bool:
        return True

    def wait(self, stop: Stop, timeout: float) -> None:
        stop.wait(timeout)


class Worker:
    """Run the due jobs of all workspaces, one at a time."""

    def __init__(
        self,
        sources: Callable[[], Sequence[JobSource]],
        *,
        clock: Clock,
        chat: Chat | None = None,
        allowance: Allowance | None = None,
        name: str = "",
        lease: timedelta = LEASE,
        dice: Callable[[], float] = random.random,
        tell: Tell = lambda what: None,
        span: Span = no_span,
        bell: Bell | None = None,
    ) -> None:
        self.name = name or f"{os.getpid()}-{secrets.token_hex(3)}"
        self._sources = sources
        self._clock = clock
        self._chat = chat
        self._allowance = allowance or Allowance()
        self._lease = lease
        self._dice = dice
        self._tell = tell
        self._span = span
        self._bell = bell or NoBell()
        self._turn = 0
        self._looked: dict[str, datetime] = {}
        self._due: dict[str, tuple[datetime, datetime | None]] = {}  # when a workspace was asked, and what it said
        self._resting: dict[str, datetime] = {}
        self._hand: tuple[JobSource, Job] | None = None
        self._letting_go = threading.Lock()

    # Loops

    def drain(self, limit: int | None = None) -> list[Run]:
        """Work until nothing is due now, and return the runs."""
        done: list[Run] = []
        while limit is None or len(done) < limit:
            before = len(done)
            sources = self._sources()
            for source in sources:
                self._look(source, None)
            while (limit is None or len(done) < limit) and (run := self.step(sources)) is not None:
                done.append(run)
            if len(done) == before:
                break
        return done

    def run(self, stop: Stop) -> None:
        """Work until `stop` is set. With nothing due, sleep until the next job is, or until the bell rings."""
        started = self._clock.now()
        while not stop.is_set():
            try:
                pause = self._pass(started)
            except Exception as error:  # noqa: BLE001 - the worker must survive every error of the account
                self._tell(Trouble("", said(error)))
                pause = WAKE
            if pause:
                self._bell.wait(stop, pause)

    def _pass(self, started: datetime) -> float:
        """Run one job if one is due; return how long to sleep if none is."""
        sources = self._sources()
        for source in sources:
            if self._clock.now() - self._looked.get(source.workspace, started - LOOK) >= LOOK:
                self._look(source, started)
        return self._idle(sources) if self.step(sources) is None else 0.0

    def step(self, sources: Sequence[JobSource] | None = None) -> Run | None:
        """Run one job of the next workspace that has one due, in turn; None if none has."""
        sources = self._sources() if sources is None else sources
        for offset in range(len(sources)):
            position = (self._turn + offset) % len(sources)
            source = sources[position]
            job = self._claim(source)
            if job is not None:
                self._turn = position + 1
                return self._attempt(source, job)
        return None

    def release(self) -> bool:
        """Put back the job that runs, from another thread that stops this worker. Return whether there was one."""
        with self._letting_go:
            held, self._hand = self._hand, None
        if held is None:
            return False
        source, job = held
        now = self._clock.now()
        try:
            self._apply(source, job.kind, PostponeJob(job.id, job.claim, now, "its worker was stopped"))
        except LukasaError:
            return False  # the lease runs out by itself
        return True

    # One job

    def _claim(self, source: JobSource) -> Job | None:
        now = self._clock.now()
        if self._resting.get(source.workspace, now) > now:
            return None
        try:
            due = self._next_run(source, now)
            if due is None or due > now:
                return None  # a look takes no lock; a claim takes the write lock
            kinds = tuple(source.handlers)
            self._due.pop(source.workspace, None)
            return source.store.claim_job(self.name, now=now, lease_until=now + self._lease, kinds=kinds)
        except LukasaError as error:
            self._trouble(source, error)
            return None

    def _next_run(self, source: JobSource, now: datetime) -> datetime | None:
        """Return when the next job of a workspace is due. While its bell is silent, what it said a moment ago stands:
        a worker of a thousand workspaces must not ask all of them each time that one has work."""
        rang, known = self._bell.rang(source.id), self._due.get(source.workspace)
        if known is not None and not rang and now - known[0] < LOOK and (known[1] is None or known[1] > now):
            return known[1]
        due = source.store.next_run(tuple(source.handlers))
        self._due[source.workspace] = now, due
        return due

    def _attempt(self, source: JobSource, job: Job) -> Run:
        actor = source.actor(job.kind)
        task = Task(job, source.store, self._clock, actor, self._chat, self._allowance, self._span)
        began = time.monotonic()
        self._hand = (source, job)
        try:
            with Heartbeat(lambda: self._renew(source, job), self._lease.total_seconds() / 3):
                run = self._outcome(source, task)
        except BaseException:
            self.release()  # a signal in the foreground: another worker may take the job at once
            raise
        finally:
            self._hand = None
        return self._record(source, task, run, (time.monotonic() - began) * 1000)

    def _outcome(self, source: JobSource, task: Task) -> Run:
        job = task.job
        try:
            with task.span(f"job.{job.kind}", {"lukasa.job": job.id, "lukasa.attempt": job.attempts}):
                result = source.handlers[job.kind](task)
        except LostClaim as error:
            return Run(source.workspace, job, "lost", 0.0, error=said(error))
        except NotNow as later:
            return Run(source.workspace, job, "postponed", 0.0, error=later.reason, next_run=later.until)
        except ChatUnavailable as error:
            return self._unanswered(source, job, error)
        except Exception as error:  # noqa: BLE001 - the worker must survive every error of a job
            return self._failed(source, job, error)
        return Run(source.workspace, job, "done", 0.0, result=result)

    def _unanswered(self, source: JobSource, job: Job, error: ChatUnavailable) -> Run:
        """Postpone a job while the model answers nobody: a week offline must not kill jobs."""
        until = self._allowance.blocked(self._chat) if self._chat is not None else None
        if until is None or self._clock.now() - job.created_at >= PATIENCE:
            return self._failed(source, job, error, error.retry_after)
        return Run(source.workspace, job, "postponed", 0.0, error=said(error), next_run=until)

    def _failed(self, source: JobSource, job: Job, error: Exception, asked: float | None = None) -> Run:
        over = job.attempts >= job.max_attempts
        until = None if over else self._clock.now() + pause(job.attempts, self._dice(), asked)
        return Run(source.workspace, job, "dead" if over else "failed", 0.0, error=said(error), next_run=until)

    def _record(self, source: JobSource, task: Task, run: Run, took: float) -> Run:
        """Commit the end of an attempt with its telemetry event; if the claim is lost, commit the event alone."""
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
        point = task.telemetry(f"job.{run.outcome}", success=success, level=level, duration_ms=took, metadata=about)
        done = Run(run.workspace, job, run.outcome, took, run.result, run.error, run.next_run)
        try:
            self._apply(source, job.kind, *end, point)
        except LostClaim as error:
            return self._record(source, task, Run(run.workspace, job, "lost", 0.0, error=said(error)), took)
        except LukasaError as error:
            # The outcome is not recorded: the lease runs out, and a worker resumes the job with its journal.
            self._trouble(source, error)
        self._tell(done)
        return done

    def _renew(self, source: JobSource, job: Job) -> bool:
        return source.store.renew_lease(job.id, job.claim, self._clock.now() + self._lease)

    # Triggers

    def _look(self, source: JobSource, started: datetime | None) -> None:
        """Queue the jobs that triggers want now, except those that are already queued."""
        now = self._clock.now()
        self._looked[source.workspace] = now
        try:
            drafts = [draft for draft in source.wanted(now, started) if draft.kind in source.handlers]
            new = [draft for draft in drafts if source.store.job(draft.key) is None]
            if new:
                self._apply(source, "triggers", *(Enqueue(draft) for draft in new))
        except LukasaError as error:
            self._trouble(source, error)

    def _idle(self, sources: Sequence[JobSource]) -> float:
        now, soonest = self._clock.now(), min(self._bell.longest, LOOK.total_seconds())
        for source in sources:
            try:
                due = self._next_run(source, now)
            except LukasaError as error:
                self._trouble(source, error)
                continue
            if due is not None and due > now:
                soonest = min(soonest, (due - now).total_seconds())
        return soonest

    def _trouble(self, source: JobSource, error: LukasaError) -> None:
        self._resting[source.workspace] = self._clock.now() + LOOK
        self._tell(Trouble(source.workspace, said(error)))

    def _apply(self, source: JobSource, kind: str, *operations: Operation) -> None:
        self._due.pop(source.workspace, None)
        source.store.apply(Transaction(source.actor(kind), self._clock.now(), operations))


def said(error: Exception) -> str:
    """Return an error as text for a job: its code and message if it is ours, else its type and line.

    The message of a foreign error may quote user data, which does not belong in a log.
    """
    if isinstance(error, LukasaError):
        return f"{error.code}: {error.message}"[:LONGEST_ERROR]
    frames = traceback.extract_tb(error.__traceback__)
    where = (
        f" in {frames[-1].name}, line {frames[-1].lineno} of {os.path.basename(frames[-1].filename)}" if frames else ""
    )
    return f"unexpected {type(error).__name__}{where}"[:LONGEST_ERROR]


GRACE = 8.0  # seconds; service managers usually kill a process after ten
_GLANCE = 0.05


class Crew:
    """Several workers in threads of one process.

    `beside` is work that belongs to no workspace: each runs in a thread of its own until it is told to stop. It may be
    killed at any moment, so nobody waits for it when the workers have stopped.
    """

    def __init__(self, workers: Sequence[Worker]) -> None:
        self.workers = tuple(workers)
        self.beside: tuple[Callable[[Stop], None], ...] = ()

    def serve(self, stop: threading.Event, hurry: threading.Event, *, grace: float = GRACE) -> bool:
        """Work until `stop` is set, then wait for running jobs: `grace` seconds, or until `hurry` is set.

        Return whether all jobs finished. A job that did not is put back; later writes of its thread are refused, and
        the thread ends with the process.
        """
        threads = [
            threading.Thread(target=partial(w.run, stop), name="lukasa-worker", daemon=True) for w in self.workers
        ]
        others = [threading.Thread(target=partial(one, stop), name="lukasa-beside", daemon=True) for one in self.beside]
        for thread in (*threads, *others):
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
    """Call `renew` at an interval from its own thread, until the work ends or the claim is lost."""

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
                    return  # another worker has the job; the store refuses the next write of this one
            except StoreError:
                continue  # the file is busy or full; there is time for another beat before the lease runs out


FIRST = 30.0  # seconds
LONGEST = 3600.0


def pause(attempt: int, dice: float, asked: float | None = None) -> timedelta:
    """Return the pause after the `attempt`-th failure. `dice` in [0, 1) spreads jobs that failed together."""
    doubled = min(FIRST * 2.0 ** min(attempt - 1, 30), LONGEST)
    seconds = doubled * (0.5 + 0.5 * dice)
    if asked is not None:
        seconds = max(seconds, min(asked, LONGEST_ASKED) * (1.0 + 0.1 * dice))
    return timedelta(seconds=seconds)
