"""Search texts by their words: messages of transcripts, and passages of documents. Each kind has an index of its own.

An engine gives raw rows, and this code weighs them, so the same texts have the same scores in every engine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from lukasa.index import bm25
from lukasa.index.postings import Postings, best_rows, occurrences

BUDGET = 12_000  # rows that the terms of one question may have together
TYPICAL = 1_000  # characters of a text, whose length counts neither for it nor against it
_WIDER, _LEAST = 5, 200  # rows that are compared by length as well: so many times the limit, and at least so many


class TextRows(Protocol):
    """The questions to one index of texts. Rows are numbered, a newer one higher."""

    def size(self) -> int:
        """How many texts there are."""
        ...

    def frequencies(self, terms: Sequence[str]) -> Iterable[tuple[str, int]]:
        """How many texts hold each term; terms that none holds may be left out."""
        ...

    def postings(self, terms: Sequence[str]) -> Iterable[tuple[str, Postings]]:
        """The rows that hold each term."""
        ...

    def lengths(self, rows: Sequence[int]) -> Mapping[int, int]:
        """The number of characters of each text."""
        ...

    def admitted(self, rows: Sequence[int]) -> Collection[int]:
        """Those of the rows that the filters of the question admit."""
        ...


def search(rows: TextRows, asked: Sequence[str], limit: int, *, filtered: bool = False) -> list[tuple[int, float]]:
    """The best rows by BM25 with their scores, best first; among equals the newer one.

    Filters come before the limit.
    """
    used = list(dict.fromkeys(asked))[: bm25.MAX_TERMS]
    found = dict(rows.frequencies(used)) if used and limit > 0 else {}
    terms = bm25.rarest(used, [found.get(term, 0) for term in used], BUDGET)
    if not terms:
        return []
    size, held = rows.size(), dict(rows.postings(terms))
    weights = {term: bm25.idf(size, found[term]) for term in terms}
    many = max(_LEAST, _WIDER * limit)
    best = best_rows(
        {term: [held[term]] for term in terms}, weights, sum(map(len, held.values())) if filtered else many
    )
    if filtered:
        admitted = set(rows.admitted(best))
        best = [row for row in best if row in admitted][:many]
    if not best:
        return []
    lengths = rows.lengths(best)
    counts = occurrences(best, [[held[term]] for term in terms])
    scores = bm25.scores(counts, [lengths[row] for row in best], list(weights.values()), TYPICAL)
    ranked = sorted(zip(best, scores, strict=True), key=lambda one: (one[1], one[0]), reverse=True)
    return ranked[:limit]
