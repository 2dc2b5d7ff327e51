"""Fusion: several signals, one match score in (0, 1], with each signal's share kept for the explanation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property

from mnemon.model.frozen import dataclass
from mnemon.read.signals import Signal
from mnemon.spec.types import Retrieval


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
    shares = [(_zscore if zscore else _rrf)(signal, ids, retrieval) for signal in signals]
    totals = {id: sum(share[id] for share in shares) for id in ids}
    values = _positive(totals) if zscore else _scaled(totals)
    fusion = Fusion(signals, shares)
    return {id: Match(values[id], id, fusion) for id in ids}


def _rrf(signal: Signal, ids: Sequence[str], retrieval: Retrieval) -> dict[str, float]:
    weight = retrieval.weights.get(signal.name, 1.0)
    ranks = signal.ranks()
    return {id: weight / (retrieval.rrf_k + ranks[id]) if id in ranks else 0.0 for id in ids}


def _zscore(signal: Signal, ids: Sequence[str], retrieval: Retrieval) -> dict[str, float]:
    """Standard scores over all candidates; what a signal did not find counts as the least it found."""
    weight = retrieval.weights.get(signal.name, 1.0)
    least = 0.0 if signal.name != "vector" else min(signal.scores.values(), default=0.0)
    values = [signal.scores.get(id, least) for id in ids]
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
    if spread < 1e-9:
        return dict.fromkeys(ids, 0.0)
    return {id: weight * (v - mean) / spread for id, v in zip(ids, values, strict=True)}


def _positive(totals: dict[str, float]) -> dict[str, float]:
    """Standard scores made positive so that they can be weighed by the prior; the best is 1."""
    best = max(totals.values())
    return {id: math.exp(value - best) for id, value in totals.items()}


def _scaled(totals: dict[str, float]) -> dict[str, float]:
    best = max(totals.values())
    return {id: value / best for id, value in totals.items()} if best > 0 else totals
