"""An open transaction as one store sees it, and the translation of the engine's errors.

Every statement has the store's id as its first value, and the transaction is bound to that store besides: row-level
security shows no row of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

import psycopg
from psycopg import errors
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8Dumper

from lukasa.index.cache import ReadCache
from lukasa.model.arrays import np
from lukasa.model.errors import (
    Conflict,
    InvalidContent,
    LukasaError,
    Refused,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnreachable,
)
from lukasa.storage.postgres import sql

Row = tuple[Any, ...]
_STREAMS, _FETCHED = count(1), 200
VECTOR_HEADER = 4  # bytes before the numbers of a vector in pgvector's binary form


class PgVector(NamedTuple):
    """A vector to bind: the bytes of little-endian float32 numbers."""

    data: bytes


class _VectorDumper(Dumper):
    """Binds a vector in pgvector's binary form: its length, an unused number, and big-endian float32 numbers."""

    format = Format.BINARY

    def dump(self, obj: PgVector) -> Buffer:
        return (
            (len(obj.data) // 4).to_bytes(2, "big") + b"\0\0" + np.frombuffer(obj.data, "<f4").astype(">f4").tobytes()
        )


def vector_bytes(data: bytes) -> bytes:
    """Return the little-endian float32 numbers of a vector in pgvector's binary form."""
    made: bytes = np.frombuffer(data, ">f4", offset=VECTOR_HEADER).astype("<f4").tobytes()
    return made


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Bind whole numbers as bigint, whatever their size, so that a statement has one plan; and vectors in binary."""
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(PgVector, _VectorDumper)


class Head(NamedTuple):
    """A store as a transaction finds it: the end of its log, and how far its numbers have come.

    `written` counts the times that access counts were written; `xid` is the transaction's own number, if it writes.
    """

    seq: int
    digest: str
    commits: int
    rebuilt: int
    entries: int
    fed: int
    written: int
    xid: str


class Session:
    """An open transaction. In one that reads, several stores may be entered, one after the other: one snapshot."""

    def __init__(self, connection: psycopg.Connection[Any], *, writes: bool) -> None:
        self.cursor = connection.cursor(binary=True)
        self.writes = writes
        self.handles: dict[tuple[str, str], Handle] = {}
        self.xid = ""  # the number of this transaction, if it holds a store's head
        self.witness: tuple[str, int, str] | None = None  # of its commit: a store, and the last event it adds there
        self._bound: tuple[str, str] | None = None

    def begin(self, statement: str, store: str, keys: str, *, lock: bool = False) -> Head | None:
        """Begin the transaction and enter a store, in one round trip if no scope key is bound; see `enter`."""
        if keys:  # values of a caller, which never become part of a statement
            self.cursor.execute(statement.encode())
            self.cursor.execute(sql.ENTER_TO_WRITE if lock else sql.ENTER, (store, keys))
            return self._entered(store, keys, self.cursor.fetchone())
        cursor = psycopg.ClientCursor(self.cursor.connection)
        cursor.execute(f"{statement}; {sql.ENTER_TO_WRITE if lock else sql.ENTER}".encode(), (store, keys))
        while cursor.nextset():
            pass
        return self._entered(store, keys, cursor.fetchone())

    def enter(self, store: str, keys: str, *, lock: bool = False) -> Head | None:
        """Bind the transaction to a store and return its head, locked if asked; None if there is no such store."""
        self.cursor.execute(sql.ENTER_TO_WRITE if lock else sql.ENTER, (store, keys))
        return self._entered(store, keys, self.cursor.fetchone())

    def _entered(self, store: str, keys: str, found: Row | None) -> Head | None:
        self._bound = store, keys
        if found is None:
            return None
        head = Head(*found)
        self.xid = head.xid
        return head

    def bind(self, store: str, keys: str) -> None:
        """Bind the transaction to a store that it has entered before."""
        if self._bound != (store, keys):
            self.cursor.execute(sql.BIND, (store, keys))
            self._bound = store, keys


class Handle:
    """A transaction bound to a store: what statements run on. Its cache is thrown away if the transaction writes."""

    __slots__ = ("_bound", "cache", "head", "session", "store")

    def __init__(self, session: Session, store: str, keys: str, head: Head, cache: ReadCache) -> None:
        self.session, self.store, self.head, self.cache = session, store, head, cache
        self._bound = store, keys

    @property
    def writes(self) -> bool:
        return self.session.writes

    def whole(self) -> Handle:
        """Return a handle of the same transaction that no scope key binds, for what is kept for all scopes at once."""
        return self if not self._bound[1] else Handle(self.session, self.store, "", self.head, self.cache)

    def all(self, statement: str, *values: Any) -> list[Row]:
        """Return the rows of a statement, whose first value is the store."""
        self.session.bind(*self._bound)
        cursor = self.session.cursor
        cursor.execute(statement, (self.store, *values))
        return cursor.fetchall()

    def stream(self, statement: str, *values: Any) -> Iterator[Row]:
        """Give row by row what may not fit in memory, from a cursor on the server: as it was when it was opened."""
        self.session.bind(*self._bound)
        cursor, name = self.session.cursor, f"stream_{next(_STREAMS)}"
        cursor.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {statement}".encode(), (self.store, *values))
        while rows := cursor.execute(f"FETCH {_FETCHED} FROM {name}".encode(), prepare=False).fetchall():
            yield from rows
        cursor.execute(
            f"CLOSE {name}".encode(), prepare=False
        )  # one that is left in the middle ends with the transaction

    def named(self, statement: str, values: Mapping[str, Any]) -> list[Row]:
        """Return the rows of a statement whose values have names, the store among them.

        Many of its conditions may be absent, so it is planned for the values that it has.
        """
        self.session.bind(*self._bound)
        self.session.cursor.execute(sql.PLAN_BY_VALUES)
        self.session.cursor.execute(statement, values)
        return self.session.cursor.fetchall()

    def one(self, statement: str, *values: Any) -> Row | None:
        found = self.all(statement, *values)
        return found[0] if found else None

    def value(self, statement: str, *values: Any) -> Any:
        """Return the first column of the first row; None if there is no row."""
        found = self.all(statement, *values)
        return found[0][0] if found else None

    def run(self, statement: str, *values: Any) -> int:
        """Run a statement that returns nothing, and return how many rows it changed."""
        self.session.bind(*self._bound)
        self.session.cursor.execute(statement, (self.store, *values))
        return self.session.cursor.rowcount

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self.session.bind(*self._bound)
        if len(rows) == 1:
            self.session.cursor.execute(statement, (self.store, *rows[0]))
        elif rows:
            self.session.cursor.executemany(statement, [(self.store, *row) for row in rows])


# Errors

_LOST = ("08", "57P01", "57P02", "57P03", "57P05")
TRY_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)


def lost(error: BaseException) -> bool:
    """Whether the connection is gone, or the server is not there (yet, or any more)."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(_LOST)


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn errors of PostgreSQL into Lukasa's. `where` names the database without its password."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, where) from error


def translate(error: psycopg.Error, where: str) -> LukasaError:
    said = (error.diag.message_primary or str(error)).strip().splitlines()
    what = said[0] if said else type(error).__name__
    if lost(error):
        return unreachable(where, what)
    match error:
        case errors.DiskFull() | errors.InsufficientResources() if error.sqlstate == "53100":
            fix = "free some space there and try again; what was stored before is kept, and can be read"
            return StoreFull(f"{where}: no space left on the disk of the database", fix=fix)
        case errors.TooManyConnections():
            fix = "raise max_connections there, or run fewer servers"
            return StoreBusy(f"{where}: the database takes no more connections", fix=fix)
        case (
            errors.LockNotAvailable()
            | errors.QueryCanceled()
            | errors.SerializationFailure()
            | errors.DeadlockDetected()
        ):
            return StoreBusy(f"{where}: others kept it too busy ({what})", fix="try again; nothing was written")
        case errors.UniqueViolation():
            return Conflict(f"something with that key exists already: {what}", fix="read it again")
        case errors.ForeignKeyViolation() | errors.RestrictViolation() | errors.CheckViolation():
            return Refused(f"the database refuses it: {what}", fix="remove what depends on it first")
        case errors.ReadOnlySqlTransaction():
            return StoreError(f"{where}: the database is read-only", fix="name the primary server, not a replica")
        case errors.InsufficientPrivilege():
            fix = (
                "give the user the role: GRANT lukasa_app TO that user; docs/how-to/run-on-postgresql.md has the roles"
            )
            return StoreError(f"{where}: the user may not do that: {what}", fix=fix)
        case errors.DataCorrupted() | errors.IndexCorrupted() | errors.InvalidTextRepresentation():  # of JSON in a row
            return StoreDamaged(
                f"{where}: {what}", fix="run `lukasa doctor`; what it cannot mend, restore from a backup"
            )
        case psycopg.DataError():
            return InvalidContent(f"the database cannot keep this text: {what}", fix="take out NUL characters")
    return StoreError(f"{where}: {what}", fix="run `lukasa doctor`")


def unreachable(where: str, why: str) -> StoreUnreachable:
    return StoreUnreachable(f"{where}: the database does not answer: {why}", fix="start it, or check the host and port")
