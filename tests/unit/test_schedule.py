"""Triggers as a pure function: what a spec asks for, given what is known of the workspace."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from lukasa.model.job import JobDraft
from lukasa.service.jobs.triggers import FIRST_DELAY, Activity, due, portion, triggers, window
from lukasa.spec import load_preset
from lukasa.spec.types import TRIGGERS, MemorySpec, Triage, TriggerRules

NOW = datetime(2026, 11, 18, 15, 47, 11, tzinfo=UTC)  # a Wednesday
OLD = Activity(created_at=NOW - timedelta(days=365))
USUAL = TriggerRules()
IDLE = timedelta(minutes=USUAL.idle_minutes)
TIERED, OBSERVER = load_preset("tiered"), load_preset("observer")


def spec_with(*wanted: str) -> MemorySpec:
    """A spec all of whose tiers consolidate on these triggers."""
    changed = {
        place: replace(b, consolidation=replace(b.consolidation, triggers=wanted))
        for place, b in OBSERVER.behaviours.items()
    }
    return replace(OBSERVER, behaviours=changed)


def consolidations(spec: MemorySpec, now: datetime, facts: Activity) -> list[JobDraft]:
    return [draft for draft in due(spec, now, facts) if draft.kind == "consolidate"]


@pytest.mark.parametrize(
    ("every", "start"),
    [
        ("half-hourly", "2026-11-18T15:30:00"),
        ("hourly", "2026-11-18T15:00:00"),
        ("daily", "2026-11-18T00:00:00"),
        ("weekly", "2026-11-16T00:00:00"),
    ],
)
def test_windows(every: str, start: str) -> None:
    """O5: windows are those of the UTC calendar, whoever looks at which moment."""
    assert window(every, NOW) == datetime.fromisoformat(start).replace(tzinfo=UTC)


@pytest.mark.parametrize("every", ["hourly", "daily", "weekly"])
def test_a_schedule_asks_once_for_each_window(every: str) -> None:
    """O5: asked a hundred times in one window, it is one job; after a year of standstill, one for the latest window."""
    spec = spec_with(f"schedule:{every}")
    start = window(every, NOW)
    inside = [start + timedelta(seconds=n) for n in range(0, 3600, 36)]
    keys = {draft.key for now in inside for draft in consolidations(spec, now, OLD)}
    assert keys == {f"consolidate:schedule:{every}:{start:%Y-%m-%dT%H:%MZ}"}
    (after,) = consolidations(spec, start + timedelta(days=364), OLD)
    assert after.key not in keys


def test_a_schedule_begins_with_the_workspace() -> None:
    """O5: a window that began before the workspace did is not made up for."""
    spec = spec_with("schedule:daily")
    young = Activity(created_at=NOW - timedelta(hours=1))
    assert due(spec, NOW, young) == []
    assert [draft.kind for draft in due(spec, NOW + timedelta(days=1), young)] == [
        "consolidate",
        "maintain",
        "tidy",
        "hide-secrets",
    ]


@pytest.mark.parametrize(
    ("trigger", "below", "at"),
    [
        ("queue_depth", {"added": USUAL.queue_depth - 1}, {"added": USUAL.queue_depth}),
        ("revision_queue", {"revised": USUAL.revision_queue - 1}, {"revised": USUAL.revision_queue}),
        (
            "idle",
            {"idle_change": True, "changed_at": NOW - IDLE / 2},
            {"idle_change": True, "changed_at": NOW - IDLE},
        ),
        ("idle", {"idle_change": False, "changed_at": NOW - IDLE}, {"idle_change": True, "changed_at": NOW - IDLE}),
    ],
)
def test_an_event_fires_at_its_threshold(trigger: str, below: dict[str, object], at: dict[str, object]) -> None:
    """O5: queue depth, revision queue, idle; only where the spec names the trigger."""
    spec = spec_with(trigger)
    assert consolidations(spec, NOW, replace(OLD, **below)) == []
    fired = replace(OLD, head=900, marks={trigger: 7}, **at)
    (draft,) = consolidations(spec, NOW, fired)
    assert (draft.key, draft.payload) == (
        f"consolidate:{trigger}:7",
        {"trigger": trigger, "after": 7, "until": 900},
    )
    assert consolidations(spec_with("operator"), NOW, fired) == []


def test_whoever_looks_later_asks_for_the_same() -> None:
    """O5: two workers that see the log at different lengths ask for one job."""
    early, late = (replace(OLD, added=99, head=head, marks={"queue_depth": 7}) for head in (40, 41))
    keys = {d.key for facts in (early, late) for d in consolidations(spec_with("queue_depth"), NOW, facts)}
    assert keys == {"consolidate:queue_depth:7"}


def test_every_trigger_of_the_specs_is_known_here() -> None:
    """O5: no preset names a trigger that nothing would fire."""
    fired_here = {"queue_depth", "revision_queue", "idle", "schedule:hourly", "schedule:daily", "schedule:weekly"}
    fired_by_verbs = {"session_close", "operator"}
    assert set(TRIGGERS) == fired_here | fired_by_verbs
    assert triggers(OBSERVER) == {"schedule:daily", "operator"}


def test_backfill_waits_a_minute_and_then_half_an_hour() -> None:
    """O8: sixty seconds after the worker's start, once in each half hour, only if something is missing."""

    def keys(now: datetime, started: datetime | None, *, missing: bool = True) -> list[str]:
        found = due(OBSERVER, now, replace(OLD, started=started, unembedded=missing))
        return [draft.key for draft in found if draft.kind == "backfill"]

    assert keys(NOW, NOW - FIRST_DELAY / 2) == []
    assert keys(NOW, NOW - FIRST_DELAY) == keys(NOW, None) == ["backfill:2026-11-18T15:30Z"]
    assert keys(NOW + timedelta(minutes=30), NOW) == ["backfill:2026-11-18T16:00Z"]
    assert keys(NOW, None, missing=False) == []


