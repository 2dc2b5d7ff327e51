"""Verbs about background work."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lukasa.model.errors import InvalidInput
from lukasa.model.grant import Capability
from lukasa.service.curation import reflect
from lukasa.service.jobs import queue
from lukasa.surfaces.api.shapes import JobOut, JobsOut
from lukasa.surfaces.api.verb import Call, Given, Verb

_AT = "/workspaces/{workspace}/jobs"


class JobsIn(Given):
    state: str | None = Field(None, description="queued, running, done, dead or cancelled.")
    kind: str | None = Field(None, description="Only work of this kind, such as consolidate.")
    limit: int = Field(100, ge=1, le=1000)


def jobs(call: Call, given: JobsIn) -> JobsOut:
    whole = call.overseen(Capability.JOBS)
    return JobsOut.of({"jobs": whole.jobs(state=given.state, kind=given.kind, limit=given.limit)})


class JobIn(Given):
    id: str = Field(description="Id of a job.")


def job(call: Call, given: JobIn) -> JobOut:
    return JobOut.of(call.overseen(Capability.JOBS).job(given.id))


def retry(call: Call, given: JobIn) -> JobOut:
    return JobOut.of(call.overseen(Capability.JOBS).retry_job(given.id))


class RunIn(Given):
    kind: Literal["consolidate", "maintain", "reflect"] = Field(description="What to do.")
    tiers: list[str] = Field(default=[], description="Only in these tiers; not for reflect.")


def run(call: Call, given: RunIn) -> JobOut:
    """Ask for work; whichever worker is free does it."""
    ctx = call.overseen(Capability.JOBS).ctx
    if given.kind != "reflect":
        return JobOut.of(queue.ask(ctx, given.kind, given.tiers or None))
    if given.tiers:
        raise InvalidInput("reflection is about the whole workspace", fix="leave the tiers out")
    return JobOut.of(ctx.local.job(reflect.ask_for(ctx)))


class CancelIn(JobIn):
    reason: str | None = Field(None, description="Why, for the log.")


def cancel(call: Call, given: CancelIn) -> JobOut:
    said = {"reason": given.reason} if given.reason is not None else {}
    return JobOut.of(call.overseen(Capability.JOBS).cancel_job(given.id, **said))


VERBS = (
    Verb(
        "job_list",
        "List background work: what waits, what runs, what was done, what failed for good.",
        Capability.JOBS,
        "GET",
        _AT,
        JobsIn,
        JobsOut,
        jobs,
    ),
    Verb(
        "job_run",
        "Have a workspace consolidated, maintained or reflected on now, instead of when its triggers say so.",
        Capability.JOBS,
        "POST",
        _AT,
        RunIn,
        JobOut,
        run,
        mutates=True,
        status=202,
    ),
    Verb(
        "job_get",
        "Show one piece of background work.",
        Capability.JOBS,
        "GET",
        f"{_AT}/{{id}}",
        JobIn,
        JobOut,
        job,
        tool=False,
    ),
    Verb(
        "job_retry",
        "Have a dead or cancelled job tried again.",
        Capability.JOBS,
        "POST",
        f"{_AT}/{{id}}/retry",
        JobIn,
        JobOut,
        retry,
        mutates=True,
        tool=False,
    ),
    Verb(
        "job_cancel",
        "Give up a job that is not finished.",
        Capability.JOBS,
        "POST",
        f"{_AT}/{{id}}/cancel",
        CancelIn,
        JobOut,
        cancel,
        mutates=True,
        tool=False,
    ),
)
