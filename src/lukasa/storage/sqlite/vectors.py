"""Vectors in RAM: a shelf for each partition and model, brought into step with the database before each use."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.arrays import np
from lukasa.storage.sqlite import packs, sql
from lukasa.storage.sqlite.known import known
from lukasa.storage.sqlite.packed import (
    BENCH,
    USUAL,
    Floats,
    Found,
    Ints,
    Packed,
    Sizes,
    across,
    appended,
    imaged,
    in_bytes,
    joined,
    normal,
    packed,
    paired,
    standing,
)
from lukasa.storage.sqlite.query import Row, all_rows, one_value
from lukasa.storage.sqlite.rows import json_list

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PIECE = 8_192  # rows that are loaded at a time
_WORTH = 64  # rows from which packing saves something
_REMEMBERED = 1_024  # vectors that were read for one question and may be asked for by the next
_OFTEN = 16  # questions to a small room, from which on it is worth having its vectors as they are
_PASSING = "in passing"  # what is known of a state: the room that was asked last, if it is not kept
_MORE = 4  # places more than asked that are compared again, so that bytes do not decide who is last


class Block(Struct, frozen=True):
    """Vectors as they are, by seq, a column for each; of length one, so a product is the cosine."""

    seqs: Ints
    entries: Ints
    columns: Floats

    @property
    def bytes(self) -> int:
        return sum((a if a.base is None else a.base).nbytes for a in (self.columns, self.seqs, self.entries))

    def floats(self, rows: Ints | slice) -> Floats:
        """A row for each of these vectors."""
        return np.ascontiguousarray(self.columns[:, rows].T)

    def near(self, query: Floats, limit: int, admitted: Ints | None) -> Found:
        """The best rows by their exact cosines."""
        found = Found(np.clip(across(query, self.columns), -1.0, 1.0), self.entries, self.seqs)
        return (found if admitted is None else found.only(np.isin(self.entries, admitted))).best(limit)

    def plus(self, seqs: Ints, entries: Ints, matrix: Floats) -> Block:
        """With more rows. Only for the block that is current: the spare room behind its rows is written to."""
        in_order = not len(seqs) or not len(self.seqs) or seqs[0] > self.seqs[-1]
        grown = Block(appended(self.seqs, seqs), appended(self.entries, entries), appended(self.columns, matrix.T))
        return grown if in_order else grown.only(np.argsort(grown.seqs))

    def only(self, kept: NDArray[Any]) -> Block:
        return Block(self.seqs[kept], self.entries[kept], self.columns[:, kept].copy())


class Shelf(Struct, frozen=True):
    """All vectors of one model in one partition: those that are packed, and those as they are."""

    removals: int
    last: int
    rows: Block
    packed: Packed | None = None

    @property
    def bytes(self) -> int:
        return self.rows.bytes + (self.packed.bytes if self.packed else 0)

    def near(self, query: Floats, limit: int, admitted: Ints | None) -> Found:
        if self.packed is None:
            return self.rows.near(query, limit, admitted)
        found = self.packed.near(query, limit, admitted)
        return found.plus(self.rows.near(query, limit, admitted)).best(limit) if len(self.rows.seqs) else found

    def of(self, entries: Ints) -> Iterator[tuple[int, Floats]]:
        """The vectors of some entries, each with its place among these, as far as they are here as they are and stand
        in the order of entries, as nearly all do."""
        if self.packed is not None and self.packed.exact:
            yield from self.packed.of(entries)
        if len(self.rows.seqs):
            places, found = standing(self.rows.entries, entries)
            yield from zip(places.tolist(), self.rows.floats(found), strict=True)

    @property
    def loose(self) -> int:
        """Rows that are not in bytes."""
        return len(self.rows.seqs) + (len(self.packed.seqs) if self.packed and self.packed.exact else 0)

    def tidy(self, sizes: Sizes) -> Shelf:
        """With images, if it has grown or its tail is long; in bytes, if it is large."""
        if self.packed is None:
            return self.pack(sizes) if len(self.rows.seqs) > sizes.small else self
        return self.pack(sizes) if len(self.rows.seqs) > max(sizes.tail, len(self.packed.seqs) // 8) else self

    def pack(self, sizes: Sizes, *, spare: bool = False) -> Shelf:
        """With all rows in one order, each number two bytes; or one if they are many, to `spare` memory, or because
        some are so already."""
        had = self.packed
        total = len(self.rows.seqs) + (len(had.seqs) if had else 0)
        form = packed if spare or total > sizes.large or (had is not None and not had.exact) else paired
        parts = [form(self.rows.seqs, self.rows.entries, self.rows.floats(slice(None)))]
        if had is not None and had.exact and form is packed:
            had = in_bytes(had)
        whole = joined(parts if had is None else [had, *parts])
        return replace(self, rows=_none(self.rows.columns.shape[0]), packed=imaged(whole, sizes))


def _none(dimensions: int) -> Block:
    empty = np.empty(0, dtype=np.int64)
    return Block(empty, empty, np.empty((dimensions, 0), dtype=np.float32))


def _load(found: list[Row], dimensions: int) -> tuple[Ints, Ints, Floats]:
    seqs = np.array([row[0] for row in found], dtype=np.int64)
    entries = np.array([row[1] for row in found], dtype=np.int64)
    return seqs, entries, normal([row[2] for row in found], dimensions)


class Statements(NamedTuple):
    """The questions to one table of vectors: its last seq, all seqs, rows after a seq, rows by seq; and whether there
    are packs of it."""

    last: str
    seqs: str
    since: str
    by_seq: str
    packs: bool = False


OF_ENTRIES = Statements(sql.LAST_VECTOR, sql.VECTOR_SEQS, sql.VECTORS_SINCE, sql.VECTORS_BY_SEQ, packs=True)
OF_ITEMS = Statements(sql.LAST_ITEM_VECTOR, sql.ITEM_VECTOR_SEQS, sql.ITEM_VECTORS_SINCE, sql.ITEM_VECTORS_BY_SEQ)


class Where(NamedTuple):
    """A partition as a search knows it, and the model asked for."""

    partition: int
    model: int
    dimensions: int
    removals: int
    size: int

    @property
    def place(self) -> tuple[int, int]:
        return self.partition, self.model


class VectorCache:
    """Shelves by (partition, model). When memory is short, the least recently used are packed, then given up; where
    every cosine is wanted and not the best alone, nothing `packs`.

    A vector row is never changed in place, so a seq that is still in the database still means the same bytes:
    catching up is a matter of comparing seqs, whichever process wrote or removed them.
    """

    def __init__(
        self, limit_bytes: int, statements: Statements = OF_ENTRIES, *, packs: bool = True, sizes: Sizes = USUAL
    ) -> None:
        self._limit = limit_bytes
        self._sizes = sizes
        self._packs = packs
        self._sql = statements
        self._renew()
        _LIVE.add(self)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._shelves: OrderedDict[tuple[int, int], Shelf] = OrderedDict()
        self._bytes = 0  # of all shelves
        self._asked: set[tuple[int, int]] = set()
        self._again: dict[tuple[int, int], int] = {}  # how often a small room was asked that is as its packs have it

    def after_fork(self) -> None:
        self._renew()

    def nearest(
        self,
        db: apsw.Connection,
        where: Where,
        query: Floats,
        limit: int,
        admitted: Ints | None = None,
        *,
        exact: bool = False,
    ) -> list[tuple[float, int]]:
        """The best as (cosine, entry row); among equals the newer entry. Exact looks at every vector as it is."""
        if exact:
            found = self._through(db, where, query, limit, admitted)
        elif self._in_passing(where):
            found = self._passing(db, where, query, limit, admitted)
        else:
            shelf = self.shelf(db, where)
            rounded = shelf.packed is not None and not shelf.packed.exact
            found = shelf.near(query, limit + _MORE if rounded else limit, admitted)
            if rounded:
                found = self._compared(db, where, found, query).best(limit)
        return list(zip(found.cosines.tolist(), found.entries.tolist(), strict=True))

    def _in_passing(self, where: Where) -> bool:
        """Whether a room has not been asked yet: a process that asks once need neither put it in order nor keep it."""
        few = packs.SIZE if self._sql.packs else self._sizes.large
        if where.size <= few or where.place in self._asked or where.place in self._shelves:
            return False
        self._asked.add(where.place)
        return True

    def _through(
        self, db: apsw.Connection, where: Where, query: Floats, limit: int, admitted: Ints | None, last: int = 0
    ) -> Found:
        """By every vector as it is, or by those after the last."""
        found = _none(where.dimensions).near(query, limit, admitted)
        for piece in self._pieces(db, where, last):
            block = _none(where.dimensions).plus(*piece)
            found = found.plus(block.near(query, limit, admitted)).best(limit)
        return found

    def _passing(self, db: apsw.Connection, where: Where, query: Floats, limit: int, admitted: Ints | None) -> Found:
        """By the packs of a room, and by what is loose as it is. A small room is at hand until another one is asked."""
        if self._sql.packs and where.size <= self._sizes.small:
            passing, owner = known(db).of(_PASSING), object()
            passing.clear()
            into = BENCH.pairs(where.size, where.dimensions, owner)
            held = packs.passing(db, where.place, where.dimensions, into)
            if held is not None:
                passing[where.place] = owner, Shelf(where.removals, 0, _none(where.dimensions), held)
                return held.near(query, limit, admitted)
        last, parts = 0, []
        for kept in packs.pieces(db, where.place, where.dimensions) if self._sql.packs else ():
            parts.append(kept.rows.near(query, limit, admitted))
            last = kept.last
        found = self._through(db, where, query, limit, admitted, last)
        for part in parts:
            found = found.plus(part).best(limit)
        return found

    def _packs_of(self, db: apsw.Connection, where: Where) -> Shelf:
        """The room as it is in packs, with single bytes if it is large. What is loose is put behind that in the same
        form, or stays as it is in a small room."""
        large, last, parts = where.size > self._sizes.large, 0, []
        for kept in packs.pieces(db, where.place, where.dimensions) if self._sql.packs else ():
            parts.append(in_bytes(kept.rows) if large else kept.rows)
            last = kept.last
        rows = _none(where.dimensions)
        for piece in self._pieces(db, where, last):
            if where.size > self._sizes.small:
                parts.append((packed if large else paired)(*piece))
            else:
                rows = rows.plus(*piece)
        return Shelf(where.removals, 0, rows, joined(parts) if len(parts) > 1 else parts[0] if parts else None)

    def _pieces(self, db: apsw.Connection, where: Where, last: int = 0) -> Iterator[tuple[Ints, Ints, Floats]]:
        whole = True
        while whole and (found := all_rows(db, self._sql.since, (*where.place, last, _PIECE))):
            yield _load(found, where.dimensions)
            last, whole = found[-1][0], len(found) == _PIECE

    def _compared(self, db: apsw.Connection, where: Where, found: Found, query: Floats) -> Found:
        """The same rows by their vectors as they are. Some of these are asked for next, to be compared with each
        other, so they are remembered."""
        seqs, entries, matrix = self._read(db, found.seqs, where.dimensions)
        told = self.as_they_are(db, where.model)
        if len(told) > _REMEMBERED:
            told.clear()
        told.update(zip(entries.tolist(), matrix, strict=True))
        return Found(np.clip(matrix @ query, -1.0, 1.0), entries, seqs)

    def _read(self, db: apsw.Connection, seqs: Ints, dimensions: int) -> tuple[Ints, Ints, Floats]:
        return _load(all_rows(db, self._sql.by_seq, (json_list(seqs.tolist()),)), dimensions)

    def since(self, db: apsw.Connection, where: Where, last: int) -> tuple[Ints, Ints, Floats] | None:
        """What came behind a vector; None if that one is not there, for then this state is an earlier one."""
        found = all_rows(db, self._sql.since, (*where.place, last - 1, -1))
        if last and (not found or found[0][0] != last):
            return None
        return _load(found[1:] if last else found, where.dimensions)

    def shelf(self, db: apsw.Connection, where: Where) -> Shelf:
        """The shelf as of the read transaction that `db` is in."""
        answers = known(db).of(self._sql.last)
        with self._lock:
            shelf = self._shelves.get(where.place)
            if shelf is None or self._worn(shelf, where):
                shelf = self._loaded(db, where, self._last(db, where))
            elif (shelf.removals, shelf.last) != answers.get(where.place):  # else it is as this state has it
                grown = self._caught_up(db, shelf, where)
                shelf = grown.tidy(self._sizes) if self._packs and grown is not shelf else grown
            answers[where.place] = shelf.removals, shelf.last
            self._hold(where.place, shelf)
            self._shelves.move_to_end(where.place)
            self._spare()
            return shelf

    def _last(self, db: apsw.Connection, where: Where) -> int:
        return int(one_value(db, self._sql.last, where.place))

    def as_they_are(self, db: apsw.Connection, model: int) -> dict[int, Floats]:
        """Vectors by entry that a search of the state that `db` sees had to read, of length one."""
        told: dict[int, Floats] = known(db).of(f"{self._sql.by_seq} {model}")
        return told

    def at_hand(self, db: apsw.Connection, places: Iterable[tuple[int, int]]) -> Iterator[Shelf]:
        """Of these places, the shelves that a search has looked at in the very state that `db` sees."""
        stamps, passing = known(db).of(self._sql.last), known(db).of(_PASSING)
        for place in places:
            shelf = self._shelves.get(place)
            if shelf is not None and (shelf.removals, shelf.last) == stamps.get(place):
                yield shelf
            elif place in passing and passing[place][0] is BENCH.owner:  # else another room stands there now
                yield passing[place][1]

    def _worn(self, shelf: Shelf, where: Where) -> bool:
        """Whether a room that is as its packs have it, as small ones are, is no longer small, or has been asked so
        often that it is better loaded as it is: bytes are made numbers again by every question."""
        if shelf.packed is None or shelf.packed.images is not None:
            return False
        if where.size > self._sizes.small:
            return len(shelf.packed.seqs) + len(shelf.rows.seqs) > self._sizes.small
        asked = self._again[where.place] = self._again.get(where.place, 0) + 1
        return asked >= _OFTEN

    def _loaded(self, db: apsw.Connection, where: Where, last: int) -> Shelf:
        """From packs, as these are read so soon; with images if it is a large room. A small one that has been asked
        often is loaded as it is."""
        often = self._again.pop(where.place, 0) >= _OFTEN
        if self._packs and where.size > self._sizes.small:
            found = self._packs_of(db, where)
            return replace(found, last=last, packed=found.packed and imaged(found.packed, self._sizes))
        if self._sql.packs and where.size > packs.SIZE and not often:
            return replace(self._packs_of(db, where), last=last)
        rows = _none(where.dimensions)
        for piece in self._pieces(db, where):
            rows = rows.plus(*piece)
        return Shelf(where.removals, last, rows)

    def _caught_up(self, db: apsw.Connection, shelf: Shelf, where: Where) -> Shelf:
        """As the state that `db` sees has it. Mostly some have come behind the last, or none; where that one is not
        there, this state is an earlier one."""
        if shelf.removals == where.removals and (come := self.since(db, where, shelf.last)) is not None:
            seqs = come[0]
            return replace(shelf, last=int(seqs[-1]), rows=shelf.rows.plus(*come)) if len(seqs) else shelf
        present = np.fromiter((seq for (seq,) in all_rows(db, self._sql.seqs, where.place)), dtype=np.int64)
        kept = None if shelf.packed is None else shelf.packed.without(present)
        had = shelf.rows.seqs if kept is None else np.concatenate([shelf.rows.seqs, kept.seqs])
        added = np.setdiff1d(present, had)
        found = all_rows(db, self._sql.by_seq, (json_list(added.tolist()),)) if len(added) else []
        rows = shelf.rows.only(np.isin(shelf.rows.seqs, present)).plus(*_load(found, where.dimensions))
        return Shelf(where.removals, int(present[-1]) if len(present) else 0, rows, kept)

    def _hold(self, place: tuple[int, int], shelf: Shelf) -> None:
        """With the sum of all kept up: to add up a thousand shelves would cost more than what is asked of one."""
        had = self._shelves.get(place)
        if had is not shelf:
            self._bytes += shelf.bytes - (had.bytes if had is not None else 0)
            self._shelves[place] = shelf

    def _spare(self) -> None:
        for place, shelf in list(self._shelves.items())[:-1] if self._bytes > self._limit else ():
            if self._packs and self._bytes > self._limit and shelf.loose >= _WORTH:
                self._hold(place, shelf.pack(self._sizes, spare=True))
        while self._bytes > self._limit and len(self._shelves) > 1:
            _, shelf = self._shelves.popitem(last=False)
            self._bytes -= shelf.bytes

    def clear(self) -> None:
        with self._lock:
            self._shelves.clear()
            self._bytes = 0


_LIVE: weakref.WeakSet[VectorCache] = weakref.WeakSet()


def _after_fork() -> None:
    for cache in list(_LIVE):
        cache.after_fork()


os.register_at_fork(after_in_child=_after_fork)
