"""Which of many vectors are close to one of several others, without multiplying them all out.

Every vector has a sketch: its image under a fixed random projection, a sixteenth as long. Between two images lies the
square of the vectors' distance, but for a factor of which the spread is known (chi-squared, whatever the vectors are).
Only where images are close, with that allowed for, are the vectors themselves read and compared. So what is found is
exact; of pairs right at the floor one in five thousand is missed, and hardly any of those that are clearly above it.
Where too many images are close, because vectors are much alike or the floor is low, sketches of twice the length are
looked at.

Sketches are kept in step by themselves: who puts one text after the other has only the sketch of the last one added,
and whatever else is kept of vectors in memory waits for the next question.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from mnemon.adapters.store.sqlite.packed import USUAL, across, appended
from mnemon.model.arrays import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Floats: TypeAlias = "NDArray[np.float32]"
_Ints: TypeAlias = "NDArray[np.int64]"
_Place: TypeAlias = "tuple[int, int]"  # partition and model


class _Look(NamedTuple):
    """Numbers of a sketch, by how much the square of a distance may seem larger than it is, and how large it may be:
    beyond that, vectors that have nothing to do with each other are called close too often."""

    width: int
    allowed: float  # by chi-squared with two degrees fewer than numbers: one in five thousand is beyond
    farthest: float


_LOOKS = (_Look(24, 2.43, 0.55), _Look(48, 1.91, 1.0))
_ROUNDED = 0.005  # by how much a cosine may be wrong of vectors that were in bytes when they were sketched
_CROWD = 64  # rows for one query, by when comparing one after the other is as cheap
_PIECE = 8_192  # rows that are sketched at a time
_ALONE = 500_000  # multiplications, as ALONE is where one of the two is a vector: matrices wake another core later
_STEPS = 16  # small products of which the outcome is looked at together
_MANY = 8  # queries, at once or one after the other, for which sketches of a whole room are worth making


class Loaded(NamedTuple):
    """Vectors of length one, a row for each, with their seqs and the entries they are of."""

    seqs: _Ints
    entries: _Ints
    matrix: _Floats


class Room(Protocol):
    """The vectors of one place in one state of the database."""

    @property
    def place(self) -> _Place: ...
    @property
    def removals(self) -> int:
        """How often vectors went: while it is the same, more can only have come behind the last."""
        ...

    def since(self, last: int) -> Loaded | None:
        """What came behind a vector; None if that one is not there in this state."""
        ...

    def present(self) -> _Ints:
        """The seqs of all that are there."""
        ...

    def whole(self, without: _Ints) -> Iterator[Loaded]:
        """All that are there but for some, in pieces."""
        ...

    def of(self, seqs: _Ints) -> Loaded:
        """Those of these seqs that are there, in any order."""
        ...


class Close(NamedTuple):
    """One close pair: the number of the query, the entry, the cosine."""

    query: int
    entry: int
    cosine: float


class _Sketch(NamedTuple):
    """The sketches of a room as of one state, a column for each, with the seqs they are of, and the last of these."""

    removals: int
    last: int
    seqs: _Ints
    columns: _Floats

    def plus(self, more: Loaded, sketches: _Floats) -> _Sketch:
        """With those of more vectors, a row for each."""
        if not len(more.seqs):
            return self
        last = max(self.last, int(more.seqs.max()))
        return _Sketch(self.removals, last, appended(self.seqs, more.seqs), appended(self.columns, sketches.T))


class Sketches:
    """Sketches by place, kept in step with the vectors there; of the last few places that were asked about."""

    def __init__(self, most: int = 16) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[tuple[_Place, int], _Sketch] = {}
        self._asked: dict[_Place, int] = {}
        self._crowded: dict[_Place, int] = {}  # queries for which the shorter sketches told too little

    def worth(self, place: _Place, size: int, queries: int) -> bool:
        """Whether to look at the sketches of a room of this size: those who write one text at a time may well go on.
        One query alone is sooner answered by lists, where a room has them, than by all sketches."""
        if queries >= _MANY:
            return True
        if size > USUAL.lists:
            return False
        asked = self._asked[place] = self._asked.get(place, 0) + queries
        return asked >= _MANY

    def close(self, room: Room, queries: _Floats, floor: float) -> list[Close] | None:
        """The pairs that reach the floor, of queries of length one and the vectors of a room.

        None where sketches tell too little: the floor is low, all vectors are much alike, or those around a single
        query, for which longer sketches are not worth making.
        """
        for look in _LOOKS:
            far = look.allowed * 2 * (1 - min(floor, 1.0) + _ROUNDED)
            if far <= look.farthest and self._pays(room.place, look.width, len(queries)):
                kept, sketches = self._of(room, look.width, queries)
                likely = _reaching(_within(sketches, far), kept.columns, _CROWD * len(queries))
                if likely is not None:
                    numbers, reached = likely
                    return _confirmed(room, queries, numbers, kept.seqs[reached], floor) if len(reached) else []
        return None

    def _pays(self, place: _Place, width: int, queries: int) -> bool:
        """Whether sketches of this length are there, or asked for so often that making those of a whole room pays. The
        shorter ones always are: `worth` was asked before."""
        if width == _LOOKS[0].width or (place, width) in self._kept:
            return True
        crowded = self._crowded[place] = self._crowded.get(place, 0) + queries
        return crowded >= _MANY

    def _of(self, room: Room, width: int, queries: _Floats) -> tuple[_Sketch, _Floats]:
        """The sketches of a room, and those of queries. What has come since is sketched together with these: mostly it
        is the query of before."""
        with self._lock:
            place = (room.place, width)
            kept = self._kept.pop(place, None)
            more = room.since(kept.last) if kept is not None and kept.removals == room.removals else None
            if kept is None or more is None:
                kept, asking = _anew(room, kept, width), _sketched(queries, width)
            else:
                come = len(more.seqs)
                both = _sketched(np.concatenate([more.matrix, queries]) if come else queries, width)
                kept, asking = kept.plus(more, both[:come]), both[come:]
            while len(self._kept) >= self._most:
                self._kept.pop(next(iter(self._kept)))
            self._kept[place] = kept
            return kept, asking

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


def _anew(room: Room, had: _Sketch | None, width: int) -> _Sketch:
    """All of a room, with those sketches that were there before."""
    none = np.empty(0, dtype=np.int64)
    sketch = _Sketch(room.removals, 0, none, np.empty((width, 0), dtype=np.float32))
    if had is not None:
        left = np.isin(had.seqs, room.present())
        seqs = had.seqs[left]
        # A copy: what is chosen from columns is a view of something that has no room behind it, though it seems to.
        sketch = _Sketch(room.removals, int(seqs.max(initial=0)), seqs, had.columns[:, left].copy())
    for piece in room.whole(sketch.seqs):
        sketch = sketch.plus(piece, _sketched(piece.matrix, width))
    return sketch


def _confirmed(room: Room, queries: _Floats, numbers: _Ints, seqs: _Ints, floor: float) -> list[Close]:
    """Of pairs that seem close, given as numbers of queries and as seqs, those whose vectors reach the floor."""
    if len(queries) == 1:
        rows = room.of(seqs)
        entries, cosines = rows.entries, np.minimum(rows.matrix @ queries[0], 1.0)
        numbers = numbers[: len(entries)]
    else:
        rows = room.of(np.unique(seqs))
        if not len(rows.seqs):
            return []
        order = np.argsort(rows.seqs)
        places = order[np.minimum(np.searchsorted(rows.seqs, seqs, sorter=order), len(order) - 1)]
        there = rows.seqs[places] == seqs
        places, numbers = places[there], numbers[there]
        entries = rows.entries[places]
        cosines = np.minimum(np.einsum("ij,ij->i", queries[numbers], rows.matrix[places]), 1.0)
    kept = cosines >= floor
    found = zip(numbers[kept].tolist(), entries[kept].tolist(), cosines[kept].tolist(), strict=True)
    return [Close(*pair) for pair in found]


def _within(asking: _Floats, far: float) -> _Floats:
    """Of each sketch of a query, which is written over, a row whose product with a sketch is at least 0 if the square
    of their distance seems to be `far` at most."""
    asking[:, -1] = asking[:, -2] + far / 2
    asking[:, -2] = 1.0
    return asking


def _sketched(matrix: _Floats, width: int) -> _Floats:
    """Images, each with half of its square, less than nothing, and a one. Times what `_within` makes of a query, that
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


