"""Signals, fusion and ranking: every factor visible, none counted twice."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.model.entry import Access, Document, Entry, Scope, SourceLink
from mnemon.ports.store import KeywordMatches, Neighbour, TermRow
from mnemon.read.fuse import Fusion, Match, fuse
from mnemon.read.rank import Ranking, choose_profile, drop_repeats, provenance, rank, without_names
from mnemon.read.signals import Signal, keyword, structured, vector
from mnemon.spec import load_preset
from mnemon.spec.types import MemorySpec
from tests.helpers.making import make_entry

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
ACCOUNT = Scope("account", (("account", "self"),))


def given_by(spec: MemorySpec, **access: Access) -> Ranking:
    return Ranking(spec, NOW, access)


def matched(**values: float) -> dict[str, Match]:
    return {id: Match(value, id, Fusion((), ())) for id, value in values.items()}


def with_id(id: str, entry: Entry) -> Entry:
    return replace(entry, id=id)


def test_rrf_is_reciprocal_rank_with_sixty() -> None:
    """R1: RRF adds 1 / (60 + rank) of each signal."""
    spec = load_preset("workspace")
    found = fuse([Signal("keyword", {"a": 9.0, "b": 1.0}), Signal("vector", {"b": 0.9})], spec.retrieval)
    shares = {id: sum(c.share for c in match.contributions) for id, match in found.items()}
    assert shares == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61})


def test_a_keyword_hit_that_no_vector_found_is_a_candidate() -> None:
    """R1: each signal alone can bring an entry into the result."""
    found = fuse([Signal("keyword", {"a": 9.0}), Signal("vector", {"b": 0.9})], load_preset("default").retrieval)
    assert set(found) == {"a", "b"}


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 50), max_size=6), st.sampled_from(["default", "workspace"])
)
def test_fusion_is_positive_and_at_most_one(scores: dict[str, float], preset: str) -> None:
    """R1: a match is always in (0, 1], so that factors can be multiplied."""
    found = fuse([Signal("keyword", scores), Signal("vector", {})], load_preset(preset).retrieval)
    assert all(0 < match.value <= 1 for match in found.values())


def test_fusion_agrees_with_a_single_signal() -> None:
    """R1: without vectors, the order is the keyword order."""
    scores = {"a": 1.0, "b": 5.0, "c": 3.0}
    for preset in ("default", "workspace"):
        found = fuse([Signal("keyword", scores)], load_preset(preset).retrieval)
        assert sorted(found, key=lambda id: -found[id].value) == ["b", "c", "a"]


def test_stores_are_scored_as_one_collection() -> None:
    """R3: an entry of a small store is not penalised for the size of its store."""
    small = KeywordMatches(1, 4, (1,), (TermRow("a", (1,), 4),))
    large = KeywordMatches(1000, 4000, (1,), (TermRow("b", (1,), 4),))
    scores = keyword([small, large]).scores
    assert scores["a"] == pytest.approx(scores["b"])


def test_bm25_prefers_the_rarer_word() -> None:
    """R1: a rare word weighs more than a common one."""
    rows = (TermRow("rare", (1, 0), 5), TermRow("common", (0, 1), 5))
    scores = keyword([KeywordMatches(100, 500, (1, 60), rows)]).scores
    assert scores["rare"] > scores["common"] > 0


def test_vectors_below_the_floor_say_nothing() -> None:
    """R1: a cosine that unrelated texts reach is no match."""
    assert vector([Neighbour("a", 0.7), Neighbour("b", 0.4)], floor=0.5).scores == {"a": 0.7}


def test_tags_and_category_are_a_signal() -> None:
    """R1: a question that names a tag finds what carries it."""
    tagged = make_entry("Nobody goes there at night", tags=("harbour",))
    assert structured([tagged, make_entry()], ("harbour", "night")).scores == {tagged.id: 0.5}


def test_the_score_is_the_product_of_its_factors() -> None:
    """R8, D5: final = match × prior × tier weight, and relevance = importance × decay × frequency."""
    spec = load_preset("workspace")
    entry = with_id("a", make_entry(at=NOW - timedelta(hours=24), importance=0.6))
    (hit,) = rank({"a": entry}, matched(a=0.5), given_by(spec))
    s = hit.score
    assert s.relevance == pytest.approx(0.6 * 0.995**24)
    assert s.final == pytest.approx(s.match.value * s.prior * s.tier_weight)


@pytest.mark.parametrize("preset", ["default", "workspace", "tiered", "observer"])
def test_a_fresh_relevant_account_entry_beats_an_irrelevant_workspace_one(preset: str) -> None:
    """D5: tier and decay do not discount twice: the account's match stays above the workspace's noise."""
    account = with_id("a", make_entry("Prefers dark themes", scope=ACCOUNT))
    noise = with_id("w", make_entry("The harbour has three lighthouses"))
    hits = rank({"a": account, "w": noise}, matched(a=1.0, w=0.3), given_by(load_preset(preset)))
    assert [hit.id for hit in hits] == ["a", "w"]


def test_reading_often_does_not_lift_a_poor_match_over_a_good_one() -> None:
    """D5: in `default`, no number of reads makes an entry win every question (self-reinforcement)."""
    popular = with_id("p", make_entry("A popular note"))
    fitting = with_id("f", make_entry("The fitting note"))
    access = {"p": Access(1000, NOW)}
    hits = rank({"p": popular, "f": fitting}, matched(p=0.35, f=1.0), Ranking(load_preset("default"), NOW, access))
    assert hits[0].id == "f"


def test_ties_go_to_the_newest() -> None:
    """R2: of two equal matches the newer comes first."""
    old = with_id("a", make_entry(at=NOW - timedelta(seconds=2)))
    new = with_id("b", make_entry(at=NOW - timedelta(seconds=2)))
    new = replace(new, created_at=NOW - timedelta(seconds=1))
    hits = rank({"a": old, "b": new}, matched(a=1.0, b=1.0), given_by(load_preset("default")))
    assert [h.id for h in hits] == ["b", "a"]


def test_a_conversation_is_ordered_by_recency() -> None:
    """R2: the conversation tier ranks by time, whatever the match."""
    scope = Scope("conversation", (("workspace", "w"), ("conversation", "c")))
    old = with_id("a", make_entry(scope=scope, at=NOW - timedelta(hours=2)))
    new = with_id("b", make_entry(scope=scope, at=NOW - timedelta(hours=1)))
    hits = rank({"a": old, "b": new}, matched(a=1.0, b=0.1), given_by(load_preset("default")))
    assert [h.id for h in hits] == ["b", "a"]


def test_repeats_are_dropped_for_the_better_hit() -> None:
    """R4: of two that say the same, by text or by vector, the better is kept and named."""
    spec = load_preset("default")
    first = with_id("a", make_entry("The staging server runs Debian 12"))
    second = with_id("b", make_entry("Our staging server runs Debian 12"))
    third = with_id("c", make_entry("the staging server runs debian 12."))
    ranked = rank({"a": first, "b": second, "c": third}, matched(a=1.0, b=0.9, c=0.8), given_by(spec))
    unit = np.array([1.0, 0.0], dtype=np.float32)
    kept, dropped = drop_repeats(ranked, replace(given_by(spec), vectors={"a": unit, "b": unit}), 5)
    assert [hit.id for hit in kept] == ["a"]
    assert {id: verdict.data["kept"] for id, verdict in dropped.items()} == {"b": "a", "c": "a"}


def test_near_hits_with_other_facts_are_both_kept() -> None:
    """R4: nearness alone does not hide a different fact."""
    spec = load_preset("default")
    a, b = with_id("a", make_entry("Tom plays chess on Sunday")), with_id("b", make_entry("Ann plays chess on Sunday"))
    unit = np.array([1.0, 0.0], dtype=np.float32)
    given = replace(given_by(spec), vectors={"a": unit, "b": unit})
    assert len(drop_repeats(rank({"a": a, "b": b}, matched(a=1, b=0.9), given), given, 5)[0]) == 2


@pytest.mark.parametrize(
    ("query", "profile"),
    [
        ("villain", "lean"),
        ("what is the name of the villain in chapter three", "balanced"),
        ("list everything about the harbour", "deep"),
    ],
)
def test_auto_chooses_a_profile(query: str, profile: str) -> None:
    """R6: `auto` picks by how much is asked."""
    assert choose_profile(query) == profile


@pytest.mark.parametrize(
    ("preset", "lean", "balanced", "deep"),
    [("observer", (2, 3), (5, 7), (10, 15)), ("default", (2, 3), (5, 7), (10, 15))],
)
def test_profiles_are_in_their_ranges(
    preset: str, lean: tuple[int, int], balanced: tuple[int, int], deep: tuple[int, int]
) -> None:
    """R6: lean 2–3, balanced 5–7, deep 10–15; the inject cap is 10."""
    spec = load_preset(preset)
    for name, (low, high) in {"lean": lean, "balanced": balanced, "deep": deep}.items():
        assert low <= spec.profiles[name].limit <= high
    assert spec.inject_cap == 10


def document(**changes: object) -> Document:
    base = Document("page", "Page", "text", "author", "current", 0.9, "canonical", 2, NOW)
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("documents", "status"),
    [
        ({"page": document()}, "current"),
        ({"page": document(version=3)}, "changed"),
        ({"page": document(removed=True)}, "vanished"),
        ({}, "vanished"),
    ],
)
def test_links_show_the_source_as_it_is_now(documents: dict[str, Document], status: str) -> None:
    """M9: a link shows whether its source is current, changed or gone, and its axes come from the source."""
    entry = replace(make_entry(), links=(SourceLink("page", 2),))
    (seen,) = provenance(entry, documents)
    assert seen.status == status
    assert (seen.standing == "canonical") == (status != "vanished")


def test_frequency_never_outgrows_the_logarithm() -> None:
    """D1: reads count by their logarithm."""
    spec = load_preset("workspace")
    entry = with_id("a", make_entry(importance=1.0))
    (hit,) = rank({"a": entry}, matched(a=1.0), Ranking(spec, NOW, {"a": Access(20, NOW)}))
    assert hit.score.frequency == pytest.approx(1 + math.log(21))


@pytest.mark.parametrize(
    ("query", "sources", "asked"),
    [
        ("What did Caroline say about Rome?", {"Caroline", "Mel"}, "What did say about Rome?"),
        ("Where is Caroline's book?", {"Caroline"}, "Where is book?"),
        ("Caroline", {"Caroline"}, "Caroline"),
        ("Who painted it?", {"Caroline"}, "Who painted it?"),
        ("Where is the lantern?", set(), "Where is the lantern?"),
    ],
)
def test_meaning_is_asked_without_the_names_of_those_who_spoke(query: str, sources: set[str], asked: str) -> None:
    """R1: names of sources are left to the structured signal; a question that is only a name stays."""
    assert without_names(query, sources) == asked
