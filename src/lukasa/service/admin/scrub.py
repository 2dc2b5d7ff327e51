"""Scrubbing: a plan that removes nothing, and its execution by the person the memory belongs to.

The plan's digest covers every single thing that would go. Execution repeats it, and the store compares it once more
inside the transaction that removes. There is no undo, no schedule, and no way across workspaces.
"""

from __future__ import annotations

from collections.abc import Sequence

from lukasa.model.conversation import Conversation, Status
from lukasa.model.errors import LukasaError, Refused
from lukasa.model.events import SCRUBBED
from lukasa.model.frozen import dataclass
from lukasa.model.scrub import Extent, Mode
from lukasa.ports import Threads
from lukasa.service.call import Room
from lukasa.service.sessions import conversations
from lukasa.storage.operations import ForgetAnswers, Operation, SaveConversation, Scrub
from lukasa.storage.port import Store
from lukasa.upkeep import scrub as reach
from lukasa.upkeep.scrub import Manifest, confirmed, manifest


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """What was removed, the number of the event that says so, and whether the files were rewritten at once."""

    manifest: Manifest
    event: int
    swept: bool


@dataclass(frozen=True, slots=True)
class _Target:
    """One extent, the store it is in, and the conversation if it is one."""

    extent: Extent
    store: Store
    thread: Conversation | None = None


def plan(room: Room, tier: object, mode: object = Mode.FULL) -> Manifest:
    return _plan(room, _tier(room, tier, mode))


def execute(room: Room, tier: object, confirm: object, mode: object = Mode.FULL) -> Scrubbed:
    return _execute(room, _tier(room, tier, mode), confirm)


def plan_purge(room: Room, conversation: object) -> Manifest:
    return _plan(room, _thread(room, conversation))


def purge(room: Room, conversation: object, confirm: object) -> Scrubbed:
    return _execute(room, _thread(room, conversation), confirm)


def _tier(room: Room, tier: object, mode: object) -> _Target:
    definition = room.spec.tier(reach.one(tier, "the tier to scrub"))
    scope = room.scope(definition.name)
    extent = reach.of_tier(definition, scope, reach.tier_mode(mode), room.info.id)
    return _Target(extent, room.store(definition.name))


def _thread(room: Room, conversation: object) -> _Target:
    found = conversations.conversation(room, reach.one(conversation, "the conversation to purge"))
    return _Target(reach.of_thread(found.id, room.info.id), room.local, found)


def _plan(room: Room, target: _Target) -> Manifest:
    room.require_agent("plan a scrub")
    held = target.store.holdings(target.extent)
    ids = [id for id, _ in held.entries]
    kept = room.threads.kept(target.thread.id) if room.threads is not None and target.thread is not None else 0
    return manifest(target.extent, held, checkpoints=kept, visible=_visible(room, target.store, ids))


def _in_a_file(room: Room, target: _Target) -> bool:
    """Whether the curated page would go, and come back from its file."""
    if target.extent.named is None or target.store is not room.local or room.curated_file is None:
        return False
    return room.curated_file.read() is not None


def _visible(room: Room, store: Store, ids: Sequence[str]) -> list[str]:
    """Those whose ids this room may be told: others' private entries are counted, not named."""
    if room.is_author:
        return list(ids)
    return [id for id, entry in store.entries(ids).items() if entry.owner in room.owners]


def _execute(room: Room, target: _Target, confirm: object) -> Scrubbed:
    room.require_author("scrub memory")
    shown = _plan(room, target)
    confirmed(shown, confirm)
    if target.thread is not None and room.threads is not None and room.threads.led(target.thread):
        raise Refused(
            f"conversation {target.thread.ref_code} is being led by a process", fix="end it there, then plan again"
        )
    if _in_a_file(room, target) and room.curated_file is not None:
        raise Refused(
            f"the curated page is also in {room.curated_file.path}, with its history, and would come back from there",
            fix="move that folder away first, or use the mode keep_named",
        )
    operations: list[Operation] = []
    if target.thread is not None and target.thread.status is not Status.ARCHIVED:
        # Archived first, so that the event of it is among those that are emptied.
        operations.append(SaveConversation(target.thread.archive(room.now), target.thread.status))
    about = {**shown.summary(), "operator": str(room.actor)}
    room.apply(target.store, *operations, Scrub(target.extent, shown.digest, about))
    swept = target.store.sweep()
    if target.store is not room.local:
        # What clients were answered is kept in the workspace, whatever tier it was about.
        room.apply(room.local, ForgetAnswers(room.now))
        swept = room.local.sweep() and swept
    return Scrubbed(shown, _event(target.store, shown), finish(target.store, room.threads) and swept)


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
