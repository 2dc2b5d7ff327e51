"""Signals: one question put to one index, as scores by entry id. Higher is better, always."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from mnemon.model.entry import Entry
from mnemon.model.frozen import dataclass
from mnemon.model.text import terms
from mnemon.ports.store import KeywordMatches, Neighbour

K1, B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class Signal:
    name: str
    scores: Mapping[str, float]

    def ranks(self) -> dict[str, int]:
        ordered = sorted(self.scores, key=lambda id: (-self.scores[id], id))
        return {id: place for place, id in enumerate(ordered, 1)}


def keyword(matches: Iterable[KeywordMatches]) -> Signal:
    """BM25 over everything searched. Several stores are scored as one collection, so that a small one (an
    account with three entries) is not penalised for its size."""
    found = tuple(matches)
    size = sum(m.size for m in found)
    average = max(1.0, sum(m.total_terms for m in found) / size) if size else 1.0
    frequencies = [sum(column) for column in zip(*(m.frequencies for m in found), strict=True)]
    weights = [math.log(1 + (size - n + 0.5) / (n + 0.5)) for n in frequencies]
    scores = {row.id: _bm25(row.counts, row.length / average, weights) for m in found for row in m.rows}
    return Signal("keyword", {id: score for id, score in scores.items() if score > 0})


def _bm25(counts: Sequence[int], relative_length: float, weights: Sequence[float]) -> float:
    norm = K1 * (1 - B + B * relative_length)
    return sum(w * n * (K1 + 1) / (n + norm) for n, w in zip(counts, weights, strict=True) if n)


def vector(neighbours: Iterable[Neighbour], floor: float) -> Signal:
    """Cosines above what unrelated texts reach."""
    return Signal("vector", {n.id: n.cosine for n in neighbours if n.cosine > floor})


def structured(entries: Iterable[Entry], query_terms: Sequence[str]) -> Signal:
    """How much of the question names an entry's tags, category, kind or source."""
    asked = set(query_terms)
    scores = {entry.id: len(asked & _labels(entry)) / len(asked) for entry in entries} if asked else {}
    return Signal("structured", {id: score for id, score in scores.items() if score > 0})


def _labels(entry: Entry) -> set[str]:
    labels = [*entry.tags, entry.kind, entry.source, entry.category.name if entry.category else ""]
    return set().union(*map(_label_terms, labels))


@lru_cache(maxsize=4096)
def _label_terms(label: str) -> frozenset[str]:
    return frozenset(terms(label))
