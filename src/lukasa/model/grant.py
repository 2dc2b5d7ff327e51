"""Grants: what a client that is not the owner may do, where, and for how long. Only the digest of its token is kept."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from lukasa.model.values import Trust

_TOKEN = re.compile(r"lks_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class Capability(StrEnum):
    """What a pass may be for. Each way to scrub is a capability of its own."""

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


# Pages are the author's, and whoever can grant can grant themselves anything.
OWNERS_ALONE = frozenset({Capability.NAMED_WRITE, Capability.GRANTS})

# What nothing brings back. No program has these by default, not even one that acts as the owner.
FOR_GOOD = frozenset({Capability.SCRUB_FULL, Capability.SCRUB_KEEP_NAMED, Capability.SCRUB_PURGE_THREAD})


class Reach(Struct, frozen=True):
    """How far a grant sees into a workspace. The owner's handles have none, and see all of it.

    Without `tiers`, those that live in the workspace itself; the account's are only open where they are named. What
    belongs to a channel or a conversation is for those who take part in it: listed here, or begun by the same agent.
    """

    tiers: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    conversations: tuple[str, ...] = ()

    def opens(self, tier: str, home: str) -> bool:
        return tier in self.tiers if self.tiers else home == "workspace"


class Grant(Struct, frozen=True):
    id: str
    name: str
    principal: str  # in whose name events are written
    agent: str  # whose private entries it sees
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
    """A token that says which grant it is of, and then 256 random bits."""
    return f"lks_{id}_{base64.urlsafe_b64encode(os.urandom(32)).rstrip(b'=').decode()}"


def grant_id(token: str) -> str | None:
    """The grant a token claims to be of; None if it is no token."""
    match = _TOKEN.fullmatch(token)
    return match[1] if match else None


def token_digest(token: str) -> str:
    # No salt and no stretching: the token is random, so that there is nothing to guess.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def matches(token: str, digest: str) -> bool:
    return hmac.compare_digest(token_digest(token), digest)
