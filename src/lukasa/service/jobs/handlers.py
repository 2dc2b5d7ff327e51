"""Background work by kind: the handler of each kind of job, and the workers that run them for an account.

A handler gets the call context of its workspace and a task, works in journaled steps, and returns its counts. A new
kind of work is one line in `HANDLERS`; nobody requests or claims a kind that is not there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.errors import InvalidInput, LukasaError
from lukasa.model.telemetry import Spending
from lukasa.ports import Chat, Clock, Span, no_span
from lukasa.service.call import CallContext
from lukasa.service.citations import verifying
from lukasa.service.corpus import feeds, submitting, watching
from lukasa.service.curation import curated_document, kept_records, notices, reflect, triage
from lukasa.service.entries import categorise, resolve
from lukasa.service.jobs.allowance import ModelGuard
from lukasa.service.jobs.budget import Budget
from lukasa.service.jobs.task import Task, job_actor, job_context, whole
from lukasa.service.jobs.triggers import TriggerCheck
from lukasa.service.jobs.worker import Bell, Crew, JobSource, Run, Tell, Trouble, Worker, said
from lukasa.service.sessions import observe
from lukasa.service.upkeep import backfill, consolidate, hide_secrets, maintain
from lukasa.storage.operations import ForgetAnswers, ForgetDisclosures, ForgetJobs, ForgetTelemetry

Work = Callable[[CallContext, Task], dict[str, Any]]

BATCH = 50
WHOLE = 1_000_000
KEEP_JOBS = timedelta(days=30)  # longer than any window of a schedule, so that no window gets a second job
KEEP_TELEMETRY = timedelta(days=90)
KEEP_READS = timedelta(days=14)  # of reads, which are many
KEEP_ANSWERS = timedelta(days=1)


def fill_vectors(ctx: CallContext, task: Task) -> dict[str, Any]:
    """O8: compute vectors for a batch of entries without one, or for all of them. A repetition changes nothing."""
    if not task.journaled("embedded"):
        counts = {"embedded": backfill.backfill(ctx, WHOLE if task.job.payload.get("whole") else BATCH)}
        task.commit("embedded", counts, task.telemetry("backfill.completed", metadata=counts))
    return dict(task.output("embedded"))


def index_vectors(ctx: CallContext, task: Task) -> dict[str, Any]:
    """Give large partitions an index of their vectors, where the database has such indexes."""
    if not task.journaled("indexed"):
        counts = {"indexes": sum(store.index_vectors() for store in (ctx.local, ctx.account))}
        task.commit("indexed", counts, task.telemetry("index-vectors.completed", metadata=counts))
    return dict(task.output("indexed"))


def tidy(ctx: CallContext, task: Task) -> dict[str, Any]:
    """Delete finished jobs, answers, telemetry and disclosures after a while. Dead jobs stay until somebody decides.

    Submissions lose the words of memories that another workspace scrubbed from the account.
    """
    now = ctx.now
    submitting.sweep(ctx)
    points = (ForgetTelemetry(now - KEEP_TELEMETRY), ForgetTelemetry(now - KEEP_READS, "debug"))
    rules = ctx.spec.disclosure
    shown = ForgetDisclosures(now - timedelta(days=rules.keep_days), rules.most)
    theirs = replace(shown, workspace=ctx.info.id)
    if not task.journaled("tidied"):
        ctx.apply(ctx.account, *points, theirs)
    forget = (ForgetJobs(now - KEEP_JOBS), *points, shown, ForgetAnswers(now - KEEP_ANSWERS))
    task.once("tidied", dict, *forget, task.telemetry("tidy.completed"))
    return {}


HANDLERS: dict[str, Work] = {
    "backfill": fill_vectors,
    "categorise": categorise.categorise,
    "consolidate": consolidate.consolidate,
    "curate": curated_document.curate,
    "follow": watching.follow,
    "hide-secrets": hide_secrets.hide_secrets,
    "index-vectors": index_vectors,
    "maintain": maintain.maintain,
    "notify": notices.notify,
    "record": kept_records.record,
    "reflect": reflect.reflect,
    "resolve": resolve.resolve,
    "tidy": tidy,
    "observe": observe.observe,
    "poll": feeds.job,
    "triage": triage.triage,
    "verify": verifying.job,
}


def job_source(ctx: CallContext, handlers: Mapping[str, Work] | None = None) -> JobSource:
    """Return a workspace as a worker sees it, with all handlers or the given ones."""
    work = HANDLERS if handlers is None else handlers
    return JobSource(
        workspace=ctx.info.name,
        store=whole(ctx),
        handlers={kind: partial(handle, job_context(ctx, kind)) for kind, handle in work.items()},
        actor=job_actor,
        wanted=TriggerCheck(ctx).wanted,
        id=ctx.info.id,
    )


def run_next(ctx: CallContext, *, chat: Chat | None = None, handlers: Mapping[str, Work] | None = None) -> Run | None:
    """Run the next job that is due in this workspace, if there is one."""
    here = job_source(ctx, handlers)
    return Worker(lambda: [here], clock=ctx.clock, chat=chat).step()


REST = 30.0  # seconds until the worker tries again to open a workspace


class JobSources:
    """List the workspaces of an account for a worker, which asks before each job and so sees a new one at once."""

    def __init__(
        self,
        workspaces: Callable[[], Sequence[WorkspaceInfo]],
        ctx: Callable[[WorkspaceInfo], CallContext],
        tell: Tell,
        kinds: Collection[str] | None = None,
    ) -> None:
        self._workspaces = workspaces
        known = HANDLERS
        self._handlers = known if kinds is None else {kind: work for kind, work in known.items() if kind in kinds}
        self._context = ctx
        self._tell = tell
        self._known: dict[str, JobSource] = {}
        self._resting: dict[str, float] = {}

    def __call__(self) -> list[JobSource]:
        for info in self._workspaces():
            if info.ready and info.id not in self._known and time.monotonic() >= self._resting.get(info.id, 0.0):
                try:
                    self._known[info.id] = job_source(self._context(info), self._handlers)
                except LukasaError as error:
                    self._resting[info.id] = time.monotonic() + REST
                    self._tell(Trouble(info.name, said(error)))
        return list(self._known.values())

    def spent(self, day: str) -> list[Spending]:
        """Return the spending on models since a day, in all workspaces."""
        return [spending for source in self() for spending in source.store.spent(day)]


def crew(
    threads: int,
    workspaces: Callable[[], Sequence[WorkspaceInfo]],
    ctx: Callable[[WorkspaceInfo], CallContext],
    *,
    chat: Chat | None,
    clock: Clock,
    budget: Budget,
    tell: Tell | None = None,
    span: Span | None = None,
    workspace: str | None = None,
    kinds: Collection[str] | None = None,
    bell: Bell | None = None,
) -> Crew:
    """Make workers for all workspaces and kinds of work, or for the named ones. The budget is always the account's.

    With a `bell` they wake when a job is queued, and look for jobs less often.
    """
    if chat is not None and budget.cost is not None and budget.price(chat.name) is None:
        raise InvalidInput(
            f"LUKASA_BUDGET_COST is set, but {chat.name} has no price",
            fix=f"set LUKASA_PRICES={chat.name}=PROMPT/COMPLETION, per million tokens, or LUKASA_BUDGET_TOKENS instead",
        )
    told = tell or (lambda what: None)
    guard = ModelGuard(clock, budget, JobSources(workspaces, ctx, told).spent)

    def wanted() -> list[WorkspaceInfo]:
        return [info for info in workspaces() if workspace is None or info.id == workspace]

    each = [JobSources(wanted, ctx, told, kinds) for _ in range(threads)]
    seen = span or no_span
    options: dict[str, Any] = {"clock": clock, "chat": chat, "allowance": guard, "tell": told, "span": seen}
    return Crew([Worker(here, bell=bell, **options) for here in each])
