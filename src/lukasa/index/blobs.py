"""Vector blobs: up to `SIZE` int16 vectors of a partition in one row of the database.

A process that has just started reads a partition in a few pieces instead of vector by vector. Blobs are derived from
the vectors and always in step with them: the transaction that adds or removes a vector also changes its blob. The last
blob of a partition grows until it is full; vectors that are not in a blob yet come after all that are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lukasa.index.ann import QuantisedVectors, quantised_int16, unit_vectors
from lukasa.index.rows import VectorKey, VectorRow, VectorRows
from lukasa.model.arrays import np

SIZE = 64  # vectors of a blob, at most
STEP = 16  # vectors that are put into blobs at a time; until then each is on pages of its own
_PAGE = 128  # blobs that are read at a time


class BlobPage(NamedTuple):
    """The vectors of some blobs, and the last sequence number that these blobs were made with."""

    vectors: QuantisedVectors
    last: int


def encoded(rows: Sequence[VectorRow]) -> tuple[bytes, bytes, bytes, bytes]:
    """Vectors as the columns of a blob: sequence numbers, entry rows, scales and codes."""
    seqs = np.array([row[0] for row in rows], dtype="<i8")
    entries = np.array([row[1] for row in rows], dtype="<i8")
    made = quantised_int16(seqs, entries, unit_vectors([row[2] for row in rows], len(rows[0][2]) // 4))
    return seqs.tobytes(), entries.tobytes(), made.scales.astype("<f4").tobytes(), made.codes.astype("<i2").tobytes()


def without(columns: Sequence[bytes], seq: int) -> list[bytes] | None:
    """The columns of a blob without one vector: no columns if it was the only one, None if it is not in the blob."""
    held = array("q", columns[0])
    if seq not in held:
        return None
    at = held.index(seq)
    cut = []
    for column in columns:
        width = len(column) // len(held)
        cut.append(column[: at * width] + column[(at + 1) * width :])
    return cut if len(held) > 1 else []


def pages(rows: VectorRows, key: VectorKey, dimensions: int) -> Iterator[BlobPage]:
    """All blobs of a partition, some thousand vectors at a time. It ends at a blob that cannot be decoded: the vectors
    are in the database as well."""
    last, more = 0, True
    while more and (found := rows.blobs_after(key, last, _PAGE)):
        vectors = _decoded(found, dimensions)
        if vectors is None:
            return
        last, more = found[-1][0], len(found) == _PAGE
        yield BlobPage(vectors, last)


def read_into(rows: VectorRows, key: VectorKey, dimensions: int, into: Any) -> QuantisedVectors | None:
    """All vectors of a partition, with their codes in the rows of an array: blobs first, then single vectors.

    None if the array is too small or a blob cannot be decoded.
    """
    heads = rows.blob_heads(key)
    filled = rows.read_codes([head[0] for head in heads], memoryview(into).cast("B")) if heads else 0
    count, rest = divmod(filled or 0, into.strides[0])
    single = rows.vectors_after(key, heads[-1][1] if heads else 0, -1)
    if filled is None or rest or count + len(single) > len(into):
        return None
    parts = [head[2:] for head in heads]
    if single:
        *others, codes = encoded(single)
        into[count : count + len(single)] = np.frombuffer(codes, dtype="<i2").reshape(len(single), dimensions)
        parts.append((others[0], others[1], others[2]))
    seqs, entries, scales = (b"".join([part[column] for part in parts]) for column in range(3))
    return _from_columns(seqs, entries, scales, into[: count + len(single)])


def _decoded(rows: Sequence[tuple[int, bytes, bytes, bytes, bytes]], dimensions: int) -> QuantisedVectors | None:
    seqs, entries, scales, codes = (b"".join([row[column] for row in rows]) for column in range(1, 5))  # type: ignore[misc]
    count = len(codes) // (2 * dimensions)
    if len(codes) != 2 * dimensions * count:
        return None
    return _from_columns(seqs, entries, scales, np.frombuffer(codes, dtype="<i2").reshape(count, dimensions))


def _from_columns(seqs: bytes, entries: bytes, scales: bytes, codes: Any) -> QuantisedVectors | None:
    count = len(codes)
    if not count or (len(seqs), len(entries), len(scales)) != (8 * count, 8 * count, 4 * count):
        return None
    numbers = (np.frombuffer(seqs, dtype="<i8"), np.frombuffer(entries, dtype="<i8"))
    return QuantisedVectors(*numbers, codes, np.frombuffer(scales, dtype="<f4"), np.ones(count, dtype=np.bool_))
