"""One PostgreSQL database as this process uses it: its schema, its connections, and the transactions on them."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, TypeVar

import psycopg
from psycopg import conninfo, errors
from psycopg_pool import ConnectionPool, PoolTimeout

from lukasa.index.cache import ReadCache
from lukasa.model import system
from lukasa.model.errors import InvalidInput, StoreBusy, StoreError, StoreMissing, StoreNewer, StoreUnreachable
from lukasa.model.text import TOKENIZER_VERSION
from lukasa.storage.postgres import postgres_store, sql
from lukasa.storage.postgres.execute import (
    TRY_AGAIN,
    Handle,
    Head,
    Session,
    adapt,
    lost,
    translate,
    translated,
    unreachable,
)

Role = Literal["account", "workspace"]
T = TypeVar("T")
OLDEST = 16  # the oldest PostgreSQL that is supported
CONNECTIONS = 16  # of one process, at most
PATIENCE = 30.0  # seconds to wait for a connection, or for another writer of the same store
OUTAGE = 15.0  # seconds for which a call waits for a database that restarts or fails over
ATTEMPTS = 5  # of a transaction that lost against another, or whose connection broke before anything was acknowledged
_PAUSE = 0.1  # seconds between two tries to reach the database
_CACHES = 8  # read caches of one store that are kept for the next transactions
_STORES = 256  # stores whose read caches are kept
_MIGRATING = 0x6C756B617361  # the advisory lock of those who migrate


class Migration(NamedTuple):
    """A step of the schema. Programs that know the schema up to `readable_by` can work with the result."""

    number: int
    name: str
    readable_by: int
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def migrations() -> tuple[Migration, ...]:
    """Return the migrations of this version, in order."""
    found = []
    folder = files("lukasa.storage.postgres") / "migrations"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if match := re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name):
            text = file.read_text(encoding="utf-8")
            readable_by = re.search(r"^-- readable by: (\d+)$", text, re.MULTILINE)
            number = int(match[1])
            found.append(Migration(number, match[2], int(readable_by[1]) if readable_by else number, text))
    return tuple(found)


class Database:
    """A PostgreSQL database. Safe to share between threads, and across a fork."""

    def __init__(self, url: str, known: tuple[Migration, ...]) -> None:
        self._url, self.where = url, shown(url)
        self._known = known
        self._schema_of_vectors = "public"
        self._local = _Local()
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Any] | None = None
        self._pid = os.getpid()
        self._closed = False
        self._caches: dict[tuple[str, str], list[ReadCache]] = {}
        _LIVE.add(self)

    @classmethod
    def open(cls, url: str, *, known: tuple[Migration, ...] | None = None) -> Database:
        """Connect, and bring the schema up to date: one process does it, and others wait for it."""
        database = cls(url, known or migrations())
        with translated(database.where), database._administering() as db:
            database._require_fit(db)
            database._migrate(db)
            found = db.execute(sql.EXTENSION_SCHEMA).fetchone()
            database._schema_of_vectors = found[0] if found else "public"
        return database

    # The schema

    @contextmanager
    def administering(self) -> Iterator[psycopg.Connection[Any]]:
        """Give a connection with all rights of the URL's user, bound to no tenant: for the schema and its indexes."""
        with translated(self.where), self._administering() as db:
            yield db

    @contextmanager
    def _administering(self) -> Iterator[psycopg.Connection[Any]]:
        try:
            db = psycopg.connect(self._url, autocommit=True, connect_timeout=10, application_name="lukasa")
        except psycopg.OperationalError as error:
            raise refused(error, self.where) from None
        try:
            yield db
        finally:
            db.close()

    def _require_fit(self, db: psycopg.Connection[Any]) -> None:
        """Refuse a server that is too old, and one that only reads."""
        if db.info.server_version < OLDEST * 10_000:
            raise StoreError(
                f"{self.where}: PostgreSQL {db.info.server_version // 10_000} is too old",
                fix=f"use PostgreSQL {OLDEST} or newer",
            )
        if db.execute("SELECT pg_is_in_recovery()").fetchone() == (True,):
            raise StoreError(
                f"{self.where}: this server is a read-only replica", fix="name the primary server in the URL"
            )

    def _migrate(self, db: psycopg.Connection[Any]) -> None:
        if not self._missing(db):
            return
        db.execute("SELECT pg_advisory_lock(%s)", (_MIGRATING,))
        try:
            for migration in self._missing(db):
                self._run(db, migration)
        finally:
            db.execute("SELECT pg_advisory_unlock(%s)", (_MIGRATING,))

    def _missing(self, db: psycopg.Connection[Any]) -> list[Migration]:
        """The migrations that this database lacks; refuse a schema that this version cannot work with."""
        if db.execute("SELECT to_regclass('lukasa.migrations')").fetchone() == (None,):
            return list(self._known)
        applied = {number: (sum_, by) for number, sum_, by in db.execute(sql.APPLIED).fetchall()}
        newest = self._known[-1].number
        for number, (_, readable_by) in applied.items():
            if number > newest < readable_by:
                raise StoreNewer(
                    f"{self.where}: its schema has number {number}, and this Lukasa knows it up to {newest}",
                    fix="upgrade Lukasa on this machine",
                )
        for migration in self._known:
            if migration.number in applied and applied[migration.number][0] != migration.checksum:
                raise StoreError(
                    f"{self.where}: migration {migration.number} is not the one of this version",
                    fix="use the version of Lukasa that made this database",
                )
        return [migration for migration in self._known if migration.number not in applied]

    def _run(self, db: psycopg.Connection[Any], migration: Migration) -> None:
        try:
            with db.transaction():
                for statement in sql.PREPARE_SCHEMA if migration.number == 1 else ():
                    db.execute(statement)
                found = db.execute(sql.EXTENSION_SCHEMA).fetchone()
                db.execute(
                    "SELECT set_config('search_path', %s, true)", (f"lukasa, {found[0] if found else 'public'}",)
                )
                db.execute(migration.text.encode())
                now = datetime.now(UTC).isoformat()
                db.execute(
                    sql.MIGRATED, (migration.number, migration.name, migration.checksum, migration.readable_by, now)
                )
        except (errors.UndefinedFile, errors.FeatureNotSupported) as error:
            raise StoreError(
                f"{self.where}: this PostgreSQL has no extension `vector`: {error.diag.message_primary}",
                fix="install pgvector on the database server, then try again",
            ) from error
        except errors.InsufficientPrivilege as error:
            raise StoreError(
                f"{self.where}: the user may not set up the schema: {error.diag.message_primary}",
                fix="have an administrator run: CREATE EXTENSION vector; CREATE ROLE lukasa_app; GRANT lukasa_app TO "
                "the user; or use the URL of a user who may once",
            ) from error
        except psycopg.Error as error:
            if lost(error):
                raise
            raise StoreError(
                f"{self.where}: step {migration.number} of its schema failed: {error.diag.message_primary or error}",
                fix="nothing of that step is left: mend what it says, and try again",
            ) from error

    # Accounts and stores

    def account(self, name: str) -> str:
        """Return the id of the account of that name; it is registered on first use."""

        def ask() -> str:
            with self._connection(PATIENCE) as connection:
                found = connection.execute(sql.ACCOUNT_NAMED, (name,)).fetchone()
            return str(found[0]) if found else ""

        return self.persistent(ask)

    def store(self, id: str, *, account: str, role: Role, create: bool = False) -> postgres_store.PostgresStore:
        """Return a store of an account; with `create`, an absent one is made, without it absence is an error."""
        if create:
            self._create(id, account, role)
        return postgres_store.PostgresStore(self, id, role)

    def _create(self, id: str, account: str, role: Role) -> None:
        about = (account, role, secrets.token_bytes(32), TOKENIZER_VERSION, datetime.now(UTC).isoformat())

        def make() -> None:
            with self._session() as session:
                session.begin(sql.BEGIN_WRITE, id, "")
                session.cursor.execute(sql.NEW_STORE, (id, *about))

        self.persistent(make)

    # Moving

    def mark_of(self, store: str) -> str | None:
        """Return what a store says of a move that is not finished, empty if it is whole; None if there is no store."""

        def ask() -> str | None:
            with self._session() as session:
                if session.begin(sql.BEGIN_WRITE, store, "") is None:
                    return None
                found = session.cursor.execute(sql.MOVING, (store,)).fetchone()
                return None if found is None else str(found[0])

        return self.persistent(ask)

    def begin_move(self, stores: Sequence[tuple[Any, ...]]) -> None:
        """Make marked stores, in one transaction."""
        self._for_each(
            [store for store, *_ in stores], lambda cursor, n: cursor.execute(sql.NEW_MARKED_STORE, stores[n])
        )

    def finish_move(self, stores: Sequence[str]) -> None:
        """Take the marks away, in one transaction."""
        self._for_each(stores, lambda cursor, n: cursor.execute(sql.SET_MOVING, ("", stores[n])))

    def clear(self, stores: Sequence[str]) -> None:
        """Remove marked stores, in one transaction."""
        self._for_each(stores, lambda cursor, n: cursor.execute(sql.CLEAR_STORE, (stores[n],)))

    def _for_each(self, stores: Sequence[str], change: Callable[[psycopg.Cursor[Any], int], object]) -> None:
        def attempt() -> None:
            with self._session() as session:
                for number, store in enumerate(stores):
                    session.enter(store, "") if number else session.begin(sql.BEGIN_WRITE, store, "")
                    change(session.cursor, number)

        self.persistent(attempt)

    @contextmanager
    def holding(self, store: str) -> Iterator[tuple[Session, Head | None]]:
        """Open a transaction of one snapshot that holds the head of a store and may hold others; it changes nothing."""
        connection = self._take(PATIENCE)
        try:
            session = Session(connection, writes=True)
            with translated(self.where):
                head = session.begin(sql.BEGIN_HOLD, store, "", lock=True)
            yield session, head
        finally:
            self._give_back(connection)

    # Transactions

    def persistent(self, attempt: Callable[[], T]) -> T:
        """Try again what has no effect if it fails: for a while if the database is away, a few times if others won."""
        deadline, tries = time.monotonic() + OUTAGE, 0
        while True:
            try:
                return attempt()
            except psycopg.Error as error:
                tries += 1
                away = lost(error) and time.monotonic() < deadline
                if not away and not (isinstance(error, TRY_AGAIN) and tries < ATTEMPTS):
                    raise translate(error, self.where) from error
                time.sleep(_PAUSE)

    @contextmanager
    def reading(self, store: str, keys: str = "") -> Iterator[Handle]:
        """Open a read transaction on a store: one snapshot. Inside another of this thread, it is in that snapshot."""
        session = self._local.session
        with translated(self.where):
            if session is not None:
                yield self._entered(session, store, keys)
            else:
                with self._view(store, keys) as handle:
                    yield handle

    def _entered(self, session: Session, store: str, keys: str) -> Handle:
        found = session.handles.get((store, keys))
        return found or self._handle(session, store, keys, session.enter(store, keys))

    @contextmanager
    def _view(self, store: str, keys: str) -> Iterator[Handle]:
        connection, session, head = self.persistent(lambda: self._begin_view(store, keys))
        try:
            self._local.session = session
            yield self._handle(session, store, keys, head)
            self._keep_caches(session)
        finally:
            self._local.session = None
            self._give_back(connection)

    def _handle(self, session: Session, store: str, keys: str, head: Head | None) -> Handle:
        """Return the handle on a store that was entered, with a read cache of no later snapshot."""
        if head is None:
            raise self.missing(store)
        kept, cache = self._caches.get((store, keys), []), ReadCache()
        with suppress(IndexError):  # others take from it as well
            found = kept.pop()
            cache = found if found.latest <= head.commits else cache
        cache.begin()
        made = session.handles[store, keys] = Handle(session, store, keys, head, cache)
        return made

    def _keep_caches(self, session: Session) -> None:
        """Keep the caches of a transaction for the next ones, those of the stores that were read last."""
        for key, handle in session.handles.items():
            kept = self._caches.pop(key, [])
            if len(kept) < _CACHES:
                kept.append(handle.cache)
            self._caches[key] = kept
        while len(self._caches) > _STORES:
            with suppress(StopIteration, KeyError, RuntimeError):  # others keep theirs at the same time
                del self._caches[next(iter(self._caches))]

    def _begin_view(self, store: str, keys: str) -> tuple[psycopg.Connection[Any], Session, Head | None]:
        connection = self._take(PATIENCE)
        try:
            session = Session(connection, writes=False)
            return connection, session, session.begin(sql.BEGIN_READ, store, keys)
        except BaseException:
            self._give_back(connection)
            raise

    @contextmanager
    def writing(self, store: str, keys: str = "", *, lock: bool = True, patience: float = PATIENCE) -> Iterator[Handle]:
        """Open a transaction that writes to a store, committed on leaving or undone. With `lock` nobody else writes.

        It raises the engine's own errors, for `persistent` around it. An answer to the commit that got lost is looked
        for: the transaction stands, or it is as if it had never begun.
        """
        with self._session(patience) as session:
            head = session.begin(
                sql.BEGIN_WRITE if patience >= PATIENCE else _hurried(patience), store, keys, lock=lock
            )
            if head is None:
                raise self.missing(store)
            yield Handle(session, store, keys, head, ReadCache())

    @contextmanager
    def _session(self, patience: float = PATIENCE) -> Iterator[Session]:
        """Give a session whose transaction the caller begins; it is committed on leaving."""
        connection = self._take(patience)
        try:
            session = Session(connection, writes=True)
            yield session
            self._commit(session)
        finally:
            self._give_back(connection)

    def _commit(self, session: Session) -> None:
        xid = session.xid
        if not xid:
            found = session.cursor.execute("SELECT pg_current_xact_id_if_assigned()::text").fetchone()
            xid = (found and found[0]) or ""
        try:
            session.cursor.execute(sql.COMMIT)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if not lost(error) or not xid or not self._stands(session, xid, error):
                raise

    def _stands(self, session: Session, xid: str, error: psycopg.Error) -> bool:
        """Whether a transaction was committed whose answer got lost. Wait for a database that is coming back.

        It asks over a connection of its own: all those of the pool may be lost, and held by others who ask the same.
        """
        deadline = time.monotonic() + OUTAGE
        while time.monotonic() < deadline:
            try:
                with closing(psycopg.connect(self._url, autocommit=True, connect_timeout=2)) as connection:
                    self._configure(connection)
                    found = connection.execute("SELECT pg_xact_status(%s::xid8)", (xid,)).fetchone()
                    if found is not None and found[0] != "in progress":
                        return found[0] == "committed" and _logged(connection, session)
            except errors.InvalidParameterValue:
                return False  # a crash took it, number and all: the server has not come to that number yet
            except psycopg.OperationalError:
                pass
            time.sleep(_PAUSE)
        raise StoreUnreachable(
            f"{self.where}: the database went away while it committed, and nobody can say whether it did",
            fix="read it again once the database is back, then decide",
        ) from error

    def translating(self) -> AbstractContextManager[None]:
        """Turn errors of PostgreSQL into Lukasa's."""
        return translated(self.where)

    def missing(self, store: str) -> StoreMissing:
        return StoreMissing(
            f"{self.where}: store {store} is gone, but its account still lists it",
            fix="restore it from a backup; Lukasa never replaces it by an empty one",
        )

    # Connections

    @contextmanager
    def _connection(self, patience: float) -> Iterator[psycopg.Connection[Any]]:
        """Give a connection outside of a transaction."""
        connection = self._take(patience)
        try:
            yield connection
        finally:
            self._give_back(connection)

    def _take(self, patience: float) -> psycopg.Connection[Any]:
        if self._closed:
            raise StoreError(f"{self.where} is closed", fix="open the memory again")
        pool = self._pool
        if pool is None or self._pid != os.getpid():
            pool = self._open_pool()
        try:
            taken: psycopg.Connection[Any] = pool.getconn(timeout=max(min(patience, OUTAGE), 0.001))
            return taken
        except PoolTimeout as error:
            if patience < PATIENCE:
                raise StoreBusy(f"{self.where}: no connection is free", fix="try again") from error
            raise unreachable(self.where, "no connection could be had in time") from error

    def _open_pool(self) -> ConnectionPool[Any]:
        """Open the pool of this process. After a fork, the child leaves that of its parent alone."""
        with self._lock:
            if self._pool is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._pool = ConnectionPool(
                    self._url,
                    kwargs={"autocommit": True, "connect_timeout": 10, "application_name": "lukasa"},
                    min_size=1,
                    max_size=CONNECTIONS,
                    num_workers=2,
                    configure=self._configure,
                    name="lukasa",
                    open=True,
                )
            return self._pool

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        connection.prepare_threshold, connection.prepared_max = 2, 500
        adapt(connection)
        connection.execute("SELECT set_config('search_path', %s, false)", (f"lukasa, {self._schema_of_vectors}",))
        for setting in sql.SETTINGS:
            connection.execute(setting)

    def _give_back(self, connection: psycopg.Connection[Any]) -> None:
        """Undo what is open, and return the connection; the pool replaces a broken one."""
        with suppress(psycopg.Error):
            if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.pgconn.exec_(sql.ROLLBACK.encode())
        if self._pool is not None and self._pid == os.getpid():
            with suppress(ValueError):  # of a pool that was closed meanwhile
                self._pool.putconn(connection)

    def after_fork(self) -> None:
        """In the child: open connections of its own, and leave those of the parent alone."""
        self._local, self._lock = _Local(), threading.Lock()
        self._abandoned, self._pool = self._pool, None
        self._caches = {}

    def close(self) -> None:
        """Let go of all connections."""
        self._closed = True
        if self._pool is not None and self._pid == os.getpid():
            self._pool.close()
        self._pool = None
        self._caches.clear()


