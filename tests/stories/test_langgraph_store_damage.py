"""Items that were tampered with are named; what is derived from them is made anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from lukasa.model.item import Item, ItemAddress
from lukasa.storage.operations import ItemVector, SaveItem
from lukasa.storage.port import ItemQuery
from lukasa.storage.sqlite import SqliteStore
from tests.helpers.stores import MODEL, NOW, commit, unit


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "store", role="workspace", create=True)
    for key in ("one", "two"):
        item = Item(ItemAddress(("a", "b"), key), {"text": f"number {key}"}, NOW, NOW)
        commit(made, SaveItem(item, (ItemVector("$", MODEL, unit(1, 0, 0, 0)),)))
    yield made
    made.close()


def vandalise(folder: Path, statement: str) -> None:
    db = apsw.Connection(str(folder / "store" / "memory.db"))
    db.execute(statement).fetchall()
    db.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE items SET value = '{\"text\":\"another\"}' WHERE key = 'one'",
        "UPDATE items SET key = 'three' WHERE key = 'one'",
        'UPDATE item_spaces SET path = \'["a","c"]\'',
        "DELETE FROM items WHERE key = 'one'",
        "UPDATE items SET salt = x'00' WHERE key = 'one'",
        "INSERT INTO items (space, key, created_at, updated_at, value_hash, salt, value) "
        "SELECT space, 'more', created_at, updated_at, value_hash, salt, value FROM items WHERE key = 'one'",
    ],
)
def test_an_altered_item_is_found(store: SqliteStore, tmp_path: Path, statement: str) -> None:
    """T17: a value, key or namespace that the log does not vouch for, and an item that is gone or was slipped in."""
    vandalise(tmp_path, statement)
    findings = [finding for finding in store.check() if finding.what == "content"]
    assert findings
    assert not any(finding.derived for finding in findings)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM item_prefixes WHERE prefix = '[\"a\"]'",
        "INSERT INTO item_prefixes SELECT '[\"z\"]', space FROM item_prefixes LIMIT 1",
        "UPDATE item_vectors SET vector = zeroblob(16) WHERE seq = 1",
        "UPDATE item_vectors SET vector = x'00' WHERE seq = 1",
        "PRAGMA foreign_keys = OFF; UPDATE item_vectors SET item = 99 WHERE seq = 1",
    ],
)
def test_what_is_derived_is_rebuilt(store: SqliteStore, tmp_path: Path, statement: str) -> None:
    """T22: a namespace that is not found by its beginnings, and vectors that are not of their value."""
    vandalise(tmp_path, statement)
    findings = store.check()
    assert findings
    assert all(finding.derived for finding in findings)
    store.rebuild()
    assert store.check() == []
    assert len(store.find_items(ItemQuery(("a",)))) == 2
    assert store.find_items(ItemQuery(("z",))) == []
