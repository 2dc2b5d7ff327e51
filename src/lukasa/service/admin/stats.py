"""Statistics: counts of entries and events, and the duration, outcome and cost of work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from lukasa.curated.reflection import UNSORTED
from lukasa.model.job import JobState
from lukasa.model.telemetry import DayTally, Spending, Tally, TelemetryEvent, TelemetryQuery, days_together, together
from lukasa.model.values import VISIBILITY, State, Visibility
from lukasa.read.decay import awaits_disposition
from lukasa.service.call import CallContext
from lukasa.service.upkeep.run import targets, weighed
from lukasa.storage.port import Share
from lukasa.upkeep.weighed import Weighed

FADING = 5
_WRITE = (
    "memory",
    "file",
    "review",
    "curated",
)  # verbs that write entries; jobs have their own counts
_OUTCOMES = (
    "stored",
    "merged",
    "held",
    "discarded",
    "updated",
    "superseded",
    "invalidated",
    "archived",
    "forgotten",
    "restored",
    "accepted",
    "undone",
)


class Totals(Struct, frozen=True):
    """Of the entries in recall: how many, the stale ones, the repetitions merged into them, and the categories."""

    recalled: int
    stale: int
    merged: int
    categories: Mapping[str, int]


class Stats(Struct, frozen=True):
    """Counts of all entries, and of events and work since a time.

    Each share of `entries` also counts those added `since`. `outcomes` counts all writes since then by outcome: stored,
    merged, held, discarded, and so on. `fading` holds the least relevant entries in recall, and `awaiting` counts those
    that wait for a disposition.
    """

    since: datetime
    entries: tuple[Share, ...]
    totals: Totals
    events: Mapping[str, int]
    outcomes: Mapping[str, int]
    fading: tuple[Weighed, ...]
    awaiting: int
    jobs: Mapping[JobState, int]
    work: tuple[Tally, ...]
    spending: tuple[Spending, ...]

    def total(self, **alike: str) -> int:
        """Count entries with these properties, as in `total(state="active", tier="workspace")`."""
        return sum(s.count for s in self.entries if all(str(getattr(s, k)) == v for k, v in alike.items()))

    @property
    def added(self) -> int:
        return sum(share.added for share in self.entries)


def totals(shares: Iterable[Share]) -> Totals:
    """Add up the groups of entries that reads find."""
    found = [share for share in shares if VISIBILITY[share.state] is Visibility.OPEN]
    categories = Counter[str]()
    for share in found:
        categories[share.category or UNSORTED] += share.count
    stale = sum(share.count for share in found if share.state is State.STALE)
    most_first = dict(sorted(categories.items(), key=lambda item: (-item[1], item[0])))
    return Totals(sum(share.count for share in found), stale, sum(share.merged for share in found), most_first)


def work(ctx: CallContext, query: TelemetryQuery) -> list[Tally]:
    """Summarise the telemetry events of this workspace and of the account, which is another store."""
    return together(ctx.local.tally(query), ctx.account.tally(query))


def days(ctx: CallContext, query: TelemetryQuery) -> list[DayTally]:
    return days_together(ctx.local.tally_days(query), ctx.account.tally_days(query))


def reports(ctx: CallContext, query: TelemetryQuery, limit: int) -> list[TelemetryEvent]:
    """Return telemetry events of both stores, the newest first."""
    ctx.require_author("see reports")
    ctx.require_whole("see reports")
    found = [*ctx.local.points(query, limit=limit), *ctx.account.points(query, limit=limit)]
    return sorted(found, key=lambda point: point.at, reverse=True)[:limit]


def outcomes(tallies: Iterable[Tally]) -> dict[str, int]:
    """Count writes by outcome."""
    told = [t.sums for t in tallies if t.component in _WRITE]
    found = {name: sum(int(sums.get(name, 0)) for sums in told) for name in _OUTCOMES}
    return {name: count for name, count in found.items() if count}


def stats(ctx: CallContext, since: datetime) -> Stats:
    """Return the statistics since a time."""
    ctx.require_author("see statistics")
    ctx.require_whole("see statistics")
    tiers = {tier.name for tier in ctx.spec.tiers if tier.home == "account"}
    shares = [*ctx.local.shares(since), *(s for s in ctx.account.shares(since) if s.tier in tiers)]
    found = [w for target in targets(ctx) for w in weighed(ctx, target)]
    known = ctx.spec.behaviours
    awaiting = sum(awaits_disposition(known[w.entry.scope.tier, w.entry.kind], w.entry, w.relevance) for w in found)
    done = work(ctx, TelemetryQuery(since=since))
    return Stats(
        since=since,
        entries=tuple(sorted(shares, key=lambda s: -s.count)),
        totals=totals(shares),
        events=ctx.local.event_counts(since),
        outcomes=outcomes(done),
        fading=tuple(sorted(found, key=lambda w: (w.relevance, w.entry.confirmed_at, w.id))[:FADING]),
        awaiting=awaiting,
        jobs=ctx.local.queue_depth(),
        work=tuple(done),
        spending=tuple(ctx.local.spent(f"{since:%Y-%m-%d}")),
    )
