"""The vector cache: always what the database holds, never more memory than allowed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from msgspec.structs import replace

from lukasa.index import blobs, lookup, vectors
from lukasa.index.ann import Sizes
from lukasa.index.matches import NeighbourQuery, NewText
from lukasa.model.entry import Entry, Scope
from lukasa.model.selection import Filters, Selection
from lukasa.model.values import State
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage.operations import DropEntry, Embedding, SaveEmbedding, SaveEntry
from lukasa.storage.sqlite import SqliteStore
from lukasa.storage.sqlite.search import SqliteSearchRows
from tests.helpers.processes import finish, fork
from tests.helpers.stores import MODEL, OPEN, OTHER_MODEL, Cosine, commit, entry, move, put, stored, vector_of


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
            assert [(n.id, Cosine(n.cosine)) for n in cold.nearest(OPEN, MODEL, vector_of("q"), 10)] == [
                (n.id, Cosine(n.cosine)) for n in warm
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
        seen = vectors.nearest(SqliteSearchRows(db), store._vectors, OPEN, MODEL, vector_of("q"), 9)
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
        assert sum(held.bytes for held in store._vectors._held.values()) <= 40_000
    store.close()


# Rooms too large to look at every vector


SMALL = Sizes(small=300, large=300, lists=10_000)
LISTS = Sizes(small=300, large=300, lists=301)
AS_THEY_ARE = Sizes(small=300, large=10_000)  # with images, but not in bytes
WIDE = EmbeddingModel("wide", 128, "x")


def likeness(count: int, seed: int = 1) -> Vector:
    """Directions as embedders give them: much in common, some more akin than others, and along few axes mostly."""
    spread = np.linspace(1.0, 0.02, WIDE.dimensions) ** 2
    topics = np.random.default_rng(0).standard_normal((40, WIDE.dimensions))
    dice = np.random.default_rng(seed)
    own = dice.standard_normal((count, WIDE.dimensions))
    drawn = 0.6 + (topics[dice.integers(0, len(topics), count)] + 0.6 * own) * spread
    unit: Vector = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    return unit


def filled(folder: Path, sizes: Sizes, rows: Vector, scope: Scope = OPEN.scopes[0]) -> SqliteStore:
    store = SqliteStore(folder, role="workspace", create=True, sizes=sizes)
    commit(store, *(put(entry(f"{scope} {n}", scope=scope), row, WIDE) for n, row in enumerate(rows)))
    return store


def asked(store: SqliteStore, query: Vector, limit: int = 10, *, exact: bool = False) -> list[tuple[str, float]]:
    return [(n.id, Cosine(n.cosine)) for n in store.nearest(OPEN, WIDE, query, limit, exact=exact)]


@pytest.mark.parametrize("sizes", [SMALL, LISTS, AS_THEY_ARE])
def test_a_large_room_finds_nearly_all_that_is_near(tmp_path: Path, sizes: Sizes) -> None:
    """R2: of the ten nearest by every vector, a room of 2,000 finds 99 of 100, and says their exact cosines."""
    store = filled(tmp_path / "store", sizes, likeness(2_000))
    questions = likeness(60, seed=2)
    asked(store, questions[0])
    found = [(set(asked(store, q)), set(asked(store, q, exact=True))) for q in questions]
    store.close()
    assert sum(len(near & best) for near, best in found) / 600 >= 0.99


def test_the_first_question_to_a_large_room_is_answered_once(tmp_path: Path) -> None:
    """R2: who asks once is not made to wait for an order that pays later, and misses nothing."""
    store = filled(tmp_path / "store", SMALL, likeness(400))
    query = likeness(1, seed=3)[0]
    assert asked(store, query) == asked(store, query, exact=True)
    assert not store._vectors._held
    asked(store, query)
    assert all(held.quantised is not None for held in store._vectors._held.values())
    store.close()


@pytest.mark.parametrize("sizes", [SMALL, AS_THEY_ARE])
def test_a_packed_room_follows_what_is_written_and_removed(tmp_path: Path, sizes: Sizes) -> None:
    """T22, R2: additions, removals and replacements are in the next answer, though most of the room is packed."""
    rows = likeness(600)
    store = filled(tmp_path / "store", sizes, rows)
    for query in rows[:3]:
        asked(store, query)
    (nearest, _), *_ = asked(store, rows[5])
    commit(store, DropEntry(nearest, 1, "gone"))
    assert nearest not in dict(asked(store, rows[5]))
    fresh = entry("another of the same")
    commit(store, put(fresh, rows[5], WIDE))
    assert asked(store, rows[5])[0][0] == fresh.id
    commit(store, SaveEmbedding(fresh.id, 1, Embedding(WIDE, -rows[5])))
    assert fresh.id not in dict(asked(store, rows[5]))
    assert asked(store, rows[5]) == asked(store, rows[5], exact=True)
    store.close()


def test_what_another_process_writes_into_a_packed_room_is_found_next(tmp_path: Path) -> None:
    """T03, T22: the next search sees it, though this process has the room packed in memory."""
    rows, fresh = likeness(600), entry("of another process")
    store = filled(tmp_path / "store", LISTS, rows)
    for query in rows[:3]:
        asked(store, query)
    (nearest, _), *_ = asked(store, rows[9])

    def write() -> None:
        other = SqliteStore(tmp_path / "store", role="workspace", create=False)
        commit(other, DropEntry(nearest, 1, "gone"), put(fresh, rows[9], WIDE))
        other.close()

    assert finish(fork(write)) == 0
    assert asked(store, rows[9])[0] == (fresh.id, 1.0)
    assert nearest not in dict(asked(store, rows[9]))
    store.close()


@pytest.mark.parametrize("tail", [50, 4_096])
def test_a_room_that_grows_is_packed_in_between(tmp_path: Path, tail: int) -> None:
    """R2: before, while and after a room is put in order, with images first and later in bytes, too, the nearest is
    the nearest, and every cosine is that of the vectors themselves."""
    rows, questions = likeness(900), likeness(5, seed=2)
    store = filled(tmp_path / "store", Sizes(small=200, large=500, tail=tail), rows[:100])
    for at in range(100, 900, 100):
        added = [entry(f"later {n}") for n in range(at, at + 100)]
        commit(store, *(put(e, row, WIDE) for e, row in zip(added, rows[at:], strict=False)))
        assert asked(store, rows[at], 1) == [(added[0].id, 1.0)]
        for query in questions:
            found, best = asked(store, query), asked(store, query, 900, exact=True)
            assert set(found) <= set(best)
            assert found[:3] == best[:3]
    (held,) = store._vectors._held.values()
    assert held.quantised is not None
    assert not held.quantise(Sizes(small=200, large=500)).quantised.exact  # type: ignore[union-attr]
    store.close()


def test_what_is_in_bytes_stays_so_when_rows_are_added_to_it(tmp_path: Path) -> None:
    """R2: bytes beside numbers in one table would be read as numbers."""
    rows, sizes = likeness(300), Sizes(small=200, large=500)
    store = filled(tmp_path / "store", sizes, rows[:150])
    for query in rows[:2]:
        asked(store, query)
    (held,) = store._vectors._held.values()
    assert held.quantised.exact  # type: ignore[union-attr]
    held = held.quantise(sizes, smallest=True)
    assert not held.quantised.exact  # type: ignore[union-attr]
    numbers = np.arange(1_000, 1_150, dtype=np.int64)
    grown = replace(held, floats=held.floats.plus(numbers, numbers, rows[150:])).quantise(sizes)
    assert not grown.quantised.exact  # type: ignore[union-attr]
    cosines = grown.search(rows[7], 10, None).cosines
    assert np.allclose(cosines, np.sort(rows @ rows[7])[:-11:-1], atol=0.02)
    store.close()


def test_a_large_room_with_few_vectors_is_loaded_once(tmp_path: Path) -> None:
    """R2: while a new model is only beginning to describe a room, most of its entries have no vector yet."""
    rows = likeness(80)
    store = filled(tmp_path / "store", Sizes(small=100, large=150), rows)
    commit(store, *(put(entry(f"not described {n}")) for n in range(120)))
    partitions = []
    for _ in range(4):
        assert asked(store, rows[7]) == asked(store, rows[7], exact=True)
        partitions.append(next(iter(store._vectors._held.values()), None))
    assert partitions[0] is None  # answered in passing
    assert partitions[1] is partitions[2] is partitions[3] is not None
    store.close()


@pytest.mark.parametrize("seed", range(8))
def test_whatever_a_room_went_through_cosines_are_those_of_its_vectors(tmp_path: Path, seed: int) -> None:
    """R2, T07: two connections write to two rooms, remove from them and ask, in any form that a room may have in
    memory, also when that is short. What is found is in the room, with its own cosine, and the nearest is not missed by
    much."""
    dice = random.Random(seed)
    small = dice.choice([70, 150, 300])
    sizes = Sizes(small, small + dice.choice([0, 200]), dice.choice([200, 800]), dice.choice([20, 100]))
    stores = [
        SqliteStore(tmp_path / "s", role="workspace", create=new, sizes=sizes, cache_bytes=dice.choice([60_000, 10**9]))
        for new in (True, False)
    ]
    held: dict[Scope, list[str]] = {Scope("workspace", (("workspace", name),)): [] for name in "ab"}
    rows, questions = iter(likeness(3_000, seed)), likeness(40, seed + 100)
    for step in range(14):
        scope, store = dice.choice(list(held)), dice.choice(stores)
        if dice.random() < 0.6 or len(held[scope]) < 50:
            added = [entry(f"{step} {n}", scope=scope) for n in range(dice.choice([1, 5, 70, 200]))]
            commit(store, *(put(e, row, WIDE) for e, row in zip(added, rows, strict=False)))
            held[scope] += [e.id for e in added]
        else:
            gone = dice.sample(held[scope], dice.choice([1, 10, 40]))
            commit(store, *(DropEntry(id, 1, "dropped") for id in gone))
            held[scope] = [id for id in held[scope] if id not in gone]
        for query in questions[step * 2 : step * 2 + dice.choice([0, 2])]:
            scope, store = dice.choice(list(held)), dice.choice(stores)
            every = {n.id: n.cosine for n in store.nearest(Selection((scope,)), WIDE, query, 9_999, exact=True)}
            found = store.nearest(Selection((scope,)), WIDE, query, 10)
            assert every.keys() == set(held[scope])
            assert len(found) == min(10, len(every))
            assert all(abs(n.cosine - every[n.id]) < 1e-5 for n in found)
            assert not found or found[0].cosine > max(every.values()) - 0.03
    for store in stores:
        store.close()


def test_what_a_filter_admits_is_looked_at_whole(tmp_path: Path) -> None:
    """R3: a filter that few entries pass finds them in a packed room, however far from the question they are."""
    store = filled(tmp_path / "store", LISTS, likeness(700))
    rare = [entry(f"rare {n}", tags=("rare",)) for n in range(5)]
    commit(store, *(put(e, -row, WIDE) for e, row in zip(rare, likeness(5, seed=4), strict=True)))
    selection = replace(OPEN, filters=Filters(tags=frozenset({"rare"})))
    for query in likeness(3, seed=5):
        assert {n.id for n in store.nearest(selection, WIDE, query, 10)} == {e.id for e in rare}
    store.close()


def test_who_is_near_by_vector_alone_does_not_depend_on_how_a_room_is_kept(tmp_path: Path) -> None:
    """W5: who is about to be stored hears of the same neighbours, though the room is packed, a part of it gone and a
    part of it new; and with the same cosines."""
    rows = sparse(500)
    stores = [
        filled(tmp_path / name, sizes, rows)
        for name, sizes in (("packed", SMALL), ("images", AS_THEY_ARE), ("plain", Sizes()))
    ]
    newcomers = [NewText(f"nobody said {n}", row) for n, row in enumerate(sparse(40, like=rows[:40]))]
    heard = []
    for store in stores:
        store.neighbours(NeighbourQuery(OPEN.scopes[0], "shared", WIDE, 0.8, 12), newcomers)
        (gone, _), *_ = asked(store, rows[3], exact=True)
        commit(store, DropEntry(gone, 1, "gone"), put(entry("new"), rows[4], WIDE))
        found = store.neighbours(NeighbourQuery(OPEN.scopes[0], "shared", WIDE, 0.8, 12), newcomers)
        heard.append([[(n.entry.content, Cosine(n.cosine or 0)) for n in those] for those in found])
        store.close()
    assert heard[0] == heard[1] == heard[2]
    assert sum(map(len, heard[0])) >= 40


def sparse(count: int, like: Vector | None = None) -> Vector:
    """Directions with nothing in common; or near to those given."""
    drawn = np.random.default_rng(count).standard_normal((count, WIDE.dimensions))
    drawn = drawn if like is None else like * WIDE.dimensions**0.5 + 0.2 * drawn
    unit: Vector = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    return unit


def test_what_is_held_is_added_up_as_it_comes_and_goes(tmp_path: Path) -> None:
    """R2: the sum of memory is that of all partitions, also after some were added, removed, quantised or dropped."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True, cache_bytes=120_000, sizes=Sizes())
    scopes = [Scope("workspace", (("workspace", f"w{n}"),)) for n in range(12)]
    rows = likeness(90)
    for scope in scopes:
        commit(store, *(put(entry(f"{n}", scope=scope), row, WIDE) for n, row in enumerate(rows)))
    dice = random.Random(4)
    for step in range(120):
        scope = dice.choice(scopes)
        found = store.nearest(Selection((scope,)), WIDE, rows[step % 90], 5)
        if step % 3 == 0:
            commit(
                store, DropEntry(found[0].id, 1, "x"), put(entry(f"more {step}", scope=scope), rows[step % 90], WIDE)
            )
        held = store._vectors._held.values()
        assert store._vectors._bytes == sum(one.bytes for one in held)
    assert store._vectors._bytes > 0
    assert 1 < len(store._vectors._held) < len(scopes)
    store.close()


