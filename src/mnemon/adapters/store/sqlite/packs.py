"""Packs: the vectors of a place in bytes, many in a row of the database, so that a process that has just begun reads a
place in a few pieces instead of vector by vector.

Derived and always in step: the transaction that adds vectors makes a pack as soon as enough of them are loose, and the
one that removes a vector takes it out of its pack. What is not in a pack comes after all that is.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import apsw

from mnemon.adapters.store.sqlite import sql
from mnemon.adapters.store.sqlite.packed import Packed, normal, packed
from mnemon.adapters.store.sqlite.query import Row, all_rows, one_row, stream
from mnemon.model.arrays import np

SIZE = 64  # vectors of a pack, at most
Place: TypeAlias = "tuple[int, int]"  # partition and model


class Kept(NamedTuple):
    """What the packs of a place hold, and the last seq that was packed."""

    rows: Packed | None
    last: int


def keep(db: apsw.Connection, places: Iterable[Place]) -> None:
    """Pack what has come loose in these places, as far as it fills packs."""
    for place in places:
        ((last, loose),) = all_rows(db, sql.LOOSE, {"room": place[0], "model": place[1]})
        if loose >= SIZE:
            for rows in _full(stream(db, sql.VECTORS_SINCE, (*place, last, -1))):
                db.execute(sql.NEW_PACK, (*place, rows[-1][0], *_columns(rows)))


def _full(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """In lists of the size of a pack; what is left over stays loose."""
    held: list[Row] = []
    for row in rows:
        held.append(row)
        if len(held) == SIZE:
            yield held
            held = []


def _columns(rows: list[Row]) -> tuple[bytes, bytes, bytes, bytes]:
    seqs = np.array([row[0] for row in rows], dtype="<i8")
    entries = np.array([row[1] for row in rows], dtype="<i8")
    made = packed(seqs, entries, normal([row[2] for row in rows], len(rows[0][2]) // 4))
    return seqs.tobytes(), entries.tobytes(), made.scales.astype("<f4").tobytes(), made.codes.tobytes()


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
    keep(db, all_rows(db, sql.PLACES))


def load(db: apsw.Connection, place: Place, dimensions: int) -> Kept:
    """All packs of a place; none, if what is there cannot be read as packs, for the vectors are there as well."""
    rows = all_rows(db, sql.PACKS, place)
    seqs, entries, scales, codes = (b"".join([row[column] for row in rows]) for column in (1, 2, 3, 4))
    count = len(seqs) // 8
    sizes = (len(seqs), len(entries), len(scales), len(codes))
    if not count or sizes != (8 * count, 8 * count, 4 * count, dimensions * count):
        return Kept(None, 0)
    held = Packed(
        np.frombuffer(seqs, dtype="<i8"),
        np.frombuffer(entries, dtype="<i8"),
        np.frombuffer(codes, dtype=np.int8).reshape(count, dimensions),
        np.frombuffer(scales, dtype="<f4"),
        np.ones(count, dtype=np.bool_),
    )
    return Kept(held, rows[-1][0])


def faults(db: apsw.Connection) -> Iterator[Place]:
    """The places whose packs do not hold what the vectors up to the last packed one say."""
    for place in sorted({*all_rows(db, sql.PLACES), *all_rows(db, sql.PACKED_PLACES)}):
        before = 0
        for last, *columns in stream(db, sql.PACKS, place):
            rows = all_rows(db, sql.VECTORS_UP_TO, (*place, before, last))
            if not rows or _columns(rows) != tuple(columns):
                yield place
                break
            before = last
