"""The log that SQLite writes commits to, grown a piece at a time before they come.

Where each commit makes a file longer, the file system notes the new length with each of them, and makes it wait for
that. So one who commits often has zeros written behind the end first, for many commits at once. SQLite takes zeros for
what they are, the end of its log: no page of it begins so. A log that was written back is written over from its
beginning, and needs no growing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import apsw

from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.query import all_rows

LONG = 4_000  # pages of a log, after which it is written back
_FRAME = 4_096 + 24  # bytes of a page in the log
_OFTEN = 128  # pages, from which on it is worth growing: one who puts a single thing has fewer
_STEP, _LEFT = 256, 96  # pages that it grows by, and fewer than which are left when it does


class Ahead:
    """Of one connection. It asks to be told of each commit, which keeps SQLite from writing the log back by itself."""

    def __init__(self, db: apsw.Connection, log: Path | None) -> None:
        self._log = log
        self._pages = 0  # that are in the log
        self._room = 0  # pages that it has room for without growing, as far as is known
        db.set_wal_hook(self._committed)

    def _committed(self, db: apsw.Connection, name: str, pages: int) -> int:
        if pages < self._pages:  # written over from its beginning, and maybe cut off
            self._room = 0
        self._pages = pages
        return apsw.SQLITE_OK

    def grow(self) -> None:
        """Only for who holds the lock for writing: nobody else writes behind the end then."""
        if self._log is None or self._pages < _OFTEN or self._pages + _LEFT < self._room:
            return
        with suppress(OSError):  # on a full disk it is left to SQLite to say so
            descriptor = os.open(self._log, os.O_WRONLY | os.O_CLOEXEC)
            try:
                size, steps = os.fstat(descriptor).st_size, (self._pages + _LEFT) // _STEP + 1
                missing = steps * _STEP * _FRAME - size
                if missing > 0:
                    os.pwrite(descriptor, bytes(missing), size)
                self._room = max(size // _FRAME, steps * _STEP)
            finally:
                os.close(descriptor)

    def shorten(self, db: apsw.Connection) -> None:
        """Write a long log back, as far as nobody still reads what was before it. What was committed stands anyhow."""
        if self._pages >= LONG:
            with suppress(apsw.Error):
                all_rows(db, sql.WRITE_BACK)