def test_packed_rooms_do_not_mix(tmp_path: Path) -> None:
    """T07: two large rooms with the same vectors answer each with their own entries alone."""
    other = Scope("workspace", (("workspace", "w2"),))
    rows = likeness(400)
    store = filled(tmp_path / "store", LISTS, rows)
    commit(store, *(put(entry(f"theirs {n}", scope=other), row, WIDE) for n, row in enumerate(rows)))
    for scope in (*OPEN.scopes, other, *OPEN.scopes, other):
        own = {e.id for e in store.find(Selection((scope,)), limit=1000)}
        found = {n.id for query in rows[:20] for n in store.nearest(Selection((scope,)), WIDE, query, 10)}
        assert len(own) == 400
        assert len(found) >= 20
        assert found <= own
    store.close()


def test_when_memory_is_short_rooms_are_packed_before_they_are_given_up(tmp_path: Path) -> None:
    """T36: four rooms that fit as bytes stay, and answer as they did."""
    scopes = [Scope("workspace", (("workspace", f"w{i}"),)) for i in range(4)]
    rows = likeness(200)
    store = SqliteStore(tmp_path / "store", role="workspace", create=True, cache_bytes=300_000)
    for scope in scopes:
        commit(store, *(put(entry(f"e{n}", scope=scope), row, WIDE) for n, row in enumerate(rows)))
    exact = {scope: store.nearest(Selection((scope,)), WIDE, rows[7], 10, exact=True) for scope in scopes}
    for scope in scopes * 10:
        assert [n.id for n in store.nearest(Selection((scope,)), WIDE, rows[7], 10)] == [n.id for n in exact[scope]]
    assert len(store._vectors._held) == 4
    assert sum(held.bytes for held in store._vectors._held.values()) <= 300_000
    store.close()


