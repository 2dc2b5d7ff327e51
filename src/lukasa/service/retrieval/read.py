"""Read and context: search every tier in reach, rank the candidates, and return hits or a document for a prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.entry import Access, Entry, NamedEntry, Rivalry
from lukasa.model.errors import InvalidQuery
from lukasa.model.secrets import redact
from lukasa.model.selection import NO_FILTERS, Filters, Selection
from lukasa.model.text import estimate_tokens
from lukasa.model.text import terms as index_terms
from lukasa.model.values import VISIBILITY, Authority, Curator, Kind, Relation, State, Trust, Visibility
from lukasa.ports import Vector
from lukasa.read import confidence, reasons
from lukasa.read.context import Context, ContextItem, Room, Slice, compose, item, render
from lukasa.read.excerpt import Part, excerpt
from lukasa.read.fold import FOLDED, fold
from lukasa.read.fuse import fuse
from lukasa.read.question import choose_profile, query_terms
from lukasa.read.rank import EVERYONE, LEADERS, Hit, Ranked, Ranking, drop_repeats, rank
from lukasa.read.share import LOOK, Shares, arranged, shares_of
from lukasa.read.signals import Signal
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.service.citations.checking import cited
from lukasa.service.retrieval.find import Findings, Lookup, by_store, find
from lukasa.service.retrieval.grounds import NOTHING, resting
from lukasa.spec.types import DecayModel, Injection, Profile, Tier
from lukasa.storage.operations import Verdict
from lukasa.storage.port import Store

if TYPE_CHECKING:
    from lukasa.service.corpus.search import Hit as Found

Order = Literal["match", "time"]
ORDERS: tuple[Order, ...] = ("match", "time")
NOTHING_FOUND = "nothing found: no memory seems to answer this; what is nearest is given"
SHOWN = 600  # characters of a hit that show why it was found
_BY_MODEL = "lukasa.service.retrieval.rewrite"  # imported only if a model is set


class ReadRequest(Struct, frozen=True):
    """The arguments of a read: where to look, which entries to admit, how many to return."""

    query: str
    tiers: tuple[str, ...] | None = None
    profile: str = "auto"
    limit: int | None = None
    filters: Filters = NO_FILTERS
    held: bool = False
    history: bool = False
    as_of: datetime | None = None
    rewrite: bool | None = None  # whether a model rewrites the query; None: as the profile says
    sensitive: bool | None = None  # whether to return entries with secrets; None: only to the owner
    order: Order = "match"


class Search(Struct, frozen=True):
    """All results of a read before hits are counted or cut; `why` explains from it."""

    question: ReadRequest
    limit: int
    terms: tuple[str, ...]
    signals: tuple[Signal, ...]
    ranked: Ranked
    kept: tuple[Hit, ...]
    dropped: Mapping[str, Verdict]
    notes: tuple[str, ...]
    looked_at: int
    confidence: float | None = None

    @property
    def named(self) -> str:
        """The names of the signals that scored a candidate."""
        return " ".join(signal.name for signal in self.signals if signal.scores)


class Recall(Struct, frozen=True):
    """The hits of a read, best first, with notes about how they were found.

    `confidence` estimates the probability that one of the first hits answers; None for an empty query.
    `nothing_found` says that it is below the spec's floor.
    """

    query: str
    profile: str
    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()
    asked: str = ""  # the query that was searched: as given, or rewritten by a model
    discoveries: tuple[Found, ...] = ()  # passages of discoveries, if the caller asked for them
    confidence: float | None = None
    nothing_found: bool = False

    def because(self, hit: Hit) -> str:
        """Say in one sentence why a hit was found."""
        asked = self.asked or self.query
        return reasons.because(hit.content, hit.entry.source, asked, hit.score.match.contributions)

    def excerpt(self, hit: Hit, most: int = SHOWN) -> Part:
        """Return the part of a hit to show in so many characters: all of it, or the part with the query's words."""
        return excerpt(hit.content, query_terms(self.asked or self.query), most)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, position: int) -> Hit:
        return self.hits[position]


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
    """Return filters from the conditions of a caller."""
    return Filters(
        kinds=frozenset({inputs.choice(kind, Kind, "kind")}) if kind is not None else frozenset(),
        categories=frozenset({inputs.label(category, "category")}) if category is not None else frozenset(),
        tags=frozenset(inputs.tags(tags, inputs.label)),
        sources=frozenset({inputs.label(source, "source")}) if source is not None else frozenset(),
        curators=frozenset({inputs.choice(curator, Curator, "curator")}) if curator is not None else frozenset(),
        states=frozenset({inputs.choice(state, State, "state")}) if state is not None else frozenset(),
        since=inputs.moment(since, "since") if since is not None else None,
        until=inputs.moment(until, "until") if until is not None else None,
    )


