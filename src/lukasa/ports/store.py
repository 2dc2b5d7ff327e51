"""The store port: one narrow waist for writing, and the questions that reading asks.

A store is one database: an account's or a workspace's. `apply` takes a list of operations and commits them, their
index changes and one sealed event for each in a single transaction, or raises and leaves nothing. There is no other
way to write, but for `touch` (read statistics), `touch_items` (their timers), claims of jobs, `rebuild` (derived
state) and `sweep` (the files), none of which changes memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import date, datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

from lukasa.model.card import Card, Use
from lukasa.model.conversation import Channel, Conversation, Note, Status, WorkspaceInfo
from lukasa.model.entry import Access, Document, Entry, NamedEntry, Scope, Version
from lukasa.model.events import Actor, Event, EventDraft, Spelled, canonical_json
from lukasa.model.frozen import dataclass
from lukasa.model.item import item_id, value_text
from lukasa.model.text import commitment, content_key, path_key, terms
from lukasa.model.values import SHARED, Curator, Kind, Lifetime, State, Trust, Visibility
from lukasa.ports.access import AccessOperation, AccessStore, SaveGrant, grant_detail, grant_text
from lukasa.ports.embedder import EmbeddingModel, Vector
from lukasa.ports.items import DropItem, ItemStore, SaveItem, SaveItemVectors
from lukasa.ports.pipeline import KeepUtterances, PipelineOperation, PipelineStore, SaveAmendment, SaveTranscript
from lukasa.ports.scrub import Scrub, ScrubStore


@dataclass(frozen=True, slots=True)
class Embedding:
    model: EmbeddingModel
    vector: Vector


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one step of a path decided, and why. Reasons name ids and numbers, never the content itself."""

    step: str
    outcome: str
    reason: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        return {"step": self.step, "outcome": self.outcome, "reason": self.reason, **self.data}

    def spelled(self) -> str | None:
        """The canonical JSON of that, if there is nothing in it that reading back might change."""
        if not self.data:
            return _plain_step(self.outcome, self.reason, self.step)
        flat = all(type(key) is str and type(value) in _FLAT for key, value in self.data.items())
        return canonical_json(self.plain()) if flat else None


_FLAT = (str, int, float, bool)


@lru_cache(maxsize=1024)
def _plain_step(outcome: str, reason: str, step: str) -> str:
    return canonical_json({"outcome": outcome, "reason": reason, "step": step})


@dataclass(frozen=True, slots=True)
class SaveEntry:
    """Insert (`expect` 0) or replace the version `expect`. A different current version is a Conflict."""

    entry: Entry
    expect: int
    action: str
    cause: str
    ledger: tuple[Verdict, ...] = ()
    embedding: Embedding | None = None


@dataclass(frozen=True, slots=True)
class DropEntry:
    """Remove a row for good: only what a transient scope leaves behind, and never what an action rests on."""

    id: str
    expect: int
    cause: str


@dataclass(frozen=True, slots=True)
class SaveEmbedding:
    """Attach a vector to the version of the text that it was computed from; ignored if the text has moved on."""

    id: str
    version: int
    embedding: Embedding


@dataclass(frozen=True, slots=True)
class SaveNamed:
    entry: NamedEntry
    expect: int


@dataclass(frozen=True, slots=True)
class SaveDocument:
    document: Document
    expect: int


@dataclass(frozen=True, slots=True)
class SaveChannel:
    channel: Channel


@dataclass(frozen=True, slots=True)
class SaveConversation:
    """`expect` is the status it must have now; None inserts it."""

    conversation: Conversation
    expect: Status | None


@dataclass(frozen=True, slots=True)
class SaveNote:
    """Write a note. With `onto`, only in place of what was read: that note, or nothing (None); else a Conflict."""

    note: Note
    onto: Note | Literal["anything"] | None = "anything"


@dataclass(frozen=True, slots=True)
class DropNotes:
    conversation: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class LinkAction:
    """Record that an action rests on these entries; from now on none of them can be dropped."""

    action: str
    description: str
    entries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SaveWorkspace:
    """Register a workspace (`expect` None) or mark it ready (`expect` its present readiness)."""

    info: WorkspaceInfo
    expect: bool | None


@dataclass(frozen=True, slots=True)
class Record:
    """An event without a row: a discarded write, a refused one, an operator's note."""

    draft: EventDraft


Operation = (
    SaveEntry
    | DropEntry
    | SaveEmbedding
    | SaveNamed
    | SaveDocument
    | SaveChannel
    | SaveConversation
    | SaveNote
    | DropNotes
    | LinkAction
    | SaveWorkspace
    | SaveItem
    | SaveItemVectors
    | DropItem
    | Record
    | AccessOperation
    | Scrub
    | PipelineOperation
)


