"""Scrubbing: the modes and extent of a permanent removal, and a list of what it would remove."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from lukasa.model.entry import Scope
from lukasa.model.erasure import Words
from lukasa.model.events import canonical_json
from lukasa.model.item import ItemAddress

Versioned = tuple[tuple[str, int], ...]


class Mode(StrEnum):
    FULL = "full"  # everything in the tier's scope
    KEEP_NAMED = "keep_named"  # everything but the named entries
    PURGE_THREAD = "purge_thread"  # one conversation, with its events and the state a chat keeps for it
    ERASE = "erase"  # some entries, and every mention of some words


class Extent(Struct, frozen=True):
    """The data that a scrub removes from one store: exactly one scope, or exactly one conversation.

    There is no pattern.

    `place` names the workspace, or the account. `whole` says that the scope is its tier's only one in this store.
    `copies` includes data that may repeat a workspace's memory: transcripts, amendments, finished jobs, words in
    telemetry. Entries that an action rests on stay, unless `linked` includes them: an exemption from the audit posture.

    An erasure (`Mode.ERASE`) reaches the entries `ids`, the `documents`, the `items`, and every mention of
    `words`. `mark` is a keyed commitment that stands for the words wherever an extent is shown or logged.
    """

    place: str
    mode: Mode
    scope: Scope | None = None
    conversation: str | None = None
    whole: bool = False
    copies: bool = False
    linked: bool = False
    ids: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    items: tuple[ItemAddress, ...] = ()
    words: Words = Words(())
    mark: str = ""

    @property
    def erases(self) -> bool:
        return self.mode is Mode.ERASE

    @property
    def purges(self) -> bool:
        return self.mode is Mode.PURGE_THREAD

    @property
    def named(self) -> str | None:
        """The tier whose named entries are removed, if any."""
        return self.scope.tier if self.scope is not None and self.whole and self.mode is Mode.FULL else None

    def plain(self) -> dict[str, Any]:
        """The workspace or account, tier and keys as plain data: for people, for the digest and for the log."""
        if self.erases:
            return {"place": self.place, "mark": self.mark}
        anchor = dict(self.scope.anchor) if self.scope is not None else {"conversation": self.conversation}
        tier = {"tier": self.scope.tier} if self.scope is not None else {}
        return {"place": self.place, **tier, **anchor}


class KeptRow(Struct, frozen=True):
    """An entry that a scrub leaves where it is, and the actions that rest on it."""

    id: str
    actions: tuple[str, ...]


class Holdings(Struct, frozen=True):
    """The contents of an extent now. Memory is listed one by one with versions; the rest is counted."""

    entries: Versioned = ()
    named: Versioned = ()
    notes: Versioned = ()
    transcripts: Versioned = ()
    amendments: Versioned = ()
    documents: Versioned = ()
    kept: tuple[KeptRow, ...] = ()  # these stay
    counts: dict[str, int] = field(default_factory=dict)

    def listed(self) -> Iterator[tuple[str, str, int]]:
        for kind in ("entries", "named", "notes", "transcripts", "amendments", "documents"):
            for id, version in sorted(getattr(self, kind)):
                yield kind, id, version


def manifest_digest(extent: Extent, holdings: Holdings) -> str:
    """The digest that a confirmation is bound to: extent, mode, and every listed thing with its version."""
    body = [str(extent.mode), extent.plain(), list(holdings.listed())]
    return hashlib.sha256(canonical_json(body).encode("utf-8")).hexdigest()


def holds_words(value: Any) -> bool:
    """Whether telemetry metadata holds more than names and numbers."""
    if isinstance(value, dict):
        return any(holds_words(part) for part in value.values())
    if isinstance(value, list | tuple):
        return any(holds_words(part) for part in value)
    return isinstance(value, str) and " " in value
