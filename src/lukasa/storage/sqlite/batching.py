"""What new texts may repeat or contradict: asked for a whole batch in one read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import apsw

from lukasa.model.arrays import np
from lukasa.model.entry import Entry
from lukasa.model.statements import role, subject, telling
from lukasa.model.text import content_key
from lukasa.storage.port import Near, Newcomer, Selection, Vicinity
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.known import rarities_of
from lukasa.storage.sqlite.packed import Floats, at_length_one, normal
from lukasa.storage.sqlite.query import all_rows, rows_of_each
from lukasa.storage.sqlite.rows import anchor_text, entry_of, handle, json_list, tokens
from lukasa.storage.sqlite.searching import Room, look_up_rooms, model_number
from lukasa.storage.sqlite.vectors import VectorCache, Where

Found = dict[int, float | None]  # cosines by row, None where only words matched
_ASKED = 64  # words of a text that are looked for, which of a long one is enough
_TRIED, _FEW = 8, 8  # words that nobody asked for before, and rows of one of them that are soon looked at
_TOGETHER, _SOME = (2, 4), 33  # of the rarest words, and rows that hold so many of them, by when more words are needed


def near(
    db: apsw.Connection, cache: VectorCache, vicinity: Vicinity, newcomers: Sequence[Newcomer]
) -> list[list[Near]]:
    keys = [content_key(newcomer.content) for newcomer in newcomers]
    twins = _twins(db, vicinity, keys)
    found: list[Found] = [{} for _ in newcomers]
    for room in look_up_rooms(db, Selection((vicinity.scope,), owners=(vicinity.owner,))):
        _by_vector(db, cache, vicinity, room, newcomers, found)
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
    cache: VectorCache,
    vicinity: Vicinity,
    room: Room,
    newcomers: Sequence[Newcomer],
    found: Sequence[Found],
) -> None:
    """Those that hold every telling word of a newcomer, however near they are; and those that reach the floor, where
    there is one. The nearest come first."""
    model = vicinity.model
    number = None if model is None else model_number(db, model)
    if model is None or number is None or not room.size:
        return
    where = Where(room.id, number, model.dimensions, room.removals, room.size)
    newest = [(row, frozenset(terms.split())) for row, terms in all_rows(db, sql.UNFED_IN, (room.id,))]
    for newcomer, rows in zip(newcomers, found, strict=True):
        if newcomer.vector is None:
            continue
        holding = _holding(db, room, newest, telling(newcomer.content), vicinity.limit)
        if not holding and vicinity.floor is None:
            continue
        (query,) = at_length_one(np.array([newcomer.vector], dtype=np.float32))
        cosines: dict[int, float] = _cosines(db, holding, number, query) if holding else {}
        if vicinity.floor is not None:
            best = cache.nearest(db, where, query, vicinity.limit)
            cosines |= {row: cosine for cosine, row in best if cosine >= vicinity.floor and row not in cosines}
        for cosine, row in sorted(zip(cosines.values(), cosines, strict=True), reverse=True):
            rows[row] = cosine


def _holding(
    db: apsw.Connection, room: Room, newest: Sequence[tuple[int, frozenset[str]]], terms: Sequence[str], limit: int
) -> list[int]:
    """The newest rows of a room that hold all of these terms; the index has not the words of the `newest` yet."""
    if not terms:
        return []
    words, wanted = tokens(room.id, sorted(terms, key=_commonness)[:_ASKED]).split(), set(terms)
    rows = _likely(db, room, words, limit)
    held = rows_of_each(db, sql.TERMS_OF_ROW, [(row,) for row in rows])
    unfed = [row for row, found in reversed(newest) if wanted <= found]
    return (unfed + [row for row, text in held if wanted.issubset(text.split())])[:limit]


def _likely(db: apsw.Connection, room: Room, words: Sequence[str], limit: int) -> list[int]:
    """Rows among which all are that hold all of these words, but no more than are soon looked at; of more than the
    limit, the newest.

    They are found by a word that hardly any other row holds. What looks rare is asked for first, and of words that are
    not, how rare they are is remembered, so that these are not asked for again; where no word is rare, the rarest are
    looked for together.
    """
    rarities = rarities_of(db)
    for word in [word for word in words if word not in rarities][:_TRIED]:
        rows = _newest(db, [word], _SOME)
        if len(rows) <= _FEW:
            return rows
        rarities[word] = len(rows) if len(rows) < _SOME else _SOME * room.size / (rows[0] - rows[-1] + 1)
    rarest = sorted(words, key=lambda word: rarities.get(word, math.inf))
    for count in _TOGETHER:
        if count < len(words) and len(rows := _newest(db, rarest[:count], _SOME)) < _SOME:
            return rows
    return _newest(db, words, limit)


def _newest(db: apsw.Connection, words: Sequence[str], limit: int) -> list[int]:
    """The newest rows that hold all of these words."""
    together = " AND ".join([f'"{word}"' for word in words])
    return [row for (row,) in all_rows(db, sql.NEWEST_ROWS_OF, (together, limit))]


def _commonness(term: str) -> tuple[bool, int]:
    """Numbers and long words are mostly rare."""
    return term.isalpha(), -len(term)


def _cosines(db: apsw.Connection, rows: Sequence[int], model: int, query: Floats) -> dict[int, float]:
    """Of the rows that have a vector."""
    found = all_rows(db, sql.VECTORS, (json_list(rows), model))
    if not found:
        return {}
    cosines = np.minimum(normal([vector for _, vector in found], len(query)) @ query, 1.0)
    return dict(zip([row for row, _ in found], cosines.tolist(), strict=True))


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
