"""What new texts may repeat or contradict: asked for a whole batch in one read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import apsw

from mnemon.adapters.store.sqlite import sql
from mnemon.adapters.store.sqlite.packed import Ints, across
from mnemon.adapters.store.sqlite.query import all_rows
from mnemon.adapters.store.sqlite.rows import anchor_text, entry_of, handle, json_list
from mnemon.adapters.store.sqlite.searching import Room, model_number, rooms_of
from mnemon.adapters.store.sqlite.sketches import NEARLY, Asked, Close, Sketches, confirmed
from mnemon.adapters.store.sqlite.vectors import Block, VectorCache, Where
from mnemon.model.arrays import np
from mnemon.model.entry import Entry
from mnemon.model.statements import role, subject
from mnemon.model.text import content_key
from mnemon.ports.embedder import Vector
from mnemon.ports.store import Near, Newcomer, Selection, Vicinity

_ROUNDED = 0.005  # by how much packing may change a cosine
_PLAINLY = 1_024  # pairs of vectors, up to which no sketches are made of those that are not packed

Found = dict[int, float | None]  # cosines by row, None where only words matched


class Vectors(NamedTuple):
    """What is kept in memory of vectors."""

    cache: VectorCache
    sketches: Sketches


def near(db: apsw.Connection, vectors: Vectors, vicinity: Vicinity, newcomers: Sequence[Newcomer]) -> list[list[Near]]:
    keys = [content_key(newcomer.content) for newcomer in newcomers]
    twins = _twins(db, vicinity, keys)
    found: list[Found] = [{} for _ in newcomers]
    for room in rooms_of(db, Selection((vicinity.scope,), owners=(vicinity.owner,))):
        _by_vector(db, vectors, vicinity, room, newcomers, found)
        _by_words(db, vicinity, room, newcomers, found)
    entries = _entries(db, [*twins.values(), *(row for rows in found for row in rows)])
    return [_in_order(entries, twins.get(key), rows) for key, rows in zip(keys, found, strict=True)]


def _twins(db: apsw.Connection, vicinity: Vicinity, keys: Sequence[str]) -> dict[str, int]:
    scope = {"tier": vicinity.scope.tier, "anchor": anchor_text(vicinity.scope), "owner": vicinity.owner}
    return dict(all_rows(db, sql.SAME_TEXTS, scope | {"keys": json_list(keys)}))


def _entries(db: apsw.Connection, rows: Iterable[int]) -> dict[int, Entry]:
    wanted = set(rows)
    found = all_rows(db, sql.NUMBERED_ENTRIES, (json_list(wanted),)) if wanted else []
    return {row[-1]: entry_of(row) for row in found}


def _in_order(entries: dict[int, Entry], twin: int | None, rows: Found) -> list[Near]:
    first = [Near(entries[twin], rows.get(twin))] if twin is not None else []
    return first + [Near(entries[row], cosine) for row, cosine in rows.items() if row != twin]


# By vector


def _by_vector(
    db: apsw.Connection,
    vectors: Vectors,
    vicinity: Vicinity,
    room: Room,
    newcomers: Sequence[Newcomer],
    found: Sequence[Found],
) -> None:
    asked = [place for place, newcomer in enumerate(newcomers) if newcomer.vector is not None]
    model = vicinity.model
    number = None if model is None else model_number(db, model)
    if model is None or number is None or not asked:
        return
    queries = _unit([newcomers[place].vector for place in asked])
    where = Where(room.id, number, model.dimensions, room.removals, room.size)
    worth = vectors.sketches.worth(where.place, room.size, len(asked))
    close = _close(db, vectors, where, queries, vicinity.floor) if worth else None
    for number, (place, query) in enumerate(zip(asked, queries, strict=True)):
        if close is None:
            best = vectors.cache.nearest(db, where, query, vicinity.limit)
        else:
            best = sorted(close.get(number, ()), reverse=True)[: vicinity.limit]
        found[place].update((row, cosine) for cosine, row in best if cosine >= vicinity.floor)


def _close(
    db: apsw.Connection, vectors: Vectors, where: Where, queries: Vector, floor: float
) -> dict[int, list[tuple[float, int]]] | None:
    """By the number of a query, the rows that reach the floor; None where sketches cannot tell."""
    shelf, sketches, asked = vectors.cache.shelf(db, where), vectors.sketches, Asked(queries)
    loose = shelf.rows
    if len(loose.seqs) * len(queries) <= _PLAINLY:
        near: list[Close] | None = _all(loose, queries, floor)
    else:
        near = sketches.close((*where.place, 0), loose, asked, floor)
    if near is None:
        return None
    found = [(query, cosine, int(loose.entries[row])) for query, row, cosine in near]
    packed = shelf.packed
    if packed is not None:
        near = sketches.close((*where.place, 1), packed, asked, floor if packed.exact else floor - _ROUNDED)
        if near is None:
            return None
        alive = [pair for pair in near if packed.alive[pair.row]]
        if packed.exact:
            found += [(query, cosine, int(packed.entries[row])) for query, row, cosine in alive]
        elif alive:
            seqs = packed.seqs[[pair.row for pair in alive]]
            found += _compared(vectors.cache.rows(db, np.unique(seqs), where.dimensions), seqs, alive, queries)
    close: dict[int, list[tuple[float, int]]] = {}
    for query, cosine, entry in found:
        close.setdefault(query, []).append((cosine, entry))
    return close


def _all(rows: Block, queries: Vector, floor: float) -> list[Close]:
    """Of so few that they are compared as they are."""
    found: list[Close] = []
    for number, query in enumerate(queries):
        reached = np.flatnonzero(across(query, rows.columns) >= floor - NEARLY)
        if len(reached):
            found += confirmed(queries, rows, np.full_like(reached, number), reached, floor)
    return found


def _compared(rows: Block, seqs: Ints, pairs: Sequence[Close], queries: Vector) -> Iterator[tuple[int, float, int]]:
    """The same pairs by their vectors as they are, which are in the order of their seqs."""
    for place, pair in zip(np.searchsorted(rows.seqs, seqs).tolist(), pairs, strict=True):
        cosine = float(np.clip(rows.columns[:, place] @ queries[pair.query], -1.0, 1.0))
        yield pair.query, cosine, int(rows.entries[place])


def _unit(vectors: Sequence[Vector | None]) -> Vector:
    queries = np.array(vectors, dtype=np.float32)
    norms = np.sqrt(np.vecdot(queries, queries))[:, None]
    norms[norms == 0] = 1.0
    unit: Vector = queries / norms
    return unit


# By words


def _by_words(
    db: apsw.Connection, vicinity: Vicinity, room: Room, newcomers: Sequence[Newcomer], found: Sequence[Found]
) -> None:
    for statement, words in ((sql.OF_SUBJECTS, subject), (sql.IN_ROLES, role)):
        handles = [handle(words(newcomer.content)) for newcomer in newcomers]
        given = {number for number in handles if number is not None}
        if not given:
            continue
        alike: dict[int | None, list[int]] = {}
        asked = {"room": room.id, "given": json_list(given), "limit": vicinity.limit}
        for number, row in all_rows(db, statement, asked):
            alike.setdefault(number, []).append(row)
        for number, rows in zip(handles, found, strict=True):
            for row in alike.get(number, ()):
                rows.setdefault(row, None)
