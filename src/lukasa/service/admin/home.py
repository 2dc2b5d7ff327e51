"""The home of a workspace: what it knows, what the last session taught it, what was used, and what fades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta

from msgspec import Struct

from lukasa.model.entry import Entry
from lukasa.model.transcript import Transcript
from lukasa.model.values import VISIBILITY, Authority, Kind, Visibility
from lukasa.service.admin import looking, overview, shown
from lukasa.service.admin.overview import EvidenceQuote, FadingEntry
from lukasa.service.call import CallContext

WEEK = timedelta(days=7)
SHOWN = 6
_SESSIONS = 1000
_FADED = 0.5  # the share that decay has left of an entry that is fading
_IN_FORCE = (Authority.ACT, Authority.INFORM)


class Learned(Struct, frozen=True):
    """An entry with the words that it rests on."""

    entry: Entry
    quotes: tuple[EvidenceQuote, ...]


class UsedEntry(Struct, frozen=True):
    """An entry that agents got lately: how often, when last, and who got it."""

    entry: Entry
    times: int
    at: datetime
    by: str


class DayOfUse(Struct, frozen=True):
    """What happened on a day: entries learned, texts of memory that went to agents, and their tokens."""

    day: date
    learned: int
    used: int
    tokens: int


class Home(Struct, frozen=True):
    """What a workspace knows. `session` is the last one that taught it something; without one, `learned` is the newest.

    `always` are the names of the pages in every prompt, and `rules` what agents always follow.
    """

    memories: int
    people: int
    things: int
    sessions: int
    agents: dict[str, int]
    used: int
    tokens: int
    week: tuple[DayOfUse, ...]
    waiting: int
    session: Transcript | None
    learned: tuple[Learned, ...]
    lately: tuple[UsedEntry, ...]
    rules: tuple[Entry, ...]
    always: tuple[str, ...]
    fading: tuple[FadingEntry, ...]
    faded: int


def home(ctx: CallContext) -> Home:
    """Return what the home of a workspace shows. Only the author may see it, because it covers all tiers and owners."""
    seen = overview.survey(ctx)
    entries = [one for one in looking.every(ctx)[0] if _holds(ctx, one)]
    names = looking.name_map(ctx, most=1)
    sessions = ctx.local.transcripts(limit=_SESSIONS)
    session, learned = _lesson(entries, sessions)
    week, lately = _use(ctx, entries)
    return Home(
        memories=len(entries),
        people=names.people,
        things=names.things,
        sessions=len(sessions),
        agents=dict(Counter(one.format for one in sessions).most_common()),
        used=sum(day.used for day in week),
        tokens=sum(day.tokens for day in week),
        week=week,
        waiting=seen.held + seen.proposals + seen.rivals + seen.submissions,
        session=session,
        learned=tuple(Learned(one, tuple(overview.evidence(ctx, one.id))) for one in learned),
        lately=lately,
        rules=_rules(ctx, entries),
        always=tuple(
            page.name
            for store in (ctx.account, ctx.local)
            for page in store.named()
            if _said(page.body) and not page.template
        ),
        fading=tuple(one for one in seen.fading if _fades(one))[:SHOWN],
        faded=sum(_fades(one) for one in seen.fading),
    )


def _holds(ctx: CallContext, entry: Entry) -> bool:
    return (
        VISIBILITY[entry.state] is Visibility.OPEN
        and not entry.damaged
        and entry.path is None
        and _said(entry.content)
        and entry.holds_at(ctx.now)
    )


def _said(text: str) -> bool:
    return bool(text) and not text.isspace()


def _fades(one: FadingEntry) -> bool:
    return one.now < _FADED * one.entry.importance


def _lesson(entries: Sequence[Entry], sessions: Sequence[Transcript]) -> tuple[Transcript | None, list[Entry]]:
    """Return the last session that taught something, and what; without one, the newest entries."""
    taught: dict[str, list[Entry]] = {}
    for entry in entries:
        for id in dict.fromkeys(quote.transcript for quote in entry.evidence):
            taught.setdefault(id, []).append(entry)
    for session in sorted(sessions, key=lambda one: one.updated_at, reverse=True):
        if session.id in taught:
            return session, sorted(taught[session.id], key=_newest)[:SHOWN]
    return None, sorted(entries, key=_newest)[:SHOWN]


def _newest(entry: Entry) -> tuple[float, str]:
    return -entry.created_at.timestamp(), entry.id


def _rules(ctx: CallContext, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the procedures that are in every context, and after them the other ones that agents may follow."""
    found = [one for one in entries if one.kind is Kind.PROCEDURAL and one.authority in _IN_FORCE]
    return tuple(sorted(found, key=lambda one: (-one.importance, one.created_at, one.id))[:SHOWN])


def _always(ctx: CallContext, entry: Entry) -> bool:
    """Whether an entry is in every context: then it says nothing that an agent got it."""
    return entry.kind is Kind.PROCEDURAL and entry.importance >= ctx.spec.standing_importance


def _use(ctx: CallContext, entries: Sequence[Entry]) -> tuple[tuple[DayOfUse, ...], tuple[UsedEntry, ...]]:
    """Return what was learned and used on each of the last seven days, and the entries that were used last."""
    last = ctx.now.date()
    days = [last - timedelta(days=ago) for ago in range(6, -1, -1)]
    texts, tokens = Counter[date](), Counter[date]()
    found: dict[str, tuple[int, datetime, str]] = {}
    for one in shown.sent(ctx, since=ctx.now - WEEK, limit=10_000):
        texts[one.at.date()] += 1
        tokens[one.at.date()] += one.tokens
        for item in one.items:
            if not item.page:
                times, at, by = found.get(item.id, (0, one.at, one.principal))
                found[item.id] = (times + 1, at, by)
    learned = Counter(entry.created_at.date() for entry in entries if entry.created_at.date() >= days[0])
    known = {entry.id: entry for entry in entries}
    used = [UsedEntry(known[id], *told) for id, told in found.items() if id in known and not _always(ctx, known[id])]
    used.sort(key=lambda one: (-one.at.timestamp(), -one.times, one.entry.id))
    week = tuple(DayOfUse(day, learned[day], texts[day], tokens[day]) for day in days)
    return week, tuple(used[:SHOWN])