class _Local(threading.local):
    session: Session | None = None


def _logged(connection: psycopg.Connection[Any], session: Session) -> bool:
    """Whether the log has what a transaction added: after a crash, another one may have been given its number."""
    if session.witness is None:
        return True
    store, *event = session.witness
    with connection.transaction():
        connection.execute(sql.BIND, (store, ""))
        return connection.execute(sql.IN_THE_LOG, (store, *event)).fetchone() == (True,)


def _hurried(patience: float) -> str:
    """Return the statement that begins a transaction whose locks are waited for so many seconds."""
    return f"{sql.BEGIN_WRITE}; SET LOCAL lock_timeout = {max(1, round(patience * 1000))}"


def shown(url: str) -> str:
    """Return a database's address as messages show it: without user and password. Refuse what is no such address."""
    if not url.startswith(("postgresql://", "postgres://")):
        scheme = url.split(":", 1)[0][:30] if ":" in url else "no scheme"
        raise InvalidInput(
            f"not a PostgreSQL URL: it begins with {scheme!r}",
            fix="write postgresql://user:password@host:5432/database",
        )
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise InvalidInput(
            "this PostgreSQL URL cannot be read", fix="write postgresql://user:password@host:5432/database"
        ) from None
    host, port = parts.get("host") or parts.get("hostaddr") or "localhost", parts.get("port")
    return f"postgresql://{host}{f':{port}' if port else ''}/{parts.get('dbname') or parts.get('user') or ''}"


