"""Durable work: a job, the outputs of its steps, and the claim of the worker that runs it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field


class JobState(StrEnum):
    QUEUED = "queued"  # waiting for its time, or for a worker
    RUNNING = "running"  # a worker holds the lease; after its end any worker may claim the job
    DONE = "done"
    DEAD = "dead"  # out of attempts: still listed, and a person may retry it
    CANCELLED = "cancelled"


FINISHED = frozenset({JobState.DONE, JobState.DEAD, JobState.CANCELLED})
MAX_ATTEMPTS = 5


class JobDraft(Struct, frozen=True):
    """Work to do once for its key, however often it is requested. The payload is plain JSON."""

    kind: str
    key: str
    payload: dict[str, Any] = field(default_factory=dict)
    run_after: datetime | None = None
    max_attempts: int = MAX_ATTEMPTS


class Job(Struct, frozen=True):
    """A job in the queue.

    `claim` is the fencing token: it rises with each claim, and earlier holders can write nothing
    more.

    `attempts` counts every start, also one that ended with the worker's death.
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
