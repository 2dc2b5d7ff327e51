"""Verbs about the whole of a workspace: what is in it, and what happened there."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from lukasa.model.grant import Capability
from lukasa.model.telemetry import TelemetryQuery
from lukasa.service.admin import stats as counting
from lukasa.surfaces.api.shapes import EntryOut, EventOut, EventsOut
from lukasa.surfaces.api.verb import Call, Given, Told, Verb

_AT = "/workspaces/{workspace}"


class EventsIn(Given):
    action: str | None = Field(None, description="Only events of this action, such as entry.added.")
    limit: int = Field(100, ge=1, le=1000)
    after: int = Field(0, ge=0, description="Only events after this number: the `next` of the page before.")


def events(call: Call, given: EventsIn) -> EventsOut:
    whole = call.overseen(Capability.EVENTS)
    page = whole.events(after=given.after, limit=given.limit + 1, action=given.action)
    more = str(page[given.limit - 1].seq) if len(page) > given.limit else None
    return EventsOut(events=[EventOut.of(event) for event in page[: given.limit]], next=more)


class ShareOut(Told):
    """Entries that are alike: how many there are, and how many were added in the time asked about."""

    tier: str
    state: str
    kind: str
    category: str
    source: str
    count: int
    added: int


class TallyOut(Told):
    component: str
    action: str
    count: int
    failures: int
    mean_ms: float
    max_ms: float
    sums: dict[str, float]


class SpendingOut(Told):
    day: str
    model: str
    calls: int
    prompt: int
    completion: int
    cost: float


class WeighedOut(Told):
    entry: EntryOut
    relevance: float
    reads: int


class StatsOut(Told):
    """What is remembered, and what happened to it since a time."""

    since: datetime
    entries: list[ShareOut]
    events: dict[str, int]
    outcomes: dict[str, int]
    fading: list[WeighedOut]
    awaiting: int
    jobs: dict[str, int]
    work: list[TallyOut]
    spending: list[SpendingOut]


class StatsIn(Given):
    since: str = Field("7d", description="A time, or for so long: 24h, 7d, 2w.")


def stats(call: Call, given: StatsIn) -> StatsOut:
    whole = call.overseen(Capability.STATS)
    found = StatsOut.of(whole.stats(given.since))
    if call.given.is_owner:
        return found
    # Numbers were granted, and of what is within reach; which entries fade is not a number.
    found.fading = []
    # The account's reports tell of grants and of what other workspaces do.
    here = whole.ctx.local.tally(TelemetryQuery(since=found.since))
    found.work, found.outcomes = [TallyOut.of(tally) for tally in here], counting.outcomes(here)
    found.entries = [share for share in found.entries if call.workspace.ctx.opens(share.tier)]
    return found


VERBS = (
    Verb(
        "workspace_stats",
        "Show numbers: entries by tier, state and source, what happened to them, how the work went and what it cost.",
        Capability.STATS,
        "GET",
        f"{_AT}/stats",
        StatsIn,
        StatsOut,
        stats,
    ),
    Verb(
        "event_list",
        "Look into the event log of a workspace: every change, oldest first, without the texts.",
        Capability.EVENTS,
        "GET",
        f"{_AT}/events",
        EventsIn,
        EventsOut,
        events,
        tool=False,
    ),
)
