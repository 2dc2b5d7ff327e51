"""Packs of vectors: in step with the vectors whatever is written, and enough for a process that asks once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from lukasa.index import blobs
from lukasa.index.vectors import _OFTEN
from lukasa.model.entry import Entry, Scope
from lukasa.model.errors import Conflict
from lukasa.model.scrub import Extent, Mode, manifest_digest
from lukasa.model.selection import Selection
from lukasa.model.values import State
from lukasa.ports import Vector
from lukasa.storage.operations import DropEntry, Embedding, SaveEmbedding, Scrub
from lukasa.storage.sqlite import SqliteStore, sql
from lukasa.storage.sqlite.execute import all_rows
from tests.helpers.earlier import first_schema
from tests.helpers.stores import MODEL, OPEN, OTHER_MODEL, Cosine, commit, entry, move, put, stored, vector_of


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    yield store
    store.close()


def fill(store: SqliteStore, count: int) -> list[Entry]:
    made = [entry(f"fact {n}") for n in range(count)]
    commit(store, *(put(e, vector_of(e.content)) for e in made))
    return made


def seqs(store: SqliteStore) -> list[list[int]]:
    """Of each pack, the vectors it holds."""
    with store._connections.reading() as db:
        return [
            np.frombuffer(blob, dtype="<i8").tolist() for (blob,) in all_rows(db, "SELECT seqs FROM packs ORDER BY id")
        ]


def asked_once(folder: Path, query: Vector, limit: int = 10, *, exact: bool = False) -> list[tuple[str, Cosine]]:
    """As a process that has just begun."""
    fresh = SqliteStore(folder, role="workspace", create=False)
    found = [(n.id, Cosine(n.cosine)) for n in fresh.nearest(OPEN, MODEL, query, limit, exact=exact)]
    assert not fresh._vectors._held
    fresh.close()
    return found


def test_packs_are_made_when_there_is_enough_for_them(store: SqliteStore) -> None:
    """R2: what is enough for a pack is packed in the same transaction, and the rest is loose until it is."""
    fill(store, 2 * blobs.SIZE + 5)
    assert [len(pack) for pack in seqs(store)] == [blobs.SIZE, blobs.SIZE]
    for n in range(blobs.SIZE - 5):
        commit(store, put(entry(f"single {n}"), vector_of(f"single {n}")))
    assert [len(pack) for pack in seqs(store)] == [blobs.SIZE] * 3
    assert store.check() == []


def test_the_last_pack_grows_until_it_is_full(store: SqliteStore) -> None:
    """R2: few vectors are ever loose, and no more packs are made than the vectors fill."""
    sizes = []
    for n in range(blobs.SIZE + 20):
        commit(store, put(entry(f"single {n}"), vector_of(f"single {n}")))
        sizes.append([len(pack) for pack in seqs(store)])
    assert all(place + 1 - sum(size) < blobs.STEP for place, size in enumerate(sizes))
    assert sizes[-1] == [blobs.SIZE, blobs.STEP]
    assert store.check() == []


def test_who_writes_beside_others_packs_theirs_too(tmp_path: Path, store: SqliteStore) -> None:
    """R2: each counts what it adds itself, and what is undone counts for nothing that matters."""
    other = SqliteStore(tmp_path / "store", role="workspace", create=False)
    taken, count = entry("taken"), 1
    commit(store, put(taken, vector_of("taken")))
    for n in range(90):
        for place, writer in enumerate((store, other)):
            text = f"{place} {n}"
            with pytest.raises(Conflict):
                commit(writer, put(entry(f"undone {text}"), vector_of(text)), put(taken, vector_of("taken")))
            commit(writer, put(entry(text), vector_of(text)))
            count += 1
            assert count - sum(map(len, seqs(store))) < 3 * blobs.STEP
    assert store.check() == []
    other.close()


def test_a_pack_that_lost_some_takes_others_in_if_it_is_the_last(tmp_path: Path, store: SqliteStore) -> None:
    """T22: what comes next fills the holes, in the order of writing, and is found as it is."""
    made = fill(store, blobs.SIZE)
    for e in made[3:8]:
        commit(store, DropEntry(e.id, 1, "x"))
    fill_more(store, 0, 30)
    (first, second), loose = seqs(store), 30 % blobs.STEP
    assert (len(first), len(second)) == (blobs.SIZE, 30 - loose - 5)
    assert first + second == sorted(first + second)
    assert store.check() == []
    query = vector_of("q")
    assert asked_once(tmp_path / "store", query) == asked_once(tmp_path / "store", query, exact=True)


def test_one_question_is_answered_from_packs(tmp_path: Path, store: SqliteStore) -> None:
    """R2: a process that asks once loads packs and not vectors, and answers as by all of them, with their cosines."""
    fill(store, 3 * blobs.SIZE + 9)
    for question in ("fact 7", "fact 199", "something else"):
        query = vector_of(question)
        assert asked_once(tmp_path / "store", query) == asked_once(tmp_path / "store", query, exact=True)


def test_a_room_that_is_asked_again_is_in_memory(tmp_path: Path, store: SqliteStore) -> None:
    """R2: a small room is kept when it is asked for the second time; what is written since is read by itself, and
    nothing that is gone is found."""
    made = fill(store, 2 * blobs.SIZE + 9)
    fresh = SqliteStore(tmp_path / "store", role="workspace", create=False)

    def asked() -> tuple[list[tuple[str, float]], list[str]]:
        run: list[dict[str, Any]] = []
        with fresh._connections.reading() as db:
            db.trace_v2(apsw.SQLITE_TRACE_STMT, run.append)
            found = fresh.nearest(OPEN, MODEL, vector_of("fact 3"), 5)
            db.trace_v2(0, None)
        return [(n.id, Cosine(n.cosine)) for n in found], [event["sql"] for event in run]

    first, run = asked()
    assert sql.PACK_HEADS in run
    assert not fresh._vectors._held
    assert sql.PACKS in asked()[1]
    again, run = asked()
    assert again == first
    assert not {sql.PACKS, sql.PACK_HEADS, sql.VECTORS_SINCE} & set(run)
    commit(store, put(twin := entry("fact 3, once more"), vector_of("fact 3")), DropEntry(made[3].id, 1, "gone"))
    changed, run = asked()
    assert sql.PACKS not in run
    assert [id for id, _ in changed] == [twin.id, *(id for id, _ in first[1:])]
    fresh.close()


def test_a_room_that_is_asked_often_is_loaded(store: SqliteStore) -> None:
    """R2: a small room is not kept for the first question, then it is as its packs have it, and from some on as it is;
    and always answers the same."""
    fill(store, 2 * blobs.SIZE + 5)
    answers, forms = [], []
    for _ in range(30):
        answers.append([(n.id, Cosine(n.cosine)) for n in store.nearest(OPEN, MODEL, vector_of("fact 3"), 5)])
        held = next(iter(store._vectors._held.values()), None)
        forms.append("none" if held is None else "as it is" if held.quantised is None else "packs")
    assert all(answer == answers[0] for answer in answers)
    assert forms == ["none", *["packs"] * _OFTEN, *["as it is"] * (29 - _OFTEN)]


def test_a_room_whose_count_is_wrong_is_searched_whole(tmp_path: Path, store: SqliteStore) -> None:
    """T17: where more vectors are there than the room says to hold, nothing is missed in passing either."""
    fill(store, 2 * blobs.SIZE + 5)
    exact = asked_once(tmp_path / "store", vector_of("q"), 99, exact=True)
    for size in (blobs.SIZE + 1, 2 * blobs.SIZE + 1):
        with store._connections.writing() as db:
            db.execute("UPDATE partitions SET size = ?", (size,))
        assert asked_once(tmp_path / "store", vector_of("q"), 99) == exact


def test_rooms_that_are_asked_in_passing_do_not_mix(store: SqliteStore) -> None:
    """T07: what is needed only for a moment stands in the same place for each of them, one after the other."""
    other = Selection((Scope("workspace", (("workspace", "w2"),)),))
    mine, theirs = fill(store, blobs.SIZE + 5), [entry(f"fact {n}", scope=other.scopes[0]) for n in range(70)]
    commit(store, *(put(e, vector_of(e.content)) for e in theirs))
    with store.snapshot():
        both = Selection((*OPEN.scopes, *other.scopes))
        found = store.nearest(both, MODEL, vector_of("fact 3"), 4)
        directions = store.unit_vectors([n.id for n in found], MODEL)
    assert {n.id for n in found[:2]} == {mine[3].id, theirs[3].id}
    for near in found:
        assert directions[near.id] @ vector_of("fact 3") == pytest.approx(near.cosine, abs=1e-4)


def test_stores_that_are_asked_in_passing_do_not_mix(tmp_path: Path, store: SqliteStore) -> None:
    """T07: a room of one store is still at hand while one of another is, as a workspace and an account in a read."""
    other = SqliteStore(tmp_path / "other", role="workspace", create=True)
    fill(store, blobs.SIZE + 5)
    commit(other, *(put(entry(f"theirs {n}"), -vector_of(f"fact {n}")) for n in range(blobs.SIZE + 9)))
    with store.snapshot(), other.snapshot():
        found = store.nearest(OPEN, MODEL, vector_of("fact 3"), 4)
        other.nearest(OPEN, MODEL, vector_of("fact 3"), 4)
        for id, row in store.unit_vectors([n.id for n in found], MODEL).items():
            assert np.allclose(row, store.vectors([id], MODEL)[id], atol=1e-4)
    other.close()


def test_packs_follow_whatever_is_written(tmp_path: Path, store: SqliteStore) -> None:
    """T22: after any mix of additions, moves, replacements and drops, packs hold the vectors that are there."""
    dice = random.Random(3)
    alive = fill(store, blobs.SIZE + 10)
    for step in range(150):
        choice, at = dice.random(), dice.randrange(len(alive))
        now = stored(store, alive[at])
        if choice < 0.3:
            alive += fill_more(store, step)
        elif choice < 0.5:
            commit(store, DropEntry(alive.pop(at).id, now.version, "x"))
        elif choice < 0.75:
            commit(store, move(now, State.HELD if now.state is State.ACTIVE else State.ACTIVE))
        else:
            commit(store, SaveEmbedding(now.id, now.version, Embedding(MODEL, vector_of(str(step)))))
    assert store.check() == []
    assert len(seqs(store)) > 1
    query = vector_of("q")
    assert asked_once(tmp_path / "store", query) == asked_once(tmp_path / "store", query, exact=True)


def fill_more(store: SqliteStore, step: int, count: int = 3) -> list[Entry]:
    made = [entry(f"more {step} {n}") for n in range(count)]
    commit(store, *(put(e, vector_of(e.content)) for e in made))
    return made


def test_a_pack_that_loses_all_is_gone(store: SqliteStore) -> None:
    """H1: no row is left behind for vectors that are not there, nor a number of theirs."""
    made = fill(store, blobs.SIZE)
    for e in made[:-1]:
        commit(store, DropEntry(e.id, 1, "x"))
        assert len(seqs(store)[0]) < blobs.SIZE
    commit(store, DropEntry(made[-1].id, 1, "x"))
    assert seqs(store) == []
    assert store.check() == []


def test_models_do_not_share_packs(store: SqliteStore) -> None:
    """T22: the same entries under another model are other vectors, of another length."""
    made = fill(store, blobs.SIZE)
    commit(
        store, *(SaveEmbedding(e.id, 1, Embedding(OTHER_MODEL, vector_of(e.id, OTHER_MODEL.dimensions))) for e in made)
    )
    assert len(seqs(store)) == 2
    assert not set(seqs(store)[0]) & set(seqs(store)[1])
    assert store.check() == []


def test_a_scrub_leaves_nothing_in_packs(store: SqliteStore) -> None:
    """H1: what is removed for good is in no pack either."""
    fill(store, blobs.SIZE + 3)
    extent = Extent("main", Mode.FULL, OPEN.scopes[0])
    commit(store, Scrub(extent, manifest_digest(extent, store.holdings(extent))))
    assert seqs(store) == []
    assert store.check() == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE packs SET codes = zeroblob(length(codes))",
        "UPDATE packs SET last = last + 1",
        "UPDATE packs SET entries = zeroblob(length(entries))",
        "DELETE FROM packs WHERE id = 1",
        "UPDATE packs SET seqs = x'00'",
    ],
)
def test_damage_is_found_and_mended(store: SqliteStore, damage: str) -> None:
    """T12: packs that do not hold their vectors are a finding that a rebuild does away with."""
    fill(store, 2 * blobs.SIZE + 1)
    with store._connections.writing() as db:
        db.execute(damage)
    (finding,) = store.check()
    assert finding.derived
    store.rebuild()
    assert store.check() == []
    assert len(seqs(store)) == 2


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE packs SET seqs = x'00'",
        "UPDATE packs SET codes = x''",
        "UPDATE packs SET codes = substr(codes, 2)",
        "UPDATE packs SET codes = zeroblob(3 * length(codes))",
    ],
)
def test_packs_that_cannot_be_read_are_done_without(tmp_path: Path, store: SqliteStore, damage: str) -> None:
    """T12: the vectors are there as well, and a search goes on."""
    fill(store, blobs.SIZE + 1)
    with store._connections.writing() as db:
        db.execute(damage)
    query = vector_of("fact 1")
    assert asked_once(tmp_path / "store", query) == asked_once(tmp_path / "store", query, exact=True)


def test_packs_of_before_are_made_again(tmp_path: Path) -> None:
    """T16: a store from before packs had two bytes a number is searched as ever, and rebuilt with packs of today."""
    first_schema(tmp_path / "store")
    query = vector_of("q")
    exact = asked_once(tmp_path / "store", query, exact=True)
    assert asked_once(tmp_path / "store", query) == exact
    now = SqliteStore(tmp_path / "store", role="workspace", create=False)
    assert [len(pack) for pack in seqs(now)] == [blobs.SIZE]
    assert now.check() == []
    fill_more(now, 1)
    assert [len(pack) for pack in seqs(now)] == [blobs.SIZE]
    assert now.check() == []
    now.close()
