"""The tokenizer: BERT's uncased WordPiece, character by character."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lukasa.model.errors import ModelUnavailable
from lukasa.providers.embed.cached import default_cache
from lukasa.providers.embed.pull import pull
from lukasa.providers.embed.wordpiece import WordPiece, words

VOCABULARY = (
    "[PAD] [UNK] [CLS] [SEP] the un ##want ##aff ##able ##ed want wanted runn ##ing , ? [ ] sep cafe a ##a 京 ##s"
).split()


@pytest.fixture
def wordpiece() -> WordPiece:
    return WordPiece(VOCABULARY)


@pytest.fixture(scope="session")
def arctic() -> WordPiece:
    """The real vocabulary of the default model."""
    return WordPiece.load(pull(default_cache(), progress=lambda _: None) / "vocab.txt")


def pieces(wordpiece: WordPiece, text: str) -> list[str]:
    return [VOCABULARY[number] for number in wordpiece.encode(text)][1:-1]


def test_lower_case() -> None:
    """Case is dropped."""
    assert words("Hello WORLD") == ["hello", "world"]


def test_accents() -> None:
    """Accents are dropped, composed or not."""
    assert words("Café cafe\u0301 ÅNGSTRÖM") == ["cafe", "cafe", "angstrom"]


def test_punctuation_stands_alone() -> None:
    """Every punctuation mark is a word, ASCII symbols and Unicode quotes included."""
    assert words("don't “go” $5") == ["don", "'", "t", "“", "go", "”", "$", "5"]


def test_punctuation_after_decomposition() -> None:
    """A mark that only becomes punctuation by decomposition (the Greek question mark) is split as well."""
    assert words("τι\u037e") == ["τι", ";"]


def test_cjk_characters_stand_alone() -> None:
    """Each Chinese character is a word; kana and Hangul stay together."""
    assert words("我爱abc京 カナ") == ["我", "爱", "abc", "京", "カナ"]


def test_control_characters_vanish() -> None:
    """Controls, zero-width characters, NUL, the replacement character and lone surrogates leave no trace."""
    assert words("a\x00b\x07c\u200bd\u00ade\ufffdf\ud800g") == ["abcdefg"]


def test_white_space_of_every_kind_separates() -> None:
    """Tabs, line ends, no-break spaces and Unicode line separators all separate words."""
    assert words("a\tb\nc\rd\u00a0e\u2028f\u3000g") == list("abcdefg")


def test_final_sigma_is_an_ordinary_sigma() -> None:
    """Case is dropped a character at a time, as in the tokenizer the models were trained with."""
    assert words("ΟΔΟΣ") == ["οδοσ"]


def test_encode_frames_the_text(wordpiece: WordPiece) -> None:
    """Ids are positions in the vocabulary, between [CLS] and [SEP]."""
    assert wordpiece.encode("the café") == [2, VOCABULARY.index("the"), VOCABULARY.index("cafe"), 3]


def test_empty_text_is_only_the_frame(wordpiece: WordPiece) -> None:
    """A text without words is [CLS] [SEP]."""
    assert wordpiece.encode(" \n") == [2, 3]


def test_longest_piece_wins(wordpiece: WordPiece) -> None:
    """Matching is greedy from the left, with ## on every piece that continues a word."""
    assert pieces(wordpiece, "UNwantéd,running unaffable wants") == (
        "un ##want ##ed , runn ##ing un ##aff ##able want ##s".split()
    )


def test_a_rest_that_matches_nothing_makes_the_word_unknown(wordpiece: WordPiece) -> None:
    """A word is [UNK] as a whole if any part of it is."""
    assert pieces(wordpiece, "wantedxyz the") == ["[UNK]", "the"]


def test_hundred_characters_are_a_word(wordpiece: WordPiece) -> None:
    """A word of 100 characters is still cut into pieces."""
    assert pieces(wordpiece, "a" * 100) == ["a"] + ["##a"] * 99


