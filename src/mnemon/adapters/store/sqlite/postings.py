"""Which rows hold a term, and the rows that hold the most of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from typing import Any

from mnemon.adapters.store import rules
from mnemon.model.arrays import at_hand, np

_DENSE = 200_000  # rows up to which a sum for each of them is sooner made than the rows are sorted


class Postings:
    """The rows that hold a term, with how often they do; or of a term that too many hold, the newest of them."""

    def __init__(self, counts: Mapping[int, int], *, whole: bool = True) -> None:
        self.counts, self.whole = counts, whole

    @cached_property
    def rows(self) -> Any:
        return np.fromiter(self.counts, dtype=np.int64, count=len(self.counts))

    @cached_property
    def shares(self) -> Any:
        return rules.saturated(np.fromiter(self.counts.values(), dtype=np.float64, count=len(self.counts)))


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
    held = [(rows, weight) for term, weight in weights.items() for rows in postings[term] if rows.counts]
    if not held:
        return []
    rows = np.concatenate([rows.rows for rows, _ in held])
    shares = np.concatenate([weight * rows.shares for rows, weight in held])
    first = int(rows.min())
    if int(rows.max()) - first < _DENSE:
        sums = np.bincount(rows - first, shares)
        found = np.flatnonzero(sums > 0)
        scores = sums[found]
        found = found + first
    else:
        found, places = np.unique(rows, return_inverse=True)
        scores = np.bincount(places, shares)
    if limit < len(scores):
        reached = scores >= np.partition(scores, len(scores) - limit)[len(scores) - limit]
        found, scores = found[reached], scores[reached]
    order = np.lexsort((-found, -scores))[:limit]
    best: list[int] = found[order].tolist()
    return best


def occurrences(rowids: Sequence[int], postings: Sequence[Postings]) -> list[int]:
    """How often each of the rows holds the term of these postings."""
    if len(postings) == 1:
        find = postings[0].counts.get
        return [find(rowid, 0) for rowid in rowids]
    return [sum([part.counts.get(rowid, 0) for part in postings]) for rowid in rowids]
