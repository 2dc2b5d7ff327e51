"""Sketches find what comparing everything with everything finds."""

from __future__ import annotations

import numpy as np
import pytest

from mnemon.adapters.store.sqlite.sketches import Asked, Sketches
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
    found = Sketches().close((1, 1), block(rows), Asked(queries), floor)
    cosines = queries @ rows.T
    expected = {(int(q), int(r)) for q, r in zip(*np.nonzero(cosines >= floor), strict=True)}
    assert found is None or {(pair.query, pair.row) for pair in found} == expected
    for pair in found or ():
        assert pair.cosine == pytest.approx(cosines[pair.query, pair.row], abs=1e-5)


def test_rows_that_came_later_are_found() -> None:
    """What was sketched before is kept; a row that went, or another block, is begun anew."""
    sketches, rows = Sketches(), clustered(300, 0.4, 4)
    for size in (100, 101, 220, 300, 150):
        found = sketches.close((1, 1), block(rows[:size]), Asked(rows[size - 1 : size]), 0.99)
        assert found is not None
        assert (0, size - 1) in {(pair.query, pair.row) for pair in found}
    moved = sketches.close((1, 1), block(rows[100:], first=101), Asked(rows[150:151]), 0.99)
    assert moved is not None
    assert (0, 50) in {(pair.query, pair.row) for pair in moved}


def test_where_sketches_tell_little_they_say_so() -> None:
    rows = clustered(300, 0.01, 5)
    same = np.repeat(rows[:1], 300, axis=0)
    assert Sketches().close((1, 1), block(same), Asked(same[:9]), 0.85) is None
    assert Sketches().close((1, 1), block(rows), Asked(rows[:9]), 0.2) is None


@pytest.mark.parametrize("floor", [0.8, 0.85, 0.92])
def test_of_pairs_right_at_the_floor_hardly_any_is_missed(floor: float) -> None:
    """W5: fewer than one in a thousand."""
    rng, count, around = np.random.default_rng(7), 500, 40
    queries = clustered(count, 9.0, 8, 128)
    aside = rng.standard_normal((count, around, 128), dtype=np.float32)
    aside -= np.einsum("qrd,qd->qr", aside, queries)[..., None] * queries[:, None]
    aside /= np.linalg.norm(aside, axis=2, keepdims=True)
    cosine = floor + 1e-5
    rows = (cosine * queries[:, None] + (1 - cosine**2) ** 0.5 * aside).reshape(-1, 128)
    found = Sketches().close((1, 1), block(rows), Asked(queries), floor)
    assert found is not None
    assert len({(pair.query, pair.row) for pair in found if pair.row // around == pair.query}) > 0.999 * len(rows)


@pytest.mark.parametrize(("common", "floor"), [(0.0, 0.99), (0.0, 0.92), (0.0, 0.8), (1.0, 0.95), (1.2, 0.97)])
def test_what_vectors_have_in_common_hides_none_of_them(common: float, floor: float) -> None:
    """W5: where most are much alike, too, exactly those that reach the floor are found."""
    rng = np.random.default_rng(9)
    rows = rng.standard_normal((3_000, 128), dtype=np.float32) + np.float32(common)
    queries = rows[:40] + 0.25 * rng.standard_normal((40, 128), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    found = Sketches().close((1, 1), block(rows), Asked(queries), floor)
    expected = {(int(q), int(r)) for q, r in zip(*np.nonzero(queries @ rows.T >= floor), strict=True)}
    assert found is not None
    assert {(pair.query, pair.row) for pair in found} == expected


def test_a_vector_is_close_to_itself() -> None:
    rows = clustered(300, 0.6, 6)
    found = Sketches().close((1, 1), block(rows), Asked(rows[:20]), 0.99999)
    assert {(pair.query, pair.row) for pair in found or ()} >= {(n, n) for n in range(20)}


def test_sketches_pay_from_the_eighth_text_on() -> None:
    """A process that puts one text makes none; one that goes on putting does; in a huge room lists are sooner."""
    sketches = Sketches()
    assert [sketches.worth((1, 1), 900, 1) for _ in range(9)] == [False] * 7 + [True] * 2
    assert not sketches.worth((2, 1), 900, 3)  # another place is counted by itself
    assert sketches.worth((2, 1), 900, 8)
    assert not any(sketches.worth((3, 1), 1_000_000, 1) for _ in range(9))
    assert sketches.worth((3, 1), 1_000_000, 8)
