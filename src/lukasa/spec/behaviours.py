"""Read one behavioural primitive from a table, on top of the value that the table overrides."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.values import Kind
from lukasa.spec.decode import Problems, TomlTable, nearest
from lukasa.spec.types import (
    BEHAVIOURS,
    TRIGGERS,
    Behaviour,
    ByRule,
    Choice,
    ConflictPolicy,
    ConflictRule,
    Consolidation,
    Decay,
    DecayModel,
    Injection,
    Lifecycle,
    LifecyclePolicy,
    Primitive,
    Promotion,
    SourceRule,
    Tier,
    ValueOrigin,
    WriteMode,
    WritePolicy,
)

TIMED = frozenset(set(DecayModel) - {DecayModel.NONE, DecayModel.EXEMPT})


def read_primitive(primitive: Primitive, table: TomlTable, base: Any) -> Any:
    """The primitive's value: `base` with the table's values in place of its own."""
    return _READERS[primitive](table, base)


SOURCE_RULES: tuple[SourceRule, ...] = get_args(SourceRule)
_CORROBORATED = Lifecycle(
    LifecyclePolicy.CORROBORATE, max_failures=3, source_changed="recheck", source_vanished="archive"
)


def _lifecycle(t: TomlTable, base: Lifecycle) -> Lifecycle:
    scratchpad = base.scratchpad
    policy = t.choice("policy", tuple(LifecyclePolicy), base.policy)
    if policy is not base.policy:
        # The effects of checks and sources belong to the policy: no other one inherits them.
        base = _CORROBORATED if policy is LifecyclePolicy.CORROBORATE else Lifecycle(policy)
    return Lifecycle(
        policy=policy,
        scratchpad=t.choice("scratchpad", ("clear", "keep"), scratchpad),
        max_failures=t.whole("max_failures", base.max_failures),
        source_changed=t.choice("source_changed", SOURCE_RULES, base.source_changed),
        source_vanished=t.choice("source_vanished", SOURCE_RULES, base.source_vanished),
    )


def _decay(t: TomlTable, base: Decay) -> Decay:
    model = t.choice("model", tuple(DecayModel), base.model)
    if model is not base.model:
        # The figures of another decay model mean something else: 0.01 is slow by the day and instant by the hour.
        base = Decay(model)
        if model in TIMED and "rate" not in t:
            t.wrong("rate", f"decay model {model.value!r} needs a rate", 0.01 if model is DecayModel.DAILY else 0.998)
        if model is DecayModel.VALIDITY and "window_days" not in t:
            t.wrong("window_days", "decay model 'validity' needs a window", 90.0)
    return Decay(
        model=model,
        rate=t.number("rate", base.rate, above=True, high=1.0, example=0.998),
        window_days=t.number("window_days", base.window_days, example=90.0),
        stale_factor=t.number("stale_factor", base.stale_factor, above=True, high=1.0),
        threshold=t.number("threshold", base.threshold, high=1.0),
    )


def _write(t: TomlTable, base: WritePolicy) -> WritePolicy:
    mode = t.choice("mode", tuple(WriteMode), base.mode)
    confidence = t.number("confidence", base.confidence if mode is WriteMode.MIXED else 0.0, high=1.0)
    if confidence and mode is not WriteMode.MIXED:
        t.wrong("confidence", f"counts with the mode 'mixed' alone, not with {mode.value!r}", 0.0)
    return WritePolicy(
        mode=mode,
        confidence=confidence,
        min_chars=t.whole("min_chars", base.min_chars),
        dedup_cosine=t.number("dedup_cosine", base.dedup_cosine, above=True, high=1.0),
        form_rules=t.choice("form_rules", ("observed", "all"), base.form_rules),
    )


def _promotion(t: TomlTable, base: Promotion) -> Promotion:
    to = t.text("to", base.to, example="next", blank=True)
    kind = t.choice("kind", ("", *(k.value for k in Kind)), base.kind.value if base.kind else "")
    versions = t.whole("min_versions", base.min_versions)
    value = Promotion(
        to=to,
        min_relevance=t.number("min_relevance", base.min_relevance),
        min_access=t.whole("min_access", base.min_access),
        min_observations=t.whole("min_observations", base.min_observations),
        min_versions=versions,
        min_recurrence=t.whole("min_recurrence", base.min_recurrence if versions else 0),
        kind=Kind(kind) if kind else None,
    )
    # No entry rises from here, so inherited conditions of a promotion are removed.
    return value if to else Promotion("")


def _conflict(t: TomlTable, base: ConflictPolicy) -> ConflictPolicy:
    rule = t.choice("rule", tuple(ConflictRule), base.rule)
    return ConflictPolicy(rule, t.choice("by_rule", tuple(ByRule), base.by_rule))


def _consolidation(t: TomlTable, base: Consolidation) -> Consolidation:
    return Consolidation(
        style=t.choice("style", ("none", "compound", "merge", "supersession"), base.style),
        triggers=t.choices("triggers", TRIGGERS, base.triggers, example=("session_close",)),
        merge_cosine=t.number("merge_cosine", base.merge_cosine, above=True, high=1.0),
        prune_below=t.number("prune_below", base.prune_below, high=1.0),
        cap=t.whole("cap", base.cap),
        stale_after_days=t.number("stale_after_days", base.stale_after_days),
        forget_after_days=t.number("forget_after_days", base.forget_after_days),
    )


def _injection(t: TomlTable, base: Injection) -> Injection:
    return Injection(
        mode=t.choice("mode", ("always", "on_demand"), base.mode),
        budget=t.whole("budget", base.budget, low=1, example=400),
        priority=t.whole("priority", base.priority),
    )


_READERS: dict[Primitive, Callable[[TomlTable, Any], Any]] = {
    "lifecycle": _lifecycle,
    "decay": _decay,
    "write": _write,
    "promotion": _promotion,
    "conflict": _conflict,
    "consolidation": _consolidation,
    "injection": _injection,
}


COLUMNS = ("episodic-transient", "episodic-persistent", "semantic", "procedural")

# The values before the file is read; the file states every choice that matters.
_BLANK: dict[Primitive, Any] = {
    "lifecycle": Lifecycle(LifecyclePolicy.DROP),
    "decay": Decay(DecayModel.NONE),
    "write": WritePolicy(WriteMode.AUTO),
    "promotion": Promotion(""),
    "conflict": ConflictPolicy(ConflictRule.NOOP),
    "consolidation": Consolidation("none"),
    "injection": Injection("on_demand", 1, 0),
}


def column(kind: Kind, *, persistent: bool) -> str:
    """The column of the doctrine's tables that applies to a kind in a tier."""
    if kind is not Kind.EPISODIC:
        return kind.value
    return "episodic-persistent" if persistent else "episodic-transient"


