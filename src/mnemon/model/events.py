"""The event log: every change of memory, append-only, each event sealed to the one before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from mnemon.model.frozen import dataclass

GENESIS = "0" * 64


@dataclass(frozen=True, slots=True)
class Actor:
    """On whose behalf a transaction runs, as the event log names them."""

    principal: str
    surface: str
    transport: str

    def __str__(self) -> str:
        return f"{self.principal}@{self.surface}"


@dataclass(frozen=True, slots=True)
class EventDraft:
    """What happened, before the store gives it a place in the chain."""

    action: str
    subject: str
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    seq: int
    at: datetime
    actor: Actor
    action: str
    subject: str
    detail: dict[str, Any]
    previous: str
    digest: str


def seal(draft: EventDraft, *, seq: int, at: datetime, actor: Actor, previous: str) -> Event:
    """Place a draft in the chain: its digest covers everything it says and the digest before it."""
    return Event(
        seq,
        at,
        actor,
        draft.action,
        draft.subject,
        draft.detail,
        previous,
        _digest(draft, seq, at, actor, previous),
    )


def _digest(draft: EventDraft, seq: int, at: datetime, actor: Actor, previous: str) -> str:
    body = [
        previous,
        seq,
        at.isoformat(),
        [actor.principal, actor.surface, actor.transport],
        draft.action,
        draft.subject,
        draft.detail,
    ]
    return hashlib.sha256(canonical_json(body).encode("utf-8")).hexdigest()


def canonical_json(value: Any) -> str:
    """One spelling for one value, so that digests can be recomputed anywhere."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def chain_faults(events: Iterable[Event], *, head: tuple[int, str] | None = None) -> list[str]:
    """What is wrong with a chain, in words; empty when it verifies.

    `head` is the (seq, digest) kept outside the log: without it a cut-off tail would still look whole.
    """
    faults: list[str] = []
    previous, expected = GENESIS, 1
    for event in events:
        if event.seq != expected:
            faults.append(f"event {expected} is missing or out of order (found {event.seq})")
            expected = event.seq
        if event.previous != previous:
            faults.append(f"event {event.seq} does not continue the one before it")
        draft = EventDraft(event.action, event.subject, event.detail)
        if _digest(draft, event.seq, event.at, event.actor, event.previous) != event.digest:
            faults.append(f"event {event.seq} was altered")
        previous, expected = event.digest, expected + 1
    if head is not None and head != (expected - 1, previous):
        faults.append(f"the log ends at event {expected - 1}, but its recorded head is event {head[0]}")
    return faults
