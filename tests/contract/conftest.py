"""Every contract test runs on every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lukasa.model.ids import new_id
from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.port import Store
from lukasa.storage.postgres import entries as postgres_entries
from lukasa.storage.postgres.database import Database
from lukasa.storage.sqlite import SqliteStore, entries

ALL_WORDS = ", all words in its index"


@pytest.fixture(params=["memory", "sqlite", f"sqlite{ALL_WORDS}", "postgres", f"postgres{ALL_WORDS}"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An index gets the words of a few rows at a time, so that most tests would have no word in it."""
    made: Store = MemoryStore()
    if request.param.endswith(ALL_WORDS):
        monkeypatch.setattr(entries, "INDEX_STEP", 1)
        monkeypatch.setattr(postgres_entries, "INDEX_STEP", 1)
    if request.param.startswith("sqlite"):
        made = SqliteStore(tmp_path / "store", role="workspace", create=True)
    if request.param.startswith("postgres"):
        made = request.getfixturevalue("database").store(new_id(), account=new_id(), role="workspace", create=True)
    yield made
    assert made.check() == []
    made.close()


@pytest.fixture(scope="session")
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """One database for all tests, each of which has a store of its own in it."""
    with request.getfixturevalue("postgres").database() as url:
        opened = Database.open(url)
        yield opened
        opened.close()
