"""Vectors with a shorter image of each to look at first, and in a large room with a byte for each number.

A search goes from coarse to fine. Of a very large room it looks only at the lists whose middle is nearest to the
question; there it compares the beginnings of images, two rows at once; of the best, the rest of their images; of the
best of these, the numbers. Where these are single bytes, who asks compares what comes out once more, with the vectors
themselves; two bytes for each number, as packs have them, are enough for the cosines of an answer: these are right to
four digits in any form.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.arrays import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float32]"
_Bytes: TypeAlias = "NDArray[np.int8]"
_Pairs: TypeAlias = "NDArray[np.int16]"

_WIDTH = 128  # numbers of an image
_FIRST = 80  # of these that all rows are compared by at first
_AHEAD, _PART = 6, 16  # rows compared by the rest of their images: so many for one wanted, or one of so many
_PROBED, _PART_OF_LISTS = 0.12, 4  # of all lists that a search looks into; there they are one of so many
_FEWEST = 40  # and no fewer than these
_LIKELY, _USUAL = 400, 500  # rows that are compared by their numbers: so many at least, and in a larger room
_SAMPLE = 8_192  # rows that axes and middles are found by
_ROUNDS = 6  # of moving middles
_BETWEEN = 3  # large lists that a row may stand between
_APART, _LENGTH = 4_096, 46  # by what a second row is lifted above the first, and grains that a row is long at most
_STRIDE, _SAMPLED = 16, 2_048  # of so many scores one, or so many in all, are looked at to guess where the best begin
_FEW, _MANY = 4_096, 8  # scores, and times what is wanted, from which on a guess pays
_GATHERED = 98_304  # numbers of rows that are gathered at a time
ALONE = 262_144  # multiplications up to which a product stays on one core: waiting for others costs more than it gains


class Sizes(NamedTuple):
    """Rows up to which a room needs no images, and up to which its numbers are kept as they are; from which on there
    are too many to look at all of them; and rows beside packed ones, from which on all are packed anew."""

    small: int = 4_096
    large: int = 110_000
    lists: int = 400_000
    tail: int = 4_096


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
    if len(scores) > max(_FEW, _MANY * limit):
        # A floor that a sample says more than enough reach: only those need to be put in order.
        places = ahead(scores, 2 * limit + 16 * _STRIDE)
        if len(places) < limit:
            places = None
    among = scores if places is None else scores[places]
    found: Ints = (among >= np.partition(among, len(among) - limit)[len(among) - limit]).nonzero()[0]
    return found if places is None else places[found]


def ahead(scores: Floats, about: int) -> Ints:
    """Places of the best, about so many of them as a sample says."""
    if about >= len(scores):
        return np.arange(len(scores))
    stride = max(_STRIDE, len(scores) // _SAMPLED)
    sample = scores[::stride]
    rank = len(sample) - min(len(sample), about // stride)
    found: Ints = (scores >= np.partition(sample, rank)[rank]).nonzero()[0]
    return found


def standing(held: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Which of the wanted are held, by their places, and where; of those that do not stand in order, some may not be
    found."""
    found = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
    places = np.flatnonzero(held[found] == wanted)
    return places, found[places]


