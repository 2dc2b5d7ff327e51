"""Move memory out of a data folder, and into one: `storage.transfer` says what moves, and in which order."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path

import apsw

from lukasa.model import system
from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.errors import Conflict, StoreBusy, StoreError, StoreMissing, StoreUnfinished
from lukasa.model.item import beginnings, namespace_of
from lukasa.storage import sqlite, tables, transfer
from lukasa.storage.port import Finding
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.entries import index_pending
from lukasa.storage.sqlite.execute import all_rows, json_list, one_value
from lukasa.storage.sqlite.sqlite_rows import DIALECT, SqliteRows
from lukasa.storage.sqlite.sqlite_store import SqliteStore
from lukasa.storage.sqlite.store_files import (
    ACCESS,
    MEMORY,
    MEMORY_FILES,
    MOVING,
    Role,
    missing,
    os_errors,
    put_in_place,
)
from lukasa.storage.transfer import (
    PARTS,
    THE_ACCOUNT,
    About,
    Chosen,
    Given,
    Mark,
    Page,
    Part,
    Row,
    Spelling,
    Taking,
)

ACCOUNT, WORKSPACES = "account", "workspaces"
_SPELLING = Spelling(
    "?",
    sources={
        "item_vectors": "(SELECT v.seq AS place, v.space, i.key, v.model_id, v.field, v.checksum, v.vector"
        " FROM item_vectors AS v JOIN items AS i ON i.rowid = v.item)",
        "passage_vectors": "(SELECT v.seq AS place, p.document, p.number, v.model_id, v.checksum, v.vector"
        " FROM passage_vectors AS v JOIN passages AS p ON p.rowid = v.passage)",
    },
)
_INSERTS = {part.name: _SPELLING.insert(part) for part in transfer.PARTS} | {
    tables.TELEMETRY.name: DIALECT.insert(tables.TELEMETRY),
    tables.DISCLOSURES.name: DIALECT.insert(tables.DISCLOSURES),
    transfer.VECTORS.name: sql.NEW_VECTOR,
    transfer.ITEM_VECTORS.name: sql.NEW_NAMED_ITEM_VECTOR,
    transfer.PASSAGE_VECTORS.name: sql.TAKE_NAMED_PASSAGE_VECTOR,
}
_SEQ, _DIGEST = (tables.EVENTS.positions[name] for name in ("seq", "digest"))

_PATIENCE = 20.0  # seconds to wait for a writer: less than writers wait
_REMOVED = Mark("removed", "", {})


class SqlitePages:
    """One store of a folder, as a move reads and fills it."""

    def __init__(self, store: SqliteStore, id: str, role: Role) -> None:
        self._store, self._id, self._role = store, id, role

    @property
    def about(self) -> About:
        with self._store._connections.asking() as db:
            ((secret, tokenizer, created_at),) = all_rows(db, sql.ORIGIN)
            ((last, _),) = all_rows(db, sql.LAST_ROW_EVER)
            return About(self._id, self._role, secret, tokenizer, created_at, SqliteRows(db).head(), last)

    @contextmanager
    def _tables(self, part: Part) -> Iterator[apsw.Connection]:
        connections = self._store._connections
        with connections.counting() if part is transfer.ACCESS else connections.asking() as db:
            yield db

    def snapshot(self) -> AbstractContextManager[object]:
        """Nothing to do: a store that is held is not written to, and one that is taken in by nobody else."""
        return nullcontext()

    def counts(self) -> list[int]:
        *others, access = PARTS
        with self._tables(others[0]) as db, self._tables(access) as counts:
            found = [*all_rows(db, _SPELLING.counts(others)), *all_rows(counts, _SPELLING.counts([access]))]
        return [count for _, count in found]

    def rows(self, part: Part, *, after: Row = (), skip: int = 0) -> Sequence[Row]:
        with self._tables(part) as db:
            return all_rows(db, _SPELLING.page(part, behind=bool(after)), (*after, part.page, skip))

    def digest_of(self, seq: int) -> str | None:
        with self._store._connections.asking() as db:
            found: str | None = one_value(db, sql.DIGEST_OF, (seq,))
            return found

    def workspaces(self) -> list[WorkspaceInfo]:
        with self._store._connections.asking() as db:
            return SqliteRows(db).select(tables.ALL_WORKSPACES)

    def check(self) -> list[Finding]:
        with self._store._connections.asking() as db:
            return sqlite.integrity.check(db)

    @contextmanager
    def held(self) -> Iterator[SqlitePages]:
        """Keep everybody else from writing, memory as well as access counts."""
        connections = self._store._connections
        with connections.writing(), connections.counting() as counts:
            counts.execute(sql.BEGIN_WRITE)
            try:
                yield self
            finally:
                counts.execute(sql.ROLLBACK)

    # Taking in

    def furnish(self, about: About) -> None:
        """Give a new store the secret of its origin, by which its log vouches for its texts."""
        with self._store._writing() as rows:
            rows.db.execute(sql.SET_ORIGIN, (about.secret, about.tokenizer, about.created_at))

    def empty_access(self) -> None:
        with self._tables(transfer.ACCESS) as counts:
            counts.execute(sql.EMPTY_ACCESS)

    def take_in(self, pages: Sequence[Page]) -> None:
        with self._store._writing() as writer:
            for part, rows in pages:
                if part is not transfer.ACCESS:
                    _add(writer, part, rows)
        for part, rows in pages:
            if part is transfer.ACCESS:
                with self._tables(part) as counts, counts:
                    counts.executemany(_INSERTS[part.name], rows)

    def complete(self, last_entry: int) -> None:
        with self._store._writing() as rows:
            rows.db.execute(sql.SET_LAST_ENTRY, (last_entry,))
            rows.db.execute(sql.RECOUNT)
            rows.db.execute(sql.TIDY_INDEX)
            sqlite.vector_blobs.rebuild(rows.db)

    def close(self) -> None:
        self._store.close()


def _add(writer: SqliteRows, part: Part, rows: Sequence[Row]) -> None:
    """Insert rows of a part, and index what is found by its words."""
    db = writer.db
    if part in transfer.TEXTS:
        table = transfer.TEXTS[part]
        sqlite.text_rows.add(db, table, _INSERTS[part.name], [table.decode(tuple(row)) for row in rows])
        return
    db.executemany(_INSERTS[part.name], rows)
    if part is transfer.ENTRIES:
        index_pending(db, rows[-1][0])
    elif part is transfer.VECTORS:
        writer.grown.update([(partition, model) for _, model, partition, *_ in rows])
    elif part is transfer.ITEM_SPACES:
        for id, path in rows:
            db.execute(sql.NEW_PREFIXES, (json_list(beginnings(namespace_of(path))), id))
    elif part is transfer.EVENTS:
        writer.headed = rows[-1][_SEQ], rows[-1][_DIGEST]
        db.execute(sql.SET_HEAD, writer.headed)


class FolderMemory:
    """Implements `lukasa.storage.transfer.Origin` and `Target` for the databases of a data folder."""

    def __init__(self, data: Path) -> None:
        self.data, self.where = data, str(data.resolve())
        self._open: dict[str, SqlitePages] = {}

    def folder(self, id: str) -> Path:
        """Return the folder of a store."""
        return self.data / ACCOUNT if id == THE_ACCOUNT else self.data / WORKSPACES / id

    def close(self) -> None:
        """Close what was opened."""
        for pages in self._open.values():
            pages.close()
        self._open.clear()

    # Origin

    @contextmanager
    def held(self, chosen: Chosen) -> Iterator[Sequence[Given]]:
        if (self.data / MOVING).exists():
            self._finish_removal()
            raise StoreUnfinished(str(self.data))
        if not (self.data / ACCOUNT / MEMORY).exists():
            raise missing(self.data / ACCOUNT / MEMORY)
        _allow_many_files()
        with ExitStack() as stack:
            stack.callback(self.close)
            account = self._existing(THE_ACCOUNT)
            stores = [stack.enter_context(account.held())]
            for info in chosen(account.workspaces()):
                if info.ready or (self.folder(info.id) / MEMORY).exists():
                    stores.append(stack.enter_context(self._existing(info.id).held()))
            yield stores

    def _existing(self, id: str) -> SqlitePages:
        """Open a store that is there."""
        role: Role = "account" if id == THE_ACCOUNT else "workspace"
        pages = self._open[id] = SqlitePages(SqliteStore(self.folder(id), role=role, create=False), id, role)
        return pages

    def remove(self, heads: Mapping[str, tuple[int, str]]) -> None:
        self._write_mark(_REMOVED)  # if it is interrupted, nobody opens a part
        self.clear()

    def _finish_removal(self) -> None:
        """Remove what an interrupted removal has left, and say so."""
        if self._read_mark() == _REMOVED:
            self.clear()
            raise StoreMissing(
                f"{self.data}: its memory was moved away, and the rest of it is removed now",
                fix="use it where it was moved to",
            )

    def _read_mark(self) -> Mark:
        path = self.data / MOVING
        with os_errors(path):
            return Mark.read(path.read_text("utf-8"))

    # Target

    def mark(self) -> Mark | None:
        if (self.data / MOVING).exists():
            return self._read_mark()
        if self._holds_memory():
            raise self._taken()
        return None

    def _taken(self) -> Conflict:
        return Conflict(
            f"{self.data} holds memory already", fix="move to a folder without memory; the files of one may be there"
        )

    def _holds_memory(self) -> bool:
        """Whether there is memory, apart from an account of which nothing was ever kept."""
        if any((self.data / WORKSPACES).glob(f"*/{MEMORY}")):
            return True
        if not (self.data / ACCOUNT / MEMORY).exists():
            return False
        kept = self._existing(THE_ACCOUNT).about.head[0] > 0
        self.close()
        return kept

    def holds(self, mark: Mark) -> bool:
        try:
            stores = {id: self._existing(id) for id in mark.heads}
            whose = Mark.of("", [stores[THE_ACCOUNT].about]).origin
            kept = all(not seq or stores[id].digest_of(seq) == digest for id, (seq, digest) in mark.heads.items())
            return whose == mark.origin and kept
        except StoreMissing:
            return False
        finally:
            self.close()

    def begin(self, mark: Mark, stores: Sequence[About]) -> None:
        for folder in (self.data, self.data / WORKSPACES):
            with os_errors(folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write_mark(mark)  # from now on nobody opens it
        if self._holds_memory():
            (self.data / MOVING).unlink()
            raise self._taken()
        self._remove_stores()

    def _write_mark(self, mark: Mark) -> None:
        temporary = self.data / f"{MOVING}.new"
        with os_errors(temporary):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | system.CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(mark.text())
        put_in_place(temporary, self.data / MOVING)

    def store(self, about: About) -> SqlitePages:
        if about.id not in self._open:
            store = SqliteStore(self.folder(about.id), role=about.role, create=True)
            self._open[about.id] = SqlitePages(store, about.id, about.role)
            self._open[about.id].furnish(about)
        return self._open[about.id]

    def finish(self) -> None:
        self.close()
        with os_errors(self.data):
            (self.data / MOVING).unlink()

    def clear(self) -> None:
        if not (self.data / MOVING).exists():
            raise StoreError(f"{self.data} holds no unfinished move", fix="nothing was removed")
        self.close()
        self._remove_stores()
        with os_errors(self.data):
            (self.data / MOVING).unlink()

    def _remove_stores(self) -> None:
        """Remove the databases with the files beside them; other files of workspaces stay."""
        for folder in (self.data / ACCOUNT, *(self.data / WORKSPACES).glob("*")):
            remove_store(folder)


def remove_store(folder: Path) -> None:
    """Remove the databases of a folder with the files beside them; other files stay."""
    with os_errors(folder):
        sides = [path for name in (MEMORY, ACCESS) for path in folder.glob(f"{name}-*")]
        for path in (*sides, *(folder / name for name in MEMORY_FILES)):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()  # if nothing else was in it


class FolderGround:
    """Implements `lukasa.storage.transfer.Ground` for workspaces of a data folder.

    Nobody opens a store that the account does not list, so a half-filled one needs no mark.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._open: SqlitePages | None = None

    def begin(self, about: About) -> Taking:
        self.close()
        folder = self._data / WORKSPACES / about.id
        made = SqlitePages(SqliteStore(folder, role=about.role, create=True), about.id, about.role)
        self._open = made
        if made.about.secret != about.secret:
            if any(made.counts()):
                self.close()
                raise Conflict(f"{folder} holds other memory", fix="move that folder away, and try again")
            made.furnish(about)
        return made

    def left(self, about: About) -> bool:
        return (self._data / WORKSPACES / about.id / MEMORY).exists()

    def clear(self, about: About) -> None:
        self.close()
        remove_store(self._data / WORKSPACES / about.id)

    def finish(self, about: About) -> None:
        self.close()

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def _allow_many_files() -> None:
    """Raise this process's limit of open files as far as it may: every workspace keeps its databases open."""
    with suppress(ImportError, ValueError, OSError):
        resource = import_module("resource")
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _lock_soon(stack: ExitStack, store: SqliteStore) -> None:
    """Take the write lock of a store, asking far more often than a writer does: others wait for those taken before."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            stack.enter_context(store._connections.writing(0.0))
            return
        except StoreBusy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.0005)


@contextmanager
def at_one_moment(stores: Sequence[SqliteStore]) -> Iterator[None]:
    """Open a snapshot of each of these stores in this thread, all of the same moment.

    Another thread holds the write locks until all snapshots are open: writers wait for that long, and for no longer.
    """
    _allow_many_files()
    ready, opened = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with ExitStack() as stack:
                for store in stores:
                    _lock_soon(stack, store)
                ready.set()
                opened.wait()
        finally:
            ready.set()

    with ThreadPoolExecutor(1, "lukasa-backup") as pool, ExitStack() as stack:
        holding = pool.submit(hold)
        try:
            ready.wait()
            if not holding.done():
                for store in stores:
                    stack.enter_context(store.snapshot())
                    store.head()  # a snapshot begins with the first read
        finally:
            opened.set()
        holding.result()
        yield
