"""The overview of a workspace: entries by tier, growth, fading entries, waiting work; and the evidence of an entry."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from msgspec import Struct

from lukasa.model.amendment import AmendmentState
from lukasa.model.entry import Entry
from lukasa.model.errors import InvalidInput
from lukasa.model.job import JobState
from lukasa.model.selection import Selection
from lukasa.model.submission import SubmissionState
from lukasa.model.transcript import Quote
from lukasa.model.values import VISIBILITY, Relation, State, Visibility
from lukasa.read.decay import decay_factor, frequency, relevance
from lukasa.service.admin import looking
from lukasa.service.call import CallContext
from lukasa.spec.types import DecayModel, Tier
from lukasa.storage.port import Arrivals, Store

LOOKED_AT = 2000  # the newest entries of a store, for which an overview computes the relevance
SHOWN = 8
AHEAD = timedelta(days=30)
_STEADY = (DecayModel.NONE, DecayModel.EXEMPT)


_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_FEW = 4


def full_id(ctx: CallContext, beginning: str) -> str:
    """Return the one id that begins so; the characters themselves if there is none, or if they are a whole name."""
    wanted = beginning.lower()
    found = [s for store in (ctx.local, ctx.account) for s in store.subjects(wanted, _FEW)]
    ids = list(dict.fromkeys(one for one in found if _ID.fullmatch(one)))
    if not ids or beginning in found:
        return beginning
    if len(ids) > 1:
        shown = ", ".join(ids[: _FEW - 1])
        raise InvalidInput(
            f"{len(ids)} or more ids begin with {beginning[:60]!r}: {shown}", fix="give more of its characters"
        )
    return ids[0]


class TierCount(Struct, frozen=True):
    """A tier, its entries by state, and the scope keys that a reader must choose."""

    name: str
    home: str
    description: str
    needs: tuple[str, ...]
    states: Mapping[State, int]


class Day(Struct, frozen=True):
    """The number of entries that are there at the end of a day, by tier: written, and not retired."""

    day: date
    counts: Mapping[str, int]


class FadingEntry(Struct, frozen=True):
    """An entry that decays: its relevance now, and in a month if nobody retrieves it."""

    entry: Entry
    now: float
    ahead: float


class Vectors(Struct, frozen=True):
    """Whether vector search works. `waiting` entries have no vector of the present model yet."""

    model: str
    waiting: int


class Survey(Struct, frozen=True):
    """The overview of one workspace."""

    tiers: tuple[TierCount, ...]
    growth: tuple[Day, ...]
    fading: tuple[FadingEntry, ...]
    held: int
    proposals: int
    rivals: int
    submissions: int
    jobs: Mapping[JobState, int]
    vectors: Vectors | None
    events: int


def survey(ctx: CallContext) -> Survey:
    """Return the overview. Only the author may see it, because it covers all tiers and owners."""
    ctx.require_author("survey the workspace")
    ctx.require_whole("survey it")
    stores = (ctx.local, ctx.account)
    states = {tier.name: Counter[State]() for tier in ctx.spec.tiers}
    for census in (one for store in stores for one in store.census()):
        states.setdefault(census.scope.tier, Counter()).update(census.states)
    return Survey(
        tiers=tuple(_tier(tier, states[tier.name]) for tier in ctx.spec.tiers),
        growth=growth([one for store in stores for one in store.arrivals() if one.tier in states], _retired(ctx)),
        fading=_fading(ctx, stores),
        held=sum(counts[State.HELD] for counts in states.values()),
        proposals=len(ctx.local.amendments(states={AmendmentState.REVIEW})),
        rivals=sum(len(store.open_rivals(Relation.UPDATE, limit=LOOKED_AT)) for store in stores),
        submissions=len(ctx.local.submissions(states={SubmissionState.OPEN})),
        jobs=ctx.local.queue_depth(),
        vectors=_vectors(ctx, stores),
        events=ctx.local.head()[0],
    )


def _tier(tier: Tier, states: Counter[State]) -> TierCount:
    needs = tuple(key.name for key in tier.anchor if key.required and key.name not in ("account", "workspace"))
    return TierCount(tier.name, tier.home, tier.description, needs, {s: n for s, n in states.items() if n})


def growth(arrivals: Sequence[Arrivals], retired: Mapping[date, Mapping[str, int]] = {}) -> tuple[Day, ...]:
    """Return how many entries were there at the end of each day with a change: those written, less those retired."""
    changes: dict[date, Counter[str]] = {}
    for one in arrivals:
        changes.setdefault(one.day, Counter())[one.tier] += one.count
    for day, counts in retired.items():
        changes.setdefault(day, Counter()).subtract(counts)
    found, totals = [], Counter[str]()
    for day in sorted(changes):
        totals.update(changes[day])
        found.append(Day(day, dict(totals)))
    return tuple(found)


def _retired(ctx: CallContext) -> dict[date, Counter[str]]:
    """Return how many entries of each tier were retired on each day; nothing if there are too many to look at."""
    entries, cut = looking.every(ctx)
    found: dict[date, Counter[str]] = {}
    for entry in () if cut else entries:
        over = ended(entry) if VISIBILITY[entry.state] is Visibility.HISTORY else None
        if over is not None:
            found.setdefault(over.astimezone(UTC).date(), Counter())[entry.scope.tier] += 1
    return found


def ended(entry: Entry) -> datetime | None:
    """Return when an entry was no longer believed; None if it still is."""
    if VISIBILITY[entry.state] is not Visibility.HISTORY:
        return entry.invalid_at
    at = entry.transition.at if entry.transition else entry.updated_at
    return min(at, entry.invalid_at) if entry.invalid_at else at


def _fading(ctx: CallContext, stores: Sequence[Store]) -> tuple[FadingEntry, ...]:
    """Return the least relevant decaying entries: the next ones to become stale or be pruned."""
    found = [one for store in stores for one in _standing(ctx, store)]
    return tuple(sorted(found, key=lambda one: one.now)[:SHOWN])


def _standing(ctx: CallContext, store: Store) -> list[FadingEntry]:
    known = {tier.name for tier in ctx.spec.tiers}
    scopes = tuple(census.scope for census in store.census() if census.scope.tier in known)
    if not scopes:
        return []
    entries = store.find(Selection(scopes, frozenset({Visibility.OPEN}), None), limit=LOOKED_AT)
    reads = store.access([entry.id for entry in entries])
    ended = {c.id: c.ended_at for c in store.conversations(archived=True)}
    now, found = ctx.now, []
    for entry in entries:
        decay = ctx.spec.behaviour(entry.scope.tier, entry.kind).decay
        if decay.model in _STEADY or entry.path is not None:
            continue
        access, closed = reads.get(entry.id), ended.get(entry.scope.value("conversation") or "")
        values = [
            relevance(entry.importance, decay_factor(decay, entry, access, at, closed), frequency(access))
            for at in (now, now + AHEAD)
        ]
        found.append(FadingEntry(entry, *values))
    return found


def _vectors(ctx: CallContext, stores: Sequence[Store]) -> Vectors | None:
    if ctx.embedder is None:
        return None
    model = ctx.embedder.model
    return Vectors(model.name, sum(len(store.unembedded(model, LOOKED_AT)) for store in stores))


# Evidence


class EvidenceQuote(Struct, frozen=True):
    """A quote, verbatim; without text if the message is no longer kept."""

    quote: Quote
    text: str = ""
    role: str = ""
    title: str = ""


def evidence(ctx: CallContext, id: str) -> list[EvidenceQuote]:
    """Return the words that an entry rests on, from their transcripts."""
    _, entry = ctx.entry(id)
    return [_said(ctx, quote) for quote in entry.evidence]


def _said(ctx: CallContext, quote: Quote) -> EvidenceQuote:
    message = ctx.local.utterance(quote.transcript, quote.message)
    if message is None:
        return EvidenceQuote(quote)
    transcript = ctx.local.transcript(quote.transcript)
    text = message.text[quote.start : quote.end]
    return EvidenceQuote(quote, text, str(message.role), transcript.title if transcript else "")
