"""An entry as upkeep sees it."""

from __future__ import annotations

from msgspec import Struct

from lukasa.model.entry import Entry


class Weighed(Struct, frozen=True):
    """An entry, its relevance now, and how often it was read."""

    entry: Entry
    relevance: float
    reads: int = 0

    @property
    def id(self) -> str:
        return self.entry.id


def support(w: Weighed) -> tuple[object, ...]:
    """What speaks for a statement among those that say the same: the greatest is kept."""
    e = w.entry
    said = len({quote.transcript for quote in e.evidence}) + e.merged_count
    return (e.trust, said, e.importance, w.reads, e.confirmed_at, e.id)


def recency(w: Weighed) -> tuple[object, ...]:
    """Where the latest wins, as with procedures: but never over what is more trusted."""
    e = w.entry
    return (e.trust, e.confirmed_at, e.created_at, e.id)
