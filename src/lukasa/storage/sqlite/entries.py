"""Entries as rows: their versions, their words in FTS5, their vectors, and the numbers of their partitions.

One row costs FTS5 nearly as much as many, so words are added for several rows at a time. All rows up to the number that
`head` keeps are in the index, and none after it: these are the pending index rows, which a search adds itself.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

import apsw

from lukasa.index.postings import tokens
from lukasa.index.rows import VectorKey
from lukasa.model.entry import Entry, Scope
from lukasa.model.scrub import Extent, Versioned
from lukasa.model.timestamps import micros
from lukasa.model.values import VISIBILITY, Visibility
from lukasa.ports import EmbeddingModel
from lukasa.storage import row_rules, sqlite
from lukasa.storage.backend import EntryVersion, ModelVector, StoredEntry, Traces
from lukasa.storage.entry_codec import anchor_text, checked_entry, entry_columns, snapshot, vector_checksum
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.execute import all_rows, json_list, one_row, one_value, rows_of_each
from lukasa.storage.sqlite.search import Handle

INDEX_STEP = 16  # pending rows that are indexed at a time
LONG_ROW = 64  # terms of a row that is indexed at once: every search would walk through them
_FIRST_MARK, _BETWEEN_MARKS = 1_000, 1.25
MANY, _SHARE = 500, 0.02  # entries that one process adds, and their share of all, from which on it leaves an order
_new_row = itemgetter(*sql.ENTRY_COLUMNS)
_changed_row = itemgetter(*sql.CHANGED_COLUMNS, "rowid")


def scope_id(db: apsw.Connection, scope: Scope) -> int:
    return _id(db, sql.SCOPE_ID, sql.NEW_SCOPE, (scope.tier, anchor_text(scope)))


def partition_id(db: apsw.Connection, scope: int, entry: Entry) -> int:
    key = (scope, str(VISIBILITY[entry.state]), entry.owner)
    return _id(db, sql.PARTITION_ID, sql.NEW_PARTITION, key)


def model_id(db: apsw.Connection, model: EmbeddingModel) -> int:
    return _id(db, sql.MODEL_ID, sql.NEW_MODEL, (model.name, model.dimensions, model.digest))


def _id(db: apsw.Connection, find: str, insert: str, key: Sequence[Any]) -> int:
    found = one_value(db, find, key)
    return int(found if found is not None else all_rows(db, insert, key)[0][0])


class Numbers:
    """The numbers that one write transaction uses. New numbers are cached once it is committed."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._committed: dict[Any, Any] = db.cache.fixed("numbers") if isinstance(db, Handle) else {}
        self._found: dict[Any, Any] = {}
        self._last: tuple[Scope, str, Visibility, tuple[int, int]] | None = None

    def partition(self, entry: Entry) -> tuple[int, int]:
        """The numbers of an entry's scope and partition. A batch mostly goes to one partition."""
        visibility, last = VISIBILITY[entry.state], self._last
        if last is not None and last[0] is entry.scope and last[1] == entry.owner and last[2] is visibility:
            return last[3]
        key = (entry.scope, entry.owner, visibility)
        found: tuple[int, int] | None = self._known(key)
        if found is None:
            scope = scope_id(self._db, entry.scope)
            found = self._found[key] = (scope, partition_id(self._db, scope, entry))
        self._last = (*key, found)
        return found

    def model(self, model: EmbeddingModel) -> int:
        found: int | None = self._known(model)
        if found is None:
            found = self._found[model] = model_id(self._db, model)
        return found

    def _known(self, key: object) -> Any:
        return self._committed.get(key) or self._found.get(key)

    def committed(self) -> None:
        """Keep the numbers: rows of partitions and models are never removed, and their numbers never reused."""
        self._committed.update(self._found)


def is_indexed(db: apsw.Connection, row: int) -> bool:
    return bool(row <= one_value(db, sql.LAST_INDEXED))


