"""Texts, questions and vectors from seeds alone: the same in every process, whatever store it measures.

Nothing of Lukasa is imported here, because the stores beside it run in an environment of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

DIMENSIONS = 384
WORDS = 30_000


class Table:
    """Clustered unit vectors from a seeded table, by the text's checksum: near enough to real ones, at no cost."""

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        self._centres = rng.standard_normal((512, DIMENSIONS), dtype=np.float32)
        self._noise = rng.standard_normal((65_536, DIMENSIONS), dtype=np.float32)
        self._ready: dict[str, Any] = {}

    def prepare(self, asked: Sequence[str]) -> None:
        """Have the vectors of these questions ready, so that asking for one costs a store nothing."""
        self._ready = {text: self.vectors([text]) for text in asked}

    def vectors(self, given: Sequence[str]) -> Any:
        if len(given) == 1 and given[0] in self._ready:
            return self._ready[given[0]]
        marks = np.array([crc32(text.encode()) for text in given], dtype=np.int64)
        vectors = self._centres[marks % 512] + 0.8 * self._noise[marks // 512 % 65_536]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _word(number: int) -> str:
    syllables = "ba ke li mo nu ra se ti vo zu da fe gi ho ju pa".split()
    return "".join(syllables[number >> shift & 15] for shift in (12, 8, 4, 0))


def texts(count: int, seed: int) -> list[str]:
    """Sentences of twelve words whose frequencies fall as those of a language do."""
    rng = np.random.default_rng(seed)
    words = [_word(n) for n in range(WORDS)]
    picks = np.minimum(rng.zipf(1.25, size=(count, 12)) - 1 + rng.integers(0, 40, size=(count, 12)), WORDS - 1)
    return [" ".join([words[n] for n in row]) + f" {number}" for number, row in enumerate(picks.tolist())]


def questions(count: int, stored: Sequence[str], seed: int) -> list[str]:
    """Four words of an entry that is there, common or rare as they come, and one of another."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, len(stored), size=(count, 2)).tolist()
    return [f"what about {' '.join(stored[a].split()[4:8])} and {stored[b].split()[2]}" for a, b in places]
