"""Packs of vectors: in step with the vectors whatever is written, and enough for a process that asks once."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from mnemon.adapters.store.sqlite import SqliteStore, packs, sql
from mnemon.adapters.store.sqlite.query import all_rows
from mnemon.model.entry import Entry
from mnemon.model.scrub import Extent, Mode, manifest_digest
from mnemon.model.values import State
from mnemon.ports.embedder import Vector
from mnemon.ports.scrub import Scrub
from mnemon.ports.store import DropEntry, Embedding, SaveEmbedding
from tests.helpers.stores import MODEL, OPEN, OTHER_MODEL, commit, entry, move, put, stored, vector_of


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


def asked_once(folder: Path, query: Vector, limit: int = 10, *, exact: bool = False) -> list[tuple[str, float]]:
    """As a process that has just begun."""
    fresh = SqliteStore(folder, role="workspace", create=False)
    found = [(n.id, round(n.cosine, 5)) for n in fresh.nearest(OPEN, MODEL, query, limit, exact=exact)]
    assert not any(shelf.packed is not None and shelf.packed.exact for shelf in fresh._cache._shelves.values())
    fresh.close()
    return found


def test_packs_are_made_when_they_are_full(store: SqliteStore) -> None:
    """R2: what fills packs is packed in the same transaction, and the rest is loose until it does."""
    fill(store, 2 * packs.SIZE + 5)
    assert [len(pack) for pack in seqs(store)] == [packs.SIZE, packs.SIZE]
    for n in range(packs.SIZE - 5):
        commit(store, put(entry(f"single {n}"), vector_of(f"single {n}")))
    assert [len(pack) for pack in seqs(store)] == [packs.SIZE] * 3
    assert store.check() == []


def test_one_question_is_answered_from_packs(tmp_path: Path, store: SqliteStore) -> None:
    """R2: a process that asks once loads packs and not vectors, and answers as by all of them, with exact cosines."""
    fill(store, 3 * packs.SIZE + 9)
    for question in ("fact 7", "fact 199", "something else"):
        query = vector_of(question)
        assert asked_once(tmp_path / "store", query) == asked_once(tmp_path / "store", query, exact=True)


def test_a_room_that_is_asked_again_is_in_memory(tmp_path: Path, store: SqliteStore) -> None:
    """R2: packs of a small room are read once; what is written since is read by itself, and nothing that is gone is
    found."""
    made = fill(store, 2 * packs.SIZE + 9)
    fresh = SqliteStore(tmp_path / "store", role="workspace", create=False)

    def asked() -> tuple[list[tuple[str, float]], list[str]]:
        run: list[dict[str, Any]] = []
        with fresh._connections.reading() as db:
            db.trace_v2(apsw.SQLITE_TRACE_STMT, run.append)
            found = fresh.nearest(OPEN, MODEL, vector_of("fact 3"), 5)
            db.trace_v2(0, None)
        return [(n.id, round(n.cosine, 5)) for n in found], [event["sql"] for event in run]

    first, run = asked()
    assert sql.PACKS in run
    again, run = asked()
    assert again == first
    assert not {sql.PACKS, sql.VECTORS_SINCE} & set(run)
    commit(store, put(twin := entry("fact 3, once more"), vector_of("fact 3")), DropEntry(made[3].id, 1, "gone"))
    changed, run = asked()
    assert sql.PACKS not in run
    assert [id for id, _ in changed] == [twin.id, *(id for id, _ in first[1:])]
    fresh.close()


def test_a_room_that_is_asked_often_is_loaded(store: SqliteStore) -> None:
    """R2: a small room stays in bytes until as many vectors were read beside them as it holds, and always answers the
    same."""
    fill(store, 2 * packs.SIZE)
    answers, in_bytes = [], []
    for _ in range(30):
        answers.append([(n.id, round(n.cosine, 5)) for n in store.nearest(OPEN, MODEL, vector_of("fact 3"), 5)])
        in_bytes.append(any(shelf.packed is not None for shelf in store._cache._shelves.values()))
    assert all(answer == answers[0] for answer in answers)
    read = 5 + 4  # vectors of each question
    assert in_bytes.index(False) == math.ceil(2 * packs.SIZE / read)
    assert not any(in_bytes[in_bytes.index(False) :])


def test_packs_follow_whatever_is_written(tmp_path: Path, store: SqliteStore) -> None:
    """T22: after any mix of additions, moves, replacements and drops, packs hold the vectors that are there."""
    dice = random.Random(3)
    alive = fill(store, packs.SIZE + 10)
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


def fill_more(store: SqliteStore, step: int) -> list[Entry]:
    made = [entry(f"more {step} {n}") for n in range(3)]
    commit(store, *(put(e, vector_of(e.content)) for e in made))
    return made


def test_a_pack_that_loses_all_is_gone(store: SqliteStore) -> None:
    """H1: no row is left behind for vectors that are not there, nor a number of theirs."""
    made = fill(store, packs.SIZE)
    for e in made[:-1]:
        commit(store, DropEntry(e.id, 1, "x"))
        assert len(seqs(store)[0]) < packs.SIZE
    commit(store, DropEntry(made[-1].id, 1, "x"))
    assert seqs(store) == []
    assert store.check() == []


def test_models_do_not_share_packs(store: SqliteStore) -> None:
    """T22: the same entries under another model are other vectors, of another length."""
    made = fill(store, packs.SIZE)
    commit(
        store, *(SaveEmbedding(e.id, 1, Embedding(OTHER_MODEL, vector_of(e.id, OTHER_MODEL.dimensions))) for e in made)
    )
    assert len(seqs(store)) == 2
    assert not set(seqs(store)[0]) & set(seqs(store)[1])
    assert store.check() == []


def test_a_scrub_leaves_nothing_in_packs(store: SqliteStore) -> None:
    """H1: what is removed for good is in no pack either."""
    fill(store, packs.SIZE + 3)
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
    fill(store, 2 * packs.SIZE + 1)
    with store._connections.writing() as db:
        db.execute(damage)
    (finding,) = store.check()
    assert finding.derived
    store.rebuild()
    assert store.check() == []
    assert len(seqs(store)) == 2


def test_packs_that_cannot_be_read_are_done_without(tmp_path: Path, store: SqliteStore) -> None:
    """T12: the vectors are there as well, and a search goes on."""
    fill(store, packs.SIZE + 1)
    with store._connections.writing() as db:
        db.execute("UPDATE packs SET seqs = x'00'")
    query = vector_of("fact 1")
    assert asked_once(tmp_path / "store", query) == asked_once(tmp_path / "store", query, exact=True)
