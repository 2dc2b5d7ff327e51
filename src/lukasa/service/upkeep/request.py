"""Upkeep that a person asks for: as a job like any other, or as a look at what it would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from lukasa.model.errors import InvalidInput, StoreError
from lukasa.model.ids import new_id
from lukasa.model.job import FINISHED, Job, JobDraft
from lukasa.ports import Chat
from lukasa.service.call import CallContext
from lukasa.service.instrument import verb
from lukasa.service.jobs.handlers import Work, room_for, run_next
from lukasa.service.upkeep.consolidate import OPERATOR, consolidate
from lukasa.service.upkeep.maintain import maintain
from lukasa.service.upkeep.scope import Tell, silent
from lukasa.storage.operations import Enqueue

KINDS: Mapping[str, Callable[..., dict[str, Any]]] = {"consolidate": consolidate, "maintain": maintain}


def preview(ctx: CallContext, kind: str, tiers: Sequence[str] | None = None) -> dict[str, Any]:
    """What a run would do now, by rules alone; nothing is changed and no model is asked."""
    ctx.require_author(f"ask to {_known(kind)}")
    return KINDS[kind](room_for(ctx, kind), None, tiers=_tiers(ctx, tiers))


@verb("job", "ask")
def ask(ctx: CallContext, kind: str, tiers: Sequence[str] | None = None) -> Job:
    """Ask for a run; a worker does it."""
    ctx.require_author(f"ask to {_known(kind)}")
    payload: dict[str, Any] = {"trigger": OPERATOR, "tiers": _tiers(ctx, tiers)}
    draft = JobDraft(kind, f"{kind}:{OPERATOR}:{new_id()}", payload)
    ctx.apply(ctx.local, Enqueue(draft))
    return _job(ctx, draft.key)


def work(ctx: CallContext, job: Job, *, chat: Chat | None = None, tell: Tell = silent) -> Job:
    """Do a job here and now, unless another worker is faster; the answer is the job as it is afterwards."""
    handlers: dict[str, Work] = {job.kind: partial(KINDS[job.kind], tell=tell)}
    while job.state not in FINISHED and run_next(ctx, chat=chat, handlers=handlers) is not None:
        job = _job(ctx, job.id)
    return _job(ctx, job.id)


def _job(ctx: CallContext, id_or_key: str) -> Job:
    found = ctx.local.job(id_or_key)
    if found is None:
        raise StoreError("the job is gone that was just asked for", fix="ask again")
    return found


def _known(kind: str) -> str:
    if kind not in KINDS:
        raise InvalidInput(f"{kind[:60]!r} is no upkeep", fix=f"use one of: {', '.join(KINDS)}")
    return kind


def _tiers(ctx: CallContext, tiers: Sequence[str] | None) -> list[str] | None:
    return [ctx.spec.tier(name).name for name in tiers] if tiers else None
