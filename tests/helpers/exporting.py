"""Exports of stores, and stores made of exports, on every engine."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lukasa.storage import export_file, transfer
from lukasa.storage.export_file import Exported, ExportFile, Written
from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.memory.transfer import MemoryGround, MemoryPages
from lukasa.storage.port import Store
from lukasa.storage.postgres.database import Database
from lukasa.storage.postgres.postgres_store import PostgresStore
from lukasa.storage.postgres.transfer import DatabaseGround, DatabaseMemory
from lukasa.storage.sqlite import SqliteStore
from lukasa.storage.sqlite.transfer import FolderGround, SqlitePages
from lukasa.storage.transfer import Given, Ground

AT = datetime(2026, 11, 19, tzinfo=UTC)
ACCOUNT = "0191d0a0-0000-7000-8000-00000000acc0"


def pages(store: Store, id: str) -> Given:
    """Return a store as an export reads it."""
    if isinstance(store, SqliteStore):
        store.part()
        return SqlitePages(store, id, "workspace")
    if isinstance(store, PostgresStore):
        store.part()
        return DatabaseMemory(store._database, "none", "").pages(id)
    assert isinstance(store, MemoryStore)
    return MemoryPages(store, id, "workspace")


def exported(store: Store, id: str, *, vectors: bool = False) -> bytes:
    """Return the export of a store."""
    told: list[Written] = []
    head = export_file.header(AT, "workspace", vectors=vectors, program="test")
    with store.snapshot():
        made = list(export_file.lines(head, iter([Exported(pages(store, id))]), told.append, lambda lines: None))
    assert told[0].lines == len(made) - 1
    return b"".join(made)


def read(data: bytes) -> ExportFile:
    return ExportFile(io.BytesIO(data), "export.jsonl")


def settled(data: bytes, engine: str, folder: Path, database: Database | None = None) -> Store:
    """Bring the one store of an export into a new store of an engine, and return that store."""
    kept: dict[str, Any] = {}
    grounds: dict[str, Ground] = {"memory": MemoryGround(kept.__setitem__), "sqlite": FolderGround(folder)}
    if database is not None:
        grounds["postgres"] = DatabaseGround(database, ACCOUNT)
    with read(data) as file:
        (given,) = file.stores
        transfer.settle(given, grounds[engine], lambda rows: None)
        id = given.about.id
    if engine == "sqlite":
        return SqliteStore(folder / "workspaces" / id, role="workspace", create=False)
    if engine == "postgres":
        assert database is not None
        return database.store(id, account=ACCOUNT, role="workspace")
    made: Store = kept[id]
    return made
