"""Telemetry: what every step reports of itself, and what models cost. It never leaves the machine by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, Literal

from mnemon.model.frozen import dataclass

Level = Literal["debug", "info", "warn", "error"]


@dataclass(frozen=True, slots=True)
class Point:
    """One report. `metadata` holds counts and names, never the text of a memory."""

    at: datetime
    level: Level
    source: str
    component: str
    action: str
    success: bool
    duration_ms: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PointQuery:
    """Conditions that must all hold; what is left out does not filter."""

    since: datetime | None = None
    until: datetime | None = None
    component: str | None = None
    action: str | None = None
    level: Level | None = None
    success: bool | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """All points of one action: how many, how many failed, how long they took, and the sums of their numbers."""

    component: str
    action: str
    count: int
    failures: int
    mean_ms: float
    max_ms: float
    sums: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DayTally:
    """All points of one day (UTC, as YYYY-MM-DD): how many, and how many failed."""

    day: str
    count: int
    failures: int


@dataclass(frozen=True, slots=True)
class Spending:
    """What calls to one model took on one day (UTC, as YYYY-MM-DD). Cost is zero where no price is set."""

    day: str
    model: str
    calls: int
    prompt: int
    completion: int
    cost: float = 0.0