def test_more_than_hundred_characters_are_unknown(wordpiece: WordPiece) -> None:
    """A word of 101 characters is [UNK], as in BERT."""
    assert pieces(wordpiece, "a" * 101) == ["[UNK]"]


def test_special_tokens_in_text_are_text(wordpiece: WordPiece) -> None:
    """A memory that spells [SEP] cannot end the sequence."""
    assert pieces(wordpiece, "[SEP]") == ["[", "sep", "]"]


def test_long_text_is_cut_and_still_ended(wordpiece: WordPiece) -> None:
    """Longer text keeps its first 510 tokens and its [SEP]."""
    encoded = wordpiece.encode("the " * 2000)
    assert (len(encoded), encoded[0], encoded[-1]) == (512, 2, 3)


def test_the_cut_may_fall_inside_a_word() -> None:
    """The limit counts tokens, not words."""
    small = WordPiece(VOCABULARY, max_tokens=4)
    assert pieces(small, "unwanted the") == ["un", "##want"]


@pytest.mark.parametrize("first", range(23))
def test_any_character_encodes(wordpiece: WordPiece, first: int) -> None:
    """Whatever the character, the ids are known, framed and no more than the model takes."""
    encoded = wordpiece.encode("".join(map(chr, range(first, sys.maxunicode + 1, 997))))
    assert (encoded[0], encoded[-1]) == (2, 3)
    assert len(encoded) <= 512
    assert all(0 <= number < len(VOCABULARY) for number in encoded)


def test_vocabulary_file(tmp_path: Path) -> None:
    """An id is a line number; a token may itself be a Unicode line separator."""
    (tmp_path / "vocab.txt").write_text("\n".join([*VOCABULARY[:4], "\u2028", "last", ""]), encoding="utf-8")
    assert WordPiece.load(tmp_path / "vocab.txt").encode("last") == [2, 5, 3]


def test_vocabulary_without_special_tokens() -> None:
    """A vocabulary that is not BERT's is refused, naming what it lacks."""
    with pytest.raises(ModelUnavailable, match=r"\[CLS\]"):
        WordPiece(["[PAD]", "[UNK]", "[SEP]", "word"])


@pytest.mark.parametrize("content", [None, b"\xff\xfe\xff"])
def test_unreadable_vocabulary(tmp_path: Path, content: bytes | None) -> None:
    """A vocabulary that is absent or not UTF-8 is an unavailable model, not an OSError."""
    if content is not None:
        (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(ModelUnavailable):
        WordPiece.load(tmp_path / "vocab.txt")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café naïve Ångström İstanbul straße", [7668, 15743, 17076, 15687, 9960, 2358, 27807]),
        ("我爱北京 and 日本語テスト", [1855, 100, 1781, 1755, 1998, 1864, 1876, 1950, 1713, 30233, 30240]),
        ("한국어", [1469, 30006, 30021, 29991, 30014, 30020, 29999, 30008]),
        ("👩\u200d👩\u200d👧 🙂 ☕\ufe0f", [100, 100, 100]),
        ("don't stop... $5.00", [2123, 1005, 1056, 2644, 1012, 1012, 1012, 1002, 1019, 1012, 4002]),
        ("a@b.c #tag", [1037, 1030, 1038, 1012, 1039, 1001, 6415]),
        ("Ultramicroscopic expialidocious", [11087, 7712, 7352, 26461, 4654, 19312, 21273, 10085, 6313]),
        ("a\x00b\x07c\u200bd\u00ade", [5925, 3207]),
        ("nbsp\u00a0ls\u2028nel\x85x", [1050, 5910, 2361, 1048, 2015, 11265, 2140, 2595]),
        ("ΟΔΟΣ и Русский ё", [1169, 29722, 29730, 29733, 1188, 1195, 29748, 29747, 29747, 23925, 15414, 1185]),
    ],
)
def test_as_the_model_was_trained(arctic: WordPiece, text: str, expected: list[int]) -> None:
    """On the real vocabulary the ids are those of the tokenizer the model was published with."""
    assert arctic.encode(text)[1:-1] == expected
