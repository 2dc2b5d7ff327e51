"""Promotion: make entries long-term, turn repeated episodes into a fact, and raise lasting facts to a broader tier.

A text that changes its tier passes the gates of the new tier, and its trust can only fall.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lukasa.model.entry import Entry, GateVerdict, Scope
from lukasa.model.errors import Conflict, EmbedderError, InvalidScope, MirrorsCanonical, WrongTier
from lukasa.model.ids import derived_id
from lukasa.model.selection import Selection
from lukasa.model.values import Curator, Gate, Kind, Lifetime, State, Visibility
from lukasa.service.call import ACCOUNT, CallContext
from lukasa.service.corpus.canonical import canonical
from lukasa.service.entries.put import neighbours
from lukasa.service.upkeep.run import Target, Upkeep, active, vectors, without
from lukasa.spec.types import Promotion
from lukasa.storage.operations import Embedding, SaveEntry, SaveRivalry, Verdict
from lukasa.upkeep.promotion import Evidence, Rise, as_trusted, lasts, rises
from lukasa.upkeep.weighed import Weighed, copies, support
from lukasa.write.check import admit, categorise, guard, sanitise
from lukasa.write.corroborate import awaits_promotion, observations_needed, redrafted, risen_by, rising
from lukasa.write.plan import MOST_EVIDENCE, RESOLVE, Draft, Proposal, Setting, plan, run

if TYPE_CHECKING:
    from lukasa.ports import Vector

CROSSING = (sanitise, guard, categorise, admit)
ACTION = "entry.promoted"
MOST_HELD = 1000  # held claims of a scope that one run looks at, the newest first


def promote(
    up: Upkeep, target: Target, found: Sequence[Weighed], near: Mapping[str, Vector], kind: Kind
) -> list[Weighed]:
    """Promote the entries that have earned it; return the others."""
    behaviour = up.ctx.spec.behaviour(target.tier, kind)
    if not behaviour.promotion.to:
        return list(found)
    mine = active(found)
    counts = bool(behaviour.promotion.min_observations)
    groups = _alike(mine, near, behaviour.write.dedup_cosine) if counts else [[w] for w in mine]
    wanted = {link.source for w in mine for link in w.entry.links}
    documents = up.ctx.local.documents(wanted) if wanted else {}
    gone: set[str] = set()
    said = target.store.confirmations([w.id for w in mine]) if _counts(behaviour.promotion) else []
    for rise in rises(groups, behaviour.promotion, Evidence(documents, said)):
        if _within(up, target, rise) if rise.within else _across(up, target, rise):
            gone |= {rise.weighed.id, *(w.id for w in rise.with_it)}
    return without(found, gone)


def _counts(rule: Promotion) -> bool:
    """Say whether a rule asks how often something was stated."""
    return bool(rule.min_observations or rule.min_recurrence)


def release(up: Upkeep, target: Target, kinds: Collection[Kind]) -> None:
    """Let in held claims that others made as well, in these or in other words; copies of a claim give way to it."""
    ctx, store = up.ctx, target.store
    found = store.find(Selection((target.scope,), frozenset({Visibility.HELD}), None), limit=MOST_HELD)
    held = [Weighed(e, e.importance) for e in found if awaits_promotion(e) and not e.sensitive and e.kind in kinds]
    if not held:
        return
    near, said = vectors(ctx, target, held), store.confirmations([w.id for w in held])
    for kind in kinds:
        needed = observations_needed(ctx.spec, target.tier, kind)
        mine = [w for w in held if w.entry.kind is kind]
        for group in _alike(mine, near, ctx.spec.behaviour(target.tier, kind).write.dedup_cosine) if needed else ():
            seen = Evidence(said=said).observed([w.entry for w in group])
            if seen >= needed:
                _release(up, target, group, seen)


def _release(up: Upkeep, target: Target, group: Sequence[Weighed], seen: int) -> None:
    ctx, entry = up.ctx, group[0].entry
    near = tuple(neighbours(target.store, redrafted(entry, entry.kind), None))
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now, canonical(ctx, [entry.content]), near)
    to = rising(entry, ctx.spec)
    found = risen_by(entry, to, seen, setting, str(ctx.actor)) if to is not None else None
    if found is None:
        up.drop("released", [entry.id], "something speaks against it, or a gate of its tier does")
        return
    gone = [_gives_way(ctx, w.entry, entry.id, found.verdict.reason) for w in group[1:]]
    saves = [op for op in found.operations if isinstance(op, SaveEntry)]
    pairs = [op for op in found.operations if isinstance(op, SaveRivalry)]
    up.commit(target.store, "released", [*gone, *saves], pairs=pairs, main=entry.id)


def _alike(found: Sequence[Weighed], near: Mapping[str, Vector], cosine: float) -> list[list[Weighed]]:
    """Group entries that say the same, the best supported first; an entry that no other repeats is a group too."""
    stars = [as_trusted([star.kept, *star.copies]) for star in copies(found, near, cosine, support)]
    grouped = {w.id for star in stars for w in star}
    return [*stars, *([w] for w in found if w.id not in grouped)]


def _within(up: Upkeep, target: Target, rise: Rise) -> bool:
    """Promote an entry in its tier, and retire the copies that supported it."""
    entry, kind, now = rise.weighed.entry, rise.rule.kind or rise.weighed.entry.kind, up.ctx.now
    sources = [entry, *(w.entry for w in rise.with_it)]
    proposal = proposed(up.ctx, entry, sources, entry.scope, entry.id, kind)
    draft = crossed(up, [e.id for e in sources], proposal, kind)
    if draft is None:
        return False
    changed = replace(
        entry,
        content=draft.content,
        kind=kind,
        lifetime=Lifetime.LONG_TERM,
        meta=entry.meta or lasts(entry, rise.rule),
        trust=draft.trust,
        valid_at=entry.valid_at or (entry.created_at if kind is Kind.SEMANTIC else None),
        evidence=proposal.evidence,
        updated_at=now,
        version=entry.version + 1,
    )
    ledger = (*draft.ledger, Verdict("promote", str(kind), rise.cause))
    save = SaveEntry(
        changed, entry.version, ACTION, rise.cause, ledger, embedded(up.ctx, entry.content, changed.content)
    )
    gone = [_gives_way(up.ctx, w.entry, entry.id, rise.cause) for w in rise.with_it]
    return up.commit(target.store, "promoted", [*gone, save], main=entry.id)


def _across(up: Upkeep, target: Target, rise: Rise) -> bool:
    """Promote an entry to another tier under a derived id, and retire the original."""
    ctx, entry = up.ctx, rise.weighed.entry
    above = scope_above(ctx, entry, rise.rule.to)
    sources = [entry, *(w.entry for w in rise.with_it)]
    ids = [e.id for e in sources]
    if above is None:
        up.drop("promoted", ids, f"its scope in the {rise.rule.to} tier is not known")
        return False
    kind = rise.rule.kind or entry.kind
    id = derived_id("promoted", entry.id, str(entry.version), above.tier)
    proposal = proposed(ctx, entry, sources, above, id, kind)._replace(meta=entry.meta or lasts(entry, rise.rule))
    draft = crossed(up, ids, proposal, kind)
    if draft is None:
        return False
    return write_above(up, target, draft.noting("promote", above.tier, rise.cause), sources, rise.cause)


def write_above(up: Upkeep, target: Target, draft: Draft, sources: Sequence[Entry], cause: str) -> bool:
    """Store a draft in its own tier and retire its sources; the tier may know the statement already."""
    ctx, store = up.ctx, up.ctx.store(draft.proposal.scope.tier)
    embedding = embedded(ctx, "", draft.content)
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now)
    going = {e.id for e in sources}
    near = tuple(n for n in neighbours(store, draft, embedding) if n.entry.id not in going)
    settled = run(RESOLVE, draft, setting.among(near))
    planned = plan(settled, setting, actor=str(ctx.actor), embedding=embedding, secret=store.secret())
    above = planned.entry
    if above is None or above.state is not State.ACTIVE:
        up.drop("promoted", sorted(going), settled.gate.reason or "it would not be active there")
        return False
    gone = [_gives_way(ctx, e, above.id, cause) for e in sources]
    written = [op for op in planned.operations if isinstance(op, SaveEntry)]
    if store is target.store:
        return up.commit(store, "promoted", [*gone, *written], main=above.id)
    if up.task is not None:
        try:
            ctx.apply(store, *written)
        except Conflict:
            if above.id not in store.entries([above.id]):
                up.drop("promoted", sorted(going), f"the {above.scope.tier} tier has changed meanwhile")
                return False
    return up.commit(target.store, "promoted", gone)


def proposed(ctx: CallContext, entry: Entry, sources: Sequence[Entry], scope: Scope, id: str, kind: Kind) -> Proposal:
    """Return the proposal for an entry in another scope, with the least trust of its sources."""
    trust = min(e.trust for e in sources)
    return Proposal(
        id=id,
        scope=scope,
        content=entry.content,
        curator=Curator.AGENT,
        source=entry.source,
        origin=ctx.origin.capped(trust),
        owner=entry.owner,
        importance=max(e.importance for e in sources),
        kind=kind,
        lifetime=Lifetime.LONG_TERM,
        tags=tuple(dict.fromkeys(tag for e in sources for tag in e.tags)),
        conversation=entry.conversation,
        links=entry.links if ctx.spec.tier(scope.tier).home == "workspace" else (),
        derived_from=tuple(e.id for e in sources),
        derived_trust=(trust,),
        valid_at=entry.valid_at,
        metadata=entry.metadata,
        evidence=tuple(dict.fromkeys(quote for e in sources for quote in e.evidence))[:MOST_EVIDENCE],
    )


def crossed(up: Upkeep, ids: Sequence[str], proposal: Proposal, kind: Kind) -> Draft | None:
    """Return a draft that has passed the gates of its new tier; None, with an event, if they refuse it."""
    ctx = up.ctx
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now, canonical(ctx, [proposal.content]))
    start = Draft(proposal, proposal.content, kind, proposal.origin.trust, GateVerdict(Gate.ALLOW, 1.0, ""))
    try:
        draft = run(CROSSING, start, setting)
    except (MirrorsCanonical, WrongTier) as refusal:
        up.drop("promoted", ids, refusal.message)
        return None
    if draft.gate.verdict is not Gate.ALLOW:
        up.drop("promoted", ids, draft.gate.reason)
        return None
    return draft


def scope_above(ctx: CallContext, entry: Entry, tier: str) -> Scope | None:
    """Return the scope of a broader tier that contains the entry's own; None if one of its keys is unknown."""
    values: dict[str, str | None] = {"account": ACCOUNT, "workspace": ctx.info.id, **dict(entry.scope.anchor)}
    conversation = ctx.local.conversation(entry.conversation or values.get("conversation") or "")
    if conversation is not None:
        values.setdefault("channel", conversation.channel)
    try:
        known = {key: value for key, value in values.items() if value is not None}
        return replace(ctx, keys=known).scope(tier)
    except InvalidScope:
        return None


def _gives_way(ctx: CallContext, entry: Entry, to: str, cause: str) -> SaveEntry:
    moved = entry.moved(State.SUPERSEDED, at=ctx.now, cause=cause, actor=str(ctx.actor), superseded_by=to)
    return SaveEntry(replace(moved, version=entry.version + 1), entry.version, "entry.superseded", cause)


def embedded(ctx: CallContext, before: str, after: str) -> Embedding | None:
    """Return the vector of a new text; None if the text is unchanged or there is no embedder."""
    if ctx.embedder is None or before == after:
        return None
    try:
        return Embedding(ctx.embedder.model, ctx.embedder.embed_memories([after])[0])
    except EmbedderError:
        return None
