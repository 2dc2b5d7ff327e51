"""Signals, fusion and ranking: every factor visible, none counted twice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lukasa.index.matches import KeywordMatches, VectorMatch
from lukasa.model.candidate import Candidate, candidate_of
from lukasa.model.entry import Access, Document, Entry, Scope, SourceLink
from lukasa.model.timestamps import micros
from lukasa.model.values import Kind
from lukasa.read.fuse import Fusion, Matches, compared, fuse, strengths
from lukasa.read.question import wanted_answer
from lukasa.read.rank import Ranked, Ranking, drop_repeats, provenance
from lukasa.read.rank import rank as rank_cards
from lukasa.read.signals import Signal, answer, context, keyword, lenders, speaker, structured, time, vector
from lukasa.read.times import Span
from lukasa.spec import load_preset
from lukasa.spec.types import MemorySpec
from tests.helpers.making import make_entry

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
ACCOUNT = Scope("account", (("account", "self"),))


def given_by(spec: MemorySpec, **uses: Access) -> Ranking:
    return Ranking(spec, NOW, uses)


def matched(**values: float) -> Matches:
    return Matches(values, Fusion(), standard=False)


def rank(entries: Mapping[str, Entry], matches: Matches, given: Ranking) -> Ranked:
    """Ranked by their cards, and read from where they are when somebody looks."""
    candidates = {id: candidate_of(entry) for id, entry in entries.items()}
    return rank_cards(matches.best_first(), candidates, matches, given, lambda ids: {id: entries[id] for id in ids})


def named(*ids: str) -> list[Candidate]:
    return [candidate_of(replace(make_entry(), id=id)) for id in ids]


def cards_of(*entries: Entry) -> list[Candidate]:
    return [candidate_of(entry) for entry in entries]


def texts_of(*entries: Entry) -> dict[str, str]:
    return {entry.id: entry.content for entry in entries}


def with_id(id: str, entry: Entry) -> Entry:
    return replace(entry, id=id)


def test_hits_are_the_same_however_they_are_looked_at() -> None:
    """R8: one by one, as a slice or all of them, in an order that their own final scores explain."""
    entries = {f"{n:03}": with_id(f"{n:03}", make_entry(f"fact {n}", importance=n % 7 / 7)) for n in range(60)}
    hits = rank(
        entries, matched(**{id: (int(id) * 37 % 60 + 1) / 60 for id in entries}), given_by(load_preset("default"))
    )
    assert [hits[place] for place in range(60)] == hits[:] == list(hits)
    assert hits[10:13] == [hits[10], hits[11], hits[12]]
    assert [hit.score.final for hit in hits] == sorted((hit.score.final for hit in hits), reverse=True)


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
    small = KeywordMatches(1, 4, (1,), named("a"), [4], [[1]])
    large = KeywordMatches(1000, 4000, (1,), named("b"), [4], [[1]])
    scores = keyword([small, large]).scores
    assert scores["a"] == pytest.approx(scores["b"])


def test_bm25_prefers_the_rarer_word() -> None:
    """R1: a rare word weighs more than a common one."""
    scores = keyword([KeywordMatches(100, 500, (1, 60), named("rare", "common"), [5, 5], [[1, 0], [0, 1]])]).scores
    assert scores["rare"] > scores["common"] > 0


def test_what_is_longer_than_a_passage_is_long_however_long_the_others_are() -> None:
    """R1: among long replies, a line that holds the words says more than a reply that holds them too."""
    scores = keyword([KeywordMatches(10, 4_000, (5,), named("line", "reply"), [20, 400], [[1, 1]])]).scores
    assert scores["line"] > 2 * scores["reply"]


def test_vectors_below_the_floor_say_nothing() -> None:
    """R1: a cosine that unrelated texts reach is no match."""
    a, b = named("a", "b")
    assert vector([VectorMatch(a, 0.7), VectorMatch(b, 0.4)], floor=0.5).scores == {"a": 0.7}


def test_tags_and_category_are_a_signal() -> None:
    """R1: a question that names a tag finds what carries it."""
    tagged = make_entry("Nobody goes there at night", tags=("harbour",))
    assert structured(cards_of(tagged, make_entry()), ("harbour", "night")).scores == {tagged.id: 0.5}


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
    uses = {"p": Access(1000, micros(NOW))}
    hits = rank({"p": popular, "f": fitting}, matched(p=0.35, f=1.0), Ranking(load_preset("default"), NOW, uses))
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
    kept, dropped = drop_repeats(ranked, {"a": unit, "b": unit}, spec.retrieval.dedup_cosine, 5)
    assert [hit.id for hit in kept] == ["a"]
    assert {id: verdict.data["kept"] for id, verdict in dropped.items()} == {"b": "a", "c": "a"}


def test_a_repeat_goes_under_the_best_hit_that_it_repeats() -> None:
    """R4: in whichever order a store gives the vectors."""
    spec = load_preset("default")
    texts = [f"{first} staging server runs Debian 12" for first in ("The", "Our", "A")]
    entries = {id: with_id(id, make_entry(text)) for id, text in zip("abc", texts, strict=True)}
    ranked = rank(entries, matched(a=1.0, b=0.9, c=0.8), given_by(spec))
    near = {"a": [1.0, 0.0, 0.0], "b": [0.0, 1.0, 0.0], "c": [0.7, 0.7, 0.0]}
    for order in ("abc", "cba", "bac"):
        vectors = {id: np.array(near[id], dtype=np.float32) for id in order}
        kept, dropped = drop_repeats(ranked, vectors, 0.6, 5)
        assert [hit.id for hit in kept] == ["a", "b"]
        assert dropped["c"].data["kept"] == "a"


def test_near_hits_with_other_facts_are_both_kept() -> None:
    """R4: nearness alone does not hide a different fact."""
    spec = load_preset("default")
    a, b = with_id("a", make_entry("Tom plays chess on Sunday")), with_id("b", make_entry("Ann plays chess on Sunday"))
    unit = np.array([1.0, 0.0], dtype=np.float32)
    ranked = rank({"a": a, "b": b}, matched(a=1, b=0.9), given_by(spec))
    assert len(drop_repeats(ranked, {"a": unit, "b": unit}, spec.retrieval.dedup_cosine, 5)[0]) == 2


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
    return replace(base, **changes)


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
    (hit,) = rank({"a": entry}, matched(a=1.0), Ranking(spec, NOW, {"a": Access(20, micros(NOW))}))
    assert hit.score.frequency == pytest.approx(1 + math.log(21))


def episode(id: str, content: str = "Yes, last Tuesday!", *, source: str = "Tom", minutes: float = 0) -> Entry:
    made = make_entry(content, kind=Kind.EPISODIC, at=NOW + timedelta(minutes=minutes))
    return replace(made, id=id, source=source)


def test_a_name_in_an_episode_does_not_count_as_a_word() -> None:
    """R1: in what was said, a speaker's name addresses somebody; in a fact, it says whom the fact is about."""
    matches = KeywordMatches(100, 500, (3, 3), named("said", "fact", "topic"), [5, 5, 5], [[1, 1, 0], [0, 0, 1]])
    found = keyword([matches], ("ada", "rome"), {"ada"}, {"said", "topic"})
    assert set(found.scores) == {"fact", "topic"}


