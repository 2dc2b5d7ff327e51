"""Give out what an in-memory store holds as rows, and take rows in: `storage.transfer` says which, and their order.

A store in memory has no numbers for its rows, so they are numbered in their order each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from msgspec.structs import replace

from lukasa.model.entry import Access, Version
from lukasa.model.events import SCRUBBED
from lukasa.model.item import ItemAddress, namespace_of, path_text
from lukasa.model.text import TOKENIZER_VERSION, content_hash
from lukasa.model.timestamps import micros, micros_or_none, moment, moment_or_none
from lukasa.model.values import VISIBILITY
from lukasa.ports import EmbeddingModel
from lukasa.storage import tables, transfer
from lukasa.storage.entry_codec import (
    COLUMNS,
    anchor_text,
    entry_columns,
    entry_of,
    entry_of_snapshot,
    scope_of,
    snapshot,
    vector_checksum,
)
from lukasa.storage.memory.memory_items import KeptItem
from lukasa.storage.memory.memory_rows import Contents, MemoryRows, vector_of
from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.operations import ItemIndex
from lukasa.storage.port import Finding, index_terms, twin_key
from lukasa.storage.transfer import PARTS, About, Page, Part, Role, Row, Taking


class MemoryPages:
    """One store in memory, as an export reads and an import fills it."""

    def __init__(self, store: MemoryStore, id: str, role: Role) -> None:
        self._store, self._id, self._role = store, id, role
        self._listed: tuple[Contents, _Listing] | None = None
        self._taking = _Taking(store)

    @property
    def about(self) -> About:
        made = self._store._created_at
        head, last = self._store.head(), len(self._store._state.entries)
        return About(self._id, self._role, self._store.secret(), TOKENIZER_VERSION, made, head, last)

    def snapshot(self) -> AbstractContextManager[object]:
        return self._store.snapshot()

    def counts(self) -> list[int]:
        return [len(self._rows(part)) for part in PARTS]

    def rows(self, part: Part, *, after: Row = (), skip: int = 0) -> Sequence[Row]:
        rows = self._rows(part)
        first = next((n for n, row in enumerate(rows, 1) if row[: len(after)] == after), 0) if after else 0
        return rows[first + skip : first + skip + part.page]

    def _rows(self, part: Part) -> Sequence[Row]:
        if self._listed is None or self._listed[0] is not self._store._state:
            self._listed = self._store._state, _Listing(self._store)
        listing = self._listed[1]
        if part is transfer.ACCESS:  # which changes without the rest
            return listing.access(self._store)
        return listing.rows[part.name]

    def digest_of(self, seq: int) -> str | None:
        found = MemoryRows(self._store._state).select(tables.EVENTS.one, seq)
        return found[0].digest if found else None

    def check(self) -> list[Finding]:
        return self._store.check()

    # Taking in

    def furnish(self, about: About) -> None:
        """Give a new store the secret of its origin, by which its log vouches for its texts."""
        self._store._secret, self._store._created_at = about.secret, about.created_at

    def empty_access(self) -> None:
        self._store._access = {}

    def take_in(self, pages: Sequence[Page]) -> None:
        with self._store._writing() as rows:
            for part, given in pages:
                self._taking.add(rows.state, part, given)

    def complete(self, last_entry: int) -> None:
        """Nothing is derived here."""


class _Listing:
    """All rows of a store by part, each with its order in front."""

    def __init__(self, store: MemoryStore) -> None:
        self._state = state = store._state
        self._scopes: dict[tuple[str, str], int] = {}
        self._partitions: dict[tuple[int, str, str], int] = {}
        self._models = {model: n for n, model in enumerate(state.models, 1)}
        self._spaces: dict[str, int] = {}
        self._entries = {id: n for n, id in enumerate(state.entries, 1)}
        found: dict[str, list[Row]] = {table.name: list(state.tables[table.name].values()) for table in tables.tables()}
        found |= {
            "entries": [self._entry(id) for id in state.entries],
            "versions": [self._version(n, one) for id, n in self._entries.items() for one in state.versions[id]],
            "retired": [(id,) for id in state.retired],
            "action_links": [(action, self._entries[id]) for action, id in state.linked],
            "items": [self._item(place, kept) for place, kept in state.items.items()],
            "vectors": self._vectors(),
            "item_vectors": [row for place, kept in state.items.items() for row in self._item_vectors(place, kept)],
            "passage_vectors": self._passage_vectors(),
            "redactions": _redactions(MemoryRows(state)),
        }
        found["scopes"] = [(n, *scope) for scope, n in self._scopes.items()]
        found["partitions"] = [(n, *partition) for partition, n in self._partitions.items()]
        found["models"] = [(n, m.name, m.dimensions, m.digest) for m, n in self._models.items()]
        found["item_spaces"] = [(n, path) for path, n in self._spaces.items()]
        self.rows = {part.name: _ordered(part, found[part.name]) for part in PARTS if part is not transfer.ACCESS}

    def access(self, store: MemoryStore) -> Sequence[Row]:
        return _ordered(transfer.ACCESS, [(id, one.count, one.micros) for id, one in store._access.items()])

    def _entry(self, id: str) -> Row:
        state, entry = self._state, self._state.entries[id]
        scope = _number(self._scopes, (entry.scope.tier, anchor_text(entry.scope)))
        partition = _number(self._partitions, (scope, str(VISIBILITY[entry.state]), entry.owner))
        columns = entry_columns(entry)
        columns |= {"rowid": self._entries[id], "scope_id": scope, "partition_id": partition}
        columns |= {"content_version": state.content_versions[id], "salt": state.salts[id]}
        return tuple(columns[name] for name in transfer.ENTRIES.columns)

    def _version(self, number: int, one: Version) -> Row:
        text = snapshot(one.entry, entry_columns(one.entry))
        return number, one.entry.version, one.action, one.cause, one.actor, micros(one.at), text

    def _vectors(self) -> list[Row]:
        found = []
        for (id, model), vector in self._state.vectors.items():
            entry, data = self._state.entries[id], vector.tobytes()
            scope = self._scopes[entry.scope.tier, anchor_text(entry.scope)]
            partition = self._partitions[scope, str(VISIBILITY[entry.state]), entry.owner]
            checksum = vector_checksum(content_hash(entry.content), data)
            found.append((self._entries[id], _number(self._models, model), partition, checksum, data))
        return found

    def _item(self, place: ItemAddress, kept: KeptItem) -> Row:
        space = _number(self._spaces, path_text(place.namespace))
        times = micros(kept.created_at), micros(kept.updated_at), micros_or_none(kept.expires_at)
        texts = json.dumps(kept.index.texts, ensure_ascii=False, separators=(",", ":"))
        ttl = None if kept.ttl is None else float(kept.ttl)
        return (space, place.key, *times, ttl, content_hash(kept.text), kept.salt, kept.text, texts, kept.index.by)

    def _item_vectors(self, place: ItemAddress, kept: KeptItem) -> list[Row]:
        space = self._spaces[path_text(place.namespace)]
        return [
            (space, place.key, _number(self._models, model), field, _checksum(kept.text, data := v.tobytes()), data)
            for model, v, field in kept.vectors
        ]

    def _passage_vectors(self) -> list[Row]:
        texts = {(p.document, p.number): p.text for p in MemoryRows(self._state).select(tables.ALL_PASSAGES)}
        return [
            (document, number, _number(self._models, model), _checksum(texts[document, number], data), data)
            for (document, number, model), vector in self._state.passage_vectors.items()
            if (data := vector.tobytes())
        ]


def _checksum(text: str, vector: bytes) -> str:
    return vector_checksum(content_hash(text), vector)


def _number(known: dict[Any, int], value: Any) -> int:
    return known.setdefault(value, len(known) + 1)


def _redactions(rows: MemoryRows) -> list[Row]:
    """Return the ranges of events that scrubs have emptied, from the events of the scrubs."""
    scrubs = rows.select(tables.EVENTS_OF_ACTIONS, [SCRUBBED])
    return [(*span, event.seq) for event in scrubs for span in event.detail["redacted"]["ranges"]]


def _ordered(part: Part, rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows with their order in front, sorted by it; those of no order of their own stay as they are."""
    at = [part.columns.index(name) for name in part.order if name in part.columns and part.order[-1] != "rowid"]
    if len(at) < len(part.order):
        return [(number, *row) for number, row in enumerate(rows, 1)]
    return sorted((tuple([row[n] for n in at]) + row for row in rows), key=lambda row: row[: len(at)])


