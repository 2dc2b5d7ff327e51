"""Verbs of the owner about sync: how this machine and the others stand, and a round now.

Beginning, joining and removing stay with the command line: they ask for a passphrase, which no request may carry.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from lukasa.model.grant import Capability
from lukasa.surfaces.api.verb import Call, NoInput, Verb, VerbOutput


class SyncMachineOut(VerbOutput):
    name: str
    machine: str
    fingerprint: str
    standing: str = Field(description="`this`, `member`, `removed`, or `outside` for one that has to join again.")
    own: bool
    trust: str
    bundles: int
    seen_at: datetime | None
    behind: int = Field(description="Bundles of this machine that it has not read yet.")
    same: bool = Field(description="Whether it had the same memory as this machine when it was last seen.")
    trouble: str


class SyncOut(VerbOutput):
    configured: bool = False
    remote: str = ""
    name: str = ""
    fingerprint: str = ""
    synced_at: datetime | None = None
    waiting: int = Field(default=0, description="Changes that nobody has heard of yet.")
    state: str = Field(
        default="", description="Digest of this memory; machines with the same digest have the same memory."
    )
    machines: list[SyncMachineOut] = Field(default=[])
    troubles: list[str] = Field(default=[])
    ended: str = ""
    unconfirmed: dict[str, list[str]] = Field(
        default={}, description="Receipts of erasures, with the machines that have not confirmed them."
    )


class SyncedOut(VerbOutput):
    at: datetime
    remote: str
    sent: int
    bundles: int
    taken: dict[str, int] = Field(description="Changes by machine.")
    changes: dict[str, dict[str, int]] = Field(description="What became of them here, by kind.")
    held: int
    waiting: int
    emptied: int
    joined: list[dict[str, Any]]
    removed: list[str]
    refused: list[str] = Field(description="Sentences that name the file and the machine.")
    waits: list[str]
    state: str


def sync_status(call: Call, given: NoInput) -> SyncOut:
    memory = call.access.memory
    if not memory.syncs:
        return SyncOut(configured=False)
    return SyncOut.of(memory.sync.status()).model_copy(update={"configured": True})


def sync_now(call: Call, given: NoInput) -> SyncedOut:
    return SyncedOut.of(call.access.memory.sync.run())


VERBS = (
    Verb(
        "sync_status",
        "Show whether this memory syncs with other machines, which these are, when each was seen, and what waits.",
        Capability.STATS,
        "GET",
        "/sync",
        NoInput,
        SyncOut,
        sync_status,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "sync_now",
        "Tell the other machines what changed here, and take what they told. It needs a sync that was begun or joined "
        "on the command line.",
        Capability.JOBS,
        "POST",
        "/sync",
        NoInput,
        SyncedOut,
        sync_now,
        mutates=True,
        owner_only=True,
        tool=False,
        keyed=False,  # a repetition tells nothing twice
    ),
)
