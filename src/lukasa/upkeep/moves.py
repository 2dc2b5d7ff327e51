"""Moves from one state to another that a spec asks for. Every one is recoverable: nothing is removed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lukasa.model.entry import Entry
from lukasa.model.values import State
from lukasa.spec.types import Consolidation
from lukasa.upkeep.weighed import Weighed


class Move(Struct, frozen=True):
    """An entry, as it was when this was decided, and where it should go."""

    entry: Entry
    state: State
    action: str
    cause: str


def pruned(found: Sequence[Weighed], rule: Consolidation) -> list[Move]:
    """What has sunk below the spec's floor."""
    floor = rule.prune_below
    return [
        Move(w.entry, State.PRUNED, "entry.pruned", f"relevance {w.relevance:.4f} is below {floor:g}")
        for w in found
        if w.relevance < floor
    ]


def capped(found: Sequence[Weighed], cap: int) -> list[Move]:
    """The least relevant, where a scope holds more than the spec lets it."""
    if not cap or len(found) <= cap:
        return []
    least = sorted(found, key=lambda w: (w.relevance, w.entry.confirmed_at, w.id))[: len(found) - cap]
    return [
        Move(w.entry, State.PRUNED, "entry.pruned", f"its scope holds more than {cap:,}, and this was least relevant")
        for w in least
    ]


def aged(found: Sequence[Weighed], rule: Consolidation, now: datetime) -> list[Move]:
    """Stale what was never recalled, forget what stayed so, and take back what was recalled after all."""
    return [move for w in found if (move := _aged(w, rule, now)) is not None]


def _aged(w: Weighed, rule: Consolidation, now: datetime) -> Move | None:
    entry, age = w.entry, now - w.entry.confirmed_at
    if entry.state is State.STALE and w.reads:
        return Move(entry, State.ACTIVE, "entry.restored", "it was recalled after it had grown stale")
    if w.reads:
        return None
    if entry.state is State.STALE and _older(age, rule.forget_after_days):
        cause = f"stale, never recalled, and older than {rule.forget_after_days:g} days"
        return Move(entry, State.FORGOTTEN, "entry.forgotten", cause)
    if entry.state is State.ACTIVE and _older(age, rule.stale_after_days):
        cause = f"never recalled, and older than {rule.stale_after_days:g} days"
        return Move(entry, State.STALE, "entry.stale", cause)
    return None


def _older(age: timedelta, days: float) -> bool:
    return days > 0 and age > timedelta(days=days)
