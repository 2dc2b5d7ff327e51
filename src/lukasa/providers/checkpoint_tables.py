"""The chats of a workspace in a PostgreSQL database: a lock for each that runs, and LangGraph's own tables.

LangGraph's Postgres saver gets a schema of its own beside memory. Rows are counted and removed without LangGraph.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, LiteralString

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from lukasa.model.conversation import Conversation
from lukasa.model.database_url import masked
from lukasa.model.erasure import Words
from lukasa.model.errors import StoreBusy, StoreError

SCHEMA = "lukasa_checkpoints"
_TABLES = "SELECT to_regclass('lukasa_checkpoints.checkpoint_writes') IS NOT NULL"
_COUNT = """SELECT (SELECT count(*) FROM checkpoints WHERE thread_id = %(thread)s)
    + (SELECT count(*) FROM checkpoint_blobs WHERE thread_id = %(thread)s)
    + (SELECT count(*) FROM checkpoint_writes WHERE thread_id = %(thread)s)"""
_DROP: tuple[LiteralString, ...] = (
    "DELETE FROM checkpoints WHERE thread_id = %s",
    "DELETE FROM checkpoint_blobs WHERE thread_id = %s",
    "DELETE FROM checkpoint_writes WHERE thread_id = %s",
)
# A plain VACUUM marks the space of removed rows as free; their words stay in it until other rows need it.
_REWRITE = "VACUUM FULL checkpoints, checkpoint_blobs, checkpoint_writes"
_PATIENT = "SET lock_timeout = '5s'"
# A lock is held as long as its connection: the server frees it when the process is gone.
_LEAD = "SELECT pg_try_advisory_lock(%s)"
_LED = """SELECT EXISTS (SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
    WHERE datname = current_database() AND locktype = 'advisory' AND objsubid = 1 AND granted
    AND (classid::bigint << 32 | objid::bigint) = %s)"""
_SETUP = "lukasa checkpoints"  # the lock of the one process that makes the tables
_SETUP_PAUSE = 0.1
_CONNECT = 10  # seconds


class CheckpointTables:
    """Implements `lukasa.ports.Threads` on a database. Every question has a connection of its own; few are asked."""

    def __init__(self, url: str) -> None:
        self._url = url

    @contextmanager
    def lead(self, conversation: Conversation) -> Iterator[None]:
        with self._connected() as db:
            if not _one(db.execute(_LEAD, (_lock(conversation),))):
                raise StoreError(
                    f"conversation {conversation.ref_code} is open in another process", fix="end it there first"
                )
            yield

    def led(self, conversation: Conversation) -> bool:
        with self._connected() as db:
            return bool(_one(db.execute(_LED, (_lock(conversation),))))

    @contextmanager
    def saver(self) -> Iterator[Any]:
        """Open LangGraph's own saver over a few connections, which it opens again if the server was restarted."""
        try:
            saver = import_module("langgraph.checkpoint.postgres").PostgresSaver
            pools = import_module("psycopg_pool")
        except ModuleNotFoundError as missing:
            raise StoreError(
                f"the checkpoints of chats in PostgreSQL need the package {missing.name!r}, which is not installed",
                fix="pip install 'lukasa[langgraph-postgres]'",
            ) from None
        with self._connected() as db:
            _prepare(db, saver(db))
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row, **self._options()}
        pool = pools.ConnectionPool(
            self._url, kwargs=options, min_size=1, max_size=2, open=False, check=pools.ConnectionPool.check_connection
        )
        with self._translated():
            pool.open(wait=True, timeout=_CONNECT)
            try:
                yield saver(pool)
            finally:
                pool.close()

    def kept(self, thread: str) -> int:
        with self._connected() as db:
            return int(_one(db.execute(_COUNT, {"thread": thread}))) if _one(db.execute(_TABLES)) else 0

    def purge(self, thread: str) -> None:
        with self._connected() as db:
            if not _one(db.execute(_TABLES)):
                return
            db.execute(_PATIENT)
            with db.transaction():
                for statement in _DROP:
                    db.execute(statement, (thread,))
            db.execute(_REWRITE)

    def holding(self, words: Words) -> list[str]:
        with self._connected() as db:
            if not _one(db.execute(_TABLES)):
                return []
            found = set[str]()
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                for row in db.execute(f"SELECT * FROM {table}".encode()):
                    if any(words.count(_as_bytes(value)) for value in row.values()):
                        found.add(row["thread_id"])
            return sorted(found)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[dict[str, Any]]]:
        with (
            self._translated(),
            psycopg.connect(self._url, autocommit=True, row_factory=dict_row, **self._options()) as db,
        ):
            yield db

    def _options(self) -> dict[str, Any]:
        """Return the options of a connection that finds LangGraph's tables in their own schema."""
        given = conninfo_to_dict(self._url)
        options = f"{given.get('options') or ''} -c search_path={SCHEMA}".strip()
        return {"options": options, "connect_timeout": given.get("connect_timeout") or _CONNECT}

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.errors.LockNotAvailable as error:
            raise StoreBusy(
                f"the checkpoints of chats in {masked(self._url)} are in use", fix="try again when fewer chats run"
            ) from error
        except psycopg.Error as error:
            raise StoreError(
                f"the checkpoints of chats in {masked(self._url)}: {_first_line(error)}",
                fix="check that PostgreSQL runs and that the role may create and use the schema "
                f"{SCHEMA}; memory itself is not affected",
            ) from error


def _prepare(db: psycopg.Connection[dict[str, Any]], saver: Any) -> None:
    """Make or migrate LangGraph's tables, if they are not there yet; one process does, and others wait.

    They wait without a statement: building an index concurrently waits for every statement that runs.
    """
    while not _is_prepared(db, saver):
        if _one(db.execute(_LEAD, (_number(_SETUP),))):
            if not _one(db.execute("SELECT to_regnamespace('lukasa_checkpoints') IS NOT NULL")):
                db.execute("CREATE SCHEMA lukasa_checkpoints")
            saver.setup()
            return
        time.sleep(_SETUP_PAUSE)


def _is_prepared(db: psycopg.Connection[dict[str, Any]], saver: Any) -> bool:
    if not _one(db.execute(_TABLES)):
        return False
    return bool(_one(db.execute("SELECT max(v) FROM checkpoint_migrations")) == len(saver.MIGRATIONS) - 1)


def _lock(conversation: Conversation) -> int:
    return _number(f"lukasa chat {conversation.id}")


def _number(name: str) -> int:
    """Return the number of an advisory lock."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)


def _one(cursor: psycopg.Cursor[dict[str, Any]]) -> Any:
    """Return the only value of an answer."""
    (value,) = (cursor.fetchone() or {"": None}).values()
    return value


def _as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value, default=str, ensure_ascii=False).encode()


def _first_line(error: psycopg.Error) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
