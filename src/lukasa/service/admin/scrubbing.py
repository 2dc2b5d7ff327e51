"""Scrub: plan the removal of a tier or a conversation, and execute it for the owner of the memory.

The plan removes nothing. Its digest covers every single row. Execution must repeat the digest, and the store compares
it again inside the transaction that removes. There is no undo, no schedule, and no scrub across workspaces.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from lukasa.model.conversation import Conversation, Status
from lukasa.model.errors import LukasaError, Refused
from lukasa.model.events import SCRUBBED
from lukasa.model.scrub import Extent, Holdings, Mode
from lukasa.ports import Threads
from lukasa.service import corpus
from lukasa.service.call import CallContext
from lukasa.service.entries.revise import corrected
from lukasa.service.sessions import conversations
from lukasa.storage.operations import ForgetAnswers, Operation, SaveConversation, SaveEntry, Scrub
from lukasa.storage.port import Store
from lukasa.upkeep.scrub_plan import Manifest, confirmed, manifest, of_thread, of_tier, one, tier_mode


class Scrubbed(Struct, frozen=True):
    """The result of a scrub: what it removed, the number of its event, and whether the files were rewritten at once."""

    manifest: Manifest
    event: int
    swept: bool


class _Target(Struct, frozen=True):
    """An extent to remove, its store, and the conversation if it is one."""

    extent: Extent
    store: Store
    thread: Conversation | None = None


def plan(ctx: CallContext, tier: object, mode: object = Mode.FULL) -> Manifest:
    """List all that a scrub of a tier's scope would remove."""
    return _plan(ctx, _tier(ctx, tier, mode))


def execute(ctx: CallContext, tier: object, confirm: object, mode: object = Mode.FULL) -> Scrubbed:
    """Remove all that the plan of a tier's scope lists; `confirm` repeats the plan's digest."""
    return _execute(ctx, _tier(ctx, tier, mode), confirm)


def plan_purge(ctx: CallContext, conversation: object) -> Manifest:
    """List all that a purge of a conversation would remove."""
    return _plan(ctx, _thread(ctx, conversation))


def purge(ctx: CallContext, conversation: object, confirm: object) -> Scrubbed:
    """Remove all that the plan of a conversation lists, and archive the conversation."""
    return _execute(ctx, _thread(ctx, conversation), confirm)


def _tier(ctx: CallContext, tier: object, mode: object) -> _Target:
    definition = ctx.spec.tier(one(tier, "the tier to scrub"))
    scope = ctx.scope(definition.name)
    extent = of_tier(definition, scope, tier_mode(mode), ctx.info.id, linked=takes_linked(ctx))
    return _Target(extent, ctx.store(definition.name))


def _thread(ctx: CallContext, conversation: object) -> _Target:
    found = conversations.conversation(ctx, one(conversation, "the conversation to purge"))
    return _Target(of_thread(found.id, ctx.info.id, linked=takes_linked(ctx)), ctx.local, found)


def takes_linked(ctx: CallContext) -> bool:
    """Say whether the spec exempts itself from keeping what actions rest on."""
    return any(exemption.rule == "keep-action-linked" for exemption in ctx.spec.audit_exemptions)


def _plan(ctx: CallContext, target: _Target) -> Manifest:
    ctx.require_agent("plan a scrub")
    held = target.store.holdings(target.extent)
    ids = [*(id for id, _ in held.entries), *(row.id for row in held.kept)]
    kept = ctx.threads.kept(target.thread.id) if ctx.threads is not None and target.thread is not None else 0
    return manifest(target.extent, held, checkpoints=kept, visible=_visible(ctx, target.store, ids))


def _in_a_file(ctx: CallContext, target: _Target) -> bool:
    """Say whether the scrub removes the curated page and its file would bring the page back."""
    if target.extent.named is None or target.store is not ctx.local or ctx.curated_file is None:
        return False
    return ctx.curated_file.read() is not None


def _visible(ctx: CallContext, store: Store, ids: Sequence[str]) -> list[str]:
    """Keep the ids that this context may see. Private entries of others are counted, not named."""
    if ctx.oversees:
        return list(ids)
    return [id for id, entry in store.entries(ids, damaged=True).items() if ctx.sees(entry)]


def clear_files(ctx: CallContext) -> bool:
    """Rewrite the files that may still hold what was scrubbed from the account or this workspace, however large."""
    ctx.require_author("rewrite the files of memory")
    cleared = [store.purge_files(large=True) for store in (ctx.account, ctx.local)]
    return all(cleared)


def _execute(ctx: CallContext, target: _Target, confirm: object) -> Scrubbed:
    ctx.require_author("scrub memory")
    shown = _plan(ctx, target)
    confirmed(shown, confirm)
    if target.thread is not None and ctx.threads is not None and ctx.threads.led(target.thread):
        raise Refused(f"a process has conversation {target.thread.ref_code} open", fix="end it there, then plan again")
    if _in_a_file(ctx, target) and ctx.curated_file is not None:
        raise Refused(
            f"the curated page is also in {ctx.curated_file.path}, with its history, and would come back from there",
            fix="move that folder away first, or use the mode keep_named",
        )
    operations: list[Operation] = []
    if target.thread is not None and target.thread.status is not Status.ARCHIVED:
        # Archive first, so that the scrub also empties the event of it.
        operations.append(SaveConversation(target.thread.archive(ctx.now), target.thread.status))
    about = {**shown.summary(), "operator": str(ctx.actor)}
    back = reopened(ctx, target.store, target.store.holdings(target.extent))
    ctx.apply(target.store, *operations, Scrub(target.extent, shown.digest, about), *back)
    purged = target.store.purge_files()
    if target.store is not ctx.local:
        # Stored answers to clients are in the workspace, for every tier.
        ctx.apply(ctx.local, ForgetAnswers(ctx.now))
        corpus.submitting.sweep(ctx)
        purged = ctx.local.purge_files() and purged
    return Scrubbed(shown, _event(target.store, shown), finish(target.store, ctx.threads) and purged)


def reopened(ctx: CallContext, store: Store, held: Holdings) -> list[SaveEntry]:
    """Return the entries that stay and that something which goes had replaced: they hold again."""
    going = [id for id, _ in held.entries]
    leaving = store.entries(going, damaged=True)
    found = {}
    for entry in leaving.values():
        if store.replaced_by(entry.id):
            back = corrected(ctx, entry, "removed for good").of(store)
            found.update({save.entry.id: save for save in back if save.entry.id not in leaving})
    return list(found.values())


def _event(store: Store, shown: Manifest) -> int:
    scrubs = store.events(action=SCRUBBED, limit=store.head()[0])
    return max(event.seq for event in scrubs if event.detail["digest"] == shown.digest)


def finish(store: Store, threads: Threads | None) -> bool:
    """Remove what purges left outside the store, also what a process that died did not finish."""
    done = True
    for conversation in store.purged_conversations():
        try:
            if threads is not None:
                threads.purge(conversation)
        except LukasaError:
            done = False  # it stays noted; opening the workspace tries again
        else:
            store.forget_purged(conversation)
    return done
