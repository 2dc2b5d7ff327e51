"""Vector search over partitions that are held in memory, each brought into step with the database before each use."""

from __future__ import annotations

import math
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lukasa.index import blobs, keyword, lookup
from lukasa.index.ann import (
    SCRATCH,
    USUAL,
    Floats,
    Ints,
    QuantisedVectors,
    Scored,
    Sizes,
    appended,
    as_int8,
    column_products,
    joined,
    positions_of,
    projected,
    quantised_int8,
    quantised_int16,
)
from lukasa.index.ann import (
    unit_vectors as unit_rows,
)
from lukasa.index.matches import VectorMatch
from lukasa.index.rows import SearchRows, VectorKey, VectorRow, VectorRows
from lukasa.model import system
from lukasa.model.arrays import np
from lukasa.model.selection import Selection
from lukasa.ports import EmbeddingModel, Vector

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PAGE = 8_192  # vectors that are loaded at a time
_WORTH_QUANTISING = 64  # rows
_REMEMBERED = 1_024  # float32 vectors that one search read and the next may want
_OFTEN = 16  # searches of a small partition after which its float32 vectors are loaded
_MORE = 4  # results beyond the limit that are compared again, so that int8 does not decide who is last


class FloatVectors(Struct, frozen=True):
    """Float32 vectors by sequence number, one in each column, of length one, so that a product is the cosine."""

    seqs: Ints
    entries: Ints
    columns: Floats

    @property
    def bytes(self) -> int:
        return sum((a if a.base is None else a.base).nbytes for a in (self.columns, self.seqs, self.entries))

    def floats(self, rows: Ints | slice) -> Floats:
        """These vectors, one in each row."""
        return np.ascontiguousarray(self.columns[:, rows].T)

    def search(self, query: Floats, limit: int, admitted: Ints | None) -> Scored:
        """The best rows by exact cosine."""
        found = Scored(np.clip(column_products(query, self.columns), -1.0, 1.0), self.entries, self.seqs)
        return (found if admitted is None else found.only(np.isin(self.entries, admitted))).best(limit)

    def plus(self, seqs: Ints, entries: Ints, matrix: Floats) -> FloatVectors:
        """These vectors and more. Only for the current ones: the spare space behind them is written to."""
        in_order = not len(seqs) or not len(self.seqs) or seqs[0] > self.seqs[-1]
        grown = FloatVectors(
            appended(self.seqs, seqs), appended(self.entries, entries), appended(self.columns, matrix.T)
        )
        return grown if in_order else grown.only(np.argsort(grown.seqs))

    def only(self, kept: NDArray[Any]) -> FloatVectors:
        return FloatVectors(self.seqs[kept], self.entries[kept], self.columns[:, kept].copy())


