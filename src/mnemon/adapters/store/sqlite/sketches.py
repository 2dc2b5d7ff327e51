"""Which of many vectors are close to one of several others, without multiplying them all out.

Every vector has a sketch: its image under a fixed random projection, a sixteenth as long. Between two images lies the
square of the vectors' distance, but for a factor of which the spread is known (chi-squared, whatever the vectors are).
Only where images are close, with that allowed for, are the vectors themselves compared. So what is found is exact; of
pairs right at the floor one in five thousand is missed, and hardly any of those that are clearly above it. Where too
many images are close, because vectors are much alike or the floor is low, sketches of twice the length are looked at.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from mnemon.adapters.store.sqlite.packed import ALONE, USUAL, along
from mnemon.model.arrays import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Floats: TypeAlias = "NDArray[np.float32]"
_Ints: TypeAlias = "NDArray[np.int64]"


class _Look(NamedTuple):
    """Numbers of a sketch, by how much the square of a distance may seem larger than it is, and how large it may be:
    beyond that, vectors that have nothing to do with each other are called close too often."""

    width: int
    allowed: float  # by chi-squared with two degrees fewer than numbers: one in five thousand is beyond
    farthest: float


_LOOKS = (_Look(24, 2.43, 0.55), _Look(48, 1.91, 1.0))
NEARLY = 1e-5  # by how much a distance may be wrong because numbers are
_CROWD = 64  # rows for one query, by when comparing one after the other is as cheap
_PIECE = 8_192  # rows that are sketched at a time
_STEPS = 16  # small products of which the outcome is looked at together
_MANY = 8  # queries, at once or one after the other, for which sketches of a whole room are worth making


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


class Asked:
    """Queries of length one. Their sketches are made once, for however many blocks of rows they are put to."""

    def __init__(self, queries: _Floats) -> None:
        self.queries = queries
        self._sketches: dict[int, _Floats] = {}

    def within(self, width: int, far: float) -> _Floats:
        """For each query a row whose product with a sketch is at least 0 if the square of their distance seems to be
        `far` at most."""
        if width not in self._sketches:
            self._sketches[width] = _sketched(self.queries, width)
        asking = self._sketches[width].copy()
        asking[:, -1] = asking[:, -2] + far / 2
        asking[:, -2] = 1.0
        return asking


class _Sketch(NamedTuple):
    """The sketches of a block's rows, in their order; `seqs` says of which, and `given` is where these were read: they
    are copied, since a block that grows may be written over where it ends."""

    seqs: _Ints
    rows: _Floats
    given: _Ints


class Sketches:
    """Sketches by place, kept in step with the vectors there; of the last few places that were asked about."""

    def __init__(self, most: int = 16) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[tuple[int, ...], _Sketch] = {}
        self._asked: dict[tuple[int, ...], int] = {}

    def worth(self, place: tuple[int, ...], size: int, queries: int) -> bool:
        """Whether to look at the sketches of a room of this size: those who write one text at a time may well go on.
        One query alone is sooner answered by lists, where a room has them, than by all sketches."""
        if queries >= _MANY:
            return True
        if size > USUAL.lists:
            return False
        asked = self._asked[place] = self._asked.get(place, 0) + queries
        return asked >= _MANY

    def close(self, place: tuple[int, ...], given: Rows, asked: Asked, floor: float) -> list[Close] | None:
        """The pairs that reach the floor.

        None where sketches tell too little: the floor is low, or all vectors are much alike.
        """
        likely = None
        for look in _LOOKS:
            far = look.allowed * 2 * (1 - min(floor, 1.0)) + NEARLY
            if likely is None and far <= look.farthest:
                rows = self._of((*place, look.width), given, look.width).rows
                likely = _reaching(asked.within(look.width, far), rows, _CROWD * len(asked.queries))
        if likely is None:
            return None
        numbers, reached = likely
        if not len(reached):
            return []
        return confirmed(asked.queries, given, numbers, reached, floor)

    def _of(self, place: tuple[int, ...], given: Rows, width: int) -> _Sketch:
        with self._lock:
            known = self._kept.pop(place, None)
            size, total = 0 if known is None else len(known.seqs), len(given.seqs)
            if known is not None and known.given is given.seqs:
                self._kept[place] = known
                return known
            if known is None or size > total or not np.array_equal(known.seqs, given.seqs[:size]):
                known, size = _Sketch(given.seqs[:0], np.empty((0, width), dtype=np.float32), given.seqs), 0
            rows = known.rows
            for at in range(size, total, _PIECE):
                rows = _appended(rows, _sketched(given.floats(slice(at, min(total, at + _PIECE))), width))
            known = _Sketch(given.seqs.copy(), rows, given.seqs) if size < total else known
            while len(self._kept) >= self._most:
                self._kept.pop(next(iter(self._kept)))
            self._kept[place] = known
            return known

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


def confirmed(queries: _Floats, given: Rows, numbers: _Ints, reached: _Ints, floor: float) -> list[Close]:
    """Of pairs that seem close, given as numbers of queries and of rows, those whose vectors reach the floor."""
    cosines = np.clip(np.einsum("ij,ij->i", queries[numbers], given.floats(reached)), -1.0, 1.0)
    kept = cosines >= floor
    found = zip(numbers[kept].tolist(), reached[kept].tolist(), cosines[kept].tolist(), strict=True)
    return [Close(*pair) for pair in found]


def _appended(view: _Floats, rows: _Floats) -> _Floats:
    """Both as one array that has room for more behind it."""
    total = len(view) + len(rows)
    whole = view.base
    if whole is None or len(whole) < total:
        whole = np.empty((total + total // 4 + 256, view.shape[1]), dtype=np.float32)
        whole[: len(view)] = view
    whole[len(view) : total] = rows
    return whole[:total]


def _sketched(matrix: _Floats, width: int) -> _Floats:
    """Images, each with half of its square, less than nothing, and a one. Times what `Asked` makes of a query, that
    is half of what the square of their distance is short of the farthest: nothing or more if they are close."""
    images = _product(matrix, _projection(matrix.shape[1], width - 2))
    sketches = np.empty((len(images), width), dtype=np.float32)
    sketches[:, :-2] = images
    np.multiply(np.vecdot(images, images), -0.5, out=sketches[:, -2])
    sketches[:, -1] = 1.0
    return sketches


_PROJECTIONS: dict[tuple[int, int], _Floats] = {}


def _projection(dimensions: int, count: int) -> _Floats:
    if (dimensions, count) not in _PROJECTIONS:
        drawn = np.random.default_rng(dimensions).standard_normal((dimensions, count), dtype=np.float32)
        _PROJECTIONS[dimensions, count] = drawn / np.float32(count**0.5)
    return _PROJECTIONS[dimensions, count]


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


def _reaching(asking: _Floats, rows: _Floats, most: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Numbers of queries and of rows that are close, looked at in pieces that stay in the cache; None if too many."""
    if len(asking) == 1:
        alone = np.flatnonzero(along(rows, asking[0]) >= 0)
        return (np.zeros_like(alone), alone) if len(alone) <= most else None
    across = np.ascontiguousarray(asking.T)
    many, count = _STEPS * _step(across), len(asking)
    out = np.empty((many, count), dtype=np.float32)
    found, total = [np.empty(0, dtype=np.int64)], 0
    for at in range(0, len(rows), many):
        piece = rows[at : at + many]
        reached = np.flatnonzero(_product(piece, across, out[: len(piece)]) >= 0)
        if len(reached):
            found.append(reached + at * count)
            total += len(reached)
            if total > most:
                return None
    row, query = np.divmod(np.concatenate(found), count)
    return query, row