class _Taking:
    """Adds rows to what a store holds. Numbers of rows are those of the rows that were added before."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._scopes: dict[int, Row] = {}
        self._models: dict[int, EmbeddingModel] = {}
        self._spaces: dict[int, tuple[str, ...]] = {}
        self._entries: dict[int, str] = {}

    def add(self, state: Contents, part: Part, rows: Sequence[Row]) -> None:
        take = getattr(self, f"_take_{part.name}", None)
        for row in rows:
            if take is not None:
                take(state, row)
            elif part is not transfer.PARTITIONS and part is not transfer.REDACTIONS:
                MemoryRows(state).insert_row(part.name, tuple(row))

    def _take_scopes(self, state: Contents, row: Row) -> None:
        self._scopes[row[0]] = row

    def _take_models(self, state: Contents, row: Row) -> None:
        self._models[row[0]] = EmbeddingModel(*row[1:])
        state.models[self._models[row[0]]] = None

    def _take_item_spaces(self, state: Contents, row: Row) -> None:
        self._spaces[row[0]] = namespace_of(row[1])

    def _take_entries(self, state: Contents, row: Row) -> None:
        values = dict(zip(transfer.ENTRIES.columns, row, strict=True))
        values["tier"], values["anchor"] = self._scopes[values["scope_id"]][1:]
        entry = entry_of(tuple(values[name] for name in COLUMNS))
        self._entries[values["rowid"]] = entry.id
        state.entries[entry.id] = entry
        state.salts[entry.id], state.content_versions[entry.id] = values["salt"], values["content_version"]
        state.terms[entry.id] = tuple(index_terms(entry))
        state.twin_keys[entry.id] = scope_of(values["tier"], values["anchor"]), entry.owner, twin_key(entry)

    def _take_versions(self, state: Contents, row: Row) -> None:
        number, version, action, cause, actor, at, text = row
        id, entry = self._entries[number], entry_of_snapshot(text)
        state.versions[id] = (*state.versions.get(id, ()), Version(entry, action, cause, actor, moment(at)))
        if state.entries[id].version == version:
            state.entries[id] = entry  # with its links and sources, which are in rows of their own elsewhere

    def _take_vectors(self, state: Contents, row: Row) -> None:
        entry, model, _, _, vector = row
        state.vectors[self._entries[entry], self._models[model]] = vector_of(vector)

    def _take_retired(self, state: Contents, row: Row) -> None:
        state.retired |= {row[0]}

    def _take_action_links(self, state: Contents, row: Row) -> None:
        action, entry = row
        id = self._entries[entry]
        state.links[id] = (*state.links.get(id, ()), action)
        state.linked[action, id] = None

    def _take_items(self, state: Contents, row: Row) -> None:
        space, key, created, updated, expires, ttl, _, salt, value, texts, indexer = row
        times = moment(created), moment(updated), moment_or_none(expires)
        index = ItemIndex(tuple((field, text) for field, text in json.loads(texts)), indexer)
        state.items[ItemAddress(self._spaces[space], key)] = KeptItem(value, salt, *times, ttl, (), index)

    def _take_item_vectors(self, state: Contents, row: Row) -> None:
        space, key, model, field, _, vector = row
        place = ItemAddress(self._spaces[space], key)
        kept = state.items[place]
        one = (self._models[model], vector_of(vector), field)
        state.items[place] = replace(kept, vectors=(*kept.vectors, one))

    def _take_passage_vectors(self, state: Contents, row: Row) -> None:
        document, number, model, _, vector = row
        state.passage_vectors[document, number, self._models[model]] = vector_of(vector)

    def _take_access(self, state: Contents, row: Row) -> None:
        id, count, at = row
        self._store._access[id] = Access(count, at)


class MemoryGround:
    """Implements `lukasa.storage.transfer.Ground` for stores of this process."""

    def __init__(self, keep: Callable[[str, MemoryStore], None]) -> None:
        self._keep, self._stores = keep, dict[str, MemoryStore]()

    def begin(self, about: About) -> Taking:
        store = self._stores[about.id] = MemoryStore()
        made = MemoryPages(store, about.id, about.role)
        made.furnish(about)
        return made

    def left(self, about: About) -> bool:
        return about.id in self._stores

    def clear(self, about: About) -> None:
        self._stores.pop(about.id, None)

    def finish(self, about: About) -> None:
        self._keep(about.id, self._stores.pop(about.id))
