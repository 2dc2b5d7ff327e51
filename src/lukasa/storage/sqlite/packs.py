"""Packs: the vectors of a place with two bytes for each number, many in a row of the database, so that a process that
has just begun reads a place in a few pieces instead of vector by vector.

Derived and always in step: the transaction that adds vectors puts them into packs as soon as enough of them are loose,
and the one that removes a vector takes it out of its pack. The last pack grows until it is full. What is not in a pack
comes after all that is.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import apsw

from lukasa.model.arrays import np
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.known import LIMIT, Handle
from lukasa.storage.sqlite.packed import Packed, normal, paired
from lukasa.storage.sqlite.query import Row, all_rows, one_row, stream

SIZE = 64  # vectors of a pack, at most
_STEP = 16  # loose ones, as many of which are put into packs at a time: each is on pages of its own until then
_AT_ONCE = 128  # packs that are read at a time
Place: TypeAlias = "tuple[int, int]"  # partition and model


class Kept(NamedTuple):
    """What some packs of a place hold, and the last seq of them when they were made."""

    rows: Packed
    last: int


def keep(db: apsw.Connection, come: Mapping[Place, int]) -> None:
    """Pack what has come loose in places to which so many vectors were added, where it may be enough. How many are
    loose is asked only when as many have come as were missing when it was asked last: what others added meanwhile, or
    what was undone, makes that too late or too soon by a few."""
    missing = db.missing if isinstance(db, Handle) else {}
    if len(missing) > LIMIT:
        missing.clear()
    for place, count in come.items():
        left = missing.get(place, 0) - count
        missing[place] = left if left > 0 else _STEP - _kept(db, place)


def _kept(db: apsw.Connection, place: Place) -> int:
    """Pack what is enough for it; the answer is how many are left loose."""
    ((last, loose),) = all_rows(db, sql.LOOSE, {"room": place[0], "model": place[1]})
    left: int = loose % _STEP
    if loose >= _STEP:
        _pack(db, place, stream(db, sql.VECTORS_SINCE, (*place, last, loose - left)))
    return left


def _pack(db: apsw.Connection, place: Place, rows: Iterator[Row]) -> None:
    """Into the last pack as far as it has room, and into new ones."""
    id, held = one_row(db, sql.LAST_PACK, place) or (None, SIZE)
    if held < SIZE and (more := list(islice(rows, SIZE - held))):
        (before,) = all_rows(db, sql.PACK, (id,))
        grown = [mine + theirs for mine, theirs in zip(before, _columns(more), strict=True)]
        db.execute(sql.GROWN_PACK, (more[-1][0], *grown, id))
    while more := list(islice(rows, SIZE)):
        db.execute(sql.NEW_PACK, (*place, more[-1][0], *_columns(more)))


def _columns(rows: list[Row]) -> tuple[bytes, bytes, bytes, bytes]:
    seqs = np.array([row[0] for row in rows], dtype="<i8")
    entries = np.array([row[1] for row in rows], dtype="<i8")
    made = paired(seqs, entries, normal([row[2] for row in rows], len(rows[0][2]) // 4))
    return seqs.tobytes(), entries.tobytes(), made.scales.astype("<f4").tobytes(), made.codes.astype("<i2").tobytes()


def without(db: apsw.Connection, partition: int, model: int, seq: int) -> None:
    """Take one vector out of its pack, if it is in one."""
    found = one_row(db, sql.PACK_OF, (partition, model, seq))
    if found is None:
        return
    id, seqs, *others = found
    held = array("q", seqs)
    if seq not in held:
        return
    if len(held) == 1:
        db.execute(sql.DROP_PACK, (id,))
        return
    at = held.index(seq)
    cut = []
    for blob in (seqs, *others):
        width = len(blob) // len(held)
        cut.append(blob[: at * width] + blob[(at + 1) * width :])
    db.execute(sql.SET_PACK, (*cut, id))


def anew(db: apsw.Connection) -> None:
    """All packs of all places, made again."""
    db.execute(sql.DROP_PACKS)
    for place in all_rows(db, sql.PLACES):
        _kept(db, (place[0], place[1]))


def pieces(db: apsw.Connection, place: Place, dimensions: int) -> Iterator[Kept]:
    """All packs of a place, some thousand vectors at a time; up to those that cannot be read as packs, for the vectors
    are there as well."""
    last, whole = 0, True
    while whole and (rows := all_rows(db, sql.PACKS, (*place, last, _AT_ONCE))):
        held = _joined(rows, dimensions)
        if held is None:
            return
        last, whole = rows[-1][0], len(rows) == _AT_ONCE
        yield Kept(held, last)


def passing(db: apsw.Connection, place: Place, dimensions: int, into: Any) -> Packed | None:
    """A place that is not kept, in the rows of an array: what its packs hold, and behind it what is loose, in the same
    form. None if the array is too small for it, or the packs cannot be read."""
    heads = all_rows(db, sql.PACK_HEADS, place)
    at = _filled(db, [head[0] for head in heads], into)
    loose = all_rows(db, sql.VECTORS_SINCE, (*place, heads[-1][1] if heads else 0, -1))
    if at is None or at + len(loose) > len(into):
        return None
    parts = [head[2:] for head in heads]
    if loose:
        *others, codes = _columns(loose)
        into[at : at + len(loose)] = np.frombuffer(codes, dtype="<i2").reshape(len(loose), dimensions)
        parts.append(tuple(others))
    seqs, entries, scales = (b"".join([part[column] for part in parts]) for column in range(3))
    return _held(seqs, entries, scales, into[: at + len(loose)])


def _filled(db: apsw.Connection, ids: list[int], into: Any) -> int | None:
    """Put the numbers of packs into an array, as many rows as the answer says: straight from the pages, where a value
    of a row would be put together first, and then copied. None if there is no room for them."""
    if not ids:
        return 0
    room, at = memoryview(into).cast("B"), 0
    with db.blob_open("main", "packs", "codes", ids[0], False) as codes:
        for id in ids:
            codes.reopen(id)
            size = codes.length()
            if at + size > len(room):
                return None
            codes.read_into(room, at, size)
            at += size
    rows, rest = divmod(at, into.strides[0])
    return None if rest else rows


def _joined(rows: list[Row], dimensions: int) -> Packed | None:
    seqs, entries, scales, codes = (b"".join([row[column] for row in rows]) for column in (1, 2, 3, 4))
    count = len(codes) // (2 * dimensions)
    if len(codes) != 2 * dimensions * count:
        return None
    return _held(seqs, entries, scales, np.frombuffer(codes, dtype="<i2").reshape(count, dimensions))


def _held(seqs: bytes, entries: bytes, scales: bytes, codes: Any) -> Packed | None:
    count = len(codes)
    if not count or (len(seqs), len(entries), len(scales)) != (8 * count, 8 * count, 4 * count):
        return None
    numbers = (np.frombuffer(seqs, dtype="<i8"), np.frombuffer(entries, dtype="<i8"))
    return Packed(*numbers, codes, np.frombuffer(scales, dtype="<f4"), np.ones(count, dtype=np.bool_))


def faults(db: apsw.Connection) -> Iterator[Place]:
    """The places whose packs do not hold what the vectors up to the last packed one say."""
    for place in sorted({*all_rows(db, sql.PLACES), *all_rows(db, sql.PACKED_PLACES)}):
        before = 0
        for last, *columns in stream(db, sql.PACKS, (*place, 0, -1)):
            rows = all_rows(db, sql.VECTORS_UP_TO, (*place, before, last))
            if not rows or _columns(rows) != tuple(columns):
                yield place
                break
            before = last
