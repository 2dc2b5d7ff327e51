"""The quality bench: its scores, its halves and the section it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.dataset import Dataset, halves, load
from bench.quality import TALK_RECIPES, halves_told, whole_told
from bench.recall import Recipe, ranking
from bench.scoring import score, score_one
from bench.section import write_section
from lukasa.spec import parse_spec
from tests.fakes import FakeEmbedder


def turn(scope: str, number: int, speaker: str, text: str) -> dict[str, str]:
    time = f"2023-05-0{number}T10:00:00"
    return {
        "id": f"{scope}/{number}",
        "scope": scope,
        "session_id": f"{scope}/s",
        "timestamp": time,
        "speaker": speaker,
        "text": text,
    }


def test_recall_and_gain_are_those_of_the_definition() -> None:
    """B13: two of three found, at places 1 and 3."""
    row = score_one(["a", "x", "b", "y"], ["a", "b", "c"])
    assert row["recall@5"] == pytest.approx(2 / 3)
    assert row["MRR"] == row["hit@10"] == 1
    assert row["nDCG@10"] == pytest.approx((1 + 0.5) / (1 + 0.6309298 + 0.5))


def test_a_stale_fact_counts_against_the_ranking() -> None:
    """B13: the current fact must stand above the stale one; an absent one is a miss."""
    assert score_one(["new", "old"], ["new"], ["old"])["fresh_first"] == 1
    assert score_one(["old", "new"], ["new"], ["old"])["fresh_first"] == 0
    assert score_one(["old"], ["new"], ["old"])["fresh_first"] == 0


def test_halves_share_no_scope() -> None:
    """B13: what is told was not used for choosing."""
    data = Dataset("d", tuple(turn(scope, 1, "Ada", "Hello") for scope in "abcde"), ())
    split = halves(data)
    assert set(split["tuned"]) | set(split["held out"]) == set("abcde")
    assert not set(split["tuned"]) & set(split["held out"])


def test_a_recipe_is_a_spec_with_lines_changed() -> None:
    """B13: the rows of the bench differ in the spec alone; a line that is not there is an error."""
    spec = parse_spec(
        Recipe("r", retrieval=(("signals", '["keyword"]'), ("weights", "{ keyword = 1.0 }"))).spec(), file="r"
    )
    assert spec.retrieval.signals == ("keyword",)
    with pytest.raises(ValueError, match="magic"):
        Recipe("r", retrieval=(("magic", "1"),)).spec()


def test_a_ranking_goes_through_the_public_api() -> None:
    """B13: every question gets the ids of turns, best first."""
    turns = (turn("a", 1, "Ada", "The telescope stands in the attic"), turn("a", 2, "Tom", "Apples are ripe in autumn"))
    query = {"id": "q", "scope": "a", "text": "Where is the telescope?", "evidence": ["a/1"], "category": "c"}
    data = Dataset("d", turns, (query,))
    found = ranking(data, Recipe("ours"), FakeEmbedder(64))
    assert found["q"][0] == "a/1"
    assert score(data.queries, found)["ALL"]["MRR"] == 1


def test_a_line_may_be_all_that_is_told_of_a_turn() -> None:
    """B13, R1: who speaks is in the text alone, and found there."""
    turns = (turn("a", 1, "Ada", "I keep bees!"), turn("a", 2, "Tom", "I keep sheep!"))
    query = {"id": "q", "scope": "a", "text": "What does Tom keep?", "evidence": ["a/2"], "category": "c"}
    found = ranking(Dataset("d", turns, (query,)), Recipe("alone", alone=True), None)
    assert found["q"][0] == "a/2"


def test_a_question_of_a_moment_is_asked_at_that_moment() -> None:
    """B13: what was said later is not known then, and the last day counts from there."""
    turns = tuple(turn("a", day, "Ada", f"The telescope stands in room {day}") for day in (1, 2, 3))
    asked = {"scope": "a", "evidence": ["a/1"], "category": "c"}
    queries = (
        {"id": "later", "text": "Where is the telescope?"} | asked,
        {"id": "then", "text": "Where is the telescope?", "as_of": "2023-05-02T11:00:00"} | asked,
        {"id": "day", "text": "Where was the telescope yesterday?", "as_of": "2023-05-03T11:00:00"} | asked,
    )
    found = ranking(Dataset("d", turns, queries), Recipe("ours"), FakeEmbedder(64))
    assert set(found["later"]) == {"a/1", "a/2", "a/3"}
    assert set(found["then"]) == {"a/1", "a/2"}
    assert found["day"][0] == "a/2"


def test_a_set_with_holes_in_it_is_measured_all_the_same(tmp_path: Path) -> None:
    """B13: turns without words, time, speaker or session, or longer than a memory may be; a question without words.
    What is left of them is what every store is given."""
    odd = (
        {"id": "a/1", "scope": "a", "session_id": "s", "timestamp": "2023-05-01T10:00:00", "text": " \n"},
        {"id": "a/2", "scope": "a", "speaker": None, "text": "The telescope\0stands \ud800 there"},
        {"id": "a/3", "scope": "a", "timestamp": None, "speaker": "x \n" * 999, "text": "pear " * 9_999},
    )
    asked = [("q1", "Where is the telescope?"), ("q2", "pear"), ("q3", " "), ("q4", "pear " * 9_999)]
    queries = tuple({"id": id, "scope": "a", "text": text, "evidence": ["a/2"], "category": "c"} for id, text in asked)
    Dataset("odd", odd, queries).save(tmp_path / "odd")
    data = load(tmp_path / "odd")
    for recipe in (Recipe("ours"), Recipe("alone", alone=True)):
        found = ranking(data, recipe, FakeEmbedder(64))
        assert {id: ranked[:1] for id, ranked in found.items()} == {
            "q1": ["a/2"],
            "q2": ["a/3"],
            "q4": ["a/3"],
        }
    assert [(turn["id"], turn["speaker"], turn["timestamp"]) for turn in data.corpus] == [
        ("a/2", "user", "2023-05-01T10:00:00"),
        ("a/3", "x " * 99 + "x", "2023-05-01T10:00:00"),
    ]
    data.save(tmp_path / "again")
    assert load(tmp_path / "again").corpus == data.corpus


def test_unseen_conversations_are_told_as_a_whole() -> None:
    """B13: of conversations that nothing was chosen on there is no half to tell apart."""
    turns = tuple(turn(scope, 1, "Ada", "The telescope stands in the attic") for scope in "ab")
    queries = tuple(
        {"id": f"{scope}/q", "scope": scope, "text": "Where?", "evidence": [f"{scope}/1"], "category": "places"}
        for scope in "ab"
    )
    data = Dataset("d", turns, queries)
    rankings = {recipe.name: {"a/q": ["a/1"], "b/q": []} for recipe in TALK_RECIPES}
    whole, parts = "\n".join(whole_told(data, rankings)), "\n".join(halves_told(data, rankings))
    assert "All of them (2 questions of 2 conversations)" in whole
    assert "half" not in whole
    assert "| Lukasa | 0.500 |" in whole
    assert "| places (2) | 0.500 |" in whole
    assert "The half that was tuned (1 questions of 1 conversations)" in parts
    assert "| places (1) | 0.000 |" in parts


def test_the_section_is_replaced_and_the_rest_is_kept(tmp_path: Path) -> None:
    """B13: results of other benches stay."""
    results = tmp_path / "RESULTS.md"
    write_section(results, "speed", "fast")
    write_section(results, "quality", "old")
    write_section(results, "more", "more")
    write_section(results, "quality", "new")
    text = results.read_text("utf-8")
    assert "fast" in text
    assert "more" in text
    assert "old" not in text
    assert "new" in text
