"""Behavioural defaults by kind of memory, read from typology.toml: the doctrine's tables as data."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from lukasa.model.values import Kind
from lukasa.spec.decode import Problems, Table
from lukasa.spec.primitives import read_primitive
from lukasa.spec.types import (
    BEHAVIOURS,
    Behaviour,
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

COLUMNS = ("episodic-transient", "episodic-persistent", "semantic", "procedural")

# What a value is before the file says anything; the file states every choice that matters.
_BLANK: dict[Primitive, Any] = {
    "lifecycle": Lifecycle(LifecyclePolicy.DROP),
    "decay": Decay(DecayModel.NONE),
    "write": WritePolicy(WriteMode.AUTO),
    "promotion": Promotion(""),
    "conflict": Conflict(ConflictRule.NOOP),
    "consolidation": Consolidation("none"),
    "injection": Injection("on_demand", 1, 0),
}


def column(kind: Kind, *, persistent: bool) -> str:
    """Which column of the doctrine's tables holds for a kind in a tier."""
    if kind is not Kind.EPISODIC:
        return kind.value
    return "episodic-persistent" if persistent else "episodic-transient"


def default_behaviour(kind: Kind, *, persistent: bool) -> Behaviour:
    """The seven defaults. A promotion's `to` may be the word "same" or "next": a tier gives it its meaning."""
    return _defaults()[column(kind, persistent=persistent), persistent]


@lru_cache(maxsize=1)
def _defaults() -> dict[tuple[str, bool], Behaviour]:
    text = Path(__file__).with_name("typology.toml").read_text("utf-8")
    problems = Problems("typology.toml")
    root = Table(tomllib.loads(text), "", problems)
    found = {(name, persistent): _behaviour(root, name, persistent) for name in COLUMNS for persistent in (False, True)}
    if problems.found:
        raise problems.found[0]
    return found


def _behaviour(root: Table, name: str, persistent: bool) -> Behaviour:
    values = {}
    for primitive in BEHAVIOURS:
        if primitive == "injection":
            table = root.table("injection").table("persistent" if persistent else "transient")
        else:
            table = root.table(name).table(primitive)
        values[primitive] = read_primitive(primitive, table, _BLANK[primitive])
        table.close()
    return Behaviour(**values)
