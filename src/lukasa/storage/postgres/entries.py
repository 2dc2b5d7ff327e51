"""Entries as rows: their versions, their words in blocks of postings, their vectors, and the numbers of partitions.

Words are added for several rows at a time, so that the rows of a common word share a block. All rows up to the number
`fed` of the head are in postings, and none after it: these are the pending index rows, which a search adds itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from lukasa.index.postings import tokens
from lukasa.model.arrays import np
from lukasa.model.entry import Entry, Scope
from lukasa.model.events import canonical_json
from lukasa.model.scrub import Extent, Versioned
from lukasa.model.timestamps import micros
from lukasa.model.values import VISIBILITY
from lukasa.ports import EmbeddingModel
from lukasa.storage import row_rules
from lukasa.storage.backend import EntryVersion, ModelVector, StoredEntry, Traces
from lukasa.storage.entry_codec import anchor_text, checked_entry, entry_columns, snapshot, vector_checksum
from lukasa.storage.postgres import sql
from lukasa.storage.postgres.execute import Handle, PgVector

INDEX_STEP = 16  # pending rows that are indexed at a time
LONG_ROW = 64  # terms of a row that is indexed at once: every search would walk through them
BLOCK = 400  # rows of a block of postings
_PLACES = ("account", "workspace", "channel", "conversation")  # scope keys that separate no tenants
_new_row = itemgetter(*sql.ENTRY_COLUMNS)
_changed_row = itemgetter("rowid", *sql.CHANGED_COLUMNS)


def tenant_keys(scope: Scope) -> str:
    """Return the keys of a scope that separate tenants, as row-level security compares them."""
    return canonical_json({key: value for key, value in scope.anchor if value is not None and key not in _PLACES})


def columns_of(entry: Entry) -> dict[str, Any]:
    """Return the columns that follow from the entry alone."""
    return entry_columns(entry) | {"trust": int(entry.trust), "merged_count": entry.merged_count}


class _Place(NamedTuple):
    """Where a row is now, and what its index holds: the columns of `sql.STORED` behind the entry's own."""

    rowid: int
    partition: int
    terms: str
    term_count: int
    content_hash: str
    content_version: int
    salt: bytes