@dataclass(frozen=True, slots=True)
class Transaction:
    actor: Actor
    at: datetime
    operations: tuple[Operation, ...]


def describe(operation: Operation, salt: bytes) -> EventDraft | None:
    """The event of an operation; None for vectors, jobs, telemetry and answers, which change no memory.

    Content never enters the log: a salted commitment does, so that the log can outlive an erasure.
    """
    match operation:
        case SaveEntry(entry, expect, action, cause, ledger):
            return EventDraft(action, entry.id, _entry_detail(entry, expect, cause, ledger, salt))
        case DropEntry(id, expect, cause):
            return EventDraft("entry.dropped", id, {"version": expect, "cause": cause})
        case SaveNamed(named, expect):
            detail = {"tier": named.tier, "version": expect + 1, "commitment": commitment(salt, named.body)}
            return EventDraft("named.edited" if expect else "named.created", named.name, detail)
        case SaveDocument(document, expect):
            action = "document.removed" if document.removed else "document.saved"
            detail = {"version": expect + 1, "commitment": commitment(salt, document.body)}
            return EventDraft(action, document.id, detail)
        case SaveChannel(channel):
            return EventDraft("channel.created", channel.id, {"name": channel.name})
        case SaveConversation(conversation, expect_status):
            action = f"conversation.{conversation.status}" if expect_status else "conversation.started"
            return EventDraft(action, conversation.id, {"channel": conversation.channel})
        case SaveNote(note):
            return EventDraft("note.written", note.conversation, {"key": note.key})
        case DropNotes(conversation_id, key):
            return EventDraft("note.cleared", conversation_id, {"key": key})
        case LinkAction(action, description, entries):
            return EventDraft("action.linked", action, {"description": description, "entries": list(entries)})
        case SaveWorkspace(info, expect_ready):
            action = "workspace.created" if expect_ready is None else "workspace.updated"
            return EventDraft(action, info.id, {"name": info.name, "preset": info.preset, "ready": info.ready})
        case SaveItem(item):
            detail = {"commitment": commitment(salt, value_text(item.value))}
            return EventDraft("item.saved", item_id(salt, item.place), detail)
        case DropItem(place, cause):
            return EventDraft("item.dropped", item_id(salt, place), {"cause": cause})
        case SaveTranscript(transcript, expect):
            detail = {"format": transcript.format, "kept": transcript.kept, "observed": transcript.observed}
            detail |= {"progress": str(transcript.progress), "how": transcript.how, "version": expect + 1}
            return EventDraft("transcript.updated" if expect else "transcript.kept", transcript.id, detail)
        case KeepUtterances(id, utterances):
            said = canonical_json([[u.id, u.role, u.text] for u in utterances])
            return EventDraft(
                "transcript.said", id, {"messages": len(utterances), "commitment": commitment(salt, said)}
            )
        case SaveAmendment(amendment, expect):
            detail = {"section": amendment.section, "decided_by": amendment.decided_by, "reason": amendment.reason}
            detail |= {"version": expect + 1, "commitment": commitment(salt, amendment.line or amendment.change)}
            return EventDraft(f"amendment.{amendment.state}", amendment.id, detail)
        case SaveGrant(grant, expect):
            action = "grant.created" if not expect else "grant.revoked" if grant.revoked_at else "grant.changed"
            detail = {**grant_detail(grant), "version": expect + 1, "commitment": commitment(salt, grant_text(grant))}
            return EventDraft(action, grant.id, detail)
        case Record(draft):
            return draft
        case Scrub():
            return operation.draft()
        case _:  # vectors, jobs, telemetry, answers
            return None


def _entry_detail(entry: Entry, expect: int, cause: str, ledger: tuple[Verdict, ...], salt: bytes) -> Mapping[str, Any]:
    """Spelled at once if all steps are: half of it is the same for most entries, and spelled already."""
    tier, version, by, trust = entry.scope.tier, expect + 1, entry.superseded_by, _TRUSTS[entry.trust]
    proof = commitment(salt, entry.content)
    steps = [step for verdict in ledger if (step := verdict.spelled()) is not None]
    if len(steps) == len(ledger):
        return Spelled(
            f'{{"cause":{canonical_json(cause)},"commitment":"{proof}","kind":"{entry.kind}",'
            f'"ledger":[{",".join(steps)}],"state":"{entry.state}",'
            f'"superseded_by":{"null" if by is None else canonical_json(by)},'
            f'"tier":{canonical_json(tier)},"trust":"{trust}","version":{version}}}'
        )
    return {
        "tier": tier,
        "version": version,
        "state": str(entry.state),
        "kind": str(entry.kind),
        "trust": trust,
        "cause": cause,
        "superseded_by": by,
        "commitment": proof,
        "ledger": [verdict.plain() for verdict in ledger],
    }


