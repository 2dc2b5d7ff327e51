"""Verbs about a whole workspace: stats, events, an overview, and charts for the owner's page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta

from pydantic import Field

from lukasa.model.errors import InvalidInput, NotFound
from lukasa.model.grant import Capability
from lukasa.model.telemetry import TelemetryQuery
from lukasa.service.admin import stats
from lukasa.service.call import CallContext
from lukasa.surfaces.api.shapes import EntryOut, EventOut, EventsOut
from lukasa.surfaces.api.verb import MOST_NUMBER, Call, NoInput, Verb, VerbInput, VerbOutput
from lukasa.surfaces.web import rendering

_WORKSPACE = "/workspaces/{workspace}"


class EventsIn(VerbInput):
    action: str | None = Field(None, description="Only events of this action, such as entry.put.")
    limit: int = Field(100, ge=1, le=1000, description="At most this many events.")
    after: int = Field(0, ge=0, le=MOST_NUMBER, description="Only events after this number: `next` of the page before.")
    bookmark: str | None = Field(None, description="Only events after this bookmark.")


def events(call: Call, given: EventsIn) -> EventsOut:
    whole = call.overseen(Capability.EVENTS)
    page = whole.events(after=given.after, since=given.bookmark, limit=given.limit + 1, action=given.action)
    more = str(page[given.limit - 1].seq) if len(page) > given.limit else None
    return EventsOut(events=[EventOut.of(event) for event in page[: given.limit]], next=more)


class BookmarkIn(VerbInput):
    name: str = Field(description="A name that begins with a letter, such as before-import.")
    note: str = Field("", description="What the position is good for.")


class BookmarkOut(VerbOutput):
    """A name for a position of the event log: everything up to the event `seq` is before it."""

    name: str
    seq: int
    at: datetime
    by: str
    note: str


class BookmarksOut(VerbOutput):
    bookmarks: list[BookmarkOut]


def bookmark(call: Call, given: BookmarkIn) -> BookmarkOut:
    return BookmarkOut.of(call.overseen(Capability.EVENTS).bookmark(given.name, given.note))


def bookmarks(call: Call, given: NoInput) -> BookmarksOut:
    return BookmarksOut.of({"bookmarks": call.overseen(Capability.EVENTS).bookmarks()})


class ShareOut(VerbOutput):
    """A group of entries with the same properties: its size, and the number of entries added since the given time."""

    tier: str
    state: str
    kind: str
    category: str
    source: str
    count: int
    added: int
    merged: int


class TallyOut(VerbOutput):
    component: str
    action: str
    count: int
    failures: int
    mean_ms: float
    max_ms: float
    sums: dict[str, float]


class SpendingOut(VerbOutput):
    day: str
    model: str
    calls: int
    prompt: int
    completion: int
    cost: float


class WeighedOut(VerbOutput):
    entry: EntryOut
    relevance: float
    reads: int


class TotalsOut(VerbOutput):
    """Of the entries in recall: how many, the stale ones, the repetitions merged into them, and the categories."""

    recalled: int
    stale: int
    merged: int
    categories: dict[str, int]


class StatsOut(VerbOutput):
    """The entries of a workspace by group, and what happened to them since a time."""

    since: datetime
    entries: list[ShareOut]
    totals: TotalsOut
    events: dict[str, int]
    outcomes: dict[str, int]
    fading: list[WeighedOut]
    awaiting: int
    jobs: dict[str, int]
    work: list[TallyOut]
    spending: list[SpendingOut]


class StatsIn(VerbInput):
    since: str = Field("7d", description="A time, or a duration until now: 24h, 7d, 2w.")


def workspace_stats(call: Call, given: StatsIn) -> StatsOut:
    whole = call.overseen(Capability.STATS)
    seen = whole.stats(given.since)
    found = StatsOut.of(seen)
    if call.credential.is_owner:
        return found
    # The capability opens numbers within the grant's reach, not entries, and not the telemetry of the account, which
    # tells of grants and of other workspaces.
    found.fading = []
    here = whole.ctx.local.tally(TelemetryQuery(since=found.since))
    found.work, found.outcomes = [TallyOut.of(tally) for tally in here], stats.outcomes(here)
    found.entries = [share for share in found.entries if call.workspace.ctx.opens(share.tier)]
    found.totals = TotalsOut.of(stats.totals(s for s in seen.entries if call.workspace.ctx.opens(s.tier)))
    return found


class ShownOut(VerbOutput):
    """An entry or a page in a text that was sent. Of a page, `id` is the name."""

    id: str
    version: int
    tokens: int
    page: bool


class SentOut(VerbOutput):
    """A text of memory that went to an agent."""

    at: datetime
    principal: str
    surface: str
    transport: str
    conversation: str
    ref: str
    workspace: str
    verb: str
    tokens: int
    items: list[ShownOut]


class LedgerOfShownOut(VerbOutput):
    shown: list[SentOut]


class ShownIn(VerbInput):
    item: str | None = Field(None, description="Only texts with this entry, by id, or this page, by name.")
    conversation: str | None = Field(None, description="Only in this conversation, by ref code or id.")
    shown_to: str | None = Field(None, description="Only what went to this agent or grant, by name.")
    since: str | None = Field(None, description="A time, or a duration until now: 24h, 7d, 2w.")
    limit: int = Field(50, ge=1, le=1000, description="At most this many.")


def memory_shown(call: Call, given: ShownIn) -> LedgerOfShownOut:
    asked = given.model_dump()
    found = call.overseen(Capability.STATS).shown(agent=asked.pop("shown_to"), **asked)
    return LedgerOfShownOut.of({"shown": found})


class UnusedOut(VerbOutput):
    """An entry that agents were shown again and again, and that nothing shows to be of use."""

    entry: EntryOut
    times: int
    tokens: int
    first: datetime
    last: datetime


class TokensOut(VerbOutput):
    """What memory cost in tokens since a time: altogether, by agent, surface, call and day, and for what in vain."""

    since: datetime
    tokens: int
    texts: int
    by_agent: dict[str, int]
    by_surface: dict[str, int]
    by_verb: dict[str, int]
    by_day: dict[str, int]
    unused: list[UnusedOut]


class TokensIn(VerbInput):
    since: str = Field("7d", description="A time, or a duration until now: 24h, 7d, 2w.")
    times: int = Field(3, ge=1, le=1000, description="An entry shown so often may be listed as unused.")


def workspace_tokens(call: Call, given: TokensIn) -> TokensOut:
    whole = call.overseen(Capability.STATS)
    unused = [UnusedOut.of(one) for one in whole.unused(given.since, times=given.times)]
    use = whole.token_use(given.since)
    return TokensOut(unused=unused, **{name: getattr(use, name) for name in use.__struct_fields__})


NUMBERS_VERBS = (
    Verb(
        "memory_shown",
        "Show which entries and pages went into which prompt, newest first: to whom, where, when, for how many tokens.",
        Capability.STATS,
        "GET",
        f"{_WORKSPACE}/shown",
        ShownIn,
        LedgerOfShownOut,
        memory_shown,
        owner_only=True,
    ),
    Verb(
        "workspace_tokens",
        "Show what memory cost in tokens, by agent, surface and day, and the entries that were shown and never used.",
        Capability.STATS,
        "GET",
        f"{_WORKSPACE}/tokens",
        TokensIn,
        TokensOut,
        workspace_tokens,
        owner_only=True,
    ),
    Verb(
        "workspace_stats",
        "Show statistics: entries by level of memory, state and source, events, background work and its costs.",
        Capability.STATS,
        "GET",
        f"{_WORKSPACE}/stats",
        StatsIn,
        StatsOut,
        workspace_stats,
    ),
    Verb(
        "event_list",
        "List the event log of a workspace: every change, oldest first, without the texts.",
        Capability.EVENTS,
        "GET",
        f"{_WORKSPACE}/events",
        EventsIn,
        EventsOut,
        events,
        tool=False,
    ),
    Verb(
        "bookmark_create",
        "Name the present end of the event log, to read memory as of then or to list what changed since.",
        Capability.EVENTS,
        "POST",
        f"{_WORKSPACE}/bookmarks",
        BookmarkIn,
        BookmarkOut,
        bookmark,
    ),
    Verb(
        "bookmark_list",
        "List the bookmarks of the event log, oldest first.",
        Capability.EVENTS,
        "GET",
        f"{_WORKSPACE}/bookmarks",
        NoInput,
        BookmarksOut,
        bookmarks,
    ),
)


# A workspace at a glance


class TierCountOut(VerbOutput):
    """A tier with its entries by state. `needs` lists the scope keys that a reader of the tier must choose."""

    name: str
    home: str
    description: str
    needs: list[str]
    states: dict[str, int]


class DayOut(VerbOutput):
    day: date
    counts: dict[str, int]


class FadingOut(VerbOutput):
    """A decaying entry: its relevance now, and in a month if nobody reads it."""

    entry: EntryOut
    now: float
    ahead: float


class VectorsOut(VerbOutput):
    model: str
    waiting: int


class SurveyOut(VerbOutput):
    tiers: list[TierCountOut]
    growth: list[DayOut]
    fading: list[FadingOut]
    held: int
    proposals: int
    rivals: int
    submissions: int
    jobs: dict[str, int]
    vectors: VectorsOut | None = None
    events: int


def overview(call: Call, given: NoInput) -> SurveyOut:
    return SurveyOut.of(call.overseen(Capability.STATS).survey())


OVERVIEW_VERBS = (
    Verb(
        "workspace_overview",
        "Show a workspace at a glance: entries by tier and state, growth, entries that fade next, items that wait.",
        Capability.STATS,
        "GET",
        "/workspaces/{workspace}/overview",
        NoInput,
        SurveyOut,
        overview,
        owner_only=True,
        tool=False,
    ),
)


# Charts as SVG and markdown as HTML, for the owner's page


_LONGEST = 200_000


class ChartIn(VerbInput):
    name: str = Field(description="Name of the chart: decay, growth, daily, durations or tokens.")
    entry: str | None = Field(None, description="Id of the entry, for decay.")
    days: int = Field(30, ge=1, le=3660, description="How far back, for daily, durations and tokens.")


class ChartOut(VerbOutput):
    svg: str


def chart(call: Call, given: ChartIn) -> ChartOut:
    draw = _CHARTS.get(given.name)
    if draw is None:
        raise NotFound(f"no chart {given.name[:60]!r}", fix=f"ask for one of: {', '.join(_CHARTS)}")
    return ChartOut(svg=draw(call, given))


def _decay(call: Call, given: ChartIn) -> str:
    if given.entry is None:
        raise InvalidInput("the decay chart needs an entry", fix="name one as `entry`")
    here = call.workspace
    standing = here.standing(given.entry)
    entry = standing.entry
    conversation = entry.scope.value("conversation")
    closed = here.conversation(conversation).ended_at if conversation else None
    decay = here.spec.behaviour(entry.scope.tier, entry.kind).decay
    return rendering.decay_curve(entry, standing.access, decay, here.ctx.now, closed)


def _growth(call: Call, given: ChartIn) -> str:
    survey = call.overseen(Capability.STATS).survey()
    return rendering.growth([(one.day, one.counts) for one in survey.growth])


def _daily(call: Call, given: ChartIn) -> str:
    found = {t.day: t for t in stats.days(_whole(call), _since(call, given))}
    counted = [(day, found.get(day.isoformat())) for day in _days(call, given, found)]
    return rendering.daily([(day, t.count if t else 0, t.failures if t else 0) for day, t in counted])


_EVERY_DAY = 60  # of at most so many days, each has a place in a chart, also before the first one with a value


def _days(call: Call, given: ChartIn, found: Iterable[str]) -> list[date]:
    """Return the days of a chart: those that were asked for, or of many those from the first to the last value."""
    if not (known := sorted(found)):
        return []
    first, last = date.fromisoformat(known[0]), date.fromisoformat(known[-1])
    if given.days <= _EVERY_DAY:
        last = max(last, call.workspace.ctx.now.date())
        first = min(first, last - timedelta(days=given.days - 1))
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def _durations(call: Call, given: ChartIn) -> str:
    return rendering.durations(stats.work(_whole(call), _since(call, given)))


def _tokens(call: Call, given: ChartIn) -> str:
    use = call.overseen(Capability.STATS).token_use(call.workspace.ctx.now - timedelta(days=given.days))
    return rendering.tokens([(day, use.by_day.get(day.isoformat(), 0)) for day in _days(call, given, use.by_day)])


def _whole(call: Call) -> CallContext:
    return call.overseen(Capability.STATS).ctx


def _since(call: Call, given: ChartIn) -> TelemetryQuery:
    return TelemetryQuery(since=call.workspace.ctx.now - timedelta(days=given.days))


_CHARTS: dict[str, Callable[[Call, ChartIn], str]] = {
    "decay": _decay,
    "growth": _growth,
    "daily": _daily,
    "durations": _durations,
    "tokens": _tokens,
}


class MarkdownIn(VerbInput):
    text: str = Field(max_length=_LONGEST, description="Markdown text.")


class MarkdownOut(VerbOutput):
    html: str


def markdown(call: Call, given: MarkdownIn) -> MarkdownOut:
    return MarkdownOut(html=rendering.rendered(given.text))


DRAWINGS_VERBS = (
    Verb(
        "chart_draw",
        "Draw a chart as SVG: decay of an entry, growth by tier, steps by day, or durations of steps.",
        Capability.STATS,
        "GET",
        "/workspaces/{workspace}/charts/{name}",
        ChartIn,
        ChartOut,
        chart,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "markdown_render",
        "Render markdown as inert HTML, for the preview of a page.",
        Capability.READ,
        "POST",
        "/markdown",
        MarkdownIn,
        MarkdownOut,
        markdown,
        owner_only=True,
        tool=False,
    ),
)

VERBS = (*NUMBERS_VERBS, *OVERVIEW_VERBS, *DRAWINGS_VERBS)
