"""What a question asks for."""

from __future__ import annotations

import pytest

from lukasa.read.question import (
    choose_profile,
    is_about_oneself,
    literals,
    named_sources,
    query_terms,
    wanted_answer,
    without_names,
)


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
    """R1: names of sources are left to the speaker signal; a question that is only a name stays."""
    assert without_names(query, sources) == asked


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("what did caroline say?", {"Caroline"}),
        ("What did Ada say?", {"Ada Byron"}),
        ("What limits does the design have?", set()),
        ("What did the design review say?", {"design review"}),
        ("Who said it?", set()),
    ],
)
def test_a_source_is_named_whole_or_by_a_part_that_is_a_name(query: str, named: set[str]) -> None:
    """R1: a common word that happens to be part of a source's label does not name the source."""
    assert named_sources(query, {"Caroline", "Ada Byron", "design review"}) == named


@pytest.mark.parametrize(
    ("query", "alone"),
    [
        ("What did I say my budget was?", True),
        ("What did you tell me?", False),
        ("What did we decide?", False),
        ("What is the budget?", False),
        ("Can you please list the pets I told of over our conversations?", True),
        ("Could you remind me when my lease ends?", True),
        ("Can you show me how to bake bread?", False),
        ("Could you remind me what you said about my lease?", False),
    ],
)
def test_a_person_asks_about_themselves(query: str, alone: bool) -> None:
    """R1: "I" and "my" alone; with "you" or "we", somebody else may have said it, unless that is courtesy."""
    assert is_about_oneself(query) is alone


@pytest.mark.parametrize(
    ("query", "holding", "lacking"),
    [
        ("When did the ferry stop?", "It stopped last Tuesday", "It stopped for repairs"),
        ("What year was it built?", "They built it in 1987", "They built it of stone"),
        ("How many boats are there?", "There are twelve or 13 of them", "There are boats"),
    ],
)
def test_the_kind_of_answer(query: str, holding: str, lacking: str) -> None:
    """R1: a question for a time or a number says what an answer would hold."""
    wanted = wanted_answer(query)
    assert wanted is not None
    assert wanted.search(holding)
    assert not wanted.search(lacking)


def test_most_questions_want_nothing_in_particular() -> None:
    """R1: other questions expect neither."""
    assert wanted_answer("Who sails the ferry?") is None


def test_a_passage_is_asked_with_its_last_words_too() -> None:
    """R1: a question may be a long passage; what matters may stand at its end."""
    passage = " ".join(f"matter{n}" for n in range(90))
    assert query_terms(f"{passage} lighthouse")[-1] == "lighthous"
    assert len(query_terms(" ".join(f"word{n}" for n in range(1_000)))) == 128


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What about error E4711?", ("e4711",)),
        ("Which setting lives in src/app/main.py?", ("src/app/main.py",)),
        ("What broke with tinder 4.29.13?", ("4.29.13",)),
        ('Who said "never on a falling tide"?', ("never on a falling tide",)),
        ("Wer sagte „niemals bei Ebbe“?", ("niemals bei ebbe",)),
        ("What is OPS-512 about?", ("ops-512",)),
        ("Who runs on port 60158?", ("60158",)),
        ("Where is ParserError raised?", ("parsererror",)),
        ("Why was 51592e3fd0's change reverted?", ("51592e3fd0",)),
        ("What did 2 of us do in 2023, on the 3rd at 10am?", ()),
        ("What did Ann's sister-in-law say?", ()),
        ("Who posted $20 on YouTube or LinkedIn at 3:30pm, in the 1990s and/or 24/7, with a 3-year-old?", ()),
        ("Who paid 5,000 to ann@harbour.example?", ("5,000", "ann@harbour.example")),
        ("", ()),
    ],
)
def test_literals_are_what_must_be_held_letter_by_letter(question: str, found: tuple[str, ...]) -> None:
    """R1: ids, codes, paths, versions, numbers and quotations; small numbers, years and times are none."""
    assert literals(question) == found
