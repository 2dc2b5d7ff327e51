"""Every contract test runs on every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mnemon.adapters.store.memory import MemoryStore
from mnemon.adapters.store.sqlite import SqliteStore
from mnemon.ports.store import Store


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore()
    if request.param == "sqlite":
        made = SqliteStore(tmp_path / "store", role="workspace", create=True)
    yield made
    assert made.check() == []
    made.close()
