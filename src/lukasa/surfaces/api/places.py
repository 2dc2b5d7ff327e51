"""Verbs about places: workspaces, channels, conversations and their notes."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from lukasa.model.grant import Capability
from lukasa.surfaces.api.shapes import (
    ChannelOut,
    ChannelsOut,
    ClearedOut,
    ConversationOut,
    ConversationsOut,
    EndedOut,
    NoteOut,
    NotesOut,
    WorkspacesOut,
)
from lukasa.surfaces.api.verb import Call, Given, Nothing, Verb

_AT = "/workspaces/{workspace}"
_TALKS = f"{_AT}/conversations"


def workspaces(call: Call, given: Nothing) -> WorkspacesOut:
    return WorkspacesOut.of({"workspaces": call.access.visible(call.given)})


def channels(call: Call, given: Nothing) -> ChannelsOut:
    return ChannelsOut.of({"channels": call.workspace.channels()})


class ChannelIn(Given):
    name: str
    description: str = ""


def create_channel(call: Call, given: ChannelIn) -> ChannelOut:
    return ChannelOut.of(call.workspace.create_channel(given.name, given.description))


class ConversationsIn(Given):
    channel: str | None = Field(None, description="Only those of this channel, by name or id.")
    archived: bool = Field(False, description="Also those that are archived.")


def conversations(call: Call, given: ConversationsIn) -> ConversationsOut:
    found = call.workspace.conversations(archived=given.archived, channel=given.channel)
    return ConversationsOut.of({"conversations": found})


class StartIn(Given):
    channel: str | None = Field(None, description="By name or id; the default channel if left out.")


def start(call: Call, given: StartIn) -> ConversationOut:
    return ConversationOut.of(call.workspace.start(given.channel))


class ConversationIn(Given):
    id: str = Field(description="Ref code or id of a conversation.")


def end(call: Call, given: ConversationIn) -> EndedOut:
    return EndedOut.of(call.workspace.end(given.id))


def archive(call: Call, given: ConversationIn) -> ConversationOut:
    return ConversationOut.of(call.workspace.archive(given.id))


def notes(call: Call, given: ConversationIn) -> NotesOut:
    return NotesOut.of({"notes": call.workspace.notes(given.id)})


class KeyIn(ConversationIn):
    key: str = Field(description="Name of the note.")


def read_note(call: Call, given: KeyIn) -> NoteOut:
    return NoteOut.of(call.workspace.read_note(given.id, given.key))


class NoteIn(KeyIn):
    value: Any = Field(description="Any JSON value; it replaces what the note says.")


def write_note(call: Call, given: NoteIn) -> NoteOut:
    return NoteOut.of(call.workspace.write_note(given.id, given.key, given.value))


def clear_note(call: Call, given: KeyIn) -> ClearedOut:
    return ClearedOut(cleared=call.workspace.clear_notes(given.id, given.key))


def clear_notes(call: Call, given: ConversationIn) -> ClearedOut:
    return ClearedOut(cleared=call.workspace.clear_notes(given.id))


VERBS = (
    Verb(
        "workspace_list",
        "List the workspaces that this pass is for. A workspace is one project's memory, apart from all others.",
        Capability.READ,
        "GET",
        "/workspaces",
        Nothing,
        WorkspacesOut,
        workspaces,
    ),
    Verb(
        "channel_list",
        "List the channels that this pass takes part in: topics that several conversations share.",
        Capability.READ,
        "GET",
        f"{_AT}/channels",
        Nothing,
        ChannelsOut,
        channels,
    ),
    Verb(
        "channel_create",
        "Make a channel for a topic that will come up in several conversations.",
        Capability.CONVERSATIONS,
        "POST",
        f"{_AT}/channels",
        ChannelIn,
        ChannelOut,
        create_channel,
        mutates=True,
        status=201,
    ),
    Verb(
        "conversation_list",
        "List the conversations that this pass takes part in.",
        Capability.READ,
        "GET",
        _TALKS,
        ConversationsIn,
        ConversationsOut,
        conversations,
    ),
    Verb(
        "conversation_start",
        "Begin a conversation: working context and notes that end with it.",
        Capability.CONVERSATIONS,
        "POST",
        _TALKS,
        StartIn,
        ConversationOut,
        start,
        mutates=True,
        status=201,
    ),
    Verb(
        "conversation_end",
        "End a conversation: what lives only in it goes. Put what should last into a lasting tier first.",
        Capability.CONVERSATIONS,
        "POST",
        f"{_TALKS}/{{id}}/end",
        ConversationIn,
        EndedOut,
        end,
        mutates=True,
    ),
    Verb(
        "conversation_archive",
        "Put a conversation away for good.",
        Capability.CONVERSATIONS,
        "POST",
        f"{_TALKS}/{{id}}/archive",
        ConversationIn,
        ConversationOut,
        archive,
        mutates=True,
        tool=False,
    ),
    Verb(
        "note_list",
        "Show all working notes of a conversation.",
        Capability.READ,
        "GET",
        f"{_TALKS}/{{id}}/notes",
        ConversationIn,
        NotesOut,
        notes,
    ),
    Verb(
        "note_read",
        "Show one working note of a conversation.",
        Capability.READ,
        "GET",
        f"{_TALKS}/{{id}}/notes/{{key}}",
        KeyIn,
        NoteOut,
        read_note,
    ),
    Verb(
        "note_write",
        "Write a working note: an intermediate result or a plan for this conversation alone. What should outlast it is "
        "for memory_put.",
        Capability.CONVERSATIONS,
        "PUT",
        f"{_TALKS}/{{id}}/notes/{{key}}",
        NoteIn,
        NoteOut,
        write_note,
        mutates=True,
    ),
    Verb(
        "note_clear",
        "Remove one working note of a conversation.",
        Capability.CONVERSATIONS,
        "DELETE",
        f"{_TALKS}/{{id}}/notes/{{key}}",
        KeyIn,
        ClearedOut,
        clear_note,
        mutates=True,
    ),
    Verb(
        "note_clear_all",
        "Remove all working notes of a conversation.",
        Capability.CONVERSATIONS,
        "DELETE",
        f"{_TALKS}/{{id}}/notes",
        ConversationIn,
        ClearedOut,
        clear_notes,
        mutates=True,
        tool=False,
    ),
)
