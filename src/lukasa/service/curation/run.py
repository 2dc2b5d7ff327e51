"""A round of curation on demand: reflect, triage and write the page out, here and now instead of by a worker."""

from __future__ import annotations

from msgspec import Struct

from lukasa.model.amendment import Amendment
from lukasa.ports import Chat
from lukasa.service.call import CallContext
from lukasa.service.curation import reflect
from lukasa.service.curation.publish import EVERY
from lukasa.service.jobs import handlers
from lukasa.service.jobs.allowance import Guard
from lukasa.service.jobs.budget import Budget
from lukasa.service.jobs.worker import Run, Worker

KINDS = ("reflect", "triage", "curate")


class Round(Struct, frozen=True):
    """What was read, what came of it, and what went wrong on the way; that is tried again by a worker."""

    observations: int
    proposals: tuple[Amendment, ...]
    errors: tuple[str, ...]


def reflect_now(ctx: CallContext, *, chat: Chat | None, budget: Budget | None = None) -> Round:
    """Proposals from everything remembered since the last reflection, each taken as far as triage takes it."""
    ctx.require_author("reflect on what is remembered")
    before = {a.id for a in ctx.local.amendments(limit=EVERY)}
    reflect.ask_for(ctx)
    station = handlers.station(ctx, {kind: handlers.HANDLERS[kind] for kind in KINDS})
    guard = Guard(ctx.clock, budget or Budget(), ctx.local.spent)
    worker = Worker(lambda: [station], clock=ctx.clock, chat=chat, allowance=guard)
    runs: list[Run] = []
    while (run := worker.step()) is not None:
        runs.append(run)
    made = tuple(a for a in ctx.local.amendments(limit=EVERY) if a.id not in before)
    read = sum(int(run.result.get("observations", 0)) for run in runs)
    return Round(read, made, tuple(f"{run.job.kind}: {run.error}" for run in runs if run.error))
