"""Telemetry and what models cost: writes and reads."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import apsw

from lukasa.model.telemetry import MOST_DEBUG, DayTally, Level, Spending, Tally, TelemetryEvent, TelemetryQuery
from lukasa.model.timestamps import micros, micros_or_none, moment
from lukasa.storage import rules
from lukasa.storage.sqlite import pipeline_sql as sql
from lukasa.storage.sqlite.query import all_rows


def emit(db: apsw.Connection, *points: TelemetryEvent) -> None:
    db.executemany(sql.NEW_POINT, [_row(point) for point in points])


def _row(p: TelemetryEvent) -> tuple[Any, ...]:
    metadata = rules.plain_text(dict(p.metadata))
    return micros(p.at), p.level, p.source, p.component, p.action, int(p.success), float(p.duration_ms), metadata


def forget(db: apsw.Connection, before: datetime, level: Level | None) -> None:
    db.execute(sql.FORGET_POINTS, {"before": micros(before), "level": level})


def prune(db: apsw.Connection) -> None:
    """Reads are many: of what they report, the newest stay."""
    db.execute(sql.PRUNE_POINTS, (MOST_DEBUG,))


def spend(db: apsw.Connection, s: Spending) -> None:
    db.execute(sql.SPEND, (s.day, s.model, s.calls, s.prompt, s.completion, float(s.cost)))


def points(db: apsw.Connection, query: TelemetryQuery, limit: int) -> list[TelemetryEvent]:
    rows = all_rows(db, sql.POINTS, {**_bindings(query), "limit": limit})
    return [
        TelemetryEvent(moment(at), level, source, component, action, bool(success), duration, json.loads(metadata))
        for at, level, source, component, action, success, duration, metadata in rows
    ]


def tally(db: apsw.Connection, query: TelemetryQuery) -> list[Tally]:
    sums: dict[tuple[str, str], dict[str, float]] = {}
    for component, action, key, total in all_rows(db, sql.TALLY_SUMS, _bindings(query)):
        sums.setdefault((component, action), {})[key] = total
    return [
        Tally(component, action, count, failures, mean, most, sums.get((component, action), {}))
        for component, action, count, failures, mean, most in all_rows(db, sql.TALLY, _bindings(query))
    ]


def tally_days(db: apsw.Connection, query: TelemetryQuery) -> list[DayTally]:
    return [DayTally(*row) for row in all_rows(db, sql.TALLY_DAYS, _bindings(query))]


def spent(db: apsw.Connection, since_day: str) -> list[Spending]:
    return [Spending(*row) for row in all_rows(db, sql.SPENT, (since_day,))]


def _bindings(query: TelemetryQuery) -> dict[str, Any]:
    return {
        "since": micros_or_none(query.since),
        "until": micros_or_none(query.until),
        "component": query.component,
        "action": query.action,
        "level": query.level,
        "success": None if query.success is None else int(query.success),
    }
