"""Fakes that behave: small, deterministic stand-ins for what a port reaches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

import numpy as np

from lukasa.model.errors import EmbedderError
from lukasa.ports import EmbeddingModel, Vector

_WORD = re.compile(r"\w+")
_GRAM = 3
_GRAMS_WEIGHT = 0.5  # of a word's own weight, so that inflections are near and different words are not


class FakeEmbedder:
    """Hashed words and character trigrams, so that similar text has similar vectors.

    `synonyms` maps a word to the concept it stands for, which gives tests recall by meaning. Set `fail` to have
    every call raise, as a broken model does.
    """

    def __init__(self, dimensions: int = 64, name: str = "fake", synonyms: Mapping[str, str] | None = None) -> None:
        self.fail = False
        self._synonyms = {word.lower(): concept.lower() for word, concept in (synonyms or {}).items()}
        concepts = repr(sorted(self._synonyms.items())).encode()
        self._model = EmbeddingModel(name, dimensions, blake2b(concepts, digest_size=32).hexdigest())

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    def embed_memories(self, texts: Sequence[str]) -> Vector:
        if self.fail:
            raise EmbedderError("the fake embedder was told to fail")
        vectors = np.zeros((len(texts), self._model.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._embed(text)
        return vectors

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self.embed_memories([text])[0]
        return vector

    def _embed(self, text: str) -> Vector:
        vector = np.zeros(self._model.dimensions, dtype=np.float32)
        for feature, weight in self._features(text):
            place, sign = self._place(feature)
            vector[place] += sign * weight
        if not vector.any():  # no words, or features that cancelled out: still a direction of its own
            vector[self._place(f"text:{text}")[0]] = 1.0
        unit: Vector = vector / np.linalg.norm(vector)
        return unit

    def _features(self, text: str) -> Iterator[tuple[str, float]]:
        for word in _WORD.findall(text.lower()):
            concept = self._synonyms.get(word, word)
            yield f"word:{concept}", 1.0
            padded = f"^{concept}$"
            grams = [padded[i : i + _GRAM] for i in range(len(padded) - _GRAM + 1)]
            for gram in grams:
                yield f"gram:{gram}", _GRAMS_WEIGHT / len(grams) ** 0.5

    def _place(self, feature: str) -> tuple[int, float]:
        number = int.from_bytes(blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest())
        return (number >> 1) % self._model.dimensions, 1.0 if number & 1 else -1.0
