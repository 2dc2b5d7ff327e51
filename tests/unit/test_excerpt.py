"""The part of a long text that is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.model.text import terms
from lukasa.read.excerpt import excerpt

FILLER = "Nothing of note happened on that day. " * 40


def shown(text: str, question: str, most: int = 200) -> str:
    return excerpt(text, terms(question), most).of(text)


def test_what_is_short_enough_is_shown_whole() -> None:
    """C2: there is nothing to leave out."""
    assert shown("  Short.\n", "anything") == "  Short.\n"


def test_the_sentence_that_was_asked_for_is_shown_in_what_surrounds_it() -> None:
    """C2: from the middle of a long text, whole sentences, as they stand."""
    text = f"{FILLER}The telescope stands in the attic. It was a gift.\n\n{FILLER}"
    part = shown(text, "Where is the telescope?")
    assert "The telescope stands in the attic. It was a gift." in part
    assert len(part) <= 200
    assert part.startswith("Nothing")
    assert part.endswith("day.")


def test_words_that_stand_together_count_for_more_than_one_that_is_everywhere() -> None:
    """C2: "telescope" is in every line; where it is sold is in one."""
    text = "\n".join(
        ["The telescope was cleaned again today."] * 40 + ["The telescope was sold in Lisbon."] + ["End."] * 9
    )
    assert "sold in Lisbon" in shown(text, "Where was the telescope sold?")


def test_the_beginning_is_shown_where_nothing_that_was_asked_for_stands() -> None:
    """C2: as of what is recent, which nobody asked for."""
    text = f"First of all, hello. {FILLER}"
    assert shown(text, "submarine").startswith("First of all, hello. Nothing")
    assert excerpt(text, (), 50).start == 0


def test_the_first_of_equal_places_is_shown() -> None:
    """B7: the same question gives the same part."""
    text = f"Tea in March. {FILLER} Tea in June. {FILLER}"
    assert shown(text, "tea", 60).startswith("Tea in March.")


@pytest.mark.parametrize("text", ["x" * 5_000, "word " * 1_000, "東京" * 2_000, "a\n" * 3_000, " " * 5_000])
def test_text_without_sentences_is_cut_all_the_same(text: str) -> None:
    """W9: one endless line, one endless word, nothing but lines."""
    part = excerpt(text, terms(text)[:3], 120)
    assert 0 <= part.start <= part.end <= len(text)
    assert part.end - part.start <= 120
    assert bool(part.of(text).strip()) is bool(text.strip())


@given(st.text(max_size=400), st.lists(st.sampled_from(["tea", "lisbon", "x"])), st.integers(1, 120))
def test_a_part_is_a_part(text: str, asked: list[str], most: int) -> None:
    """C2, T56: whatever the text, what is shown stands in it and is no longer than allowed."""
    start, end = excerpt(text, asked, most)
    assert 0 <= start <= end <= len(text)
    assert end - start <= most or end - start == len(text)


@given(st.permutations(["tea", "lisbon", "attic", "rain", *["filler words here"] * 12]), st.integers(20, 120))
def test_no_other_part_holds_more(lines: list[str], most: int) -> None:
    """C2: of words that are there once each, as many as any neighbours of that length hold together."""
    text, asked = "\n".join(lines), set(terms("tea lisbon attic rain"))
    starts = [sum(len(line) + 1 for line in lines[:place]) for place in range(len(lines))]
    parts = [text[start : last + len(line)] for start in starts for last, line in zip(starts, lines, strict=True)]
    fullest = max(len(asked.intersection(terms(part))) for part in parts if 0 < len(part) <= most)
    assert len(asked.intersection(terms(excerpt(text, asked, most).of(text)))) == fullest
