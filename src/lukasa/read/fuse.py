"""Fusion: combine several signals into one match score in (0, 1], and keep each signal's share for the explanation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from lukasa.read.signals import Signal
from lukasa.spec.types import Retrieval

FEWEST = 20  # candidates that a standard score is computed over, at least


class Contribution(Struct, frozen=True):
    """One signal's rank and score for an entry, and its share of the match."""

    signal: str
    rank: int | None
    score: float | None
    share: float


class Fusion:
    """All signals, and the worth of each score. Ranks and shares are computed only for an explanation."""

    def __init__(self, signals: Sequence[Signal] = (), worth: Callable[[Signal, str], float] | None = None) -> None:
        self._signals, self._worth = signals, worth

    @cached_property
    def _ranks(self) -> dict[str, dict[str, int]]:
        return {signal.name: signal.ranks() for signal in self._signals}

    def nearness(self, ids: Sequence[str]) -> list[float]:
        """How near each entry comes to the best score of every signal: 1 if it has them all, 0 if it has none."""
        best = [(signal, max(signal.scores.values())) for signal in self._signals if signal.scores]
        best = [(signal, score) for signal, score in best if score > 0]
        found = [sum(max(0.0, signal.scores.get(id, 0.0)) / score for signal, score in best) for id in ids]
        return [total / len(best) for total in found] if best else found

    def contributions(self, id: str) -> tuple[Contribution, ...]:
        worth = self._worth
        if worth is None:
            return ()
        return tuple(
            Contribution(signal.name, self._ranks[signal.name].get(id), signal.scores.get(id), worth(signal, id))
            for signal in self._signals
        )


class Match(NamedTuple):
    """How well an entry answers, in (0, 1], and by which signals."""

    value: float
    id: str
    fusion: Fusion

    @property
    def contributions(self) -> tuple[Contribution, ...]:
        return self.fusion.contributions(self.id)


class Matches(Mapping[str, Match]):
    """All found entries with the sum of their signals.

    A match is made only when it is read: of hundreds, an answer shows a few.
    """

    def __init__(self, totals: Mapping[str, float], fusion: Fusion, *, standard: bool) -> None:
        self._totals, self._fusion, self._standard = totals, fusion, standard
        self._best = max(totals.values(), default=0.0)

    def value(self, id: str) -> float:
        """The match in (0, 1]; the best is 1. Standard scores are made positive, so that factors can multiply them."""
        total = self._totals[id]
        if self._standard:
            return math.exp(total - self._best) or 1e-300
        return total / self._best if self._best > 0 else total

    def values_of(self, ids: Sequence[str]) -> list[float]:
        """The values of many ids."""
        if not self._standard:
            return [self.value(id) for id in ids]
        totals, best, exp = self._totals, self._best, math.exp
        return [exp(totals[id] - best) or 1e-300 for id in ids]

    def nearness(self, ids: Sequence[str]) -> list[float]:
        """How near each entry comes to the best scores, whatever the way of fusing: ranks alone do not tell."""
        return self._fusion.nearness(ids)

    def best_first(self) -> list[str]:
        """Ids by their match alone; the later id first if two are equal."""
        totals = self._totals
        if len(set(totals.values())) == len(totals):  # without equal values, ids need no comparison, which is slower
            return sorted(totals, key=totals.__getitem__, reverse=True)
        return [id for _, id in sorted(zip(totals.values(), totals, strict=True), reverse=True)]

    def __getitem__(self, id: str) -> Match:
        return Match(self.value(id), id, self._fusion)

    def __iter__(self) -> Iterator[str]:
        return iter(self._totals)

    def __len__(self) -> int:
        return len(self._totals)


class Measure(NamedTuple):
    """The mean score of a signal, and the worth of one unit of difference from it."""

    mean: float
    worth: float

    def of(self, score: float) -> float:
        return self.worth * (score - self.mean)


class Compared(NamedTuple):
    """The sum of standard scores of each candidate, over the signals without a scale of their own.

    `absent` is that sum for an entry that none of these signals found.
    """

    signals: tuple[Signal, ...]
    measures: Mapping[str, Measure]
    totals: Mapping[str, float]
    absent: float

    def covers(self, signals: Sequence[Signal]) -> bool:
        """Whether `signals` has no further signal without a scale of its own."""
        return len(self.signals) == sum(not signal.own_scale for signal in signals)


