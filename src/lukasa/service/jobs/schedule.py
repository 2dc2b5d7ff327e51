"""Which work a workspace's triggers want now. Pure: what is known of the workspace goes in, drafts of jobs come out.

Every draft has a key that stays the same until the work was asked for: a schedule's is its window, an event's is the
place in the log up to which the last such job looked. Asking twice is therefore asking once, whoever asks; and after a
long stop there is one run for the latest window, not one for each that was missed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field

from lukasa.model.job import JobDraft
from lukasa.spec.types import MemorySpec

FIRST_DELAY = timedelta(seconds=60)  # O8: a worker that has just started leaves the machine to others


class Facts(Struct, frozen=True):
    """What triggers ask about. `marks` is where in the log each trigger's last job looked up to; `started` is when
    the worker did, None for a single pass."""

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
    untriaged: bool = False


def due(spec: MemorySpec, now: datetime, facts: Facts) -> list[JobDraft]:
    return [*_consolidations(spec, now, facts), *_standing(spec, now, facts)]


def triggers(spec: MemorySpec) -> frozenset[str]:
    """All triggers that some tier of a spec names."""
    return frozenset(t for b in spec.behaviours.values() for t in b.consolidation.triggers)


def session_close(spec: MemorySpec, conversation: str) -> list[JobDraft]:
    """What is wanted when a conversation ends, for the transaction that ends it."""
    if "session_close" not in triggers(spec):
        return []
    payload = {"trigger": "session_close", "conversation": conversation}
    return [JobDraft("consolidate", f"consolidate:session_close:{conversation}", payload)]


def window(every: str, now: datetime) -> datetime:
    """When the present window of a schedule began (UTC; a week begins on Monday)."""
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
    """When the present one of the windows began that a day is divided into."""
    day = window("daily", now)
    return day + timedelta(minutes=(now - day) // timedelta(minutes=1) // minutes * minutes)


def _consolidations(spec: MemorySpec, now: datetime, facts: Facts) -> list[JobDraft]:
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


def _standing(spec: MemorySpec, now: datetime, facts: Facts) -> list[JobDraft]:
    """What every workspace has, where there is something to do."""
    out = []
    day, half = window("daily", now), window("half-hourly", now)
    if facts.unembedded and warm(now, facts.started):
        out.append(_windowed("backfill", "", half))
    if facts.untriaged:
        out.append(_windowed("triage", "", portion(spec.triage.every_minutes, now)))
    if day >= facts.created_at:
        out += [_windowed("maintain", "", day), _windowed("tidy", "", day)]
    if facts.unreflected >= spec.triggers.reflect_at or (facts.unreflected and _quiet(spec, now, facts)):
        after = facts.marks.get("reflect", 0)
        out.append(JobDraft("reflect", f"reflect:{after}", {"after": after, "until": facts.head}))
    return out


def warm(now: datetime, started: datetime | None) -> bool:
    """Whether a worker has run for long enough to compute vectors; a single pass does not wait."""
    return started is None or now - started >= FIRST_DELAY


def _quiet(spec: MemorySpec, now: datetime, facts: Facts) -> bool:
    return facts.changed_at is not None and now - facts.changed_at >= timedelta(minutes=spec.triggers.idle_minutes)


def _windowed(kind: str, trigger: str, start: datetime, payload: dict[str, Any] | None = None) -> JobDraft:
    key = ":".join(part for part in (kind, trigger, f"{start:%Y-%m-%dT%H:%MZ}") if part)
    return JobDraft(kind, key, {**(payload or {}), "window": start.isoformat()})