_TRUSTS = {trust: trust.name.lower() for trust in Trust}


def index_terms(entry: Entry) -> list[str]:
    """What the keyword index holds for an entry: its words, then its tags' and its path's."""
    return terms(entry.content) + [t for tag in entry.tags for t in terms(tag)] + terms(entry.path or "")


def twin_key(entry: Entry) -> str:
    """What a scope may hold only once for each owner: a text, or for a file its path."""
    return content_key(entry.content) if entry.path is None else path_key(entry.path)


@dataclass(frozen=True, slots=True)
class Filters:
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
    filed: bool | None = None  # only files, or only what is none

    def __bool__(self) -> bool:
        return self is not NO_FILTERS and self != NO_FILTERS

    def admits(self, entry: Entry) -> bool:
        """The meaning of a filter, as every store must implement it. Tags: all of them; times: of creation."""
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
            and (self.filed is None or self.filed is (entry.path is not None))
        )


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows that a question may see: whole scopes, by visibility, of these owners. Nothing else can match.

    `owners` None means every owner: for the person the memory belongs to, never for an agent.
    """

    scopes: tuple[Scope, ...]
    visibilities: frozenset[Visibility] = frozenset({Visibility.OPEN})
    owners: tuple[str, ...] | None = (SHARED,)
    filters: Filters = NO_FILTERS


class TermRow(NamedTuple):
    """How often each asked term is in one entry, in the order asked, and how long the entry is in terms."""

    id: str
    counts: tuple[int, ...]
    length: int


@dataclass(frozen=True, slots=True)
class KeywordMatches:
    """Raw counts for scoring: collection size, total terms, document frequency by term; and of the best entries their
    cards, their lengths, and for each term how often it is in each of them."""

    size: int
    total_terms: int
    frequencies: tuple[int, ...]
    cards: Sequence[Card] = ()
    lengths: Sequence[int] = ()
    counts: Sequence[Sequence[int]] = ()

    @property
    def ids(self) -> list[str]:
        return [card.id for card in self.cards]

    @property
    def rows(self) -> tuple[TermRow, ...]:
        """The same, entry by entry."""
        return tuple(map(TermRow, self.ids, zip(*self.counts, strict=True), self.lengths))


class Neighbour(NamedTuple):
    card: Card
    cosine: float

    @property
    def id(self) -> str:
        return self.card.id


class Near(NamedTuple):
    """An entry of the same scope and owner that is close to a new text; cosine None if only words matched."""

    entry: Entry
    cosine: float | None


class Newcomer(NamedTuple):
    """A text that is about to be stored, and its vector, if it has one."""

    content: str
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class Vicinity:
    """Where newcomers are going, and how near others count by vector alone, whatever their words; None if none do."""

    scope: Scope
    owner: str
    model: EmbeddingModel | None
    floor: float | None
    limit: int  # of those near by vector, and of those by each sort of words


@dataclass(frozen=True, slots=True)
class Unembedded:
    id: str
    version: int
    content: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with a store. `derived` findings can be repaired by `rebuild`."""

    what: str
    subject: str
    detail: str
    derived: bool