def _product(a: _Floats, b: _Floats) -> _Floats:
    """A product as many so small that none of them wakes another core: the waiting costs more than the work."""
    step = max(1, _ALONE // max(1, b.size))
    if len(a) <= step:
        alone: _Floats = a @ b
        return alone
    product = np.empty((len(a), b.shape[1]), dtype=np.float32)
    whole = len(a) - len(a) % step
    np.matmul(a[:whole].reshape(-1, step, len(b)), b, out=product[:whole].reshape(-1, step, b.shape[1]))
    np.matmul(a[whole:], b, out=product[whole:])
    return product


def _reaching(asking: _Floats, columns: _Floats, most: int) -> tuple[_Ints, _Ints] | None:
    """Numbers of queries and of columns that are close, looked at in pieces that stay in the cache; None if too
    many."""
    if len(asking) == 1:
        alone = (across(asking[0], columns) >= 0).nonzero()[0]
        return (np.zeros_like(alone), alone) if len(alone) <= most else None
    step = max(1, _ALONE // asking.size)
    numbers, reached = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for at, width in _pieces(columns.shape[1], step):
        piece = columns[:, at : at + width].reshape(len(columns), -1, min(step, width)).transpose(1, 0, 2)
        product = np.matmul(asking, piece)
        found = np.flatnonzero(product >= 0)
        if len(found):
            block, query, column = np.unravel_index(found, product.shape)
            numbers.append(query)
            reached.append(at + block * piece.shape[2] + column)
            most -= len(found)
            if most < 0:
                return None
    return np.concatenate(numbers), np.concatenate(reached)


def _pieces(total: int, step: int) -> Iterator[tuple[int, int]]:
    """Where each begins and how wide it is: a few steps at a time, and what is less than a step by itself."""
    whole = total - total % step
    for at in range(0, whole, _STEPS * step):
        yield at, min(_STEPS * step, whole - at)
    if whole < total:
        yield whole, total - whole