def test_a_question_that_is_only_a_name_is_searched_as_it_is() -> None:
    """R1: if nothing else was asked, the name is the word."""
    matches = KeywordMatches(100, 500, (3,), named("said"), [5], [[1]])
    assert keyword([matches], ("ada",), {"ada"}, {"said"}).scores["said"] > 0


def test_the_speaker_who_is_named() -> None:
    """R1: what somebody said, if the question names them; a person's own words, if they ask about themselves."""
    entries = [episode("a", source="Ada"), episode("t", source="Tom"), episode("u", source="user")]
    assert speaker(cards_of(*entries), {"Ada"}, False).scores == {"a": 1.0}
    assert speaker(cards_of(*entries), set(), True).scores == {"u": 1.0}


def test_what_was_recorded_at_the_time_that_is_named() -> None:
    """R1: an entry of that time, and one that speaks of it."""
    may = Span(NOW - timedelta(days=190), NOW - timedelta(days=160), ("May",))
    then, now = episode("then", minutes=-170 * 24 * 60), episode("now")
    about = episode("about", "The May release is out")
    candidates, texts = cards_of(then, now, about), texts_of(then, now, about)
    assert set(time(candidates, may, texts).scores) == {"then", "about"}
    assert time(candidates, None, texts).scores == {}


