"""Sketches find what comparing everything with everything finds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from mnemon.adapters.store.sqlite.sketches import Close, Loaded, Sketches
from mnemon.ports.embedder import Vector


def clustered(count: int, noise: float, seed: int, dimensions: int = 96) -> Vector:
    """Unit vectors around a few centres: some pairs close, most not."""
    centres = np.random.default_rng(1).standard_normal((20, dimensions), dtype=np.float32)
    rng = np.random.default_rng(seed)
    vectors = centres[rng.integers(0, 20, count)] + noise * rng.standard_normal((count, dimensions), dtype=np.float32)
    unit: Vector = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


class Held:
    """A room with these vectors, of which the entry has ten times the seq; it counts what was read to be sketched."""

    place = (1, 1)

    def __init__(self, matrix: Vector, first: int = 1, removals: int = 0) -> None:
        self.all = Loaded(seqs := np.arange(first, first + len(matrix)), seqs * 10, matrix)
        self.removals = removals
        self.sketched = 0

    def _only(self, chosen: NDArray[np.bool_]) -> Loaded:
        return Loaded(self.all.seqs[chosen], self.all.entries[chosen], self.all.matrix[chosen])

    def since(self, last: int) -> Loaded | None:
        if last and last not in self.all.seqs:
            return None
        come = self._only(self.all.seqs > last)
        self.sketched += len(come.seqs)
        return come

    def present(self) -> NDArray[np.int64]:
        return self.all.seqs

    def whole(self, without: NDArray[np.int64]) -> Iterator[Loaded]:
        those = self._only(~np.isin(self.all.seqs, without))
        self.sketched += len(those.seqs)
        yield those

    def of(self, seqs: NDArray[np.int64]) -> Loaded:
        return self._only(np.isin(self.all.seqs, seqs))


def pairs(found: list[Close] | None, first: int = 1) -> set[tuple[int, int]]:
    """Numbers of queries and of rows."""
    assert found is not None
    return {(pair.query, pair.entry // 10 - first) for pair in found}


@pytest.mark.parametrize("noise", [0.3, 0.45, 0.7])
@pytest.mark.parametrize("floor", [0.75, 0.85, 0.95])
def test_what_is_close_is_found(noise: float, floor: float) -> None:
    rows, queries = clustered(900, noise, 2), clustered(30, noise, 3)
    found = Sketches().close(Held(rows), queries, floor)
    cosines = queries @ rows.T
    expected = {(int(q), int(r)) for q, r in zip(*np.nonzero(cosines >= floor), strict=True)}
    assert found is None or pairs(found) == expected
    for pair in found or ():
        assert pair.cosine == pytest.approx(cosines[pair.query, pair.entry // 10 - 1], abs=1e-5)


@pytest.mark.parametrize("noise", [0.45, 0.7])
@pytest.mark.parametrize("floor", [0.85, 0.95])
def test_one_text_alone_finds_the_same(noise: float, floor: float) -> None:
    """W3: who puts one text after the other is told what a batch would be told."""
    room, queries = Held(clustered(900, noise, 2)), clustered(30, noise, 3)
    together = Sketches().close(room, queries, floor)
    for number, query in enumerate(queries):
        alone = Sketches().close(room, query[None], floor)
        if together is not None and alone is not None:
            assert pairs(alone) == {(0, row) for asked, row in pairs(together) if asked == number}


def test_rows_that_came_later_are_found() -> None:
    """What was sketched before is kept, and an earlier state of the room has what it had."""
    sketches, rows = Sketches(), clustered(300, 0.4, 4)
    for size, sketched in ((100, 100), (101, 1), (220, 119), (300, 80), (150, 0), (300, 150)):
        room = Held(rows[:size])
        assert (0, size - 1) in pairs(sketches.close(room, rows[size - 1 : size], 0.99))
        assert room.sketched == sketched


def test_rows_that_went_are_not_found() -> None:
    """Those that stay are not sketched again."""
    sketches, rows = Sketches(), clustered(300, 0.4, 4)
    assert (0, 50) in pairs(sketches.close(Held(rows), rows[50:51], 0.99))
    left = Held(rows[100:], first=101, removals=1)
    assert not pairs(sketches.close(left, rows[50:51], 0.9999), first=101)
    assert (0, 50) in pairs(sketches.close(left, rows[150:151], 0.99), first=101)
    assert left.sketched == 0


@pytest.mark.parametrize("left", [1, 5, 22, 24, 30])
def test_rows_come_again_after_some_went(left: int) -> None:
    """W3: however few are left, those that come are put behind them."""
    sketches, rows = Sketches(), clustered(60, 0.4, 4)
    sketches.close(Held(rows[:30]), rows[:1], 0.99)
    first = 31 - left
    for come in range(4):
        room = Held(rows[first - 1 : 30 + come], first, removals=1)
        for row in range(first - 1, 30 + come):
            found = pairs(sketches.close(room, rows[row : row + 1], 0.999), first=1)
            assert found == {(0, other) for other in range(first - 1, 30 + come) if rows[row] @ rows[other] >= 0.999}


def test_a_pair_whose_vector_is_gone_is_left_out() -> None:
    """What seems close is read before it is told: a vector that is not there any more is nobody's neighbour."""
    rows = clustered(300, 0.4, 4)

    class Emptied(Held):
        def of(self, seqs: NDArray[np.int64]) -> Loaded:
            return self._only(np.zeros(len(self.all.seqs), dtype=np.bool_))

    assert Sketches().close(Emptied(rows), rows[:1], 0.95) == []
    assert Sketches().close(Emptied(rows), rows[:20], 0.95) == []


