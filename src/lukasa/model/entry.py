"""Entries: what is remembered. Frozen; a change is a new value with a higher version."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model.timestamps import moment
from lukasa.model.transcript import Quote
from lukasa.model.values import SHARED, Authority, Curator, Gate, Kind, Lifetime, Origin, State, Trust

DISPOSITION, EXEMPT = "disposition", "exempt"  # in an entry's metadata


class Scope(NamedTuple):
    """Where an entry lives: a tier and the values of that tier's anchor keys, in the tier's order.

    Scopes are compared whole. There is no prefix, no pattern and no inheritance between them. A tuple, since every
    read looks something up by one.
    """

    tier: str
    anchor: tuple[tuple[str, str | None], ...]

    def value(self, key: str) -> str | None:
        return dict(self.anchor).get(key)


class SourceLink(Struct, frozen=True):
    """A reference to corpus content. It pins what was read; the source's axes are looked up, never copied."""

    source: str
    version: int
    locator: str = ""


class Category(Struct, frozen=True):
    name: str
    confidence: float
    taxonomy: str


class GateVerdict(Struct, frozen=True):
    verdict: Gate
    confidence: float
    reason: str


class Transition(Struct, frozen=True):
    """The last change of state: when, why, by whom."""

    at: datetime
    cause: str
    actor: str


class Entry(Struct, frozen=True):
    id: str
    scope: Scope
    content: str
    kind: Kind
    lifetime: Lifetime
    curator: Curator
    source: str
    importance: float
    origin: Origin
    trust: Trust
    created_at: datetime
    updated_at: datetime
    confirmed_at: datetime  # last time the same thing was stated again; decay counts from here
    owner: str = SHARED
    tags: tuple[str, ...] = ()
    conversation: str | None = None
    category: Category | None = None
    gate: GateVerdict | None = None
    merged_count: int = 1
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    state: State = State.ACTIVE
    transition: Transition | None = None
    superseded_by: str | None = None
    derived_from: tuple[str, ...] = ()
    links: tuple[SourceLink, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    evidence: tuple[Quote, ...] = ()  # where it was said, for what was observed in a transcript
    path: str | None = None  # a file: kept verbatim, and there once for each path rather than for each text
    version: int = 1

    def moved(self, state: State, *, at: datetime, cause: str, actor: str, **changes: Any) -> Entry:
        """The entry in another state, stamped. The version is the store's to raise."""
        return replace(self, state=state, transition=Transition(at, cause, actor), updated_at=at, **changes)

    def holds_at(self, at: datetime) -> bool:
        """Inside its validity, which for an entry without one has no bounds."""
        begun = self.valid_at is None or self.valid_at <= at
        return begun and (self.invalid_at is None or at < self.invalid_at)

    def ended_by(self, at: datetime) -> bool:
        return self.invalid_at is not None and self.invalid_at <= at

    @property
    def exempt(self) -> bool:
        """Whether somebody decided that it shall not fade."""
        return self.metadata.get(DISPOSITION) == EXEMPT

    @property
    def authority(self) -> Authority:
        """What a reader may do with this: derived from trust and state alone, so that nothing can claim more."""
        if self.state is State.HELD or self.trust is Trust.UNTRUSTED:
            return Authority.NONE
        return Authority.ACT if self.trust is Trust.AUTHOR else Authority.INFORM


class Access(Struct, frozen=True):
    """How often an entry was retrieved, and when last, in microseconds since 1970: a read compares hundreds of them.

    Kept beside entries: reading is not a change of memory.
    """

    count: int
    micros: int

    @property
    def at(self) -> datetime:
        return moment(self.micros)


class Version(Struct, frozen=True):
    """One past or present form of an entry."""

    entry: Entry
    action: str
    cause: str
    actor: str
    at: datetime


class NamedEntry(Struct, frozen=True):
    """A standing page of the author's, always loaded whole: VOICE, SOUL and whatever they add."""

    name: str
    tier: str
    body: str
    edited_at: datetime
    editor: str
    version: int = 1


class Document(Struct, frozen=True):
    """Canonical content that memory may point at but not copy, with its standing in the world."""

    id: str
    title: str
    body: str
    origin: str
    lifecycle: str
    weight: float
    standing: str
    version: int
    updated_at: datetime
    collection: str = "documents"
    removed: bool = False
