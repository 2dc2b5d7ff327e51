"""SQLite files of other programs, read as files that nobody trusts.

Only plain tables are read: a view or a virtual table may run anything. The file is opened for reading, a query ends
after so many steps, and nothing of its schema is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Any
from urllib.parse import quote

import apsw

from lukasa.model.errors import UnreadablePast

MAGIC = b"SQLite format 3\0"
MOST_ROWS = 2_000_000
MOST_VALUE = 16 * 2**20  # bytes of one value
_MOST_STEPS = 5_000_000_000
_EVERY = 10_000_000


def columns(path: str, table: str) -> list[str]:
    """Return the columns of a plain table; none if the file is no database or has no such table."""
    try:
        with closing(_opened(path)) as db:
            return _columns(db, table)
    except (apsw.Error, OSError):
        return []


def _columns(db: apsw.Connection, table: str) -> list[str]:
    made = db.execute("SELECT type, sql FROM sqlite_master WHERE name = ?", (table,)).fetchall()
    if len(made) != 1 or made[0][0] != "table" or str(made[0][1]).upper().lstrip().startswith("CREATE VIRTUAL"):
        return []
    return [str(name) for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))]


def rows(path: str, table: str, wanted: Sequence[str], order: str = "rowid") -> Iterator[dict[str, Any]]:
    """Yield the rows of a plain table; a column that it has not is None."""
    try:
        with closing(_opened(path)) as db:
            present = _columns(db, table)
            named = [name for name in wanted if name in present]
            if not named:
                raise UnreadablePast(f"{path}: it has no table {table!r} as expected", fix="name another file")
            by = order if order == "rowid" or order in present else "rowid"
            listed = ", ".join(f'"{name}"' for name in named)
            found = db.execute(f'SELECT {listed} FROM "{table}" ORDER BY {by} LIMIT {MOST_ROWS + 1}')
            for number, row in enumerate(found):
                if number >= MOST_ROWS:
                    raise UnreadablePast(f"{path}: more than {MOST_ROWS:,} rows in {table!r}", fix="split it first")
                yield {**dict.fromkeys(wanted), **dict(zip(named, row, strict=True))}
    except apsw.Error as error:
        raise UnreadablePast(
            f"{path}: table {table!r} cannot be read: {error}", fix="close the program that writes it, or copy it again"
        ) from None


def _opened(path: str) -> apsw.Connection:
    try:
        db = _connected(path, "mode=ro")
        db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except apsw.CantOpenError:  # of a folder that cannot be written, where a log beside it has no index
        db = _connected(path, "mode=ro&immutable=1")
    return db


def _connected(path: str, how: str) -> apsw.Connection:
    db = apsw.Connection(
        f"file:{quote(path)}?{how}", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, statementcachesize=0
    )
    with suppress(apsw.Error):
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.limit(apsw.SQLITE_LIMIT_LENGTH, MOST_VALUE)
    db.set_busy_timeout(2000)
    left = _MOST_STEPS // _EVERY

    def watch() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    db.set_progress_handler(watch, _EVERY)
    return db
