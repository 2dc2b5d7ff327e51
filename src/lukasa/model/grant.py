"""Grants: what a client other than the owner may do, in which workspaces and until when.

Only a token's digest is stored.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field

from lukasa.model.values import Trust

_TOKEN = re.compile(r"lks_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class Capability(StrEnum):
    """The things a credential may allow. Each mode of scrubbing is a capability of its own."""

    READ = "read"
    WRITE = "write"
    FORGET = "forget"
    REVIEW = "review"
    CONVERSATIONS = "conversations"
    NAMED_WRITE = "named_write"
    JOBS = "jobs"
    STATS = "stats"
    EVENTS = "events"
    SCRUB_PLAN = "scrub_plan"
    SCRUB_FULL = "scrub_full"
    SCRUB_KEEP_NAMED = "scrub_keep_named"
    SCRUB_PURGE_THREAD = "scrub_purge_thread"
    GRANTS = "grants"
    DISCOVER = "discover"  # reach the web
    METRICS = "metrics"  # counts and durations of the whole server, and no memory


# Only the author writes pages, and a client that can make grants could grant itself anything.
OWNERS_ALONE = frozenset({Capability.NAMED_WRITE, Capability.GRANTS})

# These remove for good. No program has them by default, not even one that acts as the owner.
FOR_GOOD = frozenset({Capability.SCRUB_FULL, Capability.SCRUB_KEEP_NAMED, Capability.SCRUB_PURGE_THREAD})

# No program has these unless they are named: what removes for good, and what reaches beyond this machine.
ONLY_NAMED = FOR_GOOD | {Capability.DISCOVER}


class Reach(Struct, frozen=True):
    """How much of a workspace a grant sees. The owner has no reach and sees everything.

    With `tiers`, a grant sees these tiers. Without, it sees each tier that the spec does not close to other clients. Of
    a tier for participants it sees the channels and conversations that are listed here, and those that the same agent
    began. `scope` binds scope keys of the spec's own, such as a tenant: a request may bind more, and change none.
    """

    tiers: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    conversations: tuple[str, ...] = ()
    scope: dict[str, str] = field(default_factory=dict)


class Grant(Struct, frozen=True):
    id: str
    name: str
    principal: str  # the principal that events name
    agent: str  # sees its own private entries
    workspaces: tuple[str, ...]  # ids
    capabilities: tuple[Capability, ...]
    reach: Reach
    trust: Trust
    created_at: datetime
    digest: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    version: int = 1

    def live(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def new_token(id: str) -> str:
    """A new token: the id of its grant, and 256 random bits."""
    return f"lks_{id}_{base64.urlsafe_b64encode(os.urandom(32)).rstrip(b'=').decode()}"


def grant_id(token: str) -> str | None:
    """The id of the grant that a token names; None if the text is not a token."""
    match = _TOKEN.fullmatch(token)
    return match[1] if match else None


def token_digest(token: str) -> str:
    # No salt and no stretching: the token is random, so there is nothing to guess.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def matches(token: str, digest: str) -> bool:
    return hmac.compare_digest(token_digest(token), digest)
