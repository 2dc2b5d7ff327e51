"""Two rows in the space of one: their products are told from each other, whatever the rows and the question are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lukasa.index.ann import Floats, paired_columns


def spread(rows: int, width: int, seed: int, tail: float, most: float = 9.0) -> Floats:
    """A column for each row, with numbers that matter less and less; some rows are longer than the others."""
    dice = np.random.default_rng(seed)
    numbers = dice.standard_normal((width, rows)) * np.linspace(1, tail, width)[:, None]
    numbers[:, :: max(1, rows // 3)] *= most
    return numbers.astype(np.float32)


@settings(deadline=None)
@given(
    rows=st.integers(1, 90),
    width=st.integers(1, 96),
    seed=st.integers(0, 2**32 - 1),
    tail=st.floats(0.01, 1),
    size=st.sampled_from([1e-20, 1e-3, 1.0, 1e4]),
)
def test_products_are_those_of_each_row_alone(rows: int, width: int, seed: int, tail: float, size: float) -> None:
    """R1: in whole numbers, to the last of them; also of a part that begins or ends inside a pair."""
    columns = spread(rows, width, seed, tail)
    question = spread(1, width, seed + 1, tail)[:, 0] * np.float32(size)
    both = paired_columns(columns.copy())
    asked, _ = both.scaled(question)
    whole = np.rint(columns / np.float32(both.step)).astype(np.float64)
    exact = asked.astype(np.float64) @ whole
    assert np.array_equal(both.products(asked), exact)
    for start in range(0, rows, 7):
        for end in (start + 1, min(rows, start + 4), rows):
            assert np.array_equal(both.products(asked, start, end), exact[start:end])


@pytest.mark.parametrize("rows", [np.zeros((8, 5), dtype=np.float32), np.empty((8, 0), dtype=np.float32)])
def test_nothing_has_no_product(rows: Floats) -> None:
    both = paired_columns(rows.copy())
    asked, _ = both.scaled(np.ones(8, dtype=np.float32))
    assert not both.products(asked).any()
    assert len(both.products(asked)) == rows.shape[1]
    assert not paired_columns(np.ones((8, 5), dtype=np.float32)).scaled(np.zeros(8, dtype=np.float32))[0].any()


def test_what_is_nearest_stays_so() -> None:
    """R1: rounded products, counted for what they are worth, are off by less than a tenth of their spread."""
    columns, question = spread(4_000, 80, 3, 0.2, most=1.5), spread(1, 80, 4, 0.2)[:, 0]
    exact = question @ columns
    both = paired_columns(columns.copy())
    asked, worth = both.scaled(question)
    rounded = both.products(asked) * worth
    assert (rounded - exact).std() < 0.1 * exact.std()
    assert set(np.argsort(exact)[-10:]) <= set(np.argsort(rounded)[-40:])