class PartitionVectors(Struct, frozen=True):
    """All vectors of one model in one partition: the quantised ones, and behind them the float32 ones."""

    removals: int
    last: int
    floats: FloatVectors
    quantised: QuantisedVectors | None = None

    @property
    def bytes(self) -> int:
        return self.floats.bytes + (self.quantised.bytes if self.quantised else 0)

    def search(self, query: Floats, limit: int, admitted: Ints | None) -> Scored:
        if self.quantised is None:
            return self.floats.search(query, limit, admitted)
        found = self.quantised.search(query, limit, admitted)
        if not len(self.floats.seqs):
            return found
        return found.plus(self.floats.search(query, limit, admitted)).best(limit)

    def vectors_of(self, entries: Ints) -> Iterator[tuple[int, Floats]]:
        """The vectors of those entries that are here in an exact form, each with its position among `entries`.

        An entry whose vector is out of order may be missed.
        """
        if self.quantised is not None and self.quantised.exact:
            yield from self.quantised.vectors_of(entries)
        if len(self.floats.seqs):
            positions, found = positions_of(entries, self.floats.entries)
            yield from zip(positions.tolist(), self.floats.floats(found), strict=True)

    @property
    def not_int8(self) -> int:
        """The number of rows that quantising to int8 would make smaller."""
        exact = self.quantised is not None and self.quantised.exact
        return len(self.floats.seqs) + (len(self.quantised.seqs) if self.quantised and exact else 0)

    def tidied(self, sizes: Sizes) -> PartitionVectors:
        """Quantised and projected, if it has grown enough."""
        if self.quantised is None:
            return self.quantise(sizes) if len(self.floats.seqs) > sizes.small else self
        tail = max(sizes.tail, len(self.quantised.seqs) // 8)
        return self.quantise(sizes) if len(self.floats.seqs) > tail else self

    def quantise(self, sizes: Sizes, *, smallest: bool = False) -> PartitionVectors:
        """All rows quantised: int16, or int8 if they are many, if some are int8 already, or for the `smallest` form."""
        had = self.quantised
        total = len(self.floats.seqs) + (len(had.seqs) if had else 0)
        int8 = smallest or total > sizes.large or (had is not None and not had.exact)
        form = quantised_int8 if int8 else quantised_int16
        parts = [form(self.floats.seqs, self.floats.entries, self.floats.floats(slice(None)))]
        if had is not None and had.exact and int8:
            had = as_int8(had)
        whole = joined(parts if had is None else [had, *parts])
        return replace(self, floats=_no_vectors(self.floats.columns.shape[0]), quantised=projected(whole, sizes))


def _no_vectors(dimensions: int) -> FloatVectors:
    empty = np.empty(0, dtype=np.int64)
    return FloatVectors(empty, empty, np.empty((dimensions, 0), dtype=np.float32))


def _arrays(found: list[VectorRow], dimensions: int) -> tuple[Ints, Ints, Floats]:
    seqs = np.array([row[0] for row in found], dtype=np.int64)
    entries = np.array([row[1] for row in found], dtype=np.int64)
    return seqs, entries, unit_rows([row[2] for row in found], dimensions)


class Searched(NamedTuple):
    """A partition as a search knows it, and the model asked for."""

    partition: int
    model: int
    dimensions: int
    removals: int
    size: int

    @property
    def key(self) -> VectorKey:
        return self.partition, self.model


class VectorIndex:
    """The vectors of a store's partitions in memory, by (partition, model), least recently used first.

    When memory is short, partitions are quantised to int8, then dropped. With `quantises=False` every vector stays
    float32, for callers that want all cosines and not only the best.

    A vector row never changes in place, so a sequence number that is still in the database still means the same
    vector: to catch up, compare sequence numbers, whichever process wrote or removed them.
    """

    def __init__(self, limit_bytes: int, *, quantises: bool = True, sizes: Sizes | None = None) -> None:
        self._limit = limit_bytes
        self._sizes = sizes or USUAL
        self._quantises = quantises
        self._renew()
        _LIVE.add(self)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[VectorKey, PartitionVectors] = OrderedDict()
        self._bytes = 0  # of all partitions
        self._asked: set[VectorKey] = set()
        self._searches: dict[VectorKey, int] = {}  # of small partitions that are held as their blobs are

    def after_fork(self) -> None:
        self._renew()

    def nearest(
        self,
        rows: VectorRows,
        where: Searched,
        query: Floats,
        limit: int,
        admitted: Ints | None = None,
        *,
        exact: bool = False,
    ) -> list[tuple[float, int]]:
        """The best as (cosine, entry row); among equals the newer entry. `exact` compares every float32 vector."""
        if exact:
            found = self._scan(rows, where, query, limit, admitted)
        elif self._is_first_search(rows, where):
            found = self._search_once(rows, where, query, limit, admitted)
        else:
            held = self.partition(rows, where)
            rounded = held.quantised is not None and not held.quantised.exact
            found = held.search(query, limit + _MORE if rounded else limit, admitted)
            if rounded:
                found = self._rescored(rows, where, found, query).best(limit)
        return list(zip(found.cosines.tolist(), found.entries.tolist(), strict=True))

    def nearest_of_each(
        self, rows: VectorRows, where: Searched, queries: Sequence[Floats], limit: int
    ) -> list[list[tuple[float, int]]]:
        """The best of each query; see `nearest`."""
        return [self.nearest(rows, where, query, limit) for query in queries]

    def _is_first_search(self, rows: VectorRows, where: Searched) -> bool:
        """Whether a large partition is searched for the first time: a process that asks once need not keep it."""
        few = blobs.SIZE if rows.blobs else self._sizes.large
        if where.size <= few or where.key in self._asked or where.key in self._held:
            return False
        self._asked.add(where.key)
        return True

    def _scan(
        self, rows: VectorRows, where: Searched, query: Floats, limit: int, admitted: Ints | None, last: int = 0
    ) -> Scored:
        """Search by every float32 vector after the last."""
        found = _no_vectors(where.dimensions).search(query, limit, admitted)
        for page in self._pages(rows, where, last):
            some = _no_vectors(where.dimensions).plus(*page)
            found = found.plus(some.search(query, limit, admitted)).best(limit)
        return found

    def _search_once(
        self, rows: VectorRows, where: Searched, query: Floats, limit: int, admitted: Ints | None
    ) -> Scored:
        """Search by the vector blobs and the vectors behind them, without keeping the partition.

        A small partition stays in the thread's scratch memory until another one is searched.
        """
        if rows.blobs and where.size <= self._sizes.small:
            passing, owner = rows.cache.snapshot(_PASSING, rows), object()
            passing.clear()
            into = SCRATCH.int16s(where.size, where.dimensions, owner)
            held = blobs.read_into(rows, where.key, where.dimensions, into)
            if held is not None:
                none = _no_vectors(where.dimensions)
                passing[where.key] = owner, PartitionVectors(where.removals, 0, none, held)
                return held.search(query, limit, admitted)
        last, parts = 0, []
        for page in blobs.pages(rows, where.key, where.dimensions) if rows.blobs else ():
            parts.append(page.vectors.search(query, limit, admitted))
            last = page.last
        found = self._scan(rows, where, query, limit, admitted, last)
        for part in parts:
            found = found.plus(part).best(limit)
        return found

    def _from_blobs(self, rows: VectorRows, where: Searched) -> PartitionVectors:
        """A partition as its blobs have it, int8 if it is large. Vectors behind the blobs get the same form, or stay
        float32 in a small partition."""
        large, last, parts = where.size > self._sizes.large, 0, []
        for page in blobs.pages(rows, where.key, where.dimensions) if rows.blobs else ():
            parts.append(as_int8(page.vectors) if large else page.vectors)
            last = page.last
        floats = _no_vectors(where.dimensions)
        for some in self._pages(rows, where, last):
            if where.size > self._sizes.small:
                parts.append((quantised_int8 if large else quantised_int16)(*some))
            else:
                floats = floats.plus(*some)
        quantised = joined(parts) if len(parts) > 1 else parts[0] if parts else None
        return PartitionVectors(where.removals, 0, floats, quantised)

    def _pages(self, rows: VectorRows, where: Searched, last: int = 0) -> Iterator[tuple[Ints, Ints, Floats]]:
        more = True
        while more and (found := rows.vectors_after(where.key, last, _PAGE)):
            yield _arrays(found, where.dimensions)
            last, more = found[-1][0], len(found) == _PAGE

    def _rescored(self, rows: VectorRows, where: Searched, found: Scored, query: Floats) -> Scored:
        """The same rows by their float32 vectors, which are remembered for `recent`."""
        seqs, entries, matrix = _arrays(rows.vectors_by_seq(found.seqs.tolist()), where.dimensions)
        recent = self.recent(rows, where.model)
        if len(recent) > _REMEMBERED:
            recent.clear()
        recent.update(zip(entries.tolist(), matrix, strict=True))
        return Scored(np.clip(matrix @ query, -1.0, 1.0), entries, seqs)

    def partition(self, rows: VectorRows, where: Searched) -> PartitionVectors:
        """The partition as the snapshot of `rows` has it."""
        answers = rows.cache.snapshot(f"{rows.name} in step", rows)
        with self._lock:
            held = self._held.get(where.key)
            if held is None or self._should_reload(held, where):
                held = self._loaded(rows, where, rows.last_seq(where.key))
            elif (held.removals, held.last) != answers.get(where.key):
                grown = self._caught_up(rows, held, where)
                held = grown.tidied(self._sizes) if self._quantises and grown is not held else grown
            answers[where.key] = held.removals, held.last
            self._hold(where.key, held)
            self._held.move_to_end(where.key)
            self._free_memory()
            return held

    def recent(self, rows: VectorRows, model: int) -> dict[int, Floats]:
        """Unit vectors by entry row that a search of this snapshot has read."""
        found: dict[int, Floats] = rows.cache.snapshot(f"{rows.name} read of model {model}", rows)
        return found

    def in_step(self, rows: VectorRows, keys: Iterable[VectorKey]) -> Iterator[PartitionVectors]:
        """Of these partitions, those that a search has brought into step with this very snapshot."""
        stamps, passing = rows.cache.snapshot(f"{rows.name} in step", rows), rows.cache.snapshot(_PASSING, rows)
        for key in keys:
            held = self._held.get(key)
            if held is not None and (held.removals, held.last) == stamps.get(key):
                yield held
            elif key in passing and passing[key][0] is SCRATCH.owner:  # else another partition is there by now
                yield passing[key][1]

    def _should_reload(self, held: PartitionVectors, where: Searched) -> bool:
        """Whether a partition that is held as its blobs are has outgrown that, or is searched often enough to hold its
        float32 vectors: a search turns int16 into floats each time."""
        if held.quantised is None or held.quantised.projection is not None:
            return False
        if where.size > self._sizes.small:
            return len(held.quantised.seqs) + len(held.floats.seqs) > self._sizes.small
        searches = self._searches[where.key] = self._searches.get(where.key, 0) + 1
        return searches >= _OFTEN

    def _loaded(self, rows: VectorRows, where: Searched, last: int) -> PartitionVectors:
        """From blobs, which load fastest, with a projection if it is large; or as float32 if it is small and searched
        often."""
        often = self._searches.pop(where.key, 0) >= _OFTEN
        if self._quantises and where.size > self._sizes.small:
            found = self._from_blobs(rows, where)
            return replace(found, last=last, quantised=found.quantised and projected(found.quantised, self._sizes))
        if rows.blobs and where.size > blobs.SIZE and not often:
            return replace(self._from_blobs(rows, where), last=last)
        floats = _no_vectors(where.dimensions)
        for page in self._pages(rows, where):
            floats = floats.plus(*page)
        return PartitionVectors(where.removals, last, floats)

    def _caught_up(self, rows: VectorRows, held: PartitionVectors, where: Searched) -> PartitionVectors:
        """The partition in step with the snapshot. Mostly vectors were added behind the last, or none; if the last one
        is not there, the snapshot is an earlier one."""
        if held.removals == where.removals and (added := self._added(rows, where, held.last)) is not None:
            seqs = added[0]
            return replace(held, last=int(seqs[-1]), floats=held.floats.plus(*added)) if len(seqs) else held
        present = np.fromiter(rows.seqs(where.key), dtype=np.int64)
        quantised = None if held.quantised is None else held.quantised.marked(present)
        had = held.floats.seqs if quantised is None else np.concatenate([held.floats.seqs, quantised.seqs])
        new = np.setdiff1d(present, had)
        found = rows.vectors_by_seq(new.tolist()) if len(new) else []
        floats = held.floats.only(np.isin(held.floats.seqs, present)).plus(*_arrays(found, where.dimensions))
        return PartitionVectors(where.removals, int(present[-1]) if len(present) else 0, floats, quantised)

    def _added(self, rows: VectorRows, where: Searched, last: int) -> tuple[Ints, Ints, Floats] | None:
        """The vectors behind the last; None if that one is not there."""
        found = rows.vectors_after(where.key, last - 1, -1)
        if last and (not found or found[0][0] != last):
            return None
        return _arrays(found[1:] if last else found, where.dimensions)

    def _hold(self, key: VectorKey, new: PartitionVectors) -> None:
        """Keep a partition, and the sum of all sizes with it: adding up a thousand would cost more than a search."""
        had = self._held.get(key)
        if had is not new:
            self._bytes += new.bytes - (had.bytes if had is not None else 0)
            self._held[key] = new

    def _free_memory(self) -> None:
        for key, held in list(self._held.items())[:-1] if self._bytes > self._limit else ():
            if self._quantises and self._bytes > self._limit and held.not_int8 >= _WORTH_QUANTISING:
                self._hold(key, held.quantise(self._sizes, smallest=True))
        while self._bytes > self._limit and len(self._held) > 1:
            _, held = self._held.popitem(last=False)
            self._bytes -= held.bytes

    def clear(self) -> None:
        with self._lock:
            self._held.clear()
            self._bytes = 0


# Questions of a store


def nearest(
    rows: SearchRows,
    index: VectorIndex,
    selection: Selection,
    model: EmbeddingModel,
    vector: Vector,
    limit: int,
    *,
    exact: bool = False,
) -> list[VectorMatch]:
    """The best cosines first, among vectors of exactly this model."""
    number = rows.model_number(model)
    if number is None or limit < 1:
        return []
    query = np.asarray(vector, dtype=np.float32)
    query = query / (math.sqrt(query @ query) or 1.0)
    table, best = rows.entry_vectors(), []
    for partition in keyword.partitions_of(rows, selection):
        where = Searched(partition.id, number, model.dimensions, partition.removals, partition.size)
        admitted = None
        if selection.filters:
            admitted = np.fromiter(rows.admitted(partition.id, selection.filters), dtype=np.int64)
        best += index.nearest(table, where, query, limit, admitted, exact=exact)
    nearest = sorted(best, reverse=True)[:limit]
    found = keyword.matched(rows, [row for _, row in nearest])
    return [VectorMatch(found[row].candidate, cosine) for cosine, row in nearest]


def unit_vectors(rows: SearchRows, index: VectorIndex, ids: Sequence[str], model: EmbeddingModel) -> dict[str, Vector]:
    """Vectors of length one: from memory where a search of this snapshot has them, as it mostly has."""
    number = rows.model_number(model)
    if number is None:
        return {}
    table = rows.entry_vectors()
    asked, recent = {id: row for id, (_, row) in lookup.versions(rows, ids).items()}, index.recent(table, number)
    found: dict[str, Vector] = {id: recent[row] for id, row in asked.items() if row in recent}
    missing = [id for id in asked if id not in found]
    if missing:
        wanted = np.array([asked[id] for id in missing], dtype=np.int64)
        keys = [(partition.id, number) for partition in keyword.last_partitions(rows)]
        for held in index.in_step(table, keys):
            found |= {missing[position]: one for position, one in held.vectors_of(wanted)}
    if len(found) < len(asked):
        names = {row: id for id, row in asked.items() if id not in found}
        if stored := rows.vectors_of(list(names), number):
            unit = unit_rows([blob for _, blob in stored], model.dimensions)
            found |= zip([names[row] for row, _ in stored], unit, strict=True)
    return found


def vectors(rows: SearchRows, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
    """Vectors as they were given, to the bit."""
    number = rows.model_number(model)
    if number is None:
        return {}
    names = {row: id for id, (_, row) in lookup.versions(rows, ids).items()}
    return {names[row]: np.frombuffer(blob, dtype="<f4") for row, blob in rows.vectors_of(list(names), number)}


_PASSING = "partition in scratch memory"
_LIVE: weakref.WeakSet[VectorIndex] = weakref.WeakSet()


def _after_fork() -> None:
    for index in list(_LIVE):
        index.after_fork()


system.at_fork(after_in_child=_after_fork)
