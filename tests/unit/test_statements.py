"""Contradiction by rules."""

from __future__ import annotations

import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st

from lukasa.model.statements import compare, replaces, role, says_the_same, subject
from lukasa.model.values import Relation


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
        ("The user prefers light mode now", "The user prefers dark mode"),
        ("The deadline is now March 3", "The deadline is March 1"),
        ("Bob is the CTO of Acme", "Bob is the CEO of Acme"),
        ("The API server listens on port 9000", "The API server listens on port 8080"),
        ("These days the port is 9000", "The port is 8080"),
        ("The guild of Rope Makers is led by Ines", "The guild of Rope Makers is led by Omar"),
        ("Wir treffen uns jetzt am Dienstag", "Wir treffen uns am Montag"),
        ("Bob is a citizen of France", "Bob is a citizen of Spain"),
        ("Bob is a citizen of South Korea", "Bob is a citizen of South Africa"),
    ],
)
def test_one_thing_with_two_values(new: str, old: str) -> None:
    """W4: two numbers, two names in one place, a negation or a word of change; and they are no duplicates."""
    assert replaces(new, old)
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
    """W4: by words alone, what may have many values keeps them all."""
    assert not replaces(new, old)


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
        ("The capital of France is not Lyon", "capital of france is", ""),
        ("Vexis is the villain of the story", "vexi is", "is the villain of the story"),
        ("Ada doesn't like tea", "ada like", ""),
        ("Ada likes tea", "ada like", ""),
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
def test_nothing_replaces_what_is_about_something_else(texts: list[list[str]]) -> None:
    """W4: a contradiction is always found by subject or by role, so that no other entry need be looked at."""
    new, old = (" ".join(words) for words in texts)
    if replaces(new, old):
        assert subject(new) == subject(old) or role(new) == role(old) != ""


@pytest.mark.parametrize(
    ("new", "old", "cosine", "relation"),
    [
        ("The bakery opens at nine these days", "The bakery opens at seven", 0.93, Relation.UPDATE),
        ("Our offices are in Graz", "Our offices are in Linz", 0.91, Relation.UPDATE),
        ("We ride bikes to work", "We ride trams to work", 0.92, Relation.CLOSE),
        ("I play the cello", "I play the drums", 0.92, Relation.CLOSE),
        ("I play the cello", "I play the drums", 0.86, None),
        ("Summaries are brief", "Write long summaries", 0.96, Relation.UPDATE),
        ("The oven is for bread", "The freezer is for fish", 0.94, None),
        ("The fee for the course is 90 euros", "The fee for the exam is 40 euros", 0.96, None),
        ("Gate 4 is for trains", "Gate 5 is for trams", 0.95, None),
        ("Mia is my cousin", "Leo is my cousin", 0.94, None),
        ("The bus to Rome costs 9 euros", "The bus to Pisa costs 9 euros", 0.95, None),
        ("In the morning the baker bakes rye", "The baker bakes rye in the morning", 0.97, Relation.SAME),
        ("Rye is what the baker bakes at dawn", "The baker bakes rye at dawn", 0.97, Relation.SAME),
        ("The lexer calls the parser", "The parser calls the lexer", 0.99, None),
        ("The mill runs on water and wind", "The mill runs on water", 0.97, None),
        ("我住在柏林", "我喜欢猫", 0.99, None),
    ],
)
def test_how_near_statements_relate(new: str, old: str, cosine: float, relation: Relation | None) -> None:
    """W3, W4: a vector says that two statements are near; the words in which they differ say the rest."""
    found = compare(new, old, cosine, 0.85)
    assert (found.relation if found else None) is relation
