"""Removing for good: what a store must answer before a scrub, and the operation that does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol

from lukasa.model.events import SCRUBBED, EventDraft, Redacted
from lukasa.model.frozen import dataclass
from lukasa.model.scrub import Extent, Holdings


@dataclass(frozen=True, slots=True)
class Scrub:
    """Remove everything in an extent: rows, versions, vectors, index, links; and empty the events about it.

    `expect` is the manifest's digest: if what is there is anything else, a Conflict. `about` goes into the event,
    which the store completes with the events it has emptied.
    """

    extent: Extent
    expect: str
    about: Mapping[str, Any] = field(default_factory=dict)
    redacted: Redacted = Redacted()

    def draft(self) -> EventDraft:
        scope = self.extent.scope
        subject = scope.tier if scope is not None else self.extent.conversation or ""
        detail = {"mode": str(self.extent.mode), "scope": self.extent.plain(), "digest": self.expect}
        return EventDraft(SCRUBBED, subject, {**self.about, **detail, "redacted": self.redacted.plain()})


class ScrubStore(Protocol):
    def holdings(self, extent: Extent) -> Holdings:
        """Everything that a scrub of this extent would take now."""
        ...

    def unswept(self) -> list[str]:
        """Conversations that were purged, and of which a chat may still keep something outside this store."""
        ...

    def swept(self, conversation: str) -> None:
        """Nothing outside is left of it."""
        ...

    def sweep(self) -> bool:
        """Take the words of what was scrubbed out of the files themselves; False if others were in the way.

        For after a scrub's commit; whoever opens the store next does it if that was cut short.
        """
        ...
