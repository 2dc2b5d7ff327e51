"""The SQLite store: a folder with `memory.db`, which is the truth, and `access.db`, which counts reads."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from lukasa import index
from lukasa.index import lookup
from lukasa.index.cache import Answers
from lukasa.index.matches import Neighbour, NeighbourQuery, NewText, VectorMatch
from lukasa.model.corpus import NO_PASSAGE_FILTERS, FoundPassage, PassageFilters
from lukasa.model.disclosure import Disclosure, DisclosureQuery
from lukasa.model.entry import Access, Derivation, Document, Entry, NamedEntry, Scope, Version
from lukasa.model.erasure import Words
from lukasa.model.errors import LostWrites, StoreError
from lukasa.model.item import ItemAddress
from lukasa.model.scrub import Extent, Holdings
from lukasa.model.selection import Selection
from lukasa.model.telemetry import DayTally, Tally, TelemetryEvent, TelemetryQuery
from lukasa.model.text import TOKENIZER_VERSION
from lukasa.model.timestamps import micros, micros_or_none
from lukasa.model.values import Kind, State
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage import row_rules, seals, sqlite, tables
from lukasa.storage.access_counts import View
from lukasa.storage.backend import Rows
from lukasa.storage.commit import commit
from lukasa.storage.entry_codec import anchor_text, checked_entry, scope_of
from lukasa.storage.operations import DropEntry, SaveEntry, Scrub, Transaction
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
from lukasa.storage.reads import IndexedReads, by_request
from lukasa.storage.sqlite import entries, sql
from lukasa.storage.sqlite.connection import Connections
from lukasa.storage.sqlite.execute import all_rows, commitments, json_list, one_row, one_value
from lukasa.storage.sqlite.head_file import DigestOf, Head, HeadFile
from lukasa.storage.sqlite.search import AccessFile, Handle, SqliteSearchRows, find
from lukasa.storage.sqlite.sqlite_rows import SqliteRows
from lukasa.storage.sqlite.store_files import Migration, Opening, Role, migrations, open_files

if TYPE_CHECKING:
    from lukasa.index.ann import Sizes
    from lukasa.index.vectors import VectorIndex

_WORTH_KEEPING = 1 << 20  # characters of all pages, up to which they stay in memory
PARTING = 0.25  # seconds to wait for the lock with what was read and not yet reported, at the end
PARTING_WITH_DISCLOSURES = 10.0  # the same if there are disclosures, which must not be lost
Value = TypeVar("Value")
Page = TypeVar("Page", NamedEntry, Document)


class SqliteStore(IndexedReads):
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
        sizes: Sizes | None = None,
        known: Sequence[Migration] | None = None,
    ) -> None:
        opening = Opening(Path(path).absolute(), role, create, vfs, busy_timeout, known or migrations())
        open_files(opening)
        self._connections = Connections(opening)
        self._head_file = HeadFile(opening.folder)
        self._cache_bytes, self._sizes = cache_bytes, sizes
        self._fixed = opening.fixed
        self._added = 0  # entries, since it was opened
        _LIVE.add(self)
        with self._connections.reading() as db:
            ((secret, tokenizer, purges_files),) = all_rows(db, sql.META)
        self._secret: bytes = secret
        self._look_for_lost_writes()
        if tokenizer != TOKENIZER_VERSION:
            self.rebuild()
        if purges_files:
            self.purge_files()

    def _look_for_lost_writes(self) -> None:
        """Warn once if the database is older than writes that were acknowledged, and keep the evidence."""
        noted = self._head_file.read()  # before the log is looked at: it may only grow
        with self._connections.reading() as db:
            now = Head(*SqliteRows(db).head())
            gone = noted is not None and noted in self._head_file.missing(now, _digests(db))
        if noted is not None and gone:
            self._head_file.give_up(noted, now)
            import_module("warnings").warn(LostWrites(_lost(noted, now, self._head_file)), stacklevel=4)

    # Vectors in memory, which a process that only writes or searches by keyword never loads

    @cached_property
    def _vectors(self) -> VectorIndex:
        return index.vectors.VectorIndex(self._cache_bytes, sizes=self._sizes)

    @cached_property
    def _item_vectors(self) -> VectorIndex:
        return index.vectors.VectorIndex(self._cache_bytes // 4, quantises=False)

    @cached_property
    def _passage_vectors(self) -> VectorIndex:
        return index.vectors.VectorIndex(self._cache_bytes, sizes=self._sizes)

    def _drop_vectors(self) -> None:
        for name in ("_vectors", "_item_vectors", "_passage_vectors"):
            vars(self).pop(name, None)

    # Writing

    @contextmanager
    def _reading(self) -> Iterator[SqliteRows]:
        with self._connections.reading() as db:
            yield SqliteRows(db)

    @contextmanager
    def _searching(self) -> Iterator[SqliteSearchRows]:
        with self._connections.reading() as db:
            yield SqliteSearchRows(db)

    @contextmanager
    def _writing(self, patience: float | None = None) -> Iterator[SqliteRows]:
        with self._connections.writing(patience) as db:
            rows = SqliteRows(db)
            yield rows
            rows.write_vector_blobs()
        rows.numbers.committed()
        if rows.headed is not None:
            self._head_file.note(Head(*rows.headed))

    def _change(self, change: Callable[[Rows], Value], *, alone: bool = True) -> Value:
        with self._writing() as rows:
            return change(rows)

    def apply(self, transaction: Transaction) -> None:
        buffer = self._connections.write_buffer
        with row_rules.only_encodable(), buffer.taken() as waiting, self._writing() as rows:
            for table, values in waiting:
                rows.insert(table, values)
            commit(rows, transaction, self._secret)
        self._added += sum([isinstance(op, SaveEntry) and not op.expect for op in transaction.operations])
        dropped = [op.id for op in transaction.operations if isinstance(op, DropEntry)]
        if dropped:
            # The transaction stands: statistics left behind belong to an id that is never used again.
            with suppress(StoreError), self._connections.counting() as counts:
                self._connections.access_counts.forget(AccessFile(counts), dropped)
        if any(isinstance(op, Scrub) for op in transaction.operations):
            self._drop_vectors()
            self._fixed.clear()

    def report(self, point: TelemetryEvent) -> None:
        if self._connections.write_buffer.add(point):
            self._write_buffer()

    def disclose(self, given: Disclosure) -> None:
        if self._connections.write_buffer.disclose(given):
            self._write_buffer()
        else:
            self._connections.write_buffer.later(weakref.WeakMethod(self._write_buffer))

    def disclosures(self, query: DisclosureQuery, *, limit: int | None = None) -> list[Disclosure]:
        self._write_buffer()
        return super().disclosures(query, limit=limit)

    def holdings(self, extent: Extent) -> Holdings:
        self._write_buffer()
        return super().holdings(extent)

    def _write_buffer(self, patience: float = 0.0) -> None:
        """Write the write buffer, if that can be done at once: a reader waits for no writer."""
        buffer = self._connections.write_buffer
        with suppress(StoreError), buffer.taken() as waiting:
            if waiting:
                with self._writing(patience) as rows:
                    for table, values in waiting:
                        rows.insert(table, values)
                    if buffer.prunes():
                        rows.prune_debug()

    def purge_files(self, *, large: bool = False) -> bool:
        # The scrub is committed, whatever happens here. The store notes what is left, and does it when it is opened.
        with suppress(StoreError):
            return self._connections.rewrite()
        return False

    def traces(self, words: Words) -> dict[str, int]:
        return {name: n for name, data in self._connections.files() if (n := words.count(data))}

    def touch(self, ids: Sequence[str], at: datetime) -> Mapping[str, Access]:
        with self._connections.reading() as db:
            rows = SqliteSearchRows(db)
            present, view = lookup.versions(rows, ids), (id(db), rows.cache.number(rows))
            with self._connections.counting() as counts:
                found, due = self._connections.access_counts.add(AccessFile(counts), present, micros(at), view)
            if due:
                self._write_access(view=view)
        return by_request(ids, {id: Access(access.count, micros(at)) for id, access in found.items()})

    def _write_access(self, patience: float = 0.0, view: View | None = None) -> None:
        """Write the buffer of access counts, if that can be done at once; otherwise it stays."""
        if self._connections.access_counts:
            with suppress(StoreError), self._connections.hurried(patience) as counts:
                self._connections.access_counts.write(AccessFile(counts), self._present, view)

    def _present(self, ids: Sequence[str]) -> Collection[str]:
        with self._connections.reading() as db:
            return lookup.versions(SqliteSearchRows(db), ids)

    # Entries

    @contextmanager
    def snapshot(self) -> Iterator[Store]:
        with self._connections.reading():
            yield self

    def entries(self, ids: Iterable[str], *, damaged: bool = False) -> dict[str, Entry]:
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
        with self._connections.reading() as db:
            return find(db, selection, limit, after, damaged=damaged)

    def twin(self, scope: Scope, owner: str, key: str) -> Entry | None:
        with self._connections.reading() as db:
            row = one_row(db, sql.TWIN, (scope.tier, anchor_text(scope), owner, key))
        return None if row is None else checked_entry(row)

    def replaced_by(self, id: str) -> list[Entry]:
        with self._connections.reading() as db:
            found = map(checked_entry, all_rows(db, sql.REPLACED_BY, (id,)))
            return [entry for entry in found if not entry.damaged]

    def withdrawn(self, *, limit: int) -> list[Derivation]:
        with self._connections.reading() as db:
            return [Derivation(*row) for row in all_rows(db, sql.WITHDRAWN, (limit,))]

    def versions(self, id: str) -> list[Version]:
        with self._connections.reading() as db:
            rows = all_rows(db, sql.VERSIONS, (id,))
            return seals.history(id, rows, commitments(db, "entry", [id]) if rows else {})

    def access(self, ids: Iterable[str]) -> dict[str, Access]:
        with self._connections.counting() as counts:
            return self._connections.access_counts.of(AccessFile(counts), ids)

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

    def nearest(
        self, selection: Selection, model: EmbeddingModel, vector: Vector, limit: int, *, exact: bool = False
    ) -> list[VectorMatch]:
        with self._connections.reading() as db:
            rows = SqliteSearchRows(db)
            return index.vectors.nearest(rows, self._vectors, selection, model, vector, limit, exact=exact)

    def neighbours(self, query: NeighbourQuery, texts: Sequence[NewText]) -> list[list[Neighbour]]:
        with row_rules.only_encodable(), self._connections.reading() as db:
            return index.neighbours.neighbours(SqliteSearchRows(db), self._vectors, query, texts)

    def unit_vectors(self, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
        with self._connections.reading() as db:
            return index.vectors.unit_vectors(SqliteSearchRows(db), self._vectors, list(ids), model)

    def unembedded(self, model: EmbeddingModel, limit: int) -> list[Unembedded]:
        with self._connections.reading() as db:
            number = SqliteSearchRows(db).model_number(model)
            rows = all_rows(db, sql.UNEMBEDDED, (number, limit))
        return [Unembedded(id, version, text.decode()) for id, version, text, hash in rows if seals.intact(text, hash)]

    # Pages, which every put is compared with: those that are not much are kept; and documents

    def named(self, name: str | None = None) -> list[NamedEntry]:
        if name is None:
            return self._kept("named", lambda: self._vouched("named", super(SqliteStore, self).named()))
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
        with self._connections.reading() as db:
            return seals.pages(
                found, commitments(db, family, map(seals.page_name, found)) if found else {}, self._secret
            )

    def _kept(self, what: str, ask: Callable[[], list[Page]]) -> list[Page]:
        with self._connections.asking() as db:
            kept = cached_records(db)
        found: list[Page] | None = kept.get(what)
        if found is None:
            found = ask()
            if sum([len(one.body) for one in found]) <= _WORTH_KEEPING:
                kept[what] = found
        return list(found)

    # Items

    def find_items(self, query: ItemQuery, *, limit: int | None = None, offset: int = 0) -> list[FoundItem]:
        with row_rules.only_encodable(), self._connections.reading() as db:
            return sqlite.item_rows.find(db, self._item_vectors, query, limit, offset)

    def item_namespaces(
        self, prefix: tuple[str, ...] = (), *, alive_at: datetime | None = None
    ) -> list[tuple[str, ...]]:
        with row_rules.only_encodable(), self._connections.reading() as db:
            return sqlite.item_rows.namespaces(db, prefix, alive_at)

    def expired_items(self, at: datetime, limit: int) -> list[ItemAddress]:
        with self._connections.reading() as db:
            return sqlite.item_rows.expired(db, at, limit)

    def unembedded_items(self, model: EmbeddingModel, indexer: str, limit: int) -> list[UnembeddedItem]:
        with self._connections.reading() as db:
            return sqlite.item_rows.unembedded(db, model, indexer, limit)

    def touch_items(self, places: Sequence[ItemAddress], at: datetime) -> None:
        with row_rules.only_encodable(), self._connections.writing() as db:
            sqlite.item_rows.touch(db, places, at)

    # Messages and telemetry

    def find_utterances(self, terms: Sequence[str], limit: int) -> list[FoundUtterance]:
        with row_rules.only_encodable(), self._connections.reading() as db:
            return [found for found, _ in sqlite.text_rows.find(db, tables.UTTERANCES, terms, limit)]

    # Passages

    def find_passages(
        self, terms: Sequence[str], limit: int, filters: PassageFilters = NO_PASSAGE_FILTERS
    ) -> list[FoundPassage]:
        with row_rules.only_encodable(), self._connections.reading() as db:
            found = sqlite.text_rows.find(db, tables.PASSAGES, terms, limit, filters)
        return [FoundPassage(passage, score) for passage, score in found]

    def nearest_passages(
        self, model: EmbeddingModel, vector: Vector, limit: int, filters: PassageFilters = NO_PASSAGE_FILTERS
    ) -> list[FoundPassage]:
        with row_rules.only_encodable(), self._connections.reading() as db:
            return sqlite.text_rows.nearest(db, self._passage_vectors, model, vector, limit, filters)

    def unembedded_passages(self, model: EmbeddingModel, limit: int) -> list[UnembeddedPassage]:
        with self._connections.reading() as db:
            return sqlite.text_rows.unembedded(db, model, limit)

    def points(self, query: TelemetryQuery, *, limit: int = 100) -> list[TelemetryEvent]:
        found = self._telemetry(sql.POINTS, query, limit=limit)
        return [tables.TELEMETRY.decode(row) for row in found]

    def tally(self, query: TelemetryQuery) -> list[Tally]:
        sums: dict[tuple[str, str], dict[str, float]] = {}
        for component, action, key, total in self._telemetry(sql.TALLY_SUMS, query):
            sums.setdefault((component, action), {})[key] = total
        return [
            Tally(component, action, count, failures, mean, most, sums.get((component, action), {}))
            for component, action, count, failures, mean, most in self._telemetry(sql.TALLY, query)
        ]

    def tally_days(self, query: TelemetryQuery) -> list[DayTally]:
        return [DayTally(*row) for row in self._telemetry(sql.TALLY_DAYS, query)]

    def _telemetry(self, statement: str, query: TelemetryQuery, **more: int) -> list[tuple[Any, ...]]:
        self._write_buffer()
        bindings = {
            "since": micros_or_none(query.since),
            "until": micros_or_none(query.until),
            "component": query.component,
            "action": query.action,
            "level": query.level,
            "success": None if query.success is None else int(query.success),
        }
        with self._connections.reading() as db:
            return all_rows(db, statement, bindings | more)

    # Health

    def secret(self) -> bytes:
        return self._secret

    def check(self) -> list[Finding]:
        with self._connections.reading() as db:
            return [*self._lost_writes(db), *sqlite.integrity.check(db)]

    def _lost_writes(self, db: Handle) -> list[Finding]:
        try:
            now = Head(*SqliteRows(db).head())
            gone = self._head_file.missing(now, _digests(db))
        except (apsw.Error, ValueError):
            return []  # the check itself says that the log cannot be read
        return [Finding("lost", "events", _lost(one, now, self._head_file), derived=False) for one in gone[-1:]]

    def rebuild(self) -> None:
        with self._connections.writing() as db:
            sqlite.integrity.rebuild(db)
        self._drop_vectors()

    def part(self) -> None:
        """Write what still waits."""
        self._write_access(PARTING)
        self._write_buffer(PARTING_WITH_DISCLOSURES if self._connections.write_buffer.discloses else PARTING)

    def __del__(self) -> None:
        with suppress(Exception):  # it may never have been opened, or the interpreter may be at its end
            self.part()

    def _tidy(self) -> None:
        """Leave the index of words in order after having added much to it, if that can be done at once."""
        if self._added >= entries.MANY:
            with suppress(StoreError), self._connections.writing(0.0) as db:
                entries.tidy(db, self._added)
            self._added = 0

    def close(self) -> None:
        self.part()
        self._tidy()
        self._connections.close()
        self._drop_vectors()
        self._fixed.clear()


def cached_records(db: Handle) -> Answers:
    """The cached pages. In a write transaction, which may be undone, nothing is cached."""
    return db.cache.records(SqliteSearchRows(db)) if db.reads or not db.in_transaction else {}


def _digests(db: Handle) -> DigestOf:
    return lambda seq: one_value(db, sql.DIGEST_OF, (seq,))


def _lost(noted: Head, now: Head, file: HeadFile) -> str:
    """What to say and do about acknowledged writes that are gone."""
    behind = f"the log ends at event {now.seq}" if now.seq < noted.seq else "the log holds another event of that number"
    return (
        f"writes up to event {noted.seq} were acknowledged, but {behind}: memory.db-wal vanished, or an older copy of "
        f"memory.db was put in its place; restore the newest copy of the whole folder, or delete {file.evidence} to "
        "accept the loss"
    )


_LIVE: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


@atexit.register
def _part() -> None:
    """A program may end without closing what it opened."""
    for store in list(_LIVE):
        store.part()
