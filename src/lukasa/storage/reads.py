"""The questions of the port that plain tables answer, asked once for every backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Self, TypeVar

from lukasa import index
from lukasa.index import keyword, lookup
from lukasa.index.matches import KeywordMatches
from lukasa.index.rows import SearchRows
from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.answer import Answer
from lukasa.model.candidate import Candidate
from lukasa.model.citation import Citation, CitationCheck, CitationVerdict
from lukasa.model.conversation import Channel, Conversation, Note, Status, WorkspaceInfo
from lukasa.model.corpus import DocumentSource, Passage, Watch
from lukasa.model.disclosure import Disclosure, DisclosureQuery
from lukasa.model.entry import (
    CanonicalLink,
    ClosedScope,
    Confirmation,
    Derivation,
    Document,
    DocumentHead,
    NamedEntry,
    Rivalry,
    Scope,
)
from lukasa.model.errors import Damaged
from lukasa.model.events import Event
from lukasa.model.grant import Grant
from lukasa.model.item import Item, ItemAddress
from lukasa.model.job import Job, JobState
from lukasa.model.scrub import Extent, Holdings
from lukasa.model.selection import NO_FILTERS, Filters, Selection
from lukasa.model.submission import Submission, SubmissionMemory, SubmissionState
from lukasa.model.sync import KeptRevision
from lukasa.model.telemetry import Spending
from lukasa.model.transcript import Progress, Transcript, Utterance
from lukasa.model.values import Relation
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage import job_queue, removal, row_rules, tables
from lukasa.storage.backend import Rows, get
from lukasa.storage.codec import Query
from lukasa.storage.operations import ItemIndex

Value = TypeVar("Value")
_PAGE = 1000  # events that are read at a time
_BEHIND_SLASH = chr(ord("/") + 1)  # what sorts behind all that is below a folder


class PlainReads(ABC):
    """The part of a store that asks plain tables, and the few writes that are no operations."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Rows]:
        """Rows of one moment, for reading; inside another of the same thread, it is that moment."""

    @abstractmethod
    def _change(self, change: Callable[[Rows], Value], *, alone: bool = True) -> Value:
        """Run a change in one transaction, which is committed or undone; return what the change returns.

        Nobody else writes meanwhile, unless `alone` is false: then an engine may let others write other rows.
        """

    def within(self, keys: Mapping[str, str]) -> Self:
        return self

    # Pages, documents, conversations, workspaces

    def named(self, name: str | None = None) -> list[NamedEntry]:
        with self._reading() as rows:
            return rows.select(tables.ALL_NAMED) if name is None else rows.select(tables.NAMED.one, name)

    def named_versions(self, name: str) -> list[NamedEntry]:
        with self._reading() as rows:
            return rows.select(tables.VERSIONS_OF_NAMED, name)

    def channels(self) -> list[Channel]:
        with self._reading() as rows:
            return rows.select(tables.ALL_CHANNELS)

    def conversations(self, *, archived: bool = False, channel: str | None = None) -> list[Conversation]:
        with self._reading() as rows:
            return rows.select(tables.NEWEST_CONVERSATIONS, None if archived else Status.ARCHIVED, channel)

    def conversation(self, id_or_ref: str) -> Conversation | None:
        with self._reading() as rows:
            return _either(rows, tables.CONVERSATIONS_BY_REF, id_or_ref)

    def notes(self, conversation: str) -> list[Note]:
        with self._reading() as rows:
            return rows.select(tables.NOTES_OF, conversation, None)

    def workspaces(self) -> list[WorkspaceInfo]:
        with self._reading() as rows:
            return rows.select(tables.ALL_WORKSPACES)

    # Documents

    def documents(self, ids: Iterable[str]) -> dict[str, Document]:
        with self._reading() as rows:
            found = rows.select(tables.DOCUMENTS_AMONG, ids)
        return {document.id: document for document in found}

    def document_heads(self, ids: Iterable[str]) -> dict[str, DocumentHead]:
        with self._reading() as rows:
            return {head.id: head for head in rows.select(tables.HEADS_AMONG, ids)}

    def list_documents(self, *, collection: str | None = None, after: str = "", limit: int = 100) -> list[DocumentHead]:
        with self._reading() as rows:
            return rows.select(tables.HEADS_AFTER, after, collection, False, limit=limit)

    def document_history(self, id: str) -> list[DocumentHead]:
        with self._reading() as rows:
            return rows.select(tables.HEADS_OF_VERSIONS, id)

    def document_version(self, id: str, version: int) -> Document | None:
        with self._reading() as rows:
            return get(rows, tables.DOCUMENT_VERSIONS, id, version)

    def collections(self) -> dict[str, int]:
        with self._reading() as rows:
            return rows.count_by(tables.HEADS_AFTER, "collection", "", None, False)

    def linked_documents(self) -> list[str]:
        with self._reading() as rows:
            return list(rows.count_by(tables.ALL_LINKS, "document"))

    def unsplit_documents(self, limit: int) -> list[str]:
        with self._reading() as rows:
            return [one.document for one in rows.select(tables.ALL_UNSPLIT, limit=limit)]

    def document_sources(self, documents: Iterable[str]) -> dict[str, DocumentSource]:
        with self._reading() as rows:
            return {source.document: source for source in rows.select(tables.SOURCES_AMONG, documents)}

    def sources_at(self, location: str) -> list[DocumentSource]:
        with self._reading() as rows:
            return rows.select(tables.SOURCES_AT, location)

    def sources_below(self, folder: str) -> list[DocumentSource]:
        inside = folder.rstrip("/")
        with self._reading() as rows:
            return rows.select(tables.SOURCES_BETWEEN, f"{inside}/", f"{inside}{_BEHIND_SLASH}")

    def watches(self) -> list[Watch]:
        with self._reading() as rows:
            return rows.select(tables.ALL_WATCHES)

    def passages(self, document: str, *, start: int = 0, limit: int | None = None) -> list[Passage]:
        with self._reading() as rows:
            return rows.select(tables.PASSAGES_FROM, document, start, limit=limit)

    def passage_count(self, document: str) -> int:
        with self._reading() as rows:
            return rows.count(tables.PASSAGES_OF, [document])

    # Links and items

    def linked(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        with self._reading() as rows:
            return rows.linked_entries(list(ids))

    def items(self, places: Iterable[ItemAddress]) -> dict[ItemAddress, Item]:
        with row_rules.only_encodable(), self._reading() as rows:
            found = {place: rows.stored_item(place) for place in places}
        for place, stored in found.items():
            if stored is not None and stored.damaged:
                raise Damaged(f"item {place.key!r}")
        return {place: stored.item for place, stored in found.items() if stored is not None}

    # Jobs

    def claim_job(
        self, worker: str, *, now: datetime, lease_until: datetime, kinds: Collection[str] | None = None
    ) -> Job | None:
        return self._change(lambda rows: job_queue.claim(rows, worker, now, lease_until, kinds), alone=False)

    def renew_lease(self, job: str, claim: int, lease_until: datetime) -> bool:
        return self._change(lambda rows: job_queue.renew(rows, job, claim, lease_until), alone=False)

    def jobs(
        self, *, states: Collection[JobState] | None = None, kind: str | None = None, limit: int = 100
    ) -> list[Job]:
        with self._reading() as rows:
            return rows.select(tables.TOUCHED_JOBS, states, kind, limit=limit)

    def job(self, id_or_key: str) -> Job | None:
        with self._reading() as rows:
            return _either(rows, tables.JOBS_BY_KEY, id_or_key)

    def steps(self, job: str) -> dict[str, Any]:
        with self._reading() as rows:
            return {step.name: step.output for step in rows.select(tables.STEPS_OF, job)}

    def queue_depth(self) -> dict[JobState, int]:
        with self._reading() as rows:
            found = rows.count_by(tables.ALL_JOBS, "state")
        return {JobState(state): count for state, count in found.items()}

    def next_run(self, kinds: Collection[str] | None = None) -> datetime | None:
        with self._reading() as rows:
            return job_queue.next_run(rows, kinds)

    # Rivals and confirmations

    def rivals(self, ids: Collection[str]) -> list[Rivalry]:
        with self._reading() as rows:
            found = rows.select(tables.RIVALS_OF_LATER, ids)
            known = {(one.entry, one.other) for one in found}
            more = rows.select(tables.RIVALS_OF_EARLIER, ids)
        return found + [one for one in more if (one.entry, one.other) not in known]

    def open_rivals(self, relation: Relation, *, limit: int) -> list[Rivalry]:
        with self._reading() as rows:
            return rows.select(tables.NEWEST_RIVALS, relation, "", limit=limit)

    def confirmations(self, ids: Collection[str]) -> list[Confirmation]:
        with self._reading() as rows:
            return rows.select(tables.CONFIRMATIONS_OF, ids)

    def citations(self, ids: Collection[str]) -> list[Citation]:
        with self._reading() as rows:
            return rows.select(tables.CITATIONS_OF, ids)

    def newest_citations(self, *, limit: int, after: str | None = None) -> list[Citation]:
        with self._reading() as rows:
            return rows.select(tables.CITATIONS_AFTER, None, limit=limit, after=after)

    def citation_checks(self, ids: Collection[str]) -> list[CitationCheck]:
        with self._reading() as rows:
            return rows.select(tables.CHECKS_OF, ids)

    def checks_that_say(self, verdicts: Collection[CitationVerdict], *, limit: int) -> list[CitationCheck]:
        with self._reading() as rows:
            return rows.select(tables.CHECKS_THAT_SAY, [str(one) for one in verdicts], limit=limit)

    def closed(self, scopes: Collection[Scope] | None = None) -> list[ClosedScope]:
        with self._reading() as rows:
            return rows.select(tables.CLOSED_AMONG, scopes)

    def actions(self) -> dict[str, str]:
        with self._reading() as rows:
            return {one.id: one.description for one in rows.select(tables.ALL_ACTIONS)}

    # Sync

    def item_indexes(self, places: Iterable[ItemAddress]) -> dict[ItemAddress, ItemIndex]:
        with self._reading() as rows:
            found = {place: rows.stored_item(place) for place in places}
        return {place: stored.index for place, stored in found.items() if stored is not None}

    def revisions(self, by: str, values: Collection[Any]) -> list[KeptRevision]:
        with self._reading() as rows:
            return rows.select(tables.REVISIONS_BY[by], values)

    def sync_notes(self, names: Collection[str]) -> dict[str, dict[str, Any]]:
        with self._reading() as rows:
            return {note.name: note.value for note in rows.select(tables.SYNC_NOTES_AMONG, names)}

    # What rests on what

    def links_to(self, documents: Collection[str]) -> list[CanonicalLink]:
        with self._reading() as rows:
            return rows.select(tables.LINKS_TO, documents)

    def derived_from(self, sources: Collection[str]) -> list[Derivation]:
        with self._reading() as rows:
            return rows.select(tables.DERIVED_FROM, sources)

    def entry_ids(self, part: str, *, limit: int) -> list[str]:
        with self._reading() as rows:
            return rows.entry_ids(part, limit)

    def gone(self, ids: Sequence[str]) -> set[str]:
        with self._reading() as rows:
            return {id for id, gone in rows.used_ids(ids).items() if gone}

    # Transcripts, amendments, spending

    def transcripts(
        self, *, progress: Progress | None = None, limit: int = 100, after: str | None = None
    ) -> list[Transcript]:
        with self._reading() as rows:
            return rows.select(tables.NEWEST_TRANSCRIPTS, progress, limit=limit, after=after)

    def transcript(self, id_or_key: str) -> Transcript | None:
        with self._reading() as rows:
            return _either(rows, tables.TRANSCRIPTS_BY_KEY, id_or_key)

    def utterances(self, transcript: str, *, start: int = 0, limit: int | None = None) -> list[Utterance]:
        with self._reading() as rows:
            found = rows.select(tables.UTTERANCES_FROM, transcript, start, limit=limit)
        return [one.utterance for one in found]

    def utterance(self, transcript: str, message: str) -> Utterance | None:
        with self._reading() as rows:
            found = rows.select(tables.UTTERANCES_NAMED, transcript, message, limit=1)
        return found[0].utterance if found else None

    def amendments(
        self,
        ids: Iterable[str] | None = None,
        *,
        states: Collection[AmendmentState] | None = None,
        limit: int = 1000,
    ) -> list[Amendment]:
        with self._reading() as rows:
            return rows.select(tables.OLDEST_AMENDMENTS, ids, states, limit=limit)

    def submissions(
        self,
        ids: Iterable[str] | None = None,
        *,
        states: Collection[SubmissionState] | None = None,
        document: str | None = None,
        limit: int = 1000,
    ) -> list[Submission]:
        with self._reading() as rows:
            return rows.select(tables.OLDEST_SUBMISSIONS, ids, states, document, limit=limit)

    def submissions_on(self, entries: Collection[str] | None = None) -> list[SubmissionMemory]:
        with self._reading() as rows:
            return rows.select(tables.SUBMISSIONS_ON, entries)

    def spent(self, since_day: str) -> list[Spending]:
        with self._reading() as rows:
            return rows.select(tables.SPENDING_SINCE, since_day)

    def disclosures(self, query: DisclosureQuery, *, limit: int | None = None) -> list[Disclosure]:
        asked = (query.since, query.conversation, query.principal, query.item, query.times)
        with self._reading() as rows:
            return rows.select(tables.NEWEST_DISCLOSURES, *asked, limit=limit)

    # Grants and answers

    def grants(self) -> list[Grant]:
        with self._reading() as rows:
            return rows.select(tables.ALL_GRANTS)

    def grant(self, id: str) -> Grant | None:
        with self._reading() as rows:
            return get(rows, tables.GRANTS, id)

    def answer(self, key: str) -> Answer | None:
        with self._reading() as rows:
            return get(rows, tables.ANSWERS, key)

    # Vector indexes: an engine that keeps vectors in memory needs none

    def vector_index_due(self) -> bool:
        return False

    def index_vectors(self) -> int:
        return 0

    # Scrubbing

    def holdings(self, extent: Extent) -> Holdings:
        with self._reading() as rows:
            return removal.holdings(rows, extent)

    def purged_conversations(self) -> list[str]:
        with self._reading() as rows:
            return [one.conversation for one in rows.select(tables.PURGED_CONVERSATIONS, "")]

    def forget_purged(self, conversation: str) -> None:
        self._change(lambda rows: rows.delete(tables.PURGED.one, conversation))

    # The event log

    def events(
        self, *, after: int = 0, limit: int = 1000, subject: str | None = None, action: str | None = None
    ) -> list[Event]:
        with self._reading() as rows:
            if subject is None:
                return rows.select(tables.EVENTS_AFTER, after, action, limit=limit)
            return rows.select(tables.EVENTS_OF_SUBJECT, subject, after, action, limit=limit)

    def subjects(self, beginning: str, limit: int) -> list[str]:
        found: list[str] = []
        low, high = beginning, f"{beginning}\U0010ffff"
        with self._reading() as rows:
            while len(found) < limit and (event := rows.select(tables.EVENTS_OF_SUBJECTS_BETWEEN, low, high, limit=1)):
                found.append(event[0].subject)
                low = f"{event[0].subject} "  # behind all events of this subject
        return found

    def event_counts(self, since: datetime) -> dict[str, int]:
        with self._reading() as rows:
            return rows.count_by(tables.EVENTS_SINCE, "action", since)

    def event_stream(self) -> Iterator[Event]:
        after = 0
        while page := self.events(after=after, limit=_PAGE):
            yield from page
            after = page[-1].seq

    def head(self) -> tuple[int, str]:
        with self._reading() as rows:
            return rows.head()


class IndexedReads(PlainReads):
    """The part of a store that asks entries by `index.rows.SearchRows`: a backend with a database."""

    @abstractmethod
    def _searching(self) -> AbstractContextManager[SearchRows]:
        """The rows of a search, of one moment; inside a snapshot of the same thread, it is that moment."""

    def candidates(self, ids: Iterable[str], filters: Filters = NO_FILTERS) -> dict[str, Candidate]:
        with self._searching() as rows:
            return lookup.candidates(rows, list(ids), filters)

    def texts(self, ids: Iterable[str]) -> dict[str, str]:
        with self._searching() as rows:
            return lookup.texts(rows, list(ids))

    def size(self, selection: Selection) -> int:
        with self._searching() as rows:
            return sum([one.size for one in rows.partitions(selection)])

    def keyword(self, selection: Selection, terms: Sequence[str], limit: int) -> KeywordMatches:
        with row_rules.only_encodable(), self._searching() as rows:
            return keyword.search(rows, selection, terms, limit)

    def adjacent(self, ids: Iterable[str], reach: int) -> dict[str, dict[str, int]]:
        with self._searching() as rows:
            return lookup.adjacent(rows, ids, reach)

    def vectors(self, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
        with self._searching() as rows:
            return index.vectors.vectors(rows, ids, model)


def by_request(ids: Iterable[str], found: Mapping[str, Value]) -> dict[str, Value]:
    """What was found, in the order asked, each once."""
    return {id: found[id] for id in ids if id in found}


def _either(rows: Rows, query: Query[Value], value: str) -> Value | None:
    """The value whose id this is, or else the first that the query finds by it."""
    found = rows.select(query.table.one, value, limit=1) or rows.select(query, value, limit=1)
    return found[0] if found else None