def refused(error: psycopg.OperationalError, where: str) -> StoreError:
    """Say why no connection can be made, without repeating the password."""
    said = str(error)
    if "password authentication failed" in said or "no password supplied" in said or "authentication failed" in said:
        return StoreError(f"{where}: the user or the password is wrong", fix="check the URL, or the password file")
    if match := re.search(r'database "[^"]*" does not exist', said):
        return StoreError(f"{where}: {match[0]}", fix="create it: CREATE DATABASE …")
    if match := re.search(r'role "[^"]*" does not exist', said):
        return StoreError(f"{where}: {match[0]}", fix="create it: CREATE ROLE … LOGIN")
    if "too many clients" in said or "remaining connection slots" in said or "too many connections" in said:
        fix = "raise max_connections there, or run fewer servers"
        return StoreBusy(f"{where}: the database takes no more connections", fix=fix)
    if "no pg_hba.conf entry" in said:
        return StoreError(f"{where}: the server lets nobody in from this machine", fix="add a line to its pg_hba.conf")
    return unreachable(where, said.strip().splitlines()[0][:300] if said.strip() else "no answer")


_LIVE: weakref.WeakSet[Database] = weakref.WeakSet()


def _after_fork() -> None:
    for database in list(_LIVE):
        database.after_fork()


system.at_fork(after_in_child=_after_fork)