def read(ctx: CallContext, question: ReadRequest, *, count: bool = True) -> Recall:
    """Search, rank, and count one retrieval of each returned hit."""
    notes: list[str] = []
    asked = _rewritten(ctx, question, notes)
    with ctx.local.snapshot() if ctx.chat is None else nullcontext(ctx.local) as local:  # no snapshot waits for a model
        here = replace(ctx, local=local)
        found = search(here, asked)
        hits = list(found.kept)
        if ctx.chat is not None:
            hits = import_module(_BY_MODEL).reranked(ctx, question.query, hits, notes)
        if count and hits:
            hits = counted(ctx, hits, ctx.now)
        hits = outgoing(here, with_grounds(here, hits), notes)
    if question.order == "time":
        hits = sorted(hits, key=lambda hit: (hit.entry.valid_at or hit.entry.created_at, hit.id))
    sure, nothing = found.confidence, is_nothing(ctx, found)
    notes += [NOTHING_FOUND] if nothing and hits else []
    ctx.note(hits=len(hits), candidates=found.looked_at, profile=found.question.profile, signals=found.named)
    told = (*notes, *found.notes)
    query = inputs.query(question.query)
    return Recall(query, found.question.profile, tuple(hits), told, asked.query, (), sure, nothing)


def is_nothing(ctx: CallContext, found: Search) -> bool:
    """Say whether a question has no answer among the hits, by the floor of the spec."""
    return found.confidence is not None and found.confidence < ctx.spec.retrieval.floor


def _rewritten(ctx: CallContext, question: ReadRequest, notes: list[str]) -> ReadRequest:
    """Return the request to search with: rewritten by a model if the profile says so and a model is set."""
    if ctx.chat is None or question.rewrite is False:
        return question
    checked = _checked(ctx, question)
    if question.rewrite is None and not profile_of(ctx, checked.profile).rewrite:
        return question
    return replace(checked, query=import_module(_BY_MODEL).rewritten(ctx, checked.query, notes))


def search(ctx: CallContext, question: ReadRequest) -> Search:
    """Search all signals, rank the candidates, and drop repeats."""
    question = _checked(ctx, question)
    tiers = ctx.reachable(question.tiers)
    terms = query_terms(question.query)
    stores = _inhabited(selections(ctx, tiers, question))
    limit = _limit(ctx, question)
    with ExitStack() as moment:
        places = [(moment.enter_context(store.snapshot()), selection) for store, selection in stores]
        found = find(ctx, Lookup(question.query, terms, places, limit, question.as_of, question.profile != "lean"))
        matches = fuse(found.signals, ctx.spec.retrieval, found.compared)
        order = matches.best_first()
        reach = _reach(ctx, question, limit)
        accesses = _accesses(found, order[:reach])
        given = Ranking(ctx.spec, question.as_of or ctx.now, accesses, reach, _closed(ctx, tiers))
        ranked = rank(order, found.candidates, matches, given, partial(_entries, found))
        shown = ctx.is_author if question.sensitive is None else question.sensitive
        shares = shares_of(ctx.spec.retrieval.shares, limit)
        kept, dropped = _unlike(ctx, found, _shared(ranked, shares), shares, terms, shown)
    dropped = _displaced(ranked, kept, shares) | dropped
    said, notes = tuple(found.signals), (*found.notes, *_left_out(dropped))
    sure = _confidence(ctx, found, kept) if question.query.strip() else None
    return Search(question, limit, terms, said, ranked, tuple(kept), dropped, notes, len(found.candidates), sure)