def test_vectors_that_a_search_has_read_are_not_read_again(tmp_path: Path) -> None:
    """R4: where a room is in bytes, hits are compared by the vectors that the search before it had to read."""
    store = filled(tmp_path / "store", SMALL, likeness(400))
    for query in likeness(3, seed=3):
        asked(store, query)
    with store.snapshot():
        near = [n.id for n in store.nearest(OPEN, WIDE, likeness(1, seed=4)[0], 5)]
        with store._connections.reading() as db:
            read = store._vectors.recent(SqliteSearchRows(db).entry_vectors(), 1)
            known = {id: row in read for id, (_, row) in lookup.versions(SqliteSearchRows(db), near).items()}
        assert near
        assert all(known.values())
        found = store.unit_vectors(near, WIDE)
        for id, row in store.vectors(near, WIDE).items():
            assert np.allclose(found[id], row / np.linalg.norm(row), atol=1e-7)
    store.close()


def test_a_room_that_was_asked_in_passing_is_at_hand(store: SqliteStore) -> None:
    """R4: hits are compared by what the search before it has read, and by others as soon as these are there."""
    made = [entry(f"fact {n}") for n in range(blobs.SIZE + 8)]
    commit(store, *(put(e, vector_of(e.content)) for e in made))
    run: list[dict[str, Any]] = []
    with store.snapshot(), store._connections.reading() as db:
        near = [n.id for n in store.nearest(OPEN, MODEL, vector_of("fact 3"), 5)]
        assert not store._vectors._held
        db.trace_v2(apsw.SQLITE_TRACE_STMT, run.append)
        found = store.unit_vectors(near, MODEL)
        db.trace_v2(0, None)
        for id, row in store.vectors(near, MODEL).items():
            assert np.allclose(found[id], row / np.linalg.norm(row), atol=5e-5)
    assert run == []
    commit(store, SaveEmbedding(near[0], 1, Embedding(MODEL, vector_of("another"))))
    with store.snapshot():
        store.nearest(OPEN, MODEL, vector_of("fact 3"), 5)
        (moved,) = store.unit_vectors(near[:1], MODEL).values()
    assert moved @ vector_of("another") == pytest.approx(np.linalg.norm(vector_of("another")), abs=1e-5)


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


def test_a_room_that_is_said_to_be_smaller_than_it_is_is_searched_whole(tmp_path: Path) -> None:
    """T17: counts are derived; one that is wrong until the store is repaired hides nothing."""
    rows = likeness(600)
    store = filled(tmp_path / "store", AS_THEY_ARE, rows)
    exact = asked(store, rows[5], exact=True)
    with store._connections.writing() as db:
        db.execute("UPDATE partitions SET size = 350")
    for _ in range(3):
        assert asked(store, rows[5]) == exact
    (held,) = store._vectors._held.values()
    assert held.quantised is not None
    assert len(held.quantised.seqs) == 600
    store.close()
