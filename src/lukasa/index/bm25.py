"""BM25, once: the weight of a term, the score of a row, and the terms that are worth looking up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from lukasa.model.text import PASSAGE

T = TypeVar("T")
K1, B = 0.9, 0.4  # of the ranking: saturating early and hardly minding length, as suits passages
_CUT_K1 = 1.2  # of the first cut, which decides only what is ranked
MAX_TERMS = 64
POSTING_BUDGET = 2500  # rows that the terms of one question may have together
_WIDER, _WIDEST = 5, 400  # where texts are long: so many times the limit are looked at, and at most so many


def idf(size: int, frequency: int) -> float:
    """The weight of a term that `frequency` of `size` rows hold (inverse document frequency)."""
    return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


def scores(
    counts: Sequence[Sequence[int]], lengths: Sequence[int], weights: Sequence[float], average: float, k1: float = K1
) -> list[float]:
    """The BM25 score of each row. `counts` says for each term how often it is in each row."""
    base, slope = k1 * (1 - B), k1 * B / average
    norms = [base + slope * length for length in lengths]
    found = [0.0] * len(norms)
    for column, weight in zip(counts, weights, strict=bool(norms)):
        most = weight * (k1 + 1)
        found = [s + most * n / (n + norm) if n else s for s, n, norm in zip(found, column, norms, strict=True)]
    return found


def rarest(terms: Sequence[str], frequencies: Sequence[int], budget: int = POSTING_BUDGET) -> list[str]:
    """The terms worth matching: those that occur, the rarest first, within the posting budget.

    A word in half of all entries finds nothing that the rarer words of the same query do not find better.
    """
    found = {term: frequency for term, frequency in zip(terms, frequencies, strict=True) if frequency}
    used: list[str] = []
    postings = 0
    for term in sorted(found, key=found.__getitem__)[:MAX_TERMS]:
        postings += found[term]
        if used and postings > budget:
            break
        used.append(term)
    return used


def saturated(count: Any) -> Any:
    """The share of a term's weight that so many occurrences earn, where one earns 1. Takes a number or an array."""
    return count * (_CUT_K1 + 1) / (count + _CUT_K1)


def cut_size(limit: int, size: int, total_terms: int) -> int:
    """How many rows to take by their terms alone. Where texts are long, more than the limit, to be cut by length."""
    return limit if total_terms <= PASSAGE * size else max(limit, min(_WIDER * limit, _WIDEST))


def cut_by_length(
    rows: Sequence[T], weights: Sequence[float], counts: Sequence[Sequence[int]], lengths: Sequence[int], limit: int
) -> list[T]:
    """The best rows by BM25 with lengths; equals keep their order."""
    found = scores(counts, lengths, weights, PASSAGE, _CUT_K1)
    order = sorted(range(len(rows)), key=lambda at: -found[at])
    return [rows[at] for at in order[:limit]]
