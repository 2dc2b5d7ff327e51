"""Verify a store against itself, and rebuild its derived state."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

import apsw

from lukasa.index.postings import token, tokens
from lukasa.model.arrays import np
from lukasa.model.entry import Document, Entry, NamedEntry
from lukasa.model.errors import UNREADABLE, LukasaError
from lukasa.model.events import Event, chain_faults
from lukasa.model.item import ItemAddress, item_id
from lukasa.model.text import TOKENIZER_VERSION, commitment
from lukasa.model.values import VISIBILITY
from lukasa.storage import tables
from lukasa.storage.codec import Query
from lukasa.storage.entry_codec import checked_entry, entry_columns, vector_checksum
from lukasa.storage.operations import grant_text
from lukasa.storage.port import Finding
from lukasa.storage.seals import intact, page_name, pages, sound_copy, version_of
from lukasa.storage.sqlite import sql, sqlite_rows, vector_blobs
from lukasa.storage.sqlite.entries import partition_id, scope_id
from lukasa.storage.sqlite.execute import Row, all_rows, commitments, json_list, one_value, stream
from lukasa.storage.sqlite.item_rows import namespace_of, prefixes
from lukasa.storage.sqlite.sqlite_rows import SqliteRows


class _Kept(NamedTuple):
    """The columns of `sql.ALL_ENTRIES` behind those of the entry itself."""

    rowid: int
    partition: int
    chars: int
    marks: int
    term_count: int
    terms: str
    content_hash: str
    content_key: str
    subject: int | None
    role: int | None
    salt: bytes
    room_fits: int | None
    visibility: str | None

    @classmethod
    def of(cls, row: Row) -> _Kept:
        return cls(*row[-len(cls._fields) :])


class _Derived(NamedTuple):
    """The columns of a row that follow from its entry."""

    terms: str
    term_count: int
    content_key: str
    subject: int | None
    role: int | None
    chars: int
    marks: int

    @classmethod
    def by(cls, entry: Entry) -> _Derived:
        columns = entry_columns(entry)
        return cls(*(columns[name] for name in cls._fields))

    @classmethod
    def kept(cls, kept: _Kept) -> _Derived:
        return cls(*(getattr(kept, name) for name in cls._fields))


@dataclass(slots=True)
class _Check:
    """One pass over everything. Memory held is one small record an entry."""

    db: apsw.Connection
    findings: list[Finding] = field(default_factory=list)
    commitments: dict[tuple[str, str, int], str] = field(default_factory=dict)  # by the family of actions
    item_commitments: dict[str, str] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)

    def wrong(self, what: str, subject: object, detail: str, *, derived: bool = False) -> None:
        self.findings.append(Finding(what, str(subject), detail, derived))

    def file(self) -> None:
        for (message,) in stream(self.db, sql.INTEGRITY):
            if message != "ok":
                self.wrong("file", "memory.db", message, derived="fts5" in message.lower())
        for table, rowid, parent, _ in stream(self.db, sql.FOREIGN_KEYS):
            derived = table in ("vectors", "packs", "item_vectors", "item_prefixes")
            self.wrong("reference", f"{table}/{rowid}", f"points at nothing in {parent}", derived=derived)

    def chain(self) -> None:
        ((seq, digest),) = all_rows(self.db, sql.HEAD)
        for fault in chain_faults(self._events(), head=(seq, digest)):
            self.wrong("chain", "events", fault)

    def _events(self) -> Iterator[Event]:
        for row in stream(self.db, sqlite_rows.SELECT(tables.EVENTS_AFTER), (0, None, -1)):
            event = tables.EVENTS.decode(row)
            if {"version", "commitment"} <= event.detail.keys():
                about = (event.action.partition(".")[0], event.subject, event.detail["version"])
                self.commitments[about] = event.detail["commitment"]
            if event.action == "item.saved":
                self.item_commitments[event.subject] = event.detail.get("commitment", "")
            elif event.action == "item.dropped":
                self.item_commitments.pop(event.subject, None)
            yield event

    def entries(self) -> None:
        fed = one_value(self.db, sql.LAST_INDEXED)
        for row in stream(self.db, sql.ALL_ENTRIES):
            entry, kept = checked_entry(row), _Kept.of(row)
            if kept.rowid <= fed:
                self.lengths[kept.rowid] = kept.term_count
            if entry.damaged:
                copied = _sound_copy(self.db, entry.id) is not None
                how = "; its history holds it" if copied else ""
                self.wrong("content", entry.id, f"the text is not the one that was written{how}", derived=copied)
                self._past(kept, entry)
                continue
            if self.commitments.get(("entry", entry.id, entry.version)) != commitment(kept.salt, entry.content):
                self.wrong("content", entry.id, "the log does not vouch for this text")
            if _Derived.by(entry) != _Derived.kept(kept):
                self.wrong("index", entry.id, "terms or key do not follow from the text", derived=True)
            if not kept.room_fits or kept.visibility != VISIBILITY[entry.state]:
                self.wrong("partition", entry.id, "indexed in a partition that is not its own", derived=True)
            self._past(kept, entry)

    def pages(self) -> None:
        """Named entries and documents with all their versions, against what the log committed to."""
        secret, rows = one_value(self.db, sql.META), SqliteRows(self.db)
        for kind in _PAGES:
            past = {one.key: one for one in kind.marked(self.db, rows.select(kind.past), secret)}
            for one in kind.marked(self.db, rows.select(kind.present), secret):
                copy = past.get(one.key)
                if one.page.damaged:
                    mends = copy is not None and not copy.page.damaged
                    how = "; its history holds the right one" if mends else ""
                    self.wrong("content", one.name, f"the log does not vouch for this text{how}", derived=mends)
            for one in past.values():
                if one.page.damaged:
                    self.wrong("versions", one.name, f"the log does not vouch for version {one.page.version}")

    def grants(self) -> None:
        """A grant is the last one that the log committed to: neither widened nor brought back behind its back."""
        secret = one_value(self.db, sql.META)
        for grant in SqliteRows(self.db).select(tables.ALL_GRANTS):
            last = ("grant", grant.id, grant.version + 1) not in self.commitments
            if not last or self.commitments.get(("grant", grant.id, grant.version)) != commitment(
                secret, grant_text(grant)
            ):
                self.wrong("grant", grant.id, "the log does not vouch for this grant")

    def items(self) -> None:
        """Every item is the one that the log last committed to, and none that it knows of is missing."""
        expected = dict(self.item_commitments)
        for path, key, value, value_hash, salt in stream(self.db, sql.ALL_ITEMS):
            id = item_id(salt, ItemAddress(namespace_of(path), key))
            if not intact(value, value_hash):
                self.wrong("content", id, "the value is not the one that was written")
            if expected.pop(id, None) != commitment(salt, value.decode(errors="replace")):
                self.wrong("content", id, "the log does not vouch for this value")
        for id in expected:
            self.wrong("content", id, "the log knows an item that is gone")

    def item_prefixes(self) -> None:
        for id, path, found in all_rows(self.db, sql.ALL_SPACES):
            if sorted(json.loads(found)) != sorted(prefixes(namespace_of(path))):
                self.wrong("namespace", id, "is not found by each of its beginnings", derived=True)

    def item_vectors(self) -> None:
        for row in stream(self.db, sql.ALL_ITEM_VECTORS):
            if fault := _vector_fault(row):
                self.wrong("vector", f"item vector {row[0]}", fault, derived=True)

    def _past(self, kept: _Kept, entry: Entry) -> None:
        rows = all_rows(self.db, sql.VERSIONS_OF_ROW, (kept.rowid,))
        if [number for number, _ in rows] != list(range(1, entry.version + 1)) and not entry.damaged:
            self.wrong("versions", entry.id, "its history has gaps")
            return
        found = [version_of(text, number, self._committed(entry.id, number), kept.salt) for number, text in rows]
        for (number, _), one in zip(rows, found, strict=True):
            if one is None or one.damaged:
                self.wrong("versions", entry.id, f"version {number} is not the text that was written")
        last = found[-1] if found else None
        if last is not None and not last.damaged and not entry.damaged and last != entry:
            self.wrong("versions", entry.id, "the row is not its last version")

    def _committed(self, id: str, version: int) -> str | None:
        return self.commitments.get(("entry", id, version))

    def utterances(self) -> None:
        for _, transcript, id, text_hash, text in stream(self.db, sql.ALL_UTTERANCES):
            if not intact(text, text_hash):
                self.wrong("content", f"{transcript}/{id}", "the message is not the one that was kept")

    def utterance_index(self) -> None:
        kept = [row[0] for row in stream(self.db, sql.ALL_UTTERANCES)]
        if kept != [id for (id,) in stream(self.db, sql.INDEXED_UTTERANCES)]:
            self.wrong("index", "utterances", "the index of messages does not match them", derived=True)

    def index(self) -> None:
        """Every term of every row, no more and no less; then what ranking rests on: lengths and totals."""
        indexed, last = _indexed(self.db), one_value(self.db, sql.LAST_INDEXED)
        frequencies: Counter[str] = Counter()
        doc, actual = next(indexed, _END)
        for row in stream(self.db, sql.ALL_ENTRIES):
            kept = _Kept.of(row)
            while doc < kept.rowid:
                self.wrong("index", doc, "the keyword index holds a row that is gone", derived=True)
                doc, actual = next(indexed, _END)
            fed = kept.rowid <= last
            expected = Counter(token(kept.partition, t) for t in kept.terms.split() if fed)
            frequencies.update(expected.keys())
            found: dict[str, int] = {}
            if doc == kept.rowid:
                found, (doc, actual) = actual, next(indexed, _END)
            if expected != found:
                self.wrong("index", row[0], "the keyword index does not match the row", derived=True)
        if doc != _END[0]:
            self.wrong("index", doc, "the keyword index holds rows that are gone", derived=True)
        # A scan reads every page; a search seeks. A seek must find every row that the scan finds.
        for term, frequency in frequencies.items():
            if all_rows(self.db, sql.FREQUENCIES, (json_list([term]),)) != [(term, frequency)]:
                self.wrong("index", term, "the keyword index does not find what it holds", derived=True)
        self._index_sizes()

    def _index_sizes(self) -> None:
        lengths = {id: _varints(size) for id, size in stream(self.db, sql.INDEX_LENGTHS)}
        if lengths != {rowid: [length] for rowid, length in self.lengths.items()}:
            self.wrong("index", "lengths", "the keyword index has wrong lengths", derived=True)
        totals = one_value(self.db, sql.INDEX_TOTALS)
        expected = [len(self.lengths), sum(self.lengths.values())]
        if self.lengths and (totals is None or _varints(totals) != expected):
            self.wrong("index", "totals", "the keyword index has wrong totals", derived=True)

    def partitions(self) -> None:
        for id, *counts in all_rows(self.db, sql.PARTITION_COUNTS):
            if counts[:3] != counts[3:]:
                self.wrong("partition", id, f"counts {counts[:3]} should be {counts[3:]}", derived=True)

    def vectors(self) -> None:
        for row in stream(self.db, sql.ALL_VECTORS):
            if fault := _vector_fault(row):
                self.wrong("vector", row[1] or f"seq {row[0]}", fault, derived=True)

    def vector_blobs(self) -> None:
        for partition, model in vector_blobs.faults(self.db):
            self.wrong("pack", f"partition {partition}", f"not the vectors of model {model}", derived=True)


def check(db: apsw.Connection) -> list[Finding]:
    pass_ = _Check(db)
    steps = (
        *(pass_.file, pass_.chain, pass_.entries, pass_.pages, pass_.grants, pass_.items, pass_.utterances),
        *(pass_.index, pass_.partitions, pass_.vectors, pass_.vector_blobs, pass_.item_prefixes, pass_.item_vectors),
        pass_.utterance_index,
    )
    for step in steps:
        try:
            step()
        except (apsw.Error, LukasaError, *UNREADABLE) as error:
            # Damage shows as any of these: what cannot be read cannot be trusted, and the other steps still run.
            derived = step.__name__ in _DERIVED or "fts" in str(error)
            pass_.wrong(step.__name__, "memory.db", f"cannot be read: {str(error)[:300]}", derived=derived)
    return pass_.findings


@dataclass(frozen=True)
class _Page:
    name: str
    page: NamedEntry | Document

    @property
    def key(self) -> tuple[str, int]:
        return self.name, self.page.version


@dataclass(frozen=True)
class _PageKind:
    """Named entries or documents: where their present and their past texts are, and how their events begin."""

    family: str
    present: Query[Any]
    past: Query[Any]

    def marked(self, db: apsw.Connection, found: Sequence[Any], secret: bytes) -> list[_Page]:
        known = commitments(db, self.family, map(page_name, found)) if found else {}
        return [_Page(page_name(page), page) for page in pages(found, known, secret)]


_PAGES = (
    _PageKind("named", tables.ALL_NAMED, tables.ALL_NAMED_VERSIONS),
    _PageKind("document", tables.ALL_DOCUMENTS, tables.ALL_DOCUMENT_VERSIONS),
)
_DERIVED = frozenset(
    {"index", "partitions", "vectors", "vector_blobs", "item_prefixes", "item_vectors", "utterance_index"}
)


_END: tuple[int, dict[str, int]] = (2**63 - 1, {})


def _indexed(db: apsw.Connection) -> Iterator[tuple[int, dict[str, int]]]:
    """The rows of the keyword index in order, each with its terms and their counts."""
    for doc, rows in groupby(stream(db, sql.INDEXED), key=lambda row: int(row[0])):
        yield doc, {term: count for _, term, count in rows}


def _varints(data: bytes) -> list[int]:
    """SQLite's variable-length integers, big end first, seven bits a byte."""
    values, value = [], 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            values.append(value)
            value = 0
    return values


