"""Observed sessions: their messages, their speakers, and how much of them was turned into memory."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from msgspec import Struct, field

Role = Literal["user", "assistant", "system", "tool"]


class Progress(StrEnum):
    PENDING = "pending"  # stored verbatim, not yet observed
    OBSERVED = "observed"
    FAILED = "failed"  # stored verbatim; `detail` describes the error


class Utterance(Struct, frozen=True):
    """One message of a session, without the parts that its role did not say. `place` is its position, from 0."""

    id: str
    role: Role
    text: str
    place: int
    at: datetime | None = None


class Transcript(Struct, frozen=True):
    """A stored session. `key` is the same whenever the same session is submitted again.

    `kept` utterances are stored; the first `observed` of them were turned into memory, and `how` names the method.
    `keys` are the scope keys of the spec's own under which it was taken in: it is theirs alone.
    """

    id: str
    key: str
    format: str
    title: str
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None = None
    progress: Progress = Progress.PENDING
    kept: int = 0
    observed: int = 0
    how: str = ""
    detail: str = ""
    version: int = 1
    keys: dict[str, str] = field(default_factory=dict)


class Quote(Struct, frozen=True):
    """The source of a fact: a message of a transcript, and the span in its text."""

    transcript: str
    message: str
    start: int
    end: int
