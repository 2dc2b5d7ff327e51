"""Verify a store against itself, and rebuild its derived state: what is the same for every engine with tables.

An engine gives its statements, a way to run them, and the steps that are about what only it has. A check reads row by
row and holds one batch of rows; apart from that, it holds one small record an item.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

from lukasa.model.arrays import np
from lukasa.model.citation import CITED, Citation, citations_text
from lukasa.model.corpus import Unsplit
from lukasa.model.entry import Document, Entry, NamedEntry
from lukasa.model.errors import UNREADABLE, Damaged
from lukasa.model.events import chain_faults
from lukasa.model.item import ItemAddress, beginnings, item_id, namespace_of
from lukasa.model.text import TOKENIZER_VERSION, commitment
from lukasa.model.values import VISIBILITY
from lukasa.storage import seals, tables
from lukasa.storage.backend import Rows, get
from lukasa.storage.codec import Query, TextTable
from lukasa.storage.entry_codec import checked_entry, entry_columns, vector_checksum
from lukasa.storage.operations import grant_text
from lukasa.storage.port import Finding

BATCH = 200  # rows whose histories and events are asked together
Row = tuple[Any, ...]
Value = TypeVar("Value")


class Statements(Protocol):
    """The statements that a check and a rebuild run: the same columns and values for every engine."""

    ALL_ENTRIES: str
    VERSIONS: str
    VERSIONS_OF_ROWS: str
    LOST_ENTRIES: str
    EVENTS_ABOUT: str
    ALL_ITEMS: str
    ITEM_EVENTS: str
    ALL_SPACES: str
    ALL_UTTERANCES: str
    ALL_PASSAGES: str
    PARTITION_COUNTS: str
    DROP_VECTOR: str
    DROP_ITEM_VECTOR: str
    DROP_PASSAGE_VECTOR: str
    EMPTY_PREFIXES: str
    NEW_PREFIXES: str
    REINDEX_ENTRY: str
    MEND_ENTRY: str
    MENDED_COLUMNS: list[str]
    RECOUNT: str
    SET_TOKENIZER: str


class StoredVector(NamedTuple):
    """A vector with what it must agree with. `key` finds its row; `id` and `text_hash` are of what it belongs to."""

    key: Row
    id: str | None
    vector: bytes
    checksum: str
    dimensions: int | None
    text_hash: str
    in_place: bool


class Engine(Protocol):
    """One store in one transaction: a snapshot to check it, or a transaction that writes to rebuild it."""

    sql: Statements
    name: str  # what findings call the store, where nothing in it can be named
    errors: tuple[type[Exception], ...]  # those of the engine that mean damage

    @property
    def rows(self) -> Rows: ...
    @property
    def secret(self) -> bytes: ...
    def all(self, statement: str, *values: Any) -> list[Row]: ...
    def stream(self, statement: str, *values: Any) -> Iterator[Row]:
        """Give row by row what may not fit in memory."""
        ...

    def settled(self, statement: str, *values: Any) -> Iterable[Row]:
        """Give rows as they are now, whatever is changed while they are read."""
        ...

    def walk(self, query: Query[Value], *values: Any) -> Iterator[Value]:
        """Give the values of a query one by one."""
        ...

    def run(self, statement: str, *values: Any) -> object: ...
    def apart(self) -> AbstractContextManager[object]:
        """Run a step so that its failure leaves the transaction usable."""
        ...

    def is_derived(self, error: Exception) -> bool:
        """Whether an error is about something that a rebuild makes anew, whichever step met it."""
        ...

    def vectors(self) -> Iterator[StoredVector]: ...
    def item_vectors(self) -> Iterator[StoredVector]: ...
    def passage_vectors(self) -> Iterator[StoredVector]: ...
    def columns(self, entry: Entry) -> dict[str, Any]:
        """Return the columns that follow from an entry, by name: those that `MENDED_COLUMNS` names."""
        ...

    # Rebuilding
    def partition(self, entry: Entry) -> int: ...
    def empty_index(self) -> None: ...
    def index(self, row: int, partition: int, terms: list[str]) -> None:
        """Add a row, the next one in their order, to the keyword index."""
        ...

    def finish_index(self) -> None: ...
    def rebuild_own(self) -> None:
        """Make again what only this engine derives from vectors and partitions."""
        ...

    def rebuild_texts(self, table: TextTable[Any]) -> None:
        """Make the keyword index of a table of texts again."""
        ...


class Step(NamedTuple):
    """A part of a check. If it cannot be read at all, that is `derived` if a rebuild makes it anew."""

    name: str
    faults: Callable[[], Iterator[Finding]]
    derived: bool = False


def steps(engine: Engine) -> list[Step]:
    """Return the steps that every engine has."""
    truth = (_chain, _entries, _pages, _grants, _citations, _items, _utterances)
    derived = (_partitions, _vectors, _item_prefixes, _item_vectors, _passages, _passage_vectors)
    return [_step(engine, step) for step in truth] + [_step(engine, step, derived=True) for step in derived]


def _step(engine: Engine, faults: Callable[[Engine], Iterator[Finding]], *, derived: bool = False) -> Step:
    return Step(faults.__name__.lstrip("_"), lambda: faults(engine), derived)


def check(engine: Engine, steps: Iterable[Step]) -> list[Finding]:
    """Run steps one after the other. What cannot be read cannot be trusted, and the other steps still run."""
    found: list[Finding] = []
    unreadable: tuple[type[Exception], ...] = (*engine.errors, Damaged, *UNREADABLE)
    for step in steps:
        try:
            with engine.apart():
                found.extend(step.faults())
        except unreadable as error:
            derived = step.derived or engine.is_derived(error)
            found.append(Finding(step.name, engine.name, f"cannot be read: {str(error)[:300]}", derived))
    return found


def wrong(what: str, subject: object, detail: str, *, derived: bool = False) -> Finding:
    return Finding(what, str(subject), detail, derived)


def batches(values: Iterable[Value], size: int = BATCH) -> Iterator[list[Value]]:
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch


# Entries


class Kept(NamedTuple):
    """The columns of `ALL_ENTRIES` behind those of the entry itself."""

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
    def of(cls, row: Row) -> Kept:
        return cls(*row[-len(cls._fields) :])


class _Derived(NamedTuple):
    """The columns of a row that follow from its entry, in the order of `REINDEX_ENTRY`."""

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
    def kept(cls, kept: Kept) -> _Derived:
        return cls(*(getattr(kept, name) for name in cls._fields))


def _chain(engine: Engine) -> Iterator[Finding]:
    for fault in chain_faults(engine.walk(tables.EVENTS_AFTER, 0, None), head=engine.rows.head()):
        yield wrong("chain", "events", fault)


def _entries(engine: Engine) -> Iterator[Finding]:
    """Each row with its history, against what the log committed to; and entries that it knows and that are gone."""
    for batch in batches(engine.stream(engine.sql.ALL_ENTRIES)):
        found = [(checked_entry(row), Kept.of(row)) for row in batch]
        known = _commitments(engine, "entry", [entry.id for entry, _ in found])
        past: dict[int, list[tuple[int, bytes]]] = {}
        for row, number, text in engine.all(engine.sql.VERSIONS_OF_ROWS, [kept.rowid for _, kept in found]):
            past.setdefault(row, []).append((number, text))
        for entry, kept in found:
            yield from _row_faults(engine, entry, kept, known)
            yield from _history_faults(entry, past.get(kept.rowid, []), known, kept.salt)
    for (id,) in engine.stream(engine.sql.LOST_ENTRIES):
        yield wrong("content", id, "the log knows an entry that is gone")


def _row_faults(engine: Engine, entry: Entry, kept: Kept, known: seals.Commitments) -> Iterator[Finding]:
    if entry.damaged:
        copied = _sound_copy(engine, entry.id) is not None
        how = "; its history holds it" if copied else ""
        yield wrong("content", entry.id, f"the text is not the one that was written{how}", derived=copied)
        return
    if known.get((entry.id, entry.version)) != commitment(kept.salt, entry.content):
        yield wrong("content", entry.id, "the log does not vouch for this text")
    if _Derived.by(entry) != _Derived.kept(kept):
        yield wrong("index", entry.id, "terms or key do not follow from the text", derived=True)
    if not kept.room_fits or kept.visibility != VISIBILITY[entry.state]:
        yield wrong("partition", entry.id, "indexed in a partition that is not its own", derived=True)


def _history_faults(
    entry: Entry, rows: Sequence[tuple[int, bytes]], known: seals.Commitments, salt: bytes
) -> Iterator[Finding]:
    if [number for number, _ in rows] != list(range(1, entry.version + 1)) and not entry.damaged:
        yield wrong("versions", entry.id, "its history has gaps")
        return
    found = [seals.version_of(text, number, known.get((entry.id, number)), salt) for number, text in rows]
    for (number, _), one in zip(rows, found, strict=True):
        if one is None or one.damaged:
            yield wrong("versions", entry.id, f"version {number} is not the text that was written")
    last = found[-1] if found else None
    if last is not None and not last.damaged and not entry.damaged and last != entry:
        yield wrong("versions", entry.id, "the row is not its last version")


def _sound_copy(engine: Engine, id: str) -> Entry | None:
    return seals.sound_copy(id, engine.all(engine.sql.VERSIONS, id), _commitments(engine, "entry", [id]))


def _commitments(engine: Engine, family: str, subjects: Iterable[str]) -> seals.Commitments:
    return seals.commitments(engine.all(engine.sql.EVENTS_ABOUT, list(set(subjects))), family)


# Named entries, documents and grants


class _Pages(NamedTuple):
    """Named entries or documents: where their present and their past texts are, and how their events begin."""

    family: str
    present: Query[Any]
    past: Query[Any]

    def marked(self, engine: Engine, query: Query[Any]) -> Iterator[NamedEntry | Document]:
        """Give what a query has, each one marked if the log does not vouch for its text."""
        for batch in batches(engine.walk(query)):
            known = _commitments(engine, self.family, map(seals.page_name, batch))
            yield from seals.pages(batch, known, engine.secret)

    def sound_copy(self, engine: Engine, page: NamedEntry | Document) -> NamedEntry | Document | None:
        """Return the page of this name and version from the history, if the log vouches for it."""
        name = seals.page_name(page)
        found = engine.rows.select(self.past.table.one, name, page.version, limit=1)
        for copy in seals.pages(found, _commitments(engine, self.family, [name]), engine.secret):
            if not copy.damaged:
                return copy  # type: ignore[no-any-return]
        return None


_PAGES = (
    _Pages("named", tables.ALL_NAMED, tables.ALL_NAMED_VERSIONS),
    _Pages("document", tables.ALL_DOCUMENTS, tables.ALL_DOCUMENT_VERSIONS),
)


def _pages(engine: Engine) -> Iterator[Finding]:
    """Named entries and documents with all their versions, against what the log committed to."""
    for kind in _PAGES:
        for page in kind.marked(engine, kind.present):
            if page.damaged:
                mends = kind.sound_copy(engine, page) is not None
                how = "; its history holds the right one" if mends else ""
                yield wrong(
                    "content", seals.page_name(page), f"the log does not vouch for this text{how}", derived=mends
                )
        for page in kind.marked(engine, kind.past):
            if page.damaged:
                yield wrong("versions", seals.page_name(page), f"the log does not vouch for version {page.version}")


def _grants(engine: Engine) -> Iterator[Finding]:
    """A grant is the last one that the log committed to: neither widened nor brought back behind its back."""
    for batch in batches(engine.walk(tables.ALL_GRANTS)):
        known = _commitments(engine, "grant", [grant.id for grant in batch])
        for grant in batch:
            if not grant.digest:  # it came from an export, without its credential: it opens nothing to anybody
                continue
            last = (grant.id, grant.version + 1) not in known
            if not last or known.get((grant.id, grant.version)) != commitment(engine.secret, grant_text(grant)):
                yield wrong("grant", grant.id, "the log does not vouch for this grant")


def _citations(engine: Engine) -> Iterator[Finding]:
    """What an entry cites is what the log last committed to."""
    known: dict[str, str] = {}
    for event in engine.walk(tables.EVENTS_OF_ACTIONS, [CITED]):
        if event.detail.get("citations"):
            known[event.subject] = str(event.detail.get("commitment"))
        else:
            known.pop(event.subject, None)
    there: dict[str, list[Citation]] = {}
    for one in engine.walk(tables.ALL_CITATIONS):
        there.setdefault(one.entry, []).append(one)
    for batch in batches(list(dict.fromkeys((*known, *there)))):
        gone = {id for id, gone in engine.rows.used_ids(batch).items() if gone}
        for id in batch:
            stored = None if id in gone else engine.rows.stored_entry(id)
            if stored is None:
                continue
            if known.get(id, "") != (commitment(stored.salt, citations_text(tuple(there[id]))) if id in there else ""):
                yield wrong("citation", id, "the log does not vouch for what this entry cites")


# Items and messages


def _items(engine: Engine) -> Iterator[Finding]:
    """Every item is the one that the log last committed to, and none that it knows of is missing."""
    expected: dict[str, str] = {}
    for action, id, detail in engine.stream(engine.sql.ITEM_EVENTS):
        expected.pop(id, None)
        if action == "item.saved":
            expected[id] = ""
            with suppress(*UNREADABLE):  # an event that cannot be read vouches for nothing
                expected[id] = json.loads(detail)["commitment"]
    for path, key, value, value_hash, salt in engine.stream(engine.sql.ALL_ITEMS):
        id = item_id(salt, ItemAddress(namespace_of(path), key))
        if not seals.intact(value, value_hash):
            yield wrong("content", id, "the value is not the one that was written")
        if expected.pop(id, None) != commitment(salt, value.decode(errors="replace")):
            yield wrong("content", id, "the log does not vouch for this value")
    for id in expected:
        yield wrong("content", id, "the log knows an item that is gone")


def _item_prefixes(engine: Engine) -> Iterator[Finding]:
    for id, path, found in engine.stream(engine.sql.ALL_SPACES):
        if sorted(json.loads(found)) != sorted(beginnings(namespace_of(path))):
            yield wrong("namespace", id, "is not found by each of its beginnings", derived=True)


def _utterances(engine: Engine) -> Iterator[Finding]:
    for _, transcript, id, text_hash, text, *_ in engine.stream(engine.sql.ALL_UTTERANCES):
        if not seals.intact(text, text_hash):
            yield wrong("content", f"{transcript}/{id}", "the message is not the one that was kept")


# Derived state


def _passages(engine: Engine) -> Iterator[Finding]:
    """The passages of a document are of its present version, and each is what was written."""
    for document, number, fault in _passage_faults(engine):
        yield wrong("passage", f"{document}#{number}", fault, derived=True)


def _passage_faults(engine: Engine) -> Iterator[tuple[str, int, str]]:
    for document, number, version, text_hash, text, current, removed in engine.stream(engine.sql.ALL_PASSAGES):
        if current is None or removed:
            yield document, number, "belongs to no document"
        elif version != current:
            yield document, number, f"is of version {version}, and the document is at version {current}"
        elif not seals.intact(text, text_hash):
            yield document, number, "is not the text that was written"


def _passage_vectors(engine: Engine) -> Iterator[Finding]:
    for one in engine.passage_vectors():
        if fault := _vector_fault(one):
            yield wrong("vector", f"passage vector {one.key[0]}", fault, derived=True)


def _partitions(engine: Engine) -> Iterator[Finding]:
    for id, *counts in engine.all(engine.sql.PARTITION_COUNTS):
        if counts[:3] != counts[3:]:
            yield wrong("partition", id, f"counts {counts[:3]} should be {counts[3:]}", derived=True)


def _vectors(engine: Engine) -> Iterator[Finding]:
    for one in engine.vectors():
        if fault := _vector_fault(one):
            yield wrong("vector", one.id or f"seq {one.key[0]}", fault, derived=True)


def _item_vectors(engine: Engine) -> Iterator[Finding]:
    for one in engine.item_vectors():
        if fault := _vector_fault(one):
            yield wrong("vector", f"item vector {one.key[0]}", fault, derived=True)


def _vector_fault(one: StoredVector) -> str:
    if one.id is None or one.dimensions is None:
        return "belongs to no entry or model"
    if len(one.vector) != 4 * one.dimensions or not np.isfinite(np.frombuffer(one.vector, dtype="<f4")).all():
        return "is not a finite vector of its model"
    if vector_checksum(one.text_hash, one.vector) != one.checksum:
        return "was not computed from this text"
    return "" if one.in_place else "is indexed in a partition that is not its entry's"


# Rebuilding


def rebuild(engine: Engine) -> None:
    """Inside a write transaction: all that can be computed from the rows is, and texts that have a sound copy."""
    sql = engine.sql
    _mend(engine)
    _unsplit(engine)
    engine.empty_index()
    for row, partition, terms in _reindexed(engine):
        engine.index(row, partition, terms)
    engine.finish_index()
    kinds = (
        (sql.DROP_VECTOR, engine.vectors),
        (sql.DROP_ITEM_VECTOR, engine.item_vectors),
        (sql.DROP_PASSAGE_VECTOR, engine.passage_vectors),
    )
    for statement, vectors in kinds:
        for key in [one.key for one in vectors() if _vector_fault(one)]:
            engine.run(statement, *key)
    engine.run(sql.RECOUNT)
    engine.rebuild_own()
    engine.run(sql.EMPTY_PREFIXES)
    for id, path, _ in engine.settled(sql.ALL_SPACES):
        engine.run(sql.NEW_PREFIXES, beginnings(namespace_of(path)), id)
    for table in tables.text_tables():
        engine.rebuild_texts(table)
    engine.run(sql.SET_TOKENIZER, TOKENIZER_VERSION)


def _mend(engine: Engine) -> None:
    """Put the last version of an entry in place of a row that is not what was written; the same for pages."""
    for row in engine.settled(engine.sql.ALL_ENTRIES):
        entry = checked_entry(row)
        copy = _sound_copy(engine, entry.id) if entry.damaged else None
        if copy is not None:
            columns = engine.columns(copy)
            engine.run(
                engine.sql.MEND_ENTRY, Kept.of(row).rowid, *(columns[name] for name in engine.sql.MENDED_COLUMNS)
            )
    for kind in _PAGES:
        for page in [page for page in kind.marked(engine, kind.present) if page.damaged]:
            sound = kind.sound_copy(engine, page)
            if sound is not None:
                engine.rows.save(kind.present.table, sound)


def _unsplit(engine: Engine) -> None:
    """Drop the passages of documents of which one is not as it should be: they are split again."""
    for id in {document for document, _, _ in _passage_faults(engine)}:
        engine.rows.drop_texts(tables.PASSAGES_OF, [id])
        document = get(engine.rows, tables.DOCUMENTS, id)
        if document is not None and not document.removed:
            engine.rows.save(tables.UNSPLIT, Unsplit(id))


def _reindexed(engine: Engine) -> Iterator[tuple[int, int, list[str]]]:
    """Rows with the terms and the partition they should have, corrected where they have others."""
    for row in engine.settled(engine.sql.ALL_ENTRIES):
        entry, kept = checked_entry(row), Kept.of(row)
        if entry.damaged:
            yield kept.rowid, kept.partition, kept.terms.split()
            continue
        partition, expected = engine.partition(entry), _Derived.by(entry)
        if (partition, expected) != (kept.partition, _Derived.kept(kept)):
            engine.run(engine.sql.REINDEX_ENTRY, kept.rowid, partition, *expected)
        yield kept.rowid, partition, expected.terms.split()
