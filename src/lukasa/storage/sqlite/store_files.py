"""The files of a store: create, open and migrate them.

They are private whatever the umask, made whole or not at all, and locked while they are opened.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from os import urandom
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import quote

import apsw
from msgspec import Struct, field

from lukasa.index.cache import Answers, ReadCache
from lukasa.model import system
from lukasa.model.errors import StoreDamaged, StoreError, StoreForeign, StoreFull, StoreMissing, StoreNewer
from lukasa.model.text import TOKENIZER_VERSION
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.execute import all_rows, busy, damaged, full, one_value, translated
from lukasa.storage.sqlite.search import Handle

RESERVE_BYTES = 1 << 20
_LOOKS = 3  # at a file that seems damaged, and may only be changing
_SIDES = ("", "-journal", "-wal", "-shm")


def make_folder(folder: Path) -> None:
    with os_errors(folder):
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            folder.chmod(0o700)


def new_private_file(path: Path) -> None:
    """An empty file of mode 0600; SQLite gives its side files the mode of their database."""
    with os_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | system.CLOEXEC, 0o600)
        try:
            system.set_mode(descriptor, 0o600)
        finally:
            os.close(descriptor)


def discard(path: Path) -> None:
    """Remove a database that never became one, with its side files."""
    for suffix in _SIDES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def put_in_place(temporary: Path, final: Path) -> None:
    """Rename, with everything on disk before and after: the final path holds a whole database or nothing."""
    with os_errors(final):
        system.sync(temporary)
        temporary.replace(final)
        system.sync(final.parent)


@contextmanager
def locked(path: Path, timeout: float) -> Iterator[None]:
    """Hold the folder's lock file. The kernel lets go of it when the process dies, however it dies."""
    with os_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | system.CLOEXEC, 0o600)
    try:
        with os_errors(path):
            system.set_mode(descriptor, 0o600)
            _take(descriptor, path, time.monotonic() + timeout)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path, deadline: float) -> None:
    while True:
        if system.try_lock(descriptor):
            return
        if time.monotonic() > deadline:
            raise busy(path)
        time.sleep(import_module("random").uniform(0.001, 0.02))


@contextmanager
def os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise full(path) from error
        raise StoreError(
            f"{path}: {error.strerror or error}", fix="check that the folder exists and belongs to you"
        ) from error


