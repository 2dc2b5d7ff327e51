"""The port of a store: one way to write, and the questions that reading asks.

A store is one database: an account's or a workspace's. `apply` takes a list of operations and commits them, their
index changes and one sealed event for each in a single transaction, or raises and leaves nothing. There is no other
way to write, but for `touch` (access counts), `touch_items` (times to live), `report` (telemetry), `disclose` (the
disclosure ledger), claims of jobs,
`forget_purged`, `rebuild` (derived state) and `purge_files`, none of which changes memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime
from typing import Any, Protocol

from msgspec import Struct, field

from lukasa.index.matches import KeywordMatches, Neighbour, NeighbourQuery, NewText, VectorMatch
from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.answer import Answer
from lukasa.model.candidate import Candidate
from lukasa.model.citation import Citation, CitationCheck, CitationVerdict
from lukasa.model.conversation import Channel, Conversation, Note, WorkspaceInfo
from lukasa.model.corpus import (
    NO_PASSAGE_FILTERS,
    DocumentSource,
    FoundPassage,
    Passage,
    PassageFilters,
    Watch,
)
from lukasa.model.disclosure import Disclosure, DisclosureQuery
from lukasa.model.entry import (
    Access,
    CanonicalLink,
    ClosedScope,
    Confirmation,
    Derivation,
    Document,
    DocumentHead,
    Entry,
    NamedEntry,
    Rivalry,
    Scope,
    Version,
)
from lukasa.model.erasure import Words
from lukasa.model.events import Event
from lukasa.model.grant import Grant
from lukasa.model.item import Item, ItemAddress, ItemFilter, whole_text
from lukasa.model.job import Job, JobState
from lukasa.model.scrub import Extent, Holdings
from lukasa.model.selection import NO_FILTERS, Filters, Selection
from lukasa.model.submission import Submission, SubmissionMemory, SubmissionState
from lukasa.model.sync import KeptRevision
from lukasa.model.telemetry import DayTally, Spending, Tally, TelemetryEvent, TelemetryQuery
from lukasa.model.text import path_key, said_key, terms
from lukasa.model.transcript import Progress, Transcript, Utterance
from lukasa.model.values import Kind, Relation, State
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage.operations import ItemIndex, Transaction


class UnembeddedItem(Struct, frozen=True):
    """An item that has no vector of a model, with the texts to embed."""

    place: ItemAddress
    value: dict[str, Any]
    index: ItemIndex

    @property
    def texts(self) -> list[tuple[str, str]]:
        whole = whole_text(self.value)
        return [(field, whole if text is None else text) for field, text in self.index.texts]


class ItemQuery(Struct, frozen=True):
    """All items of a namespace and of the namespaces below it that pass a filter; `alive_at` leaves expired ones out.

    With `near`, items with a vector of that model come first, by the best cosine of any of their fields.
    """

    prefix: tuple[str, ...]
    filter: ItemFilter = field(default_factory=ItemFilter)
    alive_at: datetime | None = None
    near: tuple[EmbeddingModel, Vector] | None = None

    def admits(self, item: Item) -> bool:
        return (self.alive_at is None or not item.expired(self.alive_at)) and self.filter.admits(item.value)


class FoundItem(Struct, frozen=True):
    """An item and its score, higher is better. None if the query has no vector, or the item has none of that model."""

    item: Item
    score: float | None = None


class ItemStore(Protocol):
    def items(self, places: Iterable[ItemAddress]) -> dict[ItemAddress, Item]: ...
    def find_items(self, query: ItemQuery, *, limit: int | None = None, offset: int = 0) -> list[FoundItem]:
        """The best first if the query has a vector, then the last changed first. Filters come before the limit."""
        ...

    def item_namespaces(
        self, prefix: tuple[str, ...] = (), *, alive_at: datetime | None = None
    ) -> list[tuple[str, ...]]:
        """The namespaces that hold an item, at or below a namespace, in order."""
        ...

    def expired_items(self, at: datetime, limit: int) -> list[ItemAddress]: ...
    def unembedded_items(self, model: EmbeddingModel, indexer: str, limit: int) -> list[UnembeddedItem]:
        """Items of an index without a vector of this model, oldest first."""
        ...

    def item_indexes(self, places: Iterable[ItemAddress]) -> dict[ItemAddress, ItemIndex]:
        """The texts by which these items are found."""
        ...

    def touch_items(self, places: Sequence[ItemAddress], at: datetime) -> None:
        """Start the time to live of these items again. That changes no value, and so leaves no event."""
        ...


class FoundUtterance(Struct, frozen=True):
    """A message found by its words, and the transcript it is in."""

    transcript: str
    utterance: Utterance


class PipelineStore(Protocol):
    # Jobs
    def claim_job(
        self, worker: str, *, now: datetime, lease_until: datetime, kinds: Collection[str] | None = None
    ) -> Job | None:
        """Take the job that has waited longest: queued and due, or running with a lease that has run out.

        Its claim and its attempts rise by one. A job whose last attempt ended with its lease is dead instead,
        and has a telemetry event.
        """
        ...

    def renew_lease(self, job: str, claim: int, lease_until: datetime) -> bool:
        """Whether the claim still holds; then its lease lasts until that time."""
        ...

    def jobs(
        self, *, states: Collection[JobState] | None = None, kind: str | None = None, limit: int = 100
    ) -> list[Job]:
        """Jobs, the last changed first."""
        ...

    def job(self, id_or_key: str) -> Job | None: ...
    def steps(self, job: str) -> dict[str, Any]:
        """The result of each journaled step, in the order of the journal."""
        ...

    def queue_depth(self) -> dict[JobState, int]: ...
    def next_run(self, kinds: Collection[str] | None = None) -> datetime | None:
        """When the next job of these kinds is due, or the next lease of one runs out."""
        ...

    # Transcripts
    def transcripts(
        self, *, progress: Progress | None = None, limit: int = 100, after: str | None = None
    ) -> list[Transcript]:
        """Transcripts, the last taken in first; `after` is the last id of the page before."""
        ...

    def transcript(self, id_or_key: str) -> Transcript | None: ...
    def utterances(self, transcript: str, *, start: int = 0, limit: int | None = None) -> list[Utterance]: ...
    def utterance(self, transcript: str, message: str) -> Utterance | None: ...
    def find_utterances(self, terms: Sequence[str], limit: int) -> list[FoundUtterance]:
        """Messages with any of these terms, the best match first."""
        ...

    # Amendments
    def amendments(
        self,
        ids: Iterable[str] | None = None,
        *,
        states: Collection[AmendmentState] | None = None,
        limit: int = 1000,
    ) -> list[Amendment]:
        """Amendments, the oldest first."""
        ...

    # Submissions
    def submissions(
        self,
        ids: Iterable[str] | None = None,
        *,
        states: Collection[SubmissionState] | None = None,
        document: str | None = None,
        limit: int = 1000,
    ) -> list[Submission]:
        """Changes submitted to documents, the oldest first."""
        ...

    def submissions_on(self, entries: Collection[str] | None = None) -> list[SubmissionMemory]:
        """The submissions that rest on these entries, or on any, each with the entry; the oldest first."""
        ...

    # Telemetry
    def report(self, point: TelemetryEvent) -> None:
        """Take a telemetry event of a call that changes nothing. It touches no file by itself.

        A store may keep the event in a write buffer until it writes something else, is asked for telemetry, is closed,
        or has many events. Of level debug it keeps only the newest, `MOST_DEBUG` or somewhat more.
        """
        ...

    def points(self, query: TelemetryQuery, *, limit: int = 100) -> list[TelemetryEvent]:
        """Telemetry events, the newest first."""
        ...

    def tally(self, query: TelemetryQuery) -> list[Tally]: ...
    def tally_days(self, query: TelemetryQuery) -> list[DayTally]:
        """Days that have telemetry events, the oldest first."""
        ...

    def spent(self, since_day: str) -> list[Spending]: ...

    # The disclosure ledger
    def disclose(self, given: Disclosure) -> None:
        """Note a text that went to an agent. A store may keep it in a write buffer for a moment; see `write_buffer`."""
        ...

    def disclosures(self, query: DisclosureQuery, *, limit: int | None = None) -> list[Disclosure]:
        """Disclosures, the newest first."""
        ...


class AccessStore(Protocol):
    def grants(self) -> list[Grant]:
        """All grants, also expired and revoked ones; the oldest first."""
        ...

    def grant(self, id: str) -> Grant | None: ...
    def answer(self, key: str) -> Answer | None: ...


class ScrubStore(Protocol):
    def holdings(self, extent: Extent) -> Holdings:
        """Everything that a scrub of this extent would take now."""
        ...

    def purged_conversations(self) -> list[str]:
        """Conversations that were purged here, and of which a chat may still keep something outside this store."""
        ...

    def forget_purged(self, conversation: str) -> None:
        """Note that nothing outside is left of a purged conversation."""
        ...

    def traces(self, words: Words) -> dict[str, int]:
        """By file or table of the engine, how often it holds some words, whatever the rows say: after an erasure."""
        ...

    def purge_files(self, *, large: bool = False) -> bool:
        """Make what was scrubbed unreadable in the engine's own files. True when that is done.

        Called after a scrub's commit. False if that could not be done now; then the store notes it, and tries again
        when it is opened next. SQLite rewrites its files (VACUUM) and empties its log. PostgreSQL rewrites the tables
        (VACUUM FULL) for all stores of a database, which wait meanwhile: those of a large one only if `large` says so.
        """
        ...


class UnembeddedPassage(Struct, frozen=True):
    """A passage without a vector of a model, with the text to embed."""

    document: str
    version: int
    number: int
    text: str


class CorpusStore(Protocol):
    """Documents with their passages, and what is followed to keep them up to date.

    A document that is removed has no passage, and no source.
    """

    def documents(self, ids: Iterable[str]) -> dict[str, Document]:
        """Documents by id, removed ones as well; one whose text is not the one that was written is marked."""
        ...

    def document_heads(self, ids: Iterable[str]) -> dict[str, DocumentHead]:
        """The same without their texts."""
        ...

    def list_documents(self, *, collection: str | None = None, after: str = "", limit: int = 100) -> list[DocumentHead]:
        """A page of the documents that are not removed, ordered by id, behind the id `after`."""
        ...

    def document_history(self, id: str) -> list[DocumentHead]:
        """Every version of a document, oldest first, without its text."""
        ...

    def document_version(self, id: str, version: int) -> Document | None:
        """One version of a document, marked if its text is not the one that was written."""
        ...

    def collections(self) -> dict[str, int]:
        """How many documents that are not removed each collection has."""
        ...

    def linked_documents(self) -> list[str]:
        """The documents that entries link to."""
        ...

    def unsplit_documents(self, limit: int) -> list[str]:
        """Documents of which there are no passages yet."""
        ...

    def document_sources(self, documents: Iterable[str]) -> dict[str, DocumentSource]: ...
    def sources_at(self, location: str) -> list[DocumentSource]:
        """What was read at this path or URL."""
        ...

    def sources_below(self, folder: str) -> list[DocumentSource]:
        """What was read below a folder, ordered by path."""
        ...

    def watches(self) -> list[Watch]:
        """All watches, the oldest first."""
        ...

    def passages(self, document: str, *, start: int = 0, limit: int | None = None) -> list[Passage]:
        """The passages of a document in their order, from a number on."""
        ...

    def passage_count(self, document: str) -> int: ...
    def find_passages(
        self, terms: Sequence[str], limit: int, filters: PassageFilters = NO_PASSAGE_FILTERS
    ) -> list[FoundPassage]:
        """Passages with any of these terms, best first by BM25. Filters come before the limit."""
        ...

    def nearest_passages(
        self, model: EmbeddingModel, vector: Vector, limit: int, filters: PassageFilters = NO_PASSAGE_FILTERS
    ) -> list[FoundPassage]:
        """Passages with a vector of this model, best cosine first. Filters come before the limit."""
        ...

    def unembedded_passages(self, model: EmbeddingModel, limit: int) -> list[UnembeddedPassage]:
        """Passages without a vector of this model, oldest first."""
        ...


def index_terms(entry: Entry) -> list[str]:
    """The terms that the keyword index holds for an entry: of its text, then of its tags and its path."""
    return terms(entry.content) + [t for tag in entry.tags for t in terms(tag)] + terms(entry.path or "")


def twin_key(entry: Entry) -> str:
    """The key that a scope may hold only once for each owner: of the text and its speaker, or of a file's path."""
    return said_key(entry.content, entry.speaker) if entry.path is None else path_key(entry.path)


