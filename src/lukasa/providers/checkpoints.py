"""The chats of a workspace in its folder: a lock for each that runs, and the file of LangGraph's SQLite saver.

Rows are counted and removed without LangGraph.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import apsw

from lukasa.model import system
from lukasa.model.conversation import Conversation
from lukasa.model.erasure import Words
from lukasa.model.errors import StoreError
from lukasa.ports import CHECKPOINTS, lock_name

# The two tables of the saver: states, and writes that are not in a state yet.
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('checkpoints', 'writes')"
_COUNT = {
    "checkpoints": "SELECT count(*) FROM checkpoints WHERE thread_id = ?",
    "writes": "SELECT count(*) FROM writes WHERE thread_id = ?",
}
_ROWS = {table: f"SELECT thread_id, * FROM {table}" for table in ("checkpoints", "writes")}
_DROP = {
    "checkpoints": "DELETE FROM checkpoints WHERE thread_id = ?",
    "writes": "DELETE FROM writes WHERE thread_id = ?",
}
_THREADS = {
    "checkpoints": "SELECT DISTINCT thread_id FROM checkpoints",
    "writes": "SELECT DISTINCT thread_id FROM writes",
}
# The saver does not overwrite deleted content, so only a rewritten file is sure to hold none of it.
_REWRITE = "VACUUM"
_EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"
_ONE_FILE = "PRAGMA journal_mode = DELETE"
_PAGES = 1_000  # pages that are copied at a time
_WAIT = 5_000


class CheckpointFile:
    """Implements `lukasa.ports.Threads` on the file of `lukasa chat` in a workspace's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def kept(self, thread: str) -> int:
        with self._open() as db:
            if db is None:
                return 0
            counts: list[Any] = [db.execute(_COUNT[table], (thread,)).get for table in _tables(db)]
            return sum(counts)

    @contextmanager
    def lead(self, conversation: Conversation) -> Iterator[None]:
        """Hold the conversation's lock. If the process dies, the kernel frees it, and the session counts as dead."""
        path = self._lock(conversation)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | system.CLOEXEC, 0o600)
        try:
            if not system.try_lock(descriptor):
                raise StoreError(
                    f"conversation {conversation.ref_code} is open in another process", fix="end it there first"
                )
            yield
            system.remove_held(path)
        finally:
            os.close(descriptor)

    def led(self, conversation: Conversation) -> bool:
        try:
            descriptor = os.open(self._lock(conversation), os.O_RDWR | system.CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return not system.try_lock(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def saver(self) -> Iterator[Any]:
        """Open LangGraph's own saver on a private file of its own. It never opens the databases of memory."""
        sqlite3 = import_module("sqlite3")
        path = self._folder / CHECKPOINTS
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | system.CLOEXEC, 0o600))
            with closing(sqlite3.connect(path, check_same_thread=False, timeout=30.0)) as connection:
                yield import_module("langgraph.checkpoint.sqlite").SqliteSaver(connection)
        except sqlite3.Error as error:
            raise StoreError(
                f"{path}: {error}", fix="free space there, or move the file away: it holds no memory"
            ) from error
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}", fix="check that the folder is there and is yours") from error

    def copy_to(self, folder: Path) -> bool:
        """Copy the file, while it is in use, to a folder that has none; return whether there is one."""
        with self._open() as db:
            if db is None:
                return False
            path = folder / CHECKPOINTS
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | system.CLOEXEC, 0o600))
            copy = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                with copy.backup("main", db, "main") as running:
                    while not running.done:
                        running.step(_PAGES)
                copy.execute(_ONE_FILE).fetchall()
            finally:
                copy.close()
        return True

    def threads(self) -> list[str]:
        """Return the chats whose states are in the file."""
        with self._open() as db:
            found = {str(id) for table in _tables(db) for (id,) in db.execute(_THREADS[table])} if db else set()
        return sorted(found)

    def purge(self, thread: str) -> None:
        with self._open() as db:
            if db is None:
                return
            with db:
                for table in _tables(db):
                    db.execute(_DROP[table], (thread,))
            db.execute(_REWRITE).fetchall()
            ((blocked, _, _),) = db.execute(_EMPTY_LOG).fetchall()
        if blocked:
            raise StoreError(
                f"{self._folder / CHECKPOINTS} is being read by another process",
                fix="end the chat that uses it, then try again",
            )

    def holding(self, words: Words) -> list[str]:
        found = set[str]()
        with self._open() as db:
            for table in _tables(db) if db is not None else ():
                assert db is not None
                threads = db.execute(_ROWS[table])
                found.update(str(row[0]) for row in threads if any(words.count(_as_bytes(value)) for value in row[1:]))
        return sorted(found)

    def _lock(self, conversation: Conversation) -> Path:
        return self._folder / lock_name(conversation)

    @contextmanager
    def _open(self) -> Iterator[apsw.Connection | None]:
        """Open the file if it exists; never create it."""
        path = self._folder / CHECKPOINTS
        if not path.exists() or not path.stat().st_size:
            yield None
            return
        try:
            db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                db.set_busy_timeout(_WAIT)
                yield db
            finally:
                db.close()
        except apsw.Error as error:
            raise StoreError(
                f"{path}: {error}", fix="end the program that uses it, and open the workspace again"
            ) from error


def _as_bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _tables(db: apsw.Connection) -> list[str]:
    return [str(name) for (name,) in db.execute(_TABLES).fetchall()]
