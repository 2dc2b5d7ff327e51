"""Triggers: look at a workspace and say which jobs are due. Each look reads a bounded number of events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model.amendment import AmendmentState
from lukasa.model.entry import Scope
from lukasa.model.events import Event
from lukasa.model.ids import new_id
from lukasa.model.job import JobDraft
from lukasa.model.secrets import DETECTOR
from lukasa.model.values import State
from lukasa.service.call import CallContext
from lukasa.spec.types import MemorySpec

ADDED = ("entry.put", "entry.held")
REVISED = ("entry.superseded", "entry.invalidated", f"entry.{State.STALE}")
UPKEEP = frozenset(
    {
        "consolidate",
        "maintain",
        "backfill",
        "tidy",
        "triage",
        "reflect",
        "curate",
        "hide-secrets",
        "index-vectors",
        "poll",
        "follow",
        "verify",
    }
)
LOOK_BACK = 2000  # events
LAST_JOBS = 1000
BOUNDARY = "boundary"
HIDE_SECRETS = JobDraft("hide-secrets", f"hide-secrets:{DETECTOR}")


class TriggerCheck:
    """The triggers of one workspace. It looks for missing vectors and indexes once in half an hour: that costs most."""

    def __init__(self, ctx: CallContext) -> None:
        self._ctx = ctx
        self._searched: datetime | None = None

    def wanted(self, now: datetime, started: datetime | None) -> list[JobDraft]:
        """Return the jobs that are due now."""
        found = activity(self._ctx, started)
        half_hour = window("half-hourly", now)
        if self._searched != half_hour and warm(now, started):
            self._searched = half_hour
            found = replace(found, unembedded=_unembedded(self._ctx), unindexed=_unindexed(self._ctx))
        return due(self._ctx.spec, now, found)


def activity(ctx: CallContext, started: datetime | None = None) -> Activity:
    """Read the activity of a workspace since its last jobs, except whether vectors are missing."""
    store = ctx.local
    head, _ = store.head()
    last = store.events(after=head - 1, limit=1) if head else []
    marks = _marks(ctx)
    wanted = ctx.spec.triggers
    followed = {one.kind for one in store.watches() if one.due_at <= ctx.now}
    return Activity(
        created_at=ctx.info.created_at,
        started=started,
        head=head,
        changed_at=last[-1].at if last else None,
        marks=marks,
        added=_count(ctx, ADDED, marks.get("queue_depth", 0), wanted.queue_depth),
        revised=_count(ctx, REVISED, marks.get("revision_queue", 0), wanted.revision_queue),
        idle_change=any(not _by(event, UPKEEP) for event in _since(ctx, marks.get("idle", 0), head)),
        unreflected=sum(_by(e, {"observe"}) for e in _since(ctx, marks.get("reflect", 0), head, "entry.put")),
        cites=bool(store.newest_citations(limit=1)),
        feeds="feed" in followed,
        follows="folder" in followed,
        untriaged=bool(store.amendments(states=[AmendmentState.PENDING], limit=1)),
    )


def _marks(ctx: CallContext) -> dict[str, int]:
    """Return for each trigger the event up to which its last job looked, also if that job failed."""
    jobs = [*ctx.local.jobs(kind="consolidate", limit=LAST_JOBS), *ctx.local.jobs(kind="reflect", limit=LAST_JOBS)]
    marks: dict[str, int] = {}
    for job in jobs:
        until = job.payload.get("until")
        trigger = "reflect" if job.kind == "reflect" else job.payload.get("trigger")
        if isinstance(until, int) and isinstance(trigger, str):
            marks[trigger] = max(until, marks.get(trigger, 0))
    return marks


def _count(ctx: CallContext, actions: tuple[str, ...], after: int, most: int) -> int:
    """Count events of these actions, up to `most` of each."""
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
    if any(store.unembedded(model, 1) for store in stores):
        return True
    if ctx.second is not None and any(store.unembedded(ctx.second.model, 1) for store in stores):
        return True
    return bool(ctx.local.unembedded_items(model, "", 1) or ctx.local.unembedded_passages(model, 1))


def _unindexed(ctx: CallContext) -> bool:
    return any(store.vector_index_due() for store in (ctx.local, ctx.account))


FIRST_DELAY = timedelta(seconds=60)  # O8: a worker that has just started leaves the processor to others


class Activity(Struct, frozen=True):
    """The activity of a workspace, as triggers judge it.

    `marks` holds for each trigger the event up to which its last job looked. `started` is when the worker started, None
    for a single pass.
    """

    created_at: datetime
    started: datetime | None = None
    head: int = 0
    changed_at: datetime | None = None
    marks: dict[str, int] = field(default_factory=dict)
    added: int = 0
    revised: int = 0
    idle_change: bool = False
    unreflected: int = 0
    unembedded: bool = False
    unindexed: bool = False
    untriaged: bool = False
    cites: bool = False
    feeds: bool = False
    follows: bool = False


def due(spec: MemorySpec, now: datetime, facts: Activity) -> list[JobDraft]:
    """Return the jobs that a spec's triggers ask for, given the activity."""
    regular = _by_clock if spec.triggers.clock else _when_idle
    indexing = [_windowed("index-vectors", "", window("half-hourly", now))] if facts.unindexed else []
    polling = [_windowed("poll", "", portion(1, now))] if facts.feeds else []
    following = [_windowed("follow", "", portion(1, now))] if facts.follows else []
    return [
        *following,
        *polling,
        *indexing,
        *_consolidations(spec, now, facts),
        *regular(spec, now, facts),
        *_reflections(spec, now, facts),
    ]


