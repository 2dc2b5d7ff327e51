"""Finding entries: by page, by keyword, by vector. A search is given its rooms and cannot leave them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import apsw

from mnemon.adapters.store import rules
from mnemon.adapters.store.sqlite import sql
from mnemon.adapters.store.sqlite.known import known
from mnemon.adapters.store.sqlite.packed import Ints
from mnemon.adapters.store.sqlite.postings import Postings, best, occurrences, shortest
from mnemon.adapters.store.sqlite.query import Row, all_rows, one_row, one_value
from mnemon.adapters.store.sqlite.rows import (
    EXEMPT,
    FILED,
    KINDS,
    STATES,
    anchor_text,
    entry_of,
    filter_bindings,
    json_list,
    scope_of,
    token,
)
from mnemon.adapters.store.sqlite.vectors import VectorCache, Where
from mnemon.model.arrays import np
from mnemon.model.card import Card
from mnemon.model.entry import Entry
from mnemon.ports.embedder import EmbeddingModel, Vector
from mnemon.ports.store import Filters, KeywordMatches, Neighbour, Selection, TermRow, Unembedded

_SHORT = 1000  # characters of index terms that are worth keeping in memory
_NEWER_THAN_ALL = (2**63 - 1, 2**63 - 1)


class Room(NamedTuple):
    id: int
    size: int
    total_terms: int
    removals: int


def rooms_of(db: apsw.Connection, selection: Selection) -> list[Room]:
    """The partitions of a selection, found by equality on every part of their key."""
    asked = (selection.scopes, selection.visibilities, selection.owners)
    answers = known(db).of("rooms")
    if asked not in answers:
        answers[asked] = _look_up_rooms(db, selection)
    found: list[Room] = answers[asked]
    return found


def _look_up_rooms(db: apsw.Connection, selection: Selection) -> list[Room]:
    found: list[Row] = []
    for scope in dict.fromkeys(selection.scopes):
        for visibility in sorted(selection.visibilities):
            key = (scope.tier, anchor_text(scope), str(visibility))
            if selection.owners is None:
                found += all_rows(db, sql.PARTITIONS_OF_ALL_OWNERS, key)
            else:
                for owner in dict.fromkeys(selection.owners):
                    found += all_rows(db, sql.PARTITION, (*key, owner))
    return [Room(*row) for row in found]


# By page


def find(db: apsw.Connection, selection: Selection, limit: int, after: str | None) -> list[Entry]:
    before = _NEWER_THAN_ALL if after is None else _mark(db, after)
    bindings = filter_bindings(selection.filters) | {"before": before[0], "before_row": before[1], "limit": limit}
    newest: list[Row] = []
    statement = sql.NEWEST
    if len(selection.filters.kinds) == 1:
        (kind,) = selection.filters.kinds
        statement, bindings = sql.NEWEST_OF_KIND, bindings | {"kind": str(kind)}
    for room in rooms_of(db, selection):
        newest += all_rows(db, statement, bindings | {"partition": room.id})
    page = sorted(newest, reverse=True)[:limit]
    return [entry_of(row) for row in all_rows(db, sql.ENTRIES_BY_ROW, (json_list(rowid for _, rowid in page),))]


def _mark(db: apsw.Connection, id: str) -> tuple[int, int]:
    row = one_row(db, sql.MARK, (id,))
    if row is None:
        raise rules.missing("entry", id)
    return row[0], row[1]


# What was matched


class _Matched(NamedTuple):
    """A row with its terms, and how many these are."""

    id: str
    terms: str
    length: int


def _matched(db: apsw.Connection, rowids: Sequence[int]) -> Mapping[int, _Matched]:
    """Rows by their number. Whoever matches a row asks for its card next, so that is learned on the way."""
    answers, cards = known(db).of("matched"), known(db).of("cards")
    unknown = [rowid for rowid in rowids if rowid not in answers]
    rows = all_rows(db, sql.MATCHED, (json_list(unknown),)) if unknown else []
    fresh = {rowid: _Matched(row[0], terms, length) for row in rows for rowid, terms, length in (row[-3:],)}
    cards.update(_cards(db, [row[:-3] for row in rows]))
    answers.update((rowid, row) for rowid, row in fresh.items() if len(row.terms) <= _SHORT)
    return {rowid: fresh[rowid] if rowid in fresh else answers[rowid] for rowid in rowids}


# By keyword


def keyword(db: apsw.Connection, selection: Selection, terms: Sequence[str], limit: int) -> KeywordMatches:
    rooms = [room for room in rooms_of(db, selection) if room.size]
    size, total = sum(room.size for room in rooms), sum(room.total_terms for room in rooms)
    frequencies = _frequencies(db, rooms, terms)
    weights = [rules.rarity(size, frequency) for frequency in frequencies]
    worth = set(rules.rarest(terms, frequencies))
    used = {term: weight for term, weight in zip(terms, weights, strict=True) if term in worth}
    if not used:
        return KeywordMatches(size, total, frequencies, ())
    postings = {term: [_postings(db, room, term) for room in rooms] for term in used}
    some = limit + limit // 2
    if selection.filters:
        rowids = _filtered(db, rooms, list(used), selection, some)
    else:
        rowids = best(postings, used, some)
    rows = _matched(db, rowids)
    if len(rowids) > limit:
        rowids = shortest(rowids, [rows[rowid].length * size / total for rowid in rowids], postings, used, limit)
    return KeywordMatches(size, total, frequencies, _term_rows(rowids, rows, terms, postings))


def _frequencies(db: apsw.Connection, rooms: Iterable[Room], terms: Sequence[str]) -> tuple[int, ...]:
    totals = dict.fromkeys(terms, 0)
    answers = known(db).of("frequencies")
    for room in rooms:
        for term in totals:
            word = token(room.id, term)
            if word not in answers:
                answers[word] = one_value(db, sql.FREQUENCY, (word,)) or 0
            totals[term] += answers[word]
    return tuple(totals[term] for term in terms)


def _postings(db: apsw.Connection, room: Room, term: str) -> Postings:
    """The rows of a room that hold a term, with how often. Of a word that is everywhere, the newest of them."""
    word = token(room.id, term)
    answers = known(db).of("postings")
    if word not in answers:
        if known(db).of("frequencies").get(word, 0) > rules.POSTING_BUDGET:
            found = one_value(db, sql.NEWEST_POSTINGS, (f'"{word}"', rules.POSTING_BUDGET))
            answers[word] = Postings(dict.fromkeys(json.loads(found), 1), whole=False)
        else:
            answers[word] = Postings(Counter(json.loads(one_value(db, sql.POSTINGS, (word,)))))
    rows: Postings = answers[word]
    return rows


def _filtered(
    db: apsw.Connection, rooms: Sequence[Room], terms: Sequence[str], selection: Selection, limit: int
) -> list[int]:
    match = " OR ".join(f'"{token(room.id, term)}"' for room in rooms for term in terms)
    bindings: dict[str, Any] = {"match": match, "limit": limit}
    return [rowid for (rowid,) in all_rows(db, sql.MATCHES_FILTERED, bindings | filter_bindings(selection.filters))]


def _term_rows(
    rowids: Sequence[int],
    rows: Mapping[int, _Matched],
    terms: Sequence[str],
    postings: Mapping[str, Sequence[Postings]],
) -> tuple[TermRow, ...]:
    """What is counted already is taken from there; words that were too common to look for are counted in the text."""
    whole = {term: those for term, those in postings.items() if all(rows.whole for rows in those)}
    counted = [(term, whole.get(term)) for term in terms]
    all_counted = len(whole) == len(terms)
    found = []
    for rowid in rowids:
        id, text, length = rows[rowid]
        words = () if all_counted else text.split(" ")
        counts = [words.count(term) if those is None else occurrences(rowid, those) for term, those in counted]
        found.append(TermRow(id, tuple(counts), length))
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
    *,
    exact: bool = False,
) -> list[Neighbour]:
    model_id = model_number(db, model)
    if model_id is None or limit < 1:
        return []
    query = np.asarray(vector, dtype=np.float32)
    query = query / (np.linalg.norm(query) or 1.0)
    best: list[tuple[float, int]] = []
    for room in rooms_of(db, selection):
        where = Where(room.id, model_id, model.dimensions, room.removals, room.size)
        admitted = _admitted(db, room.id, selection) if selection.filters else None
        best += cache.nearest(db, where, query, limit, admitted, exact=exact)
    best.sort(reverse=True)
    rows = _matched(db, [rowid for _, rowid in best[:limit]])
    return [Neighbour(rows[rowid].id, cosine) for cosine, rowid in best[:limit]]


def _admitted(db: apsw.Connection, room: int, selection: Selection) -> Ints:
    bindings = filter_bindings(selection.filters) | {"partition": room}
    return np.fromiter((rowid for (rowid,) in all_rows(db, sql.ADMITTED, bindings)), dtype=np.int64)


def model_number(db: apsw.Connection, model: EmbeddingModel) -> int | None:
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


def cards(db: apsw.Connection, ids: Sequence[str], filters: Filters) -> dict[str, Card]:
    if filters:
        found = _cards(db, all_rows(db, sql.CARDS_ADMITTED, filter_bindings(filters) | {"ids": json_list(ids)}))
        return {id: found[id] for id in ids if id in found}
    answers = known(db).of("cards")
    unknown = [id for id in ids if id not in answers]
    if unknown:
        answers.update(_cards(db, all_rows(db, sql.CARDS, {"ids": json_list(unknown)})))
    return {id: answers[id] for id in ids if id in answers}


def _cards(db: apsw.Connection, rows: Iterable[Row]) -> dict[str, Card]:
    scopes = known(db).of("scopes")
    found = {}
    for id, partition, kind, state, source, tags, category, conversation, importance, *times, chars, marks in rows:
        if partition not in scopes:
            scopes.update((number, scope_of(tier, anchor)) for number, tier, anchor in all_rows(db, sql.SCOPES))
        labels = () if tags == "[]" else tuple(json.loads(tags))
        about = (scopes[partition], KINDS[kind], STATES[state], source, labels, category, conversation, importance)
        found[id] = Card._make((id, *about, *times, chars, bool(marks & FILED), bool(marks & EXEMPT)))
    return found


def texts(db: apsw.Connection, ids: Sequence[str]) -> dict[str, str]:
    answers = known(db).of("texts")
    unknown = [id for id in ids if id not in answers]
    fresh: dict[str, str] = dict(all_rows(db, sql.TEXTS, (json_list(unknown),))) if unknown else {}
    answers.update((id, text) for id, text in fresh.items() if len(text) <= _SHORT)
    return {id: text for id in ids if (text := fresh.get(id, answers.get(id))) is not None}


def vectors(db: apsw.Connection, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
    model_id = model_number(db, model)
    rows = all_rows(db, sql.VECTORS, (json_list(ids), model_id)) if model_id is not None else []
    return {id: np.frombuffer(blob, dtype="<f4") for id, blob in rows}


def unembedded(db: apsw.Connection, model: EmbeddingModel, limit: int) -> list[Unembedded]:
    return [Unembedded(*row) for row in all_rows(db, sql.UNEMBEDDED, (model_number(db, model), limit))]
