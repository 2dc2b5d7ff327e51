"""The vector cache: always what the database holds, never more memory than allowed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import numpy as np
import pytest

from mnemon.adapters.store.sqlite import SqliteStore, searching
from mnemon.model.entry import Entry, Scope
from mnemon.model.values import State
from mnemon.ports.embedder import EmbeddingModel
from mnemon.ports.store import DropEntry, Embedding, SaveEmbedding, SaveEntry, Selection
from tests.helpers.stores import MODEL, OPEN, OTHER_MODEL, commit, entry, move, put, stored, vector_of


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    yield store
    store.close()


def test_a_warm_cache_answers_like_a_cold_one(tmp_path: Path, store: SqliteStore) -> None:
    """T22: after any mix of additions, moves, replacements and drops, a warm store equals a fresh one."""
    dice = random.Random(5)
    alive: list[Entry] = []
    for step in range(120):
        choice = dice.random()
        if choice < 0.5 or not alive:
            e = entry(f"fact {step}")
            commit(store, put(e, vector_of(e.content)))
            alive.append(e)
        elif choice < 0.65:
            commit(store, DropEntry((e := alive.pop(dice.randrange(len(alive)))).id, stored(store, e).version, "x"))
        elif choice < 0.8:
            now = stored(store, dice.choice(alive))
            commit(store, move(now, State.HELD if now.state is State.ACTIVE else State.ACTIVE))
        else:
            now = stored(store, dice.choice(alive))
            commit(store, SaveEmbedding(now.id, now.version, Embedding(MODEL, vector_of(str(step)))))
        warm = store.nearest(OPEN, MODEL, vector_of("q"), 10)
        if step % 10 == 0:
            cold = SqliteStore(tmp_path / "store", role="workspace", create=False)
            assert [(n.id, round(n.cosine, 5)) for n in cold.nearest(OPEN, MODEL, vector_of("q"), 10)] == [
                (n.id, round(n.cosine, 5)) for n in warm
            ]
            cold.close()


def test_an_older_view_is_served_as_it_was(store: SqliteStore) -> None:
    """T22: a read that began before a change does not see it, though another thread has moved the cache on."""
    a, b, c = entry("a"), entry("b"), entry("c")
    commit(store, put(a, vector_of("a")), put(b, vector_of("b")))

    def change_and_look() -> set[str]:
        commit(store, put(c, vector_of("c")), DropEntry(a.id, 1, "gone"))
        return {n.id for n in store.nearest(OPEN, MODEL, vector_of("q"), 9)}

    with ThreadPoolExecutor(1) as pool, store._connections.reading() as db:
        assert db.execute("SELECT count(*) FROM entries").get == 2  # from here on this is the view
        assert pool.submit(change_and_look).result() == {b.id, c.id}
        seen = searching.nearest(db, store._cache, OPEN, MODEL, vector_of("q"), 9)
        assert {n.id for n in seen} == {a.id, b.id}
    assert {n.id for n in store.nearest(OPEN, MODEL, vector_of("q"), 9)} == {b.id, c.id}


def test_memory_is_bounded(tmp_path: Path) -> None:
    """T36: blocks beyond the limit are given up, the least used first, and come back when asked."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True, cache_bytes=40_000)
    big = EmbeddingModel("big", 256, "x")
    scopes = [Scope("workspace", (("workspace", f"w{i}"),)) for i in range(6)]
    for scope in scopes:
        commit(store, *(put(entry(f"e{i}", scope=scope), vector_of(f"e{i}", 256), big) for i in range(12)))
    for scope in (*scopes, *scopes):
        assert len(store.nearest(Selection((scope,)), big, vector_of("q", 256), 99)) == 12
        assert sum(block.bytes for block in store._cache._blocks.values()) <= 40_000
    store.close()


def test_vectors_of_any_length_are_compared_by_angle(store: SqliteStore) -> None:
    """R2: cosines do not depend on the length of what was stored, and a vector of nothing is near nothing."""
    long, zero = entry("long"), entry("zero")
    commit(store, put(long, vector_of("a") * 7), put(zero, np.zeros(4, dtype=np.float32)))
    found = {n.id: n.cosine for n in store.nearest(OPEN, MODEL, vector_of("a"), 9)}
    assert found[long.id] == pytest.approx(1.0, abs=1e-6)
    assert found[zero.id] == 0.0
    assert store.nearest(OPEN, OTHER_MODEL, vector_of("a"), 9) == []


def test_a_vector_is_raw_little_endian_float32(tmp_path: Path) -> None:
    """R9: 384 dimensions are 1,536 bytes in the file, readable by anything that knows float32."""
    model = EmbeddingModel("any", 384, "d")
    given = np.linspace(-1, 1, 384, dtype=np.float32)
    store = SqliteStore(tmp_path / "raw", role="workspace", create=True)
    commit(store, SaveEntry(entry("a fact"), 0, "entry.put", "test", (), Embedding(model, given)))
    store.close()
    db = apsw.Connection(str(tmp_path / "raw" / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
    ((blob,),) = db.execute("SELECT vector FROM vectors").fetchall()
    assert isinstance(blob, bytes)
    assert len(blob) == 1536
    assert blob == given.astype("<f4").tobytes()
