"""Background work of a workspace: which kinds there are, and the station a worker finds there.

A handler gets the workspace's room and a task, does its work in journaled steps, and returns its counts. A new kind of
work is one line in `HANDLERS`; a kind that is not there is neither asked for nor claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from lukasa.model.events import Actor
from lukasa.model.values import Origin, Trust
from lukasa.ports import Chat
from lukasa.service.call import CallContext
from lukasa.service.curation import publish, reflect, triage
from lukasa.service.entries import resolve
from lukasa.service.jobs.task import Task
from lukasa.service.jobs.triggers import Triggers
from lukasa.service.jobs.worker import Run, Station, Worker
from lukasa.service.sessions import observe
from lukasa.service.upkeep import backfill as backfilling
from lukasa.service.upkeep import consolidate, maintain
from lukasa.storage.operations import ForgetAnswers, ForgetJobs, ForgetTelemetry

PRINCIPAL = "lukasa"
SURFACE = "worker"

Work = Callable[[CallContext, Task], dict[str, Any]]

BATCH = 50
KEEP_JOBS = timedelta(days=30)  # longer than any schedule's window, so that a window is never worked on twice
KEEP_POINTS = timedelta(days=90)
KEEP_READS = timedelta(days=14)  # what reads report, which are many
KEEP_ANSWERS = timedelta(days=1)


def backfill(ctx: CallContext, task: Task) -> dict[str, Any]:
    """O8: vectors for a batch of entries that have none. They are derived, so that repeating it costs nothing."""
    if not task.journaled("embedded"):
        counts = {"embedded": backfilling.backfill(ctx, BATCH)}
        task.commit("embedded", counts, task.point("backfill.completed", metadata=counts))
    return dict(task.output("embedded"))


def tidy(ctx: CallContext, task: Task) -> dict[str, Any]:
    """Finished jobs, answers and telemetry are kept for a while. Dead jobs stay until somebody decides."""
    now = ctx.now
    points = (ForgetTelemetry(now - KEEP_POINTS), ForgetTelemetry(now - KEEP_READS, "debug"))
    if not task.journaled("tidied"):
        ctx.apply(ctx.account, *points)
    forget = (ForgetJobs(now - KEEP_JOBS), *points, ForgetAnswers(now - KEEP_ANSWERS))
    task.once("tidied", dict, *forget, task.point("tidy.completed"))
    return {}


HANDLERS: dict[str, Work] = {
    "backfill": backfill,
    "consolidate": consolidate.consolidate,
    "curate": publish.curate,
    "maintain": maintain.maintain,
    "reflect": reflect.reflect,
    "resolve": resolve.resolve,
    "tidy": tidy,
    "observe": observe.observe,
    "triage": triage.triage,
}


def room_for(ctx: CallContext, kind: str) -> CallContext:
    """The room as a job of that kind has it: nothing bound, and the log says which work it was.

    It sees what the author sees, since maintenance is about all entries. What a job writes that it concluded itself,
    or was told by a model, it writes with `acting(trust=Trust.AGENT)` or less.
    """
    return replace(ctx, origin=Origin(PRINCIPAL, SURFACE, kind, Trust.AUTHOR), agent=None, keys={})


def station(ctx: CallContext, handlers: Mapping[str, Work] | None = None) -> Station:
    work = HANDLERS if handlers is None else handlers
    return Station(
        workspace=ctx.info.name,
        store=ctx.local,
        handlers={kind: partial(handle, room_for(ctx, kind)) for kind, handle in work.items()},
        actor=lambda kind: Actor(PRINCIPAL, SURFACE, kind),
        wanted=Triggers(ctx).wanted,
    )


def run_next(ctx: CallContext, *, chat: Chat | None = None, handlers: Mapping[str, Work] | None = None) -> Run | None:
    """Run the next job that is due in this workspace, if there is one."""
    here = station(ctx, handlers)
    return Worker(lambda: [here], clock=ctx.clock, chat=chat).step()