def compared(signals: Sequence[Signal], retrieval: Retrieval) -> Compared:
    """Standardise and add up the signals that have no scale of their own."""
    those = tuple(signal for signal in signals if not signal.own_scale)
    ids = _found(those)
    weights = _weights(signals, retrieval)
    measures: dict[str, Measure] = {}
    totals, absent = [0.0] * len(ids), 0.0
    for signal in those:
        find, least = signal.scores.get, signal.least
        scores = [find(id, least) for id in ids] if signal.scores else []
        mean, worth = measures[signal.name] = _measure(scores, least, weights[signal.name])
        if worth:
            totals = [total + worth * (score - mean) for total, score in zip(totals, scores, strict=True)]
            absent += worth * (least - mean)
    return Compared(those, measures, dict(zip(ids, totals, strict=True)), absent)


def fuse(signals: Sequence[Signal], retrieval: Retrieval, known: Compared | None = None) -> Matches:
    """Fuse all signals as the spec says. Every id that a signal found is a candidate.

    `known` is the result of `compared` for the first signals. It saves work, and is used only if no later signal must
    be compared as well.
    """
    if retrieval.fusion == "rrf":
        worth = _by_rank(signals, retrieval)
        totals = {id: sum([worth(signal, id) for signal in signals]) for id in _found(signals)}
        return Matches(totals, Fusion(signals, worth), standard=False)
    base = known if known is not None and known.covers(signals) else compared(signals, retrieval)
    weights = _weights(signals, retrieval)
    totals, absent = dict(base.totals), base.absent
    for signal in signals:
        if signal.own_scale:
            weight = weights[signal.name]
            for id, score in signal.scores.items():
                totals[id] = totals.get(id, absent) + weight * score
    return Matches(totals, Fusion(signals, _by_score(base.measures, weights)), standard=True)


def strengths(signals: Sequence[Signal], retrieval: Retrieval, known: Compared | None = None) -> dict[str, float]:
    """How well each candidate matches by its own text, before its adjacent turns are considered; 0 if not at all."""
    if retrieval.fusion == "rrf":
        ranked = fuse([signal for signal in signals if not signal.own_scale], retrieval)
        return {id: ranked.value(id) for id in ranked}
    totals = (known or compared(signals, retrieval)).totals
    return {id: total if total > 0.0 else 0.0 for id, total in totals.items()}


def _found(signals: Sequence[Signal]) -> list[str]:
    return list({id: None for signal in signals for id in signal.scores})


def _by_rank(signals: Sequence[Signal], retrieval: Retrieval) -> Callable[[Signal, str], float]:
    ranks = {signal.name: signal.ranks() for signal in signals}

    def worth(signal: Signal, id: str) -> float:
        rank = ranks[signal.name].get(id)
        return 0.0 if rank is None else retrieval.weights.get(signal.name, 1.0) / (retrieval.rrf_k + rank)

    return worth


def _by_score(measures: Mapping[str, Measure], weights: Mapping[str, float]) -> Callable[[Signal, str], float]:
    """A signal on its own scale counts with its score; any other counts with its standard score."""

    def worth(signal: Signal, id: str) -> float:
        if signal.own_scale:
            return weights[signal.name] * signal.scores.get(id, 0.0)
        return measures[signal.name].of(signal.scores.get(id, signal.least))

    return worth


def _weights(signals: Sequence[Signal], retrieval: Retrieval) -> dict[str, float]:
    """The spec's weights. If only one of keyword and vector is present, it gets the weight of both."""
    weights = {signal.name: retrieval.weights.get(signal.name, 1.0) * signal.factor for signal in signals}
    for present, absent in (("keyword", "vector"), ("vector", "keyword")):
        if present in weights and absent not in weights:
            weights[present] += retrieval.weights.get(absent, 0.0)
    return weights


def _measure(scores: Sequence[float], least: float, weight: float) -> Measure:
    """The mean and spread of a signal's scores. An entry that the signal did not find counts with the least score.

    Fewer than FEWEST candidates are filled up with the least score, so that of two almost equal ones neither is far
    ahead.
    """
    count = max(FEWEST, len(scores))
    missing = count - len(scores)
    mean = (sum(scores) + least * missing) / count
    spread = math.sqrt((sum([(off := s - mean) * off for s in scores]) + missing * (least - mean) ** 2) / count)
    return Measure(mean, weight / spread if spread >= 1e-9 else 0.0)
