"""Looking at a workspace for what its triggers ask about. Every look is bounded, however long the log is."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from lukasa.model.amendment import AmendmentState
from lukasa.model.events import Event
from lukasa.model.job import JobDraft
from lukasa.model.values import State
from lukasa.service.call import CallContext
from lukasa.service.jobs import schedule
from lukasa.service.jobs.schedule import Facts

ADDED = ("entry.put",)
REVISED = ("entry.superseded", "entry.invalidated", f"entry.{State.STALE}")
UPKEEP = frozenset({"consolidate", "maintain", "backfill", "tidy", "triage", "reflect", "curate"})
LOOK_BACK = 2000  # events
LAST_JOBS = 1000


class Triggers:
    """The triggers of one workspace, as a worker asks them. Looking for missing vectors is the dear part, and done
    once in each half hour."""

    def __init__(self, ctx: CallContext) -> None:
        self._room = ctx
        self._searched: datetime | None = None

    def wanted(self, now: datetime, started: datetime | None) -> list[JobDraft]:
        """The jobs that are wanted now."""
        found = facts(self._room, started)
        half_hour = schedule.window("half-hourly", now)
        if self._searched != half_hour and schedule.warm(now, started):
            self._searched = half_hour
            found = replace(found, unembedded=_unembedded(self._room))
        return schedule.due(self._room.spec, now, found)


def facts(ctx: CallContext, started: datetime | None = None) -> Facts:
    """All but whether vectors are missing."""
    store = ctx.local
    head, _ = store.head()
    last = store.events(after=head - 1, limit=1) if head else []
    marks = _marks(ctx)
    wanted = ctx.spec.triggers
    return Facts(
        created_at=ctx.info.created_at,
        started=started,
        head=head,
        changed_at=last[-1].at if last else None,
        marks=marks,
        added=_count(ctx, ADDED, marks.get("queue_depth", 0), wanted.queue_depth),
        revised=_count(ctx, REVISED, marks.get("revision_queue", 0), wanted.revision_queue),
        idle_change=any(not _by(event, UPKEEP) for event in _since(ctx, marks.get("idle", 0), head)),
        unreflected=sum(_by(e, {"observe"}) for e in _since(ctx, marks.get("reflect", 0), head, "entry.put")),
        untriaged=bool(store.amendments(states=[AmendmentState.PENDING], limit=1)),
    )


def _marks(ctx: CallContext) -> dict[str, int]:
    """Where each trigger's last job looked up to, whatever became of that job."""
    jobs = [*ctx.local.jobs(kind="consolidate", limit=LAST_JOBS), *ctx.local.jobs(kind="reflect", limit=LAST_JOBS)]
    marks: dict[str, int] = {}
    for job in jobs:
        until = job.payload.get("until")
        trigger = "reflect" if job.kind == "reflect" else job.payload.get("trigger")
        if isinstance(until, int) and isinstance(trigger, str):
            marks[trigger] = max(until, marks.get(trigger, 0))
    return marks


def _count(ctx: CallContext, actions: tuple[str, ...], after: int, most: int) -> int:
    """How many events of these there are, counted no further than matters."""
    return sum(len(ctx.local.events(after=after, limit=most, action=action)) for action in actions)


def _since(ctx: CallContext, after: int, head: int, action: str | None = None) -> list[Event]:
    return ctx.local.events(after=max(after, head - LOOK_BACK), limit=LOOK_BACK, action=action)


def _by(event: Event, kinds: frozenset[str] | set[str]) -> bool:
    return event.actor.surface == "worker" and event.actor.transport in kinds


def _unembedded(ctx: CallContext) -> bool:
    if ctx.embedder is None:
        return False
    model = ctx.embedder.model
    stores = (ctx.local, ctx.account)
    return any(store.unembedded(model, 1) for store in stores) or bool(ctx.local.unembedded_items(model, "", 1))
