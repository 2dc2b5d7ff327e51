"""Scrubbing: a plan that removes nothing, and its execution by the person the memory belongs to.

The plan's digest covers every single thing that would go. Execution repeats it, and the store compares it once more
inside the transaction that removes. There is no undo, no schedule, and no way across workspaces.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from lukasa.model.conversation import Conversation, Status
from lukasa.model.errors import LukasaError, Refused
from lukasa.model.events import SCRUBBED
from lukasa.model.scrub import Extent, Mode
from lukasa.ports import Threads
from lukasa.service.call import CallContext
from lukasa.service.sessions import conversations
from lukasa.storage.operations import ForgetAnswers, Operation, SaveConversation, Scrub
from lukasa.storage.port import Store
from lukasa.upkeep.scrub import Manifest, confirmed, manifest, of_thread, of_tier, one, tier_mode


class Scrubbed(Struct, frozen=True):
    """What was removed, the number of the event that says so, and whether the files were rewritten at once."""

    manifest: Manifest
    event: int
    swept: bool


class _Target(Struct, frozen=True):
    """One extent, the store it is in, and the conversation if it is one."""

    extent: Extent
    store: Store
    thread: Conversation | None = None


def plan(ctx: CallContext, tier: object, mode: object = Mode.FULL) -> Manifest:
    return _plan(ctx, _tier(ctx, tier, mode))


def execute(ctx: CallContext, tier: object, confirm: object, mode: object = Mode.FULL) -> Scrubbed:
    return _execute(ctx, _tier(ctx, tier, mode), confirm)


def plan_purge(ctx: CallContext, conversation: object) -> Manifest:
    return _plan(ctx, _thread(ctx, conversation))


def purge(ctx: CallContext, conversation: object, confirm: object) -> Scrubbed:
    return _execute(ctx, _thread(ctx, conversation), confirm)


def _tier(ctx: CallContext, tier: object, mode: object) -> _Target:
    definition = ctx.spec.tier(one(tier, "the tier to scrub"))
    scope = ctx.scope(definition.name)
    extent = of_tier(definition, scope, tier_mode(mode), ctx.info.id)
    return _Target(extent, ctx.store(definition.name))


def _thread(ctx: CallContext, conversation: object) -> _Target:
    found = conversations.conversation(ctx, one(conversation, "the conversation to purge"))
    return _Target(of_thread(found.id, ctx.info.id), ctx.local, found)


def _plan(ctx: CallContext, target: _Target) -> Manifest:
    ctx.require_agent("plan a scrub")
    held = target.store.holdings(target.extent)
    ids = [id for id, _ in held.entries]
    kept = ctx.threads.kept(target.thread.id) if ctx.threads is not None and target.thread is not None else 0
    return manifest(target.extent, held, checkpoints=kept, visible=_visible(ctx, target.store, ids))


def _in_a_file(ctx: CallContext, target: _Target) -> bool:
    """Whether the curated page would go, and come back from its file."""
    if target.extent.named is None or target.store is not ctx.local or ctx.curated_file is None:
        return False
    return ctx.curated_file.read() is not None


def _visible(ctx: CallContext, store: Store, ids: Sequence[str]) -> list[str]:
    """Those whose ids this room may be told: others' private entries are counted, not named."""
    if ctx.is_author:
        return list(ids)
    return [id for id, entry in store.entries(ids).items() if entry.owner in ctx.owners]


def _execute(ctx: CallContext, target: _Target, confirm: object) -> Scrubbed:
    ctx.require_author("scrub memory")
    shown = _plan(ctx, target)
    confirmed(shown, confirm)
    if target.thread is not None and ctx.threads is not None and ctx.threads.led(target.thread):
        raise Refused(
            f"conversation {target.thread.ref_code} is being led by a process", fix="end it there, then plan again"
        )
    if _in_a_file(ctx, target) and ctx.curated_file is not None:
        raise Refused(
            f"the curated page is also in {ctx.curated_file.path}, with its history, and would come back from there",
            fix="move that folder away first, or use the mode keep_named",
        )
    operations: list[Operation] = []
    if target.thread is not None and target.thread.status is not Status.ARCHIVED:
        # Archived first, so that the event of it is among those that are emptied.
        operations.append(SaveConversation(target.thread.archive(ctx.now), target.thread.status))
    about = {**shown.summary(), "operator": str(ctx.actor)}
    ctx.apply(target.store, *operations, Scrub(target.extent, shown.digest, about))
    swept = target.store.sweep()
    if target.store is not ctx.local:
        # What clients were answered is kept in the workspace, whatever tier it was about.
        ctx.apply(ctx.local, ForgetAnswers(ctx.now))
        swept = ctx.local.sweep() and swept
    return Scrubbed(shown, _event(target.store, shown), finish(target.store, ctx.threads) and swept)


def _event(store: Store, shown: Manifest) -> int:
    scrubs = store.events(action=SCRUBBED, limit=store.head()[0])
    return max(event.seq for event in scrubs if event.detail["digest"] == shown.digest)


def finish(store: Store, threads: Threads | None) -> bool:
    """Clear away outside the store what purges have left there; also what a process did not live to do."""
    done = True
    for conversation in store.unswept():
        try:
            if threads is not None:
                threads.purge(conversation)
        except LukasaError:
            done = False  # it stays noted, and is tried again when the workspace is opened next
        else:
            store.swept(conversation)
    return done