class Reserve:
    """A megabyte set aside. On a full disk not even a checkpoint can run, so this is given up to let one.

    Not even a reader can open a store there, since SQLite makes a file for its locks: a part of it is lent for that.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = False

    def fill(self) -> None:
        """Set the space aside again if it is not and there is plenty; a nearly full disk is left alone."""
        if self._held:
            return
        with suppress(OSError):
            if not self._path.exists() or self._path.stat().st_size < RESERVE_BYTES:
                if system.free_bytes(self._path.parent) < 8 * RESERVE_BYTES:
                    return
                self._write()
            self._held = True

    def _write(self) -> None:
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.CLOEXEC, 0o600)
        try:
            system.set_mode(descriptor, 0o600)
            os.write(descriptor, bytes(RESERVE_BYTES))
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        temporary.replace(self._path)

    def lend(self) -> bool:
        """Give up a quarter of the space; False if there is nothing left of it."""
        self._held = False
        with suppress(OSError):
            left = self._path.stat().st_size - RESERVE_BYTES // 4
            if left > 0:
                os.truncate(self._path, left)
            else:
                self._path.unlink()
            return True
        return False

    def release(self) -> None:
        self._held = False
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


Opened = TypeVar("Opened")
Role = Literal["account", "workspace"]
Filler = Callable[[apsw.Connection], None]

MEMORY, ACCESS, LOCK, RESERVE = "memory.db", "access.db", "memory.lock", "reserve"
MOVING = "moving.json"  # in a data folder, as long as memory is being moved there
HEAD, LOST = "head", "head.lost"  # the head of the log beside the database, and the evidence of lost writes
# What a store keeps in its folder. The side files of a database begin with its name.
MEMORY_FILES = (MEMORY, ACCESS, LOCK, RESERVE, HEAD, LOST)
MEMORY_ID, ACCESS_ID = 1298035053, 1298035041
OLDEST_LIBRARY = (3, 51, 3)
SMALLEST_PAGE = 512
_MIGRATIONS = Path(__file__).parent / "migrations"


class Migration(Struct, frozen=True):
    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()


class Opening(Struct, frozen=True):
    """How to open: which folder, as what, through which VFS, and how long to wait for others."""

    folder: Path
    role: Role
    create: bool
    vfs: str | None
    busy_timeout: float
    migrations: Sequence[Migration]
    fixed: dict[str, Answers] = field(default_factory=dict)  # of the read caches of all connections

    @property
    def memory(self) -> Path:
        return self.folder / MEMORY

    @property
    def access(self) -> Path:
        return self.folder / ACCESS

    def connect(self, path: Path) -> Handle:
        """An open handle without settings; never one to a file that is not there."""
        db = Handle(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=self.vfs)
        db.cache, db.reads = ReadCache(self.fixed), False
        db.set_busy_timeout(round(self.busy_timeout * 1000))
        # SQLite would look at the value of each LIMIT, and plan a statement anew whenever one is bound, which mostly
        # takes longer than to answer it.
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        return db

    def peek(self, path: Path) -> apsw.Connection:
        """The main file alone, read-only, without locks or side files: looking must not leave a trace."""
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return apsw.Connection(f"file:{quote(str(path))}?immutable=1", flags=flags, vfs=self.vfs)


@cache
def migrations() -> tuple[Migration, ...]:
    """The numbered files of this package, in order."""
    found = sorted(f for f in (entry.name for entry in _MIGRATIONS.iterdir()) if f.endswith(".sqlite.sql"))
    return tuple(
        Migration(int(f[:4]), f[5:].removesuffix(".sqlite.sql"), (_MIGRATIONS / f).read_text("utf-8")) for f in found
    )


def require_library() -> None:
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < OLDEST_LIBRARY:
        raise StoreError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt a database in WAL mode",
            fix="upgrade apsw to 3.51.3 or later",
        )


def with_room(reserve: Reserve, work: Callable[[], Opened]) -> Opened:
    """What `work` returns; on a full disk, with space that the reserve lends."""
    while True:
        try:
            return work()
        except StoreFull:
            if not reserve.lend():
                raise


def open_files(opening: Opening) -> None:
    """Make sure that both files exist, are Lukasa's and have its schema version; or raise and change nothing."""
    with_room(Reserve(opening.folder / RESERVE), lambda: _open_files(opening))


def _open_files(opening: Opening) -> None:
    require_library()
    if opening.create:
        make_folder(opening.folder)
    elif not opening.memory.exists():
        raise missing(opening.memory)
    with locked(opening.folder / LOCK, opening.busy_timeout), translated(opening.memory):
        if opening.memory.exists():
            _inspect(opening)
            _migrate_existing(opening)
        elif opening.create:
            _build_memory(opening)
        else:
            raise missing(opening.memory)
        _open_access(opening)


def missing(memory: Path) -> StoreMissing:
    return StoreMissing(f"{memory} is gone", fix="restore it from a backup; an empty one is never put in its place")


def _inspect(opening: Opening) -> None:
    """Look whether a file is a whole store of ours, before anything opens it for writing.

    A checkpoint that ends while we read leaves us torn pages and no log: at rest, the file reads otherwise.
    """
    for left in reversed(range(_LOOKS)):
        try:
            _look(opening)
            return
        except StoreDamaged:
            if not left:
                raise


def _look(opening: Opening) -> None:
    path = opening.memory
    size = _file_size(path)
    db = opening.peek(path)
    try:
        _refuse_others(opening, db)
        expected = one_value(db, sql.PAGE_COUNT) * one_value(db, sql.PAGE_SIZE)
        if size < expected and not _has_log(path):
            raise damaged(path, f"incomplete: {size} of {expected} bytes")
    except apsw.CorruptError as error:
        # A checkpoint that was cut short, or runs now, leaves the main file torn and the log whole.
        # Only if there is no log does a torn file speak for itself.
        if not _has_log(path):
            raise damaged(path, f"incomplete or damaged ({error})") from error
    finally:
        db.close()


