"""Work that must not be lost: a job, its steps' outputs, and the claim of whoever works on it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field


class JobState(StrEnum):
    QUEUED = "queued"  # waiting for its time, or for a worker
    RUNNING = "running"  # somebody holds the lease; once that has run out, anybody may claim it
    DONE = "done"
    DEAD = "dead"  # out of attempts: visible, and a person may have it tried again
    CANCELLED = "cancelled"


FINISHED = frozenset({JobState.DONE, JobState.DEAD, JobState.CANCELLED})
MAX_ATTEMPTS = 5


class JobDraft(Struct, frozen=True):
    """Work to be done once for its key, however often it is asked for. The payload is plain JSON."""

    kind: str
    key: str
    payload: dict[str, Any] = field(default_factory=dict)
    run_after: datetime | None = None
    max_attempts: int = MAX_ATTEMPTS


class Job(Struct, frozen=True):
    """`claim` is the fencing number: each time somebody takes the job it rises, and older holders can write no more.

    `attempts` counts every start, also those that ended with the worker's death.
    """

    id: str
    kind: str
    key: str
    payload: dict[str, Any]
    state: JobState
    attempts: int
    max_attempts: int
    claim: int
    run_after: datetime
    created_at: datetime
    updated_at: datetime
    lease_until: datetime | None = None
    worker: str = ""
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)
