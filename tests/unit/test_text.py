"""Folding, terms and hashing: what two texts have in common."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.model.snowball import english
from lukasa.model.text import (
    content_hash,
    content_key,
    escape_controls,
    estimate_tokens,
    fold,
    has_hidden_characters,
    terms,
)


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("Elarindë rode north", "elarinde"),
        ("the MULTI-AGENT setup", "multi-agent"),
        ("12 GB/s of bandwidth", "GB/s"),
        ("don't ship on Friday", "don’t"),
        ("東京タワーに行きました", "東京"),
        ("東京タワーに行きました", "東"),
        ("ผู้ใช้ชอบกาแฟ", "กาแฟ"),
        ("हिन्दी में लिखो", "हिन्दी"),
        ("Ｆｕｌｌ ｗｉｄｔｈ", "full width"),
        ("max_retry_count is 3", "retry"),
        ("running the tests", "run test"),
    ],
)
def test_terms_meet(stored: str, asked: str) -> None:
    """B14: case, accents, width, punctuation and scripts without spaces do not keep a word from being found."""
    assert set(terms(asked)) <= set(terms(stored))


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_text_folds_as_it_does_beside_accents(text: str) -> None:
    """B14: the short way for plain text ends where the long way does."""
    assert fold(f"{text} é") == f"{fold(text)} e".strip()


_SYLLABLES = st.sampled_from(
    """ba ke li mo ti da gi y ex wa ow past paste inter gener howe tion al iz er ment ate ic ous ness ing ed ly ent able
    ance e l ll s i""".split()
)


@given(st.lists(_SYLLABLES, min_size=1, max_size=5).map("".join).filter(lambda word: len(terms(word)) == 1))
def test_words_are_stemmed_as_the_stemmer_does(word: str) -> None:
    assert terms(word) == [english().stemWord(word)]


def test_short_words_in_e_are_stemmed_as_the_stemmer_does() -> None:
    """Whether an e falls is told by the few letters before it, so all of these are tried."""
    words = ["".join(letters) + "e" for size in (2, 3) for letters in product("aeiouywxst", repeat=size)]
    assert [terms(f"{word} zzz")[0] for word in words] == [english().stemWord(word) for word in words]


def test_voicing_marks_are_not_accents() -> None:
    """B14: marks that change the word are kept, in kana as in Devanagari."""
    assert terms("が") != terms("か")


def test_a_text_of_stop_words_keeps_them() -> None:
    """R1: a text made of stop words alone can still be found by them."""
    assert terms("To be or not to be") == ["to", "be", "or", "not", "to", "be"]


def test_content_key_ignores_case_spacing_and_closing_marks() -> None:
    """W3: without embeddings, the same words in the same order are the same text."""
    assert content_key("The sky is  blue.") == content_key("the sky is blue")


def test_content_key_keeps_accents_and_digits_apart() -> None:
    """W3: texts that mean different things never share a key."""
    assert len({content_key(t) for t in ("x²", "x2", "résumé", "resume", "か", "が")}) == 6


def test_content_hash_sees_one_character() -> None:
    """X2: the stored hash changes with any change of the text."""
    assert content_hash("The sky is blue") != content_hash("The sky is bluE")


@given(st.text())
def test_any_text_can_be_folded_and_split(text: str) -> None:
    """R1, T54: no text makes the tokenizer fail, and every term is free of spaces."""
    assert all(term and not term.isspace() and " " not in term for term in terms(text))


@pytest.mark.parametrize("text", ["a\x1b[31mred", "a\u202eb", "a\U000e0041", "a\u2028b", "zero\u200bwidth"])
def test_hidden_characters_are_seen_and_escaped(text: str) -> None:
    """C3: what a reader would not see is recognised, and shown as an escape."""
    assert has_hidden_characters(text)
    assert not has_hidden_characters(escape_controls(text))


def test_token_estimates_count_scripts() -> None:
    """C2: a character outside ASCII counts as a token, four ASCII characters as one."""
    assert (estimate_tokens("abcdefgh"), estimate_tokens("東京")) == (2, 2)