def _file_size(path: Path) -> int:
    """By name only: opening and closing a database's file by hand would drop this process's locks on it."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise damaged(path, "not a file")
    if status.st_size < SMALLEST_PAGE:
        raise damaged(path, f"{status.st_size} bytes are no database")
    return status.st_size


def _has_log(path: Path) -> bool:
    return path.with_name(path.name + "-wal").exists()


def _refuse_others(opening: Opening, db: apsw.Connection) -> None:
    path, known = opening.memory, {m.number: m for m in opening.migrations}
    if one_value(db, sql.APPLICATION_ID) != MEMORY_ID:
        raise StoreForeign(f"{path} is not a Lukasa database", fix="choose another folder")
    newest = max(known)
    version = one_value(db, sql.USER_VERSION)
    if version > newest:
        raise StoreNewer(f"{path} has schema {version}, this Lukasa knows {newest}", fix="upgrade Lukasa")
    if (role := one_value(db, sql.ROLE)) != opening.role:
        raise StoreForeign(f"{path} is {role} memory, not {opening.role} memory", fix="open it as what it is")
    for number, checksum in all_rows(db, sql.APPLIED):
        if number in known and known[number].checksum != checksum:
            raise damaged(path, f"migration {number} is not the one this Lukasa knows")


def _migrate_existing(opening: Opening) -> None:
    db = opening.connect(opening.memory)
    try:
        # Closing the last connection writes the log back: not into a file that is then refused.
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        _refuse_others(opening, db)
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        if one_value(db, sql.USER_VERSION) < opening.migrations[-1].number:
            _migrate(db, opening.migrations)
    finally:
        db.close()


def _build_memory(opening: Opening) -> None:
    def fill(db: apsw.Connection) -> None:
        _migrate(db, opening.migrations)
        now = datetime.now(UTC).isoformat()
        db.execute(sql.NEW_META, (opening.role, urandom(32), TOKENIZER_VERSION, now))

    _build(opening, opening.memory, fill)


def _open_access(opening: Opening) -> None:
    """Open or make the file of access counts. If it is damaged, refuse it; if it is absent, counting starts again."""
    path = opening.access
    if not path.exists():
        _build(opening, path, lambda db: _run(db, sql.ACCESS_SCHEMA))
        return
    _file_size(path)
    db = opening.peek(path)
    try:
        if one_value(db, sql.APPLICATION_ID) != ACCESS_ID:
            raise StoreForeign(f"{path} is not Lukasa's", fix="move it away; it only counts reads")
    finally:
        db.close()


def _build(opening: Opening, path: Path, fill: Filler) -> None:
    temporary = path.with_name(path.name + ".new")
    discard(temporary)
    new_private_file(temporary)
    try:
        db = opening.connect(temporary)
        try:
            for setting in sql.SET_BUILD:
                all_rows(db, setting)
            fill(db)
            all_rows(db, sql.USE_WAL)
        finally:
            db.close()
        put_in_place(temporary, path)
    except BaseException:
        discard(temporary)
        raise


def _migrate(db: apsw.Connection, known: Sequence[Migration]) -> None:
    done = one_value(db, sql.USER_VERSION)
    for migration in known:
        if migration.number > done:
            db.execute(sql.BEGIN_WRITE)
            try:
                _run(db, migration.text)
                now = datetime.now(UTC).isoformat()
                db.execute(sql.MIGRATED, (migration.number, migration.name, migration.checksum, now))
                db.execute(sql.COMMIT)
            except BaseException:
                if db.in_transaction:
                    db.execute(sql.ROLLBACK)
                raise


def _run(db: apsw.Connection, text: str) -> None:
    """Statement by statement: apsw runs the next one only when the last one's rows are read."""
    for _ in all_rows(db, text):
        pass
