"""Finding entries: by page, by keyword, by vector. A search is given its rooms and cannot leave them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import apsw

from lukasa.model.arrays import np
from lukasa.model.candidate import Candidate
from lukasa.model.entry import Entry, Scope
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage import rules
from lukasa.storage.port import Filters, KeywordMatches, Neighbour, Selection, Unembedded
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.known import Answers, Handle, known, lasting_numbers
from lukasa.storage.sqlite.packed import Ints, normal
from lukasa.storage.sqlite.postings import Postings, best, listed, occurrences
from lukasa.storage.sqlite.query import Row, all_rows, one_row, one_value
from lukasa.storage.sqlite.rows import (
    EXEMPT,
    FILED,
    KINDS,
    SAID,
    STATES,
    anchor_text,
    entry_of,
    filter_bindings,
    json_list,
    scope_of,
    token,
)
from lukasa.storage.sqlite.unfed import unfed
from lukasa.storage.sqlite.vectors import VectorCache, Where

_SHORT = 1000  # characters of index terms that are worth keeping in memory
_OLDER_THAN_ALL, _NEWER_THAN_ALL = -(2**63), (2**63 - 1, 2**63 - 1)


class Room(NamedTuple):
    id: int
    size: int
    total_terms: int
    removals: int


def rooms_of(db: apsw.Connection, selection: Selection) -> list[Room]:
    """The partitions of a selection, found by equality on every part of their key."""
    answers = known(db).of("rooms")
    last: tuple[Selection, list[Room]] | None = answers.get("last")
    if last is not None and last[0] is selection:  # a question is put to several indexes, one after the other
        return last[1]
    asked = (selection.scopes, selection.visibilities, selection.owners)
    if asked not in answers:
        answers[asked] = look_up_rooms(db, selection)
    found: list[Room] = answers[asked]
    answers["last"] = selection, found
    return found


def empty(db: apsw.Connection, selection: Selection) -> bool:
    """Looked up without what is known, so that no view of the database has to be opened for it."""
    return not any(room.size for room in look_up_rooms(db, selection))


def _rooms_asked_last(db: apsw.Connection) -> list[Room]:
    last: tuple[Selection, list[Room]] | None = known(db).of("rooms").get("last")
    return last[1] if last is not None else []


def look_up_rooms(db: apsw.Connection, selection: Selection) -> list[Room]:
    """The same from the database itself, for who asks once in a state."""
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
    filters = filter_bindings(selection.filters)
    since, until = filters["since"], filters["until"]
    before = _NEWER_THAN_ALL if after is None else _mark(db, after)
    if until is not None:
        before = min(before, (until, 0))
    ends = {"after": _OLDER_THAN_ALL if since is None else since, "before": before[0], "before_row": before[1]}
    bindings = filters | ends | {"limit": limit}
    newest: list[Row] = []
    for room in rooms_of(db, selection):
        for kind in selection.filters.kinds or KINDS:
            newest += all_rows(db, sql.NEWEST_OF_KIND, bindings | {"partition": room.id, "kind": str(kind)})
    page = sorted(newest, reverse=True)[:limit]
    return [entry_of(row) for row in all_rows(db, sql.ENTRIES_IN_ORDER, (json_list(rowid for _, rowid in page),))]


def _mark(db: apsw.Connection, id: str) -> tuple[int, int]:
    row = one_row(db, sql.MARK, (id,))
    if row is None:
        raise rules.missing("entry", id)
    return row[0], row[1]


# What was matched


_Matched: TypeAlias = "tuple[Candidate, str, int]"  # the card of a row, its terms, and how many these are


def _matched(db: apsw.Connection, rowids: Sequence[int]) -> Mapping[int, _Matched]:
    """Rows by their number."""
    answers = known(db).of("matched")
    unknown = [rowid for rowid in rowids if rowid not in answers]
    if not unknown:
        return answers
    rows = all_rows(db, sql.MATCHED, (json_list(unknown),))
    fresh = {
        row[_ROWID]: (candidate, row[-2], row[-1]) for row, candidate in zip(rows, _candidates(db, rows), strict=True)
    }
    if max([len(terms) for _, terms, _ in fresh.values()], default=0) <= _SHORT:
        answers.update(fresh)
        return answers
    answers.update((rowid, row) for rowid, row in fresh.items() if len(row[1]) <= _SHORT)
    return {rowid: fresh[rowid] if rowid in fresh else answers[rowid] for rowid in rowids}


# By keyword


def keyword(db: apsw.Connection, selection: Selection, terms: Sequence[str], limit: int) -> KeywordMatches:
    rooms = [room for room in rooms_of(db, selection) if room.size]
    if not rooms:
        return KeywordMatches(0, 0, (0,) * len(terms))
    size, total = sum([room.size for room in rooms]), sum([room.total_terms for room in rooms])
    words = {term: [token(room.id, term) for room in rooms] for term in terms}
    if size <= rules.POSTING_BUDGET:
        _postings(db, words)  # which tells how many there are: of few, no word is too common to look at
    counted = _frequencies(db, words)
    frequencies = tuple([counted[term] for term in terms])
    worth = set(rules.rarest(terms, frequencies))
    used = {term: rules.rarity(size, count) for term, count in counted.items() if term in worth}
    if not used:
        return KeywordMatches(size, total, frequencies)
    postings = _postings(db, {term: words[term] for term in used})
    if selection.filters:
        rowids = _filtered(db, [word for term in used for word in words[term]], selection, limit)
    else:
        rowids = best(postings, used, rules.looked_at(limit, size, total))
        if len(rowids) > limit:
            terms_in: dict[int, int] = dict(all_rows(db, sql.LENGTHS, (json_list(rowids),)))
            counts = occurrences(rowids, [postings[term] for term in used])
            rowids = rules.by_length(rowids, list(used.values()), counts, [terms_in[n] for n in rowids], limit)
    known_rows = _matched(db, rowids)
    rows = [known_rows[rowid] for rowid in rowids]
    found, lengths = [candidate for candidate, _, _ in rows], [length for _, _, length in rows]
    return KeywordMatches(size, total, frequencies, found, lengths, _counts(rowids, rows, terms, postings))


_Words: TypeAlias = "Mapping[str, Sequence[str]]"  # by term, what it is called in the index of each room


def _frequencies(db: apsw.Connection, words: _Words) -> dict[str, int]:
    answers = known(db).of("frequencies")
    unknown = [word for those in words.values() for word in those if word not in answers]
    if unknown:
        more = unfed(db)
        answers.update({word: len(set(more.get(word, ()))) for word in unknown})
        answers.update({word: n + answers[word] for word, n in all_rows(db, sql.FREQUENCIES, (json_list(unknown),))})
    return {term: sum([answers[word] for word in those]) for term, those in words.items()}


def _postings(db: apsw.Connection, words: _Words) -> dict[str, list[Postings]]:
    """By term and room, the rows that hold it, with how often. Of a word that is everywhere, the newest of them."""
    told = known(db)
    answers = told.of("postings")
    unknown = [word for those in words.values() for word in those if word not in answers]
    if unknown:
        _look_up_postings(db, unknown, answers, told.of("frequencies"))
    return {term: [answers[word] for word in those] for term, those in words.items()}


def _look_up_postings(db: apsw.Connection, words: Sequence[str], answers: Answers, frequencies: Answers) -> None:
    common = [word for word in words if frequencies.get(word, 0) > rules.POSTING_BUDGET]
    more = unfed(db)
    for word in common:
        found = listed(one_value(db, sql.NEWEST_POSTINGS, (f'"{word}"', rules.POSTING_BUDGET)))
        newest = [*found[::-1], *dict.fromkeys(more.get(word, ()))]
        answers[word] = Postings(newest[-rules.POSTING_BUDGET :], whole=False)
    rare = [word for word in words if word not in answers]
    if rare:
        for word, rows in all_rows(db, sql.POSTINGS, (json_list(rare),)):
            held = Postings(listed(rows))
            answers[word] = held = held.plus(more[word]) if word in more else held
            frequencies[word] = len(held)


def _filtered(db: apsw.Connection, words: Iterable[str], selection: Selection, limit: int) -> list[int]:
    asked = list(words)
    filters = filter_bindings(selection.filters)
    more = unfed(db)
    newest = {row for word in asked for row in more.get(word, ())}
    admitted = all_rows(db, sql.ROWS_ADMITTED, filters | {"rows": json_list(newest)}) if newest else []
    bindings = filters | {"match": " OR ".join([f'"{word}"' for word in asked]), "limit": limit}
    return [row for (row,) in [*admitted, *all_rows(db, sql.MATCHES_FILTERED, bindings)]][:limit]


def _counts(
    rowids: Sequence[int],
    rows: Sequence[_Matched],
    terms: Sequence[str],
    postings: Mapping[str, Sequence[Postings]],
) -> list[list[int]]:
    """For each term, how often it is in each row. What is counted already is taken from there; words that were too
    common to look for are counted in the text."""
    whole = {term: those for term, those in postings.items() if all(part.whole for part in those)}
    found = dict(zip(whole, occurrences(rowids, whole.values()), strict=True))
    texts = None
    for term in terms:
        if term in found:
            continue
        if not term or " " in term:  # no word at all
            found[term] = [0] * len(rows)
            continue
        # Each word between spaces of its own: of two that stand side by side, both are counted.
        texts = texts or [f" {text.replace(' ', '  ')} " for _, text, _ in rows]
        word = f" {term} "
        found[term] = [text.count(word) for text in texts]
    return [found[term] for term in terms]


# By place


def beside(db: apsw.Connection, ids: Iterable[str], reach: int) -> dict[str, dict[str, int]]:
    """Most entries stand right beside those that came before and after them; only for others one looks farther."""
    asked = list(ids)
    answers = known(db).of("beside")
    unknown = [id for id in asked if (id, reach) not in answers]
    if unknown:
        found = _around(db, unknown, reach)
        alone = [id for id in unknown if len(found.get(id, ())) <= 2 * reach]
        found |= _around(db, alone, rules.ROWS_BESIDE) if alone else {}
        answers.update(((id, reach), rules.steps(id, order, reach)) for id, order in found.items())
    return {id: steps for id in asked if (steps := answers.get((id, reach)))}


def _around(db: apsw.Connection, ids: Sequence[str], rows: int) -> dict[str, list[str]]:
    """Those of the same talk within so many rows, in their order, each with itself among them. Whoever asks for them
    asks for their cards next, so these are learned on the way."""
    found = all_rows(db, sql.BESIDE, {"numbers": json_list(numbers(db, ids).values()), "rows": rows})
    candidates = known(db).of("cards")
    candidates.update(
        (candidate.id, candidate) for candidate in _candidates(db, [row for row in found if row[0] not in candidates])
    )
    order: dict[str, list[tuple[int, str]]] = {}
    for row in found:
        order.setdefault(row[-1], []).append((row[_ROWID], row[0]))
    return {id: [name for _, name in sorted(those)] for id, those in order.items()}


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
    query = query / (math.sqrt(query @ query) or 1.0)
    best: list[tuple[float, int]] = []
    for room in rooms_of(db, selection):
        where = Where(room.id, model_id, model.dimensions, room.removals, room.size)
        admitted = _admitted(db, room.id, selection) if selection.filters else None
        best += cache.nearest(db, where, query, limit, admitted, exact=exact)
    nearest = sorted(best, reverse=True)[:limit]
    rowids = [rowid for _, rowid in nearest]
    rows = _matched(db, rowids)
    return [Neighbour(rows[rowid][0], cosine) for cosine, rowid in nearest]


def _admitted(db: apsw.Connection, room: int, selection: Selection) -> Ints:
    bindings = filter_bindings(selection.filters) | {"partition": room}
    return np.fromiter((rowid for (rowid,) in all_rows(db, sql.ADMITTED, bindings)), dtype=np.int64)


def model_number(db: apsw.Connection, model: EmbeddingModel) -> int | None:
    lasting = lasting_numbers(db)
    number: int | None = lasting.get(model)
    if number is None:
        number = one_value(db, sql.MODEL_ID, (model.name, model.dimensions, model.digest))
        if number is not None and isinstance(db, Handle) and db.reads:  # what is being written may be undone
            lasting[model] = number
    return number


# By id


def numbers(db: apsw.Connection, ids: Iterable[str]) -> dict[str, int]:
    """The rows of those that are there."""
    return {id: number for id, (_, number) in stamps(db, ids).items()}


def stamps(db: apsw.Connection, ids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Version and row of those that are there. Whoever asks has mostly asked for their cards before."""
    asked, answers = list(ids), known(db).of("stamps")
    unknown = [id for id in asked if id not in answers]
    if unknown:
        answers.update(
            (id, (version, number)) for id, version, number in all_rows(db, sql.STAMPS, (json_list(unknown),))
        )
    return {id: answers[id] for id in asked if id in answers}


