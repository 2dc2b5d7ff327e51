"""Channels, conversations and their working notes."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from lukasa.model.conversation import Channel, Conversation, Note, Status
from lukasa.model.entry import Entry
from lukasa.model.errors import Conflict, InvalidTransition, NotFound
from lukasa.model.frozen import dataclass
from lukasa.model.ids import new_id, new_ref_code
from lukasa.model.values import Lifetime, State, Visibility
from lukasa.service import inputs
from lukasa.service.call import Room
from lukasa.service.instrument import verb
from lukasa.service.jobs.schedule import session_close
from lukasa.service.retry import deciding_anew
from lukasa.spec.types import LifecyclePolicy
from lukasa.storage.operations import (
    DropEntry,
    DropNotes,
    Enqueue,
    Operation,
    SaveChannel,
    SaveConversation,
    SaveEntry,
    SaveNote,
)
from lukasa.storage.port import Filters, Selection, Store

NOTE_LIMIT = 100_000
PAGE = 500


def create_channel(room: Room, name: str, description: str = "") -> Channel:
    label = inputs.label(name, "channel name")
    inputs.storable(description, "description")
    channel = Channel(new_id(), room.info.id, label, description[:2000], False, room.now)
    try:
        room.apply(room.local, SaveChannel(channel))
    except Conflict:
        raise Conflict(f"there is already a channel {label!r}", fix="use it, or choose another name") from None
    return channel


def channel(room: Room, name_or_id: str | None = None) -> Channel:
    """A channel by name or id; the default one if none is named."""
    for found in channels(room):
        if (name_or_id is None and found.is_default) or name_or_id in (found.id, found.name):
            return found
    raise NotFound(
        f"no channel {name_or_id!r} in this workspace",
        fix="`lukasa channel list` shows the names, `lukasa channel create` makes one",
    )


def channels(room: Room) -> list[Channel]:
    """Those that this room takes part in. Anybody may begin a conversation in the default one."""
    return [found for found in room.local.channels() if found.is_default or room.takes_part("channel", found.id)]


def conversations(room: Room, *, archived: bool = False, channel: str | None = None) -> list[Conversation]:
    found = room.local.conversations(archived=archived, channel=channel)
    return [talk for talk in found if room.takes_part("conversation", talk.id)]


def start(room: Room, channel_name: str | None = None) -> Conversation:
    conversation = Conversation(new_id(), new_ref_code(), channel(room, channel_name).id, room.now)
    room.apply(room.local, SaveConversation(conversation, None))
    return conversation


@verb("conversation", "join")
def join(room: Room, id: str, ref_code: str, channel_name: str | None = None) -> Conversation:
    """The conversation with this id, started if it is not there yet. Of many who ask at once, one starts it."""
    found = room.local.conversation(id)
    if found is not None:
        return found
    started = Conversation(id, ref_code, channel(room, channel_name).id, room.now)
    try:
        room.apply(room.local, SaveConversation(started, None))
    except Conflict:
        return conversation(room, id)
    return started


def conversation(room: Room, id_or_ref: str) -> Conversation:
    key = inputs.label(id_or_ref, "conversation")
    found = room.local.conversation(key)
    if found is None or not room.takes_part("conversation", found.id):
        raise NotFound(
            f"no conversation {key[:60]!r} in this workspace", fix="`lukasa conversation list` shows the ref codes"
        )
    return found


@dataclass(frozen=True, slots=True)
class Ended:
    """A conversation that has ended, and how many entries went with it or were archived."""

    conversation: Conversation
    dropped: int
    archived: int


def idle(room: Room, id_or_ref: str) -> Conversation:
    return _advance(room, id_or_ref, Status.IDLE)


def archive(room: Room, id_or_ref: str) -> Conversation:
    return _advance(room, id_or_ref, Status.ARCHIVED)


def _advance(room: Room, id_or_ref: str, status: Status, *operations: Operation) -> Conversation:
    room.require_agent(f"{'end' if status is Status.IDLE else 'archive'} a conversation")
    before = conversation(room, id_or_ref)
    after = before.idle(room.now) if status is Status.IDLE else before.archive(room.now)
    try:
        room.apply(room.local, SaveConversation(after, before.status), *operations)
    except Conflict:
        # Somebody else moved it first; say so in terms of where it is now.
        now = conversation(room, id_or_ref)
        raise InvalidTransition(f"conversation {now.ref_code} is {now.status}", fix="look at it again") from None
    return after


def end(room: Room, id_or_ref: str) -> Ended:
    """End a conversation: idle it and clear what lives only in it, whoever wrote it.

    What a persistent tier holds, and what an action rests on, is archived: its row stays.
    """
    room.require_agent("end a conversation")
    found = conversation(room, id_or_ref)
    if found.status is Status.ARCHIVED:
        raise InvalidTransition(
            f"conversation {found.ref_code} is archived", fix="start a new one, as with `lukasa conversation start`"
        )
    here, there = (_ending(store, found) for store in (room.local, room.account))
    linked = room.local.linked(entry.id for entry in here)
    dropped = [entry for entry in here if _leaves(room, entry, linked)]
    operations: list[Operation] = [DropEntry(e.id, e.version, "its conversation ended") for e in dropped]
    operations.extend(_archived(room, entry) for entry in here if entry not in dropped)
    if _scratchpad(room) == "clear" and room.local.notes(found.id):
        operations.append(DropNotes(found.id))
    operations.extend(Enqueue(draft) for draft in session_close(room.spec, found.id))
    if there:
        room.apply(room.account, *(_archived(room, entry) for entry in there))
    if found.status is Status.ACTIVE:
        ended = _advance(room, found.id, Status.IDLE, *operations)
    else:
        ended = found
        if operations:
            room.apply(room.local, *operations)
    return Ended(ended, len(dropped), len(here) - len(dropped) + len(there))


def _ending(store: Store, found: Conversation) -> list[Entry]:
    """Everything of conversation lifetime that came from this conversation, in whatever scope, whoever owns it."""
    mine = Filters(lifetimes=frozenset({Lifetime.CONVERSATION}), conversations=frozenset({found.id}))
    scopes = tuple(count.scope for count in store.census())
    selection = Selection(scopes, frozenset(Visibility), None, mine)
    out: list[Entry] = []
    while True:
        page = store.find(selection, limit=PAGE, after=out[-1].id if out else None)
        out.extend(page)
        if len(page) < PAGE:
            return [entry for entry in out if entry.state is not State.ARCHIVED]


def _leaves(room: Room, entry: Entry, linked: Container[str]) -> bool:
    """Whether a row may go for good: only from a transient tier that drops at its end, and with no action on it."""
    transient = not room.spec.tier(entry.scope.tier).persistent
    policy = room.spec.behaviour(entry.scope.tier, entry.kind).lifecycle.policy
    return transient and policy is LifecyclePolicy.DROP and entry.id not in linked


def _archived(room: Room, entry: Entry) -> SaveEntry:
    cause = "its conversation ended"
    moved = entry.moved(State.ARCHIVED, at=room.now, cause=cause, actor=str(room.actor), version=entry.version + 1)
    return SaveEntry(moved, entry.version, "entry.archived", cause)


def _scratchpad(room: Room) -> str:
    narrowest = room.spec.tiers[0]
    return room.spec.behaviour(narrowest.name, narrowest.typology[0]).lifecycle.scratchpad


def write_note(room: Room, id_or_ref: str, key: str, value: object) -> Note:
    note = _new_note(room, id_or_ref, key, value)
    room.apply(room.local, SaveNote(note))
    return read_note(room, note.conversation, note.key)


@verb("note", "change")
def change_note(room: Room, id_or_ref: str, key: str, change: Callable[[Any], object]) -> None:
    """Write what a function makes of a note's value, None if there is no note yet; nothing if it makes None.

    If somebody else wrote the note in between, the function is asked again with what is there then.
    """
    found = conversation(room, id_or_ref)
    inputs.label(key, "a note's key")

    def attempt() -> None:
        before = next((note for note in room.local.notes(found.id) if note.key == key), None)
        value = change(before.value if before else None)
        if value is not None:
            room.apply(room.local, SaveNote(_new_note(room, found.id, key, value), onto=before))

    deciding_anew(attempt)


def _new_note(room: Room, id_or_ref: str, key: str, value: object) -> Note:
    found = conversation(room, id_or_ref)
    if found.status is Status.ARCHIVED:
        raise InvalidTransition(
            f"conversation {found.ref_code} is archived", fix="start a new one, as with `lukasa conversation start`"
        )
    data = inputs.json_value(value, "a note's value")
    inputs.verbatim(str(data), "a note's value", NOTE_LIMIT)
    now = room.now
    return Note(found.id, inputs.label(key, "a note's key"), data, now, now)


def read_note(room: Room, id_or_ref: str, key: str) -> Note:
    found = conversation(room, id_or_ref)
    inputs.label(key, "a note's key")
    for note in room.local.notes(found.id):
        if note.key == key:
            return note
    raise NotFound(f"no note {key[:60]!r} in conversation {found.ref_code}", fix="`lukasa note list` shows the keys")


def clear_notes(room: Room, id_or_ref: str, key: str | None = None) -> int:
    found = conversation(room, id_or_ref)
    count = sum(key is None or note.key == key for note in room.local.notes(found.id))
    if count:
        room.apply(room.local, DropNotes(found.id, key))
    return count
