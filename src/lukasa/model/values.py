"""The vocabulary of memory: small closed sets of values, and the origin of a write."""

from __future__ import annotations

from enum import IntEnum, StrEnum

from msgspec import Struct


class Kind(StrEnum):
    """The sort of memory an entry is; most behaviour follows from it."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


class Relation(StrEnum):
    """How two entries with the same subject relate. Both stay active."""

    UPDATE = "update"  # they give one thing two values: the later one probably holds
    CLOSE = "close"  # the later one may replace the earlier one, or both hold
    SAME = "same"  # they say the same in other words
    BOTH = "both"  # a person or a model said that both hold


class Outcome(StrEnum):
    """The outcome of checking whether an entry still holds."""

    CONFIRMED = "confirmed"
    FAILED = "failed"


class Retention(StrEnum):
    """Why the row of an entry is kept. It follows from what rests on the entry and on what the entry rests."""

    ACTIVE = "active"
    REFERENCED = "referenced"  # an action or another entry rests on it
    ORPHANED = "orphaned"  # its scope, or all of its sources, are gone
    TOMBSTONED = "tombstoned"  # its content is gone for good; the row with its id remains


class Lifetime(StrEnum):
    LONG_TERM = "long_term"
    SHORT_TERM = "short_term"
    CONVERSATION = "conversation"


class Curator(StrEnum):
    AGENT = "agent"
    AUTHOR = "author"
    IMPORT = "import"


class State(StrEnum):
    """The state of an entry. Reads find `active` and `stale`, and `held` on request; the rest are in history."""

    ACTIVE = "active"
    HELD = "held"
    STALE = "stale"
    FORGOTTEN = "forgotten"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"
    INVALIDATED = "invalidated"
    PRUNED = "pruned"


class Visibility(StrEnum):
    """The three partitions by which an index separates entries; the state of an entry decides."""

    OPEN = "open"
    HELD = "held"
    HISTORY = "history"


# Reads still find a stale entry, at half weight; so a use can make it active again.
VISIBILITY = {
    State.ACTIVE: Visibility.OPEN,
    State.STALE: Visibility.OPEN,
    State.HELD: Visibility.HELD,
    State.FORGOTTEN: Visibility.HISTORY,
    State.SUPERSEDED: Visibility.HISTORY,
    State.ARCHIVED: Visibility.HISTORY,
    State.INVALIDATED: Visibility.HISTORY,
    State.PRUNED: Visibility.HISTORY,
}


class Gate(StrEnum):
    ALLOW = "allow"
    HOLD = "hold"
    DISCARD = "discard"


class Trust(IntEnum):
    """Trust in a text, ordered: the trust of a derived text is the `min` of its sources."""

    UNTRUSTED = 0  # text by unknown authors: web pages, mail, tool output
    IMPORTED = 1  # imported from a file by the owner
    AGENT = 2  # written by an agent that holds a grant
    AUTHOR = 3  # said or typed by the person whose memory it is


class Authority(StrEnum):
    """The use that a recalled memory permits. Memory is evidence, never permission."""

    NONE = "none"
    INFORM = "inform"
    ACT = "act"


class Origin(Struct, frozen=True):
    """The writer and the surface of a write. The surface itself records it, and nothing changes it later."""

    principal: str
    surface: str
    transport: str
    trust: Trust

    def capped(self, *sources: Trust) -> Origin:
        """The same writer, with no more trust than the least trusted source of the text."""
        return Origin(self.principal, self.surface, self.transport, min((self.trust, *sources)))


SHARED = "shared"
