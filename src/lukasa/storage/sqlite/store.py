"""The SQLite store: a folder with `memory.db`, which is the truth, and `access.db`, which counts reads."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

from lukasa.index import keyword, lookup, neighbours
from lukasa.index.ann import USUAL, Sizes
from lukasa.index.keyword import KeywordMatches
from lukasa.index.neighbours import Neighbour, NeighbourQuery, NewText
from lukasa.index.vectors import VectorIndex, VectorMatch
from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.answer import Answer
from lukasa.model.candidate import Candidate, Use
from lukasa.model.conversation import Channel, Conversation, Note, WorkspaceInfo
from lukasa.model.entry import Access, Document, Entry, NamedEntry, Scope, Version
from lukasa.model.errors import StoreError
from lukasa.model.events import Event
from lukasa.model.grant import Grant
from lukasa.model.item import Item, ItemAddress
from lukasa.model.job import Job, JobState
from lukasa.model.scrub import Extent, Holdings
from lukasa.model.selection import NO_FILTERS, Filters, Selection
from lukasa.model.telemetry import DayTally, Spending, Tally, TelemetryEvent, TelemetryQuery
from lukasa.model.text import TOKENIZER_VERSION
from lukasa.model.timestamps import micros, moment
from lukasa.model.transcript import Progress, Transcript, Utterance
from lukasa.model.values import Kind, State
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage import rules, sqlite
from lukasa.storage.operations import DropEntry, SaveEntry, Scrub, Transaction
from lukasa.storage.port import Arrivals, Census, Finding, FoundItem, ItemQuery, Said, Share, Unembedded, UnembeddedItem
from lukasa.storage.sqlite import adding, applying, records, scrub_sql, sql
from lukasa.storage.sqlite.access_counts import View
from lukasa.storage.sqlite.connection import Connections
from lukasa.storage.sqlite.opening import Migration, Opening, Role, migrations, open_files
from lukasa.storage.sqlite.query import all_rows, one_row
from lukasa.storage.sqlite.rows import anchor_text, entry_of, entry_of_snapshot, event_of, json_list, scope_of
from lukasa.storage.sqlite.search import SqliteSearchRows, find

_PAGE = 1000
PARTING = 0.25  # seconds to wait for the lock with what was read and not yet reported, at the end
Value = TypeVar("Value")


class SqliteStore:
    """Implements `lukasa.storage.port.Store`. Safe to share between threads, and across a fork.

    With `create`, an absent database is made; without it, absence is an error. `close` is for when no call runs.
    """

    def __init__(
        self,
        path: Path,
        *,
        role: Role,
        create: bool,
        vfs: str | None = None,
        busy_timeout: float = 30.0,
        cache_bytes: int = 512 << 20,
        sizes: Sizes = USUAL,
        known: Sequence[Migration] | None = None,
    ) -> None:
        opening = Opening(Path(path).absolute(), role, create, vfs, busy_timeout, known or migrations())
        open_files(opening)
        self._connections = Connections(opening)
        self._vectors = VectorIndex(cache_bytes, sizes=sizes)
        self._item_vectors = VectorIndex(cache_bytes // 4, quantises=False)
        self._fixed = opening.fixed
        self._added = 0  # entries, since it was opened
        _LIVE.add(self)
        with self._connections.reading() as db:
            ((secret, tokenizer, unswept),) = all_rows(db, sql.META)
        self._secret: bytes = secret
        if tokenizer != TOKENIZER_VERSION:
            self.rebuild()
        if unswept:
            self.sweep()

    # Writing

    def apply(self, transaction: Transaction) -> None:
        waiting = self._connections.waiting
        with rules.only_encodable(), waiting.taken() as points, self._connections.writing() as db:
            if points:
                sqlite.telemetry.emit(db, *points)
            numbers = applying.run(db, transaction, self._secret)
        numbers.committed()
        self._added += sum([isinstance(op, SaveEntry) and not op.expect for op in transaction.operations])
        dropped = [op.id for op in transaction.operations if isinstance(op, DropEntry)]
        if dropped:
            # The transaction stands: statistics left behind belong to an id that is never used again.
            with suppress(StoreError), self._connections.counting() as counts:
                self._connections.uses.forget(counts, dropped)
        if any(isinstance(op, Scrub) for op in transaction.operations):
            self._vectors.clear()
            self._fixed.clear()

    def report(self, point: TelemetryEvent) -> None:
        if self._connections.waiting.add(point):
            self._write_reports()

    def _write_reports(self, patience: float = 0.0) -> None:
        """Write what waits, if that can be done at once: a reader waits for no writer."""
        waiting = self._connections.waiting
        with suppress(StoreError), waiting.taken() as points:
            if points:
                with self._connections.writing(patience) as db:
                    sqlite.telemetry.emit(db, *points)
                    if waiting.prunes():
                        sqlite.telemetry.prune(db)

    def holdings(self, extent: Extent) -> Holdings:
        with self._connections.reading() as db:
            return sqlite.scrubbing.holdings(db, extent)

    def unswept(self) -> list[str]:
        with self._connections.reading() as db:
            return [id for (id,) in all_rows(db, scrub_sql.UNSWEPT)]

    def swept(self, conversation: str) -> None:
        with self._connections.writing() as db:
            db.execute(scrub_sql.SWEPT, (conversation,))

    def sweep(self) -> bool:
        # The scrub stands whatever happens here: what is left undone is noted in the store, and done at its opening.
        with suppress(StoreError):
            return self._connections.rewrite()
        return False

    def touch(self, ids: Sequence[str], at: datetime) -> Mapping[str, Access]:
        with self._connections.reading() as db:
            rows = SqliteSearchRows(db)
            present, view = lookup.versions(rows, ids), (id(db), rows.cache.number(rows))
            with self._connections.counting() as counts:
                found, due = self._connections.uses.add(counts, present, micros(at), view)
            if due:
                self._write_uses(view=view)
        return _by_request(ids, {id: Access(use.reads, at) for id, use in found.items()})

    def _write_uses(self, patience: float = 0.0, view: View | None = None) -> None:
        """Write the reads that wait, if that can be done at once; else they wait on."""
        if self._connections.uses:
            with suppress(StoreError), self._connections.hurried(patience) as counts:
                self._connections.uses.write(counts, self._present, view)

    def _present(self, ids: Sequence[str]) -> Collection[str]:
        with self._connections.reading() as db:
            return lookup.versions(SqliteSearchRows(db), ids)

    # Entries

    def snapshot(self) -> AbstractContextManager[object]:
        return self._connections.reading()

    def candidates(self, ids: Iterable[str], filters: Filters = NO_FILTERS) -> dict[str, Candidate]:
        with self._connections.reading() as db:
            return lookup.candidates(SqliteSearchRows(db), list(ids), filters)

    def texts(self, ids: Iterable[str]) -> dict[str, str]:
        with self._connections.reading() as db:
            return lookup.texts(SqliteSearchRows(db), list(ids))

    def entries(self, ids: Iterable[str]) -> dict[str, Entry]:
        asked, found = list(ids), {}
        with self._connections.reading() as db:
            rows = SqliteSearchRows(db)
            cached, unknown = rows.cache.fixed("entries"), []
            for id, (version, row) in lookup.versions(rows, asked).items():
                entry = cached.get(id)
                if entry is not None and entry.version == version:
                    found[id] = entry
                else:
                    unknown.append(row)
            for columns in all_rows(db, sql.ENTRIES, (json_list(unknown),)) if unknown else ():
                found[columns[0]] = entry = entry_of(columns)
                if not entry.metadata:  # a dict that a caller could change
                    cached[entry.id] = entry
        return _by_request(asked, found)

    def empty(self, selection: Selection) -> bool:
        with self._connections.asking() as db:
            return not any(one.size for one in SqliteSearchRows(db).partitions(selection))

    def find(self, selection: Selection, *, limit: int = 100, after: str | None = None) -> list[Entry]:
        with self._connections.reading() as db:
            return find(db, selection, limit, after)

    def twin(self, scope: Scope, owner: str, key: str) -> Entry | None:
        with self._connections.reading() as db:
            row = one_row(db, sql.TWIN, (scope.tier, anchor_text(scope), owner, key))
        return None if row is None else entry_of(row)

    def replaced_by(self, id: str) -> list[Entry]:
        with self._connections.reading() as db:
            return [entry_of(row) for row in all_rows(db, sql.REPLACED_BY, (id,))]

    def versions(self, id: str) -> list[Version]:
        with self._connections.reading() as db:
            rows = all_rows(db, sql.VERSIONS, (id,))
        return [
            Version(entry_of_snapshot(snapshot), action, cause, actor, moment(at))
            for snapshot, action, cause, actor, at in rows
        ]

    def access(self, ids: Iterable[str]) -> dict[str, Access]:
        asked = list(ids)
        found = self.uses(asked)
        return {id: Access(found[id].reads, moment(found[id].at)) for id in dict.fromkeys(asked) if id in found}

    def uses(self, ids: Iterable[str]) -> dict[str, Use]:
        with self._connections.counting() as counts:
            return self._connections.uses.of(counts, ids)

    def linked(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        with self._connections.reading() as db:
            for id, action in all_rows(db, sql.LINKED, (json_list(ids),)):
                found[id] = (*found.get(id, ()), action)
        return found

    def census(self) -> list[Census]:
        counts: dict[Scope, dict[State, int]] = {}
        with self._connections.reading() as db:
            for tier, anchor, state, count in all_rows(db, sql.CENSUS):
                counts.setdefault(scope_of(tier, anchor), {})[State(state)] = count
        return [Census(scope, states) for scope, states in counts.items()]

    def arrivals(self) -> list[Arrivals]:
        with self._connections.reading() as db:
            return [Arrivals(date.fromisoformat(day), *rest) for day, *rest in all_rows(db, sql.ARRIVALS)]

    def shares(self, since: datetime) -> list[Share]:
        with self._connections.reading() as db:
            rows = all_rows(db, sql.SHARES, (micros(since),))
        return [Share(tier, State(state), Kind(kind), *rest) for tier, state, kind, *rest in rows]

    # Finding

    def keyword(self, selection: Selection, terms: Sequence[str], limit: int) -> KeywordMatches:
        with rules.only_encodable(), self._connections.reading() as db:
            return keyword.search(SqliteSearchRows(db), selection, terms, limit)

    def nearest(
        self, selection: Selection, model: EmbeddingModel, vector: Vector, limit: int, *, exact: bool = False
    ) -> list[VectorMatch]:
        with self._connections.reading() as db:
            rows = SqliteSearchRows(db)
            return lookup.nearest(rows, self._vectors, selection, model, vector, limit, exact=exact)

    def neighbours(self, query: NeighbourQuery, texts: Sequence[NewText]) -> list[list[Neighbour]]:
        with rules.only_encodable(), self._connections.reading() as db:
            return neighbours.neighbours(SqliteSearchRows(db), self._vectors, query, texts)

    def adjacent(self, ids: Iterable[str], reach: int) -> dict[str, dict[str, int]]:
        with self._connections.reading() as db:
            return lookup.adjacent(SqliteSearchRows(db), ids, reach)

    def unit_vectors(self, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
        with self._connections.reading() as db:
            return lookup.unit_vectors(SqliteSearchRows(db), self._vectors, list(ids), model)

    def vectors(self, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
        with self._connections.reading() as db:
            return lookup.vectors(SqliteSearchRows(db), ids, model)

    def unembedded(self, model: EmbeddingModel, limit: int) -> list[Unembedded]:
        with self._connections.reading() as db:
            number = SqliteSearchRows(db).model_number(model)
            return [Unembedded(*row) for row in all_rows(db, sql.UNEMBEDDED, (number, limit))]

    # Standing content, conversations, registry

    def named(self, name: str | None = None) -> list[NamedEntry]:
        with self._connections.asking() as db:
            return records.named(db, name)

    def named_versions(self, name: str) -> list[NamedEntry]:
        with self._connections.reading() as db:
            return records.named_versions(db, name)

    def documents(self, ids: Iterable[str] | None = None) -> dict[str, Document]:
        with self._connections.asking() as db:
            return records.documents(db, ids)

    def channels(self) -> list[Channel]:
        with self._connections.reading() as db:
            return records.channels(db)

    def conversations(self, *, archived: bool = False, channel: str | None = None) -> list[Conversation]:
        with self._connections.reading() as db:
            return records.conversations(db, archived, channel)

    def conversation(self, id_or_ref: str) -> Conversation | None:
        with self._connections.reading() as db:
            return records.conversation(db, id_or_ref)

    def notes(self, conversation: str) -> list[Note]:
        with self._connections.reading() as db:
            return records.notes(db, conversation)

    def workspaces(self) -> list[WorkspaceInfo]:
        with self._connections.reading() as db:
            return records.workspaces(db)

    # Items

    def items(self, places: Iterable[ItemAddress]) -> dict[ItemAddress, Item]:
        with rules.only_encodable(), self._connections.reading() as db:
            return sqlite.items.items(db, places)

    def find_items(self, query: ItemQuery, *, limit: int | None = None, offset: int = 0) -> list[FoundItem]:
        with rules.only_encodable(), self._connections.reading() as db:
            return sqlite.items.find(db, self._item_vectors, query, limit, offset)

    def item_namespaces(
        self, prefix: tuple[str, ...] = (), *, alive_at: datetime | None = None
    ) -> list[tuple[str, ...]]:
        with rules.only_encodable(), self._connections.reading() as db:
            return sqlite.items.namespaces(db, prefix, alive_at)

    def expired_items(self, at: datetime, limit: int) -> list[ItemAddress]:
        with self._connections.reading() as db:
            return sqlite.items.expired(db, at, limit)

    def unembedded_items(self, model: EmbeddingModel, indexer: str, limit: int) -> list[UnembeddedItem]:
        with self._connections.reading() as db:
            return sqlite.items.unembedded(db, model, indexer, limit)

    def touch_items(self, places: Sequence[ItemAddress], at: datetime) -> None:
        with rules.only_encodable(), self._connections.writing() as db:
            sqlite.items.touch(db, places, at)

    # Jobs

    def claim_job(
        self, worker: str, *, now: datetime, lease_until: datetime, kinds: Collection[str] | None = None
    ) -> Job | None:
        with self._connections.writing() as db:
            return sqlite.jobs.claim(db, worker, now, lease_until, kinds)

    def renew_lease(self, job: str, claim: int, lease_until: datetime) -> bool:
        with self._connections.writing() as db:
            return sqlite.jobs.renew(db, job, claim, lease_until)

    def jobs(
        self, *, states: Collection[JobState] | None = None, kind: str | None = None, limit: int = 100
    ) -> list[Job]:
        with self._connections.reading() as db:
            return sqlite.jobs.jobs(db, states, kind, limit)

    def job(self, id_or_key: str) -> Job | None:
        with self._connections.reading() as db:
            return sqlite.jobs.job(db, id_or_key)

    def steps(self, job: str) -> dict[str, Any]:
        with self._connections.reading() as db:
            return sqlite.jobs.steps(db, job)

    def queue_depth(self) -> dict[JobState, int]:
        with self._connections.reading() as db:
            return sqlite.jobs.depth(db)

    def next_run(self, kinds: Collection[str] | None = None) -> datetime | None:
        with self._connections.reading() as db:
            return sqlite.jobs.next_run(db, kinds)

    # Transcripts, amendments, telemetry

    def transcripts(
        self, *, progress: Progress | None = None, limit: int = 100, after: str | None = None
    ) -> list[Transcript]:
        with self._connections.reading() as db:
            return sqlite.transcripts.transcripts(db, progress, limit, after)

    def transcript(self, id_or_key: str) -> Transcript | None:
        with self._connections.reading() as db:
            return sqlite.transcripts.transcript(db, id_or_key)

    def utterances(self, transcript: str, *, start: int = 0, limit: int | None = None) -> list[Utterance]:
        with self._connections.reading() as db:
            return sqlite.transcripts.utterances(db, transcript, start, limit)

    def utterance(self, transcript: str, message: str) -> Utterance | None:
        with self._connections.reading() as db:
            return sqlite.transcripts.utterance(db, transcript, message)

    def find_utterances(self, terms: Sequence[str], limit: int) -> list[Said]:
        with rules.only_encodable(), self._connections.reading() as db:
            return sqlite.transcripts.find(db, terms, limit)

    def amendments(
        self,
        ids: Iterable[str] | None = None,
        *,
        states: Collection[AmendmentState] | None = None,
        limit: int = 1000,
    ) -> list[Amendment]:
        with self._connections.reading() as db:
            return sqlite.transcripts.amendments(db, ids, states, limit)

    def points(self, query: TelemetryQuery, *, limit: int = 100) -> list[TelemetryEvent]:
        self._write_reports()
        with self._connections.reading() as db:
            return sqlite.telemetry.points(db, query, limit)

    def tally(self, query: TelemetryQuery) -> list[Tally]:
        self._write_reports()
        with self._connections.reading() as db:
            return sqlite.telemetry.tally(db, query)

    def tally_days(self, query: TelemetryQuery) -> list[DayTally]:
        self._write_reports()
        with self._connections.reading() as db:
            return sqlite.telemetry.tally_days(db, query)

    def spent(self, since_day: str) -> list[Spending]:
        with self._connections.reading() as db:
            return sqlite.telemetry.spent(db, since_day)

    # Grants

    def grants(self) -> list[Grant]:
        with self._connections.reading() as db:
            return sqlite.grants.grants(db)

    def grant(self, id: str) -> Grant | None:
        with self._connections.reading() as db:
            return sqlite.grants.grant(db, id)

    def answer(self, key: str) -> Answer | None:
        with self._connections.reading() as db:
            return sqlite.grants.answer(db, key)

    # Log and health

    def events(
        self, *, after: int = 0, limit: int = 1000, subject: str | None = None, action: str | None = None
    ) -> list[Event]:
        bindings = {"after": after, "limit": limit, "subject": subject, "action": action}
        statement = sql.EVENTS_OF if subject is None else sql.EVENTS_BY_SUBJECT
        with self._connections.reading() as db:
            return [event_of(row) for row in all_rows(db, statement, bindings)]

    def event_counts(self, since: datetime) -> dict[str, int]:
        with self._connections.reading() as db:
            return dict(all_rows(db, sql.EVENT_COUNTS, (since.isoformat(),)))

    def event_stream(self) -> Iterator[Event]:
        after = 0
        while page := self.events(after=after, limit=_PAGE):
            yield from page
            after = page[-1].seq

    def head(self) -> tuple[int, str]:
        with self._connections.reading() as db:
            ((seq, digest),) = all_rows(db, sql.HEAD)
        return seq, digest

    def secret(self) -> bytes:
        return self._secret

    def check(self) -> list[Finding]:
        with self._connections.reading() as db:
            return sqlite.checking.check(db)

    def rebuild(self) -> None:
        with self._connections.writing() as db:
            sqlite.checking.rebuild(db)
        self._vectors.clear()
        self._item_vectors.clear()

    def part(self) -> None:
        """Write what still waits."""
        self._write_uses(PARTING)
        self._write_reports(PARTING)

    def __del__(self) -> None:
        with suppress(Exception):  # it may never have been opened, or the interpreter may be at its end
            self.part()

    def _tidy(self) -> None:
        """Leave the index of words in order after having added much to it, if that can be done at once."""
        if self._added >= adding.MANY:
            with suppress(StoreError), self._connections.writing(0.0) as db:
                adding.tidy(db, self._added)
            self._added = 0

    def close(self) -> None:
        self.part()
        self._tidy()
        self._connections.close()
        self._vectors.clear()
        self._item_vectors.clear()
        self._fixed.clear()


def _by_request(ids: Iterable[str], found: Mapping[str, Value]) -> dict[str, Value]:
    """In the order asked, each once."""
    return {id: found[id] for id in ids if id in found}


_LIVE: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


@atexit.register
def _part() -> None:
    """A program may end without closing what it opened."""
    for store in list(_LIVE):
        store.part()
