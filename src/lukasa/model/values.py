"""The vocabulary of memory: small closed sets, and who said what with which authority."""

from __future__ import annotations

from enum import IntEnum, StrEnum

from msgspec import Struct


class Kind(StrEnum):
    """What sort of memory an entry is; most behaviour follows from it."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


class Lifetime(StrEnum):
    LONG_TERM = "long_term"
    SHORT_TERM = "short_term"
    CONVERSATION = "conversation"


class Curator(StrEnum):
    AGENT = "agent"
    AUTHOR = "author"
    IMPORT = "import"


class State(StrEnum):
    """Where an entry is in its life. Only `active` is found by default; `held` on request; the rest in history."""

    ACTIVE = "active"
    HELD = "held"
    STALE = "stale"
    FORGOTTEN = "forgotten"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"
    INVALIDATED = "invalidated"
    PRUNED = "pruned"


class Visibility(StrEnum):
    """How far a state lets an entry be seen: the three rooms an index keeps apart."""

    OPEN = "open"
    HELD = "held"
    HISTORY = "history"


# A stale entry is still found, at half weight; that is what makes staleness reversible by use.
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
    """Ordered, so that the trust of anything derived is simply `min` of its sources."""

    UNTRUSTED = 0  # text of unknown authorship: web pages, mail, tool output
    IMPORTED = 1  # brought in from a file by the owner
    AGENT = 2  # decided by an agent that holds a grant
    AUTHOR = 3  # said or typed by the person the memory belongs to


class Authority(StrEnum):
    """What a recalled memory may be used for. Memory is evidence, never permission."""

    NONE = "none"
    INFORM = "inform"
    ACT = "act"


class Origin(Struct, frozen=True):
    """Who wrote, through which surface. Stamped by the surface itself and never changed afterwards."""

    principal: str
    surface: str
    transport: str
    trust: Trust

    def capped(self, *sources: Trust) -> Origin:
        """The same writer, trusted no more than the least trusted of what the text derives from."""
        return Origin(self.principal, self.surface, self.transport, min((self.trust, *sources)))


SHARED = "shared"