def default_behaviour(kind: Kind, *, persistent: bool) -> Behaviour:
    """The seven defaults. A promotion's `to` may be "same" or "next", which each tier resolves to a tier's name."""
    return _defaults()[column(kind, persistent=persistent), persistent]


@lru_cache(maxsize=1)
def _defaults() -> dict[tuple[str, bool], Behaviour]:
    text = Path(__file__).with_name("typology.toml").read_text("utf-8")
    problems = Problems("typology.toml")
    root = TomlTable(tomllib.loads(text), "", problems)
    found = {(name, persistent): _behaviour(root, name, persistent) for name in COLUMNS for persistent in (False, True)}
    if problems.found:
        raise problems.found[0]
    return found


def _behaviour(root: TomlTable, name: str, persistent: bool) -> Behaviour:
    values = {}
    for primitive in BEHAVIOURS:
        if primitive == "injection":
            table = root.table("injection").table("persistent" if persistent else "transient")
        else:
            table = root.table(name).table(primitive)
        values[primitive] = read_primitive(primitive, table, _BLANK[primitive])
        table.close()
    return Behaviour(**values)


SAME, NEXT = "same", "next"
KIND_NAMES = tuple(kind.value for kind in Kind)
REASON_FIX = 'say why: reason = "what makes this agent different", or take the lines out to keep the default'


class Layer(Struct, frozen=True):
    """One override table; an empty `tier` or a `kind` of None means all of them."""

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


def resolve(
    behaviour: TomlTable, tiers: tuple[Tier, ...]
) -> tuple[dict[tuple[str, Kind], Behaviour], tuple[Choice, ...]]:
    """All behaviours, and the origin of each value; errors are added to the table's problems."""
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
            origin = ValueOrigin.EXPLICIT if layers else ValueOrigin.DEFAULT
            return Choice(self.tier.name, self.kind, self.primitive, value, origin)
        movers = self._movers(default, layers, value)
        for layer in movers:
            if not layer.reason:
                self.problems.add(layer.path, "differs from the typology default without a reason", REASON_FIX)
        reason = " ".join(dict.fromkeys(layer.reason for layer in movers))
        return Choice(self.tier.name, self.kind, self.primitive, value, ValueOrigin.DEVIATION, reason)

    def _folded(self, default: Any, layers: list[Layer], problems: Problems) -> Any:
        value = default
        for layer in layers:
            table = TomlTable(layer.data, layer.path, problems)
            value = read_primitive(self.primitive, table, value)
            table.close()
        return self._placed(value)

    def _movers(self, default: Any, layers: list[Layer], value: Any) -> list[Layer]:
        """The layers without which the value would be different; if each alone suffices, the narrowest one."""
        aside = Problems("")
        needed = [
            layer
            for layer in layers
            if self._folded(default, [other for other in layers if other is not layer], aside) != value
        ]
        return needed or layers[-1:]

    def _placed(self, value: Any) -> Any:
        """A promotion with the name of its target: "same" and "next" depend on the tier."""
        if not isinstance(value, Promotion) or value.to not in (SAME, NEXT):
            return value
        return replace(value, to=self.tier.name if value.to == SAME else next_tier(self.tier, self.tiers))


def next_tier(tier: Tier, tiers: tuple[Tier, ...]) -> str:
    """The next broader tier of the same home, else the tier itself.

    A promotion from a workspace into the account takes content out of its tenant, so a spec must name that tier itself.
    """
    broader = tiers[tiers.index(tier) + 1 :]
    return next((other.name for other in broader if other.home == tier.home), tier.name)


def _layers(table: TomlTable, tiers: tuple[Tier, ...]) -> list[Layer]:
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


def _own(table: TomlTable, *, tier: str = "", kind: Kind | None = None) -> list[Layer]:
    """The table's own values as a layer, if it has any in addition to its sub-tables."""
    nested = kind is None
    data = {k: v for k, v in table.data.items() if k != "reason" and not (nested and isinstance(v, dict))}
    reason = table.text("reason", "", example="why this agent differs", blank=True).strip()
    return [Layer(table.path, data, reason, tier, kind)] if data or "reason" in table else []


def _refuse_tables(table: TomlTable, known: tuple[str, ...]) -> None:
    for key, value in table.data.items():
        if isinstance(value, dict) and key not in known:
            _unknown(table, key, known)


def _unknown(table: TomlTable, key: str, known: tuple[str, ...]) -> None:
    meant = nearest(key, known)
    hint = f"; did you mean {meant!r}?" if meant else ""
    table.problems.add(
        table.at(key), f"neither a tier nor a kind of memory here{hint}", f"use one of: {', '.join(known)}"
    )