def _confidence(ctx: CallContext, found: Findings, hits: Sequence[Hit]) -> float:
    """Return how sure it is that one of the first hits answers; 0 if there are none."""
    if not hits:
        return 0.0
    near = next((signal for signal in found.signals if signal.name == "vector"), None)
    nearest = None
    if near is not None and ctx.embedder is not None and ctx.embedder.model.floor:
        floor = ctx.embedder.model.floor
        nearest = confidence.nearness(near.scores.get(hits[0].id, floor), floor)
    names = {term for source in found.names for term in index_terms(source)}
    asked = {term: weight for term, weight in found.weights.items() if term not in names} or found.weights
    shared = confidence.shared_words(asked, [index_terms(hit.content) for hit in hits[: confidence.FIRST]])
    best = found.candidates.get(hits[0].id)
    return confidence.confidence(nearest, shared, talk=best is not None and bool(best.said))


def _shared(ranked: Ranked, shares: Shares) -> Ranked:
    """Return the candidates with those behind that are over their share."""
    trusts = ranked.trusts()
    first = [at for at, trust in enumerate(trusts[: LOOK * shares.limit]) if trust is not Trust.AUTHOR]
    if not first:
        return ranked
    origins = {at: ranked[at].entry.origin.principal for at in first}
    return ranked.in_order(arranged(trusts, shares, origins))


def _displaced(ranked: Ranked, kept: Sequence[Hit], shares: Shares) -> dict[str, Verdict]:
    """Return why hits that rank among the first are not among the hits: others of more trust have their places."""
    shown = {hit.id for hit in kept}
    best = zip(ranked.ids[: shares.limit], ranked.trusts(), strict=False)
    return {
        id: Verdict("share", "displaced", shares.said(trust), {"places": shares.most[trust], "of": shares.limit})
        for id, trust in best
        if id not in shown and trust is not Trust.AUTHOR
    }


def _reach(ctx: CallContext, question: ReadRequest, limit: int) -> int:
    """Return how many of the best matches to weigh by relevance.

    If all matches score alike, only their ranks are known, or relevance counts in full, it may lift any of them, so all
    are weighed.
    """
    retrieval = ctx.spec.retrieval
    if retrieval.fusion != "zscore" or retrieval.prior_weight >= 1 or not question.query.strip():
        return EVERYONE
    return max(LEADERS, 4 * limit)


def _left_out(dropped: Mapping[str, Verdict]) -> tuple[str, ...]:
    """Return the notes about entries with secrets and damaged ones that were among the best matches."""
    counts = Counter(verdict.step for verdict in dropped.values())
    return tuple(
        f"{count} {step} {'entry' if count == 1 else 'entries'} left out{more}"
        for step, more in (("sensitive", ""), ("damaged", "; `lukasa doctor` names the damage"))
        if (count := counts[step])
    )


def _unlike(
    ctx: CallContext, found: Findings, ranked: Ranked, shares: Shares, asked: Sequence[str], sensitive: bool
) -> tuple[list[Hit], dict[str, Verdict]]:
    """Return the best hits, with repeats and earlier statements folded under them.

    Compare no more hits than needed: mostly there is nothing to fold. Folding may bring hits in, so the shares count
    again after it.
    """
    wanted = limit = shares.limit
    while True:
        kept, dropped = _repeats_folded(ctx, found, ranked, wanted, sensitive)
        pairs = _pairs(found, [hit.id for hit in kept])
        if pairs:
            folded = fold(kept, _beside(ctx, found, kept, pairs, sensitive), pairs, asked, found.literals)
            missing = limit - len(folded.hits)
            if missing > 0 and wanted < 3 * limit and len(kept) + len(dropped) < len(ranked):
                wanted = min(3 * limit, wanted + 2 * missing)
                continue
            order = arranged([hit.entry.trust for hit in folded.hits], shares)
            kept, dropped = [folded.hits[at] for at in order[:limit]], dropped | folded.dropped
        return kept, dropped


def _repeats_folded(
    ctx: CallContext, found: Findings, ranked: Ranked, wanted: int, sensitive: bool
) -> tuple[list[Hit], dict[str, Verdict]]:
    for reach in (wanted, wanted * 3):
        vectors = _directions(ctx, found, ranked.ids[:reach])
        kept, dropped = drop_repeats(ranked, vectors, ctx.spec.retrieval.dedup_cosine, wanted, sensitive)
        if not dropped:
            break
    return kept, dropped


