"""What a connection has been told, for as long as the database says the same.

SQLite numbers the states that a connection sees: a commit of its own or of anybody else gives another number. Answers
are kept for one number; at the next, those are forgotten that need not hold any more, so asking again is saved and
nothing old is ever said.
"""

from __future__ import annotations

import weakref
from typing import Any, TypeAlias

import apsw

from lukasa.storage.sqlite import following, sql
from lukasa.storage.sqlite.query import all_rows, one_value

Answers: TypeAlias = "dict[Any, Any]"
LIMIT = 20_000  # answers of one sort


class Known:
    """Answers by sort of question; each key holds all that the answer depends on, the room first of all.

    Those that may hold in a later state too are only followed there when they are asked for: who puts one text after
    the other asks for none.
    """

    __slots__ = ("_at", "_lasting", "_mark", "_sorts", "state")

    def __init__(self) -> None:
        self.state = -1
        self._sorts: dict[str, Answers] = {}
        self._lasting: dict[str, Answers] = {}
        self._mark: following.Mark | None = None  # of the state that the lasting ones are of
        self._at: weakref.ref[apsw.Connection] | None = None  # who sees a later one

    def at(self, state: int) -> None:
        if state != self.state:
            self._sorts.clear()
            self.state = state

    def follow(self, db: apsw.Connection, state: int) -> None:
        """To another state of a memory, with what still holds there."""
        if state != self.state:
            self.at(state)
            self._at = weakref.ref(db)

    def of(self, sort: str) -> Answers:
        lasting = sort in following.LASTING
        if lasting and self._at is not None:
            self._follow_up()
        sorts = self._lasting if lasting else self._sorts
        answers = sorts.get(sort)
        if answers is None:
            answers = sorts[sort] = {}
        elif len(answers) > LIMIT:
            answers.clear()
        return answers

    def _follow_up(self) -> None:
        db = self._at() if self._at is not None else None
        if db is not None:
            now, before = following.mark(db), self._mark
            kept = following.followed(db, self._lasting, before, now) if before and self._lasting else {}
            self._lasting, self._mark, self._at = kept, now, None


class Handle(apsw.Connection):
    """A connection with what it knows; of one thread, as connections are here."""

    known: Known
    reads: bool  # inside a read transaction: what a write transaction sees may yet be undone
    looked: bool  # and its state has been looked at
    numbers: Answers  # of rooms and models that are committed: their rows are never removed
    missing: dict[tuple[int, int], int]  # by partition and model, vectors to come until there may be enough for a pack
    standing: Answers  # named entries and documents, with the number of the state they are of
    rarities: dict[str, float]  # of words of the index that are not rare: about how many rows held each when asked


def lasting_numbers(db: apsw.Connection) -> Answers:
    """What stands for rooms and models in rows, as far as it is known for good."""
    return db.numbers if isinstance(db, Handle) else {}


def rarities_of(db: apsw.Connection) -> dict[str, float]:
    """By which words rows are soonest found: that may be out of date, and is right as often as it helps."""
    if not isinstance(db, Handle):
        return {}
    if len(db.rarities) > LIMIT:
        db.rarities.clear()
    return db.rarities


def standing(db: apsw.Connection) -> Answers:
    """What is known of what stands, which every put is compared with: as long as nobody else commits anything, since
    who writes some of it here forgets this first. Inside a write transaction, nothing: that may be undone."""
    if not isinstance(db, Handle) or (db.in_transaction and not db.reads):
        return {}
    state = one_value(db, sql.DATA_VERSION)  # which does not count what this connection commits
    if db.standing.get("state") != state:
        db.standing = {"state": state}
    return db.standing


def forget_standing(db: apsw.Connection) -> None:
    if isinstance(db, Handle):
        db.standing = {}


def known(db: apsw.Connection) -> Known:
    """What is known of the state that the read transaction of `db` sees; outside of one, nothing."""
    if not isinstance(db, Handle) or not db.reads:
        return Known()
    if not db.looked:
        all_rows(db, sql.LOOK)  # a transaction sees a state once it has read something
        db.known.follow(db, db.data_version())
        db.looked = True
    return db.known
