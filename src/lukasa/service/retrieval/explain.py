"""Explain a read: why an entry was or was not a hit, and how relevant it is now."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.entry import Access, Confirmation, Entry, Scope
from lukasa.model.events import Event
from lukasa.model.values import VISIBILITY, Relation, Visibility
from lukasa.read.decay import awaits_disposition, decay_factor, frequency, relevance
from lukasa.read.rank import Hit
from lukasa.read.signals import Signal
from lukasa.service.call import CallContext
from lukasa.service.retrieval import find
from lukasa.service.retrieval.find import as_it_was
from lukasa.service.retrieval.read import ReadRequest, Search, search
from lukasa.storage.operations import Verdict
from lukasa.write.transforms import crossing, through


class RelevanceNow(Struct, frozen=True):
    """The relevance of an entry before any question, with its factors."""

    entry: Entry
    access: Access | None
    decay: float
    frequency: float
    relevance: float
    awaits_disposition: bool


def relevance_now(ctx: CallContext, id: str) -> RelevanceNow:
    """Compute the present relevance of an entry."""
    store, entry = ctx.entry(id)
    access = store.access([entry.id]).get(entry.id)
    behaviour = ctx.spec.behaviour(entry.scope.tier, entry.kind)
    key = entry.scope.value("conversation")
    conversation = store.conversation(key) if key else None
    factor = decay_factor(behaviour.decay, entry, access, ctx.now, conversation.ended_at if conversation else None)
    often = frequency(access)
    value = relevance(entry.importance, factor, often)
    return RelevanceNow(entry, access, factor, often, value, awaits_disposition(behaviour, entry, value))


class RelatedEntry(Struct, frozen=True):
    """An entry about the same thing as another one, and who found or judged that."""

    entry: Entry
    relation: Relation
    reason: str
    at: datetime
    decided_by: str


class Related(Struct, frozen=True):
    """Repetitions of an entry, and other entries about the same thing."""

    confirmations: tuple[Confirmation, ...]
    rivals: tuple[RelatedEntry, ...]


def related(ctx: CallContext, id: str) -> Related:
    """Return the statements that repeat an entry, and the entries about the same thing that the caller may see."""
    store, entry = ctx.entry(id)
    pairs = {pair.beside(entry.id): pair for pair in store.rivals([entry.id])}
    found = []
    for other in store.entries(pairs).values():
        if other.scope == entry.scope and ctx.sees(other):
            pair = pairs[other.id]
            found.append(RelatedEntry(ctx.shown(other), pair.relation, pair.reason, pair.at, pair.decided_by))
    said = [replace(one, said=through(ctx.gates, one.said, one.trust)[0]) for one in store.confirmations([entry.id])]
    return Related(tuple(said), tuple(found))


def ledger(ctx: CallContext, id: str) -> list[Event]:
    """Return the events about an entry, or about a text that was not stored.

    The owner's unbound handle also gets the events about other ids, such as a conversation's. A handle of one tenant
    gets them without their place in the log, which would tell how much happens elsewhere.
    """
    stores = (ctx.local, ctx.account)
    entry = next((e for store in stores for e in store.entries([id], damaged=True).values()), None)
    found = [event for store in stores for event in store.events(subject=id)]
    if entry is None and (ctx.tenancy or not ctx.oversees):
        found = [event for event in found if _was_here(ctx, event)]
    if not found or (entry is not None and not ctx.sees(entry)):
        ctx.entry(id)  # raises NotFound, in the same words for what is missing and for what is others'
    if ctx.tenancy:
        return [replace(event, seq=place, previous="", digest="") for place, event in enumerate(found, 1)]
    return found


def _was_here(ctx: CallContext, event: Event) -> bool:
    """Say whether a text that was not stored was written into a scope of this handle."""
    tier, anchor, owner = (event.detail.get(name) for name in ("tier", "anchor", "owner"))
    if not isinstance(anchor, dict) or all(known.name != tier for known in ctx.spec.tiers):
        return False
    return (ctx.is_author or owner in ctx.owners) and ctx.admits(Scope(str(tier), tuple(anchor.items())))


def why(ctx: CallContext, question: ReadRequest, id: str) -> list[Verdict]:
    """Explain why an entry is or is not among the hits: one verdict for each stage of the read."""
    with ctx.local.snapshot() as local, ctx.account.snapshot() as account:
        return _trail(replace(ctx, local=local, account=account), question, id)


def _trail(ctx: CallContext, question: ReadRequest, id: str) -> list[Verdict]:
    _, entry = ctx.entry(id)
    found = search(ctx, question)
    trail = [_where(ctx, entry, found.question), _admitted(ctx, entry, found.question)]
    if any(v.outcome == "out" for v in trail):
        return trail
    trail.extend(_signal_verdict(ctx, entry, signal, found) for signal in found.signals)
    trail.extend(Verdict("note", "degraded", note) for note in found.notes)
    if entry.id not in found.ranked.ids:
        trail.append(_not_found(entry, found))
        return trail
    position = found.ranked.ids.index(entry.id)
    hit = found.ranked[position]
    trail.append(_ranked(hit, position + 1, len(found.ranked)))
    trail.append(_fate(hit, found))
    changes = ctx.passed(entry)[1]
    if changes:
        surfaces = ", ".join(dict.fromkeys(gate.to for gate in ctx.gates))
        trail.append(Verdict("outbound", "changed", f"{crossing(ctx.gates)}, on the way to {surfaces}", changes))
    return trail


def _where(ctx: CallContext, entry: Entry, question: ReadRequest) -> Verdict:
    tiers = ctx.reachable(question.tiers)
    here = any(ctx.scope(t.name) == entry.scope for t in tiers)
    if here:
        return Verdict("scope", "in", f"it is in the {entry.scope.tier} tier, which was searched")
    searched = ", ".join(t.name for t in tiers)
    return Verdict("scope", "out", f"it is in another {entry.scope.tier} scope; searched here: {searched}")


def _admitted(ctx: CallContext, entry: Entry, question: ReadRequest) -> Verdict:
    owners = ctx.owners_in(entry.scope.tier)
    if owners is not None and entry.owner not in owners:
        return Verdict("owner", "out", f"it belongs to {entry.owner!r} alone")
    if question.as_of is not None:
        ok = as_it_was(ctx, entry, question.as_of) is not None
        return Verdict("time", "in" if ok else "out", f"{'' if ok else 'not '}in force at {question.as_of.isoformat()}")
    seen = VISIBILITY[entry.state]
    if seen is Visibility.HELD and not question.held:
        reason = entry.gate.reason if entry.gate else ""
        return Verdict("state", "out", f"it is held ({reason or 'by the gate'}); ask for held entries to see it")
    if seen is Visibility.HISTORY and not question.history:
        cause = entry.transition.cause if entry.transition else "unknown cause"
        return Verdict("state", "out", f"it is {entry.state} ({cause}); only a history read shows it")
    if seen is Visibility.OPEN and not entry.holds_at(ctx.now):
        span = f"from {entry.valid_at or 'ever'} until {entry.invalid_at or 'further notice'}"
        return Verdict("time", "out", f"it does not hold now, but {span}; read as of then to see it")
    if not question.filters.admits(entry):
        return Verdict("filter", "out", "it does not meet the filters asked for")
    return Verdict("state", "in", f"it is {entry.state}")


def _signal_verdict(ctx: CallContext, entry: Entry, signal: Signal, found: Search) -> Verdict:
    if entry.id in signal.scores:
        position = signal.ranks()[entry.id]
        data = {"rank": position, "of": len(signal.scores), "score": round(signal.scores[entry.id], 4)}
        return Verdict(signal.name, "found", f"place {position} of {len(signal.scores)}", data)
    if signal.name == "keyword":
        return Verdict("keyword", "missed", f"none of its words is among the asked ones ({', '.join(found.terms)})")
    if signal.name == "vector":
        return Verdict("vector", "missed", _vector_miss(ctx, entry))
    reasons = {step.name: step.missed for step in (*find.BRING, *find.WEIGH)}
    return Verdict(signal.name, "missed", reasons.get(signal.name, "it is not among the newest"))


def _vector_miss(ctx: CallContext, entry: Entry) -> str:
    if ctx.embedder is None:
        return "there is no embedding model"
    if entry.id not in ctx.store(entry.scope.tier).vectors([entry.id], ctx.embedder.model):
        return "it has no vector of the present model yet; run `lukasa embed`"
    return "its meaning is not near enough to the question's, or others are nearer"


def _ranked(hit: Hit, position: int, total: int) -> Verdict:
    s = hit.score
    prior = f"prior {s.prior:.3f} ({', '.join(s.factors) or 'nothing'})"
    trusted = f" × trust {s.trust_weight:g}" if s.trust_weight != 1.0 else ""
    factors = f"match {s.match.value:.3f} × {prior} × tier {s.tier_weight:g}{trusted} = {s.final:.4f}"
    reason = f"place {position} of {total}: {factors}"
    data = {"importance": s.importance, "decay": s.decay, "frequency": s.frequency, "relevance": s.relevance}
    return Verdict("rank", f"place {position}", reason, {k: round(v, 4) for k, v in data.items()})


def _not_found(entry: Entry, found: Search) -> Verdict:
    """Say what became of an entry that no signal found: another hit may have brought it."""
    for hit in found.kept:
        if hit.id == entry.id:
            return Verdict("fold", "returned", "it was said later than an entry that was found, about the same thing")
        if entry.id in [one.id for one in hit.earlier]:
            return Verdict("fold", "folded", f"no signal found it, but entry {hit.id} shows it", {"under": hit.id})
    return Verdict("fuse", "out", "no signal found it, so it was no candidate")


def _fate(hit: Hit, found: Search) -> Verdict:
    if hit.id in found.dropped:
        return found.dropped[hit.id]
    if hit.id in [one.id for one in found.kept]:
        return Verdict("profile", "returned", f"among the {found.limit} that {found.question.profile!r} returns")
    return Verdict("profile", "cut", f"beyond the {found.limit} that {found.question.profile!r} returns; ask for more")
