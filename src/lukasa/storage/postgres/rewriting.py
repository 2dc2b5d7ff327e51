"""Make what was scrubbed unreadable in the files of a database, by rewriting the tables that held it.

A plain VACUUM only marks the space of removed rows as free, and their words stay there until other rows need it. VACUUM
FULL writes a table and its indexes again; meanwhile nobody else, of whatever store, reads or writes that table. So a
scrub does that by itself in a small database only. In a larger one, an operator says when.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import psycopg

from lukasa.storage.postgres import sql

if TYPE_CHECKING:
    from lukasa.storage.postgres.database import Database

LARGEST = 256 << 20  # bytes of all those tables and their indexes, up to which a scrub rewrites them by itself
_WAIT, _LONG_WAIT = "5s", "10min"  # for others to leave a table; who comes meanwhile waits as well

_TRIES, _PAUSE = 3, 0.3  # for a short transaction of others, such as the engine's own upkeep, to end


def rewrite(database: Database, *, large: bool) -> bool:
    """Rewrite the tables, also large ones if asked. Return whether they hold nothing more of what was scrubbed before.

    That is for all stores of the database, and what they had noted about it is done. It needs the owner of the tables.
    A row that an older transaction can still see is written again: then all stays noted.
    """
    with database.administering() as db:
        found = db.execute(sql.MAY_REWRITE).fetchone()
        if found is None or not found[0] or (found[1] > LARGEST and not large):
            return False
        if db.execute(sql.TRY_TO_REWRITE).fetchone() != (True,):
            return False  # another process is at it
        noted = db.execute(sql.ALL_UNSWEPT).fetchall()
        db.execute("SET statement_timeout = 0")
        db.execute(f"SET lock_timeout = '{_LONG_WAIT if large else _WAIT}'".encode())
        if not all(_rewritten(db, table, 1 if large else _TRIES) for table in sql.REWRITTEN):
            return False
        with db.cursor() as cursor:
            cursor.executemany(sql.SWEPT, noted)
        return True


def _rewritten(db: psycopg.Connection[Any], table: str, tries: int) -> bool:
    """Rewrite a table, and return whether no removed row is left in it. PostgreSQL says so in a detail."""
    told: list[str] = []
    db.add_notice_handler(lambda notice: told.append(notice.message_detail or ""))
    for _ in range(tries):
        db.execute(f"VACUUM (FULL, VERBOSE) lukasa.{table}".encode())
        left = [int(match[0]) for one in told if (match := re.search(r"\d+", one))]
        if left and not left[-1]:
            return True
        time.sleep(_PAUSE)
    return False
