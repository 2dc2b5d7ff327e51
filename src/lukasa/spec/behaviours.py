"""From typology defaults and a spec's [behaviour] tables to one behaviour for every kind in every tier.

Overrides apply from the general to the particular: a primitive everywhere, in a tier, for a kind, for a kind in a
tier. A kind goes before a tier because behaviour follows the kind of memory first.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.values import Kind
from lukasa.spec.decode import Problems, Table, nearest
from lukasa.spec.primitives import read_primitive
from lukasa.spec.types import BEHAVIOURS, Behaviour, Choice, Primitive, Promotion, Provenance, Tier
from lukasa.spec.typology import default_behaviour

SAME, NEXT = "same", "next"
KIND_NAMES = tuple(kind.value for kind in Kind)
REASON_FIX = 'say why: reason = "what makes this agent different", or take the lines out to keep the default'


class Layer(Struct, frozen=True):
    """One override table; an empty `tier` or no `kind` means all of them."""

    path: str
    data: dict[str, object]
    reason: str
    tier: str = ""
    kind: Kind | None = None

    def covers(self, tier: str, kind: Kind) -> bool:
        return self.tier in ("", tier) and self.kind in (None, kind)

    @property
    def rank(self) -> tuple[bool, bool]:
        return (self.kind is not None, self.tier != "")


def resolve(behaviour: Table, tiers: tuple[Tier, ...]) -> tuple[dict[tuple[str, Kind], Behaviour], tuple[Choice, ...]]:
    """All behaviours and where each value comes from; what is wrong goes to the table's problems."""
    layers = {primitive: _layers(behaviour.table(primitive), tiers) for primitive in BEHAVIOURS}
    behaviour.close()
    choices = []
    for tier in tiers:
        for kind in Kind:
            defaults = default_behaviour(kind, persistent=tier.persistent)
            for primitive in BEHAVIOURS:
                covering = [layer for layer in layers[primitive] if layer.covers(tier.name, kind)]
                cell = _Cell(tier, kind, primitive, tiers, behaviour.problems)
                choices.append(cell.choose(getattr(defaults, primitive), covering))
    return _gathered(choices), tuple(choices)


def _gathered(choices: list[Choice]) -> dict[tuple[str, Kind], Behaviour]:
    values: dict[tuple[str, Kind], dict[str, Any]] = {}
    for choice in choices:
        values.setdefault((choice.tier, choice.kind), {})[choice.primitive] = choice.value
    return {key: Behaviour(**found) for key, found in values.items()}


class _Cell(Struct, frozen=True):
    """One primitive for one kind in one tier."""

    tier: Tier
    kind: Kind
    primitive: Primitive
    tiers: tuple[Tier, ...]
    problems: Problems

    def choose(self, default: Any, layers: list[Layer]) -> Choice:
        value = self._folded(default, layers, self.problems)
        if value == self._placed(default):
            origin = Provenance.EXPLICIT if layers else Provenance.DEFAULT
            return Choice(self.tier.name, self.kind, self.primitive, value, origin)
        movers = self._movers(default, layers, value)
        for layer in movers:
            if not layer.reason:
                self.problems.add(layer.path, "differs from the typology default without a reason", REASON_FIX)
        reason = " ".join(dict.fromkeys(layer.reason for layer in movers))
        return Choice(self.tier.name, self.kind, self.primitive, value, Provenance.DEVIATION, reason)

    def _folded(self, default: Any, layers: list[Layer], problems: Problems) -> Any:
        value = default
        for layer in layers:
            table = Table(layer.data, layer.path, problems)
            value = read_primitive(self.primitive, table, value)
            table.close()
        return self._placed(value)

    def _movers(self, default: Any, layers: list[Layer], value: Any) -> list[Layer]:
        """The layers the value rests on: those without which it would be another. Twins count as the narrower one."""
        aside = Problems("")
        needed = [
            layer
            for layer in layers
            if self._folded(default, [other for other in layers if other is not layer], aside) != value
        ]
        return needed or layers[-1:]

    def _placed(self, value: Any) -> Any:
        """A promotion with its target named: the words for "here" and "further up" depend on the tier."""
        if not isinstance(value, Promotion) or value.to not in (SAME, NEXT):
            return value
        return replace(value, to=self.tier.name if value.to == SAME else next_tier(self.tier, self.tiers))


def next_tier(tier: Tier, tiers: tuple[Tier, ...]) -> str:
    """The next broader tier of the same home, else the tier itself.

    Rising from a workspace into the account takes content out of its tenant, so a spec must name that by hand.
    """
    broader = tiers[tiers.index(tier) + 1 :]
    return next((other.name for other in broader if other.home == tier.home), tier.name)


def _layers(table: Table, tiers: tuple[Tier, ...]) -> list[Layer]:
    names = tuple(tier.name for tier in tiers)
    found = _own(table)
    for key, value in table.data.items():
        if not isinstance(value, dict):
            continue
        inner = table.table(key)
        if key in KIND_NAMES:
            found += _own(inner, kind=Kind(key))
        elif key in names:
            found += _own(inner, tier=key)
            for kind in KIND_NAMES:
                if isinstance(inner.data.get(kind), dict):
                    found += _own(inner.table(kind), tier=key, kind=Kind(kind))
            _refuse_tables(inner, KIND_NAMES)
        else:
            _unknown(table, key, names + KIND_NAMES)
    return sorted(found, key=lambda layer: layer.rank)


def _own(table: Table, *, tier: str = "", kind: Kind | None = None) -> list[Layer]:
    """The table's own values as a layer, if it has any beside its sub-tables."""
    nested = kind is None
    data = {k: v for k, v in table.data.items() if k != "reason" and not (nested and isinstance(v, dict))}
    reason = table.text("reason", "", example="why this agent differs", blank=True).strip()
    return [Layer(table.path, data, reason, tier, kind)] if data or "reason" in table else []


def _refuse_tables(table: Table, known: tuple[str, ...]) -> None:
    for key, value in table.data.items():
        if isinstance(value, dict) and key not in known:
            _unknown(table, key, known)


def _unknown(table: Table, key: str, known: tuple[str, ...]) -> None:
    meant = nearest(key, known)
    hint = f"; did you mean {meant!r}?" if meant else ""
    table.problems.add(
        table.at(key), f"neither a tier nor a kind of memory here{hint}", f"use one of: {', '.join(known)}"
    )
