"""Connections: one pair for each thread of each process, opened on demand, and the transactions on them."""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path

import apsw

from lukasa.model import system
from lukasa.model.errors import StoreError
from lukasa.storage import tables
from lukasa.storage.access_counts import AccessCounts
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.execute import all_rows, busy, full, translated
from lukasa.storage.sqlite.search import AccessFile, Handle
from lukasa.storage.sqlite.store_files import MEMORY_FILES, RESERVE, Opening, Reserve, missing, os_errors, with_room
from lukasa.storage.write_buffer import WriteBuffer

PATIENCE = 5.0  # seconds for those who still read what is being removed
LONG_LOG = 4_000  # pages of a log, from which on it is written back
_FRAME = 4_096 + 24  # bytes of a page in the log
_OFTEN = 128  # pages of a log, from which on it is preallocated: a process that puts a single text writes fewer
_STEP, _LEFT = 256, 96  # pages that the log grows by, and the number of unused pages below which it grows


class Preallocation:
    """The write-ahead log of one connection, grown by many commits' worth of pages at a time.

    A commit that makes a file longer waits until the file system has noted the new length. A connection that commits
    often therefore writes zeros behind the end of the log first. SQLite reads zeros as the end of its log, since no
    page of a log begins with them. A log that was written back is written over from its beginning, and does not grow.
    The hook on commits keeps SQLite from writing the log back by itself.
    """

    def __init__(self, db: apsw.Connection, log: Path | None) -> None:
        self._log = log
        self._used = 0  # pages in the log
        self._allocated = 0  # pages that the file has space for, as far as is known
        db.set_wal_hook(self._committed)

    def _committed(self, db: apsw.Connection, name: str, pages: int) -> int:
        if pages < self._used:  # the log was written over from its beginning, and may have been cut off
            self._allocated = 0
        self._used = pages
        return apsw.SQLITE_OK

    def grow(self) -> None:
        """Make the log longer if it is nearly full. Only for the holder of the write lock: nobody else appends then."""
        if self._log is None or self._used < _OFTEN or self._used + _LEFT < self._allocated:
            return
        with suppress(OSError):  # a full disk is left to SQLite to report
            descriptor = os.open(self._log, os.O_WRONLY | system.CLOEXEC)
            try:
                size, steps = os.fstat(descriptor).st_size, (self._used + _LEFT) // _STEP + 1
                missing = steps * _STEP * _FRAME - size
                if missing > 0:
                    system.write_at(descriptor, bytes(missing), size)
                self._allocated = max(size // _FRAME, steps * _STEP)
            finally:
                os.close(descriptor)

    def write_back(self, db: apsw.Connection) -> None:
        """Write a long log back into the database, up to what others still read. The commit stands in any case."""
        if self._used >= LONG_LOG:
            with suppress(apsw.Error):
                all_rows(db, sql.WRITE_BACK)


class _Pair:
    """The two handles of one thread. Dropped with the thread, which closes them."""

    def __init__(self, opening: Opening) -> None:
        self.memory = opening.connect(opening.memory)
        self.within = nullcontext(self.memory)  # what a view inside another is
        self.file = identity(opening.memory)
        _settle(self.memory, sql.SET_MAIN)
        log = opening.memory.with_name(f"{opening.memory.name}-wal")
        self.log = Preallocation(self.memory, log if opening.vfs is None else None)
        self.access = opening.connect(opening.access)
        _settle(self.access, sql.SET_ACCESS)

    def close(self) -> None:
        for db in (self.memory, self.access):
            db.set_busy_timeout(0)
            with suppress(apsw.Error):  # somebody else is reading: they will write the log back
                all_rows(db, sql.CHECKPOINT)
            db.close()


def identity(memory: Path) -> tuple[int, int]:
    """Which file is at the path now."""
    try:
        status = os.stat(memory)
    except FileNotFoundError:
        raise missing(memory) from None
    return status.st_dev, status.st_ino


def _settle(db: apsw.Connection, settings: tuple[str, ...]) -> None:
    for setting in (sql.USE_WAL, *settings):
        all_rows(db, setting)


class _Local(threading.local):
    pair: _Pair | None = None


class Connections:
    """The connections of a store, a pair for each thread. After a fork, the child opens its own."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        # Kept, since an opening puts its paths together each time it is asked, and every read would ask.
        self._memory, self._access = opening.memory, opening.access
        self._reserve = Reserve(opening.folder / RESERVE)
        self._reserve.fill()
        self._closed = False
        self._renew()
        _LIVE.add(self)

    def _renew(self) -> None:
        # A fork's child leaves the buffers of its parent to the parent.
        self.write_buffer, self.access_counts = WriteBuffer(), AccessCounts()
        self._lock = threading.Lock()
        self._local = _Local()
        self._pairs: weakref.WeakSet[_Pair] = weakref.WeakSet()

    def after_fork(self) -> None:
        """In the child: the parent's handles are neither used nor closed here.

        Closing one would run SQLite's clean-up on locks that belong to the parent, so they are kept alive past
        the end of the interpreter.
        """
        ctypes = import_module("ctypes")
        for pair in list(self._pairs):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(pair.memory))
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(pair.access))
        self._renew()

    def _pair(self) -> _Pair:
        pair = self._local.pair
        if self._closed:
            raise StoreError(f"{self._opening.folder} is closed", fix="open the store again")
        if pair is None:
            identity(self._memory)
            pair = self._local.pair = with_room(self._reserve, self._open_pair)
            with self._lock:
                self._pairs.add(pair)
        return pair

    def _open_pair(self) -> _Pair:
        with translated(self._memory):
            return _Pair(self._opening)

    def reading(self) -> AbstractContextManager[Handle]:
        """Open a read transaction: one snapshot, which no writer waits for. Inside another, it is that one."""
        pair = self._pair()
        return pair.within if pair.memory.reads else self._view(pair.memory)

    @contextmanager
    def asking(self) -> Iterator[Handle]:
        """Give the connection for a single statement, which sees one snapshot without a transaction."""
        with translated(self._memory):
            yield self._pair().memory

    @contextmanager
    def _view(self, db: Handle) -> Iterator[Handle]:
        with translated(self._memory):
            db.execute(sql.BEGIN_READ)
            db.reads = True
            db.cache.begin()
            try:
                yield db
            finally:
                db.reads = False
                self._end(db)

    @contextmanager
    def writing(self, patience: float | None = None) -> Iterator[Handle]:
        """Open a transaction that holds the write lock from its start. It is committed on leaving, or undone.

        `patience` is how many seconds to wait for the lock, where that is not the store's own busy timeout.
        """
        path, pair = self._memory, self._pair()
        db = pair.memory
        if identity(path) != pair.file:
            # SQLite would go on writing to the file it has open, and acknowledge what nobody will ever read.
            raise StoreError(f"{path} was replaced by another file", fix="close the store and open it again")
        with translated(path):
            self._begin(db, patience)
            try:
                pair.log.grow()
                yield db
                db.execute(sql.COMMIT)
                pair.log.write_back(db)
            except BaseException as error:
                self._end(db)
                if isinstance(error, apsw.FullError):
                    self._make_room(db)
                    raise full(path) from error
                raise
        self._reserve.fill()

    def _begin(self, db: apsw.Connection, patience: float | None) -> None:
        if patience is None:
            self._lock_for_writing(db, self._opening.busy_timeout)
            return
        db.set_busy_timeout(round(patience * 1000))
        try:
            self._lock_for_writing(db, patience)
        finally:
            db.set_busy_timeout(round(self._opening.busy_timeout * 1000))

    def _lock_for_writing(self, db: apsw.Connection, patience: float) -> None:
        """Wait with SQLite's own handler, and beyond it where SQLite answers busy without asking the handler."""
        deadline = time.monotonic() + patience
        while True:
            try:
                db.execute(sql.BEGIN_WRITE)
            except apsw.BusyError:
                if time.monotonic() >= deadline:
                    raise busy(self._opening.memory) from None
                time.sleep(import_module("random").uniform(0.002, 0.03))
            else:
                return

    def _end(self, db: apsw.Connection) -> None:
        """Undo what is open. After a full disk or an I/O error SQLite has already done so itself."""
        try:
            if db.in_transaction:
                db.execute(sql.ROLLBACK)
        except apsw.Error:
            self._local.pair = None  # a handle that cannot even roll back is not used again

    def _make_room(self, db: apsw.Connection) -> None:
        self._reserve.release()
        with suppress(apsw.Error):
            all_rows(db, sql.CHECKPOINT)

    def rewrite(self) -> bool:
        """Write both files again without what was removed from them, and empty their logs.

        False if somebody else reads an older state, which the log must keep for them; and all is as it was.
        """
        db, counts = self._pair().memory, self._pair().access
        with self.writing() as writer:
            writer.execute(sql.TIDY_INDEX)
            for table in tables.text_tables():
                writer.execute(sql.text_index(table).optimise)
        with self.counting():
            counted = self.access_counts.ids(AccessFile(counts))
            with self.reading():
                present = {id for (id,) in all_rows(db, sql.PRESENT, (json.dumps(counted),))}
            self.access_counts.forget(AccessFile(counts), [id for id in counted if id not in present])
        with translated(self._opening.memory):
            all_rows(db, sql.TEMPORARY_FILES)  # as large as the database, and not for the memory
            try:
                db.execute(sql.VACUUM)
            finally:
                all_rows(db, sql.TEMPORARY_MEMORY)
            emptied = [self._emptied(handle) for handle in (db, counts)]
        if all(emptied):
            with self.writing() as writer:
                writer.execute(sql.FILES_PURGED)
        return all(emptied)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Give the bytes of every file: of the databases by SQLite, for to open one by hand would drop its locks."""
        pair = self._pair()
        with translated(self._opening.memory):
            for path, db in ((self._memory, pair.memory), (self._access, pair.access)):
                yield path.name, db.serialize("main")
        for path in sorted(self._opening.folder.iterdir()):
            if path.name.startswith(MEMORY_FILES) and path.suffix != ".db" and not path.name.endswith("-shm"):
                with os_errors(path):
                    yield path.name, path.read_bytes()

    def _emptied(self, db: apsw.Connection) -> bool:
        db.set_busy_timeout(round(min(PATIENCE, self._opening.busy_timeout) * 1000))
        try:
            ((blocked, _, _),) = all_rows(db, sql.CHECKPOINT)
            return not blocked
        except apsw.BusyError:
            return False
        finally:
            db.set_busy_timeout(round(self._opening.busy_timeout * 1000))

    @contextmanager
    def counting(self) -> Iterator[Handle]:
        """Give the connection to access counts. Each statement is a transaction, and waits for no writer of memory."""
        db = self._pair().access
        with translated(self._access):
            yield db

    @contextmanager
    def hurried(self, patience: float) -> Iterator[Handle]:
        """The same for a caller who can try again later: it waits this many seconds for others who write there."""
        with self.counting() as db:
            db.set_busy_timeout(round(patience * 1000))
            try:
                yield db
            finally:
                db.set_busy_timeout(round(self._opening.busy_timeout * 1000))

    def close(self) -> None:
        """Write the log back where nobody else is reading, and close every handle of this process."""
        with self._lock:
            pairs = list(self._pairs)
            if self._closed:
                return
            self._closed = True
            for pair in pairs:
                pair.close()
            self._pairs.clear()
            self._local = _Local()


_LIVE: weakref.WeakSet[Connections] = weakref.WeakSet()


def _before_fork() -> None:
    if _LIVE:
        import_module("ctypes")  # here, because in the child another thread's half of an import would hang it


def _after_fork() -> None:
    for connections in list(_LIVE):
        connections.after_fork()


system.at_fork(before=_before_fork, after_in_child=_after_fork)