def _pairs(found: Findings, ids: Sequence[str]) -> list[Rivalry]:
    """Return the pairs of these candidates."""
    return [pair for store, here in by_store(found, ids) for pair in store.rivals(here)]


def _beside(
    ctx: CallContext, found: Findings, hits: Sequence[Hit], pairs: Sequence[Rivalry], sensitive: bool
) -> dict[str, Entry]:
    """Return the entries of pairs that are no hits: those to fold with one, and candidates to lift above one."""
    known = {hit.id: hit.entry for hit in hits}
    wanted = {
        other: known[id].scope
        for pair in pairs
        for id in (pair.entry, pair.other)
        if id in known
        and (other := pair.beside(id)) not in known
        and (pair.relation in FOLDED or (pair.relation is Relation.CLOSE and other in found.candidates))
    }
    if not wanted or found.past:  # of a time in the past only what the question found is known
        return {}
    beside: dict[str, Entry] = {}
    for store, selection in found.stores:
        here = [id for id, scope in wanted.items() if scope in selection.scopes]
        beside |= {
            id: entry
            for id, entry in (store.entries(here) if here else {}).items()
            if entry.scope == wanted[id]
            and VISIBILITY[entry.state] is Visibility.OPEN
            and (selection.owners is None or entry.owner in selection.owners)
            and entry.holds_at(ctx.now)
            and selection.filters.admits(entry)
            and (sensitive or not entry.sensitive)
        }
    return beside


def _entries(found: Findings, ids: Sequence[str]) -> dict[str, Entry]:
    """Return the entries of candidates: as they are, or as they were at the time of the request."""
    entries = {id: found.past[id] for id in ids if id in found.past}
    for store, unread in by_store(found, [id for id in ids if id not in entries]):
        entries |= store.entries(unread, damaged=True)
    return entries


def _checked(ctx: CallContext, question: ReadRequest) -> ReadRequest:
    query = inputs.query(question.query)
    profile = choose_profile(query) if question.profile == "auto" else question.profile
    profile_of(ctx, profile)
    if question.limit is not None:
        inputs.limit(question.limit)
    if question.order not in ORDERS:
        raise InvalidQuery(f"unknown order {str(question.order)[:60]!r}", fix=f"use one of: {', '.join(ORDERS)}")
    if (query, profile) == (question.query, question.profile) and question.as_of is None:
        return question
    as_of = inputs.moment(question.as_of, "as_of") if question.as_of is not None else None
    return replace(question, query=query, profile=profile, as_of=as_of)


def profile_of(ctx: CallContext, name: str) -> Profile:
    """Return a retrieval profile of the spec by name."""
    if name not in ctx.spec.profiles:
        known = ", ".join(["auto", *ctx.spec.profiles])
        raise InvalidQuery(f"unknown profile {str(name)[:60]!r}", fix=f"use one of: {known}")
    return ctx.spec.profiles[name]


def _limit(ctx: CallContext, question: ReadRequest) -> int:
    return question.limit or ctx.spec.profiles[question.profile].limit


def selections(ctx: CallContext, tiers: Sequence[Tier], question: ReadRequest) -> list[tuple[Store, Selection]]:
    """Return a selection for each store and each set of owners: the scopes of the requested tiers that it holds."""
    visible = {Visibility.OPEN}
    if question.held:
        visible.add(Visibility.HELD)
    if question.history or question.as_of is not None:
        visible.add(Visibility.HISTORY)
    found = []
    for store in (ctx.local, ctx.account):
        here = [t.name for t in tiers if ctx.store(t.name) is store]
        for owners in dict.fromkeys(ctx.owners_in(name) for name in here):
            scopes = tuple(ctx.scope(name) for name in here if ctx.owners_in(name) == owners)
            found.append((store, Selection(scopes, frozenset(visible), owners, question.filters)))
    return found


def _inhabited(stores: list[tuple[Store, Selection]]) -> list[tuple[Store, Selection]]:
    """Leave out stores after the first that hold nothing, as the account's mostly does. That costs one look."""
    return [pair for n, pair in enumerate(stores) if not n or pair[0].size(pair[1])]


