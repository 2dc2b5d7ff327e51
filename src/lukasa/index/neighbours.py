"""Neighbour search: the stored entries that new texts may repeat or update, asked for a whole batch at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from lukasa.index.ann import Floats, normalised, unit_vectors
from lukasa.index.matches import Neighbour, NeighbourQuery, NewText
from lukasa.index.postings import tokens
from lukasa.index.rows import Partition, SearchRows
from lukasa.index.vectors import Searched, VectorIndex
from lukasa.model.arrays import np
from lukasa.model.entry import Entry
from lukasa.model.selection import Selection
from lukasa.model.statements import content_words, role, subject, word_key
from lukasa.model.text import said_key

_Cosines: TypeAlias = "dict[int, float | None]"  # by row; None where only words matched
_MOST_WORDS = 64  # of a text that are looked up, which is enough for a long one
_TRIED, _FEW = 8, 8  # words without an estimate that are looked up, and rows of a word that is rare enough
_TOGETHER, _SOME = (2, 4), 33  # numbers of the rarest words that are looked up together, and rows that are too many


def neighbours(
    rows: SearchRows, index: VectorIndex, query: NeighbourQuery, texts: Sequence[NewText]
) -> list[list[Neighbour]]:
    """For each text its neighbours: the entry with the same text, then those near by vector, then those by words."""
    keys = [said_key(text.content, text.speaker) for text in texts]
    same = dict(rows.same_text(query.scope, query.owner, list(dict.fromkeys(keys))))
    found: list[_Cosines] = [{} for _ in texts]
    for partition in rows.partitions(Selection((query.scope,), owners=(query.owner,))):
        _by_vector(rows, index, query, partition, texts, found)
        _by_words(query, partition, texts, found, subject, rows.with_subject)
        _by_words(query, partition, texts, found, role, rows.with_role)
    wanted = {*same.values(), *(row for cosines in found for row in cosines)}
    entries = rows.entries_by_row(wanted) if wanted else {}
    return [_in_order(entries, same.get(key), cosines) for key, cosines in zip(keys, found, strict=True)]


def _in_order(entries: dict[int, Entry], same: int | None, cosines: _Cosines) -> list[Neighbour]:
    first = [Neighbour(entries[same], cosines.get(same))] if same is not None else []
    return first + [Neighbour(entries[row], cosine) for row, cosine in cosines.items() if row != same]


def _by_vector(
    rows: SearchRows,
    index: VectorIndex,
    query: NeighbourQuery,
    partition: Partition,
    texts: Sequence[NewText],
    found: Sequence[_Cosines],
) -> None:
    """Add the entries that hold every content word of a text, and those that reach the floor; the nearest first."""
    model = query.model
    number = None if model is None else rows.model_number(model)
    if model is None or number is None or not partition.size:
        return
    where = Searched(partition.id, number, model.dimensions, partition.removals, partition.size)
    pending = [(row, frozenset(terms.split())) for row, terms in rows.pending_in(partition.id)]
    embedded = [(text, cosines) for text, cosines in zip(texts, found, strict=True) if text.vector is not None]
    vectors: Any = normalised(np.array([text.vector for text, _ in embedded], dtype=np.float32)) if embedded else ()
    if query.floor is None:
        best: Sequence[Sequence[tuple[float, int]]] = [()] * len(embedded)
    else:
        best = index.nearest_of_each(rows.entry_vectors(), where, vectors, query.limit)
    for (text, cosines), vector, nearest in zip(embedded, vectors, best, strict=True):
        holding = _holding(rows, partition, pending, content_words(text.content), query.limit)
        near: dict[int, float] = _cosines_of(rows, holding, number, vector) if holding else {}
        near |= {row: cosine for cosine, row in nearest if cosine >= (query.floor or 0.0) and row not in near}
        for cosine, row in sorted(zip(near.values(), near, strict=True), reverse=True):
            cosines[row] = cosine


def _holding(
    rows: SearchRows,
    partition: Partition,
    pending: Sequence[tuple[int, frozenset[str]]],
    terms: Sequence[str],
    limit: int,
) -> list[int]:
    """The newest rows of a partition that hold all of these terms, pending index rows first."""
    if not terms:
        return []
    words, wanted = tokens(partition.id, sorted(terms, key=_likely_common)[:_MOST_WORDS]).split(), set(terms)
    held = rows.terms_of(_likely_rows(rows, partition, words, limit))
    newest = [row for row, found in reversed(pending) if wanted <= found]
    return (newest + [row for row, text in held if wanted.issubset(text.split())])[:limit]


def _likely_rows(rows: SearchRows, partition: Partition, words: Sequence[str], limit: int) -> list[int]:
    """A few rows among which all are that hold all of these words; if these are more than the limit, the newest.

    They are found by a rare word. Words that look rare are looked up first. How common the others are is estimated and
    kept, so that these are not looked up again; if no word is rare, the rarest are looked up together.
    """
    estimates: dict[str, float] = rows.cache.fixed("rows of a word, about")
    for word in [word for word in words if word not in estimates][:_TRIED]:
        found = rows.newest_with_all([word], _SOME)
        if len(found) <= _FEW:
            return found
        estimates[word] = len(found) if len(found) < _SOME else _SOME * partition.size / (found[0] - found[-1] + 1)
    rarest = sorted(words, key=lambda word: estimates.get(word, math.inf))
    for count in _TOGETHER:
        if count < len(words) and len(found := rows.newest_with_all(rarest[:count], _SOME)) < _SOME:
            return found
    return rows.newest_with_all(words, limit)


def _likely_common(term: str) -> tuple[bool, int]:
    """A sort key that puts numbers and long words first, because these are mostly rare."""
    return term.isalpha(), -len(term)


def _cosines_of(rows: SearchRows, asked: Sequence[int], model: int, vector: Floats) -> dict[int, float]:
    """The cosines of the rows that have a vector."""
    stored = rows.vectors_of(asked, model)
    if not stored:
        return {}
    cosines = np.minimum(unit_vectors([blob for _, blob in stored], len(vector)) @ vector, 1.0)
    return dict(zip([row for row, _ in stored], cosines.tolist(), strict=True))


def _by_words(
    query: NeighbourQuery,
    partition: Partition,
    texts: Sequence[NewText],
    found: Sequence[_Cosines],
    words: Callable[[str], str],
    look_up: Callable[[int, Sequence[int], int], Iterable[tuple[int, int]]],
) -> None:
    """Add the newest entries that have the same subject, or the same role, as a text."""
    keys = [word_key(words(text.content)) for text in texts]
    asked = [key for key in dict.fromkeys(keys) if key is not None]
    alike: dict[int | None, list[int]] = {}
    for key, row in look_up(partition.id, asked, query.limit) if asked else ():
        alike.setdefault(key, []).append(row)
    for number, cosines in zip(keys, found, strict=True):
        for row in alike.get(number, ()):
            cosines.setdefault(row, None)
