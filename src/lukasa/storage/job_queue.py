"""Jobs and the journal of their steps. Every write under a claim looks at the claim in the same transaction."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from lukasa.model.errors import Conflict
from lukasa.model.ids import new_id
from lukasa.model.job import FINISHED, Job, JobState
from lukasa.storage import row_rules, tables
from lukasa.storage.backend import Rows, get
from lukasa.storage.operations import (
    CancelJob,
    Enqueue,
    FailJob,
    FinishJob,
    ForgetJobs,
    JournalStep,
    PostponeJob,
    ReviveJob,
    Transaction,
)
from lukasa.storage.tables import Step


def enqueue(rows: Rows, operation: Enqueue, transaction: Transaction) -> None:
    draft, at = operation.draft, transaction.at
    if not rows.count(tables.JOBS_BY_KEY, draft.key):
        counts, times = (0, draft.max_attempts, 0), (draft.run_after or at, at, at)
        job = Job(new_id(), draft.kind, draft.key, draft.payload, JobState.QUEUED, *counts, *times)
        rows.insert(tables.JOBS, [job])


def journal(rows: Rows, operation: JournalStep, transaction: Transaction) -> None:
    _held(rows, operation.job, operation.claim)
    if get(rows, tables.STEPS, operation.job, operation.name) is not None:
        raise Conflict(f"step {operation.name!r} is in the journal already", fix="use what it gave")
    step = Step(operation.job, operation.name, operation.claim, transaction.at, operation.output)
    rows.insert(tables.STEPS, [step])


def finish(rows: Rows, operation: FinishJob, transaction: Transaction) -> None:
    held = _held(rows, operation.job, operation.claim)
    _set(rows, held, transaction.at, state=JobState.DONE, error="", result=operation.result)


def fail(rows: Rows, operation: FailJob, transaction: Transaction) -> None:
    held = _held(rows, operation.job, operation.claim)
    over = operation.run_after is None or held.attempts >= held.max_attempts
    state, due = JobState.DEAD if over else JobState.QUEUED, operation.run_after or held.run_after
    _set(rows, held, transaction.at, state=state, error=operation.error, run_after=due)


def postpone(rows: Rows, operation: PostponeJob, transaction: Transaction) -> None:
    held = _held(rows, operation.job, operation.claim)
    changes = {"attempts": held.attempts - 1, "run_after": operation.until, "error": operation.reason}
    _set(rows, held, transaction.at, state=JobState.QUEUED, **changes)


def revive(rows: Rows, operation: ReviveJob, transaction: Transaction) -> None:
    found = _job(rows, operation.job)
    row_rules.check_revivable(found.id, found.state)
    _set(rows, found, transaction.at, state=JobState.QUEUED, attempts=0, run_after=transaction.at)


def cancel(rows: Rows, operation: CancelJob, transaction: Transaction) -> None:
    found = _job(rows, operation.job)
    row_rules.check_cancellable(found.id, found.state)
    changes = {"claim": found.claim + 1, "error": operation.reason}
    _set(rows, found, transaction.at, state=JobState.CANCELLED, **changes)


def forget(rows: Rows, operation: ForgetJobs, _: Transaction) -> None:
    over = (JobState.DONE, JobState.CANCELLED)
    drop(rows, [job.id for job in rows.select(tables.JOBS_TOUCHED_BEFORE, over, operation.before)])


def drop(rows: Rows, ids: Collection[str]) -> None:
    """Remove jobs with their journals."""
    rows.delete(tables.STEPS_AMONG, ids)
    rows.delete(tables.JOBS_AMONG, ids)


def _job(rows: Rows, id: str) -> Job:
    found = get(rows, tables.JOBS, id)
    if found is None:
        raise row_rules.missing("job", id)
    return found


def _held(rows: Rows, id: str, claim: int) -> Job:
    found = get(rows, tables.JOBS, id)
    if found is None or found.claim != claim or found.state is not JobState.RUNNING:
        raise row_rules.lost_claim(id)
    return found


def _set(rows: Rows, job: Job, at: datetime, **changes: Any) -> Job:
    """Change a job; its lease ends unless the changes say otherwise."""
    changed = replace(job, updated_at=at, **{"lease_until": None, **changes})
    rows.save(tables.JOBS, changed)
    return changed


def claim(rows: Rows, worker: str, now: datetime, lease_until: datetime, kinds: Collection[str] | None) -> Job | None:
    """See `PipelineStore.claim_job`. Deaths come first: nobody takes up a lease that ran out on the last attempt."""
    for job in rows.select(tables.EXPIRED_JOBS, JobState.RUNNING, now):
        if job.attempts >= job.max_attempts and get(rows, tables.JOBS, job.id) == job:
            error = f"its worker stopped without a word on attempt {job.attempts} of {job.max_attempts}"
            _set(rows, job, now, state=JobState.DEAD, error=error)
            rows.insert(tables.TELEMETRY, [row_rules.buried(now, job.id, job.kind, job.attempts, error)])
    states = (JobState.QUEUED, JobState.RUNNING)
    due = rows.select(tables.DUE_JOBS, states, now, now, kinds, limit=1, hold=True)
    if not due:
        return None
    (free,) = due
    taken = {"claim": free.claim + 1, "attempts": free.attempts + 1, "worker": worker, "lease_until": lease_until}
    return _set(rows, free, now, state=JobState.RUNNING, **taken)


def renew(rows: Rows, id: str, claim: int, lease_until: datetime) -> bool:
    """See `PipelineStore.renew_lease`."""
    found = get(rows, tables.JOBS, id)
    if found is None or found.claim != claim or found.state is not JobState.RUNNING:
        return False
    rows.save(tables.JOBS, replace(found, lease_until=lease_until))
    return True


def next_run(rows: Rows, kinds: Collection[str] | None) -> datetime | None:
    queued = rows.select(tables.QUEUED_JOBS, JobState.QUEUED, kinds, limit=1)
    leased = rows.select(tables.LEASED_JOBS, JobState.RUNNING, kinds, limit=1)
    times = [job.run_after for job in queued] + [job.lease_until for job in leased if job.lease_until is not None]
    return min(times, default=None)


def over(rows: Rows) -> list[str]:
    """The jobs that hold words of what is gone: finished ones, and queued ones that have begun before."""
    finished = [job.id for job in rows.select(tables.TOUCHED_JOBS, tuple(FINISHED), None)]
    queued = [job.id for job in rows.select(tables.TOUCHED_JOBS, (JobState.QUEUED,), None)]
    begun = {step.job for step in rows.select(tables.STEPS_AMONG, queued)}
    return finished + [id for id in queued if id in begun]