def _accesses(found: Findings, ids: Sequence[str]) -> dict[str, Access]:
    accesses: dict[str, Access] = {}
    for store, here in by_store(found, ids):
        accesses |= store.access(here)
    return accesses


def _closed(ctx: CallContext, tiers: Sequence[Tier]) -> dict[str, datetime]:
    """Return when the bound conversation ended, for tiers whose decay begins then."""
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
    """Count one retrieval of each hit, and return the hits with the new counts.

    An untrusted reader counts nothing: it could lift its own entries by reading them.
    """
    if ctx.origin.trust < Trust.AGENT:
        return list(hits)
    counts: dict[str, Access] = {}
    homes = {tier: ctx.store(tier) for tier in {hit.entry.scope.tier for hit in hits}}
    for store in (ctx.local, ctx.account):
        ids = [hit.id for hit in hits if homes[hit.entry.scope.tier] is store]
        if ids:
            counts.update(store.touch(ids, now))
    return [hit._replace(access=counts.get(hit.id, hit.access)) for hit in hits]


def with_grounds(ctx: CallContext, hits: Sequence[Hit]) -> list[Hit]:
    """Return hits with what they rest on as it is now: documents, sources that were withdrawn, and what they cite."""
    entries = [hit.entry for hit in hits]
    found, citations = resting(ctx, entries), cited(ctx, entries, ctx.spec.retrieval.verify_ms)
    if not (found or citations):
        return list(hits)
    out = []
    for hit in hits:
        on, now = found.get(hit.id, NOTHING), citations.get(hit.id, ())
        out.append(hit._replace(provenance=on.provenance, withdrawn=on.withdrawn, citations=now))
    return out


def outgoing(ctx: CallContext, hits: Sequence[Hit], notes: list[str]) -> list[Hit]:
    """Return hits as they leave through the spec's gates; a note says which transforms changed how many."""
    if not ctx.gates:
        return list(hits)
    changed: Counter[str] = Counter()

    def passed(entry: Entry) -> Entry:
        out, changes = ctx.passed(entry)
        changed.update(dict.fromkeys(changes, 1))
        return out

    sent = [
        hit._replace(
            entry=passed(hit.entry), earlier=tuple(one._replace(entry=passed(one.entry)) for one in hit.earlier)
        )
        for hit in hits
    ]
    notes.extend(f"{name} changed {count} of the entries on their way out" for name, count in changed.items())
    return sent


# Context


