"""Scrubbing: what an operator may have removed for good, and what is there to be removed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from lukasa.model.entry import Scope
from lukasa.model.events import canonical_json

Versioned = tuple[tuple[str, int], ...]


class Mode(StrEnum):
    FULL = "full"  # everything of the tier's scope
    KEEP_NAMED = "keep_named"  # everything but the named entries
    PURGE_THREAD = "purge_thread"  # one conversation, with its events and what a chat keeps of it


class Extent(Struct, frozen=True):
    """What a scrub reaches, in one store: exactly one scope, or exactly one conversation. There is no pattern.

    `place` is the workspace, or the account. `whole` says that the scope is its tier's only one in this store.
    `copies` takes what may repeat a workspace's memory: transcripts, amendments, finished jobs, words in telemetry.
    """

    place: str
    mode: Mode
    scope: Scope | None = None
    conversation: str | None = None
    whole: bool = False
    copies: bool = False

    @property
    def purges(self) -> bool:
        return self.mode is Mode.PURGE_THREAD

    @property
    def named(self) -> str | None:
        """The tier whose named entries go, if any do."""
        return self.scope.tier if self.scope is not None and self.whole and self.mode is Mode.FULL else None

    def plain(self) -> dict[str, Any]:
        """Where, in words: for people, for the digest and for the log."""
        anchor = dict(self.scope.anchor) if self.scope is not None else {"conversation": self.conversation}
        tier = {"tier": self.scope.tier} if self.scope is not None else {}
        return {"place": self.place, **tier, **anchor}


class Holdings(Struct, frozen=True):
    """What is in an extent now. Each thing that memory holds is listed with its version; the rest is counted."""

    entries: Versioned = ()
    named: Versioned = ()
    notes: Versioned = ()
    transcripts: Versioned = ()
    amendments: Versioned = ()
    counts: dict[str, int] = field(default_factory=dict)

    def listed(self) -> Iterator[tuple[str, str, int]]:
        for kind in ("entries", "named", "notes", "transcripts", "amendments"):
            for id, version in sorted(getattr(self, kind)):
                yield kind, id, version


def manifest_digest(extent: Extent, holdings: Holdings) -> str:
    """What a confirmation is bound to: where, how, and every single thing with its version."""
    body = [str(extent.mode), extent.plain(), list(holdings.listed())]
    return hashlib.sha256(canonical_json(body).encode("utf-8")).hexdigest()


def holds_words(value: Any) -> bool:
    """Whether telemetry metadata says more than names and numbers."""
    if isinstance(value, dict):
        return any(holds_words(part) for part in value.values())
    if isinstance(value, list | tuple):
        return any(holds_words(part) for part in value)
    return isinstance(value, str) and " " in value
