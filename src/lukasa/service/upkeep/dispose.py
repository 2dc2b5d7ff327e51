"""The disposition queue: faded entries whose lifecycle is `dispose` wait for a decision, never for deletion.

promote    the entry has proven true: it becomes a fact
exempt     the entry must not fade: decay no longer counts for it
archive    the entry has served its time
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
from lukasa.service.corpus.canonical import canonical
from lukasa.service.entries.put import Written
from lukasa.service.entries.revise import Others, commit, compared, final, redraft
from lukasa.service.upkeep.run import targets, weighed
from lukasa.spec.types import LifecyclePolicy
from lukasa.storage.operations import SaveEntry, Verdict
from lukasa.storage.port import Store
from lukasa.upkeep.weighed import Weighed
from lukasa.write.check import guard, sanitise
from lukasa.write.plan import Draft, Setting, run

Waiting = Weighed
Change = Callable[[CallContext, Store, Entry], tuple[Entry, Others, tuple[Verdict, ...]]]


def waiting(ctx: CallContext) -> list[Waiting]:
    """Return the entries that wait for a decision, in this workspace and the account, the most faded first."""
    ctx.require_author("see what waits for a disposition")
    found: list[Weighed] = []
    for target in (one for one in targets(ctx) if ctx.admits(one.scope)):
        rules = {kind: ctx.spec.behaviour(target.tier, kind) for kind in Kind}
        if any(rule.lifecycle.policy is LifecyclePolicy.DISPOSE for rule in rules.values()):
            found += [w for w in weighed(ctx, target) if awaits_disposition(rules[w.entry.kind], w.entry, w.relevance)]
    return sorted(found, key=lambda w: (w.relevance, w.entry.confirmed_at, w.id))


def promote(ctx: CallContext, id: str, cause: str) -> Written:
    """Make the entry a fact, if the gates of its tier allow it, and compare it with the others as a put does."""
    return _dispose(ctx, id, "promoted", cause, _promoted)


def exempt(ctx: CallContext, id: str, cause: str) -> Written:
    """Keep the entry as it is, without decay."""
    return _dispose(ctx, id, "exempted", cause, _exempted)


def archive(ctx: CallContext, id: str, cause: str) -> Written:
    """Move the entry from recall to history."""
    return _dispose(ctx, id, "archived", cause, lambda r, s, e: (_archived(r, e, cause), Others(), ()))


def _dispose(ctx: CallContext, id: str, outcome: str, cause: str, change: Change) -> Written:
    ctx.require_author("decide about a disposition")

    def attempt() -> Written:
        store, entry = ctx.entry(id)
        policy = ctx.spec.behaviour(entry.scope.tier, entry.kind).lifecycle.policy
        if policy is not LifecyclePolicy.DISPOSE or VISIBILITY[entry.state] is not Visibility.OPEN:
            raise InvalidTransition(
                f"entry {entry.id} is {entry.state} {entry.kind} memory, which waits for no disposition",
                fix="`lukasa disposition list` shows the entries that wait",
            )
        changed, others, ledger = change(ctx, store, entry)
        changed = replace(changed, updated_at=ctx.now, version=entry.version + 1)
        save = SaveEntry(changed, entry.version, f"entry.{outcome}", cause, ledger)
        commit(ctx, store, changed, *others.retired, save, *others.beside)
        return Written(outcome, entry.id, changed, ledger, others.replaces, beside=others.ids)

    return final(lambda: retry_on_conflict(attempt))


def _promoted(ctx: CallContext, store: Store, entry: Entry) -> tuple[Entry, Others, tuple[Verdict, ...]]:
    kind = ctx.spec.behaviour(entry.scope.tier, entry.kind).promotion.kind or Kind.SEMANTIC
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now, canonical(ctx, [entry.content]))
    draft: Draft = run((sanitise, guard), redraft(ctx, entry)._replace(kind=kind), setting)
    if draft.gate.verdict is not Gate.ALLOW:
        raise Refused(
            f"entry {entry.id} cannot be promoted: {draft.gate.reason}", fix="exempt or archive the entry instead"
        )
    changed = replace(
        entry,
        content=draft.content,
        kind=kind,
        state=State.ACTIVE,
        valid_at=entry.valid_at or entry.created_at,
        confirmed_at=ctx.now,
    )
    return changed, compared(ctx, store, changed, None), draft.ledger


def _exempted(ctx: CallContext, store: Store, entry: Entry) -> tuple[Entry, Others, tuple[Verdict, ...]]:
    metadata: dict[str, Any] = {**entry.metadata, DISPOSITION: EXEMPT}
    return replace(entry, metadata=metadata), Others(), ()


def _archived(ctx: CallContext, entry: Entry, cause: str) -> Entry:
    return entry.moved(State.ARCHIVED, at=ctx.now, cause=cause, actor=str(ctx.actor))
