"""Vectors in less room: a byte for each number, and for a large room a shorter image of each to look at first.

A search goes from coarse to fine. Of a very large room it looks only at the lists whose middle is nearest to the
question; there it compares images of a quarter of the length; of the best of these, bytes. Who asks compares what
comes out once more, with the vectors themselves, so that the cosines in an answer are always exact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mnemon.model.arrays import np
from mnemon.model.frozen import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float32]"
_Bytes: TypeAlias = "NDArray[np.int8]"

_WIDTH = 96  # numbers of an image
_PROBED = 0.1  # of all lists that a search looks into
_FEWEST = 40  # and no fewer than these
_SAMPLE = 8_192  # rows that axes and middles are found by
_ROUNDS = 6  # of moving middles
_STRIDE = 16  # of scores, one is looked at to guess where the best begin
_MANY = 8  # times what is wanted, from which on a guess pays
ALONE = 262_144  # multiplications up to which a product stays on one core: waiting for others costs more than it gains


class Sizes(NamedTuple):
    """Rows up to which a room is kept as it is, and from which on even images are too many to look at all of them."""

    large: int = 20_000
    lists: int = 200_000


USUAL = Sizes()


class Found(NamedTuple):
    """Rows by how near they are: their cosines, which are nearly right, the entries they are of, and their seqs."""

    cosines: Floats
    entries: Ints
    seqs: Ints

    def best(self, limit: int) -> Found:
        """The nearest; among equals the newer entry."""
        kept = self.only(leading(self.cosines, limit))
        return kept.only(np.lexsort((-kept.entries, -kept.cosines))[:limit])

    def only(self, chosen: NDArray[Any]) -> Found:
        return Found(self.cosines[chosen], self.entries[chosen], self.seqs[chosen])

    def plus(self, other: Found) -> Found:
        return Found(
            np.concatenate([self.cosines, other.cosines]),
            np.concatenate([self.entries, other.entries]),
            np.concatenate([self.seqs, other.seqs]),
        )


def leading(scores: Floats, limit: int) -> Ints:
    """Places of everything that reaches the last of so many, so that a tie is not decided by position."""
    if limit >= len(scores):
        return np.arange(len(scores))
    places = None
    if len(scores) > _MANY * limit:
        # A floor that a sample says more than enough reach: only those need to be put in order.
        sample = scores[::_STRIDE]
        rank = len(sample) - min(len(sample), 2 * limit // _STRIDE + 16)
        places = np.flatnonzero(scores >= np.partition(sample, rank)[rank])
        if len(places) < limit:
            places = None
    among = scores if places is None else scores[places]
    found = np.flatnonzero(among >= np.partition(among, len(among) - limit)[len(among) - limit])
    return found if places is None else places[found]


def across(query: Floats, columns: Floats) -> Floats:
    """The product of a query with each column, in pieces that stay on one core."""
    out = np.empty(columns.shape[1], dtype=np.float32)
    step = max(1, ALONE // max(1, columns.shape[0]))
    for at in range(0, columns.shape[1], step):
        np.matmul(query, columns[:, at : at + step], out=out[at : at + step])
    return out


@dataclass(frozen=True, slots=True)
class Lists:
    """Rows from `starts[n]` up to `starts[n + 1]` have their middle in column n."""

    middles: Floats
    starts: Ints

    def spans(self, query: Floats) -> list[tuple[int, int]]:
        """Where the rows of the nearest lists are."""
        count = min(self.middles.shape[1], max(_FEWEST, round(_PROBED * self.middles.shape[1])))
        nearest = np.sort(np.argpartition(-across(query, self.middles), count - 1)[:count])
        return list(zip(self.starts[nearest].tolist(), self.starts[nearest + 1].tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Images:
    """The rows as seen along the axes in which they differ most; a column for each row."""

    axes: Floats
    columns: Floats
    lists: Lists | None = None

    def likely(self, query: Floats, count: int) -> Ints:
        """The rows whose images are nearest to the query's."""
        image = query @ self.axes
        if self.lists is None:
            return leading(across(image, self.columns), count)
        spans = [span for span in self.lists.spans(query) if span[0] < span[1]]
        scores = np.concatenate([across(image, self.columns[:, a:b]) for a, b in spans])
        rows = np.concatenate([np.arange(a, b) for a, b in spans])
        chosen: Ints = rows[leading(scores, count)]
        return chosen


