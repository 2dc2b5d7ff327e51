"""Changing entries: the row, its version, its index terms, its vectors and its partition's counts together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw
from msgspec import Struct, field

from lukasa.index.postings import tokens
from lukasa.index.rows import VectorKey
from lukasa.model.entry import Entry
from lukasa.model.timestamps import micros
from lukasa.storage import rules
from lukasa.storage.operations import DropEntry, Embedding, LinkAction, SaveEmbedding, SaveEntry, Transaction
from lukasa.storage.sqlite import adding, pending, sql, vector_blobs
from lukasa.storage.sqlite.numbers import Numbers
from lukasa.storage.sqlite.query import all_rows, one_row, one_value
from lukasa.storage.sqlite.rows import entry_columns, entry_of, snapshot, vector_checksum


class _Place(NamedTuple):
    """Where a row is now, and what its index holds."""

    rowid: int
    partition: int
    content_version: int
    version: int
    terms: str
    term_count: int
    content_hash: str
    salt: bytes


class EntryWriter(Struct, frozen=True):
    """Runs the operations on entries inside an open write transaction."""

    db: apsw.Connection
    transaction: Transaction
    numbers: Numbers
    grown: Counter[VectorKey] = field(default_factory=Counter)  # where vectors were added, and how many

    def add(self, operations: Sequence[SaveEntry]) -> list[bytes]:
        """Insert; the answers are the salts for the commitments in their events."""
        return adding.add(self.db, self.numbers, self.transaction, operations, self.grown)

    def save(self, operation: SaveEntry) -> bytes:
        """Replace the version before; the answer is the salt for the commitment in its event."""
        entry = rules.stored(operation.entry, operation.expect + 1)
        place = self._place(entry.id)
        rules.check_version("entry", entry.id, place.version if place else None, operation.expect)
        if place is None:
            raise rules.missing("entry", entry.id)
        rules.check_revision(entry_of(self._one(sql.ENTRY, entry.id)), entry)
        columns = self._columns(entry, place)
        adding.refuse_twin(self.db, entry, columns)
        self._one(sql.REPLACE_ENTRY, columns)
        self._add_version(place.rowid, entry, columns, operation)
        self._index(place, columns)
        self._carry_vectors(place, columns, operation.embedding)
        return place.salt

    def drop(self, operation: DropEntry) -> None:
        place = self._place(operation.id)
        if place is None:
            raise rules.missing("entry", operation.id)
        rules.check_version("entry", operation.id, place.version, operation.expect)
        if one_value(self.db, sql.IS_LINKED, (place.rowid,)):
            raise rules.linked_refusal(operation.id)
        self._unindex(place)
        self._take_vectors(place.rowid)
        self.db.execute(sql.DROP_ENTRY, (place.rowid,))
        self.db.execute(sql.RETIRE, (operation.id,))

    def embed(self, operation: SaveEmbedding) -> None:
        """A vector of text that has since changed or gone describes nothing here, and is let go."""
        vector = rules.checked_vector(operation.embedding).tobytes()
        place = self._place(operation.id)
        if place is not None and place.content_version <= operation.version <= place.version:
            model = self.numbers.model(operation.embedding.model)
            checksum = vector_checksum(place.content_hash, vector)
            self._put_vector(place.rowid, model, place.partition, checksum, vector)

    def link(self, operation: LinkAction) -> None:
        self.db.execute(sql.NEW_ACTION, (operation.action, operation.description, micros(self.transaction.at)))
        for id in rules.unique(operation.entries):
            place = self._place(id)
            if place is None:
                raise rules.missing("entry", id)
            self.db.execute(sql.NEW_LINK, (operation.action, place.rowid))

    # Rows

    def _place(self, id: str) -> _Place | None:
        row = one_row(self.db, sql.PLACE, (id,))
        return None if row is None else _Place(*row)

    def _one(self, statement: str, bindings: Any) -> tuple[Any, ...]:
        values = bindings if isinstance(bindings, dict) else (bindings,)
        rows = all_rows(self.db, statement, values)  # to the end: RETURNING holds the statement open
        return tuple(rows[0])

    def _columns(self, entry: Entry, place: _Place) -> dict[str, Any]:
        columns = entry_columns(entry)
        same_text = place.content_hash == columns["content_hash"]
        scope, partition = self.numbers.partition(entry)
        return columns | {
            "scope_id": scope,
            "partition_id": partition,
            "content_version": place.content_version if same_text else entry.version,
        }

    def _add_version(self, rowid: int, entry: Entry, columns: dict[str, Any], operation: SaveEntry) -> None:
        actor, at = str(self.transaction.actor), micros(self.transaction.at)
        row = (rowid, entry.version, operation.action, operation.cause, actor, at, snapshot(entry, columns))
        self.db.execute(sql.NEW_VERSION, row)

    # Keyword index

    def _index(self, before: _Place, columns: dict[str, Any]) -> None:
        partition, terms = columns["partition_id"], columns["terms"]
        if (before.partition, before.terms) == (partition, terms):
            return
        self._unindex(before)
        if pending.is_indexed(self.db, before.rowid):
            self.db.execute(sql.INDEX_ROW, (before.rowid, tokens(partition, terms.split())))
        self.db.execute(sql.RESIZE, (1, columns["term_count"], partition))

    def _unindex(self, place: _Place) -> None:
        self.db.execute(sql.UNINDEX_ROW, (place.rowid,))
        self.db.execute(sql.RESIZE, (-1, -place.term_count, place.partition))

    # Vectors

    def _carry_vectors(self, before: _Place, columns: dict[str, Any], embedding: Embedding | None) -> None:
        """Vectors follow their entry to another partition, and go with the text they were computed from."""
        rowid, partition, text_hash = before.rowid, columns["partition_id"], columns["content_hash"]
        if (before.partition, before.content_hash) != (partition, text_hash):
            taken = self._take_vectors(rowid)
            if before.content_hash == text_hash:
                for _, model, _, checksum, vector in taken:
                    self._put_vector(rowid, model, partition, checksum, vector)
        if embedding is not None:
            blob = rules.checked_vector(embedding).tobytes()
            model = self.numbers.model(embedding.model)
            self._put_vector(rowid, model, partition, vector_checksum(text_hash, blob), blob)

    def _take_vectors(self, rowid: int) -> list[tuple[Any, ...]]:
        taken = all_rows(self.db, sql.TAKE_VECTORS, (rowid,))
        for seq, model, partition, *_ in taken:
            self._vector_gone(partition, model, seq)
        return taken

    def _vector_gone(self, partition: int, model: int, seq: int) -> None:
        vector_blobs.remove(self.db, partition, model, seq)
        self.db.execute(sql.VECTORS_REMOVED, (1, partition))

    def _put_vector(self, rowid: int, model: int, partition: int, checksum: str, vector: bytes) -> None:
        for seq, left in all_rows(self.db, sql.TAKE_VECTOR, (rowid, model)):
            self._vector_gone(left, model, seq)
        self.db.execute(sql.NEW_VECTOR, (rowid, model, partition, checksum, vector))
        self.db.execute(sql.VECTORS_ADDED, (1, partition))
        self.grown[partition, model] += 1