def _vector_fault(row: Row) -> str:
    _, id, vector, checksum, dimensions, text_hash, in_place = row
    if id is None or dimensions is None:
        return "belongs to no entry or model"
    if len(vector) != 4 * dimensions or not np.isfinite(np.frombuffer(vector, dtype="<f4")).all():
        return "is not a finite vector of its model"
    if vector_checksum(text_hash, vector) != checksum:
        return "was not computed from this text"
    return "" if in_place else "is indexed in a partition that is not its entry's"


def rebuild(db: apsw.Connection) -> None:
    """Inside a write transaction: all that can be computed from the rows is, and texts that have a sound copy."""
    _mend(db)
    _drop(db, sql.DROP_VECTOR, [row[0] for row in stream(db, sql.ALL_VECTORS) if _vector_fault(row)])
    _drop(db, sql.DROP_ITEM_VECTOR, [row[0] for row in stream(db, sql.ALL_ITEM_VECTORS) if _vector_fault(row)])
    try:
        db.execute(sql.EMPTY_INDEX)
    except apsw.Error:
        for statement in sql.REMAKE_INDEX:
            db.execute(statement)
    last = 0
    for last, partition, terms in _reindexed(db):
        db.execute(sql.INDEX_ROW, (last, tokens(partition, terms)))
    db.execute(sql.SET_LAST_INDEXED, (last,))
    db.execute(sql.RECOUNT)
    vector_blobs.rebuild(db)
    db.execute(sql.ITEM_VECTORS_REMOVED_SOMEWHERE)
    db.execute(sql.EMPTY_PREFIXES)
    for id, path, _ in all_rows(db, sql.ALL_SPACES):
        for prefix in prefixes(namespace_of(path)):
            db.execute(sql.NEW_PREFIX, (prefix, id))
    SqliteRows(db).rebuild_utterances()
    db.execute(sql.SET_TOKENIZER, (TOKENIZER_VERSION,))


