"""Context: the one place where all tiers are read together."""

from __future__ import annotations

from collections.abc import Sequence

from lukasa.model.entry import Entry, NamedEntry
from lukasa.model.selection import Filters
from lukasa.model.text import estimate_tokens
from lukasa.model.values import Authority, Kind
from lukasa.read.context import Context, Slice, compose, item, render
from lukasa.read.question import choose_profile, query_terms
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.service.retrieval.read import Question, Search, counted, profile_of, search, selections, with_provenance
from lukasa.spec.types import Injection, Tier


def context(
    ctx: CallContext, query: str, *, tiers: tuple[str, ...] | None, budget: int | None, profile: str, count: bool
) -> Context:
    """Compose the orientation document. Deterministic, spends no tokens, and by default counts no retrieval, so that
    asking twice gives the same bytes."""
    query = inputs.query(query)
    allowed = ctx.spec.context_budget if budget is None else inputs.limit(budget, 1_000_000)
    reachable = ctx.reachable(tiers)
    chosen = choose_profile(query) if profile == "auto" else profile
    cap = profile_of(ctx, chosen).inject_cap or ctx.spec.inject_cap
    standing = _standing(ctx, reachable)
    fixed = {entry.id for entry in standing}
    searches = {t.name: _slice(ctx, t, query, cap) for t in reachable}
    found = {name: [hit for hit in done.kept if hit.id not in fixed] for name, done in searches.items()}
    notes = dict.fromkeys(note for done in searches.values() for note in done.notes)
    hits = {hit.id: hit for found_hits in found.values() for hit in with_provenance(ctx, found_hits)}
    slices = [
        Slice(t.name, tuple(item(h.entry, hits[h.id].provenance) for h in found[t.name])) for t in reachable[::-1]
    ]
    injections = {t.name: injection(ctx, t) for t in reachable}
    rules, asked = [item(e) for e in standing], query_terms(query)
    document, evicted = compose(ctx.info.name, _named(ctx, reachable), rules, slices, injections, allowed, asked)
    shown = {i.id for part in document.recalled for i in part.items}
    if count and shown:
        counted(ctx, [hit for id, hit in hits.items() if id in shown], ctx.now)
    kept = {id: hit for id, hit in hits.items() if id in shown}
    tokens = estimate_tokens(render(document))
    looked_at = sum(done.looked_at for done in searches.values())
    ctx.note(hits=len(kept), candidates=looked_at, evicted=len(evicted), tokens=tokens, budget=allowed)
    return Context(document, tokens, allowed, kept, evicted, tuple(notes))


def injection(ctx: CallContext, tier: Tier) -> Injection:
    """A tier's place in the prompt is that of the kind it mainly holds."""
    return ctx.spec.behaviour(tier.name, tier.typology[0]).injection


def _named(ctx: CallContext, tiers: Sequence[Tier]) -> list[NamedEntry]:
    names = {t.name for t in tiers}
    found = [n for store in (ctx.account, ctx.local) for n in store.named() if n.tier in names]
    order = [t.name for t in ctx.spec.tiers][::-1]
    return sorted(found, key=lambda n: (order.index(n.tier), n.name))


def _standing(ctx: CallContext, tiers: Sequence[Tier]) -> list[Entry]:
    """Procedures important enough to apply always, oldest first: a new one appends and the prefix stays."""
    wanted = Filters(kinds=frozenset({Kind.PROCEDURAL}), min_importance=ctx.spec.standing_importance)
    persistent = [t for t in tiers if t.persistent]
    found = [
        entry
        for store, selection in selections(ctx, persistent, Question("", filters=wanted))
        for entry in store.find(selection, limit=100)
        if entry.authority is not Authority.NONE and entry.holds_at(ctx.now)
    ]
    return sorted(found, key=lambda entry: (entry.created_at, entry.id))


def _slice(ctx: CallContext, tier: Tier, query: str, cap: int) -> Search:
    """What one tier offers: everything recent if it is always present, what matches otherwise."""
    always = injection(ctx, tier).mode == "always"
    return search(ctx, Question("" if always else query, (tier.name,), limit=cap))
