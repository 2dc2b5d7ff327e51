"""What a connection has been told, for as long as the database says the same.

SQLite numbers the states that a connection sees: a commit of its own or of anybody else gives another number. Answers
are kept for one number and forgotten at the next, so asking again is saved and nothing old is ever said.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import apsw

from mnemon.adapters.store.sqlite import sql
from mnemon.adapters.store.sqlite.query import all_rows

Answers: TypeAlias = "dict[Any, Any]"
LIMIT = 20_000  # answers of one sort


class Known:
    """Answers by sort of question; each key holds all that the answer depends on, the room first of all."""

    __slots__ = ("_sorts", "state")

    def __init__(self) -> None:
        self.state = -1
        self._sorts: dict[str, Answers] = {}

    def at(self, state: int) -> None:
        if state != self.state:
            self._sorts.clear()
            self.state = state

    def of(self, sort: str) -> Answers:
        answers = self._sorts.setdefault(sort, {})
        if len(answers) > LIMIT:
            answers.clear()
        return answers


class Handle(apsw.Connection):
    """A connection with what it knows; of one thread, as connections are here."""

    known: Known
    reads: bool  # inside a read transaction: what a write transaction sees may yet be undone
    looked: bool  # and its state has been looked at


def known(db: apsw.Connection) -> Known:
    """What is known of the state that the read transaction of `db` sees; outside of one, nothing."""
    if not isinstance(db, Handle) or not db.reads:
        return Known()
    if not db.looked:
        all_rows(db, sql.LOOK)  # a transaction sees a state once it has read something
        db.known.at(db.data_version())
        db.looked = True
    return db.known