def _mend(db: apsw.Connection) -> None:
    """Put the last version of an entry in place of a row that is not what was written."""
    for row in all_rows(db, sql.ALL_ENTRIES):
        entry = checked_entry(row)
        copy = _sound_copy(db, entry.id) if entry.damaged else None
        if copy is not None:
            columns = entry_columns(copy)
            db.execute(sql.MEND_ENTRY, (*(columns[name] for name in sql.MENDED_COLUMNS), _Kept.of(row).rowid))
    secret, rows = one_value(db, sql.META), SqliteRows(db)
    for kind in _PAGES:
        past = {one.key: one.page for one in kind.marked(db, rows.select(kind.past), secret) if not one.page.damaged}
        for one in kind.marked(db, rows.select(kind.present), secret):
            if one.page.damaged and one.key in past:
                rows.save(kind.present.table, past[one.key])


def _sound_copy(db: apsw.Connection, id: str) -> Entry | None:
    return sound_copy(id, all_rows(db, sql.VERSIONS, (id,)), commitments(db, "entry", [id]))


def _drop(db: apsw.Connection, statement: str, seqs: Iterable[int]) -> None:
    for seq in seqs:
        db.execute(statement, (seq,))


def _reindexed(db: apsw.Connection) -> Iterator[tuple[int, int, list[str]]]:
    """Rows with the terms and the partition they should have, corrected where they have others."""
    for row in all_rows(db, sql.ALL_ENTRIES):
        entry, kept = checked_entry(row), _Kept.of(row)
        if entry.damaged:
            yield kept.rowid, kept.partition, kept.terms.split()
            continue
        partition = partition_id(db, scope_id(db, entry.scope), entry)
        expected = _Derived.by(entry)
        if (partition, expected) != (kept.partition, _Derived.kept(kept)):
            db.execute(sql.REINDEX_ENTRY, (partition, *expected, kept.rowid))
        yield kept.rowid, partition, expected.terms.split()
