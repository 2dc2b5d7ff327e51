"""Cut text into the pieces of a SentencePiece unigram model, read from its own file."""

from __future__ import annotations

import re
import struct
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from lukasa.model.errors import ModelUnavailable
from lukasa.providers.embed.cached import PULL_FIX

UNKNOWN, BEGIN, END = 0, 1, 2
_SPACE = "\u2581"  # stands for a space, also before the first word
_LOST = 10.0  # an unknown character costs so much more than the rarest piece
_PIECE, _TEXT, _SCORE = 1, 1, 2  # numbers of the fields in the file
_CUT = re.compile(rf"{_SPACE}[^{_SPACE}]*")


class SentencePiece:
    """The vocabulary of one model: the best way to cut a text is the one with the highest sum of scores."""

    def __init__(self, pieces: list[tuple[str, float]]) -> None:
        self._numbers = {piece: number for number, (piece, _) in enumerate(pieces)}
        self._scores = [score for _, score in pieces]
        self._longest = max(map(len, self._numbers))
        self._unknown = min(self._scores) - _LOST
        self._word = lru_cache(maxsize=32_768)(self._cut)

    @classmethod
    def load(cls, path: Path) -> SentencePiece:
        try:
            pieces = list(_pieces(path.read_bytes()))
        except (OSError, IndexError, struct.error, UnicodeDecodeError) as error:
            raise ModelUnavailable(f"{path.name} cannot be read as a SentencePiece model", fix=PULL_FIX) from error
        if len(pieces) <= END:
            raise ModelUnavailable(f"{path.name} has no pieces", fix=PULL_FIX)
        return cls(pieces)

    def encode(self, text: str) -> list[int]:
        """The numbers of a text's pieces between those of its beginning and its end."""
        plain = " ".join(unicodedata.normalize("NFKC", text).split())
        marked = _SPACE + plain.replace(" ", _SPACE)
        inner = [number for word in _CUT.findall(marked) for number in self._word(word)] if plain else [UNKNOWN]
        return [BEGIN, *inner, END]

    def _cut(self, word: str) -> tuple[int, ...]:
        """The best pieces of a word: the best way to each place in it goes on from the best way to an earlier one."""
        best = [0.0, *[-1e38] * len(word)]
        came: list[tuple[int, int]] = [(0, UNKNOWN)] * (len(word) + 1)
        for start, reached in enumerate(best[:-1]):
            reached = best[start]
            known = False
            for end in range(start + 1, min(start + self._longest, len(word)) + 1):
                number = self._numbers.get(word[start:end])
                if number is None:
                    continue
                known |= end == start + 1
                if reached + self._scores[number] > best[end]:
                    best[end], came[end] = reached + self._scores[number], (start, number)
            if not known and reached + self._unknown > best[start + 1]:
                best[start + 1], came[start + 1] = reached + self._unknown, (start, UNKNOWN)
        found: list[int] = []
        place = len(word)
        while place:
            place, number = came[place]
            found.append(number)
        return tuple(reversed(found))


def _pieces(data: bytes) -> Iterator[tuple[str, float]]:
    """The pieces of a model file with their scores, in order."""
    for field, value in _fields(data):
        if field == _PIECE:
            inner = dict(_fields(value))
            if _TEXT in inner:
                score = struct.unpack("<f", inner[_SCORE])[0] if _SCORE in inner else 0.0
                yield inner[_TEXT].decode(), score


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protocol buffer message: number and bytes. Numbers as values are passed over."""
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        kind = key & 7
        if kind == 0:
            _, at = _number(data, at)
            continue
        size = 8 if kind == 1 else 4
        if kind == 2:
            size, at = _number(data, at)
        yield key >> 3, data[at : at + size]
        at += size


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and the place behind it."""
    found = shift = 0
    while True:
        byte = data[at]
        at += 1
        found |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return found, at