def candidates(db: apsw.Connection, ids: Sequence[str], filters: Filters) -> dict[str, Candidate]:
    if filters:
        rows = all_rows(db, sql.CARDS_ADMITTED, filter_bindings(filters) | {"ids": json_list(ids)})
        found = {candidate.id: candidate for candidate in _candidates(db, rows)}
        return {id: found[id] for id in ids if id in found}
    answers: dict[str, Candidate] = known(db).of("cards")
    unknown = [id for id in ids if id not in answers]
    if unknown:
        rows = all_rows(db, sql.CARDS, {"ids": json_list(unknown)})
        answers.update((candidate.id, candidate) for candidate in _candidates(db, rows))
    return {id: answers[id] for id in ids if id in answers}


_ROWID = 16  # among the columns of a card


def _candidates(db: apsw.Connection, rows: Sequence[Row]) -> list[Candidate]:
    """Of rows that begin with the columns of a card. Which rows these are is remembered."""
    told = known(db)
    scopes: dict[int, Scope] = told.of("scopes")
    if not {row[1] for row in rows} <= scopes.keys():
        scopes.update((number, scope_of(tier, anchor)) for number, tier, anchor in all_rows(db, sql.SCOPES))
    told.of("stamps").update([(row[0], row[15:17]) for row in rows])
    made, found = tuple.__new__, []  # as Card would, in less time; and names are sooner put together than slices are
    for row in rows:
        (id, partition, kind, state, source, tags, category, conversation, importance) = row[:9]
        (created, confirmed, valid, invalid, chars, marks, version) = row[9:16]
        labels = () if tags == "[]" else tuple(json.loads(tags))
        marked = marks & FILED > 0, marks & EXEMPT > 0, marks & SAID > 0
        where = (id, scopes[partition], KINDS[kind], STATES[state], source, labels, category, conversation, importance)
        found.append(made(Candidate, (*where, created, confirmed, valid, invalid, chars, *marked, version)))
    return found


