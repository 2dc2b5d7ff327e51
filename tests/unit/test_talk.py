"""Whether a text is a line of a talk, and whose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.model.text import speaker, speaks


@pytest.mark.parametrize(
    "text",
    [
        "Where did you buy it?",
        "Lovely!",
        "i love the sea",
        "That is what I’ve always said",
        "Let's meet in Porto",
        'She asked "why?" and left',
        "(Really?)",
        "你好吗？",
        "Our flat has two rooms",
    ],
)
def test_words_of_a_talk(text: str) -> None:
    """R1: a text asks, exclaims, or says I, we or you, as one does who speaks to another."""
    assert speaks(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The deploy runs on Fridays",
        "US exports rose in May",
        "See https://example.org/?page=2 and `a != b`",
        "Down in Lisbon, years ago",
        "東京は日本の首都です。",
        "Ada lives in Rome. " * 200 + "Do you?",
    ],
)
def test_words_of_a_fact(text: str) -> None:
    """R1: what is told of somebody or something else is no line of a talk; a mark within a word asks nothing."""
    assert not speaks(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ann: I went to Rome", "Ann"),
        ("Mary Ann Lee: so did I", "Mary Ann Lee"),
        ("Dr. O'Neil: how are you?", "Dr. O'Neil"),
        ("Will: I'll bring the cake", "Will"),
        ("Speaker 2: my turn", "Speaker 2"),
        ("ANN: HELLO!", "ANN"),
        ("[1:56 pm on 8 May, 2023] Ann: hey!", "Ann"),
        ("(8 May 2023) Ann : hey!", "Ann"),
        ("2023-05-08 13:56 Ann: hey!", "Ann"),
        ("8/5/23, 13:56 - Ann: hey!", "Ann"),
        ("**Ann:** hey!", "Ann"),
        ("**Ann**: hey!", "Ann"),
        ("- Ann: hey!", "Ann"),
        ("Ann:\nhey!", "Ann"),
        ("李雷：你好吗？", "李雷"),
        ("Élodie: my turn", "Élodie"),
        ("user: my cat is called Tom", "user"),
        ("User: my cat is called Tom", "user"),
        ("Human: my cat is called Tom", "user"),
        ("Me: my cat is called Tom", "user"),
        ("bot: how can I help you?", "bot"),
        ("Claude: how can I help you?", "Claude"),
        ("Assistant: would you like to tell me more?", "assistant"),
    ],
)
def test_a_line_says_who_speaks(text: str, name: str) -> None:
    """R1: as logs of chats begin their lines, with a time or without; roles are called by one name each."""
    assert speaker(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "Ann:",
        "Ann: ",
        "I went to Rome",
        "Note: I have to call Ann",
        "Ticket 318: my screen stays black",
        "Section 4 B: you must not smoke",
        "TODO: ask Ann whether she comes",
        "Model: we use the small one",
        "Question: where do you live?",
        "My plan: I leave on Friday",
        "Monday: I have yoga",
        "At the office: I was told so",
        "what I like: tea",
        "garden party: we meet at eight",
        "Ann whispering: I came",
        "Ann said yesterday evening: I will come",
        "https://example.org is what I use",
        "Meet me at 10:30 tomorrow",
        "A:B is what I meant",
        "I think of it so: all of us should go",
        "{x: 1, y: 2} is what I got",
        "x" * 80 + ": I am too long for a name",
    ],
)
def test_a_line_that_says_nobody(text: str) -> None:
    """R1: headings, clauses, addresses and times of day speak for nobody."""
    assert speaker(text) is None


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=120))
def test_any_text_can_be_asked_who_speaks(text: str) -> None:
    """What is found stands there, but for roles that have two names, and is no longer than a source may be."""
    name = speaker(text)
    assert name is None or name in {"user", "assistant"} or name in text or name in text.lower()
    assert name is None or 0 < len(name) < 80
