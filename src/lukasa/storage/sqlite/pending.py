"""Pending index rows: the newest rows, whose words are not in FTS5 yet.

One row costs FTS5 nearly as much as many, so words are added for several rows at a time. All rows up to the number that
`head` keeps are in the index, and none after it; a search adds the pending rows itself.
"""

from __future__ import annotations

import apsw

from lukasa.index.postings import tokens
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.query import all_rows, one_value

STEP = 16  # rows that are indexed at a time
LONG = 64  # terms of a row that does not wait: every search would walk through them


def is_indexed(db: apsw.Connection, row: int) -> bool:
    return bool(row <= one_value(db, sql.LAST_INDEXED))


def index_pending(db: apsw.Connection, last: int) -> None:
    """Add the words of all pending rows, up to the last row, to the index."""
    rows = [(row, tokens(partition, terms.split())) for row, partition, terms in all_rows(db, sql.PENDING)]
    db.executemany(sql.INDEX_ROW, rows)
    db.execute(sql.SET_LAST_INDEXED, (last,))
