"""Train the classifier of the observer by rules, and write its weights into the package.

    python -m bench.train_observer

Logistic regression over three classes on bench/data/observer_train.txt: once on the features of the words, once with
the vectors of the default embedder. Cross-validation chooses the thresholds; it leaves out blocks of lines, because
neighbours share their wording. No line of the test set is used; its totals were known when the settings were chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import json
from numpy.typing import NDArray

from bench.observer_set import LABELS, Line, training
from lukasa.observe.classifier import SCALE, WEIGHTS, Linear, Weights, features
from lukasa.observe.rules import limit
from lukasa.providers.embed import open_embedder
from lukasa.providers.embed.cached import default_cache

Matrix = NDArray[np.float64]
PENALTY = 0.0005  # on the squares of the weights
VECTOR_SCALE = 4.0  # a unit vector's share in the sum, beside the features of the words
LEAST_LINES = 3  # in which a feature must occur
FOLDS, BLOCK = 8, 4
STEPS = 200
PRECISION = 0.97  # of the stored lines, left out of the training
FOUND = 0.9  # of the facts, stored or held


def feature_matrix(lines: Sequence[Line], names: Sequence[str]) -> Matrix:
    """Return a row for each line: 1 for each of its features."""
    columns = {name: n for n, name in enumerate(names)}
    found = np.zeros((len(lines), len(names)))
    for row, line in enumerate(lines):
        found[row, [columns[name] for name in features(line.text) if name in columns]] = 1.0
    return found


def fit(rows: Matrix, labels: NDArray[np.int64]) -> Matrix:
    """Return the weights of a fact and of a doubt against junk, by accelerated gradient descent."""
    wanted = np.eye(3)[labels][:, :2]
    direction = np.ones(rows.shape[1])
    for _ in range(30):  # power iteration: the largest curvature bounds the step
        direction = rows.T @ (rows @ direction)
        curvature = float(np.linalg.norm(direction))
        direction /= curvature
    step = 1 / (0.55 * curvature / len(rows) + PENALTY)
    weights = ahead = np.zeros((rows.shape[1], 2))
    pace = 1.0
    for _ in range(STEPS):
        slope = rows.T @ (odds(rows, ahead)[:, :2] - wanted) / len(rows) + PENALTY * ahead
        now, quicker = ahead - step * slope, (1 + (1 + 4 * pace * pace) ** 0.5) / 2
        ahead = now + (pace - 1) / quicker * (now - weights)
        weights, pace = now, quicker
    return weights


def odds(rows: Matrix, weights: Matrix) -> Matrix:
    """Return the probabilities of fact, doubt and junk."""
    scores = np.c_[rows @ weights, np.zeros(len(rows))]
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def cross_validated(rows: Matrix, labels: NDArray[np.int64]) -> Matrix:
    """Return the odds of each line by a model that has seen neither it nor its neighbours."""
    fold = np.arange(len(rows)) // BLOCK % FOLDS
    found = np.zeros((len(rows), 3))
    for n in range(FOLDS):
        found[fold == n] = odds(rows[fold == n], fit(rows[fold != n], labels[fold != n]))
    return found


def thresholds(found: Matrix, lines: Sequence[Line]) -> tuple[float, float]:
    """Return the least odds to store, for the precision wanted, and to hold, for the share of facts wanted."""
    facts = np.array([line.label == "f" for line in lines])
    limits = [limit(line.text) for line in lines]
    free = np.array([reason == "" for reason in limits])
    kept = np.array([reason is not None for reason in limits])
    store = next(t for t in np.arange(0.5, 0.999, 0.005) if facts[free & (found[:, 0] >= t)].mean() >= PRECISION)
    worth = found[:, 0] + found[:, 1]
    hold = next(t for t in np.arange(0.9, 0.05, -0.01) if (kept & (worth >= t))[facts].mean() >= FOUND)
    stored, held = free & (found[:, 0] >= store), kept & (worth >= hold)
    junk = np.array([line.label == "j" for line in lines])
    print(
        f"  store from {store:.3f}, hold from {hold:.2f}: precision {facts[stored].mean():.3f}, facts stored"
        f" {stored[facts].mean():.3f}, stored or held {(stored | held)[facts].mean():.3f}, junk held"
        f" {(held & ~stored)[junk].mean():.3f}"
    )
    return round(float(store), 3), round(float(hold), 2)


def pruned(names: Sequence[str], weights: Matrix) -> dict[str, tuple[int, int]]:
    whole = np.rint(weights * SCALE).astype(int)
    return {name: (int(f), int(d)) for name, (f, d) in zip(names, whole, strict=True) if abs(f) + abs(d) > 2}


def train() -> Weights:
    lines = training()
    labels = np.array([LABELS.index(line.label) for line in lines])
    counts = Counter(name for line in lines for name in features(line.text))
    names = sorted(name for name, count in counts.items() if count >= LEAST_LINES)
    print(f"{len(lines)} lines, {len(names)} features")
    by_words = feature_matrix(lines, names)
    embedder = open_embedder("default", default_cache())
    assert embedder is not None
    vectors: Any = embedder.embed_memories([line.text for line in lines])
    by_both = np.c_[by_words, vectors.astype(np.float64) * VECTOR_SCALE]
    models = []
    for name, rows in (("words", by_words), ("words and vectors", by_both)):
        print(name)
        store, hold = thresholds(cross_validated(rows, labels), lines)
        weights = fit(rows, labels)
        whole = np.rint(weights[len(names) :] * VECTOR_SCALE * SCALE).astype(int)
        vector = tuple((int(f), int(d)) for f, d in whole)
        models.append(Linear(pruned(names, weights[: len(names)]), store, hold, vector))
    return Weights(embedder.model.digest, *models)


def main() -> None:
    found = train()
    WEIGHTS.write_bytes(json.format(json.encode(found, order="sorted"), indent=0) + b"\n")
    print(f"{WEIGHTS.name}: {WEIGHTS.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
