"""Vectors in RAM: one block for each partition and model, brought into step with the database before each use."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import apsw

from mnemon.adapters.store.sqlite import sql
from mnemon.adapters.store.sqlite.known import known
from mnemon.adapters.store.sqlite.query import Row, all_rows, one_value
from mnemon.adapters.store.sqlite.rows import json_list
from mnemon.model.arrays import np
from mnemon.model.frozen import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Ints: TypeAlias = "NDArray[np.int64]"
_Floats: TypeAlias = "NDArray[np.float32]"


@dataclass(frozen=True, slots=True)
class Block:
    """All vectors of one model in one partition, by seq; rows are of length one, so a product is the cosine."""

    removals: int
    seqs: _Ints
    entries: _Ints
    matrix: _Floats

    @property
    def last(self) -> int:
        return int(self.seqs[-1]) if len(self.seqs) else 0

    @property
    def bytes(self) -> int:
        return sum((a if a.base is None else a.base).nbytes for a in (self.matrix, self.seqs, self.entries))

    def top(self, query: _Floats, limit: int, mask: NDArray[np.bool_] | None) -> list[tuple[float, int]]:
        """The best rows as (cosine, entry row); among equals the newer entry."""
        # Row by row: a product of the whole matrix wakes every core, and waiting for one another costs them more
        # than the product.
        cosines = np.clip(np.vecdot(self.matrix, query), -1.0, 1.0)
        entries = self.entries
        if mask is not None:
            cosines, entries = cosines[mask], entries[mask]
        if limit < len(cosines):
            # Everything that reaches the last place, so that ties are decided by age and not by position.
            floor = np.partition(cosines, len(cosines) - limit)[len(cosines) - limit]
            reached = cosines >= floor
            cosines, entries = cosines[reached], entries[reached]
        order = np.lexsort((-entries, -cosines))[:limit]
        return list(zip(cosines[order].tolist(), entries[order].tolist(), strict=True))

    def plus(self, removals: int, seqs: _Ints, entries: _Ints, matrix: _Floats) -> Block:
        """With more rows. Only for the block that is current: the spare room behind its rows is written to."""
        appended = Block(
            removals, _appended(self.seqs, seqs), _appended(self.entries, entries), _appended(self.matrix, matrix)
        )
        in_order = not len(seqs) or seqs[0] > self.last
        return appended if in_order else appended.only(np.argsort(appended.seqs))

    def only(self, kept: NDArray[Any]) -> Block:
        return Block(self.removals, self.seqs[kept], self.entries[kept], self.matrix[kept])


def _appended(view: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """`view` and `rows` as one array, in place where the array behind the view has room for them."""
    size, total = len(view), len(view) + len(rows)
    whole = view.base
    if whole is None or len(whole) < total:
        whole = np.empty((total + total // 4 + 16, *view.shape[1:]), dtype=view.dtype)
        whole[:size] = view
    whole[size:total] = rows
    return whole[:total]


def _load(found: list[Row], dimensions: int) -> tuple[_Ints, _Ints, _Floats]:
    seqs = np.array([row[0] for row in found], dtype=np.int64)
    entries = np.array([row[1] for row in found], dtype=np.int64)
    matrix = np.frombuffer(b"".join([row[2] for row in found]), dtype="<f4").reshape(len(found), dimensions)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    norms[norms == 0] = 1.0
    return seqs, entries, (matrix / norms).astype(np.float32, copy=False)


class Statements(NamedTuple):
    """The questions to one table of vectors: its last seq, all seqs, rows after a seq, rows by seq."""

    last: str
    seqs: str
    since: str
    by_seq: str


OF_ENTRIES = Statements(sql.LAST_VECTOR, sql.VECTOR_SEQS, sql.VECTORS_SINCE, sql.VECTORS_BY_SEQ)
OF_ITEMS = Statements(sql.LAST_ITEM_VECTOR, sql.ITEM_VECTOR_SEQS, sql.ITEM_VECTORS_SINCE, sql.ITEM_VECTORS_BY_SEQ)


class VectorCache:
    """Blocks by (partition, model), the least recently used given up first.

    A vector row is never changed in place, so a seq that is still in the database still means the same bytes:
    catching up is a matter of comparing seqs, whichever process wrote or removed them.
    """

    def __init__(self, limit_bytes: int, statements: Statements = OF_ENTRIES) -> None:
        self._limit = limit_bytes
        self._sql = statements
        self._renew()
        _LIVE.add(self)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._blocks: OrderedDict[tuple[int, int], Block] = OrderedDict()

    def after_fork(self) -> None:
        self._renew()

    def block(self, db: apsw.Connection, partition: int, removals: int, model: int, dimensions: int) -> Block:
        """The block as of the read transaction that `db` is in."""
        place = (partition, model)
        answers = known(db).of(self._sql.last)
        if place not in answers:
            answers[place] = int(one_value(db, self._sql.last, place))
        last = answers[place]
        with self._lock:
            block = self._blocks.get(place)
            if block is None:
                block = Block(removals, *_load(all_rows(db, self._sql.since, (*place, 0)), dimensions))
            elif (block.removals, block.last) != (removals, last):
                block = self._caught_up(db, block, place, removals, last, dimensions)
            self._blocks[place] = block
            self._blocks.move_to_end(place)
            self._evict()
            return block

    def _caught_up(
        self, db: apsw.Connection, block: Block, place: tuple[int, int], removals: int, last: int, dimensions: int
    ) -> Block:
        if block.removals == removals and block.last < last:
            return block.plus(removals, *_load(all_rows(db, self._sql.since, (*place, block.last)), dimensions))
        present = np.fromiter((seq for (seq,) in all_rows(db, self._sql.seqs, place)), dtype=np.int64)
        added = np.setdiff1d(present, block.seqs, assume_unique=True)
        rows = all_rows(db, self._sql.by_seq, (json_list(added.tolist()),)) if len(added) else []
        return block.only(np.isin(block.seqs, present)).plus(removals, *_load(rows, dimensions))

    def _evict(self) -> None:
        total = sum(block.bytes for block in self._blocks.values())
        while total > self._limit and len(self._blocks) > 1:
            _, block = self._blocks.popitem(last=False)
            total -= block.bytes

    def clear(self) -> None:
        with self._lock:
            self._blocks.clear()


_LIVE: weakref.WeakSet[VectorCache] = weakref.WeakSet()


def _after_fork() -> None:
    for cache in list(_LIVE):
        cache.after_fork()


os.register_at_fork(after_in_child=_after_fork)
