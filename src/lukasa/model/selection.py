"""The entries that a question may see, and its structured conditions."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from lukasa.model.entry import Entry, Scope
from lukasa.model.values import SHARED, Curator, Kind, Lifetime, State, Trust, Visibility


class Filters(Struct, frozen=True):
    """Structured conditions, all of which must hold; empty ones do not filter."""

    kinds: frozenset[Kind] = frozenset()
    categories: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    curators: frozenset[Curator] = frozenset()
    states: frozenset[State] = frozenset()
    lifetimes: frozenset[Lifetime] = frozenset()
    conversations: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None
    min_importance: float | None = None
    min_trust: Trust | None = None
    filed: bool | None = None  # True: only files; False: only other entries

    def __bool__(self) -> bool:
        return self is not NO_FILTERS and self != NO_FILTERS

    @property
    def only_trust(self) -> bool:
        """Whether the least trust is the one condition."""
        return self.min_trust is not None and self == Filters(min_trust=self.min_trust)

    def admits(self, entry: Entry) -> bool:
        """Whether an entry passes; every store must filter the same way. Tags: all must match; times: of creation."""
        return (
            (not self.kinds or entry.kind in self.kinds)
            and (not self.categories or (entry.category is not None and entry.category.name in self.categories))
            and self.tags <= set(entry.tags)
            and (not self.sources or entry.source in self.sources)
            and (not self.curators or entry.curator in self.curators)
            and (not self.states or entry.state in self.states)
            and (not self.lifetimes or entry.lifetime in self.lifetimes)
            and (not self.conversations or entry.conversation in self.conversations)
            and (self.since is None or entry.created_at >= self.since)
            and (self.until is None or entry.created_at < self.until)
            and (self.min_importance is None or entry.importance >= self.min_importance)
            and (self.min_trust is None or entry.trust >= self.min_trust)
            and (self.filed is None or self.filed is (entry.path is not None))
        )


NO_FILTERS = Filters()


class Selection(Struct, frozen=True):
    """The rows that a question may see: whole scopes, by visibility, of these owners. Nothing else can match.

    `owners` None means every owner: only for the person whose memory it is, never for an agent.
    """

    scopes: tuple[Scope, ...]
    visibilities: frozenset[Visibility] = frozenset({Visibility.OPEN})
    owners: tuple[str, ...] | None = (SHARED,)
    filters: Filters = NO_FILTERS
