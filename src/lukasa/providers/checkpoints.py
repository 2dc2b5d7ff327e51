"""Count and remove the rows of LangGraph's SQLite saver in a workspace's folder, without LangGraph."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from lukasa.model.conversation import Conversation
from lukasa.model.errors import StoreError
from lukasa.ports import CHECKPOINTS, lock_name

# The two tables of the saver: states, and writes that are not in a state yet.
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('checkpoints', 'writes')"
_COUNT = {
    "checkpoints": "SELECT count(*) FROM checkpoints WHERE thread_id = ?",
    "writes": "SELECT count(*) FROM writes WHERE thread_id = ?",
}
_DROP = {
    "checkpoints": "DELETE FROM checkpoints WHERE thread_id = ?",
    "writes": "DELETE FROM writes WHERE thread_id = ?",
}
# The saver does not overwrite deleted content, so only a rewritten file is sure to hold none of it.
_REWRITE = "VACUUM"
_EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"
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

    def led(self, conversation: Conversation) -> bool:
        try:
            descriptor = os.open(self._folder / lock_name(conversation), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

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


def _tables(db: apsw.Connection) -> list[str]:
    return [str(name) for (name,) in db.execute(_TABLES).fetchall()]
