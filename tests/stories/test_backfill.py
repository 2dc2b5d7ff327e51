"""Vectors that come later: what was written without the embedder is found by meaning after a backfill."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lukasa import Lukasa, Memo, Workspace
from lukasa.langgraph import LukasaStore
from lukasa.model.errors import InvalidQuery
from lukasa.ports import Vector
from lukasa.service.upkeep.backfill import BATCH
from tests.fakes import FakeEmbedder
from tests.helpers.langgraph import DIMENSIONS, SYNONYMS, embed, index
from tests.helpers.processes import finish, fork

CARS = ("garage",)
ITEMS = 5


def fake() -> FakeEmbedder:
    return FakeEmbedder(DIMENSIONS, synonyms=SYNONYMS)


class Interrupted(FakeEmbedder):
    """A model during whose work something happens."""

    def __init__(self, happening: Callable[[], object], *, call: int = 1) -> None:
        super().__init__(DIMENSIONS, synonyms=SYNONYMS)
        self.calls = 0
        self._happening = happening
        self._call = call

    def embed_memories(self, texts: Sequence[str]) -> Vector:
        vectors = super().embed_memories(texts)
        self.calls += 1
        if self.calls == self._call:
            self._happening()
        return vectors


def by_meaning(world: Workspace, question: str) -> list[str]:
    """Contents that have a place in the vector signal."""
    found = world.read(question, count=False)
    return [h.content for h in found if any(c.signal == "vector" and c.rank for c in h.score.match.contributions)]


def written(folder: Path) -> None:
    """An entry and two items, without any embedder."""
    with Lukasa.open(folder, embedder="none") as memory:
        world = memory.workspace()
        world.put("workspace", "The car is in the garage")
        store = LukasaStore(world)
        store.put(CARS, "one", {"text": "a red car"})
        store.put(CARS, "two", {"text": "a puppy"}, index=["text"])
        store.put(CARS, "three", {"text": "not to be found by meaning"}, index=False)


def test_what_was_written_without_an_embedder_is_found_by_meaning(tmp_path: Path) -> None:
    """O8: entries and items get their vectors later; what was not to be indexed gets none."""
    written(tmp_path)
    with Lukasa.open(tmp_path, embedder=fake()) as memory:
        world = memory.workspace()
        store = LukasaStore(world)
        assert [hit.score for hit in store.search(CARS, query="automobile")] == [None] * 3
        assert world.backfill() == 3
        assert world.backfill() == 0
        assert by_meaning(world, "automobile") == ["The car is in the garage"]
        assert [hit.key for hit in store.search(CARS, query="automobile", limit=1)] == ["one"]
        assert [hit.key for hit in store.search(CARS, query="dog", limit=1)] == ["two"]
        assert [hit.key for hit in store.search(CARS, query="dog") if hit.score is None] == ["three"]
        assert world.check() == []


def test_an_outage_is_made_up_for(tmp_path: Path) -> None:
    """O8: an embedder that failed while something was written makes its vector when it works again."""
    embedder = fake()
    with Lukasa.open(tmp_path, embedder=embedder) as memory:
        world = memory.workspace()
        store = LukasaStore(world)
        embedder.fail = True
        store.put(CARS, "one", {"text": "a red car"})
        embedder.fail = False
        assert (world.backfill(), store.backfill()) == (1, 0)
        assert store.search(CARS, query="automobile")[0].score is not None


def test_an_index_makes_its_own_vectors(tmp_path: Path) -> None:
    """O8: after a change of an index's function its items get vectors of the new one; the workspace's embedder none."""

    def older(texts: Sequence[str]) -> list[list[float]]:
        return embed(texts)

    with Lukasa.open(tmp_path, embedder=fake()) as memory:
        world = memory.workspace()
        LukasaStore(world, index=index(embed=older)).put(CARS, "one", {"text": "a red car"})
        store = LukasaStore(world, index=index())
        assert [hit.score for hit in store.search(CARS, query="automobile")] == [None]
        assert (world.backfill(), store.backfill(), store.backfill()) == (0, 1, 0)
        assert store.search(CARS, query="automobile")[0].score is not None


def test_an_edit_while_the_model_works_wins(tmp_path: Path) -> None:
    """O8: what changed while vectors were computed is not given those of its old text, and gets its own next time."""
    written(tmp_path)

    def edit() -> None:
        with Lukasa.open(tmp_path, embedder="none") as other:
            LukasaStore(other.workspace()).put(CARS, "one", {"text": "a puppy, too"})
            (entry,) = other.workspace().entries("workspace")
            other.workspace().update(entry.id, content="The puppy is in the garden")

    model = Interrupted(edit)
    with Lukasa.open(tmp_path, embedder=model) as memory:
        world = memory.workspace()
        while world.backfill():
            pass
        store = LukasaStore(world)
        assert by_meaning(world, "dog") == ["The puppy is in the garden"]
        assert {hit.key for hit in store.search(CARS, query="dog") if hit.score} == {"one", "two"}
        assert world.check() == []


def test_killed_in_the_middle_it_goes_on(tmp_path: Path) -> None:
    """O8: a backfill that is killed keeps what it has done, and the next one does the rest and nothing twice."""
    texts = [f"note number {n} about automobile {n}" for n in range(3 * BATCH)]
    with Lukasa.open(tmp_path, embedder="none") as memory:
        memory.workspace().put_many("workspace", [Memo(text) for text in texts])
        store = LukasaStore(memory.workspace())
        for n in range(ITEMS):
            store.put(CARS, str(n), {"text": f"car {n}"})
    kept = len(memory_entries(tmp_path))

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def work() -> None:
        with Lukasa.open(tmp_path, embedder=Interrupted(die, call=2)) as memory:
            memory.workspace().backfill()

    assert finish(fork(work)) == -signal.SIGKILL
    with Lukasa.open(tmp_path, embedder=fake()) as memory:
        world = memory.workspace()
        assert world.backfill() == kept - BATCH + ITEMS
        assert world.backfill() == 0
        assert world.check() == []


def memory_entries(folder: Path) -> list[str]:
    with Lukasa.open(folder, embedder="none") as memory:
        return [entry.content for entry in memory.workspace().entries("workspace", limit=1000)]


def test_so_many_at_a_time(tmp_path: Path) -> None:
    """O8: a run does no more than it is told to, and says how much it did; without an embedder it does nothing."""
    written(tmp_path)
    with Lukasa.open(tmp_path, embedder="none") as memory:
        assert memory.workspace().backfill() == 0
    with Lukasa.open(tmp_path, embedder=fake()) as memory:
        assert [memory.workspace().backfill(2) for _ in range(3)] == [2, 1, 0]
        with pytest.raises(InvalidQuery):
            memory.workspace().backfill(0)