class Unembedded(Struct, frozen=True):
    id: str
    version: int
    content: str


class Finding(Struct, frozen=True):
    """Something wrong with a store. `derived` findings can be repaired by `rebuild`."""

    what: str
    subject: str
    detail: str
    derived: bool


class Census(Struct, frozen=True):
    """Counts of one scope by state."""

    scope: Scope
    states: Mapping[State, int]


class Arrivals(Struct, frozen=True):
    """How many entries were first written on one day (UTC) in one tier, whatever became of them."""

    day: date
    tier: str
    count: int


class Share(Struct, frozen=True):
    """Entries that are alike in all of this: how many, and how many of them were written since the time asked for.

    `merged` counts the repetitions that were merged into them.
    """

    tier: str
    state: State
    kind: Kind
    category: str
    source: str
    count: int
    added: int
    merged: int = 0


class Store(ItemStore, CorpusStore, PipelineStore, AccessStore, ScrubStore, Protocol):
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

    def within(self, keys: Mapping[str, str]) -> Store:
        """Return this store for a handle that is bound to these scope keys; with none of them, for no such handle.

        PostgreSQL then shows no row of a scope with another value of one of these keys, whatever is asked. Other
        engines give the store itself: the service's own rule (`service.sight`) keeps tenants apart everywhere.
        """
        ...

    # Entries
    def snapshot(self) -> AbstractContextManager[Store]:
        """Give the store as it is at this moment, to read from; nothing is written inside.

        Inside another snapshot of the same thread, it is that one. SQLite gives the store itself, whose reads in this
        thread are in one read transaction; PostgreSQL gives one over a connection in REPEATABLE READ.
        """
        ...

    def entries(self, ids: Iterable[str], *, damaged: bool = False) -> dict[str, Entry]:
        """Entries by id, in the order asked. Those whose text is not the one that was written are left out, or with
        `damaged` marked."""
        ...

    def candidates(self, ids: Iterable[str], filters: Filters = NO_FILTERS) -> dict[str, Candidate]:
        """The candidates among these ids: entries that exist and that the filters admit, without their text."""
        ...

    def texts(self, ids: Iterable[str]) -> dict[str, str]: ...
    def size(self, selection: Selection) -> int:
        """The number of entries in the selection's partitions, whatever its filters admit."""
        ...

    def find(
        self, selection: Selection, *, limit: int = 100, after: str | None = None, damaged: bool = False
    ) -> list[Entry]:
        """Entries of a selection, newest first; `after` is the last id of the page before; see `entries`."""
        ...

    def twin(self, scope: Scope, owner: str, key: str) -> Entry | None:
        """The active or held entry of that scope and owner with that `twin_key`, if any."""
        ...

    def replaced_by(self, id: str) -> list[Entry]:
        """Entries whose `superseded_by` is this id, in whatever state, oldest first; damaged ones are left out."""
        ...

    def versions(self, id: str) -> list[Version]: ...
    def access(self, ids: Iterable[str]) -> dict[str, Access]:
        """The access counts of these entries; an entry that was never read is absent."""
        ...

    def rivals(self, ids: Collection[str]) -> list[Rivalry]:
        """All pairs with one of these entries."""
        ...

    def open_rivals(self, relation: Relation, *, limit: int) -> list[Rivalry]:
        """Pairs of a relation that nobody has judged; the newest first."""
        ...

    def confirmations(self, ids: Collection[str]) -> list[Confirmation]:
        """The statements that repeat these entries; the oldest first."""
        ...

    def citations(self, ids: Collection[str]) -> list[Citation]:
        """What these entries cite; the oldest first."""
        ...

    def newest_citations(self, *, limit: int, after: str | None = None) -> list[Citation]:
        """The citations of all entries, the newest first; `after` is the last id of the page before."""
        ...

    def citation_checks(self, ids: Collection[str]) -> list[CitationCheck]:
        """The stored outcomes of the last checks of what these entries cite."""
        ...

    def checks_that_say(self, verdicts: Collection[CitationVerdict], *, limit: int) -> list[CitationCheck]:
        """The stored outcomes with one of these verdicts; the newest first."""
        ...

    def closed(self, scopes: Collection[Scope] | None = None) -> list[ClosedScope]:
        """Which of these scopes have ended, or all that have."""
        ...

    def actions(self) -> dict[str, str]:
        """The description of each action that rests on entries."""
        ...

    def revisions(self, by: str, values: Collection[Any]) -> list[KeptRevision]:
        """The revisions of which a column has one of these values, as they came.

        Columns are digest, thing, spot, about, twin, kind, stage, told and erasure.
        """
        ...

    def sync_notes(self, names: Collection[str]) -> dict[str, dict[str, Any]]:
        """What this machine noted about sync under these names."""
        ...

    def links_to(self, documents: Collection[str]) -> list[CanonicalLink]:
        """The links of entries, in whatever state, to these documents; the oldest first."""
        ...

    def derived_from(self, sources: Collection[str]) -> list[Derivation]:
        """The entries that were concluded from these, which need not be here any more; the oldest first."""
        ...

    def withdrawn(self, *, limit: int) -> list[Derivation]:
        """Entries in force or held, with a source that is not here or no longer in force; the newest first.

        What became of the source is for the caller to find out: it may be in another store, or live on in the entry.
        """
        ...

    def entry_ids(self, part: str, *, limit: int) -> list[str]:
        """The ids of entries that begin or end with this text."""
        ...

    def gone(self, ids: Sequence[str]) -> set[str]:
        """The ids among these whose entries were removed for good."""
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
    ) -> list[VectorMatch]:
        """The best cosines first, among vectors of exactly this model. Cosines are exact. In a large partition the
        search is approximate and may miss a match, unless `exact` asks to compare every vector."""
        ...

    def neighbours(self, query: NeighbourQuery, texts: Sequence[NewText]) -> list[list[Neighbour]]:
        """For each new text, the entries that it may repeat or update, all of one snapshot.

        First the entry with the same text, active or held. Then, if both have a vector, the entries that hold all of
        its `statements.content_words` and those that reach the floor; the nearest first. Then the entries with its
        `statements.subject` and those with its `statements.role`, the newest first. All but the first are open to a
        reader.
        """
        ...

    def adjacent(self, ids: Iterable[str], reach: int) -> dict[str, dict[str, int]]:
        """The entries written just before and after each of these, in its partition and its conversation: up to
        `reach` each way, by id, with how many steps after it each was written (negative: before it).

        A store looks at a few rows around each entry and no further, so entries written elsewhere in between may hide
        a neighbour. Ids without any are absent.
        """
        ...

    def vectors(self, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
        """Vectors as they were given, to the bit."""
        ...

    def unit_vectors(self, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
        """The same vectors scaled to length one, to compare entries with each other."""
        ...

    def unembedded(self, model: EmbeddingModel, limit: int) -> list[Unembedded]:
        """Entries without a vector of this model, oldest first; history is left out."""
        ...

    def vector_index_due(self) -> bool:
        """Whether a partition has grown so large that it should get an index of its vectors, or lost its size."""
        ...

    def index_vectors(self) -> int:
        """Make and drop such indexes, and return how many. It may take minutes, and nobody waits for it."""
        ...

    # Pages, conversations, workspaces
    def named(self, name: str | None = None) -> list[NamedEntry]: ...
    def named_versions(self, name: str) -> list[NamedEntry]: ...
    def channels(self) -> list[Channel]: ...
    def conversations(self, *, archived: bool = False, channel: str | None = None) -> list[Conversation]: ...
    def conversation(self, id_or_ref: str) -> Conversation | None: ...
    def notes(self, conversation: str) -> list[Note]: ...
    def workspaces(self) -> list[WorkspaceInfo]: ...

    # Log and health
    def events(
        self, *, after: int = 0, limit: int = 1000, subject: str | None = None, action: str | None = None
    ) -> list[Event]: ...
    def subjects(self, beginning: str, limit: int) -> list[str]:
        """The subjects of events that begin with a text, in order."""
        ...

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
        """Verify everything that can be: file, hashes, indexes against rows, the chain. Return what is wrong."""
        ...

    def rebuild(self) -> None:
        """Recreate all derived state (keyword index, partitions) from the rows."""
        ...

    def close(self) -> None: ...
