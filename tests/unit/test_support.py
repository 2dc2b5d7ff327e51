"""A fact must be in its quotation: in words, numbers, names, negation and certainty (B4)."""

from __future__ import annotations

import pytest

from lukasa.observe.support import support

SAID = {
    "I keep two goats in Aveiro.": ["The user keeps two goats in Aveiro.", "I keep two goats"],
    "No, actually the kiln reaches 1240 degrees, not 1180.": ["The kiln reaches 1240 degrees."],
    "Never fire the kiln on Sundays.": ["Never fire the kiln on Sundays."],
    "Tomás pays Ines for the clay.": ["Tomás pays Ines for the clay"],
    "我们用蓝色的釉。": ["我们用蓝色的釉。"],
}
TWISTED = [
    ("The user keeps goats and hens", "I keep two goats in Aveiro.", "1 word of the fact"),
    ("The user keeps three goats", "I keep two goats in Aveiro.", "1 word of the fact"),
    ("The user keeps two goats", "Rita keeps two goats.", "1 word of the fact"),
    ("The kiln reaches 12.40 degrees", "The kiln reaches 1240 degrees.", "not in its quotation"),
    ("The kiln reaches 1180 degrees", "The kiln reaches 1240 degrees, not 1180.", "denies"),
    ("Fire the kiln on Sundays", "Never fire the kiln on Sundays.", "denies"),
    ("The kiln is not shared", "The kiln is shared.", "denies"),
    ("Ines pays Tomás for the clay", "Tomás pays Ines for the clay.", "another order"),
    ("We sell the kiln", "Perhaps we sell the kiln.", "doubt"),
    ("The kiln is shared", "Is the kiln shared?", "a question"),
]


@pytest.mark.parametrize(("message", "fact"), [(said, fact) for said, facts in SAID.items() for fact in facts])
def test_a_fact_in_the_words_of_its_quotation_passes(message: str, fact: str) -> None:
    """B4: another person of the verb, and "the user" for "I", are the same words."""
    assert support(fact, message, 0, len(message)).reason == ""


@pytest.mark.parametrize(("fact", "message", "reason"), TWISTED)
def test_a_twisted_fact_does_not(fact: str, message: str, reason: str) -> None:
    """B4: each with the reason."""
    assert reason in support(fact, message, 0, len(message)).reason


def test_a_quotation_cut_out_of_its_sentence_does_not_lose_the_negation() -> None:
    """B4: the words around the quotation count, and those of other sentences do not."""
    message = "That is no trouble. Never fire the kiln on Sundays. Nobody minds."
    start = message.index("fire")
    assert "denies" in support("Fire the kiln", message, start, start + len("fire the kiln")).reason
    shared = "Nobody minds. The kiln is shared. Never mind."
    start = shared.index("The kiln")
    assert support("The kiln is shared", shared, start, start + len("The kiln is shared")).reason == ""
