"""The second model: what the first one and the words cannot find, in another language or in other words."""

from __future__ import annotations

from pathlib import Path

import pytest

from lukasa import Lukasa, Workspace
from lukasa.providers.embed import open_second
from lukasa.providers.embed.cached import MULTILINGUAL, default_cache
from lukasa.providers.embed.multilingual import MultilingualEmbedder
from lukasa.providers.embed.pull import pull
from tests.fakes import FakeEmbedder

KEY = "Der Ersatzschlüssel liegt unter dem Blumentopf"
OTHERS = [f"Im Regal {n} stehen Bücher über Schiffe" for n in range(6)]
TONGUES = {"schlüssel": "key", "ersatzschlüssel": "key", "blumentopf": "flowerpot"}


def second() -> FakeEmbedder:
    return FakeEmbedder(dimensions=96, name="second", synonyms=TONGUES)


def filled(memory: Lukasa) -> Workspace:
    world = memory.workspace()
    for text in (KEY, *OTHERS):
        world.put("workspace", text)
    return world


def by_second(world: Workspace, question: str) -> list[str]:
    """Contents that have a place in the signal of the second model."""
    hits = world.read(question, count=False, profile="balanced")
    return [h.content for h in hits if any(c.signal == "multilingual" and c.rank for c in h.score.match.contributions)]


def test_another_language_is_found_by_the_second_model(tmp_path: Path) -> None:
    """R1: an entry that shares no word with the question is the first hit."""
    with Lukasa.open(tmp_path, embedder=FakeEmbedder(), second_embedder=second()) as memory:
        world = filled(memory)
        assert world.read("where did we leave the key near that flowerpot?", count=False)[0].content == KEY
        assert KEY in by_second(world, "where did we leave the key near that flowerpot?")


def test_without_the_second_model_nothing_else_changes(tmp_path: Path) -> None:
    """R1: the signal is silent, without a note."""
    with Lukasa.open(tmp_path, embedder=FakeEmbedder()) as memory:
        world = filled(memory)
        assert by_second(world, "where is the key near the flowerpot?") == []
        assert world.read("Bücher über Schiffe", count=False).notes == ()


def test_a_question_whose_words_are_known_does_not_ask_the_second_model(tmp_path: Path) -> None:
    """R1: where memory holds all words of a question, words and the first model decide alone."""
    with Lukasa.open(tmp_path, embedder=FakeEmbedder(), second_embedder=second()) as memory:
        world = filled(memory)
        assert by_second(world, "Bücher über Schiffe im Regal stehen") == []


def test_vectors_of_earlier_entries_are_made_later(tmp_path: Path) -> None:
    """O8: entries from before the second model get their vectors from a backfill, and an edit gets a new one."""
    with Lukasa.open(tmp_path, embedder=FakeEmbedder()) as memory:
        filled(memory)
    with Lukasa.open(tmp_path, embedder=FakeEmbedder(), second_embedder=second()) as memory:
        world = memory.workspace()
        assert by_second(world, "which key near the flowerpot?") == []
        assert world.backfill(100) == 1 + len(OTHERS)
        assert world.backfill(100) == 0
        (hit, *_) = world.read("which key near the flowerpot?", count=False)
        assert hit.content == KEY
        world.update(hit.id, expect=hit.entry.version, content="Das Fahrrad braucht Luft")
        assert KEY not in by_second(world, "which key near the flowerpot?")
        assert world.backfill(100) == 0


def test_a_failing_second_model_is_a_note(tmp_path: Path) -> None:
    """R1: the answer comes from the other signals, and says so."""
    model = second()
    with Lukasa.open(tmp_path, embedder=FakeEmbedder(), second_embedder=model) as memory:
        world = filled(memory)
        model.fail = True
        world.put("workspace", "Bücher über Züge")
        recall = world.read("Bücher and some foreign words", count=False, profile="balanced")
        assert len(recall)
        assert "other languages failed" in " ".join(recall.notes)
        model.fail = False
        assert world.backfill(10) == 1


def test_why_names_the_second_model(tmp_path: Path) -> None:
    """R8: an entry that it did not find is told so."""
    with Lukasa.open(tmp_path, embedder=FakeEmbedder(), second_embedder=second()) as memory:
        world = filled(memory)
        steps = {v.step: v for v in world.why("which key near the flowerpot?", world.read("Regal 3")[0].id)}
        assert "multilingual" in steps


# --- the real model ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def use() -> MultilingualEmbedder:
    return MultilingualEmbedder(pull(default_cache(), progress=lambda _: None, source=MULTILINGUAL))


def test_the_real_model_knows_one_meaning_in_five_languages(use: MultilingualEmbedder) -> None:
    """R1: the same sentence in another language is nearer than another sentence in the same language."""
    said = ["The cat sleeps on the sofa", "Die Katze schläft auf dem Sofa", "Le chat dort sur le canapé"]
    said += ["El gato duerme en el sofá", "猫在沙发上睡觉"]
    vectors = use.embed_memories([*said, "The train to Bergen leaves at noon", "Der Zug nach Bergen fährt mittags"])
    cosines = vectors @ vectors.T
    assert cosines[:5, :5].min() > 0.6 > 0.35 > cosines[:5, 5:].max()
    assert use.model.digest == MULTILINGUAL.digest


def test_a_vector_does_not_depend_on_its_neighbours(use: MultilingualEmbedder) -> None:
    """R1: one by one and together, and whatever is cached."""
    texts = ["tea", "", "a longer sentence about tea and sugar " * 40, "猫", "x" * 900]
    together = use.embed_memories(texts)
    for text, vector in zip(texts, together, strict=True):
        assert abs(float(use.embed_query(text) @ vector) - 1) < 1e-4
    assert use.embed_memories([]).shape == (0, 512)


def test_the_second_model_is_only_beside_the_default_one(use: MultilingualEmbedder, tmp_path: Path) -> None:
    """R1: not beside a model of one's own, which may know languages itself, and not if it was not pulled."""
    opened = open_second("auto", default_cache())
    assert opened is not None
    assert opened.model == use.model
    assert open_second("none", default_cache()) is None
    assert open_second("folder:/some/where", default_cache()) is None
    assert open_second("auto", tmp_path) is None