def test_what_holds_the_kind_of_answer() -> None:
    """R1: a short text with a time answers "when"; a long one says nothing by holding one."""
    short, without = episode("short"), episode("without", "Yes, of course!")
    long = episode("long", "last Tuesday " * 100)
    candidates, texts = cards_of(short, without, long), texts_of(short, without, long)
    assert set(answer(candidates, wanted_answer("When was it?"), texts).scores) == {"short"}


def test_an_episode_borrows_from_the_matches_beside_it() -> None:
    """R1: what came after a match borrows more than what came before it; both less than the match has."""
    entries = {e.id: candidate_of(e) for e in (episode("before"), episode("match"), episode("after"))}
    lent = context({"match": 2.0}, {"match": {"before": -1, "after": 1}}, entries).scores
    assert 2.0 > lent["after"] > lent["before"] > 0


@pytest.mark.parametrize(
    "other",
    [
        replace(episode("other", "Down in Lisbon, years ago"), kind=Kind.SEMANTIC),
        episode("other", "A long story. " * 100),
        episode("other", minutes=90),
        replace(episode("other"), path="notes/a.md"),
    ],
)
def test_what_stands_by_itself_borrows_nothing(other: Entry) -> None:
    """R1: a fact, a long text, a file, or what was written at another time depends on nothing beside it."""
    entries = {"match": candidate_of(episode("match")), "other": candidate_of(other)}
    assert context({"match": 2.0}, {"match": {"other": 1}}, entries).scores == {}


@pytest.mark.parametrize("kind", [Kind.SEMANTIC, Kind.PROCEDURAL])
def test_a_line_of_a_talk_is_one_whatever_it_is_kept_as(kind: Kind) -> None:
    """R1: who puts turns without saying what they are finds them as well; what is worded as a fact lends nothing."""
    asks, answers = (replace(episode(id), kind=kind) for id in ("asks", "answers"))
    candidates = {e.id: candidate_of(e) for e in (asks, answers)}
    assert lenders({"asks": 2.0}, candidates) == ["asks"]
    assert set(context({"asks": 2.0}, {"asks": {"answers": 1}}, candidates).scores) == {"answers"}
    fact = replace(episode("fact", "Ada lives in Rome"), kind=kind)
    assert lenders({"fact": 2.0}, {"fact": candidate_of(fact)}) == []
    filed = replace(asks, path="notes/a.md")
    assert lenders({"asks": 2.0}, {"asks": candidate_of(filed)}) == []


def test_an_answer_in_a_conversation_may_be_worded_as_a_fact() -> None:
    """R1: beside a question of the same conversation, "Down in Lisbon, years ago" is its answer."""
    other = replace(episode("other", "Down in Lisbon, years ago"), kind=Kind.SEMANTIC, conversation="c")
    candidates = {"match": candidate_of(replace(episode("match"), conversation="c")), "other": candidate_of(other)}
    assert context({"match": 2.0}, {"match": {"other": 1}}, candidates).scores == {"other": 1.0}


def test_a_conversation_is_one_occasion_however_long() -> None:
    """R1: what another speaker says in the conversation hours later belongs to it; one's own words of later may not."""
    said = [replace(episode(id, minutes=m), conversation="c") for id, m in (("match", 0), ("other", 300))]
    entries = {one.id: candidate_of(one) for one in said}
    assert not context({"match": 2.0}, {"match": {"other": 1}}, entries).scores
    entries["other"] = candidate_of(replace(said[1], source="Ada"))
    assert context({"match": 2.0}, {"match": {"other": 1}}, entries).scores


