"""The PostgreSQL store: one of the many that a database holds, an account's or a workspace's."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from lukasa import index
from lukasa.index import lookup
from lukasa.index.matches import Neighbour, NeighbourQuery, NewText, VectorMatch
from lukasa.model.corpus import NO_PASSAGE_FILTERS, FoundPassage, PassageFilters
from lukasa.model.disclosure import Disclosure, DisclosureQuery
from lukasa.model.entry import Access, Derivation, Document, Entry, NamedEntry, Scope, Version
from lukasa.model.erasure import Words
from lukasa.model.errors import LukasaError, StoreError, StoreForeign, StoreUnfinished
from lukasa.model.events import canonical_json
from lukasa.model.item import ItemAddress
from lukasa.model.scrub import Extent, Holdings
from lukasa.model.selection import Selection
from lukasa.model.telemetry import DayTally, Tally, TelemetryEvent, TelemetryQuery
from lukasa.model.text import TOKENIZER_VERSION
from lukasa.model.timestamps import micros, micros_or_none
from lukasa.model.values import Kind, State
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage import row_rules, seals, tables
from lukasa.storage.access_counts import AccessCounts
from lukasa.storage.commit import commit
from lukasa.storage.entry_codec import anchor_text, checked_entry, scope_of
from lukasa.storage.operations import DropEntry, Enqueue, ReviveJob, Scrub, Transaction
from lukasa.storage.port import (
    Arrivals,
    Census,
    Finding,
    FoundItem,
    FoundUtterance,
    ItemQuery,
    Share,
    Store,
    Unembedded,
    UnembeddedItem,
    UnembeddedPassage,
)
from lukasa.storage.postgres import integrity, item_rows, rewriting, search, sql, text_rows, vector_indexes
from lukasa.storage.postgres.execute import Handle
from lukasa.storage.postgres.postgres_rows import PostgresRows
from lukasa.storage.postgres.search import AccessTable, PostgresSearchRows, VectorSearch
from lukasa.storage.reads import IndexedReads, by_request
from lukasa.storage.write_buffer import WriteBuffer

if TYPE_CHECKING:
    from lukasa.storage.postgres.database import Database

_WORTH_KEEPING = 1 << 20  # characters of all pages, up to which they stay in memory
PARTING = 0.25  # seconds to wait for others with what was read and not yet reported, at the end
PARTING_WITH_DISCLOSURES = 10.0  # the same if there are disclosures, which must not be lost
_VECTORS: Any = VectorSearch()
Value = TypeVar("Value")
Page = TypeVar("Page", NamedEntry, Document)


class PostgresStore(IndexedReads):
    """Implements `lukasa.storage.port.Store`. Safe to share between threads, and across a fork."""

    def __init__(self, database: Database, id: str, role: str) -> None:
        self._database, self.id = database, id
        self._keys = ""  # the scope keys that bind every transaction, as JSON; empty for none
        self._whole = self  # the same store, bound to no scope key: for what it keeps of all scopes at once
        self._numbers: dict[Any, Any] = {}  # of committed scopes, partitions and models, which never change
        self._waiting, self._counts = WriteBuffer(), AccessCounts()
        self._closed = False
        with self._asking() as db:
            ((kept_role, secret, tokenizer, moving, purges),) = db.all(sql.META)
        if moving:
            raise StoreUnfinished(database.where)
        if kept_role != role:
            raise StoreForeign(
                f"{database.where}: store {id} is of a {kept_role}, not of a {role}", fix="use its own id"
            )
        self._secret = bytes(secret)
        _LIVE.add(self)
        if tokenizer != TOKENIZER_VERSION:
            self.rebuild()
        if purges:
            self.purge_files()

    # Transactions

    def within(self, keys: Mapping[str, str]) -> PostgresStore:
        bound = canonical_json(dict(keys)) if keys else ""
        if bound == self._keys:
            return self
        if not bound:
            return self._whole
        narrowed = copy(self._whole)
        narrowed._keys = bound
        return narrowed

    @contextmanager
    def _asking(self) -> Iterator[Handle]:
        if self._whole._closed:
            raise StoreError(f"store {self.id} is closed", fix="open it again")
        with self._database.reading(self.id, self._keys) as db:
            yield db

    @contextmanager
    def _reading(self) -> Iterator[PostgresRows]:
        with self._asking() as db:
            yield PostgresRows(db, self._numbers)

    @contextmanager
    def _searching(self) -> Iterator[PostgresSearchRows]:
        with self._asking() as db:
            yield PostgresSearchRows(db)

    @contextmanager
    def _open(self, **how: Any) -> Iterator[PostgresRows]:
        """Open one transaction that writes. It raises the engine's errors."""
        if self._whole._closed:
            raise StoreError(f"store {self.id} is closed", fix="open it again")
        with self._database.writing(self.id, self._keys, **how) as db:
            rows = PostgresRows(db, self._numbers)
            yield rows
            if how.get("lock", True):
                rows.write_head()
        self._numbers.update(rows.found)

    def _change(self, change: Callable[[PostgresRows], Value], *, alone: bool = True, **how: Any) -> Value:
        """Run a change in a transaction of its own, again if nothing of it was committed: see `Database.persistent`."""

        def attempt() -> Value:
            with self._open(lock=alone, **how) as rows:
                return change(rows)

        return self._database.persistent(attempt)

    def apply(self, transaction: Transaction) -> None:
        queues = any(isinstance(one, Enqueue | ReviveJob) for one in transaction.operations)

        def change(rows: PostgresRows) -> None:
            for table, values in waiting:
                rows.insert(table, values)
            commit(rows, transaction, self._secret)
            if queues:
                rows.db.session.cursor.execute(sql.NOTIFY, (self.id,))

        with row_rules.only_encodable(), self._waiting.taken() as waiting:
            self._change(change)
        if any(isinstance(one, DropEntry | Scrub) for one in transaction.operations):
            self._forget_counts()

    def _forget_counts(self) -> None:
        """Leave counts of entries that are gone out of the buffer."""
        waiting = self._counts.waiting()
        with self._whole._asking() as db:
            present = {id for (id,) in db.all(sql.PRESENT, waiting)}
        self._counts.leave_out(id for id in waiting if id not in present)

    def report(self, point: TelemetryEvent) -> None:
        if self._waiting.add(point):
            self._write_buffer()

    def disclose(self, given: Disclosure) -> None:
        if self._waiting.disclose(given):
            self._write_buffer()
        else:
            self._waiting.later(weakref.WeakMethod(self._whole._write_buffer))

    def disclosures(self, query: DisclosureQuery, *, limit: int | None = None) -> list[Disclosure]:
        self._write_buffer()
        return super().disclosures(query, limit=limit)

    def holdings(self, extent: Extent) -> Holdings:
        self._write_buffer()
        return super().holdings(extent)

    def _write_buffer(self, patience: float = 0.0) -> None:
        """Write the write buffer, if that can be done at once: a reader waits for no writer."""

        def change(rows: PostgresRows) -> None:
            for table, values in waiting:
                rows.insert(table, values)
            if self._waiting.prunes():
                rows.prune_debug()

        with suppress(LukasaError, psycopg.Error), self._waiting.taken() as waiting:
            if waiting:
                with self._open(lock=False, patience=patience) as rows:
                    change(rows)

    def purge_files(self, *, large: bool = False) -> bool:
        # The scrub is committed, whatever happens here. The store notes what is left.
        with suppress(LukasaError, psycopg.Error):
            with self._asking() as db:
                noted = db.value(sql.FILES_UNSWEPT)
            if noted is None and large:
                return True  # of a rewriting for all stores, this one has nothing left
            if rewriting.rewrite(self._database, large=large):
                self._change(lambda rows: rows.db.run(sql.FILES_PURGED, noted or 0))
                return True
        return False

    def traces(self, words: Words) -> dict[str, int]:
        found: dict[str, int] = {}
        with self._whole._asking() as db:
            cursor = db.session.cursor
            named = [name for (name,) in cursor.execute(sql.EVERY_TABLE).fetchall() if name not in sql.WORDLESS]
            for table in named:
                rows = cursor.execute(f"SELECT t::text FROM lukasa.{table} AS t".encode())
                if count := sum(words.count(text.encode()) for (text,) in rows):
                    found[f"table {table}"] = count
        return found

    def touch(self, ids: Sequence[str], at: datetime) -> Mapping[str, Access]:
        with self._searching() as rows:
            present = lookup.versions(rows, ids)
            found, due = self._counts.add(AccessTable(rows.db), present, micros(at), (0, rows.db.head.commits))
        if due:
            self._write_access()
        return by_request(ids, {id: Access(access.count, micros(at)) for id, access in found.items()})

    def _write_access(self, patience: float = 0.0) -> None:
        """Write the buffer of access counts, if that can be done at once; otherwise it stays."""
        if self._counts:
            with (
                suppress(LukasaError, psycopg.Error),
                self._whole._open(lock=False, patience=patience) as rows,
            ):
                db = rows.db
                present = lambda ids: {id for (id,) in db.all(sql.PRESENT, list(ids))}  # noqa: E731
                self._counts.write(AccessTable(db), present)

    # Entries

    @contextmanager
    def snapshot(self) -> Iterator[Store]:
        with self._asking():
            yield self

    def entries(self, ids: Iterable[str], *, damaged: bool = False) -> dict[str, Entry]:
        asked, found = list(ids), {}
        with self._searching() as rows:
            cached, unknown = rows.cache.fixed("entries"), []
            for id, (version, row) in lookup.versions(rows, asked).items():
                entry = cached.get(id)
                if entry is not None and entry.version == version:
                    found[id] = entry
                else:
                    unknown.append(row)
            for columns in rows.db.all(sql.ENTRIES, unknown) if unknown else ():
                entry = checked_entry(columns)
                if entry.damaged:
                    if damaged:
                        found[entry.id] = entry
                    continue
                found[entry.id] = entry
                if not entry.metadata:  # a dict that a caller could change
                    cached[entry.id] = entry
        return by_request(asked, found)

    def find(
        self, selection: Selection, *, limit: int = 100, after: str | None = None, damaged: bool = False
    ) -> list[Entry]:
        with self._asking() as db:
            return search.find(db, selection, limit, after, damaged=damaged)

    def twin(self, scope: Scope, owner: str, key: str) -> Entry | None:
        with self._asking() as db:
            row = db.one(sql.TWIN, scope.tier, anchor_text(scope), owner, key)
        return None if row is None else checked_entry(row)

    def replaced_by(self, id: str) -> list[Entry]:
        with self._asking() as db:
            found = map(checked_entry, db.all(sql.REPLACED_BY, id))
            return [entry for entry in found if not entry.damaged]

    def withdrawn(self, *, limit: int) -> list[Derivation]:
        with self._asking() as db:
            return [Derivation(*row) for row in db.all(sql.WITHDRAWN, limit)]

    def versions(self, id: str) -> list[Version]:
        with self._asking() as db:
            rows = db.all(sql.VERSIONS, id)
            return seals.history(id, rows, _commitments(db, "entry", [id]) if rows else {})

    def access(self, ids: Iterable[str]) -> dict[str, Access]:
        with self._asking() as db:
            return self._counts.of(AccessTable(db), ids)

    def census(self) -> list[Census]:
        counts: dict[Scope, dict[State, int]] = {}
        with self._asking() as db:
            for tier, anchor, state, count in db.all(sql.CENSUS):
                counts.setdefault(scope_of(tier, anchor), {})[State(state)] = count
        return [Census(scope, states) for scope, states in counts.items()]

    def arrivals(self) -> list[Arrivals]:
        with self._asking() as db:
            return [Arrivals(date.fromisoformat(day), *rest) for day, *rest in db.all(sql.ARRIVALS)]

    def shares(self, since: datetime) -> list[Share]:
        with self._asking() as db:
            rows = db.all(sql.SHARES, micros(since))
        return [Share(tier, State(state), Kind(kind), *rest) for tier, state, kind, *rest in rows]

    # Finding

    def nearest(
        self, selection: Selection, model: EmbeddingModel, vector: Vector, limit: int, *, exact: bool = False
    ) -> list[VectorMatch]:
        with self._searching() as rows:
            return search.nearest(rows, selection, model, vector, limit, exact=exact)

    def neighbours(self, query: NeighbourQuery, texts: Sequence[NewText]) -> list[list[Neighbour]]:
        with row_rules.only_encodable(), self._searching() as rows:
            return index.neighbours.neighbours(rows, _VECTORS, query, texts)

    def unit_vectors(self, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
        with self._searching() as rows:
            return index.vectors.unit_vectors(rows, _VECTORS, list(ids), model)

    def unembedded(self, model: EmbeddingModel, limit: int) -> list[Unembedded]:
        with self._searching() as rows:
            found = rows.db.all(sql.UNEMBEDDED, rows.model_number(model), limit)
        return [Unembedded(id, version, text.decode()) for id, version, text, hash in found if seals.intact(text, hash)]

    def vector_index_due(self) -> bool:
        with self._asking() as db:
            return vector_indexes.due(db)

    def index_vectors(self) -> int:
        with self._database.translating():
            return vector_indexes.update(self._database, self.id)

    # Pages, which every put is compared with: those that are not much are kept; and documents

    def named(self, name: str | None = None) -> list[NamedEntry]:
        if name is None:
            return self._kept("named", lambda: self._vouched("named", super(PostgresStore, self).named()))
        return self._vouched("named", super().named(name))

    def named_versions(self, name: str) -> list[NamedEntry]:
        return self._vouched("named", super().named_versions(name))

    def documents(self, ids: Iterable[str]) -> dict[str, Document]:
        found = self._vouched("document", list(super().documents(ids).values()))
        return {document.id: document for document in found}

    def document_version(self, id: str, version: int) -> Document | None:
        found = super().document_version(id, version)
        return None if found is None else self._vouched("document", [found])[0]

    def _vouched(self, family: str, found: list[Page]) -> list[Page]:
        with self._asking() as db:
            known = _commitments(db, family, map(seals.page_name, found)) if found else {}
        return seals.pages(found, known, self._secret)

    def _kept(self, what: str, ask: Callable[[], list[Page]]) -> list[Page]:
        with self._searching() as rows:
            kept = rows.cache.records(rows)
            found: list[Page] | None = kept.get(what)
            if found is None:
                found = ask()
                if sum([len(one.body) for one in found]) <= _WORTH_KEEPING:
                    kept[what] = found
        return list(found)

    # Items

    def find_items(self, query: ItemQuery, *, limit: int | None = None, offset: int = 0) -> list[FoundItem]:
        with row_rules.only_encodable(), self._asking() as db:
            return item_rows.find(db, query, limit, offset)

    def item_namespaces(
        self, prefix: tuple[str, ...] = (), *, alive_at: datetime | None = None
    ) -> list[tuple[str, ...]]:
        with row_rules.only_encodable(), self._asking() as db:
            return item_rows.namespaces(db, prefix, alive_at)

    def expired_items(self, at: datetime, limit: int) -> list[ItemAddress]:
        with self._asking() as db:
            return item_rows.expired(db, at, limit)

    def unembedded_items(self, model: EmbeddingModel, indexer: str, limit: int) -> list[UnembeddedItem]:
        with self._asking() as db:
            return item_rows.unembedded(db, model, indexer, limit)

    def touch_items(self, places: Sequence[ItemAddress], at: datetime) -> None:
        with row_rules.only_encodable():
            self._change(lambda rows: item_rows.touch(rows.db, places, at))

    # Messages and telemetry

    def find_utterances(self, terms: Sequence[str], limit: int) -> list[FoundUtterance]:
        with row_rules.only_encodable(), self._asking() as db:
            return [found for found, _ in text_rows.find(db, tables.UTTERANCES, terms, limit)]

    # Passages

    def find_passages(
        self, terms: Sequence[str], limit: int, filters: PassageFilters = NO_PASSAGE_FILTERS
    ) -> list[FoundPassage]:
        with row_rules.only_encodable(), self._asking() as db:
            found = text_rows.find(db, tables.PASSAGES, terms, limit, filters)
        return [FoundPassage(passage, score) for passage, score in found]

    def nearest_passages(
        self, model: EmbeddingModel, vector: Vector, limit: int, filters: PassageFilters = NO_PASSAGE_FILTERS
    ) -> list[FoundPassage]:
        with row_rules.only_encodable(), self._asking() as db:
            return text_rows.nearest(db, model, vector, limit, filters)

    def unembedded_passages(self, model: EmbeddingModel, limit: int) -> list[UnembeddedPassage]:
        with self._asking() as db:
            return text_rows.unembedded(db, model, limit)

    def points(self, query: TelemetryQuery, *, limit: int = 100) -> list[TelemetryEvent]:
        return [tables.TELEMETRY.decode(row) for row in self._asked(sql.POINTS, query, limit=limit)]

    def tally(self, query: TelemetryQuery) -> list[Tally]:
        sums: dict[tuple[str, str], dict[str, float]] = {}
        for component, action, key, total in self._asked(sql.TALLY_SUMS, query):
            sums.setdefault((component, action), {})[key] = total
        return [
            Tally(component, action, count, failures, mean, most, sums.get((component, action), {}))
            for component, action, count, failures, mean, most in self._asked(sql.TALLY, query)
        ]

    def tally_days(self, query: TelemetryQuery) -> list[DayTally]:
        return [DayTally(*row) for row in self._asked(sql.TALLY_DAYS, query)]

    def _asked(self, statement: str, query: TelemetryQuery, **more: int) -> list[tuple[Any, ...]]:
        self._write_buffer(PARTING)
        values = {
            "store": self.id,
            "since": micros_or_none(query.since),
            "until": micros_or_none(query.until),
            "component": query.component,
            "action": query.action,
            "level": query.level,
            "success": None if query.success is None else int(query.success),
        }
        with self._asking() as db:
            return db.named(statement, values | more)

    # Health

    def secret(self) -> bytes:
        return self._secret

    def check(self) -> list[Finding]:
        with self._whole._asking() as db:
            return integrity.check(db, self._secret)

    def rebuild(self) -> None:
        self._numbers.clear()  # whoever altered rows may have altered those of scopes and partitions
        self._whole._change(lambda rows: integrity.rebuild(rows, self._secret))

    def part(self) -> None:
        """Write what still waits."""
        if not self._whole._closed:
            self._write_access(PARTING)
            self._write_buffer(PARTING_WITH_DISCLOSURES if self._waiting.discloses else PARTING)

    def close(self) -> None:
        self.part()
        self._whole._closed = True


def _commitments(db: Handle, family: str, subjects: Iterable[str]) -> dict[tuple[str, int], str]:
    return seals.commitments(db.all(sql.EVENTS_ABOUT, list(set(subjects))), family)


_LIVE: weakref.WeakSet[PostgresStore] = weakref.WeakSet()


@atexit.register
def _part() -> None:
    """A program may end without closing what it opened."""
    for store in list(_LIVE):
        with suppress(LukasaError, psycopg.Error):
            store.part()
