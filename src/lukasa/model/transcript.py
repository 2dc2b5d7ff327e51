"""Sessions that were observed: what was said, by whom, and how far it has been turned into memory."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from msgspec import Struct

Role = Literal["user", "assistant", "system", "tool"]


class Progress(StrEnum):
    PENDING = "pending"  # kept word for word, and waiting to be observed
    OBSERVED = "observed"
    FAILED = "failed"  # kept word for word; `detail` says what went wrong


class Utterance(Struct, frozen=True):
    """One message of a session, cleaned of what was never said by its role. `place` counts from 0."""

    id: str
    role: Role
    text: str
    place: int
    at: datetime | None = None


class Transcript(Struct, frozen=True):
    """A session as it was taken in. `key` is the same whenever the same session is taken in again.

    `kept` utterances are stored, of which the first `observed` have been turned into memory; `how` says by what.
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


class Quote(Struct, frozen=True):
    """Where a fact was said: a message of a transcript, and the span of its text."""

    transcript: str
    message: str
    start: int
    end: int