def index_pending(db: apsw.Connection, last: int) -> None:
    """Add the words of all pending rows, up to the last row, to the index."""
    rows = [(row, tokens(partition, terms.split())) for row, partition, terms in all_rows(db, sql.PENDING)]
    db.executemany(sql.INDEX_ROW, rows)
    db.execute(sql.SET_LAST_INDEXED, (last,))


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
    """The part of `lukasa.storage.backend.Rows` that is about entries, over one connection."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self.grown: Counter[VectorKey] = Counter()  # where vectors were added, and how many

    @cached_property
    def numbers(self) -> Numbers:
        return Numbers(self.db)

    def used_ids(self, ids: Sequence[str]) -> dict[str, bool]:
        return {id: bool(gone) for id, gone in rows_of_each(self.db, sql.USED, [(id,) for id in ids])}

    def entry_ids(self, part: str, limit: int) -> list[str]:
        return [id for (id,) in all_rows(self.db, sql.ENTRY_IDS, (part, limit))]

    def stored_entry(self, id: str) -> StoredEntry | None:
        row = one_row(self.db, sql.STORED, (id,))
        if row is None:
            return None
        place = _Place(*row[-len(_Place._fields) :])
        return StoredEntry(checked_entry(row), place.content_version, place.salt, place)

    # Adding: most of what one insert costs is asked and said for many together

    def add_entries(self, new: Sequence[EntryVersion]) -> None:
        ((last, indexed),) = all_rows(self.db, sql.LAST_ROW_EVER)
        rows = [self._columns(version, last + n) for n, version in enumerate(new, 1)]
        try:
            self.db.executemany(sql.NEW_ENTRY, [_new_row(columns) for columns in rows])
        except apsw.ConstraintError:
            for version, columns in zip(new, rows, strict=True):
                self._refuse_twin(version, columns)
            raise
        self.db.executemany(sql.NEW_VERSION, [_history(*pair) for pair in zip(new, rows, strict=True)])
        self._index_new(rows, last, indexed)
        vectors = [
            (columns["rowid"], *self._vector(columns["partition_id"], columns["content_hash"], version.vector))
            for version, columns in zip(new, rows, strict=True)
            if version.vector is not None
        ]
        self.db.executemany(sql.NEW_VECTOR, vectors)
        self.grown.update([(partition, model) for _, model, partition, *_ in vectors])
        self._grow(new, rows)

    def _columns(self, version: EntryVersion, rowid: int) -> dict[str, Any]:
        columns = entry_columns(version.entry)
        columns["rowid"] = rowid
        columns["scope_id"], columns["partition_id"] = self.numbers.partition(version.entry)
        columns["content_version"], columns["salt"] = version.content_version, version.salt
        return columns

    def _refuse_twin(self, version: EntryVersion, columns: dict[str, Any]) -> None:
        if version.entry.state in row_rules.TWIN_STATES:
            key = (columns["scope_id"], version.entry.owner, columns["content_key"], version.entry.id)
            if one_value(self.db, sql.TWIN_ID, key) is not None:
                raise row_rules.twin_conflict(version.entry)

    def _index_new(self, rows: Sequence[dict[str, Any]], before: int, indexed: int) -> None:
        """Index the words of rows once enough of them or a long one are not indexed, and put an index in order that
        has grown much."""
        last = before + len(rows)
        if last - indexed >= INDEX_STEP or max([columns["term_count"] for columns in rows]) > LONG_ROW:
            index_pending(self.db, last)
        if outgrown(before, last):
            self.db.execute(sql.TIDY_INDEX)

    def _grow(self, new: Sequence[EntryVersion], rows: Sequence[dict[str, Any]]) -> None:
        grown: dict[int, list[int]] = {}
        for version, columns in zip(new, rows, strict=True):
            counts = grown.setdefault(columns["partition_id"], [0, 0, 0])
            counts[0] += 1
            counts[1] += columns["term_count"]
            counts[2] += version.vector is not None
        self.db.executemany(sql.GROWN, [(*counts, partition) for partition, counts in grown.items()])

    # Replacing

    def replace_entry(self, before: StoredEntry, new: EntryVersion) -> None:
        place: _Place = before.row
        columns = self._columns(new, place.rowid)
        try:
            self.db.execute(sql.REPLACE_ENTRY, _changed_row(columns))
        except apsw.ConstraintError:
            raise row_rules.twin_conflict(new.entry) from None
        self.db.execute(sql.NEW_VERSION, _history(new, columns))
        self._index(place, columns)
        self._carry_vectors(place, columns)
        if new.vector is not None:
            self._put_vector(place.rowid, *self._vector(columns["partition_id"], columns["content_hash"], new.vector))

    def _index(self, before: _Place, columns: dict[str, Any]) -> None:
        partition, terms = columns["partition_id"], columns["terms"]
        if (before.partition, before.terms) != (partition, terms):
            self.db.execute(sql.UNINDEX_ROW, (before.rowid,))
            self.db.execute(sql.RESIZE, (-1, -before.term_count, before.partition))
            if is_indexed(self.db, before.rowid):
                self.db.execute(sql.INDEX_ROW, (before.rowid, tokens(partition, terms.split())))
            self.db.execute(sql.RESIZE, (1, columns["term_count"], partition))

    def _carry_vectors(self, before: _Place, columns: dict[str, Any]) -> None:
        """Vectors follow their entry to another partition, and go with the text they were computed from."""
        partition, text_hash = columns["partition_id"], columns["content_hash"]
        if (before.partition, before.content_hash) != (partition, text_hash):
            taken = all_rows(self.db, sql.TAKE_VECTORS, (before.rowid,))
            for seq, model, left, *_ in taken:
                self._vector_gone(left, model, seq)
            if before.content_hash == text_hash:
                for _, model, _, checksum, vector in taken:
                    self._put_vector(before.rowid, model, partition, checksum, vector)

    # Vectors

    def set_vector(self, stored: StoredEntry, vector: ModelVector) -> None:
        place: _Place = stored.row
        self._put_vector(place.rowid, *self._vector(place.partition, place.content_hash, vector))

    def _vector(self, partition: int, text_hash: str, given: ModelVector) -> tuple[int, int, str, bytes]:
        return self.numbers.model(given.model), partition, vector_checksum(text_hash, given.vector), given.vector

    def _put_vector(self, rowid: int, model: int, partition: int, checksum: str, vector: bytes) -> None:
        for seq, left in all_rows(self.db, sql.TAKE_VECTOR, (rowid, model)):
            self._vector_gone(left, model, seq)
        self.db.execute(sql.NEW_VECTOR, (rowid, model, partition, checksum, vector))
        self.db.execute(sql.VECTORS_ADDED, (1, partition))
        self.grown[partition, model] += 1

    def _vector_gone(self, partition: int, model: int, seq: int) -> None:
        sqlite.vector_blobs.remove(self.db, partition, model, seq)
        self.db.execute(sql.VECTORS_REMOVED, (1, partition))

    # Removing

    def drop_entries(self, ids: Collection[str], *, retire: bool = True) -> None:
        found = all_rows(self.db, sql.PLACES_OF, (json_list(ids),))
        rows = json_list(rowid for rowid, _, _ in found)
        for partition, model, seq in all_rows(self.db, sql.DROP_VECTORS, (rows,)):
            self._vector_gone(partition, model, seq)
        shrunk: dict[int, list[int]] = {}
        for rowid, partition, term_count in found:
            self.db.execute(sql.UNINDEX_ROW, (rowid,))
            counts = shrunk.setdefault(partition, [0, 0])
            counts[0] -= 1
            counts[1] -= term_count
        self.db.executemany(sql.RESIZE, [(*counts, partition) for partition, counts in shrunk.items()])
        self.db.execute(sql.DROP_ENTRIES, (rows,))
        if retire:
            self.db.executemany(sql.RETIRE, [(id,) for id in ids])

    # Actions that rest on entries

    def link_entries(self, action: str, ids: Sequence[str]) -> None:
        self.db.executemany(sql.NEW_LINK, [(action, id) for id in ids])

    def linked_entries(self, ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for id, action in all_rows(self.db, sql.LINKED, (json_list(ids),)):
            found[id] = (*found.get(id, ()), action)
        return found

    def unlink_entries(self, ids: Collection[str]) -> None:
        actions = [action for (action,) in all_rows(self.db, sql.DROP_LINKS, (json_list(ids),))]
        self.db.execute(sql.DROP_ACTIONS, (json_list(actions),))

    # Scrubbing

    def entries_within(self, extent: Extent) -> Versioned:
        if extent.scope is not None:
            scopes = all_rows(self.db, sql.SCOPE_ID, (extent.scope.tier, anchor_text(extent.scope)))
        else:
            scopes = all_rows(self.db, sql.SCOPES_OF_CONVERSATION, (extent.conversation,))
        conversation = extent.conversation if extent.scope is None else None
        bindings = {"scopes": json_list(id for (id,) in scopes), "conversation": conversation}
        return tuple((id, version) for id, version in all_rows(self.db, sql.ENTRIES_WITHIN, bindings))

    def entry_traces(self, ids: Collection[str]) -> Traces:
        ((versions, vectors, linked),) = all_rows(self.db, sql.TRACES, (json.dumps(list(ids)),))
        return Traces(versions, vectors, linked)


def _history(version: EntryVersion, columns: dict[str, Any]) -> tuple[Any, ...]:
    """The row of a version, which holds the entry whole."""
    entry = version.entry
    about = (version.action, version.cause, version.actor, micros(version.at))
    return columns["rowid"], entry.version, *about, snapshot(entry, columns)


def outgrown(before: int, after: int) -> bool:
    """Whether entries have come past a mark by which the index of words is put in order.

    It grows in segments, and each word is looked for in every one of them. From mark to mark there are a quarter more
    entries, so that putting them all in order costs each of them little.
    """
    return after >= _FIRST_MARK and _marks(before) < _marks(after)


def _marks(count: int) -> int:
    return math.floor(math.log(count / _FIRST_MARK, _BETWEEN_MARKS)) if count >= _FIRST_MARK else -1


def tidy(db: apsw.Connection, added: int) -> None:
    """Put the index of words in order behind one who added so many entries, if these are a good part of all."""
    if added >= max(MANY, _SHARE * one_value(db, sql.LAST_ROW)):
        db.execute(sql.TIDY_INDEX)