def triggers(spec: MemorySpec) -> frozenset[str]:
    """Return all triggers that some tier of a spec names."""
    return frozenset(t for b in spec.behaviours.values() for t in b.consolidation.triggers)


def session_close(spec: MemorySpec, conversation: str, digests: Sequence[str] = ()) -> list[JobDraft]:
    """Return the jobs to queue in the transaction that ends a conversation, and that wrote these digests of it."""
    if "session_close" not in triggers(spec):
        return []
    payload: dict[str, Any] = {"trigger": "session_close", "conversation": conversation}
    payload |= {"digests": list(digests)} if digests else {}
    return [JobDraft("consolidate", f"consolidate:session_close:{conversation}", payload)]


def boundary(spec: MemorySpec, scope: Scope, digests: Sequence[str]) -> list[JobDraft]:
    """Return the jobs to queue in the transaction that ends a scope, or leaves it: one for each time."""
    if "session_close" not in triggers(spec):
        return []
    keys = [list(pair) for pair in scope.anchor]
    payload = {"trigger": BOUNDARY, "tiers": [scope.tier], "anchor": keys, "digests": list(digests)}
    return [JobDraft("consolidate", f"consolidate:{BOUNDARY}:{scope.tier}:{new_id()}", payload)]


def window(every: str, now: datetime) -> datetime:
    """Return when the present window of a schedule began (UTC; a week begins on Monday)."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    match every:
        case "half-hourly":
            return hour.replace(minute=now.minute // 30 * 30)
        case "hourly":
            return hour
        case "daily":
            return hour.replace(hour=0)
        case _:
            return hour.replace(hour=0) - timedelta(days=now.weekday())


def portion(minutes: int, now: datetime) -> datetime:
    """Return when the present window began, of windows of that many minutes into which a day is divided."""
    day = window("daily", now)
    return day + timedelta(minutes=(now - day) // timedelta(minutes=1) // minutes * minutes)


def _consolidations(spec: MemorySpec, now: datetime, facts: Activity) -> list[JobDraft]:
    wanted = triggers(spec)
    out = [
        _windowed("consolidate", trigger, window(trigger.partition(":")[2], now), {"trigger": trigger})
        for trigger in sorted(wanted)
        if trigger.startswith("schedule:") and window(trigger.partition(":")[2], now) >= facts.created_at
    ]
    events = {
        "queue_depth": facts.added >= spec.triggers.queue_depth,
        "revision_queue": facts.revised >= spec.triggers.revision_queue,
        "idle": _quiet(spec, now, facts) and facts.idle_change,
    }
    for trigger, fires in events.items():
        if trigger in wanted and fires:
            after = facts.marks.get(trigger, 0)
            payload = {"trigger": trigger, "after": after, "until": facts.head}
            out.append(JobDraft("consolidate", f"consolidate:{trigger}:{after}", payload))
    return out


def _by_clock(spec: MemorySpec, now: datetime, facts: Activity) -> list[JobDraft]:
    """Return the regular jobs whose window has begun, if there is something to do."""
    out = []
    day, half = window("daily", now), window("half-hourly", now)
    if facts.unembedded and warm(now, facts.started):
        out.append(_windowed("backfill", "", half))
    if facts.untriaged:
        out.append(_windowed("triage", "", portion(spec.triage.every_minutes, now)))
    if day >= facts.created_at:
        out += [_windowed("maintain", "", day), _windowed("tidy", "", day)]
        out += [_windowed("verify", "", day)] if facts.cites else []
        out.append(HIDE_SECRETS)
    return out


def _when_idle(spec: MemorySpec, now: datetime, facts: Activity) -> list[JobDraft]:
    """Return the regular jobs of a memory without a clock: once for each time that the workspace has fallen idle."""
    if "idle" not in triggers(spec) or not _quiet(spec, now, facts):
        return []
    wanted = {"backfill": facts.unembedded, "triage": facts.untriaged}
    wanted |= dict.fromkeys(("maintain", "tidy"), facts.idle_change) | {"verify": facts.idle_change and facts.cites}
    after = facts.marks.get("idle", 0)
    out = [JobDraft(kind, f"{kind}:idle:{after}", {"whole": True}) for kind, due in wanted.items() if due]
    return [*out, HIDE_SECRETS] if facts.idle_change else out


def _reflections(spec: MemorySpec, now: datetime, facts: Activity) -> list[JobDraft]:
    out = []
    if facts.unreflected >= spec.triggers.reflect_at or (facts.unreflected and _quiet(spec, now, facts)):
        after = facts.marks.get("reflect", 0)
        out.append(JobDraft("reflect", f"reflect:{after}", {"after": after, "until": facts.head}))
    return out


def warm(now: datetime, started: datetime | None) -> bool:
    """Say whether a worker has run long enough to compute vectors; a single pass does not wait."""
    return started is None or now - started >= FIRST_DELAY


def _quiet(spec: MemorySpec, now: datetime, facts: Activity) -> bool:
    return facts.changed_at is not None and now - facts.changed_at >= timedelta(minutes=spec.triggers.idle_minutes)


def _windowed(kind: str, trigger: str, start: datetime, payload: dict[str, Any] | None = None) -> JobDraft:
    key = ":".join(part for part in (kind, trigger, f"{start:%Y-%m-%dT%H:%MZ}") if part)
    return JobDraft(kind, key, {**(payload or {}), "window": start.isoformat()})