def texts(db: apsw.Connection, ids: Sequence[str]) -> dict[str, str]:
    answers = known(db).of("texts")
    unknown = [id for id in ids if id not in answers]
    fresh: dict[str, str] = dict(all_rows(db, sql.TEXTS, (json_list(unknown),))) if unknown else {}
    answers.update((id, text) for id, text in fresh.items() if len(text) <= _SHORT)
    return {id: text for id in ids if (text := fresh.get(id, answers.get(id))) is not None}


def directions(db: apsw.Connection, cache: VectorCache, ids: Sequence[str], model: EmbeddingModel) -> dict[str, Vector]:
    """From memory where a search of this very state has them at hand, as it mostly has."""
    model_id = model_number(db, model)
    if model_id is None:
        return {}
    asked, told = numbers(db, ids), cache.as_they_are(db, model_id)
    found: dict[str, Vector] = {id: told[number] for id, number in asked.items() if number in told}
    present = [id for id in asked if id not in found]
    if present:
        wanted = np.array([asked[id] for id in present], dtype=np.int64)
        places = [(room.id, model_id) for room in _rooms_asked_last(db)]
        found |= {present[place]: row for shelf in cache.at_hand(db, places) for place, row in shelf.of(wanted)}
    if len(found) < len(asked):
        names = {number: id for id, number in asked.items() if id not in found}
        if rows := all_rows(db, sql.VECTORS, (json_list(names), model_id)):
            unit = normal([blob for _, blob in rows], model.dimensions)
            found |= zip([names[number] for number, _ in rows], unit, strict=True)
    return found


def vectors(db: apsw.Connection, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
    model_id = model_number(db, model)
    if model_id is None:
        return {}
    names = {number: id for id, number in numbers(db, ids).items()}
    rows = all_rows(db, sql.VECTORS, (json_list(names), model_id))
    return {names[number]: np.frombuffer(blob, dtype="<f4") for number, blob in rows}


def unembedded(db: apsw.Connection, model: EmbeddingModel, limit: int) -> list[Unembedded]:
    return [Unembedded(*row) for row in all_rows(db, sql.UNEMBEDDED, (model_number(db, model), limit))]
