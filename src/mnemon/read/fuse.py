"""Fusion: several signals, one match score in (0, 1], with each signal's share kept for the explanation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property

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

    def __init__(self, signals: Sequence[Signal], shares: Sequence[Mapping[str, float]]) -> None:
        self._parts = tuple(zip(signals, shares, strict=True))

    @cached_property
    def _ranks(self) -> dict[str, dict[str, int]]:
        return {signal.name: signal.ranks() for signal, _ in self._parts}

    def contributions(self, id: str) -> tuple[Contribution, ...]:
        return tuple(
            Contribution(signal.name, self._ranks[signal.name].get(id), signal.scores.get(id), share[id])
            for signal, share in self._parts
        )


@dataclass(frozen=True, slots=True)
class Match:
    """How well an entry answers, in (0, 1], and through which signals."""

    value: float
    id: str
    fusion: Fusion = field(compare=False, repr=False)

    @property
    def contributions(self) -> tuple[Contribution, ...]:
        return self.fusion.contributions(self.id)


def fuse(signals: Sequence[Signal], retrieval: Retrieval) -> dict[str, Match]:
    """Fuse as the spec says. Every id that any signal found is a candidate."""
    ids = sorted({id for signal in signals for id in signal.scores})
    if not ids:
        return {}
    zscore = retrieval.fusion == "zscore"
    shares = _standard(signals, ids, retrieval) if zscore else [_rrf(signal, ids, retrieval) for signal in signals]
    totals = {id: sum(share[id] for share in shares) for id in ids}
    values = _positive(totals) if zscore else _scaled(totals)
    fusion = Fusion(signals, shares)
    return {id: Match(values[id], id, fusion) for id in ids}


def strengths(signals: Sequence[Signal], retrieval: Retrieval) -> dict[str, float]:
    """How well each candidate matches by what it says, before anything beside it is looked at; 0 if not at all."""
    own = [signal for signal in signals if not signal.own_scale]
    ids = sorted({id for signal in own for id in signal.scores})
    if not ids:
        return {}
    if retrieval.fusion == "rrf":
        ranked = [_rrf(signal, ids, retrieval) for signal in own]
        return _scaled({id: sum(share[id] for share in ranked) for id in ids})
    shares = _standard(own, ids, retrieval)
    return {id: max(0.0, sum(share[id] for share in shares)) for id in ids}


def _rrf(signal: Signal, ids: Sequence[str], retrieval: Retrieval) -> dict[str, float]:
    weight = retrieval.weights.get(signal.name, 1.0)
    ranks = signal.ranks()
    return {id: weight / (retrieval.rrf_k + ranks[id]) if id in ranks else 0.0 for id in ids}


def _standard(signals: Sequence[Signal], ids: Sequence[str], retrieval: Retrieval) -> list[dict[str, float]]:
    """Standard scores, weighted; a signal on its own scale counts as it is."""
    compared = sorted({id for signal in signals if not signal.own_scale for id in signal.scores})
    weights = _weights(signals, retrieval)
    return [
        {id: weights[signal.name] * signal.scores.get(id, 0.0) for id in ids}
        if signal.own_scale
        else _zscore(signal, weights[signal.name], compared, ids)
        for signal in signals
    ]


def _weights(signals: Sequence[Signal], retrieval: Retrieval) -> dict[str, float]:
    """The spec's weights. Words and meaning answer for one another: if one is not there, the other speaks for both."""
    weights = {signal.name: retrieval.weights.get(signal.name, 1.0) for signal in signals}
    for present, absent in (("keyword", "vector"), ("vector", "keyword")):
        if present in weights and absent not in weights:
            weights[present] += retrieval.weights.get(absent, 0.0)
    return weights


def _zscore(signal: Signal, weight: float, compared: Sequence[str], ids: Sequence[str]) -> dict[str, float]:
    """Standard scores over what was compared. What a signal did not find counts as the least, and a handful of
    candidates is compared with that, too: of two that hardly differ, neither is far above the other."""
    values = [signal.scores.get(id, signal.least) for id in compared]
    values += [signal.least] * (FEWEST - len(values))
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
    if spread < 1e-9:
        return dict.fromkeys(ids, 0.0)
    return {id: weight * (signal.scores.get(id, signal.least) - mean) / spread for id in ids}


def _positive(totals: dict[str, float]) -> dict[str, float]:
    """Standard scores made positive so that they can be weighed by the prior; the best is 1."""
    best = max(totals.values())
    return {id: max(math.exp(value - best), 1e-300) for id, value in totals.items()}


def _scaled(totals: dict[str, float]) -> dict[str, float]:
    best = max(totals.values())
    return {id: value / best for id, value in totals.items()} if best > 0 else totals
