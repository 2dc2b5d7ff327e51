"""Background work as an operator sees it: list jobs, retry or cancel one, and run reflection or upkeep on request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from lukasa.model.amendment import Amendment
from lukasa.model.errors import InvalidInput, NotFound, StoreError
from lukasa.model.events import EventDraft
from lukasa.model.ids import new_id
from lukasa.model.job import FINISHED, Job, JobDraft, JobState
from lukasa.ports import Chat
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.service.curation import reflect
from lukasa.service.curation.curated_document import EVERY
from lukasa.service.instrument import verb
from lukasa.service.jobs import handlers, task
from lukasa.service.jobs.allowance import ModelGuard
from lukasa.service.jobs.budget import Budget
from lukasa.service.jobs.worker import Run, Worker
from lukasa.service.upkeep import consolidate, maintain
from lukasa.service.upkeep.run import Tell, silent
from lukasa.storage.operations import CancelJob, Enqueue, Record, ReviveJob


def jobs(
    ctx: CallContext, *, state: JobState | str | None = None, kind: str | None = None, limit: int = 100
) -> list[Job]:
    """Return jobs of this workspace, the last changed first."""
    ctx.require_author("look at background work")
    ctx.require_whole("look at background work")
    states = None if state is None else [inputs.choice(state, JobState, "state")]
    return ctx.local.jobs(states=states, kind=kind, limit=inputs.limit(limit, 10_000))


def job(ctx: CallContext, id_or_key: str) -> Job:
    """Return one job by id or key."""
    ctx.require_author("look at background work")
    ctx.require_whole("look at background work")
    wanted = inputs.label(id_or_key, "job")
    found = ctx.local.job(wanted)
    if found is None:
        raise NotFound(f"no job {wanted[:60]!r} in this workspace", fix="`lukasa jobs list` shows the ids")
    return found


def steps(ctx: CallContext, id_or_key: str) -> dict[str, Any]:
    """Return the journal of a job: the output of each step, in order."""
    return ctx.local.steps(job(ctx, id_or_key).id)


def retry(ctx: CallContext, id_or_key: str) -> Job:
    """Queue a dead or cancelled job again, with all its attempts and the journal it had."""
    found = job(ctx, id_or_key)
    told = Record(EventDraft("job.retried", found.id, {"kind": found.kind, "key": found.key, "error": found.error}))
    ctx.apply(ctx.local, ReviveJob(found.id), told)
    return job(ctx, found.id)


def cancel(ctx: CallContext, id_or_key: str, reason: str) -> Job:
    """Cancel a job that is not finished. A worker that runs it can write no more for it."""
    found = job(ctx, id_or_key)
    why = inputs.label(reason, "reason")
    told = Record(EventDraft("job.cancelled", found.id, {"kind": found.kind, "key": found.key, "cause": why}))
    ctx.apply(ctx.local, CancelJob(found.id, why), told)
    return job(ctx, found.id)


CURATION = ("reflect", "triage", "curate")


class Round(Struct, frozen=True):
    """The result of a reflection on request: observations read, proposals made, errors that a worker retries.

    `left_over` observations had no room; the next reflection reads them.
    """

    observations: int
    proposals: tuple[Amendment, ...]
    errors: tuple[str, ...]
    left_over: int = 0


def reflect_now(ctx: CallContext, *, chat: Chat | None, budget: Budget | None = None) -> Round:
    """Reflect on all observations since the last reflection, and take each proposal through triage."""
    ctx.require_author("reflect on what is remembered")
    ctx.require_whole("reflect")
    before = {a.id for a in ctx.local.amendments(limit=EVERY)}
    key = reflect.ask_for(ctx)
    source = handlers.job_source(ctx, {kind: handlers.HANDLERS[kind] for kind in CURATION})
    guard = ModelGuard(ctx.clock, budget or Budget(), ctx.local.spent)
    worker = Worker(lambda: [source], clock=ctx.clock, chat=chat, allowance=guard)
    runs: list[Run] = []
    while (run := worker.step()) is not None:
        runs.append(run)
    made = tuple(a for a in ctx.local.amendments(limit=EVERY) if a.id not in before)
    read = sum(int(run.result.get("observations", 0)) for run in runs)
    over = [int(run.result["over"]) for run in runs if "over" in run.result]
    errors = tuple(f"{run.job.kind}: {run.error}" for run in runs if run.error)
    asked = _job(ctx, key)
    if not errors and asked.state is not JobState.DONE:
        errors = (f"reflect: {asked.error or 'another worker runs it now'}",)
    return Round(read, made, errors, over[-1] if over else 0)


UPKEEP: Mapping[str, Callable[..., dict[str, Any]]] = {
    "consolidate": consolidate.consolidate,
    "maintain": maintain.maintain,
}


def preview(ctx: CallContext, kind: str, tiers: Sequence[str] | None = None) -> dict[str, Any]:
    """Count the changes that a run would make now by rules. It changes nothing and calls no model."""
    ctx.require_author(f"ask to {_upkeep(kind)}")
    ctx.require_whole(kind)
    return UPKEEP[kind](task.job_context(ctx, kind), None, tiers=_tiers(ctx, tiers))


@verb("job", "ask")
def ask(ctx: CallContext, kind: str, tiers: Sequence[str] | None = None) -> Job:
    """Queue a run of upkeep for a worker."""
    ctx.require_author(f"ask to {_upkeep(kind)}")
    ctx.require_whole(kind)
    payload: dict[str, Any] = {"trigger": consolidate.OPERATOR, "tiers": _tiers(ctx, tiers)}
    draft = JobDraft(kind, f"{kind}:{consolidate.OPERATOR}:{new_id()}", payload)
    ctx.apply(ctx.local, Enqueue(draft))
    return _job(ctx, draft.key)


def work(ctx: CallContext, job: Job, *, chat: Chat | None = None, tell: Tell = silent) -> Job:
    """Run a job here, unless another worker was faster; return the job as it is afterwards."""
    work: dict[str, handlers.Work] = {job.kind: partial(UPKEEP[job.kind], tell=tell)}
    while job.state not in FINISHED and handlers.run_next(ctx, chat=chat, handlers=work) is not None:
        job = _job(ctx, job.id)
    return _job(ctx, job.id)


def _job(ctx: CallContext, id_or_key: str) -> Job:
    found = ctx.local.job(id_or_key)
    if found is None:
        raise StoreError(f"job {id_or_key[:60]!r} is gone", fix="request the run again")
    return found


def _upkeep(kind: str) -> str:
    if kind not in UPKEEP:
        raise InvalidInput(f"unknown upkeep {kind[:60]!r}", fix=f"use one of: {', '.join(UPKEEP)}")
    return kind


def _tiers(ctx: CallContext, tiers: Sequence[str] | None) -> list[str] | None:
    return [ctx.spec.tier(name).name for name in tiers] if tiers else None
