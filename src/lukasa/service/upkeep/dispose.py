"""The disposition queue: what a forcing decay has pressed below its threshold waits for a decision, never for its end.

promote    it has proven true: it becomes a fact
exempt     it shall not fade: decay no longer counts for it
archive    it has served its time
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from lukasa.model.entry import DISPOSITION, EXEMPT, Entry
from lukasa.model.errors import InvalidTransition, Refused
from lukasa.model.values import VISIBILITY, Gate, Kind, State, Visibility
from lukasa.read.decay import awaits_disposition
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.entries.put import Written, canonical
from lukasa.service.entries.reopen import redraft
from lukasa.service.entries.revise import commit, final, outdated
from lukasa.service.upkeep.scope import places, weighed
from lukasa.spec.types import DecayModel
from lukasa.storage.operations import SaveEntry, Verdict
from lukasa.storage.port import Store
from lukasa.upkeep.weighed import Weighed
from lukasa.write.check import guard, sanitise
from lukasa.write.plan import Draft, Setting, run

Waiting = Weighed
Change = Callable[[CallContext, Store, Entry], tuple[Entry, tuple[SaveEntry, ...], tuple[Verdict, ...]]]


def waiting(ctx: CallContext) -> list[Waiting]:
    """What waits for a decision in any scope of this workspace and of the account, the most faded first."""
    ctx.require_author("see what waits for a disposition")
    found: list[Weighed] = []
    for place in places(ctx):
        rules = {kind: ctx.spec.behaviour(place.tier, kind).decay for kind in Kind}
        if any(rule.model is DecayModel.FORCING for rule in rules.values()):
            found += [w for w in weighed(ctx, place) if awaits_disposition(rules[w.entry.kind], w.relevance)]
    return sorted(found, key=lambda w: (w.relevance, w.entry.confirmed_at, w.id))


def promote(ctx: CallContext, id: str, cause: str) -> Written:
    """It becomes a fact, through the gates of its tier; what it contradicts is retired."""
    return _dispose(ctx, id, "promoted", cause, _promoted)


def exempt(ctx: CallContext, id: str, cause: str) -> Written:
    """It stays as it is, and does not fade."""
    return _dispose(ctx, id, "exempted", cause, _exempted)


def archive(ctx: CallContext, id: str, cause: str) -> Written:
    """It leaves reads for history."""
    return _dispose(ctx, id, "archived", cause, lambda r, s, e: (_archived(r, e, cause), (), ()))


def _dispose(ctx: CallContext, id: str, outcome: str, cause: str, change: Change) -> Written:
    ctx.require_author("decide about a disposition")

    def attempt() -> Written:
        store, entry = ctx.entry(id)
        decay = ctx.spec.behaviour(entry.scope.tier, entry.kind).decay
        if decay.model is not DecayModel.FORCING or VISIBILITY[entry.state] is not Visibility.OPEN:
            raise InvalidTransition(
                f"entry {entry.id} is {entry.state} {entry.kind} memory, which waits for no disposition",
                fix="`lukasa disposition list` shows what does",
            )
        changed, retired, ledger = change(ctx, store, entry)
        changed = replace(changed, updated_at=ctx.now, version=entry.version + 1)
        commit(ctx, store, changed, *retired, SaveEntry(changed, entry.version, f"entry.{outcome}", cause, ledger))
        return Written(outcome, entry.id, changed, ledger, tuple(op.entry.id for op in retired))

    return final(lambda: retry_on_conflict(attempt))


def _promoted(ctx: CallContext, store: Store, entry: Entry) -> tuple[Entry, tuple[SaveEntry, ...], tuple[Verdict, ...]]:
    kind = ctx.spec.behaviour(entry.scope.tier, entry.kind).promotion.kind or Kind.SEMANTIC
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now, canonical(ctx))
    draft: Draft = run((sanitise, guard), redraft(ctx, entry)._replace(kind=kind), setting)
    if draft.gate.verdict is not Gate.ALLOW:
        raise Refused(f"it cannot be promoted: {draft.gate.reason}", fix="exempt or archive it instead")
    changed = replace(
        entry,
        content=draft.content,
        kind=kind,
        state=State.ACTIVE,
        valid_at=entry.valid_at or entry.created_at,
        confirmed_at=ctx.now,
    )
    return changed, outdated(ctx, store, changed, None), draft.ledger


def _exempted(ctx: CallContext, store: Store, entry: Entry) -> tuple[Entry, tuple[SaveEntry, ...], tuple[Verdict, ...]]:
    metadata: dict[str, Any] = {**entry.metadata, DISPOSITION: EXEMPT}
    return replace(entry, metadata=metadata), (), ()


def _archived(ctx: CallContext, entry: Entry, cause: str) -> Entry:
    return entry.moved(State.ARCHIVED, at=ctx.now, cause=cause, actor=str(ctx.actor))
