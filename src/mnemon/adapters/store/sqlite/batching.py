"""What new texts may repeat or contradict: asked for a whole batch in one read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import apsw

from mnemon.adapters.store.sqlite import sql
from mnemon.adapters.store.sqlite.packed import Ints, at_length_one
from mnemon.adapters.store.sqlite.query import all_rows, rows_of_each
from mnemon.adapters.store.sqlite.rows import anchor_text, entry_of, handle, json_list
from mnemon.adapters.store.sqlite.searching import Room, look_up_rooms, model_number
from mnemon.adapters.store.sqlite.sketches import Loaded, Sketches
from mnemon.adapters.store.sqlite.vectors import VectorCache, Where
from mnemon.model.arrays import np
from mnemon.model.entry import Entry
from mnemon.model.statements import role, subject
from mnemon.model.text import content_key
from mnemon.ports.store import Near, Newcomer, Selection, Vicinity

Found = dict[int, float | None]  # cosines by row, None where only words matched


class Vectors(NamedTuple):
    """What is kept in memory of vectors."""

    cache: VectorCache
    sketches: Sketches


class _Here(NamedTuple):
    """The vectors of one place, as `db` sees them."""

    db: apsw.Connection
    cache: VectorCache
    where: Where

    @property
    def place(self) -> tuple[int, int]:
        return self.where.place

    @property
    def removals(self) -> int:
        return self.where.removals

    def since(self, last: int) -> Loaded | None:
        come = self.cache.since(self.db, self.where, last)
        return None if come is None else Loaded(*come)

    def present(self) -> Ints:
        return self.cache.shelf(self.db, self.where).seqs

    def whole(self, without: Ints) -> Iterator[Loaded]:
        return (Loaded(*piece) for piece in self.cache.shelf(self.db, self.where).pieces(without))

    def of(self, seqs: Ints) -> Loaded:
        return Loaded(*self.cache.of(self.db, self.where, seqs))


def near(db: apsw.Connection, vectors: Vectors, vicinity: Vicinity, newcomers: Sequence[Newcomer]) -> list[list[Near]]:
    keys = [content_key(newcomer.content) for newcomer in newcomers]
    twins = _twins(db, vicinity, keys)
    found: list[Found] = [{} for _ in newcomers]
    for room in look_up_rooms(db, Selection((vicinity.scope,), owners=(vicinity.owner,))):
        _by_vector(db, vectors, vicinity, room, newcomers, found)
        _by_words(db, vicinity, room, newcomers, found)
    entries = _entries(db, [*twins.values(), *(row for rows in found for row in rows)])
    return [_in_order(entries, twins.get(key), rows) for key, rows in zip(keys, found, strict=True)]


def _twins(db: apsw.Connection, vicinity: Vicinity, keys: Sequence[str]) -> dict[str, int]:
    place = (vicinity.scope.tier, anchor_text(vicinity.scope), vicinity.owner)
    return dict(rows_of_each(db, sql.SAME_TEXT, [(*place, key) for key in dict.fromkeys(keys)]))


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
    queries = at_length_one(np.array([newcomers[place].vector for place in asked], dtype=np.float32))
    where = Where(room.id, number, model.dimensions, room.removals, room.size)
    here, floor = _Here(db, vectors.cache, where), vicinity.floor
    worth = vectors.sketches.worth(where.place, room.size, len(asked))
    close = vectors.sketches.close(here, queries, floor) if worth else None
    if close is None:
        for place, query in zip(asked, queries, strict=True):
            best = vectors.cache.nearest(db, where, query, vicinity.limit)
            found[place].update((row, cosine) for cosine, row in best if cosine >= floor)
        return
    of_each: dict[int, list[tuple[float, int]]] = {}
    for query, row, cosine in close:
        of_each.setdefault(query, []).append((cosine, row))
    for query, best in of_each.items():
        found[asked[query]].update((row, cosine) for cosine, row in sorted(best, reverse=True)[: vicinity.limit])


# By words


def _by_words(
    db: apsw.Connection, vicinity: Vicinity, room: Room, newcomers: Sequence[Newcomer], found: Sequence[Found]
) -> None:
    for statement, words in ((sql.OF_SUBJECT, subject), (sql.IN_ROLE, role)):
        handles = [handle(words(newcomer.content)) for newcomer in newcomers]
        asked = [(room.id, number, vicinity.limit) for number in dict.fromkeys(handles) if number is not None]
        if not asked:
            continue
        alike: dict[int | None, list[int]] = {}
        for number, row in rows_of_each(db, statement, asked):
            alike.setdefault(number, []).append(row)
        for number, rows in zip(handles, found, strict=True):
            for row in alike.get(number, ()):
                rows.setdefault(row, None)