def test_only_matching_episodes_lend() -> None:
    """R1: the strongest come first; facts and what does not match lend nothing."""
    entries = {"weak": episode("weak"), "strong": episode("strong"), "fact": make_entry(), "none": episode("none")}
    candidates = {id: candidate_of(entry) for id, entry in entries.items()}
    assert lenders({"weak": 0.5, "strong": 2.0, "fact": 3.0, "none": 0.0}, candidates) == ["strong", "weak"]


@pytest.mark.parametrize("preset", ["default", "workspace"])
def test_strength_is_by_what_an_entry_says(preset: str) -> None:
    """R1: signals about the entry itself do not flow to its neighbours."""
    signals = [Signal("keyword", {"a": 9.0, "b": 1.0}), Signal("speaker", {"c": 1.0}, own_scale=True)]
    found = strengths(signals, load_preset(preset).retrieval)
    assert set(found) == {"a", "b"}
    assert found["a"] > found["b"] >= 0


@pytest.mark.parametrize("preset", ["default", "workspace"])
def test_a_match_alone_is_a_strong_one(preset: str) -> None:
    """R1: with nothing to compare with, what was found stands out from all that was not."""
    assert strengths([Signal("keyword", {"a": 0.3})], load_preset(preset).retrieval)["a"] > 0.5


def test_a_signal_on_its_own_scale_counts_as_it_is() -> None:
    """R1: a named speaker weighs the same however many candidates are theirs."""
    retrieval = load_preset("default").retrieval
    few = fuse([Signal("speaker", {"a": 1.0, "b": 0.0}, own_scale=True)], retrieval)
    many = fuse([Signal("speaker", {"a": 1.0, "c": 1.0, "b": 0.0}, own_scale=True)], retrieval)
    assert few["b"].value == pytest.approx(many["b"].value) == pytest.approx(math.exp(-retrieval.weights["speaker"]))


def test_equals_share_a_place() -> None:
    """R8: two entries that a signal cannot tell apart are not put into an order."""
    assert Signal("time", {"a": 1.0, "b": 1.0, "c": 0.5}).ranks() == {"a": 1, "b": 1, "c": 3}


def test_without_vectors_words_speak_for_both() -> None:
    """R1: the other signals keep their proportion to what the entry says when there is no model."""
    retrieval = load_preset("default").retrieval
    words = Signal("keyword", {"a": 2.0, "b": 1.0})
    (alone,) = fuse([words], retrieval)["a"].contributions
    beside, _ = fuse([words, Signal("vector", {})], retrieval)["a"].contributions
    weights = retrieval.weights
    assert alone.share / beside.share == pytest.approx((weights["keyword"] + weights["vector"]) / weights["keyword"])


def test_of_two_that_hardly_differ_neither_is_far_above() -> None:
    """R1: a handful of candidates is compared with all that was not found, too, and not only with one another."""
    retrieval = load_preset("default").retrieval
    found = fuse([Signal("keyword", {"a": 2.0, "b": 1.98})], retrieval)
    assert found["b"].value > 0.9


def test_standing_is_weighed_among_the_leaders() -> None:
    """R2, D5: behind the best matches it is the match that counts, however important an entry is."""
    entries = {f"{n:02}": with_id(f"{n:02}", make_entry(f"fact {n}", importance=n / 30)) for n in range(30)}
    matches = matched(**{id: 1.0 - int(id) / 1000 for id in entries})
    spec = load_preset("default")
    assert rank(entries, matches, given_by(spec))[0].id == "29"
    few = rank(entries, matches, replace(given_by(spec), reach=10))
    assert [hit.id for hit in few] == [f"{n:02}" for n in (*range(9, -1, -1), *range(10, 30))]


def test_a_compared_signal_that_speaks_late_counts_and_explains_itself() -> None:
    """R1, R8: fusion is over all signals, whichever were compared before the last of them spoke."""
    retrieval = load_preset("default").retrieval
    early = [Signal("keyword", {"a": 2.0, "b": 2.0})]
    known = compared(early, retrieval)
    found = fuse([*early, Signal("brevity", {"b": 1.0})], retrieval, known)
    assert found["b"].value > found["a"].value
    assert {c.signal: c.share > 0 for c in found["b"].contributions} == {"keyword": True, "brevity": True}
