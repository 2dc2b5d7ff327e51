"""Label texts by examples: a linear classifier on an embedder's vectors, fitted to the examples in wordings.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from lukasa.model.arrays import np
from lukasa.model.errors import EmbedderError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A label of the classifier holds if it is this far above the label of ordinary text, and above `LEAST` itself. Chosen
# on the examples that tests/unit/test_intents.py holds apart (docs/decisions/0037-wordings-by-example.md).
MARGIN, LEAST = 0.2, -0.45
RIDGE = 0.3


class TextEmbedder(Protocol):
    """The part of an embedder that the classifier needs. Its model has a `floor` if thresholds apply to it."""

    @property
    def model(self) -> Any: ...

    def embed_memories(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


class _Linear(NamedTuple):
    """A linear classifier on an embedder's vectors."""

    labels: tuple[str, ...]
    mean: NDArray[np.float32]
    scale: float
    weights: NDArray[np.float32]


@cache
def examples() -> dict[str, dict[str, list[str]]]:
    """Return the labelled examples, by group and label."""
    return tomllib.loads((Path(__file__).with_name("wordings.toml")).read_text("utf-8"))


_FITTED: dict[tuple[str, str], _Linear] = {}  # by the key of the embedder's model, and group


def _fitted(embedder: TextEmbedder, group: str) -> _Linear:
    """Return the classifier of a group: a ridge regression from the vectors of the examples to their labels."""
    key = (str(embedder.model.key), group)
    if key not in _FITTED:
        _FITTED[key] = _fit(embedder, group)
    return _FITTED[key]


def _fit(embedder: TextEmbedder, group: str) -> _Linear:
    labelled = [(label, text) for label, texts in examples()[group].items() for text in texts]
    labels = tuple(examples()[group])
    vectors = embedder.embed_memories([text for _, text in labelled]).astype(np.float64)
    mean = vectors.mean(axis=0)
    scale = float(np.linalg.norm(vectors - mean, axis=1).mean())
    rows = np.hstack([(vectors - mean) / scale, np.ones((len(vectors), 1))])
    wanted = np.array([[1.0 if name == label else -1.0 for name in labels] for label, _ in labelled])
    penalty = np.diag([RIDGE] * vectors.shape[1] + [RIDGE / 100])
    return _Linear(labels, mean, scale, np.linalg.solve(rows.T @ rows + penalty, rows.T @ wanted))


def label(group: str, text: str, embedder: TextEmbedder | None, ordinary: str) -> str:
    """Return the label of a text by the examples, or the ordinary label if no other is clear.

    An embedder whose floor nobody has measured is not asked: the thresholds say nothing about it.
    """
    if embedder is None or not embedder.model.floor:
        return ordinary
    try:
        fitted = _fitted(embedder, group)
        vector = (embedder.embed_memories([text])[0] - fitted.mean) / fitted.scale
    except EmbedderError:
        return ordinary
    scores = dict(zip(fitted.labels, (np.append(vector, 1.0) @ fitted.weights).tolist(), strict=True))
    best = max(scores, key=lambda name: scores[name])
    clear = scores[best] >= LEAST and scores[best] - scores[ordinary] >= MARGIN
    return best if clear else ordinary
