"""Preallocation of the write-ahead log: many commits' worth of pages at a time.

A commit that makes a file longer waits until the file system has noted the new length. A connection that commits often
therefore writes zeros behind the end of the log first. SQLite reads zeros as the end of its log, since no page of a log
begins with them. A log that was written back is written over from its beginning, and does not grow.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import apsw

from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.query import all_rows

LONG = 4_000  # pages of a log, from which on it is written back
_FRAME = 4_096 + 24  # bytes of a page in the log
_OFTEN = 128  # pages of a log, from which on it is preallocated: a process that puts a single text writes fewer
_STEP, _LEFT = 256, 96  # pages that the log grows by, and the number of unused pages below which it grows


class Preallocation:
    """The log of one connection. Its hook on commits keeps SQLite from writing the log back by itself."""

    def __init__(self, db: apsw.Connection, log: Path | None) -> None:
        self._log = log
        self._used = 0  # pages in the log
        self._room = 0  # pages that the file has room for, as far as is known
        db.set_wal_hook(self._committed)

    def _committed(self, db: apsw.Connection, name: str, pages: int) -> int:
        if pages < self._used:  # the log was written over from its beginning, and may have been cut off
            self._room = 0
        self._used = pages
        return apsw.SQLITE_OK

    def grow(self) -> None:
        """Make the log longer if it is nearly full. Only for the holder of the write lock: nobody else appends then."""
        if self._log is None or self._used < _OFTEN or self._used + _LEFT < self._room:
            return
        with suppress(OSError):  # a full disk is left to SQLite to report
            descriptor = os.open(self._log, os.O_WRONLY | os.O_CLOEXEC)
            try:
                size, steps = os.fstat(descriptor).st_size, (self._used + _LEFT) // _STEP + 1
                missing = steps * _STEP * _FRAME - size
                if missing > 0:
                    os.pwrite(descriptor, bytes(missing), size)
                self._room = max(size // _FRAME, steps * _STEP)
            finally:
                os.close(descriptor)

    def write_back(self, db: apsw.Connection) -> None:
        """Write a long log back into the database, up to what others still read. The commit stands in any case."""
        if self._used >= LONG:
            with suppress(apsw.Error):
                all_rows(db, sql.WRITE_BACK)
