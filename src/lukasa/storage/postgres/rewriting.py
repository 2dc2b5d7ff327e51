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
_WAIT, _LONG_WAIT = 5.0, 600.0  # seconds for others to leave a table; who comes meanwhile waits as well
_PAUSE = 0.2  # seconds between two tries


def rewrite(database: Database, *, large: bool, whole: bool = False) -> bool:
    """Rewrite the tables, also large ones if asked; with `whole`, all tables, because a store is gone.

    Return whether they hold nothing more of what was scrubbed before.

    That is for all stores of the database, and what they had noted about it is done. It needs the owner of the tables.
    A row that an older transaction can still see is written again: then all stays noted.
    """
    with database.administering() as db:
        found = db.execute(sql.MAY_REWRITE).fetchone()
        if found is None or not found[0] or (found[1] > LARGEST and not large):
            return False
        every = [name for (name,) in db.execute(sql.FILLED_TABLES)]
        tables = [name for name in every if whole or large or name not in sql.NEVER_SCRUBBED]
        wait = _LONG_WAIT if large else _WAIT
        db.execute("SET statement_timeout = 0")
        db.execute(f"SET lock_timeout = {round(wait * 1000)}".encode())
        db.execute(sql.LOCK_REWRITING)
        noted = db.execute(sql.ALL_UNSWEPT).fetchall()
        done = all(_rewritten(db, table, 0.0 if large else wait) for table in tables)
        if done:
            with db.cursor() as cursor:
                cursor.executemany(sql.SWEPT, noted)
        db.execute(sql.UNLOCK_REWRITING)
        return done


def _rewritten(db: psycopg.Connection[Any], table: str, patience: float) -> bool:
    """Rewrite a table, and return whether no removed row is left in it. PostgreSQL says so in a detail.

    Try again for some seconds: short transactions of others, such as the engine's own upkeep, come to an end.
    """
    told: list[str] = []
    db.add_notice_handler(lambda notice: told.append(notice.message_detail or ""))
    deadline = time.monotonic() + patience
    while True:
        db.execute(f"VACUUM (FULL, VERBOSE) lukasa.{table}".encode())
        left = [int(match[0]) for one in told if (match := re.search(r"\d+", one))]
        if left and not left[-1]:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE)
