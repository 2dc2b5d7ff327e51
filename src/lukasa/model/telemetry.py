"""Telemetry: a report of every step, and the cost of models. Lukasa never sends it anywhere unless told to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

Level = Literal["debug", "info", "warn", "error"]
MOST_DEBUG = 50_000  # debug events, as reads write them, that a database keeps


class TelemetryEvent(Struct, frozen=True):
    """One telemetry event. `metadata` holds counts and names, never the text of a memory."""

    at: datetime
    level: Level
    source: str
    component: str
    action: str
    success: bool
    duration_ms: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=dict)


class TelemetryQuery(Struct, frozen=True):
    """Conditions that must all hold; an omitted one does not filter."""

    since: datetime | None = None
    until: datetime | None = None
    component: str | None = None
    action: str | None = None
    level: Level | None = None
    success: bool | None = None


class Tally(Struct, frozen=True):
    """All events of one action: how many, how many failed, how long they took, and the sums of their numbers."""

    component: str
    action: str
    count: int
    failures: int
    mean_ms: float
    max_ms: float
    sums: Mapping[str, float] = field(default_factory=dict)


class DayTally(Struct, frozen=True):
    """All events of one day (UTC, as YYYY-MM-DD): how many, and how many failed."""

    day: str
    count: int
    failures: int


def together(*tallies: Iterable[Tally]) -> list[Tally]:
    """Add the tallies of several databases up, by action."""
    found: dict[tuple[str, str], Tally] = {}
    for tally in (tally for each in tallies for tally in each):
        other = found.get((tally.component, tally.action))
        found[tally.component, tally.action] = tally if other is None else _sum(other, tally)
    return [found[name] for name in sorted(found)]


def _sum(a: Tally, b: Tally) -> Tally:
    count = a.count + b.count
    mean = (a.mean_ms * a.count + b.mean_ms * b.count) / count
    sums = {key: a.sums.get(key, 0) + b.sums.get(key, 0) for key in sorted({*a.sums, *b.sums})}
    return Tally(a.component, a.action, count, a.failures + b.failures, mean, max(a.max_ms, b.max_ms), sums)


def days_together(*tallies: Iterable[DayTally]) -> list[DayTally]:
    found: dict[str, DayTally] = {}
    for tally in (tally for each in tallies for tally in each):
        other = found.get(tally.day, DayTally(tally.day, 0, 0))
        found[tally.day] = DayTally(tally.day, other.count + tally.count, other.failures + tally.failures)
    return [found[day] for day in sorted(found)]


class Spending(Struct, frozen=True):
    """The tokens and cost of one model on one day (UTC, as YYYY-MM-DD). Cost is zero if no price is set."""

    day: str
    model: str
    calls: int
    prompt: int
    completion: int
    cost: float = 0.0
