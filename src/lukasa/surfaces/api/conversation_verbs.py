"""Verbs about workspaces, channels, conversations and their notes, and about recorded sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from lukasa.model.grant import Capability
from lukasa.surfaces.api import session_answers
from lukasa.surfaces.api.shapes import (
    ChannelOut,
    ChannelsOut,
    ClearedOut,
    ConversationOut,
    ConversationsOut,
    EndedOut,
    NoteOut,
    NotesOut,
    PageOut,
    ScopesEndedOut,
    WorkspaceOut,
    WorkspacesOut,
)
from lukasa.surfaces.api.verb import MOST_NUMBER, Call, NoInput, SessionTool, Verb, VerbInput, VerbOutput

_WORKSPACE = "/workspaces/{workspace}"
_CONVERSATIONS = f"{_WORKSPACE}/conversations"


class WorkspacesIn(VerbInput):
    times: bool = Field(False, description="Also when each was last written.")


def workspaces(call: Call, given: WorkspacesIn) -> WorkspacesOut:
    visible = call.access.visible(call.credential)
    listed = [WorkspaceOut.of(info) for info in visible]
    if given.times:
        for told, info in zip(listed, visible, strict=True):
            told.written_at = call.access.written_at(info)
    return WorkspacesOut(workspaces=listed)


def channels(call: Call, given: NoInput) -> ChannelsOut:
    return ChannelsOut.of({"channels": call.workspace.channels()})


class ChannelIn(VerbInput):
    name: str = Field(description="Name of the channel.")
    description: str = Field("", description="Topic of the channel.")


def create_channel(call: Call, given: ChannelIn) -> ChannelOut:
    return ChannelOut.of(call.workspace.create_channel(given.name, given.description))


class ConversationsIn(VerbInput):
    channel: str | None = Field(None, description="Only conversations of this channel, by name or id.")
    archived: bool = Field(False, description="Also archived conversations.")


def conversations(call: Call, given: ConversationsIn) -> ConversationsOut:
    found = call.workspace.conversations(archived=given.archived, channel=given.channel)
    return ConversationsOut.of({"conversations": found})


class StartIn(VerbInput):
    channel: str | None = Field(None, description="Channel, by name or id; the default channel if left out.")


def start(call: Call, given: StartIn) -> ConversationOut:
    return ConversationOut.of(call.workspace.start(given.channel))


class ConversationIn(VerbInput):
    id: str = Field(description="Ref code or id of a conversation.")


def end(call: Call, given: ConversationIn) -> EndedOut:
    return EndedOut.of(call.workspace.end(given.id))


class ScopeIn(VerbInput):
    name: str = Field(description="The level of memory, or the event that ends it, such as session or session_end.")


def end_scope(call: Call, given: ScopeIn) -> ScopesEndedOut:
    return ScopesEndedOut.of({"ended": call.workspace.end_scope(given.name)})


def archive(call: Call, given: ConversationIn) -> ConversationOut:
    return ConversationOut.of(call.workspace.archive(given.id))


def notes(call: Call, given: ConversationIn) -> NotesOut:
    return NotesOut.of({"notes": call.workspace.notes(given.id)})


class KeyIn(ConversationIn):
    key: str = Field(description="Name of the note.")


def read_note(call: Call, given: KeyIn) -> NoteOut:
    return NoteOut.of(call.workspace.read_note(given.id, given.key))


class NoteIn(KeyIn):
    value: Any = Field(description="Any JSON value; it replaces the old one.")


def write_note(call: Call, given: NoteIn) -> NoteOut:
    return NoteOut.of(call.workspace.write_note(given.id, given.key, given.value))


def clear_note(call: Call, given: KeyIn) -> ClearedOut:
    return ClearedOut(cleared=call.workspace.clear_notes(given.id, given.key))


def clear_notes(call: Call, given: ConversationIn) -> ClearedOut:
    return ClearedOut(cleared=call.workspace.clear_notes(given.id))


_ANY_NOTE = (str | None, Field(None, description="Name of the note; all notes if left out."))

CONVERSATIONS_VERBS = (
    Verb(
        "workspace_list",
        "List the workspaces of this credential. A workspace is the memory of one project, apart from all others.",
        Capability.READ,
        "GET",
        "/workspaces",
        WorkspacesIn,
        WorkspacesOut,
        workspaces,
    ),
    Verb(
        "channel_list",
        "List the channels of this credential: topics that several conversations share.",
        Capability.READ,
        "GET",
        f"{_WORKSPACE}/channels",
        NoInput,
        ChannelsOut,
        channels,
    ),
    Verb(
        "channel_create",
        "Create a channel for a topic of several conversations.",
        Capability.CONVERSATIONS,
        "POST",
        f"{_WORKSPACE}/channels",
        ChannelIn,
        ChannelOut,
        create_channel,
        mutates=True,
        status=201,
    ),
    Verb(
        "conversation_list",
        "List the conversations of this credential.",
        Capability.READ,
        "GET",
        _CONVERSATIONS,
        ConversationsIn,
        ConversationsOut,
        conversations,
    ),
    Verb(
        "conversation_start",
        "Start a conversation, with notes and entries that end with it.",
        Capability.CONVERSATIONS,
        "POST",
        _CONVERSATIONS,
        StartIn,
        ConversationOut,
        start,
        mutates=True,
        status=201,
    ),
    Verb(
        "conversation_end",
        "End a conversation. A summary of what was remembered stays in its channel. Its own notes and entries go, "
        "except those that the settings carry on: store what should last in the workspace first.",
        Capability.CONVERSATIONS,
        "POST",
        f"{_CONVERSATIONS}/{{id}}/end",
        ConversationIn,
        EndedOut,
        end,
        mutates=True,
    ),
    Verb(
        "scope_end",
        "End what a level of memory is bound to, such as a session: what the settings keep moves on, the rest is "
        "cleared, open conversations inside end first, and later writes are refused.",
        Capability.CONVERSATIONS,
        "POST",
        f"{_WORKSPACE}/scopes/{{name}}/end",
        ScopeIn,
        ScopesEndedOut,
        end_scope,
        mutates=True,
    ),
    Verb(
        "conversation_archive",
        "Archive a conversation for good.",
        Capability.CONVERSATIONS,
        "POST",
        f"{_CONVERSATIONS}/{{id}}/archive",
        ConversationIn,
        ConversationOut,
        archive,
        mutates=True,
        tool=False,
    ),
    Verb(
        "note_list",
        "Show all notes of a conversation.",
        Capability.READ,
        "GET",
        f"{_CONVERSATIONS}/{{id}}/notes",
        ConversationIn,
        NotesOut,
        notes,
    ),
    Verb(
        "note_write",
        "Write a note of this conversation: a count, a plan, a list. Notes are a scratchpad: they end with the "
        "conversation, and memory_read never finds them. Use memory_put for what should last.",
        Capability.CONVERSATIONS,
        "PUT",
        f"{_CONVERSATIONS}/{{id}}/notes/{{key}}",
        NoteIn,
        NoteOut,
        write_note,
        mutates=True,
        session=SessionTool.of(NoteIn, session_answers.note_write, "key", "value"),
    ),
    Verb(
        "note_read",
        "Read a note of a conversation, by its name.",
        Capability.READ,
        "GET",
        f"{_CONVERSATIONS}/{{id}}/notes/{{key}}",
        KeyIn,
        NoteOut,
        read_note,
        session=SessionTool.of(KeyIn, session_answers.note_read, key=_ANY_NOTE),
    ),
    Verb(
        "note_clear",
        "Remove one note of a conversation.",
        Capability.CONVERSATIONS,
        "DELETE",
        f"{_CONVERSATIONS}/{{id}}/notes/{{key}}",
        KeyIn,
        ClearedOut,
        clear_note,
        mutates=True,
    ),
    Verb(
        "note_clear_all",
        "Remove all notes of a conversation.",
        Capability.CONVERSATIONS,
        "DELETE",
        f"{_CONVERSATIONS}/{{id}}/notes",
        ConversationIn,
        ClearedOut,
        clear_notes,
        mutates=True,
        tool=False,
    ),
)


# Recorded sessions, word for word: for the owner alone


_TRANSCRIPTS = "/workspaces/{workspace}/transcripts"


class TranscriptOut(VerbOutput):
    """A recorded session: how many of its messages are kept, and how many of those were turned into memory."""

    id: str
    key: str
    format: str
    title: str
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None = None
    progress: str
    kept: int
    observed: int
    how: str
    detail: str
    learned: dict[str, int] | None = Field(
        None, description="Entries that it led to, by what became of them: kept, held, retired. Given by the list."
    )


class TranscriptsOut(PageOut):
    transcripts: list[TranscriptOut]


class UtteranceOut(VerbOutput):
    id: str
    role: str
    text: str
    place: int
    at: datetime | None = None


class TranscriptSaidOut(PageOut):
    transcript: TranscriptOut
    said: list[UtteranceOut]


class TranscriptsIn(VerbInput):
    progress: Literal["pending", "observed", "failed"] | None = Field(
        None, description="Only pending, observed or failed sessions."
    )
    limit: int = Field(50, ge=1, le=500, description="At most this many sessions.")
    after: str | None = Field(None, description="`next` of the page before.")


def transcripts(call: Call, given: TranscriptsIn) -> TranscriptsOut:
    page = call.workspace.transcripts(progress=given.progress, limit=given.limit + 1, after=given.after)
    more = page[given.limit - 1].id if len(page) > given.limit else None
    known = call.workspace.learned_in(page[: given.limit])
    listed = [TranscriptOut.of(one).model_copy(update={"learned": known[one.id]}) for one in page[: given.limit]]
    return TranscriptsOut(transcripts=listed, next=more)


class SentenceOut(VerbOutput):
    """A sentence of a message that was looked at: kept, held, merged, retired or discarded, and why."""

    message: str
    start: int
    end: int
    became: str
    reason: str
    entry: str = Field(description="Id of the entry; empty if it was discarded.")
    content: str
    state: str
    tier: str


class LearnedOut(VerbOutput):
    sentences: list[SentenceOut]


class TranscriptIn(VerbInput):
    id: str = Field(description="Id of a transcript.")


def learned(call: Call, given: TranscriptIn) -> LearnedOut:
    return LearnedOut.of({"sentences": call.workspace.learned(given.id)})


class SaidIn(VerbInput):
    id: str = Field(description="Id of a transcript.")
    limit: int = Field(100, ge=1, le=1000, description="At most this many messages.")
    after: int = Field(0, ge=0, le=MOST_NUMBER, description="How many messages to skip: `next` of the page before.")


def said(call: Call, given: SaidIn) -> TranscriptSaidOut:
    found = call.workspace.said(given.id, start=given.after, limit=given.limit + 1)
    more = str(given.after + given.limit) if len(found) > given.limit else None
    about = TranscriptOut.of(call.workspace.transcript(given.id))
    return TranscriptSaidOut(transcript=about, said=[UtteranceOut.of(one) for one in found[: given.limit]], next=more)


TRANSCRIPTS_VERBS = (
    Verb(
        "transcript_list",
        "List recorded sessions, newest first.",
        Capability.READ,
        "GET",
        _TRANSCRIPTS,
        TranscriptsIn,
        TranscriptsOut,
        transcripts,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "transcript_get",
        "Show the messages of a recorded session.",
        Capability.READ,
        "GET",
        f"{_TRANSCRIPTS}/{{id}}",
        SaidIn,
        TranscriptSaidOut,
        said,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "transcript_learned",
        "Show what became of the sentences of a recorded session: kept, held, merged, retired or discarded, and why.",
        Capability.READ,
        "GET",
        f"{_TRANSCRIPTS}/{{id}}/learned",
        TranscriptIn,
        LearnedOut,
        learned,
        owner_only=True,
        tool=False,
    ),
)

VERBS = (*CONVERSATIONS_VERBS, *TRANSCRIPTS_VERBS)