def test_a_memory_without_a_clock_waits_for_events() -> None:
    """S0, O5: `tiered` gets no job at any hour; once the workspace falls idle, regular work is done once."""
    waiting = replace(OLD, head=50, unembedded=True, untriaged=True, idle_change=True, changed_at=NOW)
    assert not any(due(TIERED, NOW + n * IDLE / 100, waiting) for n in range(100))
    idle = [due(TIERED, NOW + n * IDLE, waiting) for n in range(1, 200)]
    assert {draft.key for found in idle for draft in found} == {
        "consolidate:idle:0",
        "backfill:idle:0",
        "triage:idle:0",
        "maintain:idle:0",
        "tidy:idle:0",
        "hide-secrets:1",
    }
    assert due(TIERED, NOW + 99 * IDLE, replace(OLD, head=50, changed_at=NOW, marks={"idle": 50})) == []


def test_stragglers_are_triaged_every_half_hour() -> None:
    """O4: proposals that wait are looked at again, and without any nothing happens."""
    waiting = [d.key for d in due(OBSERVER, NOW, replace(OLD, untriaged=True)) if d.kind == "triage"]
    assert waiting == ["triage:2026-11-18T15:30Z"]
    assert not any(d.kind == "triage" for d in due(OBSERVER, NOW, OLD))


def test_reflection_follows_observations() -> None:
    """O3, O5: when enough have come together, or when nothing more comes for a while."""

    def reflections(**facts: object) -> list[str]:
        known = replace(OLD, changed_at=NOW, head=50, **facts)
        return [draft.key for draft in due(OBSERVER, NOW, known) if draft.kind == "reflect"]

    assert reflections(unreflected=USUAL.reflect_at - 1) == []
    assert reflections(unreflected=USUAL.reflect_at, marks={"reflect": 12}) == ["reflect:12"]
    quiet = replace(OLD, changed_at=NOW - IDLE, unreflected=1)
    assert [d.key for d in due(OBSERVER, NOW, quiet) if d.kind == "reflect"] == ["reflect:0"]


def test_a_spec_says_when_an_event_fires() -> None:
    """O5: thresholds are the spec's, and so is how often what waits for triage is taken up."""
    spec = spec_with("queue_depth", "revision_queue", "idle")
    eager = replace(spec, triggers=TriggerRules(3, 2, 0.5, 1), triage=Triage(every_minutes=10))
    facts = replace(OLD, added=3, revised=2, idle_change=True, changed_at=NOW - timedelta(seconds=30), unreflected=1)
    fired = [draft.payload["trigger"] for draft in consolidations(eager, NOW, facts)]
    assert fired == ["queue_depth", "revision_queue", "idle"]
    assert consolidations(spec, NOW, facts) == []
    assert "reflect:0" in {draft.key for draft in due(eager, NOW, facts)}
    (triage,) = [draft for draft in due(eager, NOW, replace(OLD, untriaged=True)) if draft.kind == "triage"]
    assert triage.key == "triage:2026-11-18T15:40Z"


@pytest.mark.parametrize("minutes", [1, 30, 45, 1440])
def test_portions_of_a_day(minutes: int) -> None:
    """O5: the same window for whoever looks within it, and the next one after it."""
    start = portion(minutes, NOW)
    assert start <= NOW < start + timedelta(minutes=minutes)
    assert portion(minutes, start) == start
    assert portion(30, NOW) == window("half-hourly", NOW)