class EntryTable:
    """The part of `lukasa.storage.backend.Rows` that is about entries, over one transaction."""

    def __init__(self, db: Handle, numbers: dict[Any, Any]) -> None:
        self.db = db
        self.last, self.fed = db.head.entries, db.head.fed  # the last row number given, and the last indexed one
        self.found: dict[Any, Any] = {}  # numbers that are good once the transaction is committed
        self._known = numbers

    # Numbers

    def _number(self, key: Any, find: str, insert: str, values: Sequence[Any], more: Sequence[Any] = ()) -> int:
        number = self._known.get(key) or self.found.get(key)
        if number is None:
            number = self.db.value(find, *values) or self.db.value(insert, *values, *more)
            self.found[key] = number
        return int(number)

    def partition(self, entry: Entry) -> tuple[int, int]:
        """Return the numbers of an entry's scope and partition."""
        scope, visibility, keys = entry.scope, str(VISIBILITY[entry.state]), tenant_keys(entry.scope)
        where = (scope.tier, anchor_text(scope))
        scope_id = self._number(("scope", *where), sql.SCOPE_ID, sql.NEW_SCOPE, where, (keys,))
        room = (scope_id, visibility, entry.owner)
        return scope_id, self._number(("partition", *room), sql.PARTITION_ID, sql.NEW_PARTITION, room, (keys,))

    def model(self, model: EmbeddingModel) -> int:
        about = (model.name, model.dimensions, model.digest)
        return self._number(model, sql.MODEL_ID, sql.NEW_MODEL, about)

    def used_ids(self, ids: Sequence[str]) -> dict[str, bool]:
        asked = list(ids)
        return {id: bool(gone) for id, gone in self.db.all(sql.USED, asked, self.db.store, asked)}

    def entry_ids(self, part: str, limit: int) -> list[str]:
        return [id for (id,) in self.db.all(sql.ENTRY_IDS, part, part, part, limit)]

    def stored_entry(self, id: str) -> StoredEntry | None:
        row = self.db.one(sql.STORED, id)
        if row is None:
            return None
        place = _Place(*row[-len(_Place._fields) :])
        return StoredEntry(checked_entry(row), place.content_version, place.salt, place)

    # Adding

    def add_entries(self, new: Sequence[EntryVersion]) -> None:
        rows = [self._columns(version, self.last + n) for n, version in enumerate(new, 1)]
        self._refuse_twins(new, rows)
        self.db.run_many(sql.NEW_ENTRY, [_new_row(columns) for columns in rows])
        self.db.run_many(sql.NEW_VERSION, [_history(*pair) for pair in zip(new, rows, strict=True)])
        vectors = [
            self._vector(columns, version.vector)
            for version, columns in zip(new, rows, strict=True)
            if version.vector is not None
        ]
        self.db.run_many(sql.PUT_VECTOR, vectors)
        self.last += len(rows)
        if self.last - self.fed >= INDEX_STEP or max(columns["term_count"] for columns in rows) > LONG_ROW:
            self.index_pending()
        grown: dict[int, list[int]] = {}
        for version, columns in zip(new, rows, strict=True):
            counts = grown.setdefault(columns["partition_id"], [0, 0, 0])
            counts[0] += 1
            counts[1] += columns["term_count"]
            counts[2] += version.vector is not None
        self._grow(grown)

    def _grow(self, grown: dict[int, list[int]]) -> None:
        self.db.run_many(sql.GROW, [(partition, *counts) for partition, counts in grown.items() if any(counts)])

    def _columns(self, version: EntryVersion, rowid: int) -> dict[str, Any]:
        entry, columns = version.entry, columns_of(version.entry)
        columns["rowid"] = rowid
        columns["scope_id"], columns["partition_id"] = self.partition(entry)
        columns["content_version"], columns["salt"] = version.content_version, version.salt
        columns["keys"] = tenant_keys(entry.scope)
        return columns

    def _refuse_twins(self, new: Sequence[EntryVersion], rows: Sequence[dict[str, Any]]) -> None:
        """Refuse an entry whose twin is active or held. An error of the engine would end the whole transaction."""
        seen: set[tuple[Any, ...]] = set()
        for version, columns in zip(new, rows, strict=True):
            if version.entry.state in row_rules.TWIN_STATES:
                key = (columns["scope_id"], version.entry.owner, columns["content_key"])
                if key in seen or self.db.value(sql.TWIN_ID, *key, version.entry.id) is not None:
                    raise row_rules.twin_conflict(version.entry)
                seen.add(key)

    # Words

    def index_pending(self) -> None:
        """Add the words of all pending rows to the postings."""
        words: dict[str, list[int]] = {}
        for row, partition, terms in self.db.whole().all(sql.PENDING, self.fed):
            for word in tokens(partition, terms.split()).split():
                words.setdefault(word, []).append(row)
        self.add_postings(words)
        self.fed = self.last

    def add_postings(self, words: dict[str, list[int]]) -> None:
        """Add rows, in ascending order and each as often as it holds the word, to the postings of words."""
        blocks = [block for word, rows in sorted(words.items()) for block in _blocks(word, rows)]
        while blocks:  # one block of each word at a time: the next one goes behind it
            now, later, seen = list[Any](), list[Any](), set[str]()
            for block in blocks:
                (later if block[0] in seen else now).append(block)
                seen.add(block[0])
            columns = [list(column) for column in zip(*now, strict=True)]
            self.db.run(sql.GROW_BLOCKS, *columns, BLOCK)
            blocks = later

    def drop_postings(self, row: int, words: Collection[str]) -> None:
        """Take a row out of the postings of words."""
        for word, first, data in self.db.all(sql.BLOCKS_WITH, row, sorted(set(words))):
            rows = np.frombuffer(data, "<i4")
            kept = rows[rows != row]
            if len(kept) == len(rows):
                continue
            if len(kept):
                self.db.run(sql.SET_BLOCK, word, first, len(np.unique(kept)), kept.tobytes())
            else:
                self.db.run(sql.DROP_BLOCK, word, first)

    # Replacing

    def replace_entry(self, before: StoredEntry, new: EntryVersion) -> None:
        place: _Place = before.row
        columns = self._columns(new, place.rowid)
        self._refuse_twins([new], [columns])
        self.db.run(sql.REPLACE_ENTRY, *_changed_row(columns))
        self.db.run(sql.NEW_VERSION, *_history(new, columns))
        self._index(place, columns)
        self._carry_vectors(place, columns)
        if new.vector is not None:
            self._put_vector(columns, new.vector)

    def _index(self, before: _Place, columns: dict[str, Any]) -> None:
        partition, terms, row = columns["partition_id"], columns["terms"], before.rowid
        if (before.partition, before.terms) == (partition, terms):
            return
        if row <= self.fed:
            self.drop_postings(row, tokens(before.partition, before.terms.split()).split())
            words = Counter(tokens(partition, terms.split()).split())
            self.add_postings({word: [row] * count for word, count in words.items()})
        self._grow({before.partition: [-1, -before.term_count, 0]})
        self._grow({partition: [1, columns["term_count"], 0]})

    def _carry_vectors(self, before: _Place, columns: dict[str, Any]) -> None:
        """Vectors follow their entry to another partition, and go with the text they were computed from."""
        partition, row = columns["partition_id"], before.rowid
        if before.content_hash != columns["content_hash"]:
            gone = len(self.db.all(sql.DROP_VECTORS_OF, row))
            self._grow({before.partition: [0, 0, -gone]})
        elif before.partition != partition:
            moved = self.db.run(sql.MOVE_VECTORS, row, partition)
            self._grow({before.partition: [0, 0, -moved], partition: [0, 0, moved]})

    # Vectors

    def set_vector(self, stored: StoredEntry, vector: ModelVector) -> None:
        place: _Place = stored.row
        about = {"rowid": place.rowid, "partition_id": place.partition, "content_hash": place.content_hash}
        self._put_vector(about, vector)

    def _put_vector(self, columns: dict[str, Any], vector: ModelVector) -> None:
        had = self.db.value(sql.HAS_VECTOR, columns["rowid"], self.model(vector.model)) is not None
        self.db.run(sql.PUT_VECTOR, *self._vector(columns, vector))
        self._grow({columns["partition_id"]: [0, 0, int(not had)]})

    def _vector(self, columns: dict[str, Any], given: ModelVector) -> tuple[Any, ...]:
        checksum = vector_checksum(columns["content_hash"], given.vector)
        where = (columns["rowid"], self.model(given.model), columns["partition_id"])
        return *where, checksum, PgVector(given.vector)

    # Removing

    def drop_entries(self, ids: Collection[str], *, retire: bool = True) -> None:
        found, shrunk = self.db.all(sql.PLACES_OF, list(ids)), dict[int, list[int]]()
        rows = [row for row, *_ in found]
        for partition, count in self.db.all(sql.COUNT_VECTORS, rows):
            shrunk.setdefault(partition, [0, 0, 0])[2] -= count
        for row, partition, term_count, terms in found:
            if row <= self.fed:
                self.drop_postings(row, tokens(partition, terms.split()).split())
            counts = shrunk.setdefault(partition, [0, 0, 0])
            counts[0] -= 1
            counts[1] -= term_count
        self._grow(shrunk)
        self.db.run(sql.DROP_ENTRIES, rows)
        if retire:
            self.db.run(sql.RETIRE, list(ids))
            self.db.run(sql.DROP_ACCESS, list(ids))

    # Actions that rest on entries

    def link_entries(self, action: str, ids: Sequence[str]) -> None:
        self.db.run(sql.NEW_LINKS, action, list(ids))

    def linked_entries(self, ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for id, action in self.db.all(sql.LINKED, list(ids)):
            found[id] = (*found.get(id, ()), action)
        return found

    def unlink_entries(self, ids: Collection[str]) -> None:
        actions = [action for (action,) in self.db.all(sql.DROP_LINKS, list(ids))]
        self.db.run(sql.DROP_ACTIONS, actions)

    # Scrubbing

    def entries_within(self, extent: Extent) -> Versioned:
        if extent.scope is not None:
            scopes = self.db.all(sql.SCOPE_ID, extent.scope.tier, anchor_text(extent.scope))
        else:
            scopes = self.db.all(sql.SCOPES_OF_CONVERSATION, extent.conversation)
        conversation = extent.conversation if extent.scope is None else None
        found = self.db.all(sql.ENTRIES_WITHIN, [id for (id,) in scopes], conversation)
        return tuple((id, version) for id, version in found)

    def entry_traces(self, ids: Collection[str]) -> Traces:
        ((versions, vectors, linked),) = self.db.all(sql.TRACES, list(ids))
        return Traces(versions, vectors, linked)


def _blocks(word: str, rows: Sequence[int]) -> Iterable[tuple[str, int, int, int, bytes]]:
    """Postings in blocks of bounded size: the word, the first and last row, how many differ, and all of them."""
    held = [(row, sum(1 for _ in same)) for row, same in groupby(rows)]
    for start in range(0, len(held), BLOCK):
        part = held[start : start + BLOCK]
        numbers = np.repeat(np.array([row for row, _ in part], "<i4"), [count for _, count in part])
        yield word, part[0][0], part[-1][0], len(part), numbers.tobytes()


def _history(version: EntryVersion, columns: dict[str, Any]) -> tuple[Any, ...]:
    """The row of a version, which holds the entry whole."""
    entry = version.entry
    about = (version.action, version.cause, version.actor, micros(version.at))
    return columns["rowid"], entry.version, *about, snapshot(entry, columns), columns["keys"]