def test_where_sketches_tell_little_they_say_so() -> None:
    rows = clustered(300, 0.01, 5)
    same = np.repeat(rows[:1], 300, axis=0)
    assert Sketches().close(Held(same), same[:9], 0.85) is None
    assert Sketches().close(Held(rows), rows[:9], 0.2) is None


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
    found = pairs(Sketches().close(Held(rows), queries, floor))
    assert len({(query, row) for query, row in found if row // around == query}) > 0.999 * len(rows)


@pytest.mark.parametrize(("common", "floor"), [(0.0, 0.99), (0.0, 0.92), (0.0, 0.8), (1.0, 0.95), (1.2, 0.97)])
def test_what_vectors_have_in_common_hides_none_of_them(common: float, floor: float) -> None:
    """W5: where most are much alike, too, exactly those that reach the floor are found."""
    rng = np.random.default_rng(9)
    rows = rng.standard_normal((3_000, 128), dtype=np.float32) + np.float32(common)
    queries = rows[:40] + 0.25 * rng.standard_normal((40, 128), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    expected = {(int(q), int(r)) for q, r in zip(*np.nonzero(queries @ rows.T >= floor), strict=True)}
    assert pairs(Sketches().close(Held(rows), queries, floor)) == expected


def test_a_vector_is_close_to_itself() -> None:
    rows = clustered(300, 0.6, 6)
    assert pairs(Sketches().close(Held(rows), rows[:20], 0.99999)) >= {(n, n) for n in range(20)}


def test_sketches_pay_from_the_eighth_text_on() -> None:
    """A process that puts one text makes none; one that goes on putting does; in a huge room lists are sooner."""
    sketches = Sketches()
    assert [sketches.worth((1, 1), 900, 1) for _ in range(9)] == [False] * 7 + [True] * 2
    assert not sketches.worth((2, 1), 900, 3)  # another place is counted by itself
    assert sketches.worth((2, 1), 900, 8)
    assert not any(sketches.worth((3, 1), 1_000_000, 1) for _ in range(9))
    assert sketches.worth((3, 1), 1_000_000, 8)


def test_longer_sketches_are_made_where_they_are_asked_for_often() -> None:
    """Where short ones tell too little, a text alone is compared otherwise, until there were enough; a batch is not."""
    rows = clustered(3_000, 0.65, 2)
    one, alone = Sketches(), [row[None] for row in rows[:9]]
    told = [one.close(Held(rows), query, 0.88) is not None for query in alone]
    assert told == [False] * 7 + [True] * 2
    together = pairs(Sketches().close(Held(rows), rows[:9], 0.88))
    last = pairs(one.close(Held(rows), alone[-1], 0.88))
    assert last == {(0, row) for query, row in together if query == 8}