def across(query: Floats, columns: Floats) -> Floats:
    """The product of a query with each column, in pieces that stay on one core."""
    out = np.empty(columns.shape[1], dtype=np.float32)
    step = max(1, ALONE // max(1, columns.shape[0]))
    for at in range(0, columns.shape[1], step):
        np.matmul(query, columns[:, at : at + step], out=out[at : at + step])
    return out


def appended(view: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
    """`view` and `more` side by side by the last axis, in place where the array behind the view has room for them."""
    size, total = view.shape[-1], view.shape[-1] + more.shape[-1]
    whole = view.base
    if whole is None or whole.shape[-1] < total:
        whole = np.empty((*view.shape[:-1], total + total // 4 + 16), dtype=view.dtype)
        whole[..., :size] = view
    whole[..., size:total] = more
    return whole[..., :total]


class _Bench(threading.local):
    """Where a thread puts what it needs only for a moment. Memory that is asked for and given back each time comes
    empty from the system each time, page by page, which takes longer than what is done with it. There is one for all
    stores: each of those who leave something there for later asks whether it is still theirs (`owner`)."""

    def __init__(self) -> None:
        self._kept: dict[Any, NDArray[Any]] = {}
        self.owner: object = None  # of the pairs of bytes

    def pairs(self, count: int, width: int, owner: object) -> _Pairs:
        """Rows of two bytes for each number; they are the owner's until somebody else asks for some."""
        self.owner = owner
        return self.array(count, width, np.dtype("<i2"))  # as packs have them, so that they can be read into it

    def array(self, count: int, width: int, form: Any) -> NDArray[Any]:
        """So many rows, in which anything may stand: what was there before is gone."""
        kept = self._kept.get(form)
        if kept is None or kept.size < count * width:
            kept = self._kept[form] = np.empty(count * width, dtype=form)
        return kept[: count * width].reshape(count, width)


BENCH = _Bench()


def along(rows: _Bytes | _Pairs, query: Floats, chosen: Ints | None = None) -> Floats:
    """The product of each row, or of the chosen ones, with a query, in pieces that stay on one core. Rows are made
    numbers in a place that stays near the core, over and over."""
    count = len(rows) if chosen is None else len(chosen)
    out = np.empty(count, dtype=np.float32)
    step = max(1, _GATHERED // max(1, len(query)))
    room = None if chosen is None else np.empty((min(step, count), rows.shape[1]), dtype=rows.dtype)
    floats = BENCH.array(min(step, count), rows.shape[1], np.float32)
    for at in range(0, count, step):
        piece = rows[at : at + step]
        if chosen is not None and room is not None:
            those = chosen[at : at + step]
            piece = np.take(rows, those, axis=0, out=room[: len(those)], mode="clip")
        np.copyto(floats[: len(piece)], piece)
        np.matmul(floats[: len(piece)], query, out=out[at : at + step])
    return out


class Lists(Struct, frozen=True):
    """Rows from `starts[n]` up to `starts[n + 1]` have their middle in column n."""

    middles: Floats
    starts: Ints

    def spans(self, query: Floats) -> list[tuple[int, int]]:
        """Where the rows of the nearest lists are."""
        count = min(self.middles.shape[1], max(_FEWEST, round(_PROBED * self.middles.shape[1])))
        nearest = np.sort(np.argpartition(-across(query, self.middles), count - 1)[:count])
        return list(zip(self.starts[nearest].tolist(), self.starts[nearest + 1].tolist(), strict=True))


class Doubled(Struct, frozen=True):
    """Two rows in the space of one: numbers small enough that products of two rows with a query, one of them times
    `_APART`, can be added up side by side in one number, and told from each other in the end.

    Rows are whole numbers of `grains`, and none of them is longer than `length`. So is the query, and only so long that
    no product reaches half of `_APART`: that is sure, since no product is larger than both lengths together. How far
    this is off is nothing beside the numbers that a first look leaves out.
    """

    columns: Floats  # one for each two rows
    count: int
    grain: float
    length: float

    def asking(self, query: Floats) -> tuple[Floats, float]:
        """A query in whole numbers, and what one of its products counts."""
        room = _APART / 2 / self.length - 0.5 * math.sqrt(len(query)) - 1.0  # rounding may make it longer
        size = math.sqrt(query @ query) / room or 1.0
        return np.rint(query / np.float32(size)), size * self.grain

    def products(self, asked: Floats, start: int = 0, end: int | None = None) -> Floats:
        """Of the rows from one place to another."""
        end = self.count if end is None else end
        first = start // 2
        both = across(asked, self.columns[:, first : (end + 1) // 2])
        out = np.empty(2 * len(both), dtype=np.float32)
        second = np.rint(both * np.float32(1 / _APART), out=out[1::2])
        np.subtract(both, second * np.float32(_APART), out=out[::2])
        return out[start - 2 * first : end - 2 * first]


def doubled(rows: Floats) -> Doubled:
    """Of columns, one for each row, which are written over."""
    longest = math.sqrt(float(np.einsum("ij,ij->j", rows, rows).max(initial=0.0))) or 1.0
    grain = longest / _LENGTH
    whole = np.rint(np.divide(rows, np.float32(grain), out=rows), out=rows)
    length = math.sqrt(float(np.einsum("ij,ij->j", whole, whole).max(initial=0.0))) or 1.0
    columns = whole[:, ::2].copy()
    columns[:, : rows.shape[1] // 2] += np.float32(_APART) * whole[:, 1::2]
    return Doubled(columns, rows.shape[1], grain, length)


class Images(Struct, frozen=True):
    """The vectors as seen along the axes in which they differ most: the most telling of these doubled, for all are
    compared by them; the others in rows, for those that are ahead then, each number a byte that counts so many `steps`
    of its axis."""

    axes: Floats
    first: Doubled
    rows: _Bytes
    steps: Floats
    lists: Lists | None = None

    @property
    def bytes(self) -> int:
        return self.first.columns.nbytes + self.rows.nbytes

    def likely(self, query: Floats, count: int) -> Ints:
        """The rows whose images are nearest to the query's."""
        image = query @ self.axes
        half = len(self.first.columns)
        asked, worth = self.first.asking(image[:half])
        if self.lists is None:
            scores, rows = self.first.products(asked), None
        else:
            spans = [span for span in self.lists.spans(query) if span[0] < span[1]]
            scores = np.concatenate([self.first.products(asked, a, b) for a, b in spans])
            rows = np.concatenate([np.arange(a, b) for a, b in spans])
        if not self.rows.shape[1]:
            first = leading(scores, count)
            return first if rows is None else rows[first]
        first = ahead(scores, max(_AHEAD * count, len(scores) // (_PART if self.lists is None else _PART_OF_LISTS)))
        rows = first if rows is None else rows[first]
        others = along(self.rows, image[half:] * self.steps, rows)
        found: Ints = rows[leading(scores[first] * np.float32(worth) + others, count)]
        return found


class Packed(Struct, frozen=True):
    """Vectors of one model in one partition, each number two bytes, or one if they are very many. Dead rows are no
    longer in the database."""

    seqs: Ints
    entries: Ints
    codes: _Bytes | _Pairs
    scales: Floats
    alive: NDArray[np.bool_]
    images: Images | None = None

    @property
    def exact(self) -> bool:
        """Whether its cosines can be told as they are: those of single bytes are too far off."""
        return self.codes.dtype != np.int8

    @property
    def bytes(self) -> int:
        arrays = (self.seqs, self.entries, self.codes, self.scales, self.alive)
        return sum(array.nbytes for array in arrays) + (self.images.bytes if self.images else 0)

    def near(self, query: Floats, limit: int, admitted: Ints | None) -> Found:
        """The rows that seem nearest. Of those that a filter admits, all are looked at."""
        if admitted is not None:
            rows = np.flatnonzero(np.isin(self.entries, admitted) & self.alive)
        elif self.images is not None:
            total = len(self.seqs)
            rows = self.images.likely(query, max(_LIKELY, 8 * limit, min(_USUAL, total // 40), total // 400))
            rows = rows[self.alive[rows]]
        else:
            found = Found(self._cosines(None, query), self.entries, self.seqs)
            return (found if self.alive.all() else found.only(self.alive)).best(limit)
        return Found(self._cosines(rows, query), self.entries[rows], self.seqs[rows]).best(limit)

    def _cosines(self, rows: Ints | None, query: Floats) -> Floats:
        """Of some rows, or of all."""
        found = along(self.codes, query, rows)
        found *= self.scales if rows is None else self.scales[rows]
        return np.clip(found, -1.0, 1.0, out=found)

    def of(self, entries: Ints) -> Iterator[tuple[int, Floats]]:
        """The vectors of some entries that are still there, each with its place among these."""
        places, found = standing(self.entries, entries)
        alive = self.alive[found]
        yield from zip(places[alive].tolist(), self.floats(found[alive]), strict=True)

    def only(self, chosen: NDArray[Any]) -> Packed:
        """Some of the rows, or all in another order; without images."""
        alive = self.alive[chosen]
        return Packed(self.seqs[chosen], self.entries[chosen], self.codes[chosen], self.scales[chosen], alive)

    def without(self, present: Ints) -> Packed:
        return replace(self, alive=np.isin(self.seqs, present))

    def floats(self, rows: Ints | slice) -> Floats:
        floats: Floats = self.codes[rows].astype(np.float32)
        return np.multiply(floats, self.scales[rows, None], out=floats)


def normal(blobs: list[bytes], dimensions: int) -> Floats:
    """Vectors as they are stored, a row for each, brought to length one."""
    matrix = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), dimensions)
    return at_length_one(matrix)


def at_length_one(matrix: Floats) -> Floats:
    norms = np.sqrt(np.vecdot(matrix, matrix))[:, None]
    norms[norms == 0] = 1.0
    unit: Floats = (matrix / norms).astype(np.float32, copy=False)
    return unit


def packed(seqs: Ints, entries: Ints, matrix: Floats) -> Packed:
    """Rows of length one, each number a byte."""
    return _rounded(seqs, entries, matrix, np.int8)


def paired(seqs: Ints, entries: Ints, matrix: Floats) -> Packed:
    """Rows of length one, each number two bytes."""
    return _rounded(seqs, entries, matrix, np.int16)


def _rounded(seqs: Ints, entries: Ints, matrix: Floats, form: type[np.int8] | type[np.int16]) -> Packed:
    scales = (np.abs(matrix).max(axis=1, initial=0.0) / np.iinfo(form).max).astype(np.float32)
    scales[scales == 0] = 1.0
    codes = np.rint(matrix / scales[:, None]).astype(form)
    return Packed(seqs, entries, codes, scales, np.ones(len(seqs), dtype=np.bool_))


def in_bytes(rows: Packed) -> Packed:
    """The same in single bytes."""
    return replace(packed(rows.seqs, rows.entries, rows.floats(slice(None))), alive=rows.alive)


def joined(parts: list[Packed]) -> Packed:
    """All rows that are still there. They are all of one form."""
    kept = [part if part.alive.all() else part.only(part.alive) for part in parts]
    return Packed(
        np.concatenate([part.seqs for part in kept]),
        np.concatenate([part.entries for part in kept]),
        np.concatenate([part.codes for part in kept], casting="no"),
        np.concatenate([part.scales for part in kept]),
        np.concatenate([part.alive for part in kept]),
    )


# Making images and lists


def imaged(rows: Packed, sizes: Sizes) -> Packed:
    """With images, and in lists if there are very many; as it is, if there are few."""
    total = len(rows.seqs)
    if total <= sizes.small:
        return rows
    dice = np.random.default_rng(0)
    sample = rows.floats(np.sort(dice.choice(total, min(total, _SAMPLE), replace=False)))
    # What all have in common tells none from another: axes are those of the differences.
    _, axes = np.linalg.eigh(np.cov(sample, rowvar=False))
    axes = np.ascontiguousarray(axes[:, : -_WIDTH - 1 : -1], dtype=np.float32)
    half = min(_FIRST, axes.shape[1])
    columns = np.empty((half, total), dtype=np.float32)
    others = np.empty((total, axes.shape[1] - half), dtype=np.int8)
    steps = np.maximum(np.abs(sample @ axes[:, half:]).max(axis=0) / 120, np.float32(1e-9))
    for at in range(0, total, _SAMPLE):
        image = rows.floats(slice(at, at + _SAMPLE)) @ axes
        columns[:, at : at + _SAMPLE] = image[:, :half].T
        others[at : at + _SAMPLE] = np.clip(np.rint(image[:, half:] / steps), -127, 127)
    if total < sizes.lists:
        return replace(rows, images=Images(axes, doubled(columns), others, steps))
    cells, middles = _clustered(rows, dice)
    order = np.argsort(cells, kind="stable")
    starts = np.searchsorted(cells[order], np.arange(middles.shape[1] + 1)).astype(np.int64)
    return replace(
        rows.only(order),
        images=Images(axes, doubled(columns[:, order]), others[order], steps, Lists(middles, starts)),
    )


def _clustered(rows: Packed, dice: np.random.Generator) -> tuple[Ints, Floats]:
    """A list for each row, and the middles of the lists: a few large ones first, then each of them taken apart. A row
    that stands between large ones goes to the nearest small one of any of these.

    There are about as many lists as rows in each of them.
    """
    total = len(rows.seqs)
    branches = max(2, round(total**0.25))
    coarse = _middles(rows, np.arange(total), branches, dice)
    large = _assigned(rows, coarse)
    best, cells = np.full(total, -np.inf, dtype=np.float32), np.zeros(total, dtype=np.int64)
    middles: list[Floats] = []
    for number in range(branches):
        inside = np.flatnonzero(large[:, 0] == number)
        if not len(inside):
            continue
        fine = _middles(rows, inside, branches, dice)
        around = np.flatnonzero((large == number).any(axis=1))
        for at in range(0, len(around), _SAMPLE):
            some = around[at : at + _SAMPLE]
            nearness = _nearness(rows.floats(some), fine)
            nearest = np.argmax(nearness, axis=1)
            reached = nearness[np.arange(len(some)), nearest]
            nearer = reached > best[some]
            best[some[nearer]] = reached[nearer]
            cells[some[nearer]] = nearest[nearer] + sum(map(len, middles))
        middles.append(fine)
    return cells, np.ascontiguousarray(np.concatenate(middles).T)


def _middles(rows: Packed, members: Ints, count: int, dice: np.random.Generator) -> Floats:
    count = min(count, len(members))
    sample = rows.floats(np.sort(dice.choice(members, min(len(members), _SAMPLE), replace=False)))
    middles = sample[dice.choice(len(sample), count, replace=False)]
    for _ in range(_ROUNDS):
        nearest = np.argmax(_nearness(sample, middles), axis=1)
        sizes = np.bincount(nearest, minlength=count)[:, None]
        sums = (nearest == np.arange(count)[:, None]).astype(np.float32) @ sample
        middles = np.where(sizes > 0, sums / np.maximum(sizes, 1), middles).astype(np.float32)
    return middles


def _assigned(rows: Packed, middles: Floats) -> Ints:
    """For each row the numbers of the few middles that are nearest to it, the nearest first."""
    count = min(_BETWEEN, len(middles))
    out = np.empty((len(rows.seqs), count), dtype=np.int64)
    for at in range(0, len(out), _SAMPLE):
        near = _nearness(rows.floats(slice(at, at + _SAMPLE)), middles)
        out[at : at + _SAMPLE] = np.argsort(-near, axis=1)[:, :count]
    return out


def _nearness(matrix: Floats, middles: Floats) -> Floats:
    """Of each row to each middle; the nearest has the most, which is half of its square less half of its distance's."""
    near: Floats = matrix @ middles.T - 0.5 * np.square(middles).sum(axis=1)
    return near
