"""Sketches find what comparing everything with everything finds."""

from __future__ import annotations

import numpy as np
import pytest

from mnemon.adapters.store.sqlite.sketches import Sketches
from mnemon.adapters.store.sqlite.vectors import Block
from mnemon.ports.embedder import Vector


def clustered(count: int, noise: float, seed: int, dimensions: int = 96) -> Vector:
    """Unit vectors around a few centres: some pairs close, most not."""
    centres = np.random.default_rng(1).standard_normal((20, dimensions), dtype=np.float32)
    rng = np.random.default_rng(seed)
    vectors = centres[rng.integers(0, 20, count)] + noise * rng.standard_normal((count, dimensions), dtype=np.float32)
    unit: Vector = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def block(matrix: Vector, first: int = 1) -> Block:
    seqs = np.arange(first, first + len(matrix))
    return Block(seqs, seqs * 10, matrix.T)


@pytest.mark.parametrize("noise", [0.3, 0.45, 0.7])
@pytest.mark.parametrize("floor", [0.75, 0.85, 0.95])
def test_what_is_close_is_found(noise: float, floor: float) -> None:
    rows, queries = clustered(900, noise, 2), clustered(30, noise, 3)
    found = Sketches().close((1, 1), block(rows), queries, floor)
    cosines = queries @ rows.T
    expected = {(int(q), int(r)) for q, r in zip(*np.nonzero(cosines >= floor), strict=True)}
    assert found is None or {(pair.query, pair.row) for pair in found} == expected
    for pair in found or ():
        assert pair.cosine == pytest.approx(cosines[pair.query, pair.row], abs=1e-5)


def test_rows_that_came_later_are_found() -> None:
    """What was sketched before is kept; a row that went, or another block, is begun anew."""
    sketches, rows = Sketches(), clustered(300, 0.4, 4)
    for size in (100, 101, 220, 300, 150):
        found = sketches.close((1, 1), block(rows[:size]), rows[size - 1 : size], 0.99)
        assert found is not None
        assert (0, size - 1) in {(pair.query, pair.row) for pair in found}
    moved = sketches.close((1, 1), block(rows[100:], first=101), rows[150:151], 0.99)
    assert moved is not None
    assert (0, 50) in {(pair.query, pair.row) for pair in moved}


def test_where_sketches_tell_little_they_say_so() -> None:
    rows = clustered(300, 0.01, 5)
    same = np.repeat(rows[:1], 300, axis=0)
    assert Sketches().close((1, 1), block(same), same[:9], 0.85) is None
    assert Sketches().close((1, 1), block(rows), rows[:9], 0.2) is None
