"""Every contract test runs on every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.port import Store
from lukasa.storage.sqlite import SqliteStore, entries


@pytest.fixture(params=["memory", "sqlite", "sqlite, all words in its index"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """SQLite's index gets the words of a few rows at a time, so that most tests would have no word in it."""
    made: Store = MemoryStore()
    if request.param != "memory":
        monkeypatch.setattr(entries, "INDEX_STEP", entries.INDEX_STEP if request.param == "sqlite" else 1)
        made = SqliteStore(tmp_path / "store", role="workspace", create=True)
    yield made
    assert made.check() == []
    made.close()