def context(
    ctx: CallContext,
    query: str,
    *,
    tiers: tuple[str, ...] | None,
    budget: int | None,
    profile: str,
    count: bool,
    sensitive: bool = False,
) -> Context:
    """Compose the context document. It is deterministic and calls no model.

    By default it counts no retrieval, so a second call returns the same bytes, and it holds no secret: sensitive
    entries are left out, and secrets in pages are replaced by a mark.
    """
    query = inputs.query(query)
    allowed = ctx.spec.context_budget if budget is None else inputs.limit(budget, 1_000_000)
    reachable = ctx.reachable(tiers)
    chosen = choose_profile(query) if profile == "auto" else profile
    cap = profile_of(ctx, chosen).inject_cap or ctx.spec.inject_cap
    rules = _standing_rules(ctx, reachable)
    standing = [entry for entry in rules if (sensitive or not entry.sensitive) and not entry.damaged]
    fixed = {entry.id for entry in standing}
    searches = {t.name: _slice(ctx, t, query, cap, sensitive) for t in reachable}
    silent = _unanswered(ctx, query, searches)
    changed: list[str] = []
    found = {
        name: outgoing(ctx, [hit for hit in done.kept if hit.id not in fixed], changed)
        for name, done in searches.items()
        if name not in silent
    }
    notes = dict.fromkeys([*(note for done in searches.values() for note in done.notes), *changed])
    notes |= {f"nothing in the {name} tier seems to answer this: left out": None for name in silent}
    hits = {hit.id: hit for hit in with_grounds(ctx, [hit for found_hits in found.values() for hit in found_hits])}
    slices = [Slice(t.name, tuple(_item(hits[h.id]) for h in found.get(t.name, ()))) for t in reachable[::-1]]
    injections = {t.name: injection(ctx, t) for t in reachable}
    named = _named(ctx, reachable)
    damage = [*(f"page {page.name}" for page in named if page.damaged), *(f"rule {e.id}" for e in rules if e.damaged)]
    notes |= dict.fromkeys(f"{what} is damaged and left out; `lukasa doctor` names the damage" for what in damage)
    grounds, citations = resting(ctx, standing), cited(ctx, standing, ctx.spec.retrieval.verify_ms)
    applied = [
        item(ctx.passed(e)[0], (on := grounds.get(e.id, NOTHING)).provenance, (), on.withdrawn, citations.get(e.id, ()))
        for e in standing
    ]
    room = Room(allowed, query_terms(query), ctx.spec.retrieval.shares)
    pages = [page if sensitive else replace(page, body=redact(page.body)[0]) for page in named if not page.damaged]
    document, evicted = compose(ctx.info.name, pages, applied, slices, injections, room)
    shown = {i.id for part in document.recalled for i in part.items}
    if count and shown:
        counted(ctx, [hit for id, hit in hits.items() if id in shown], ctx.now)
    kept = {id: hit for id, hit in hits.items() if id in shown}
    tokens = estimate_tokens(render(document))
    looked_at = sum(done.looked_at for done in searches.values())
    ctx.note(hits=len(kept), candidates=looked_at, evicted=len(evicted), tokens=tokens, budget=allowed)
    versions = {e.id: e.version for e in standing} | {id: hit.entry.version for id, hit in kept.items()}
    told = {page.name: page.version for page in pages}
    return Context(document, tokens, allowed, kept, evicted, tuple(notes), versions, told)


def _unanswered(ctx: CallContext, query: str, searches: Mapping[str, Search]) -> list[str]:
    """Return the tiers whose hits do not answer the question, so that a prompt is spared what is merely nearest.

    A task is no question: for "continue chapter three" what is nearest is what there is to know.
    """
    if not confidence.asks(query):
        return []
    return [name for name, done in searches.items() if done.kept and is_nothing(ctx, done)]


def _item(hit: Hit) -> ContextItem:
    return item(hit.entry, hit.provenance, hit.earlier, hit.withdrawn, hit.citations)


def injection(ctx: CallContext, tier: Tier) -> Injection:
    """Return how a tier enters the prompt: as the kind that it mainly holds."""
    return ctx.spec.behaviour(tier.name, tier.typology[0]).injection


def _named(ctx: CallContext, tiers: Sequence[Tier]) -> list[NamedEntry]:
    """Return the pages of these tiers. A template that nobody has edited yet says nothing, and would cost tokens."""
    names = {t.name for t in tiers}
    found = [n for store in (ctx.account, ctx.local) for n in store.named() if n.tier in names and not n.template]
    order = [t.name for t in ctx.spec.tiers][::-1]
    return sorted(found, key=lambda n: (order.index(n.tier), n.name))


def _standing_rules(ctx: CallContext, tiers: Sequence[Tier]) -> list[Entry]:
    """Return the procedures that always apply, oldest first, so that a new one leaves the prompt's prefix unchanged."""
    wanted = Filters(kinds=frozenset({Kind.PROCEDURAL}), min_importance=ctx.spec.standing_importance)
    persistent = [t for t in tiers if t.persistent]
    mine = replace(wanted, min_trust=Trust.AUTHOR)  # asked for first: others' rules must not crowd these out
    found = {
        entry.id: entry
        for asked in (mine, wanted)
        for store, selection in selections(ctx, persistent, ReadRequest("", filters=asked))
        for entry in store.find(selection, limit=100, damaged=True)
        if entry.authority is not Authority.NONE and entry.holds_at(ctx.now)
    }
    return sorted(found.values(), key=lambda entry: (entry.created_at, entry.id))


def _slice(ctx: CallContext, tier: Tier, query: str, cap: int, sensitive: bool) -> Search:
    """Return the part of one tier: its newest entries if it is always present, else the matches."""
    always = injection(ctx, tier).mode == "always"
    return search(ctx, ReadRequest("" if always else query, (tier.name,), limit=cap, sensitive=sensitive))
