"""Upkeep of vector blobs in the transaction that changes vectors; `index.blobs` has their format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import apsw

from lukasa.index import blobs
from lukasa.index.rows import VectorKey
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.execute import Row, all_rows, one_row, stream
from lukasa.storage.sqlite.search import Handle


def add(db: apsw.Connection, added: Mapping[VectorKey, int]) -> None:
    """Put vectors into blobs in those partitions to which so many were added, where these may be enough.

    How many are outside blobs is only counted when as many were added as were missing at the last count. If others
    added some meanwhile, or a transaction was undone, that is a few too late or too soon.
    """
    missing = db.cache.fixed("vectors missing for a blob") if isinstance(db, Handle) else {}
    for key, count in added.items():
        left = missing.get(key, 0) - count
        missing[key] = left if left > 0 else blobs.STEP - _add_enough(db, key)


def _add_enough(db: apsw.Connection, key: VectorKey) -> int:
    """Put vectors into blobs in whole steps; return how many are left outside."""
    ((last, outside),) = all_rows(db, sql.LOOSE, {"partition": key[0], "model": key[1]})
    left: int = outside % blobs.STEP
    if outside >= blobs.STEP:
        _write(db, key, stream(db, sql.VECTORS_SINCE, (*key, last, outside - left)))
    return left


def _write(db: apsw.Connection, key: VectorKey, rows: Iterator[Row]) -> None:
    """Fill the last blob, then write new ones."""
    id, held = one_row(db, sql.LAST_PACK, key) or (None, blobs.SIZE)
    if held < blobs.SIZE and (more := list(islice(rows, blobs.SIZE - held))):
        (before,) = all_rows(db, sql.PACK, (id,))
        grown = [mine + theirs for mine, theirs in zip(before, blobs.encoded(more), strict=True)]
        db.execute(sql.GROWN_PACK, (more[-1][0], *grown, id))
    while more := list(islice(rows, blobs.SIZE)):
        db.execute(sql.NEW_PACK, (*key, more[-1][0], *blobs.encoded(more)))


def remove(db: apsw.Connection, partition: int, model: int, seq: int) -> None:
    """Take one vector out of its blob, if it is in one."""
    found = one_row(db, sql.PACK_OF, (partition, model, seq))
    if found is None:
        return
    id, *columns = found
    cut = blobs.without(columns, seq)
    if cut:
        db.execute(sql.SET_PACK, (*cut, id))
    elif cut is not None:
        db.execute(sql.DROP_PACK, (id,))


def rebuild(db: apsw.Connection) -> None:
    """Write all blobs of all partitions again."""
    db.execute(sql.DROP_PACKS)
    for partition, model in all_rows(db, sql.PLACES):
        _add_enough(db, (partition, model))


def faults(db: apsw.Connection) -> Iterator[VectorKey]:
    """The partitions whose blobs do not hold what their vectors say."""
    for key in sorted({*all_rows(db, sql.PLACES), *all_rows(db, sql.PACKED_PLACES)}):
        before = 0
        for last, *columns in stream(db, sql.PACKS, (*key, 0, -1)):
            rows = all_rows(db, sql.VECTORS_UP_TO, (*key, before, last))
            if not rows or blobs.encoded(rows) != tuple(columns):
                yield key[0], key[1]
                break
            before = last
