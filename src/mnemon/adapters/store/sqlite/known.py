"""What a connection has been told, for as long as the database says the same.

SQLite numbers the states that a connection sees: a commit of its own or of anybody else gives another number. Answers
are kept for one number; at the next, those are forgotten that need not hold any more, so asking again is saved and
nothing old is ever said.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import apsw

from mnemon.adapters.store.sqlite import following, sql
from mnemon.adapters.store.sqlite.query import all_rows

Answers: TypeAlias = "dict[Any, Any]"
LIMIT = 20_000  # answers of one sort


class Known:
    """Answers by sort of question; each key holds all that the answer depends on, the room first of all."""

    __slots__ = ("_mark", "_sorts", "state")

    def __init__(self) -> None:
        self.state = -1
        self._mark: following.Mark | None = None
        self._sorts: dict[str, Answers] = {}

    def at(self, state: int) -> None:
        if state != self.state:
            self._sorts.clear()
            self.state = state

    def follow(self, db: apsw.Connection, state: int) -> None:
        """To another state of a memory, with what still holds there."""
        if state != self.state:
            now, before = following.mark(db), self._mark
            self._sorts = following.followed(db, self._sorts, before, now) if before and self._sorts else {}
            self._mark, self.state = now, state

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
        db.known.follow(db, db.data_version())
        db.looked = True
    return db.known
