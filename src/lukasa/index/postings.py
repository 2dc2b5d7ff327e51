"""Postings: which rows hold a term, and the rows that hold the most of several terms."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from typing import Any

from lukasa.index import bm25
from lukasa.model.arrays import at_hand, np

_DENSE = 16_384  # rows up to which one sum for each row number is cheaper than sorting the rows
_PLAIN_TERM = re.compile(r"[a-z0-9]{1,64}")
_PLAIN_TERMS = re.compile(r"[a-z0-9]{1,64}(?:\n[a-z0-9]{1,64})*")


def token(partition: int, term: str) -> str:
    """A term as the keyword index holds it: prefixed by its partition, one ASCII word that no tokenizer splits."""
    if _PLAIN_TERM.fullmatch(term):
        return f"{partition}x{term}"
    data = term.encode("utf-8")
    if len(data) <= 32:
        return f"{partition}y{data.hex()}"
    return f"{partition}z{hashlib.sha256(data).hexdigest()}"


def tokens(partition: int, terms: Sequence[str]) -> str:
    """The tokens of several terms, separated by spaces."""
    if _PLAIN_TERMS.fullmatch("\n".join(terms)):
        head = f"{partition}x"
        return head + f" {head}".join(terms)
    return " ".join([token(partition, term) for term in terms])


class Postings:
    """The rows that hold a term, in ascending order, each as often as it holds it.

    Of a very common term these are only the newest rows; then they are not `whole`. Without numpy they are counted in a
    dictionary, with numpy in arrays, each made when first used. The rows are in an `array`, which the garbage collector
    does not walk through.
    """

    def __init__(self, rows: Sequence[int], *, whole: bool = True) -> None:
        self._given, self.whole = array("q", rows), whole

    def plus(self, rows: Sequence[int]) -> Postings:
        """These postings with newer rows."""
        return Postings(self._given + array("q", rows))

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last row; there must be one."""
        return self._given[0], self._given[-1]

    @cached_property
    def counts(self) -> dict[int, int]:
        return dict(Counter(self._given))

    @cached_property
    def _arrays(self) -> tuple[Any, Any]:
        """The rows and their counts; the counts are None if each row holds the term once, as most do."""
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
        """The part of each row's score that this term gives, if it has that weight."""
        rows, counts = self._arrays
        return np.full(len(rows), weight) if counts is None else bm25.saturated(counts.astype(np.float64)) * weight

    def counts_in(self, asked: Any) -> Any:
        """How often each of the asked rows holds the term."""
        rows, counts = self._arrays
        if not len(rows):
            return np.zeros(len(asked), dtype=np.int64)
        positions = rows.searchsorted(asked)
        positions[positions == len(rows)] = 0
        held = rows[positions] == asked
        return held.astype(np.int64) if counts is None else counts[positions] * held

    def __len__(self) -> int:
        """The number of different rows."""
        return len(self.rows if at_hand() else self.counts)

    def __bool__(self) -> bool:
        return bool(self._given)


def best_rows(postings: Mapping[str, Sequence[Postings]], weights: Mapping[str, float], limit: int) -> list[int]:
    """The rows with the highest sums of term weights, best first; among equals the newer."""
    return (by_arrays if at_hand() else by_dicts)(postings, weights, limit)


def by_dicts(postings: Mapping[str, Sequence[Postings]], weights: Mapping[str, float], limit: int) -> list[int]:
    scores: dict[int, float] = {}
    for term, weight in weights.items():
        for rows in postings[term]:
            for row, count in rows.counts.items():
                scores[row] = scores.get(row, 0.0) + (weight if count == 1 else weight * bm25.saturated(count))
    if len(scores) > limit:
        floor = nlargest(limit, scores.values())[-1]
        scores = {row: score for row, score in scores.items() if score >= floor}
    return sorted(scores, key=lambda row: (scores[row], row), reverse=True)[:limit]


def by_arrays(postings: Mapping[str, Sequence[Postings]], weights: Mapping[str, float], limit: int) -> list[int]:
    """The same sums, added in the same order."""
    held = [(rows, weight) for term, weight in weights.items() for rows in postings[term] if rows]
    if not held:
        return []
    ends = [rows.ends for rows, _ in held]
    first, last = min(ends)[0], max([end for _, end in ends])
    rows = np.concatenate([rows.rows for rows, _ in held])
    shares = np.concatenate([rows.shares(weight) for rows, weight in held])
    found, scores = _dense_sums(rows - first, shares, first) if last - first < _DENSE else _sorted_sums(rows, shares)
    if limit < len(scores):
        reached = (scores >= np.partition(scores, len(scores) - limit)[len(scores) - limit]).nonzero()[0]
        found, scores = found[reached], scores[reached]
    order = np.lexsort((-found, -scores))[:limit]
    best: list[int] = found[order].tolist()
    return best


def _dense_sums(offsets: Any, shares: Any, first: int) -> tuple[Any, Any]:
    """Each row once with the sum of its shares, where row numbers are close together."""
    sums = np.bincount(offsets, shares)
    found = (sums > 0).nonzero()[0]  # of booleans, which takes a fifth of the time that it takes of numbers
    return found + first, sums[found]


def _sorted_sums(rows: Any, shares: Any) -> tuple[Any, Any]:
    """The same where row numbers are far apart. The sort is stable, so shares are added in the same order."""
    order = rows.argsort(kind="stable")
    rows = rows[order]
    new = rows[1:] != rows[:-1]
    return np.concatenate([rows[:1], rows[1:][new]]), np.bincount(np.concatenate([[0], np.cumsum(new)]), shares[order])


def occurrences(rows: Sequence[int], terms: Iterable[Sequence[Postings]]) -> list[list[int]]:
    """For each term, how often each of the rows holds it."""
    if not at_hand():
        return [[sum([part.counts.get(row, 0) for part in those]) for row in rows] for those in terms]
    asked = np.array(rows, dtype=np.int64)
    return [
        (those[0].counts_in(asked) if len(those) == 1 else sum([part.counts_in(asked) for part in those])).tolist()
        for those in terms
    ]
