"""The survey: a workspace at a glance. What there is in each tier, how it grew, what fades, and what waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import accumulate, groupby

from msgspec import Struct

from lukasa.model.amendment import AmendmentState
from lukasa.model.entry import Entry
from lukasa.model.job import JobState
from lukasa.model.selection import Selection
from lukasa.model.transcript import Quote
from lukasa.model.values import State, Visibility
from lukasa.read.decay import decay_factor, frequency, relevance
from lukasa.service.call import CallContext
from lukasa.spec.types import DecayModel, Tier
from lukasa.storage.port import Arrivals, Store

LOOKED_AT = 2000  # entries of a database whose standing is worked out for a survey; beyond, the newest
SHOWN = 8
AHEAD = timedelta(days=30)
_STEADY = (DecayModel.NONE, DecayModel.EXEMPT)


class TierCount(Struct, frozen=True):
    """A tier, how many entries it has in each state, and the keys that must be chosen to look into it."""

    name: str
    home: str
    description: str
    needs: tuple[str, ...]
    states: Mapping[State, int]


class Day(Struct, frozen=True):
    """How many entries had been written by the end of a day, by tier."""

    day: date
    counts: Mapping[str, int]


class Fading(Struct, frozen=True):
    """An entry that time takes from: its relevance now, and in a month if nobody asks for it."""

    entry: Entry
    now: float
    ahead: float


class Vectors(Struct, frozen=True):
    """Whether meaning can be searched. `waiting` entries have no vector of the model yet."""

    model: str
    waiting: int


class Survey(Struct, frozen=True):
    tiers: tuple[TierCount, ...]
    growth: tuple[Day, ...]
    fading: tuple[Fading, ...]
    held: int
    proposals: int
    jobs: Mapping[JobState, int]
    vectors: Vectors | None
    events: int


def survey(ctx: CallContext) -> Survey:
    """For the author, who sees all tiers and all owners."""
    ctx.require_author("survey the workspace")
    stores = (ctx.local, ctx.account)
    states = {tier.name: Counter[State]() for tier in ctx.spec.tiers}
    for census in (one for store in stores for one in store.census()):
        states.setdefault(census.scope.tier, Counter()).update(census.states)
    return Survey(
        tiers=tuple(_tier(tier, states[tier.name]) for tier in ctx.spec.tiers),
        growth=growth([one for store in stores for one in store.arrivals() if one.tier in states]),
        fading=_fading(ctx, stores),
        held=sum(counts[State.HELD] for counts in states.values()),
        proposals=len(ctx.local.amendments(states={AmendmentState.REVIEW})),
        jobs=ctx.local.queue_depth(),
        vectors=_vectors(ctx, stores),
        events=ctx.local.head()[0],
    )


def _tier(tier: Tier, states: Counter[State]) -> TierCount:
    needs = tuple(key.name for key in tier.anchor if key.required and key.name not in ("account", "workspace"))
    return TierCount(tier.name, tier.home, tier.description, needs, {s: n for s, n in states.items() if n})


def growth(arrivals: Sequence[Arrivals]) -> tuple[Day, ...]:
    """Arrivals added up, a value for each day on which there was one."""
    ordered = sorted(arrivals, key=lambda one: (one.day, one.tier))
    days = [(day, Counter({a.tier: a.count for a in same})) for day, same in groupby(ordered, key=lambda one: one.day)]
    totals = accumulate((counts for _, counts in days), lambda before, new: before + new)
    return tuple(Day(day, dict(total)) for (day, _), total in zip(days, totals, strict=True))


def _fading(ctx: CallContext, stores: Sequence[Store]) -> tuple[Fading, ...]:
    """The least relevant among what decays: what would be stale or pruned first."""
    found = [one for store in stores for one in _standing(ctx, store)]
    return tuple(sorted(found, key=lambda one: one.now)[:SHOWN])


def _standing(ctx: CallContext, store: Store) -> list[Fading]:
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
        found.append(Fading(entry, *values))
    return found


def _vectors(ctx: CallContext, stores: Sequence[Store]) -> Vectors | None:
    if ctx.embedder is None:
        return None
    model = ctx.embedder.model
    return Vectors(model.name, sum(len(store.unembedded(model, LOOKED_AT)) for store in stores))


# Evidence


class Said(Struct, frozen=True):
    """A quote as it was said; without text where the message is no longer kept."""

    quote: Quote
    text: str = ""
    role: str = ""
    title: str = ""


def evidence(ctx: CallContext, id: str) -> list[Said]:
    """The words that an entry rests on, from the transcripts they were said in."""
    _, entry = ctx.entry(id)
    return [_said(ctx, quote) for quote in entry.evidence]


def _said(ctx: CallContext, quote: Quote) -> Said:
    message = ctx.local.utterance(quote.transcript, quote.message)
    if message is None:
        return Said(quote)
    transcript = ctx.local.transcript(quote.transcript)
    text = message.text[quote.start : quote.end]
    return Said(quote, text, str(message.role), transcript.title if transcript else "")
