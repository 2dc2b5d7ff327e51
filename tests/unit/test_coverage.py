"""Rules about questions that want all of something, and how sure an answer is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.read.confidence import asks, confidence, nearness, shared_words
from lukasa.read.coverage import related, wanted_coverage
from lukasa.read.fuse import Contribution
from lukasa.read.reasons import because, shares


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("what are all the allergies in our family?", "set"),
        ("which customers have complained about the invoice?", "set"),
        ("What kinds of tea does Ilse drink?", "set"),
        ("list my pets", "set"),
        ("who are the members of the steering group?", "set"),
        ("Welche Bücher hat Ann gelesen?", "set"),
        ("in what order were the servers replaced", "sequence"),
        ("In welcher Reihenfolge haben wir umgestellt?", "sequence"),
        ("give me a timeline of the outage", "sequence"),
        ("sum up the talks with the landlord", "summary"),
        ("tell me everything about Marta", "summary"),
        ("Fass bitte zusammen, was wir über den Umzug wissen", "summary"),
        ("who is the villain?", None),
        ("what is the address of the office?", None),
        ("what did James do with the remaining funds", None),
        ("which bus goes to the harbour", None),
        ("wann ist der Termin?", None),
        ("", None),
    ],
)
def test_what_a_question_wants(question: str, wanted: str | None) -> None:
    """R6: sets, sequences and summaries are told from questions for one thing, in English and German."""
    assert wanted_coverage(question) == wanted


def test_what_belongs_together_ends_where_scores_drop() -> None:
    """R6: the number of results follows the drop of the scores, not a constant; at least three are kept."""
    assert related([0.7, 1.0, 0.8, 0.5, 0.01, 0.09, 0.005]) == [0, 1, 2, 3, 5]
    assert related([1.0, 0.001, 0.0009, 0.0001]) == [0, 1, 2]
    assert related([1.0]) == [0]
    assert related([]) == []


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_more_evidence_never_lowers_confidence(near: float, words: float, more: float, talk: bool) -> None:
    """R8: the estimate is a probability, and grows with nearness and with shared words."""
    sure = confidence(near, words, talk=talk)
    assert 0 < sure < 1
    assert confidence(min(1.0, near + more), words, talk=talk) >= sure
    assert confidence(near, min(1.0, words + more), talk=talk) >= sure
    assert confidence(None, min(1.0, words + more), talk=talk) >= confidence(None, words, talk=talk)


def test_nearness_and_words_are_shares() -> None:
    """R8: unrelated texts are 0, the same text is 1; rare words count more than common ones."""
    assert (nearness(0.5, 0.56), nearness(1.0, 0.56), nearness(0.4, 0.0)) == (0, 1, 0.4)
    weights = {"malachar": 6.0, "call": 1.0}
    assert shared_words(weights, [["call"], ["malachar", "malachar"]]) == pytest.approx(6 / 7)
    assert shared_words({}, [["call"]]) == shared_words(weights, []) == 0


@pytest.mark.parametrize("text", ["who is it", "Wann kommt Ann", "the door code?", "¿Dónde está?"])
def test_a_question_asks(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize("text", ["continue chapter three", "Fix the failing test in parser.py", "refactor", ""])
def test_a_task_does_not_ask(text: str) -> None:
    assert not asks(text)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=7))
def test_shares_add_up(given_shares: list[float]) -> None:
    """R8: what spoke for a hit is 100 % together, whatever the numbers; nothing spoke for it: no shares."""
    parts = tuple(Contribution(f"s{n}", 1, 1.0, share) for n, share in enumerate(given_shares))
    found = shares(parts)
    whole = math.fsum(share for share in given_shares if share > 0)
    assert sum(found.values()) == (100 if whole > 0 else 0)
    assert all(share > 0 for share in found.values())


def test_the_strongest_reason_comes_first() -> None:
    """R8: words as the question spells them, the speaker by name, and no number."""
    parts = (Contribution("keyword", 1, 3.2, 0.4), Contribution("speaker", 1, 1.0, 1.3), Contribution("time", 9, 0, -1))
    told = because("I adopted two beagles", "Ann", "Which dogs did Ann adopt?", parts)
    assert told == "Ann said it, about whom you ask and it has “adopt”."
    assert (
        because("Another thing", "", "Which dogs?", ()) == "It was said later than another match, about the same thing."
    )
