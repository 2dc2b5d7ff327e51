"""Channels, conversations and their notes."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model.errors import InvalidTransition

SUMMARY_TAG = "conversation-summary"  # of the entry that summarises an ended conversation


class Status(StrEnum):
    ACTIVE = "active"
    IDLE = "idle"
    ARCHIVED = "archived"


class Channel(Struct, frozen=True):
    """A topic inside a workspace; every workspace has one default channel."""

    id: str
    workspace: str
    name: str
    description: str
    is_default: bool
    created_at: datetime


class Conversation(Struct, frozen=True):
    """One session with an agent. Active → Idle → Archived, or Active → Archived; never back.

    `keys` are the scope keys of the spec's own, such as a tenant, under which it was started: it is theirs alone.
    """

    id: str
    ref_code: str
    channel: str
    started_at: datetime
    status: Status = Status.ACTIVE
    ended_at: datetime | None = None
    keys: dict[str, str] = field(default_factory=dict)

    def idle(self, at: datetime) -> Conversation:
        if self.status is not Status.ACTIVE:
            raise self._cannot("idle")
        return replace(self, status=Status.IDLE, ended_at=at)

    def archive(self, at: datetime) -> Conversation:
        if self.status is Status.ARCHIVED:
            raise self._cannot("archive")
        return replace(self, status=Status.ARCHIVED, ended_at=self.ended_at or at)

    def _cannot(self, verb: str) -> InvalidTransition:
        return InvalidTransition(
            f"conversation {self.ref_code} is {self.status}; it cannot {verb}", fix="start a new conversation"
        )


class Note(Struct, frozen=True):
    """A scratchpad value: the agent's working state inside one conversation, not memory."""

    conversation: str
    key: str
    value: Any
    created_at: datetime
    updated_at: datetime


class WorkspaceInfo(Struct, frozen=True):
    """A workspace as the account lists it.

    `ready` means that its database exists: if it is missing later, that is an error.
    """

    id: str
    name: str
    preset: str
    spec_toml: str
    created_at: datetime
    ready: bool
