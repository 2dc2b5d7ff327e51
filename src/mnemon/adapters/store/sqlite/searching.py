"""Finding entries: by page, by keyword, by vector. A search is given its rooms and cannot leave them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw

from mnemon.adapters.store import rules
from mnemon.adapters.store.sqlite import sql
from mnemon.adapters.store.sqlite.known import known
from mnemon.adapters.store.sqlite.query import Row, all_rows, one_row, one_value
from mnemon.adapters.store.sqlite.rows import anchor_text, entry_of, filter_bindings, json_list, token
from mnemon.adapters.store.sqlite.vectors import VectorCache
from mnemon.model.arrays import np
from mnemon.model.entry import Entry
from mnemon.ports.embedder import EmbeddingModel, Vector
from mnemon.ports.store import KeywordMatches, Neighbour, Selection, TermRow, Unembedded

_SHORT = 1000  # characters of index terms that are worth keeping in memory
_NEWER_THAN_ALL = (2**63 - 1, 2**63 - 1)


class _Room(NamedTuple):
    id: int
    size: int
    total_terms: int
    removals: int


def _rooms(db: apsw.Connection, selection: Selection) -> list[_Room]:
    """The partitions of a selection, found by equality on every part of their key."""
    asked = (selection.scopes, selection.visibilities, selection.owners)
    answers = known(db).of("rooms")
    if asked not in answers:
        answers[asked] = _look_up_rooms(db, selection)
    found: list[_Room] = answers[asked]
    return found


def _look_up_rooms(db: apsw.Connection, selection: Selection) -> list[_Room]:
    found: list[Row] = []
    for scope in dict.fromkeys(selection.scopes):
        for visibility in sorted(selection.visibilities):
            key = (scope.tier, anchor_text(scope), str(visibility))
            if selection.owners is None:
                found += all_rows(db, sql.PARTITIONS_OF_ALL_OWNERS, key)
            else:
                for owner in dict.fromkeys(selection.owners):
                    found += all_rows(db, sql.PARTITION, (*key, owner))
    return [_Room(*row) for row in found]


# By page


def find(db: apsw.Connection, selection: Selection, limit: int, after: str | None) -> list[Entry]:
    before = _NEWER_THAN_ALL if after is None else _mark(db, after)
    bindings = filter_bindings(selection.filters) | {"before": before[0], "before_row": before[1], "limit": limit}
    newest: list[Row] = []
    for room in _rooms(db, selection):
        newest += all_rows(db, sql.NEWEST, bindings | {"partition": room.id})
    page = sorted(newest, reverse=True)[:limit]
    return [entry_of(row) for row in all_rows(db, sql.ENTRIES_BY_ROW, (json_list(rowid for _, rowid in page),))]


def _mark(db: apsw.Connection, id: str) -> tuple[int, int]:
    row = one_row(db, sql.MARK, (id,))
    if row is None:
        raise rules.missing("entry", id)
    return row[0], row[1]


# By keyword


def keyword(db: apsw.Connection, selection: Selection, terms: Sequence[str], limit: int) -> KeywordMatches:
    rooms = _rooms(db, selection)
    frequencies = _frequencies(db, rooms, terms)
    used = rules.rarest(terms, frequencies)
    rows = _term_rows(db, _matches(db, rooms, used, selection, limit), terms) if used else ()
    return KeywordMatches(sum(r.size for r in rooms), sum(r.total_terms for r in rooms), frequencies, rows)


def _frequencies(db: apsw.Connection, rooms: Iterable[_Room], terms: Sequence[str]) -> tuple[int, ...]:
    totals = dict.fromkeys(terms, 0)
    answers = known(db).of("frequencies")
    for room in rooms:
        for term in totals if room.size else ():
            word = token(room.id, term)
            if word not in answers:
                answers[word] = one_value(db, sql.FREQUENCY, (word,)) or 0
            totals[term] += answers[word]
    return tuple(totals[term] for term in terms)


def _matches(
    db: apsw.Connection, rooms: Sequence[_Room], terms: Sequence[str], selection: Selection, limit: int
) -> list[int]:
    match = " OR ".join(f'"{token(room.id, term)}"' for room in rooms for term in terms)
    bindings: dict[str, Any] = {"match": match, "limit": limit}
    if not selection.filters:
        return [rowid for (rowid,) in all_rows(db, sql.MATCHES, bindings)]
    return [rowid for (rowid,) in all_rows(db, sql.MATCHES_FILTERED, bindings | filter_bindings(selection.filters))]


def _term_rows(db: apsw.Connection, rowids: Sequence[int], terms: Sequence[str]) -> tuple[TermRow, ...]:
    answers = known(db).of("terms")
    unknown = [rowid for rowid in rowids if rowid not in answers]
    fresh = {row[0]: row for row in all_rows(db, sql.TERMS, (json_list(unknown),))} if unknown else {}
    answers.update((rowid, row) for rowid, row in fresh.items() if len(row[2]) <= _SHORT)
    found = []
    for rowid in rowids:
        _, id, text, length = fresh[rowid] if rowid in fresh else answers[rowid]
        words = text.split(" ")
        found.append(TermRow(id, tuple([words.count(term) for term in terms]), length))
    return tuple(found)


# By place


def beside(db: apsw.Connection, ids: Iterable[str], reach: int) -> dict[str, dict[str, int]]:
    asked = list(ids)
    answers = known(db).of("beside")
    unknown = [id for id in asked if id not in answers]
    if unknown:
        order: dict[str, list[str]] = {}
        for id, other in all_rows(db, sql.BESIDE, {"ids": json_list(unknown), "rows": rules.ROWS_BESIDE}):
            order.setdefault(id, []).append(other)
        answers.update(order)
    found = {id: rules.steps(id, answers[id], reach) for id in asked if id in answers}
    return {id: others for id, others in found.items() if others}


# By vector


def nearest(
    db: apsw.Connection,
    cache: VectorCache,
    selection: Selection,
    model: EmbeddingModel,
    vector: Vector,
    limit: int,
) -> list[Neighbour]:
    model_id = _model_id(db, model)
    if model_id is None or limit < 1:
        return []
    query = np.asarray(vector, dtype=np.float32)
    query = query / (np.linalg.norm(query) or 1.0)
    best: list[tuple[float, int]] = []
    for room in _rooms(db, selection):
        block = cache.block(db, room.id, room.removals, model_id, model.dimensions)
        mask = _mask(db, room.id, selection, block.entries) if selection.filters else None
        best += block.top(query, limit, mask)
    best.sort(reverse=True)
    ids = known(db).of("ids")
    unknown = [rowid for _, rowid in best[:limit] if rowid not in ids]
    if unknown:
        ids.update(all_rows(db, sql.IDS, (json_list(unknown),)))
    return [Neighbour(ids[rowid], cosine) for cosine, rowid in best[:limit]]


def _mask(db: apsw.Connection, room: int, selection: Selection, entries: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    bindings = filter_bindings(selection.filters) | {"partition": room}
    admitted = np.fromiter((rowid for (rowid,) in all_rows(db, sql.ADMITTED, bindings)), dtype=np.int64)
    return np.isin(entries, admitted)


def _model_id(db: apsw.Connection, model: EmbeddingModel) -> int | None:
    asked = (model.name, model.dimensions, model.digest)
    answers = known(db).of("models")
    if asked not in answers:
        found = one_value(db, sql.MODEL_ID, asked)
        answers[asked] = None if found is None else int(found)
    number: int | None = answers[asked]
    return number


# By id


def stamps(db: apsw.Connection, ids: Iterable[str]) -> dict[str, int]:
    """The versions of those that are there."""
    asked = list(ids)
    answers = known(db).of("stamps")
    unknown = [id for id in asked if id not in answers]
    if unknown:
        answers.update(all_rows(db, sql.STAMPS, (json_list(unknown),)))
    return {id: answers[id] for id in asked if id in answers}


def vectors(db: apsw.Connection, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
    model_id = _model_id(db, model)
    rows = all_rows(db, sql.VECTORS, (json_list(ids), model_id)) if model_id is not None else []
    return {id: np.frombuffer(blob, dtype="<f4") for id, blob in rows}


def unembedded(db: apsw.Connection, model: EmbeddingModel, limit: int) -> list[Unembedded]:
    return [Unembedded(*row) for row in all_rows(db, sql.UNEMBEDDED, (_model_id(db, model), limit))]
