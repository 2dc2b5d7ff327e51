"""Which rows hold a term, and the rows that hold the most of several."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from typing import Any

from lukasa.model.arrays import at_hand, np
from lukasa.storage import rules

_DENSE = 16_384  # rows up to which a sum for each of them is sooner made than the rows are put in order


class Postings:
    """The rows that hold a term, in their order and each as often as it does; or of a term that too many hold, the
    newest of them.

    By hand they are counted in a dictionary, by arrays in arrays, and each is made where it is first needed. Thousands
    of these are kept, and none of it is anything that the interpreter's collector has to walk through.
    """

    def __init__(self, rows: Sequence[int], *, whole: bool = True) -> None:
        self._given, self.whole = array("q", rows), whole

    def plus(self, rows: Sequence[int]) -> Postings:
        """With newer rows."""
        return Postings(self._given + array("q", rows))

    @property
    def reach(self) -> tuple[int, int]:
        """The first and the last of the rows, of which there must be one."""
        return self._given[0], self._given[-1]

    @cached_property
    def counts(self) -> dict[int, int]:
        return dict(Counter(self._given))

    @cached_property
    def _arrays(self) -> tuple[Any, Any]:
        """The rows, and how often each of them holds it; None if all hold it once, as mostly: few texts say a word
        twice."""
        given = np.array(self._given, dtype=np.int64)
        new = given[1:] != given[:-1]
        if new.all():
            return given, None
        bounds = np.empty(np.count_nonzero(new) + 2, dtype=np.int64)
        bounds[0], bounds[1:-1], bounds[-1] = 0, new.nonzero()[0] + 1, len(given)
        return given[bounds[:-1]], bounds[1:] - bounds[:-1]

    @property
    def rows(self) -> Any:
        return self._arrays[0]

    def shares(self, weight: float) -> Any:
        """What each of the rows gets for holding a term of this weight."""
        rows, often = self._arrays
        return np.full(len(rows), weight) if often is None else rules.saturated(often.astype(np.float64)) * weight

    def of(self, asked: Any) -> Any:
        """How often each of the asked rows holds it."""
        rows, often = self._arrays
        if not len(rows):
            return np.zeros(len(asked), dtype=np.int64)
        places = rows.searchsorted(asked)
        places[places == len(rows)] = 0
        held = rows[places] == asked
        return held.astype(np.int64) if often is None else often[places] * held

    def __len__(self) -> int:
        """How many rows these are."""
        return len(self.rows if at_hand() else self.counts)

    def __bool__(self) -> bool:
        return bool(self._given)


def listed(text: str) -> array[int]:
    """The numbers of a list that SQLite put together as JSON. Who knows that there is nothing in it but whole numbers
    and commas reads it in a fifth of the time."""
    rows = array("q")
    if at_hand() and len(text) > len("[]"):
        rows.frombytes(np.fromstring(text[1:-1], dtype=np.int64, sep=",").tobytes())
    else:
        rows.extend(json.loads(text))
    return rows


def best(postings: Mapping[str, Sequence[Postings]], weights: Mapping[str, float], limit: int) -> list[int]:
    """The rows with the most of the asked words, rare ones counting more; among equals the newer."""
    return (by_arrays if at_hand() else by_hand)(postings, weights, limit)


def by_hand(postings: Mapping[str, Sequence[Postings]], weights: Mapping[str, float], limit: int) -> list[int]:
    scores: dict[int, float] = {}
    for term, weight in weights.items():
        for rows in postings[term]:
            for rowid, count in rows.counts.items():
                scores[rowid] = scores.get(rowid, 0.0) + (weight if count == 1 else weight * rules.saturated(count))
    if len(scores) > limit:
        floor = nlargest(limit, scores.values())[-1]
        scores = {rowid: score for rowid, score in scores.items() if score >= floor}
    return sorted(scores, key=lambda rowid: (scores[rowid], rowid), reverse=True)[:limit]


def by_arrays(postings: Mapping[str, Sequence[Postings]], weights: Mapping[str, float], limit: int) -> list[int]:
    """The same sums in the same order."""
    held = [(rows, weight) for term, weight in weights.items() for rows in postings[term] if rows]
    if not held:
        return []
    ends = [rows.reach for rows, _ in held]
    first, last = min(ends)[0], max([end for _, end in ends])
    rows = np.concatenate([rows.rows for rows, _ in held])
    shares = np.concatenate([rows.shares(weight) for rows, weight in held])
    found, scores = _by_place(rows - first, shares, first) if last - first < _DENSE else _summed(rows, shares)
    if limit < len(scores):
        reached = (scores >= np.partition(scores, len(scores) - limit)[len(scores) - limit]).nonzero()[0]
        found, scores = found[reached], scores[reached]
    order = np.lexsort((-found, -scores))[:limit]
    best: list[int] = found[order].tolist()
    return best


def _by_place(places: Any, shares: Any, first: int) -> tuple[Any, Any]:
    """Each row once, with the sum of its shares, where the rows stand close enough for a sum for each place."""
    sums = np.bincount(places, shares)
    found = (sums > 0).nonzero()[0]  # of truths, which takes a fifth of the time that it takes of numbers
    return found + first, sums[found]


def _summed(rows: Any, shares: Any) -> tuple[Any, Any]:
    """The same where they do not, added up in the order in which they come."""
    order = rows.argsort(kind="stable")  # of runs that are in order already, as these are, it only has to merge them
    rows = rows[order]
    new = rows[1:] != rows[:-1]
    return np.concatenate([rows[:1], rows[1:][new]]), np.bincount(np.concatenate([[0], np.cumsum(new)]), shares[order])


def occurrences(rowids: Sequence[int], terms: Iterable[Sequence[Postings]]) -> list[list[int]]:
    """For each of several terms, how often each of the rows holds it."""
    if not at_hand():
        return [[sum([part.counts.get(rowid, 0) for part in those]) for rowid in rowids] for those in terms]
    asked = np.array(rowids, dtype=np.int64)
    return [
        (those[0].of(asked) if len(those) == 1 else sum([part.of(asked) for part in those])).tolist() for those in terms
    ]