@dataclass(frozen=True, slots=True)
class Census:
    """Counts of one scope by state."""

    scope: Scope
    states: Mapping[State, int]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How many entries were first written on one day (UTC) in one tier, whatever became of them."""

    day: date
    tier: str
    count: int


@dataclass(frozen=True, slots=True)
class Share:
    """Entries that are alike in all of this: how many, and how many of them were written since the time asked for."""

    tier: str
    state: State
    kind: Kind
    category: str
    source: str
    count: int
    added: int


class Store(ItemStore, PipelineStore, AccessStore, ScrubStore, Protocol):
    """One database. All methods may be called from any thread; values returned are frozen."""

    # Writing
    def apply(self, transaction: Transaction) -> None:
        """Commit all operations, their index changes and their events; or raise and leave nothing.

        Conflict: an expected version, status or uniqueness does not hold. Refused: an action rests on a dropped
        entry. NotFound: an operation names something that is not here. StoreError: the database cannot.
        """
        ...

    def touch(self, ids: Sequence[str], at: datetime) -> Mapping[str, Access]:
        """Count one retrieval of each entry, atomically, and return the counts after it."""
        ...

    # Entries
    def snapshot(self) -> AbstractContextManager[object]:
        """While it is open, this thread's reads are all of one moment; there is no writing inside it."""
        ...

    def entries(self, ids: Iterable[str]) -> dict[str, Entry]: ...
    def cards(self, ids: Iterable[str], filters: Filters = NO_FILTERS) -> dict[str, Card]:
        """What ranking needs to know of those that are there and that the filters admit."""
        ...

    def texts(self, ids: Iterable[str]) -> dict[str, str]: ...
    def empty(self, selection: Selection) -> bool:
        """Whether its rooms hold nothing at this moment, whatever its filters admit."""
        ...

    def find(self, selection: Selection, *, limit: int = 100, after: str | None = None) -> list[Entry]:
        """Entries of a selection, newest first; `after` is the last id of the page before."""
        ...

    def twin(self, scope: Scope, owner: str, key: str) -> Entry | None:
        """The active or held entry of that scope and owner with that `twin_key`, if any."""
        ...

    def replaced_by(self, id: str) -> list[Entry]:
        """Entries whose `superseded_by` is this id, in whatever state, oldest first."""
        ...

    def versions(self, id: str) -> list[Version]: ...
    def access(self, ids: Iterable[str]) -> dict[str, Access]: ...
    def uses(self, ids: Iterable[str]) -> dict[str, Use]:
        """The same as `access`, for looking at hundreds."""
        ...

    def linked(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Actions resting on each of these entries; entries without any are absent."""
        ...

    def census(self) -> list[Census]: ...
    def arrivals(self) -> list[Arrivals]:
        """By day and tier, the oldest first."""
        ...

    def shares(self, since: datetime) -> list[Share]:
        """All entries counted by tier, state, kind, category (empty for none) and source, the most first."""
        ...

    # Finding
    def keyword(self, selection: Selection, terms: Sequence[str], limit: int) -> KeywordMatches: ...
    def nearest(
        self, selection: Selection, model: EmbeddingModel, vector: Vector, limit: int, *, exact: bool = False
    ) -> list[Neighbour]:
        """Best cosines first, among vectors of exactly this model. The cosines are exact; in a large room somebody near
        may be missed, unless every vector is looked at, as `exact` asks."""
        ...

    def near(self, vicinity: Vicinity, newcomers: Sequence[Newcomer]) -> list[list[Near]]:
        """For each text, what it may repeat or contradict, all as of one moment.

        First its twin, active or held. Then, where both have a vector, those that hold all of its
        `statements.telling` terms, and those that reach the floor; the nearest first. Then those of its
        `statements.subject` and those of its `statements.role`, the newest first. But for the twin, only what is open
        to a reader.
        """
        ...

    def beside(self, ids: Iterable[str], reach: int) -> dict[str, dict[str, int]]:
        """The entries written just before and after each of these, in its room and its conversation: up to `reach`
        each way, by id, with how many steps after it each was written (negative: before it).

        The order is that of writing. A store looks a few rows around each entry and no further, so that what was
        written in between elsewhere may hide a neighbour; ids without any are absent.
        """
        ...

    def vectors(self, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
        """As they were given, to the bit."""
        ...

    def directions(self, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
        """The same at length one, to compare entries with each other."""
        ...

    def unembedded(self, model: EmbeddingModel, limit: int) -> list[Unembedded]:
        """Entries without a vector of this model, oldest first; history is left out."""
        ...

    # Standing content, conversations, registry
    def named(self, name: str | None = None) -> list[NamedEntry]: ...
    def named_versions(self, name: str) -> list[NamedEntry]: ...
    def documents(self, ids: Iterable[str] | None = None) -> dict[str, Document]: ...
    def channels(self) -> list[Channel]: ...
    def conversations(self, *, archived: bool = False, channel: str | None = None) -> list[Conversation]: ...
    def conversation(self, id_or_ref: str) -> Conversation | None: ...
    def notes(self, conversation: str) -> list[Note]: ...
    def workspaces(self) -> list[WorkspaceInfo]: ...

    # Log and health
    def events(
        self, *, after: int = 0, limit: int = 1000, subject: str | None = None, action: str | None = None
    ) -> list[Event]: ...
    def event_counts(self, since: datetime) -> dict[str, int]:
        """How many events there were of each action since then."""
        ...

    def event_stream(self) -> Iterator[Event]:
        """Every event in order, without holding a lock or the whole log in memory."""
        ...

    def head(self) -> tuple[int, str]:
        """Sequence number and digest of the last event."""
        ...

    def secret(self) -> bytes:
        """A random key of this database, for commitments to text that is not kept."""
        ...

    def check(self) -> list[Finding]:
        """Everything that can be verified: file, hashes, indexes against rows, the chain."""
        ...

    def rebuild(self) -> None:
        """Recreate all derived state (keyword index, partitions) from the rows."""
        ...

    def close(self) -> None: ...
