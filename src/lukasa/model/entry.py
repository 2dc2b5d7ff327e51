"""Entries: the stored memories. They are frozen; a change is a new value with a higher version."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model.text import fold
from lukasa.model.timestamps import moment
from lukasa.model.transcript import Quote
from lukasa.model.values import (
    SHARED,
    Authority,
    Curator,
    Gate,
    Kind,
    Lifetime,
    Origin,
    Outcome,
    Relation,
    State,
    Trust,
)

DISPOSITION, EXEMPT = "disposition", "exempt"  # keys of an entry's metadata
PASSING = "passing"  # a key of an entry's metadata: true says that nothing carries it beyond the end of its scope
SENSITIVE = "sensitive"  # a key of an entry's metadata: true keeps it out of contexts, agents' reads and exports


OBSERVER = "observer"  # the source of entries that were observed in a session


@lru_cache(maxsize=1024)
def speaker_name(source: str, principal: str) -> str:
    """The person that a source names; empty for the user, and for agents, who write down what the user says."""
    name = fold(source)
    return "" if name in ("user", OBSERVER, fold(principal)) else name


class Scope(NamedTuple):
    """The scope of an entry: a tier and the values of that tier's anchor keys, in the tier's order.

    Scopes are compared whole. There is no prefix, no pattern and no inheritance between them. A scope is a tuple
    because every read uses one as a key.
    """

    tier: str
    anchor: tuple[tuple[str, str | None], ...]

    def value(self, key: str) -> str | None:
        return dict(self.anchor).get(key)


class ClosedScope(Struct, frozen=True):
    """A scope that has ended: it takes no more entries. `event` is what ended it."""

    scope: Scope
    event: str
    closed_at: datetime


class SourceLink(Struct, frozen=True):
    """A reference to corpus content.

    It pins the version that was read, and records the last version against which somebody confirmed the entry since (0
    for none). The source's properties are looked up, not copied.
    """

    source: str
    version: int
    locator: str = ""
    checked: int = 0

    def vouched(self, version: int) -> bool:
        """Whether the entry was written from that version of the source, or confirmed against it."""
        return version in (self.version, self.checked)


class Category(Struct, frozen=True):
    name: str
    confidence: float
    taxonomy: str


TEMPLATE = "Replace these lines with your own."  # in the pages of the presets

# In place of a text that is not the one that was written. It is known by identity: nobody can write it.
DAMAGED = "[damaged: this is not the text that was written; `lukasa doctor` says more]"


class GateVerdict(Struct, frozen=True):
    verdict: Gate
    confidence: float
    reason: str


class Transition(Struct, frozen=True):
    """The last change of state: when, why and by whom."""

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
    confirmed_at: datetime  # when the same thing was last stated again; decay counts from here
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
    evidence: tuple[Quote, ...] = ()  # where it was said, if it was observed in a transcript
    path: str | None = None  # of a file: kept verbatim, one entry for each path rather than for each text
    meta: bool = False  # a fact that held through versions of its sources: meta-semantic memory
    version: int = 1

    def moved(self, state: State, *, at: datetime, cause: str, actor: str, **changes: Any) -> Entry:
        """The entry in another state, with the transition recorded. The store raises the version."""
        return replace(self, state=state, transition=Transition(at, cause, actor), updated_at=at, **changes)

    def holds_at(self, at: datetime) -> bool:
        """Whether a moment is within the entry's validity; without one, it always is."""
        begun = self.valid_at is None or self.valid_at <= at
        return begun and (self.invalid_at is None or at < self.invalid_at)

    def ended_by(self, at: datetime) -> bool:
        return self.invalid_at is not None and self.invalid_at <= at

    @property
    def speaker(self) -> str:
        """The person who says "I" in the text, if it is not the user."""
        return speaker_name(self.source, self.origin.principal)

    @property
    def exempt(self) -> bool:
        """Whether somebody decided that the entry must not fade."""
        return self.metadata.get(DISPOSITION) == EXEMPT

    @property
    def passing(self) -> bool:
        """Whether its writer wanted it only until its scope ends."""
        return self.metadata.get(PASSING) is True

    @property
    def sensitive(self) -> bool:
        """Whether the owner put a secret on purpose, so that only somebody who asks for it gets it."""
        return self.metadata.get(SENSITIVE) is True

    @property
    def unverified(self) -> bool:
        """Whether nobody vouches for the text: its author is unknown, and every list says so."""
        return self.trust is Trust.UNTRUSTED

    @property
    def damaged(self) -> bool:
        """Whether the stored text is not the one that was written; then nothing shows it."""
        return self.content is DAMAGED

    @property
    def authority(self) -> Authority:
        """How a reader may use the entry. Only trust and state decide, so that no text can claim more."""
        if self.state is State.HELD or self.trust is Trust.UNTRUSTED:
            return Authority.NONE
        return Authority.ACT if self.trust is Trust.AUTHOR else Authority.INFORM


class Rivalry(Struct, frozen=True):
    """Two entries that concern the same thing. `entry` was written after `other`; both stay active."""

    entry: str
    other: str
    relation: Relation
    reason: str
    at: datetime
    decided_by: str = ""  # empty if the rules found it and nobody has judged it

    def beside(self, id: str) -> str:
        """The other one of the two."""
        return self.other if id == self.entry else self.entry


class Confirmation(Struct, frozen=True):
    """A statement that repeats an entry, or a check of it: who, when, where, in which words, and with what outcome."""

    entry: str
    at: datetime
    principal: str
    speaker: str
    conversation: str
    said: str
    quotes: tuple[Quote, ...] = ()
    trust: Trust = Trust.UNTRUSTED
    outcome: Outcome = Outcome.CONFIRMED


class CanonicalLink(Struct, frozen=True):
    """A link of an entry as a row of its own: the document, and the version of it that is pinned."""

    entry: str
    document: str
    version: int
    locator: str
    checked: int


class Derivation(Struct, frozen=True):
    """An entry that was concluded from another one."""

    entry: str
    source: str


class Access(Struct, frozen=True):
    """How often an entry was retrieved, and when last, in microseconds since 1970: a read compares hundreds of them.

    Stored apart from the entry, because a read does not change memory.
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
    """A page that the author writes and every context loads whole: VOICE, SOUL and others that they add."""

    name: str
    tier: str
    body: str
    edited_at: datetime
    editor: str
    version: int = 1

    @property
    def damaged(self) -> bool:
        """Whether the stored text is not the one that was written; then nothing shows it."""
        return self.body is DAMAGED

    @property
    def template(self) -> bool:
        """Whether it is still the text that a preset gave it, which asks its author to write another."""
        return self.version == 1 and TEMPLATE in self.body


class DocumentHead(Struct, frozen=True):
    """A version of a document without its text, for lists."""

    id: str
    title: str
    origin: str
    lifecycle: str
    weight: float
    standing: str
    version: int
    updated_at: datetime
    collection: str = "documents"
    removed: bool = False


class Document(Struct, frozen=True):
    """Canonical content that memory may reference but not copy, with its origin, lifecycle, weight and standing."""

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

    @property
    def damaged(self) -> bool:
        """Whether the stored text is not the one that was written; then nothing shows it."""
        return self.body is DAMAGED
