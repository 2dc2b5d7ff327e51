"""What a new text repeats by its vector is found, wherever the vectors of the others are at that moment."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mnemon.adapters.store.sqlite import SqliteStore
from mnemon.adapters.store.sqlite.packed import Sizes
from mnemon.model.entry import Entry
from mnemon.model.values import State
from mnemon.ports.embedder import EmbeddingModel, Vector
from mnemon.ports.store import DropEntry, Newcomer, Vicinity
from tests.helpers.stores import OPEN, WORK, commit, entry, move, put, stored

MODEL = EmbeddingModel("wide", 64, "x")
FLOOR = 0.92
HERE = Vicinity(WORK, "shared", MODEL, FLOOR, 12)
FORMS = {
    "as they are": Sizes(),
    "in two bytes, with images": Sizes(small=100),
    "in bytes": Sizes(small=100, large=150),
    "packed anew often": Sizes(small=100, tail=10),
}


def directions(count: int, seed: int) -> Vector:
    drawn = np.random.default_rng(seed).standard_normal((count, MODEL.dimensions), dtype=np.float32)
    unit: Vector = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


class Both:
    """A store, and what should be in it."""

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self.store = SqliteStore(folder, role="workspace", create=True, sizes=sizes)
        self.there: dict[str, Vector] = {}
        self.seed = 0

    def add(self, count: int) -> None:
        self.seed += 1
        made = [(entry(f"{self.seed} {n}"), row) for n, row in enumerate(directions(count, self.seed))]
        commit(self.store, *(put(e, row, MODEL) for e, row in made))
        self.there |= {e.id: row for e, row in made}

    def entry(self, id: str) -> Entry:
        return stored(self.store, entry(id=id))

    def asked(self) -> None:
        """Questions, so that memory holds the room in the form that suits it."""
        for query in directions(3, 99):
            self.store.nearest(OPEN, MODEL, query, 5)

    def compare(self, sought: list[str], *, together: bool) -> None:
        """Of something that is nearly the same as each of these, what the store says and what the vectors say."""
        near = [self.there[id] + 0.02 * row for id, row in zip(sought, directions(len(sought), 7), strict=True)]
        newcomers = [Newcomer(f"nearly {n}", row / np.linalg.norm(row)) for n, row in enumerate(near)]
        ask = self.store.near
        found = ask(HERE, newcomers) if together else [ask(HERE, [newcomer])[0] for newcomer in newcomers]
        for newcomer, those in zip(newcomers, found, strict=True):
            assert newcomer.vector is not None
            cosines = {id: float(newcomer.vector @ row) for id, row in self.there.items()}
            assert {n.entry.id for n in those} == {id for id, cosine in cosines.items() if cosine >= FLOOR}
            assert all(abs((n.cosine or 0.0) - cosines[n.entry.id]) < 5e-5 for n in those)


@pytest.fixture(params=FORMS)
def both(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Both]:
    both = Both(tmp_path / "store", FORMS[request.param])
    yield both
    both.store.close()


@pytest.mark.parametrize("together", [True, False])
def test_copies_are_found_whatever_happened_to_the_room(both: Both, together: bool) -> None:
    """W3: packed and loose, before and after questions, after others came and went; one by one and all at once."""
    dice = random.Random(5)
    for count in (40, 90, 120, 1, 7, 70):
        both.add(count)
        both.compare(dice.sample(sorted(both.there), 9), together=together)
        both.asked()
        both.compare(dice.sample(sorted(both.there), 9), together=together)
        gone, held = dice.sample(sorted(both.there), 2)
        commit(both.store, DropEntry(gone, 1, "gone"), move(both.entry(held), State.HELD))
        copies = [gone, held, *dice.sample(sorted(both.there), 9)]
        vectors = dict(both.there)
        del both.there[gone], both.there[held]
        both.compare([id for id in copies if id in both.there], together=together)
        for id in (gone, held):
            assert both.store.near(HERE, [Newcomer("nearly", vectors[id])] * 9) == [[]] * 9


def test_another_process_is_seen(both: Both, tmp_path: Path) -> None:
    """W3: what others put is compared with, from the next put on."""
    both.add(130)
    both.asked()
    both.compare(sorted(both.there)[:9], together=True)
    other = Both.__new__(Both)
    other.store, other.there, other.seed = SqliteStore(tmp_path / "store", role="workspace", create=False), {}, 40
    other.add(30)
    both.there |= other.there
    both.compare(sorted(other.there)[:9], together=False)
    other.store.close()


def test_an_earlier_view_is_told_what_it_sees(both: Both) -> None:
    """T31: another thread has compared with more than this one's view of the database holds."""
    both.add(130)
    seen = sorted(both.there)
    both.compare(seen[:9], together=True)
    with both.store.snapshot():
        both.compare(seen[:9], together=True)

        def elsewhere() -> None:
            both.add(20)
            both.asked()
            both.compare(sorted(both.there)[-9:], together=True)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        come = [id for id in both.there if id not in seen]
        vectors = [both.there.pop(id) for id in come]
        assert both.store.near(HERE, [Newcomer("nearly", row) for row in vectors]) == [[]] * 20
        both.compare(seen[:9], together=True)
    both.there |= dict(zip(come, vectors, strict=True))
    both.compare(come[:9], together=True)
