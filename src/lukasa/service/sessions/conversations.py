"""Channels, conversations and the notes (scratchpad) of a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lukasa.model.conversation import Channel, Conversation, Note, Status
from lukasa.model.errors import Conflict, InvalidTransition, NotFound
from lukasa.model.ids import new_id, new_ref_code
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.instrument import verb
from lukasa.storage.operations import (
    DropNotes,
    SaveChannel,
    SaveConversation,
    SaveNote,
)

NOTE_LIMIT = 100_000


def create_channel(ctx: CallContext, name: str, description: str = "") -> Channel:
    """Create a channel."""
    ctx.require_whole("create a channel")
    label = inputs.one_line(name, "channel name")
    inputs.storable(description, "description")
    channel = Channel(new_id(), ctx.info.id, label, description[:2000], False, ctx.now)
    try:
        ctx.apply(ctx.local, SaveChannel(channel))
    except Conflict:
        raise Conflict(f"there is already a channel {label!r}", fix="use it, or choose another name") from None
    return channel


def channel(ctx: CallContext, name_or_id: str | None = None) -> Channel:
    """Return a channel by name or id; the default one if none is named."""
    for found in channels(ctx):
        if (name_or_id is None and found.is_default) or name_or_id in (found.id, found.name):
            return found
    raise NotFound(
        f"no channel {str(name_or_id)[:60]!r} in this workspace",
        fix="`lukasa channel list` shows the names, `lukasa channel create` makes one",
    )


def channels(ctx: CallContext) -> list[Channel]:
    """Return the channels that this context takes part in. Anybody may begin a conversation in the default one."""
    return [found for found in ctx.local.channels() if found.is_default or ctx.takes_part("channel", found.id)]


def conversations(ctx: CallContext, *, archived: bool = False, channel: str | None = None) -> list[Conversation]:
    """Return the conversations that this context takes part in."""
    found = ctx.local.conversations(archived=archived, channel=channel)
    return [talk for talk in found if ctx.takes_part("conversation", talk.id)]


def start(ctx: CallContext, channel_name: str | None = None) -> Conversation:
    """Start a conversation in the named channel; without a name in the bound channel, or in the default one."""
    chosen = channel(ctx, ctx.keys.get("channel") if channel_name is None else channel_name)
    conversation = Conversation(new_id(), new_ref_code(), chosen.id, ctx.now, keys=ctx.tenancy)
    ctx.apply(ctx.local, SaveConversation(conversation, None))
    return conversation


@verb("conversation", "join")
def join(ctx: CallContext, id: str, ref_code: str, channel_name: str | None = None) -> Conversation:
    """Return the conversation with this id; start it if there is none. Of several callers at once, one starts it."""
    if ctx.local.conversation(id) is not None:
        return conversation(ctx, id)
    started = Conversation(id, ref_code, channel(ctx, channel_name).id, ctx.now, keys=ctx.tenancy)
    try:
        ctx.apply(ctx.local, SaveConversation(started, None))
    except Conflict:
        return conversation(ctx, id)
    return started


def conversation(ctx: CallContext, id_or_ref: str) -> Conversation:
    """Return a conversation by id or ref code."""
    key = inputs.label(id_or_ref, "conversation")
    found = ctx.local.conversation(key)
    if found is None or not ctx.takes_part("conversation", found.id):
        raise NotFound(
            f"no conversation {key[:60]!r} in this workspace", fix="`lukasa conversation list` shows the ref codes"
        )
    return found


def idle(ctx: CallContext, id_or_ref: str) -> Conversation:
    """Mark a conversation as idle."""
    return _advance(ctx, id_or_ref, Status.IDLE)


def archive(ctx: CallContext, id_or_ref: str) -> Conversation:
    """Archive a conversation."""
    return _advance(ctx, id_or_ref, Status.ARCHIVED)


def _advance(ctx: CallContext, id_or_ref: str, status: Status) -> Conversation:
    ctx.require_agent(f"{'end' if status is Status.IDLE else 'archive'} a conversation")
    before = conversation(ctx, id_or_ref)
    after = before.idle(ctx.now) if status is Status.IDLE else before.archive(ctx.now)
    try:
        ctx.apply(ctx.local, SaveConversation(after, before.status))
    except Conflict:
        # Another writer changed the status first: name the present status.
        now = conversation(ctx, id_or_ref)
        raise InvalidTransition(
            f"conversation {now.ref_code} is {now.status}", fix="`lukasa conversation list` shows the status"
        ) from None
    return after


def write_note(ctx: CallContext, id_or_ref: str, key: str, value: object) -> Note:
    """Write a note."""
    note = _new_note(ctx, id_or_ref, key, value)
    ctx.apply(ctx.local, SaveNote(note))
    return read_note(ctx, note.conversation, note.key)


@verb("note", "change")
def change_note(ctx: CallContext, id_or_ref: str, key: str, change: Callable[[Any], object]) -> None:
    """Replace a note's value by what a function returns; write nothing if it returns None.

    The function gets None if there is no note. If another writer changed the note meanwhile, it is called again.
    """
    found = conversation(ctx, id_or_ref)
    inputs.label(key, "a note's key")

    def attempt() -> None:
        before = next((note for note in ctx.local.notes(found.id) if note.key == key), None)
        value = change(before.value if before else None)
        if value is not None:
            ctx.apply(ctx.local, SaveNote(_new_note(ctx, found.id, key, value), onto=before))

    retry_on_conflict(attempt)


def _new_note(ctx: CallContext, id_or_ref: str, key: str, value: object) -> Note:
    found = conversation(ctx, id_or_ref)
    if found.status is Status.ARCHIVED:
        raise InvalidTransition(
            f"conversation {found.ref_code} is archived", fix="start a new one, as with `lukasa conversation start`"
        )
    data = inputs.json_value(value, "a note's value")
    inputs.verbatim(str(data), "a note's value", NOTE_LIMIT)
    now = ctx.now
    return Note(found.id, inputs.one_line(key, "a note's key"), data, now, now)


def read_note(ctx: CallContext, id_or_ref: str, key: str) -> Note:
    """Return a note."""
    found = conversation(ctx, id_or_ref)
    inputs.label(key, "a note's key")
    for note in ctx.local.notes(found.id):
        if note.key == key:
            return note
    raise NotFound(f"no note {key[:60]!r} in conversation {found.ref_code}", fix="`lukasa note list` shows the keys")


def clear_notes(ctx: CallContext, id_or_ref: str, key: str | None = None) -> int:
    """Delete one note, or all notes of a conversation; return how many."""
    found = conversation(ctx, id_or_ref)
    count = sum(key is None or note.key == key for note in ctx.local.notes(found.id))
    if count:
        ctx.apply(ctx.local, DropNotes(found.id, key))
    return count
