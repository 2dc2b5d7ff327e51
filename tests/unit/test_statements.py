"""Contradiction by rules."""

from __future__ import annotations

import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st

from lukasa.model.statements import contradicts, role, says_the_same, subject


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The villain is called Vexis", "The villain is called Malachar"),
        ("The villain is Vexis", "The villain is Malachar"),
        ("Vexis is the villain", "Malachar is the villain"),
        ("Ada was born in the city of Paris.", "Ada was born in the city of London."),
        ("Alice moved to Berlin", "Alice lives in Paris"),
        ("Alice now works at Initech", "Alice works for Globex"),
        ("I don't like coffee", "I like coffee"),
        ("Alice no longer likes tea", "Alice likes tea"),
        ("The user prefers light mode", "The user prefers dark mode"),
        ("The deadline is now March 3", "The deadline is March 1"),
        ("Bob is the CTO of Acme", "Bob is the CEO of Acme"),
        ("The API server listens on port 9000", "The API server listens on port 8080"),
        ("My favourite tea is oolong", "My favourite tea is sencha"),
        ("Bob is a citizen of France", "Bob is a citizen of Spain"),
        ("Bob is a citizen of South Korea", "Bob is a citizen of South Africa"),
    ],
)
def test_one_thing_with_two_values(new: str, old: str) -> None:
    """W4: two values for what has one at a time contradict, and are not duplicates however near they are."""
    assert contradicts(new, old)
    assert subject(new) == subject(old) or role(new) == role(old) != ""
    assert not says_the_same(new, old)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Alice likes tea", "Alice likes coffee"),
        ("Bob is a doctor", "Bob is a vegetarian"),
        ("The sky is vast", "The sky is blue"),
        ("We use Postgres", "We use MySQL"),
        ("The hero is called Elara", "The villain is called Malachar"),
        ("Alice is working on docs", "Alice is working on tests"),
        ("Bob is friends with Alice", "Bob is friends with Carol"),
        ("Alice visited Rome", "Alice visited Oslo"),
        ("Chapter 3 has a duel", "Chapter 4 has a wedding"),
        ("Ada is married to Tom Byron", "Ada is a citizen of France"),
        ("Nightfall was written in the language of Veyra", "Nightfall was performed by Tom"),
    ],
)
def test_what_can_hold_together(new: str, old: str) -> None:
    """W4: the rules rather miss a contradiction than invent one."""
    assert not contradicts(new, old)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The staging server runs Debian", "The staging server runs Debian 12"),
        ("Deploys happen on Fridays", "Deploys never happen on Fridays"),
        ("The hero is called Elara and fights with a silver spear", "The hero is called Elara"),
        ("Tom plays chess every Sunday", "Ann plays chess every Sunday"),
        ("Ann hates the new office", "Ann loves the new office"),
        ("Bob bought the house in Lisbon", "Bob sold the house in Lisbon"),
        ("Ada worked in the city of Rome", "Ada was born in the city of Rome"),
        ("The user dislikes dark mode in the editor", "The user likes dark mode in the editor"),
        ("The staging key of the API is kept in the vault", "The key of the API is kept in the vault"),
        ("The report is due at the end of the month", "The report is due at the start of the month"),
        ("The cache is written after the commit", "The cache is written before the commit"),
        ("The office is in the old harbour", "The office was in the old harbour"),
        ("Ann worked at the harbour office", "Ann works at the harbour office"),
        ("We used Postgres for the archive", "We use Postgres for the archive"),
        ("Bob manages Ann", "Ann manages Bob"),
        ("The lexer calls the parser for each token", "The parser calls the lexer for each token"),
        ("Deploys may happen on Fridays", "Deploys happen on Fridays"),
        ("Only Ann reviews the release notes", "Ann reviews the release notes"),
        ("The letter came from the harbour office", "The letter came to the harbour office"),
    ],
)
def test_near_texts_with_other_facts_are_kept_apart(new: str, old: str) -> None:
    """W3: another name, number, negation, word, time or condition is not a repetition."""
    assert not says_the_same(new, old)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The villain is called Malachar!", "The villain is called Malachar"),
        ("deploys happen on Fridays", "Deploys always happen on Fridays"),
        ("Our staging server runs Debian 12", "The staging server runs Debian 12"),
        ("The deployment happens on a Friday", "Deployments happen on Fridays"),
        ("Actually deploys happen on Fridays now", "Deploys happen on Fridays"),
        ("Tests run with pytest", "Tests are run with pytest in this project"),
        ("Alice works for Globex", "Alice works at Globex"),
    ],
)
def test_restatements_say_the_same(new: str, old: str) -> None:
    """W3: a restatement with the same names, numbers and polarity adds nothing."""
    assert says_the_same(new, old)


@pytest.mark.parametrize(
    ("text", "about", "given"),
    [
        ("Ada lives in Rome.", "ada live", ""),
        ("Ada has moved to Berlin", "ada live", ""),
        ("The capital of France is not Lyon", "the capital of france is", ""),
        ("Vexis is the villain of the story", "vexi is", "is the villain of the story"),
        ("Ada doesn't like tea", "ada like tea", ""),
        ("Ada likes tea", "ada like tea", ""),
        ("Hello", "hello", ""),
        ("…", "", ""),
    ],
)
def test_what_a_statement_is_about(text: str, about: str, given: str) -> None:
    """W4: what two contradicting statements have in common, however they are worded."""
    assert (subject(text), role(text)) == (about, given)


WORDS = (
    "ada bob the villain capital of is was not no never lives live in moved to likes works at my called costs".split()
)


@given_any(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=7), min_size=2, max_size=2))
def test_nothing_contradicts_what_is_about_something_else(texts: list[list[str]]) -> None:
    """W4: a contradiction is always found by subject or by role, so that no other entry need be looked at."""
    new, old = (" ".join(words) for words in texts)
    if contradicts(new, old):
        assert subject(new) == subject(old) or role(new) == role(old) != ""
