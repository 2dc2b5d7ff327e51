"""Which of many vectors are close to one of several others, without multiplying them all out.

Every vector has a sketch: its image under a fixed random projection, an eighth as long. Two vectors that are close
have sketches that are, but for an error that is known well enough to allow for it. Only where sketches are close are
the vectors themselves compared, so what is found is exact; of pairs right at the floor, fewer than one in a thousand
are missed, and hardly any of those that are clearly above it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from mnemon.adapters.store.sqlite.packed import ALONE
from mnemon.model.arrays import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Floats: TypeAlias = "NDArray[np.float32]"
_Ints: TypeAlias = "NDArray[np.int64]"

WIDTH = 48
_MARGIN = 5.0  # standard errors
_TELLING = 0.4  # below this, sketches of vectors that have nothing to do with each other are called close too often
_CROWD = 64  # rows for one query, by when comparing one after the other is as cheap


_PIECE = 8_192  # rows that are sketched at a time
_STEPS = 8  # small products of which the outcome is looked at together


class Rows(Protocol):
    """Vectors of length one, packed or as they are."""

    @property
    def seqs(self) -> _Ints: ...
    def floats(self, rows: _Ints | slice) -> _Floats: ...


class Close(NamedTuple):
    """One close pair: the number of the query, the row among those asked, the cosine."""

    query: int
    row: int
    cosine: float


class _Sketch(NamedTuple):
    """The sketches of a block's rows, in their order; `seqs` says of which."""

    seqs: _Ints
    rows: _Floats


class Sketches:
    """Sketches by place, kept in step with the vectors there; of the last few places that were asked about."""

    def __init__(self, most: int = 8) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[tuple[int, ...], _Sketch] = {}

    def close(self, place: tuple[int, ...], given: Rows, queries: _Floats, floor: float) -> list[Close] | None:
        """The pairs that reach the floor; queries are of length one, as the rows are.

        None where sketches tell too little: the floor is low, or all vectors are much alike.
        """
        likely = floor - _MARGIN * (1 - min(floor, 1.0) ** 2) / WIDTH**0.5
        if likely < _TELLING:
            return None
        asked, rows = _reaching(_sketched(queries), self._of(place, given).rows, likely)
        if len(asked) > _CROWD * len(queries):
            return None
        cosines = np.clip(np.einsum("ij,ij->i", queries[asked], given.floats(rows)), -1.0, 1.0)
        kept = cosines >= floor
        return [
            Close(*pair) for pair in zip(asked[kept].tolist(), rows[kept].tolist(), cosines[kept].tolist(), strict=True)
        ]

    def _of(self, place: tuple[int, ...], given: Rows) -> _Sketch:
        with self._lock:
            known = self._kept.pop(place, None)
            size, total = 0 if known is None else len(known.seqs), len(given.seqs)
            if known is None or size > total or not np.array_equal(known.seqs, given.seqs[:size]):
                known, size = _Sketch(given.seqs[:0], np.empty((0, WIDTH), dtype=np.float32)), 0
            rows = known.rows
            for at in range(size, total, _PIECE):
                rows = _appended(rows, _sketched(given.floats(slice(at, min(total, at + _PIECE)))))
            known = _Sketch(given.seqs.copy(), rows) if size < total else known
            while len(self._kept) >= self._most:
                self._kept.pop(next(iter(self._kept)))
            self._kept[place] = known
            return known

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


def _appended(view: _Floats, rows: _Floats) -> _Floats:
    """Both as one array that has room for more behind it."""
    total = len(view) + len(rows)
    whole = view.base
    if whole is None or len(whole) < total:
        whole = np.empty((total + total // 4 + 256, WIDTH), dtype=np.float32)
        whole[: len(view)] = view
    whole[len(view) : total] = rows
    return whole[:total]


def _sketched(matrix: _Floats) -> _Floats:
    images = _product(matrix, _projection(matrix.shape[1]))
    norms = np.linalg.norm(images, axis=1, keepdims=True)
    norms[norms == 0] = 1.0
    unit: _Floats = images / norms
    return unit


_PROJECTIONS: dict[int, _Floats] = {}


def _projection(dimensions: int) -> _Floats:
    if dimensions not in _PROJECTIONS:
        drawn = np.random.default_rng(dimensions).standard_normal((dimensions, WIDTH), dtype=np.float32)
        _PROJECTIONS[dimensions] = drawn
    return _PROJECTIONS[dimensions]


def _product(a: _Floats, b: _Floats, out: _Floats | None = None) -> _Floats:
    """A product as many so small that none of them wakes another core: the waiting costs more than the work."""
    product = np.empty((len(a), b.shape[1]), dtype=np.float32) if out is None else out
    step = _step(b)
    whole = len(a) - len(a) % step
    np.matmul(a[:whole].reshape(-1, step, len(b)), b, out=product[:whole].reshape(-1, step, b.shape[1]))
    np.matmul(a[whole:], b, out=product[whole:])
    return product


def _step(b: _Floats) -> int:
    """Rows that are multiplied at a time."""
    return max(1, ALONE // max(1, b.size))


def _reaching(queries: _Floats, rows: _Floats, floor: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Numbers of queries and of rows whose product reaches the floor, looked at in pieces that stay in the cache."""
    across = np.ascontiguousarray(queries.T)
    many, count = _STEPS * _step(across), len(queries)
    out = np.empty((many, count), dtype=np.float32)
    found = [np.empty(0, dtype=np.int64)]
    for at in range(0, len(rows), many):
        piece = rows[at : at + many]
        reached = np.flatnonzero(_product(piece, across, out[: len(piece)]) >= floor)
        if len(reached):
            found.append(reached + at * count)
    row, query = np.divmod(np.concatenate(found), count)
    return query, row
