"""The approximate nearest-neighbour index of one partition: PCA projection, inverted lists and quantised vectors.

A search goes from coarse to fine:

1. In a very large partition, probe the inverted lists whose centroids are nearest to the query (IVF).
2. Compare the head of each PCA projection, two rows in one product (`PairedColumns`).
3. Compare the tail of the projection for the best of these.
4. Compare the quantised vectors for the best of these.

Vectors of two bytes a number (int16) give cosines that are right to four digits. Vectors of one byte (int8) do not: the
caller compares its best results again with the stored float32 vectors.
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
_Int8s: TypeAlias = "NDArray[np.int8]"
_Int16s: TypeAlias = "NDArray[np.int16]"

_COMPONENTS = 128  # numbers of a projection
HEAD = 80  # of these, the ones that all rows are compared by at first
_RESCORED, _RESCORED_SHARE = 6, 16  # rows compared by their tail: so many for each wanted, or one row in so many
_PROBED, _RESCORED_SHARE_OF_PROBED = 0.12, 4  # share of the lists to probe; rows compared by their tail there
_FEWEST_PROBED = 40  # lists
_FEWEST_COMPARED, _COMPARED = 400, 500  # rows compared by their codes: at least, and in a larger partition
_SAMPLE = 8_192  # rows that PCA and k-means learn from
_ROUNDS = 6  # of k-means
_NEAREST_LISTS = 3  # coarse lists whose fine lists a row may join
_APART, _LENGTH = 4_096, 46  # factor of the second row of a pair, and the greatest length of a row in steps
_STRIDE, _SAMPLED = 16, 2_048  # a floor is guessed from every 16th score, or from about 2,048 scores
_FEW, _MANY = 4_096, 8  # scores, and times the limit, above which guessing a floor pays
_GATHERED = 98_304  # numbers that are gathered at a time
_ONE_CORE = 262_144  # multiplications up to which a product stays on one core, because starting others costs more


class Sizes(NamedTuple):
    """Sizes of a partition, in rows, at which its form changes.

    Up to `small`, it has no projection. Up to `large`, it is int16, then int8. From `lists` on, it has inverted lists.
    More than `tail` rows beside the quantised ones are quantised too.
    """

    small: int = 4_096
    large: int = 110_000
    lists: int = 400_000
    tail: int = 4_096


USUAL = Sizes()


class Scored(NamedTuple):
    """Rows with their cosines, the entries they belong to, and their sequence numbers."""

    cosines: Floats
    entries: Ints
    seqs: Ints

    def best(self, limit: int) -> Scored:
        """The rows with the highest cosines, best first; among equals the newer entry."""
        kept = self.only(top(self.cosines, limit))
        return kept.only(np.lexsort((-kept.entries, -kept.cosines))[:limit])

    def only(self, chosen: NDArray[Any]) -> Scored:
        return Scored(self.cosines[chosen], self.entries[chosen], self.seqs[chosen])

    def plus(self, other: Scored) -> Scored:
        return Scored(
            np.concatenate([self.cosines, other.cosines]),
            np.concatenate([self.entries, other.entries]),
            np.concatenate([self.seqs, other.seqs]),
        )


def top(scores: Floats, limit: int) -> Ints:
    """Positions of the `limit` best scores and of all that equal the last of them, so that position decides no tie."""
    if limit >= len(scores):
        return np.arange(len(scores))
    positions = None
    if len(scores) > max(_FEW, _MANY * limit):
        # A floor that more than enough scores reach: only these need to be sorted.
        positions = roughly_top(scores, 2 * limit + 16 * _STRIDE)
        if len(positions) < limit:
            positions = None
    among = scores if positions is None else scores[positions]
    found: Ints = (among >= np.partition(among, len(among) - limit)[len(among) - limit]).nonzero()[0]
    return found if positions is None else positions[found]


def roughly_top(scores: Floats, about: int) -> Ints:
    """Positions of about so many of the best scores, above a floor that is guessed from a sample."""
    if about >= len(scores):
        return np.arange(len(scores))
    stride = max(_STRIDE, len(scores) // _SAMPLED)
    sample = scores[::stride]
    rank = len(sample) - min(len(sample), about // stride)
    found: Ints = (scores >= np.partition(sample, rank)[rank]).nonzero()[0]
    return found


def positions_of(wanted: Ints, held: Ints) -> tuple[Ints, Ints]:
    """For each wanted number that is held: its position among the wanted, and where it is held.

    `held` should be sorted: a number out of order may be missed.
    """
    found = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
    positions = np.flatnonzero(held[found] == wanted)
    return positions, found[positions]


def column_products(query: Floats, columns: Floats) -> Floats:
    """The dot product of a query with each column, in pieces that stay on one core."""
    out = np.empty(columns.shape[1], dtype=np.float32)
    step = max(1, _ONE_CORE // max(1, columns.shape[0]))
    for at in range(0, columns.shape[1], step):
        np.matmul(query, columns[:, at : at + step], out=out[at : at + step])
    return out


def appended(view: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
    """`view` and `more` joined along the last axis, in place where the array behind the view has spare space."""
    size, total = view.shape[-1], view.shape[-1] + more.shape[-1]
    whole = view.base
    if whole is None or whole.shape[-1] < total:
        whole = np.empty((*view.shape[:-1], total + total // 4 + 16), dtype=view.dtype)
        whole[..., :size] = view
    whole[..., size:total] = more
    return whole[..., :total]


class _Scratch(threading.local):
    """Reusable arrays of a thread. The system hands out fresh memory page by page, which costs more than the search.

    All stores of a thread share it: a caller that leaves something here asks later whether it still is the `owner`.
    """

    def __init__(self) -> None:
        self._kept: dict[Any, NDArray[Any]] = {}
        self.owner: object = None  # of the int16 array

    def int16s(self, count: int, width: int, owner: object) -> _Int16s:
        """An array in the format of vector blobs. It belongs to the owner until somebody else asks for one."""
        self.owner = owner
        return self.array(count, width, np.dtype("<i2"))

    def array(self, count: int, width: int, form: Any) -> NDArray[Any]:
        """An array with undefined content; earlier content of this form is lost."""
        kept = self._kept.get(form)
        if kept is None or kept.size < count * width:
            kept = self._kept[form] = np.empty(count * width, dtype=form)
        return kept[: count * width].reshape(count, width)


SCRATCH = _Scratch()


def row_products(rows: _Int8s | _Int16s, query: Floats, chosen: Ints | None = None) -> Floats:
    """The dot product of a query with each row, or with the chosen ones, in pieces that stay in the core's cache."""
    count = len(rows) if chosen is None else len(chosen)
    out = np.empty(count, dtype=np.float32)
    step = max(1, _GATHERED // max(1, len(query)))
    gathered = None if chosen is None else np.empty((min(step, count), rows.shape[1]), dtype=rows.dtype)
    floats = SCRATCH.array(min(step, count), rows.shape[1], np.float32)
    for at in range(0, count, step):
        piece = rows[at : at + step]
        if chosen is not None and gathered is not None:
            those = chosen[at : at + step]
            piece = np.take(rows, those, axis=0, out=gathered[: len(those)], mode="clip")
        np.copyto(floats[: len(piece)], piece)
        np.matmul(floats[: len(piece)], query, out=out[at : at + step])
    return out


class InvertedLists(Struct, frozen=True):
    """Rows from `starts[n]` to `starts[n + 1]` belong to the centroid in column n."""

    centroids: Floats
    starts: Ints

    def probe(self, query: Floats) -> list[tuple[int, int]]:
        """The ranges of rows of the lists whose centroids are nearest to the query."""
        count = min(self.centroids.shape[1], max(_FEWEST_PROBED, round(_PROBED * self.centroids.shape[1])))
        nearest = np.sort(np.argpartition(-column_products(query, self.centroids), count - 1)[:count])
        return list(zip(self.starts[nearest].tolist(), self.starts[nearest + 1].tolist(), strict=True))


class PairedColumns(Struct, frozen=True):
    """Two rows in one column: `first + _APART * second`, both in whole steps, so that one product serves two rows.

    No row is longer than `length` steps, and the query is scaled so that no product of one row reaches `_APART / 2`
    (a product is at most the two lengths multiplied). The two products can therefore be taken apart again. The error of
    rounding is small beside the components that the head leaves out.
    """

    columns: Floats  # one for each two rows
    count: int
    step: float
    length: float

    def scaled(self, query: Floats) -> tuple[Floats, float]:
        """A query in whole numbers, and the factor that turns its products back into real ones."""
        most = _APART / 2 / self.length - 0.5 * math.sqrt(len(query)) - 1.0  # rounding may make it longer
        size = math.sqrt(query @ query) / most or 1.0
        return np.rint(query / np.float32(size)), size * self.step

    def products(self, query: Floats, start: int = 0, end: int | None = None) -> Floats:
        """The products of a scaled query with the rows from `start` to `end`."""
        end = self.count if end is None else end
        first = start // 2
        both = column_products(query, self.columns[:, first : (end + 1) // 2])
        out = np.empty(2 * len(both), dtype=np.float32)
        second = np.rint(both * np.float32(1 / _APART), out=out[1::2])
        np.subtract(both, second * np.float32(_APART), out=out[::2])
        return out[start - 2 * first : end - 2 * first]


def paired_columns(rows: Floats) -> PairedColumns:
    """Pair the rows, which are given as columns. The array is overwritten."""
    longest = math.sqrt(float(np.einsum("ij,ij->j", rows, rows).max(initial=0.0))) or 1.0
    step = longest / _LENGTH
    whole = np.rint(np.divide(rows, np.float32(step), out=rows), out=rows)
    length = math.sqrt(float(np.einsum("ij,ij->j", whole, whole).max(initial=0.0))) or 1.0
    columns = whole[:, ::2].copy()
    columns[:, : rows.shape[1] // 2] += np.float32(_APART) * whole[:, 1::2]
    return PairedColumns(columns, rows.shape[1], step, length)


class Projection(Struct, frozen=True):
    """The PCA projections of all rows. Every search compares the head; the tail is int8, in `steps` of its axis."""

    axes: Floats
    head: PairedColumns
    tail: _Int8s
    steps: Floats
    lists: InvertedLists | None = None

    @property
    def bytes(self) -> int:
        return self.head.columns.nbytes + self.tail.nbytes

    def nearest(self, query: Floats, count: int) -> Ints:
        """The `count` rows whose projections are nearest to the query's."""
        projected = query @ self.axes
        width = len(self.head.columns)
        scaled, factor = self.head.scaled(projected[:width])
        if self.lists is None:
            scores, rows = self.head.products(scaled), None
        else:
            ranges = [span for span in self.lists.probe(query) if span[0] < span[1]]
            scores = np.concatenate([self.head.products(scaled, a, b) for a, b in ranges])
            rows = np.concatenate([np.arange(a, b) for a, b in ranges])
        if not self.tail.shape[1]:
            first = top(scores, count)
            return first if rows is None else rows[first]
        share = _RESCORED_SHARE if self.lists is None else _RESCORED_SHARE_OF_PROBED
        first = roughly_top(scores, max(_RESCORED * count, len(scores) // share))
        rows = first if rows is None else rows[first]
        tails = row_products(self.tail, projected[width:] * self.steps, rows)
        found: Ints = rows[top(scores[first] * np.float32(factor) + tails, count)]
        return found


class QuantisedVectors(Struct, frozen=True):
    """Vectors of one model in one partition, int16 or int8 with a scale for each row.

    Rows that are not `alive` are no longer in the database.
    """

    seqs: Ints
    entries: Ints
    codes: _Int8s | _Int16s
    scales: Floats
    alive: NDArray[np.bool_]
    projection: Projection | None = None

    @property
    def exact(self) -> bool:
        """Whether cosines are right to four digits, as those of int16 are."""
        return self.codes.dtype != np.int8

    @property
    def bytes(self) -> int:
        arrays = (self.seqs, self.entries, self.codes, self.scales, self.alive)
        return sum(array.nbytes for array in arrays) + (self.projection.bytes if self.projection else 0)

    def search(self, query: Floats, limit: int, admitted: Ints | None) -> Scored:
        """The rows nearest to the query. With a filter, every row that it admits is compared."""
        if admitted is not None:
            rows = np.flatnonzero(np.isin(self.entries, admitted) & self.alive)
        elif self.projection is not None:
            total = len(self.seqs)
            compared = max(_FEWEST_COMPARED, 8 * limit, min(_COMPARED, total // 40), total // 400)
            rows = self.projection.nearest(query, compared)
            rows = rows[self.alive[rows]]
        else:
            found = Scored(self._cosines(None, query), self.entries, self.seqs)
            return (found if self.alive.all() else found.only(self.alive)).best(limit)
        return Scored(self._cosines(rows, query), self.entries[rows], self.seqs[rows]).best(limit)

    def _cosines(self, rows: Ints | None, query: Floats) -> Floats:
        """Cosines of the rows, or of all."""
        found = row_products(self.codes, query, rows)
        found *= self.scales if rows is None else self.scales[rows]
        return np.clip(found, -1.0, 1.0, out=found)

    def vectors_of(self, entries: Ints) -> Iterator[tuple[int, Floats]]:
        """The vectors of those entries that are here, each with its position among `entries`."""
        positions, found = positions_of(entries, self.entries)
        alive = self.alive[found]
        yield from zip(positions[alive].tolist(), self.floats(found[alive]), strict=True)

    def only(self, chosen: NDArray[Any]) -> QuantisedVectors:
        """Some of the rows, or all in another order, without a projection."""
        alive = self.alive[chosen]
        return QuantisedVectors(self.seqs[chosen], self.entries[chosen], self.codes[chosen], self.scales[chosen], alive)

    def marked(self, present: Ints) -> QuantisedVectors:
        """The same rows, of which only the `present` sequence numbers are alive."""
        return replace(self, alive=np.isin(self.seqs, present))

    def floats(self, rows: Ints | slice) -> Floats:
        floats: Floats = self.codes[rows].astype(np.float32)
        return np.multiply(floats, self.scales[rows, None], out=floats)


def unit_vectors(blobs: list[bytes], dimensions: int) -> Floats:
    """Stored float32 vectors as rows of length one."""
    return normalised(np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), dimensions))


def normalised(matrix: Floats) -> Floats:
    """Rows scaled to length one; a row of zeros stays."""
    norms = np.sqrt(np.vecdot(matrix, matrix))[:, None]
    norms[norms == 0] = 1.0
    unit: Floats = (matrix / norms).astype(np.float32, copy=False)
    return unit


def quantised_int8(seqs: Ints, entries: Ints, matrix: Floats) -> QuantisedVectors:
    return _quantised(seqs, entries, matrix, np.int8)


def quantised_int16(seqs: Ints, entries: Ints, matrix: Floats) -> QuantisedVectors:
    return _quantised(seqs, entries, matrix, np.int16)


def _quantised(seqs: Ints, entries: Ints, matrix: Floats, form: type[np.int8] | type[np.int16]) -> QuantisedVectors:
    scales = (np.abs(matrix).max(axis=1, initial=0.0) / np.iinfo(form).max).astype(np.float32)
    scales[scales == 0] = 1.0
    codes = np.rint(matrix / scales[:, None]).astype(form)
    return QuantisedVectors(seqs, entries, codes, scales, np.ones(len(seqs), dtype=np.bool_))


def as_int8(rows: QuantisedVectors) -> QuantisedVectors:
    return replace(quantised_int8(rows.seqs, rows.entries, rows.floats(slice(None))), alive=rows.alive)


def joined(parts: list[QuantisedVectors]) -> QuantisedVectors:
    """All rows that are alive, of parts that have the same format."""
    kept = [part if part.alive.all() else part.only(part.alive) for part in parts]
    return QuantisedVectors(
        np.concatenate([part.seqs for part in kept]),
        np.concatenate([part.entries for part in kept]),
        np.concatenate([part.codes for part in kept], casting="no"),
        np.concatenate([part.scales for part in kept]),
        np.concatenate([part.alive for part in kept]),
    )


# Building the index


def projected(rows: QuantisedVectors, sizes: Sizes) -> QuantisedVectors:
    """The rows with a PCA projection, and in inverted lists if they are very many. Few rows stay as they are."""
    total = len(rows.seqs)
    if total <= sizes.small:
        return rows
    dice = np.random.default_rng(0)
    sample = rows.floats(np.sort(dice.choice(total, min(total, _SAMPLE), replace=False)))
    _, axes = np.linalg.eigh(np.cov(sample, rowvar=False))
    axes = np.ascontiguousarray(axes[:, : -_COMPONENTS - 1 : -1], dtype=np.float32)
    width = min(HEAD, axes.shape[1])
    columns = np.empty((width, total), dtype=np.float32)
    tail = np.empty((total, axes.shape[1] - width), dtype=np.int8)
    steps = np.maximum(np.abs(sample @ axes[:, width:]).max(axis=0) / 120, np.float32(1e-9))
    for at in range(0, total, _SAMPLE):
        piece = rows.floats(slice(at, at + _SAMPLE)) @ axes
        columns[:, at : at + _SAMPLE] = piece[:, :width].T
        tail[at : at + _SAMPLE] = np.clip(np.rint(piece[:, width:] / steps), -127, 127)
    if total < sizes.lists:
        return replace(rows, projection=Projection(axes, paired_columns(columns), tail, steps))
    members, centroids = _two_level_kmeans(rows, dice)
    order = np.argsort(members, kind="stable")
    starts = np.searchsorted(members[order], np.arange(centroids.shape[1] + 1)).astype(np.int64)
    lists = InvertedLists(centroids, starts)
    return replace(
        rows.only(order), projection=Projection(axes, paired_columns(columns[:, order]), tail[order], steps, lists)
    )


def _two_level_kmeans(rows: QuantisedVectors, dice: np.random.Generator) -> tuple[Ints, Floats]:
    """The list of each row, and the centroids: coarse clusters first, then fine ones in each of them.

    A row joins the nearest fine centroid of its few nearest coarse clusters. There are about as many lists as there
    are rows in a list.
    """
    total = len(rows.seqs)
    branches = max(2, round(total**0.25))
    coarse = _kmeans(rows, np.arange(total), branches, dice)
    nearest_coarse = _nearest_centroids(rows, coarse)
    best, members = np.full(total, -np.inf, dtype=np.float32), np.zeros(total, dtype=np.int64)
    centroids: list[Floats] = []
    for number in range(branches):
        inside = np.flatnonzero(nearest_coarse[:, 0] == number)
        if not len(inside):
            continue
        fine = _kmeans(rows, inside, branches, dice)
        around = np.flatnonzero((nearest_coarse == number).any(axis=1))
        for at in range(0, len(around), _SAMPLE):
            some = around[at : at + _SAMPLE]
            similarity = _similarity(rows.floats(some), fine)
            nearest = np.argmax(similarity, axis=1)
            reached = similarity[np.arange(len(some)), nearest]
            nearer = reached > best[some]
            best[some[nearer]] = reached[nearer]
            members[some[nearer]] = nearest[nearer] + sum(map(len, centroids))
        centroids.append(fine)
    return members, np.ascontiguousarray(np.concatenate(centroids).T)


def _kmeans(rows: QuantisedVectors, members: Ints, count: int, dice: np.random.Generator) -> Floats:
    """Centroids of a sample of the members."""
    count = min(count, len(members))
    sample = rows.floats(np.sort(dice.choice(members, min(len(members), _SAMPLE), replace=False)))
    centroids = sample[dice.choice(len(sample), count, replace=False)]
    for _ in range(_ROUNDS):
        nearest = np.argmax(_similarity(sample, centroids), axis=1)
        sizes = np.bincount(nearest, minlength=count)[:, None]
        sums = (nearest == np.arange(count)[:, None]).astype(np.float32) @ sample
        centroids = np.where(sizes > 0, sums / np.maximum(sizes, 1), centroids).astype(np.float32)
    return centroids


def _nearest_centroids(rows: QuantisedVectors, centroids: Floats) -> Ints:
    """For each row the numbers of its few nearest centroids, the nearest first."""
    count = min(_NEAREST_LISTS, len(centroids))
    out = np.empty((len(rows.seqs), count), dtype=np.int64)
    for at in range(0, len(out), _SAMPLE):
        similarity = _similarity(rows.floats(slice(at, at + _SAMPLE)), centroids)
        out[at : at + _SAMPLE] = np.argsort(-similarity, axis=1)[:, :count]
    return out


def _similarity(matrix: Floats, centroids: Floats) -> Floats:
    """Of each row to each centroid: the greatest value belongs to the centroid at the smallest distance."""
    found: Floats = matrix @ centroids.T - 0.5 * np.square(centroids).sum(axis=1)
    return found
