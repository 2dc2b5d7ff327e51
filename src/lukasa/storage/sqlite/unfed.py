"""The newest rows, whose words are not in the index yet: these are put there for a few rows at a time, since what one
row costs there is mostly what many cost. Whoever looks words up adds what these rows hold.

All rows up to a number that is kept in `head` are in the index, and none after it is.
"""

from __future__ import annotations

from typing import TypeAlias

import apsw

from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.known import known
from lukasa.storage.sqlite.query import all_rows, one_value
from lukasa.storage.sqlite.rows import tokens

STEP = 16  # rows that are fed at a time
LONG = 64  # terms of a row that is not kept waiting: reads would look at all of them
Unfed: TypeAlias = "dict[str, list[int]]"  # by word, the rows that hold it, in order and each as often as it does


def unfed(db: apsw.Connection) -> Unfed:
    """What the rows hold that the state that `db` sees has not in its index."""
    answers = known(db).of("unfed")
    found: Unfed | None = answers.get("rows")
    if found is None:
        found = answers["rows"] = {}
        for row, partition, terms in all_rows(db, sql.UNFED):
            for word in tokens(partition, terms.split()).split():
                found.setdefault(word, []).append(row)
    return found


def is_fed(db: apsw.Connection, row: int) -> bool:
    return bool(row <= one_value(db, sql.FED))


def feed(db: apsw.Connection, last: int) -> None:
    """Put into the index what is not there yet, up to the last row."""
    rows = [(row, tokens(partition, terms.split())) for row, partition, terms in all_rows(db, sql.UNFED)]
    db.executemany(sql.FEED, rows)
    db.execute(sql.SET_FED, (last,))
