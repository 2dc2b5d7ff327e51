"""Reading one behavioural primitive from a table, on top of the value it overrides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lukasa.model.values import Kind
from lukasa.spec.decode import Table
from lukasa.spec.types import (
    TRIGGERS,
    Conflict,
    ConflictRule,
    Consolidation,
    Decay,
    DecayModel,
    Injection,
    Lifecycle,
    LifecyclePolicy,
    Primitive,
    Promotion,
    WriteMode,
    WritePolicy,
)

TIMED = frozenset(set(DecayModel) - {DecayModel.NONE, DecayModel.EXEMPT})


def read_primitive(primitive: Primitive, table: Table, base: Any) -> Any:
    """The primitive's value with what the table says put over `base`."""
    return _READERS[primitive](table, base)


def _lifecycle(t: Table, base: Lifecycle) -> Lifecycle:
    return Lifecycle(
        policy=t.choice("policy", tuple(LifecyclePolicy), base.policy),
        scratchpad=t.choice("scratchpad", ("clear", "keep"), base.scratchpad),
    )


def _decay(t: Table, base: Decay) -> Decay:
    model = t.choice("model", tuple(DecayModel), base.model)
    if model is not base.model:
        # Another model's figures mean something else: 0.01 is slow by the day and instant by the hour.
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


def _write(t: Table, base: WritePolicy) -> WritePolicy:
    return WritePolicy(
        mode=t.choice("mode", tuple(WriteMode), base.mode),
        confidence=t.number("confidence", base.confidence, high=1.0),
        min_chars=t.whole("min_chars", base.min_chars),
        dedup_cosine=t.number("dedup_cosine", base.dedup_cosine, above=True, high=1.0),
    )


def _promotion(t: Table, base: Promotion) -> Promotion:
    to = t.text("to", base.to, example="next", blank=True)
    kind = t.choice("kind", ("", *(k.value for k in Kind)), base.kind.value if base.kind else "")
    value = Promotion(
        to=to,
        min_relevance=t.number("min_relevance", base.min_relevance),
        min_access=t.whole("min_access", base.min_access),
        min_observations=t.whole("min_observations", base.min_observations),
        min_versions=t.whole("min_versions", base.min_versions),
        kind=Kind(kind) if kind else None,
    )
    # Nothing rises from here, so what was inherited about how it would must not linger.
    return value if to else Promotion("")


def _conflict(t: Table, base: Conflict) -> Conflict:
    return Conflict(t.choice("rule", tuple(ConflictRule), base.rule))


def _consolidation(t: Table, base: Consolidation) -> Consolidation:
    return Consolidation(
        style=t.choice("style", ("none", "compound", "merge", "supersession"), base.style),
        triggers=t.choices("triggers", TRIGGERS, base.triggers, example=("session_close",)),
        merge_cosine=t.number("merge_cosine", base.merge_cosine, above=True, high=1.0),
        prune_below=t.number("prune_below", base.prune_below, high=1.0),
        cap=t.whole("cap", base.cap),
        stale_after_days=t.number("stale_after_days", base.stale_after_days),
        forget_after_days=t.number("forget_after_days", base.forget_after_days),
    )


def _injection(t: Table, base: Injection) -> Injection:
    return Injection(
        mode=t.choice("mode", ("always", "on_demand"), base.mode),
        budget=t.whole("budget", base.budget, low=1, example=400),
        priority=t.whole("priority", base.priority),
    )


_READERS: dict[Primitive, Callable[[Table, Any], Any]] = {
    "lifecycle": _lifecycle,
    "decay": _decay,
    "write": _write,
    "promotion": _promotion,
    "conflict": _conflict,
    "consolidation": _consolidation,
    "injection": _injection,
}
