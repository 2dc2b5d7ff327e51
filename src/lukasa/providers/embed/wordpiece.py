"""Uncased BERT WordPiece: turn text into the token ids of a BERT-family model.

Text that spells a special token ("[SEP]") is ordinary text here: an entry cannot inject control tokens.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from lukasa.model.errors import ModelUnavailable

MAX_TOKENS = 512
_MAX_WORD = 100  # BERT gives up on longer words
_WORDS_CACHED = 32_768
_CHARACTERS_CACHED = 16_384

_CJK = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


class _CharacterMap(dict[int, str]):
    """A table for `str.translate` that computes each character once, and caches a bounded number."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, point: int) -> str:
        replacement = self._rule(chr(point))
        if len(self) < _CHARACTERS_CACHED:
            self[point] = replacement
        return replacement


def _clean(char: str) -> str:
    """Drop control characters, turn white space into blanks, and put blanks around each CJK character."""
    if char in "\t\n\r":
        return " "
    # Not "Cn": a character newer than this Python's tables is unknown to the model, not absent.
    if char == "\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if any(low <= ord(char) <= high for low, high in _CJK):
        return f" {char} "
    return " " if char.isspace() else char


def _split(char: str) -> str:
    """After decomposition: drop accents and case, and put blanks around each punctuation mark."""
    category = unicodedata.category(char)
    if category == "Mn":
        return ""
    ascii_symbol = char.isascii() and char.isprintable() and not char.isalnum() and char != " "
    return f" {char} " if ascii_symbol or category.startswith("P") else char.lower()


_CLEAN = _CharacterMap(_clean)
_SPLIT = _CharacterMap(_split)


def words(text: str) -> list[str]:
    """Split a text as BERT's basic tokenizer does: lower-case words without accents; punctuation and CJK apart."""
    # Lower-case one character at a time, as the models' own tokenizer does: str.lower() treats a final sigma specially.
    return unicodedata.normalize("NFD", text.translate(_CLEAN)).translate(_SPLIT).split()


class WordPiece:
    """Greedy longest-match tokenizer over one vocabulary; safe to share between threads."""

    def __init__(self, vocabulary: Sequence[str], *, max_tokens: int = MAX_TOKENS) -> None:
        self._ids = {token: number for number, token in enumerate(vocabulary)}
        missing = [token for token in ("[CLS]", "[SEP]", "[UNK]", "[PAD]") if token not in self._ids]
        if missing:
            raise ModelUnavailable(
                f"the vocabulary has no {', '.join(missing)}", fix="use the vocab.txt of an uncased BERT model"
            )
        self.pad = self._ids["[PAD]"]
        self._cls, self._sep, self._unknown = (self._ids[t] for t in ("[CLS]", "[SEP]", "[UNK]"))
        self._room = max_tokens - 2
        self._longest = max(map(len, self._ids))
        self._pieces = lru_cache(maxsize=_WORDS_CACHED)(self._match)

    @classmethod
    def load(cls, path: Path, *, max_tokens: int = MAX_TOKENS) -> WordPiece:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelUnavailable(f"cannot read the vocabulary {path}", fix="run `lukasa model pull`") from error
        # Not splitlines(): a token may itself be one of Unicode's line separators.
        return cls(text.removesuffix("\n").split("\n"), max_tokens=max_tokens)

    def encode(self, text: str) -> list[int]:
        """Return the token ids between [CLS] and [SEP], cut to the model's longest input."""
        ids = [self._cls]
        for word in words(text):
            ids.extend(self._pieces(word) if len(word) <= _MAX_WORD else (self._unknown,))
            if len(ids) > self._room:
                break
        return [*ids[: self._room + 1], self._sep]

    def _match(self, word: str) -> tuple[int, ...]:
        pieces: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                piece = self._ids.get(mark + word[start:end])
                if piece is not None:
                    break
            else:
                return (self._unknown,)
            pieces.append(piece)
            start = end
        return tuple(pieces)
