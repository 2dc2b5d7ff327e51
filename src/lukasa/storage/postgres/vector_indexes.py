"""The vector index that a large partition gets of its own: pgvector's HNSW over its vectors of one model alone.

One index for all partitions would look at the vectors of others first and find little of a small one. To compare every
vector of a partition takes time in proportion to them, so a partition gets an index once it is large, and loses it when
it is small again. The index is made beside all reading and writing, on a connection with the rights of the URL's user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
from psycopg import sql as compose

from lukasa.storage.postgres import sql
from lukasa.storage.postgres.execute import Handle

if TYPE_CHECKING:
    from lukasa.storage.postgres.database import Database

LARGE = 5_000  # vectors of a partition, from which on it gets an index
SMALL = LARGE // 2  # vectors of a partition below which it loses it
MOST_DIMENSIONS = 2_000  # that pgvector can index


def due(db: Handle) -> bool:
    """Return whether some partition should get or lose its index."""
    return bool(_missing(db) or _spare(db))


def update(database: Database, store: str) -> int:
    """Make the missing indexes and drop those of small partitions. Return how many were made or dropped."""
    with database.reading(store) as db:
        missing, spare = _missing(db), _spare(db)
    if not (missing or spare):
        return 0
    with database.administering() as admin:
        admin.execute("SET statement_timeout = 0")
        admin.execute("SET maintenance_work_mem = '256MB'")
        return sum(_make(database, admin, store, *one) for one in missing) + sum(
            _drop(database, admin, store, *one) for one in spare
        )


def _missing(db: Handle) -> list[tuple[Any, ...]]:
    return db.all(sql.UNINDEXED_PARTITIONS, LARGE, MOST_DIMENSIONS)


def _spare(db: Handle) -> list[tuple[Any, ...]]:
    return db.all(sql.SMALL_INDEXED_PARTITIONS, SMALL)


def index_name(store: str, partition: int, model: int) -> str:
    return f"vectors_{UUID(store).hex}_{int(partition)}_{int(model)}"


def _make(
    database: Database, admin: psycopg.Connection[Any], store: str, partition: int, model: int, dimensions: int
) -> int:
    """Make an index, unless another process is at it. What an interrupted attempt left is removed first."""
    name = index_name(store, partition, model)
    if admin.execute(sql.TRY_TO_BUILD, (name,)).fetchone() != (True,):
        return 0
    try:
        admin.execute(_named("DROP INDEX CONCURRENTLY IF EXISTS lukasa.{name}", name))
        admin.execute(sql.vector_index(name, store, partition, model, dimensions).encode())
        _note(database, sql.NEW_VECTOR_INDEX, store, partition, model, dimensions, name)
    finally:
        admin.execute(sql.DONE_BUILDING, (name,))
    return 1


def _drop(database: Database, admin: psycopg.Connection[Any], store: str, partition: int, model: int) -> int:
    """Drop an index. Searches stop to ask for it first."""
    _note(database, sql.DROP_VECTOR_INDEX, store, partition, model)
    admin.execute(_named("DROP INDEX CONCURRENTLY IF EXISTS lukasa.{name}", index_name(store, partition, model)))
    return 1


def _note(database: Database, statement: str, store: str, *values: Any) -> None:
    def change() -> None:
        with database.writing(store) as db:
            db.run(statement, *values)
            db.run(sql.COMMITTED)

    database.persistent(change)


def _named(statement: str, name: str) -> compose.Composed:
    return compose.SQL(statement).format(name=compose.Identifier(name))
