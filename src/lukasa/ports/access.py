"""The part of the store port that other clients rest on: their grants, and what they were answered."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from lukasa.model.answer import Answer
from lukasa.model.events import canonical_json
from lukasa.model.frozen import dataclass
from lukasa.model.grant import Grant


@dataclass(frozen=True, slots=True)
class SaveGrant:
    """Insert (`expect` 0) or replace the version `expect`. A different current version is a Conflict."""

    grant: Grant
    expect: int


@dataclass(frozen=True, slots=True)
class SaveAnswer:
    """Take a key (status 0), or keep its answer. A key that another request has, or that is taken, is a Conflict.

    A key that was taken before `stale` and never answered may be taken again: whoever had it is gone.
    """

    answer: Answer
    stale: datetime | None = None


@dataclass(frozen=True, slots=True)
class DropAnswer:
    """Give a key back that was taken: nothing came of the request."""

    key: str


@dataclass(frozen=True, slots=True)
class ForgetAnswers:
    before: datetime


AccessOperation = SaveGrant | SaveAnswer | DropAnswer | ForgetAnswers


class AccessStore(Protocol):
    def grants(self) -> list[Grant]:
        """All of them, also those that are over; the oldest first."""
        ...

    def grant(self, id: str) -> Grant | None: ...
    def answer(self, key: str) -> Answer | None: ...


def grant_detail(grant: Grant) -> dict[str, Any]:
    """What the log says of a grant."""
    return {
        "name": grant.name,
        "agent": grant.agent,
        "workspaces": list(grant.workspaces),
        "capabilities": [str(c) for c in grant.capabilities],
    }


def grant_text(grant: Grant) -> str:
    """All of a grant in one spelling: what the log commits to, so that a row cannot be widened behind its back."""
    times = [t.isoformat() if t else None for t in (grant.created_at, grant.expires_at, grant.revoked_at)]
    reach = [list(grant.reach.tiers), list(grant.reach.channels), list(grant.reach.conversations)]
    who = [grant.id, grant.principal, grant.trust.name, grant.digest]
    return canonical_json([who, grant_detail(grant), reach, times])
