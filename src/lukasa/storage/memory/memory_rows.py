"""`Rows` over plain dictionaries: what a transaction of the in-memory store sees and changes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from msgspec.structs import replace

from lukasa.model.arrays import np
from lukasa.model.entry import Entry, Scope, Version
from lukasa.model.events import GENESIS
from lukasa.model.item import ItemAddress, path_text
from lukasa.model.scrub import Extent, Versioned, holds_words
from lukasa.model.values import Lifetime
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage import row_rules, tables
from lukasa.storage.backend import (
    EntryVersion,
    FieldVector,
    ModelVector,
    PassageVector,
    StoredEntry,
    StoredItem,
    Traces,
)
from lukasa.storage.codec import Query, Row, Table, TextTable
from lukasa.storage.memory.memory_items import KeptItem
from lukasa.storage.port import index_terms, twin_key
from lukasa.storage.tables import SealedEvent

Value = TypeVar("Value")


@dataclass
class Contents:
    """Everything a store holds. Values are never changed in place, so a shallow copy is a snapshot.

    Plain tables hold rows as a database would: encoded, in the order of insertion.
    """

    tables: dict[str, dict[Any, Row]] = field(default_factory=lambda: {table.name: {} for table in tables.tables()})
    entries: dict[str, Entry] = field(default_factory=dict)
    salts: dict[str, bytes] = field(default_factory=dict)
    terms: dict[str, tuple[str, ...]] = field(default_factory=dict)
    twin_keys: dict[str, tuple[Scope, str, str]] = field(default_factory=dict)
    content_versions: dict[str, int] = field(default_factory=dict)
    versions: dict[str, tuple[Version, ...]] = field(default_factory=dict)
    retired: frozenset[str] = frozenset()
    vectors: dict[tuple[str, EmbeddingModel], Vector] = field(default_factory=dict)
    models: dict[EmbeddingModel, None] = field(default_factory=dict)  # those that came in with rows of another store
    links: dict[str, tuple[str, ...]] = field(default_factory=dict)
    linked: dict[tuple[str, str], None] = field(default_factory=dict)  # actions with entries, in their order
    items: dict[ItemAddress, KeptItem] = field(default_factory=dict)
    passage_vectors: dict[tuple[str, int, EmbeddingModel], Vector] = field(default_factory=dict)

    def snapshot(self) -> Contents:
        new = copy(self)
        for name, value in vars(self).items():
            setattr(new, name, copy(value))
        new.tables = {name: copy(rows) for name, rows in self.tables.items()}
        return new


class MemoryRows:
    """Implements `lukasa.storage.backend.Rows`."""

    def __init__(self, state: Contents) -> None:
        self.state = state

    # Plain tables

    def select(
        self,
        query: Query[Value],
        *values: Any,
        limit: int | None = None,
        after: str | None = None,
        hold: bool = False,
        only: Callable[[Sequence[Any]], bool] | None = None,
    ) -> list[Value]:
        table, positions = query.table, query.table.positions
        found = [(place, row) for place, (_, row) in enumerate(self._admitted(query, values))]
        for name, down in reversed(query.order):
            at = positions.get(name)
            found.sort(key=lambda pair, at=at: pair[0] if at is None else pair[1][at], reverse=down)  # type: ignore[misc]
        rows = [row for _, row in found]
        if after is not None:
            rows = self._behind(query, after, rows)
        if query.given is not table:
            rows = [tuple([row[positions[name]] for name in query.given.columns]) for row in rows[:limit]]
        return [query.given.decode(row) for row in rows[:limit] if only is None or only(row)]

    def _behind(self, query: Query[Any], after: str, rows: Sequence[Row]) -> list[Row]:
        """The rows behind a key, which the query itself need not admit, in the order of insertion or against it."""
        order = {key: place for place, key in enumerate(self._table(query.table))}
        last = order.get((after,))
        if last is None:
            return []
        sign = -1 if ("place", True) in query.order else 1
        return [row for row in rows if sign * order[query.table.key_of(row)] > sign * last]

    def count(self, query: Query[Any], *values: Any) -> int:
        return len(self._admitted(query, values))

    def count_by(self, query: Query[Any], column: str, *values: Any) -> dict[Any, int]:
        found = [row[query.table.positions[column]] for _, row in self._admitted(query, values)]
        return {value: found.count(value) for value in sorted(set(found))}

    def insert(self, table: Table[Value], values: Sequence[Value]) -> None:
        rows = self._table(table)
        for value in values:
            row = _encodable(table.encode(value))
            key = table.key_of(row) if table.key else next(_SERIAL)
            if key in rows:
                raise row_rules.unique_conflict(table.name, str(key))
            rows[key] = row

    def insert_row(self, name: str, row: Row) -> None:
        """Add a row as it is stored, which another store gave out."""
        table = next(table for table in tables.tables() if table.name == name)
        self._table(table)[table.key_of(row) if table.key else next(_SERIAL)] = row

    def save(self, table: Table[Value], value: Value) -> None:
        rows, row = self._table(table), _encodable(table.encode(value))
        before = rows.get(table.key_of(row))
        if before is not None:
            columns = table.columns.values()
            row = tuple(old if column.fixed else new for column, old, new in zip(columns, before, row, strict=True))
        rows[table.key_of(row)] = row

    def delete(self, query: Query[Any], *values: Any) -> int:
        gone = self._admitted(query, values)
        for key, _ in gone:
            del self._table(query.table)[key]
        return len(gone)

    def _table(self, table: Table[Any]) -> dict[Any, Row]:
        return self.state.tables[table.name]

    def _admitted(self, query: Query[Any], values: Sequence[Any]) -> list[tuple[Any, Row]]:
        tests = [
            (query.table.positions[condition.column], _TESTS[condition.test], value)
            for condition, value in zip(query.where, query.bind(values), strict=True)
            if not (condition.optional and value is None)
        ]
        return [
            (key, row)
            for key, row in self._table(query.table).items()
            if all(test(row[at], value) for at, test, value in tests)
        ]

    # The event log

    def head(self) -> tuple[int, str]:
        events = self._table(tables.EVENTS)
        if not events:
            return 0, GENESIS
        last = SealedEvent(*events[next(reversed(events))])
        return last.seq, last.digest

    def append_events(self, events: Sequence[SealedEvent]) -> None:
        self._table(tables.EVENTS).update({(event.seq,): _encodable(event) for event in events})

    def redact_events(self, ranges: Sequence[tuple[int, int]], scrub: int) -> None:
        events = self._table(tables.EVENTS)
        for first, last in ranges:
            for seq in range(first, last + 1):
                events[seq,] = SealedEvent(*events[seq,])._replace(subject="", detail="{}")

    # Entries

    def used_ids(self, ids: Sequence[str]) -> dict[str, bool]:
        state = self.state
        return {id: id in state.retired for id in ids if id in state.entries or id in state.retired}

    def entry_ids(self, part: str, limit: int) -> list[str]:
        return sorted(id for id in self.state.entries if id.startswith(part) or id.endswith(part))[:limit]

    def stored_entry(self, id: str) -> StoredEntry | None:
        state = self.state
        if id not in state.entries:
            return None
        return StoredEntry(state.entries[id], state.content_versions[id], state.salts[id])

    def add_entries(self, new: Sequence[EntryVersion]) -> None:
        for version in new:
            self._put(version)

    def replace_entry(self, before: StoredEntry, new: EntryVersion) -> None:
        if new.content_version != before.content_version:
            self._drop_vectors(before.entry.id)
        self._put(new)

    def _put(self, new: EntryVersion) -> None:
        state, entry = self.state, new.entry
        key = (entry.scope, entry.owner, twin_key(entry))
        twins = [
            e.id for e in state.entries.values() if e.state in row_rules.TWIN_STATES and state.twin_keys[e.id] == key
        ]
        if entry.state in row_rules.TWIN_STATES and set(twins) - {entry.id}:
            raise row_rules.twin_conflict(entry)
        state.entries[entry.id] = entry
        state.twin_keys[entry.id] = key
        state.terms[entry.id] = tuple(index_terms(entry))
        state.salts[entry.id] = new.salt
        state.content_versions[entry.id] = new.content_version
        version = Version(entry, new.action, new.cause, new.actor, new.at)
        state.versions[entry.id] = (*state.versions.get(entry.id, ()), version)
        if new.vector is not None:
            state.vectors[entry.id, new.vector.model] = vector_of(new.vector.vector)

    def drop_entries(self, ids: Collection[str], *, retire: bool = True) -> None:
        state = self.state
        for id in ids:
            for rows in (state.entries, state.terms, state.twin_keys, state.salts, state.content_versions):
                rows.pop(id)
            state.versions.pop(id)
            self._drop_vectors(id)
        if retire:
            state.retired |= set(ids)

    def _drop_vectors(self, id: str) -> None:
        vectors = self.state.vectors
        for place in [place for place in vectors if place[0] == id]:
            del vectors[place]

    def set_vector(self, stored: StoredEntry, vector: ModelVector) -> None:
        self.state.vectors[stored.entry.id, vector.model] = vector_of(vector.vector)

    def link_entries(self, action: str, ids: Sequence[str]) -> None:
        links = self.state.links
        for id in ids:
            links[id] = tuple(row_rules.unique((*links.get(id, ()), action)))
            self.state.linked[action, id] = None

    def linked_entries(self, ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        return {id: self.state.links[id] for id in ids if id in self.state.links}

    def unlink_entries(self, ids: Collection[str]) -> None:
        links = self.state.links
        for id in ids:
            for action in links.get(id, ()):
                del self.state.linked[action, id]
        gone = {action for id in ids for action in links.pop(id, ())}
        left = {action for actions in links.values() for action in actions}
        for action in gone - left:
            self.delete(tables.ACTIONS.one, action)

    def entries_within(self, extent: Extent) -> Versioned:
        return tuple((e.id, e.version) for e in self.state.entries.values() if _reaches(extent, e))

    def entry_traces(self, ids: Collection[str]) -> Traces:
        state, wanted = self.state, set(ids)
        versions = sum(len(state.versions[id]) for id in wanted)
        return Traces(versions, sum(id in wanted for id, _ in state.vectors), len(wanted & state.links.keys()))

    # Items

    def stored_item(self, place: ItemAddress) -> StoredItem | None:
        kept = self.state.items.get(place)
        if kept is None:
            return None
        return StoredItem(kept.at(place), kept.text, kept.salt, kept.index)

    def item_models(self, place: ItemAddress) -> set[EmbeddingModel]:
        return {model for model, *_ in self.state.items[place].vectors}

    def save_item(self, stored: StoredItem) -> None:
        item = stored.item
        _encodable((path_text(item.place.namespace), item.place.key, stored.text))
        times = (item.created_at, item.updated_at, item.expires_at)
        self.state.items[item.place] = KeptItem(stored.text, stored.salt, *times, item.ttl, (), stored.index)

    def add_item_vectors(self, stored: StoredItem, vectors: Sequence[FieldVector]) -> None:
        kept = self.state.items[stored.item.place]
        new = tuple((vector.model, vector_of(vector.vector), vector.field) for vector in vectors)
        self.state.items[stored.item.place] = replace(kept, vectors=(*kept.vectors, *new))

    def drop_item(self, place: ItemAddress) -> None:
        del self.state.items[place]

    # Texts and telemetry

    def add_texts(self, table: TextTable[Value], values: Sequence[Value]) -> None:
        self.insert(table, values)

    def drop_texts(self, query: Query[Any], *values: Any) -> int:
        if query.table is tables.PASSAGES:
            for (document, number), _ in self._admitted(query, values):
                for key in [key for key in self.state.passage_vectors if key[:2] == (document, number)]:
                    del self.state.passage_vectors[key]
        return self.delete(query, *values)

    def set_passage_vectors(self, vectors: Sequence[PassageVector]) -> None:
        for (document, number), model, vector in vectors:
            self.state.passage_vectors[document, number, model] = vector_of(vector)

    def count_wordy_telemetry(self) -> int:
        return sum(holds_words(event.metadata) for event in self.select(tables.ALL_TELEMETRY))

    def empty_wordy_telemetry(self) -> None:
        rows = self._table(tables.TELEMETRY)
        for key, row in rows.items():
            event = tables.TELEMETRY.decode(row)
            if holds_words(event.metadata):
                rows[key] = tables.TELEMETRY.encode(replace(event, metadata={}))

    def prune_debug(self, most: int) -> None:
        """Keep the newest telemetry events of level debug."""
        rows, level = self._table(tables.TELEMETRY), tables.TELEMETRY.positions["level"]
        debug = [key for key, row in rows.items() if row[level] == "debug"]
        for key in debug[: max(0, len(debug) - most)]:
            del rows[key]


def vector_of(data: bytes) -> Vector:
    """The vector of these bytes; nobody can change it."""
    return np.frombuffer(data, dtype="<f4")


_SERIAL = count()  # keys of rows that have none of their own


def _of_value(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return a test that an empty column does not pass, as in SQL."""
    return lambda value, asked: value is not None and test(value, asked)


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": _of_value(operator.eq),
    "<>": _of_value(operator.ne),
    "<": _of_value(operator.lt),
    "<=": _of_value(operator.le),
    ">": _of_value(operator.gt),
    ">=": _of_value(operator.ge),
    "in": _of_value(lambda value, among: value in among),
    "holds": _of_value(operator.contains),
    "ended": lambda value, asked: value is None or value <= asked,
}


def _encodable(row: Row) -> Row:
    """The row, if UTF-8 can hold its texts."""
    for value in row:
        if isinstance(value, str):
            value.encode("utf-8")
    return row


def _reaches(extent: Extent, entry: Entry) -> bool:
    if extent.scope is not None:
        return entry.scope == extent.scope
    own = entry.lifetime is Lifetime.CONVERSATION and entry.conversation == extent.conversation
    return own or entry.scope.value("conversation") == extent.conversation
