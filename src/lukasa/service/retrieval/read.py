"""Read: fetch from every reachable tier, then let the pure read path decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from datetime import datetime
from functools import partial
from importlib import import_module

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.candidate import Use
from lukasa.model.entry import Access, Document, Entry
from lukasa.model.errors import InvalidQuery
from lukasa.model.selection import NO_FILTERS, Filters, Selection
from lukasa.model.values import Curator, Kind, State, Visibility
from lukasa.ports import Vector
from lukasa.read.excerpt import Part, excerpt
from lukasa.read.fuse import fuse
from lukasa.read.question import choose_profile, query_terms
from lukasa.read.rank import EVERYONE, LEADERS, Hit, Ranked, Ranking, drop_repeats, provenance, rank
from lukasa.read.signals import Signal
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.service.retrieval.find import Findings, Lookup, by_store, find
from lukasa.spec.types import DecayModel, Profile, Tier
from lukasa.storage.operations import Verdict
from lukasa.storage.port import Store

SHOWN = 600  # characters of a hit that are enough to see why it was found
_BY_MODEL = "lukasa.service.retrieval.rewrite"  # loaded only where there is a model


class Question(Struct, frozen=True):
    """A read as asked for: where to look, what to admit, how much to return."""

    query: str
    tiers: tuple[str, ...] | None = None
    profile: str = "auto"
    limit: int | None = None
    filters: Filters = NO_FILTERS
    held: bool = False
    history: bool = False
    as_of: datetime | None = None
    rewrite: bool | None = None  # by a model before searching; None: as the profile says


class Search(Struct, frozen=True):
    """Everything a read found out, before anything is counted or cut: what `why` looks into."""

    question: Question
    limit: int
    terms: tuple[str, ...]
    signals: tuple[Signal, ...]
    ranked: Ranked
    kept: tuple[Hit, ...]
    dropped: Mapping[str, Verdict]
    notes: tuple[str, ...]
    looked_at: int

    @property
    def named(self) -> str:
        """The signals that said something of any candidate."""
        return " ".join(signal.name for signal in self.signals if signal.scores)


class Recall(Struct, frozen=True):
    """Hits, best first, with what a caller should know about how they were found."""

    query: str
    profile: str
    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()
    asked: str = ""  # what was searched for: the query, or what a model made of it

    def excerpt(self, hit: Hit, most: int = SHOWN) -> Part:
        """Which part of a hit to show where there is room for so many characters: all of it, if it is not longer, else
        where the words that were asked for stand."""
        return excerpt(hit.content, query_terms(self.asked or self.query), most)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]


def filters(
    *,
    kind: Kind | str | None = None,
    category: str | None = None,
    tags: Sequence[str] = (),
    source: str | None = None,
    curator: Curator | str | None = None,
    state: State | str | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
) -> Filters:
    return Filters(
        kinds=frozenset({inputs.choice(kind, Kind, "kind")}) if kind is not None else frozenset(),
        categories=frozenset({inputs.label(category, "category")}) if category is not None else frozenset(),
        tags=frozenset(inputs.tags(tags)),
        sources=frozenset({inputs.label(source, "source")}) if source is not None else frozenset(),
        curators=frozenset({inputs.choice(curator, Curator, "curator")}) if curator is not None else frozenset(),
        states=frozenset({inputs.choice(state, State, "state")}) if state is not None else frozenset(),
        since=inputs.moment(since, "since") if since is not None else None,
        until=inputs.moment(until, "until") if until is not None else None,
    )


def read(ctx: CallContext, question: Question, *, count: bool = True) -> Recall:
    """Find, rank, and count one retrieval of each hit returned."""
    notes: list[str] = []
    asked = _rewritten(ctx, question, notes)
    with ctx.local.snapshot() if ctx.chat is None else nullcontext():  # which never waits for a model
        found = search(ctx, asked)
        hits = list(found.kept)
        if ctx.chat is not None:
            hits = import_module(_BY_MODEL).reranked(ctx, question.query, hits, notes)
        if count and hits:
            hits = counted(ctx, hits, ctx.now)
        hits = with_provenance(ctx, hits)
    ctx.note(hits=len(hits), candidates=found.looked_at, profile=found.question.profile, signals=found.named)
    return Recall(question.query, found.question.profile, tuple(hits), (*notes, *found.notes), asked.query)


def _rewritten(ctx: CallContext, question: Question, notes: list[str]) -> Question:
    """The question as it is searched with: rewritten where the profile says so and there is a model to do it."""
    if ctx.chat is None or question.rewrite is False:
        return question
    checked = _checked(ctx, question)
    if question.rewrite is None and not profile_of(ctx, checked.profile).rewrite:
        return question
    return replace(checked, query=import_module(_BY_MODEL).rewritten(ctx, checked.query, notes))


def search(ctx: CallContext, question: Question) -> Search:
    question = _checked(ctx, question)
    tiers = ctx.reachable(question.tiers)
    terms = query_terms(question.query)
    places = _inhabited(selections(ctx, tiers, question))
    limit = _limit(ctx, question)
    with ExitStack() as moment:
        for store, _ in places:
            moment.enter_context(store.snapshot())
        found = find(ctx, Lookup(question.query, terms, places, limit, question.as_of))
        matches = fuse(found.signals, ctx.spec.retrieval, found.compared)
        order = matches.best_first()
        reach = _reach(ctx, question, limit)
        uses = _uses(found, order[:reach])
        given = Ranking(ctx.spec, question.as_of or ctx.now, uses, reach, _closed(ctx, tiers))
        ranked = rank(order, found.candidates, matches, given, partial(_entries, found))
        kept, dropped = _unlike(ctx, found, ranked, limit)
    said, notes = tuple(found.signals), tuple(found.notes)
    return Search(question, limit, terms, said, ranked, tuple(kept), dropped, notes, len(found.candidates))


def _reach(ctx: CallContext, question: Question, limit: int) -> int:
    """How many of the best matches are weighed by their standing. Where matches are all alike, or told by their ranks
    alone, standing may lift anything, and all are."""
    if ctx.spec.retrieval.fusion != "zscore" or not question.query.strip():
        return EVERYONE
    return max(LEADERS, 4 * limit)


def _unlike(ctx: CallContext, found: Findings, ranked: Ranked, limit: int) -> tuple[list[Hit], dict[str, Verdict]]:
    """The best hits without repeats. Mostly there are none, and then no more than these need to be compared."""
    for reach in (limit, limit * 3):
        vectors = _directions(ctx, found, ranked.ids[:reach])
        kept, dropped = drop_repeats(ranked, vectors, ctx.spec.retrieval.dedup_cosine, limit)
        if not dropped:
            break
    return kept, dropped


def _entries(found: Findings, ids: Sequence[str]) -> dict[str, Entry]:
    """The entries behind candidates: as they are, or as they were at the moment that was asked for."""
    entries = {id: found.past[id] for id in ids if id in found.past}
    for store, unread in by_store(found, [id for id in ids if id not in entries]):
        entries |= store.entries(unread)
    return entries


def _checked(ctx: CallContext, question: Question) -> Question:
    query = inputs.query(question.query)
    profile = choose_profile(query) if question.profile == "auto" else question.profile
    profile_of(ctx, profile)
    if question.limit is not None:
        inputs.limit(question.limit)
    if (query, profile) == (question.query, question.profile) and question.as_of is None:
        return question
    as_of = inputs.moment(question.as_of, "as_of") if question.as_of is not None else None
    return replace(question, query=query, profile=profile, as_of=as_of)


def profile_of(ctx: CallContext, name: str) -> Profile:
    if name not in ctx.spec.profiles:
        known = ", ".join(["auto", *ctx.spec.profiles])
        raise InvalidQuery(f"unknown profile {str(name)[:60]!r}", fix=f"use one of: {known}")
    return ctx.spec.profiles[name]


def _limit(ctx: CallContext, question: Question) -> int:
    return question.limit or ctx.spec.profiles[question.profile].limit


def selections(ctx: CallContext, tiers: Sequence[Tier], question: Question) -> list[tuple[Store, Selection]]:
    """One selection for each database: the scopes of the asked tiers that live there."""
    rooms = {Visibility.OPEN}
    if question.held:
        rooms.add(Visibility.HELD)
    if question.history or question.as_of is not None:
        rooms.add(Visibility.HISTORY)
    found = []
    for store in (ctx.local, ctx.account):
        scopes = tuple(ctx.scope(t.name) for t in tiers if ctx.store(t.name) is store)
        if scopes:
            found.append((store, Selection(scopes, frozenset(rooms), ctx.owners, question.filters)))
    return found


def _inhabited(places: list[tuple[Store, Selection]]) -> list[tuple[Store, Selection]]:
    """Without those behind the first that hold nothing, as an account mostly does: one look is all they cost."""
    return [place for n, place in enumerate(places) if not n or not place[0].empty(place[1])]


def _uses(found: Findings, ids: Sequence[str]) -> dict[str, Use]:
    uses: dict[str, Use] = {}
    for store, here in by_store(found, ids):
        uses |= store.uses(here)
    return uses


def _closed(ctx: CallContext, tiers: Sequence[Tier]) -> dict[str, datetime]:
    """When the conversation at hand ended, for tiers whose decay begins there."""
    key = ctx.keys.get("conversation")
    if key is None or not any(
        ctx.spec.behaviour(t.name, kind).decay.model is DecayModel.SCOPE_CLOSE for t in tiers for kind in Kind
    ):
        return {}
    conversation = ctx.local.conversation(key)
    return {key: conversation.ended_at} if conversation and conversation.ended_at else {}


def _directions(ctx: CallContext, found: Findings, ids: Sequence[str]) -> dict[str, Vector]:
    if ctx.embedder is None:
        return {}
    vectors: dict[str, Vector] = {}
    for store, here in by_store(found, ids):
        vectors |= store.unit_vectors(here, ctx.embedder.model)
    return vectors


def counted(ctx: CallContext, hits: Sequence[Hit], now: datetime) -> list[Hit]:
    counts: dict[str, Access] = {}
    homes = {tier: ctx.store(tier) for tier in {hit.entry.scope.tier for hit in hits}}
    for store in (ctx.local, ctx.account):
        ids = [hit.id for hit in hits if homes[hit.entry.scope.tier] is store]
        if ids:
            counts.update(store.touch(ids, now))
    return [Hit(hit.entry, hit.score, counts.get(hit.id, hit.access), hit.provenance) for hit in hits]


def with_provenance(ctx: CallContext, hits: Sequence[Hit]) -> list[Hit]:
    wanted = {link.source for hit in hits for link in hit.entry.links}
    if not wanted:
        return list(hits)
    documents: dict[str, Document] = ctx.local.documents(wanted)
    return [hit._replace(provenance=provenance(hit.entry, documents)) for hit in hits]
