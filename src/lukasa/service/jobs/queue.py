"""A person's view of the work that waits: what there is, what died, and having it tried again or given up."""

from __future__ import annotations

from typing import Any

from lukasa.model.errors import NotFound
from lukasa.model.events import EventDraft
from lukasa.model.job import Job, JobState
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.storage.operations import CancelJob, Record, ReviveJob


def jobs(
    ctx: CallContext, *, state: JobState | str | None = None, kind: str | None = None, limit: int = 100
) -> list[Job]:
    ctx.require_author("look at background work")
    states = None if state is None else [inputs.choice(state, JobState, "state")]
    return ctx.local.jobs(states=states, kind=kind, limit=inputs.limit(limit, 10_000))


def job(ctx: CallContext, id_or_key: str) -> Job:
    ctx.require_author("look at background work")
    wanted = inputs.label(id_or_key, "job")
    found = ctx.local.job(wanted)
    if found is None:
        raise NotFound(f"no job {wanted[:60]!r} in this workspace", fix="`lukasa jobs list` shows the ids")
    return found


def steps(ctx: CallContext, id_or_key: str) -> dict[str, Any]:
    """The journal of a job: what each step gave, in order."""
    return ctx.local.steps(job(ctx, id_or_key).id)


def retry(ctx: CallContext, id_or_key: str) -> Job:
    """A dead or cancelled job is queued again, with all its attempts before it and the journal it had."""
    found = job(ctx, id_or_key)
    told = Record(EventDraft("job.retried", found.id, {"kind": found.kind, "key": found.key, "error": found.error}))
    ctx.apply(ctx.local, ReviveJob(found.id), told)
    return job(ctx, found.id)


def cancel(ctx: CallContext, id_or_key: str, reason: str) -> Job:
    """A job that is not finished is given up; a worker that has it in hand can write no more for it."""
    found = job(ctx, id_or_key)
    why = inputs.label(reason, "reason")
    told = Record(EventDraft("job.cancelled", found.id, {"kind": found.kind, "key": found.key, "cause": why}))
    ctx.apply(ctx.local, CancelJob(found.id, why), told)
    return job(ctx, found.id)