@dataclass(frozen=True, slots=True)
class Packed:
    """Vectors of one model in one partition, each number a byte. Dead rows are no longer in the database."""

    seqs: Ints
    entries: Ints
    codes: _Bytes
    scales: Floats
    alive: NDArray[np.bool_]
    images: Images | None = None

    @property
    def bytes(self) -> int:
        arrays = (self.seqs, self.entries, self.codes, self.scales, self.alive)
        return sum(array.nbytes for array in arrays) + (self.images.columns.nbytes if self.images else 0)

    def near(self, query: Floats, limit: int, admitted: Ints | None) -> Found:
        """The rows that seem nearest. Of those that a filter admits, all are looked at."""
        if admitted is not None:
            rows = np.flatnonzero(np.isin(self.entries, admitted) & self.alive)
        elif self.images is not None:
            rows = self.images.likely(query, max(1_500, 8 * limit, len(self.seqs) // 100))
            rows = rows[self.alive[rows]]
        else:
            rows = np.flatnonzero(self.alive)
        return Found(self._cosines(rows, query), self.entries[rows], self.seqs[rows]).best(limit)

    def _cosines(self, rows: Ints, query: Floats) -> Floats:
        cosines = np.empty(len(rows), dtype=np.float32)
        step = max(1, ALONE // max(1, len(query)))
        for at in range(0, len(rows), step):
            np.matmul(self.codes[rows[at : at + step]].astype(np.float32), query, out=cosines[at : at + step])
        found: Floats = np.clip(cosines * self.scales[rows], -1.0, 1.0)
        return found

    def only(self, chosen: NDArray[Any]) -> Packed:
        """Some of the rows, or all in another order; without images."""
        alive = self.alive[chosen]
        return Packed(self.seqs[chosen], self.entries[chosen], self.codes[chosen], self.scales[chosen], alive)

    def without(self, present: Ints) -> Packed:
        return replace(self, alive=np.isin(self.seqs, present))

    def floats(self, rows: Ints | slice) -> Floats:
        floats: Floats = self.codes[rows].astype(np.float32) * self.scales[rows, None]
        return floats


def packed(seqs: Ints, entries: Ints, matrix: Floats) -> Packed:
    """From rows of length one."""
    scales = (np.abs(matrix).max(axis=1, initial=0.0) / 127).astype(np.float32)
    scales[scales == 0] = 1.0
    codes = np.rint(matrix / scales[:, None]).astype(np.int8)
    return Packed(seqs, entries, codes, scales, np.ones(len(seqs), dtype=np.bool_))


def joined(parts: list[Packed]) -> Packed:
    """All rows that are still there."""
    kept = [part.only(part.alive) for part in parts]
    return Packed(
        np.concatenate([part.seqs for part in kept]),
        np.concatenate([part.entries for part in kept]),
        np.concatenate([part.codes for part in kept]),
        np.concatenate([part.scales for part in kept]),
        np.concatenate([part.alive for part in kept]),
    )


# Making images and lists


def imaged(rows: Packed, sizes: Sizes) -> Packed:
    """With images, and in lists if there are very many; as it is, if there are few."""
    total = len(rows.seqs)
    if total <= sizes.large:
        return rows
    dice = np.random.default_rng(0)
    sample = rows.floats(np.sort(dice.choice(total, min(total, _SAMPLE), replace=False)))
    # What all have in common tells none from another: axes are those of the differences.
    _, axes = np.linalg.eigh(np.cov(sample, rowvar=False))
    axes = np.ascontiguousarray(axes[:, -_WIDTH:], dtype=np.float32)
    columns = np.empty((axes.shape[1], total), dtype=np.float32)
    for at in range(0, total, _SAMPLE):
        columns[:, at : at + _SAMPLE] = (rows.floats(slice(at, at + _SAMPLE)) @ axes).T
    if total < sizes.lists:
        return replace(rows, images=Images(axes, columns))
    cells, middles = _clustered(rows, dice)
    order = np.argsort(cells, kind="stable")
    starts = np.searchsorted(cells[order], np.arange(middles.shape[1] + 1)).astype(np.int64)
    return replace(rows.only(order), images=Images(axes, columns[:, order], Lists(middles, starts)))


def _clustered(rows: Packed, dice: np.random.Generator) -> tuple[Ints, Floats]:
    """A list for each row, and the middles of the lists: a few large ones first, then each of them taken apart.

    There are about as many lists as rows in each of them.
    """
    total = len(rows.seqs)
    branches = max(2, round(total**0.25))
    coarse = _middles(rows, np.arange(total), branches, dice)
    large = _assigned(rows, np.arange(total), coarse)
    cells = np.zeros(total, dtype=np.int64)
    middles: list[Floats] = []
    for number in range(branches):
        members = np.flatnonzero(large == number)
        if len(members):
            fine = _middles(rows, members, branches, dice)
            cells[members] = _assigned(rows, members, fine) + sum(map(len, middles))
            middles.append(fine)
    return cells, np.ascontiguousarray(np.concatenate(middles).T)


def _middles(rows: Packed, members: Ints, count: int, dice: np.random.Generator) -> Floats:
    count = min(count, len(members))
    sample = rows.floats(np.sort(dice.choice(members, min(len(members), _SAMPLE), replace=False)))
    middles = sample[dice.choice(len(sample), count, replace=False)]
    for _ in range(_ROUNDS):
        nearest = _nearest(sample, middles)
        sizes = np.bincount(nearest, minlength=count)[:, None]
        sums = (nearest == np.arange(count)[:, None]).astype(np.float32) @ sample
        middles = np.where(sizes > 0, sums / np.maximum(sizes, 1), middles).astype(np.float32)
    return middles


def _assigned(rows: Packed, members: Ints, middles: Floats) -> Ints:
    out = np.empty(len(members), dtype=np.int64)
    for at in range(0, len(members), _SAMPLE):
        some = members[at : at + _SAMPLE]
        out[at : at + len(some)] = _nearest(rows.floats(some), middles)
    return out


def _nearest(matrix: Floats, middles: Floats) -> Ints:
    """For each row the middle at the least distance."""
    nearness = matrix @ middles.T - 0.5 * np.square(middles).sum(axis=1)
    nearest: Ints = np.argmax(nearness, axis=1)
    return nearest
