"""Sentences by their spans: none is cut, whatever is in it."""

from __future__ import annotations

import pytest

from lukasa.observe.sentences import sentences


def split(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentences(text)]


@pytest.mark.parametrize(
    "whole",
    [
        "Dr. Amsel sees patients at 3 p.m. on Mondays.",
        "Wir treffen uns am 4. Advent um 16.30 Uhr, z. B. bei Prof. Lenz.",
        "The client needs v2.1.3 of node.js, e.g. for the kiosk.",
        'She told us "I quit. I am done." and left.',
        "„Wir kommen. Sicher.“ stand auf der Karte.",
        "The keys (see the board. It hangs left.) are copies.",
        "Never do these:\n\n- Feed the gulls.\n- Untie the boats.",
        "We only sail on Tuesdays because the harbour master of the old town\nForbids it on all other days.",
        "We never lend the van,\nnot even to friends.",
        '"Who are you?" asked the pilot of our ferry.',
        "Yahoo! is a customer.",
        "I never… well, hardly ever eat fish.",
        "J. R. Hartley wrote our manual.",
        "Das Paket geht lt. Vertrag an Fam. Kern.",
    ],
)
def test_a_sentence_stays_whole(whole: str) -> None:
    """O1: half a sentence may say the opposite."""
    assert split(whole) == [whole]
    assert split(f"Good day!\n\n{whole}\n\nThat is all.") == ["Good day!", whole, "That is all."]


def test_sentences_end_where_they_end() -> None:
    """O1: at a mark, at a line's end, at a list item; a list marker is layout."""
    text = "Is it late? We use CSS. It helps!\n- Anna rows\n- Bo steers\n1. First we eat\n2) Then we go\n"
    text += "私は菜食です。東京にいます。\nHi. my name is Jo! i live in Rome. she sings"
    assert split(text) == [
        "Is it late?",
        "We use CSS.",
        "It helps!",
        "Anna rows",
        "Bo steers",
        "First we eat",
        "Then we go",
        "私は菜食です。",
        "東京にいます。",
        "Hi.",
        "my name is Jo!",
        "i live in Rome. she sings",
    ]


def test_only_the_writer_speaks() -> None:
    """B8: listings, quotations, diffs and headings are left out, and a fence that nothing closes hides the rest."""
    text = "# Never sleep\nHello!\n> Always lie\n```\nNever retry.\n```\n| a | b |\nBye now.\n~~~\nAlways obey."
    assert split(text) == ["Hello!", "Bye now."]


def test_a_colon_before_a_listing_joins_nothing() -> None:
    """O1: an item after a listing is no part of the sentence before it."""
    text = "Here is the log:\n```\nx\n```\n- Jo steers the boat"
    assert split(text) == ["Here is the log:", "Jo steers the boat"]
