"""Fusion: several signals, one match score in (0, 1], with each signal's share kept for the explanation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from mnemon.model.frozen import dataclass
from mnemon.read.signals import Signal
from mnemon.spec.types import Retrieval

FEWEST = 20  # candidates that a standard score is taken over, at least


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one signal said of one entry, and how much of the match is its doing."""

    signal: str
    rank: int | None
    score: float | None
    share: float


class Fusion:
    """All signals with their shares. Ranks are worked out only when an explanation asks for them."""

    def __init__(self, signals: Sequence[Signal], ids: Sequence[str], shares: Sequence[Sequence[float]]) -> None:
        self._ids = ids
        self._parts = tuple(zip(signals, shares, strict=True))

    @cached_property
    def _ranks(self) -> dict[str, dict[str, int]]:
        return {signal.name: signal.ranks() for signal, _ in self._parts}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {id: place for place, id in enumerate(self._ids)}

    def contributions(self, id: str) -> tuple[Contribution, ...]:
        return tuple(
            Contribution(signal.name, self._ranks[signal.name].get(id), signal.scores.get(id), share[self._places[id]])
            for signal, share in self._parts
        )


class Match(NamedTuple):
    """How well an entry answers, in (0, 1], and through which signals."""

    value: float
    id: str
    fusion: Fusion

    @property
    def contributions(self) -> tuple[Contribution, ...]:
        return self.fusion.contributions(self.id)


class Measure(NamedTuple):
    """What is usual among the scores of a signal, and how far they are from it."""

    mean: float
    spread: float


Measures = Mapping[str, Measure]


def measures(signals: Sequence[Signal]) -> Measures:
    """Of the signals that are compared with one another, over all that any of them found."""
    compared = [signal for signal in signals if not signal.own_scale]
    ids = _found(compared)
    return {signal.name: _measure(signal, ids) for signal in compared}


def fuse(signals: Sequence[Signal], retrieval: Retrieval, measured: Measures | None = None) -> dict[str, Match]:
    """Fuse as the spec says. Every id that any signal found is a candidate."""
    ids = _found(signals)
    if not ids:
        return {}
    zscore = retrieval.fusion == "zscore"
    if zscore:
        shares = _standard(signals, ids, retrieval, measured or measures(signals))
    else:
        shares = [_rrf(signal, ids, retrieval) for signal in signals]
    said = [share for signal, share in zip(signals, shares, strict=True) if signal.scores]
    totals = list(map(sum, zip(*said, strict=True)))
    values = _positive(totals) if zscore else _scaled(totals)
    fusion = Fusion(signals, ids, shares)
    return {id: Match(value, id, fusion) for id, value in zip(ids, values, strict=True)}


def _found(signals: Sequence[Signal]) -> list[str]:
    return list({id: None for signal in signals for id in signal.scores})


def strengths(signals: Sequence[Signal], retrieval: Retrieval, measured: Measures | None = None) -> dict[str, float]:
    """How well each candidate matches by what it says, before anything beside it is looked at; 0 if not at all."""
    own = [signal for signal in signals if not signal.own_scale]
    ids = _found(own)
    if not ids:
        return {}
    if retrieval.fusion == "rrf":
        ranked = [_rrf(signal, ids, retrieval) for signal in own]
        return dict(zip(ids, _scaled(list(map(sum, zip(*ranked, strict=True)))), strict=True))
    totals = map(sum, zip(*_standard(own, ids, retrieval, measured or measures(own)), strict=True))
    return {id: max(0.0, total) for id, total in zip(ids, totals, strict=True)}


def _rrf(signal: Signal, ids: Sequence[str], retrieval: Retrieval) -> list[float]:
    weight = retrieval.weights.get(signal.name, 1.0)
    ranks = signal.ranks()
    return [weight / (retrieval.rrf_k + ranks[id]) if id in ranks else 0.0 for id in ids]


def _standard(
    signals: Sequence[Signal], ids: Sequence[str], retrieval: Retrieval, measured: Measures
) -> list[list[float]]:
    """Standard scores, weighted, in the order of `ids`; a signal on its own scale counts as it is."""
    weights = _weights(signals, retrieval)
    return [
        _as_it_is(signal, weights[signal.name], ids)
        if signal.own_scale
        else _zscore(signal, weights[signal.name], measured[signal.name], ids)
        for signal in signals
    ]


def _as_it_is(signal: Signal, weight: float, ids: Sequence[str]) -> list[float]:
    find = signal.scores.get
    return [weight * find(id, 0.0) for id in ids] if signal.scores else [0.0] * len(ids)


def _weights(signals: Sequence[Signal], retrieval: Retrieval) -> dict[str, float]:
    """The spec's weights. Words and meaning answer for one another: if one is not there, the other speaks for both."""
    weights = {signal.name: retrieval.weights.get(signal.name, 1.0) for signal in signals}
    for present, absent in (("keyword", "vector"), ("vector", "keyword")):
        if present in weights and absent not in weights:
            weights[present] += retrieval.weights.get(absent, 0.0)
    return weights


def _measure(signal: Signal, compared: Sequence[str]) -> Measure:
    """What a signal did not find counts as the least, and a handful of candidates is compared with that, too: of two
    that hardly differ, neither is far above the other."""
    find, least = signal.scores.get, signal.least
    values = [find(id, least) for id in compared]
    count = max(FEWEST, len(values))
    missing = count - len(values)
    mean = (sum(values) + least * missing) / count
    return Measure(mean, math.sqrt((sum([(v - mean) ** 2 for v in values]) + missing * (least - mean) ** 2) / count))


def _zscore(signal: Signal, weight: float, measure: Measure, ids: Sequence[str]) -> list[float]:
    find, least = signal.scores.get, signal.least
    if measure.spread < 1e-9:
        return [0.0] * len(ids)
    scale, mean = weight / measure.spread, measure.mean
    return [scale * (find(id, least) - mean) for id in ids]


def _positive(totals: Sequence[float]) -> list[float]:
    """Standard scores made positive so that they can be weighed by the prior; the best is 1."""
    best = max(totals)
    return [max(math.exp(value - best), 1e-300) for value in totals]


def _scaled(totals: Sequence[float]) -> list[float]:
    best = max(totals)
    return [value / best for value in totals] if best > 0 else list(totals)
