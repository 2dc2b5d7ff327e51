"""Write a spec as canonical TOML that parses back to an equal spec; a workspace stores its spec in this form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import fields

from lukasa.model.values import Kind
from lukasa.spec.decode import bare_or_quoted, literal
from lukasa.spec.types import BEHAVIOURS, Choice, MemorySpec, Primitive, Promotion, Tier, ValueOrigin

SECTIONS = (
    "anchor",
    "typology",
    "tiers",
    "backend",
    "retrieval",
    "behaviour",
    "reference_only",
    "sanitization",
    "visibility",
    "audit",
    "upkeep",
    "reading",
    "named",
)


def dump(spec: MemorySpec, comments: Mapping[str, str] | None = None) -> str:
    """The spec's TOML. `comments` puts lines above a section; they do not change the spec."""
    lines = list(_head(spec))
    for section in SECTIONS:
        body = list(_WRITERS[section](spec))
        note = (comments or {}).get(section, "")
        if not body and not note:
            continue
        if note:
            lines += ["", *(f"# {line}".rstrip() for line in note.splitlines())]
        lines += body
    return "\n".join(lines) + "\n"


def _head(spec: MemorySpec) -> Iterator[str]:
    yield from _pairs({"name": spec.name, "title": spec.title, "description": spec.description})
    if not spec.sanitization:
        # A bare key must come before the first header.
        yield "sanitization = []"


def _pairs(values: Mapping[str, object]) -> Iterator[str]:
    for key, value in values.items():
        yield f"{bare_or_quoted(key)} = {literal(value)}"


def _table(header: str, values: Mapping[str, object]) -> Iterator[str]:
    yield ""
    yield header
    yield from _pairs(values)


def _anchor(spec: MemorySpec) -> Iterator[str]:
    keys = {key.name: "required" if key.required else "nullable" for key in spec.anchor}
    yield from _table("[anchor]", {"keys": keys})


def _typology(spec: MemorySpec) -> Iterator[str]:
    yield from _table("[typology]", {tier.name: tier.typology for tier in spec.tiers})


def _tiers(spec: MemorySpec) -> Iterator[str]:
    declared = {key.name: key.required for key in spec.anchor}
    for tier in spec.tiers:
        values = {
            "name": tier.name,
            "anchor": _tier_anchor(tier, declared),
            "boundary": {"type": tier.boundary.type, "event": tier.boundary.event},
            "persistent": tier.persistent,
            "home": tier.home,
            "description": tier.description,
        }
        yield from _table("[[tiers]]", values | ({"admits": tier.admits} if tier.admits else {}))


def _tier_anchor(tier: Tier, declared: Mapping[str, bool]) -> list[str]:
    return [key.name + ("?" if declared[key.name] and not key.required else "") for key in tier.anchor]


def _backend(spec: MemorySpec) -> Iterator[str]:
    yield from _table("[backend]", values_of(spec.backend))


def _retrieval(spec: MemorySpec) -> Iterator[str]:
    yield from _table("[retrieval]", values_of(spec.retrieval))


def _behaviour(spec: MemorySpec) -> Iterator[str]:
    """The values that are not defaults: one table for a tier if its kinds agree, else one for each kind."""
    for primitive in BEHAVIOURS:
        for tier in spec.tiers:
            stated = [
                choice
                for choice in spec.choices
                if (choice.primitive, choice.tier) == (primitive, tier.name)
                and choice.provenance is not ValueOrigin.DEFAULT
            ]
            if _agree(stated):
                yield from _override(primitive, tier.name, stated)
            else:
                for choice in stated:
                    yield from _override(primitive, f"{tier.name}.{choice.kind.value}", [choice])


def _agree(stated: list[Choice]) -> bool:
    reasons = {choice.reason for choice in stated if choice.reason}
    values = [choice.value for choice in stated]
    return len(stated) == len(Kind) and len(reasons) <= 1 and all(value == values[0] for value in values)


def _override(primitive: Primitive, where: str, stated: list[Choice]) -> Iterator[str]:
    value = stated[0].value
    values = {"to": ""} if isinstance(value, Promotion) and not value.to else values_of(value)
    reason = next((choice.reason for choice in stated if choice.reason), "")
    yield from _table(f"[behaviour.{primitive}.{where}]", values | ({"reason": reason} if reason else {}))


def _reference_only(spec: MemorySpec) -> Iterator[str]:
    yield from _table("[reference_only]", values_of(spec.reference_only))


def _sanitization(spec: MemorySpec) -> Iterator[str]:
    for gate in spec.sanitization:
        given = {name: value for name, value in values_of(gate).items() if name != ("into" if gate.to else "to")}
        yield from _table("[[sanitization]]", given)


def _visibility(spec: MemorySpec) -> Iterator[str]:
    for tier, access in spec.visibility.items():
        yield from _table(f"[visibility.{tier}]", values_of(access))


def _audit(spec: MemorySpec) -> Iterator[str]:
    exemptions = [values_of(exemption) for exemption in spec.audit_exemptions]
    yield from _table("[audit]", {"posture": "universal", "exemptions": exemptions})


def _upkeep(spec: MemorySpec) -> Iterator[str]:
    """Without defaults, so that a spec from before these sections existed keeps its text."""
    for name, value in (("triggers", spec.triggers), ("triage", spec.triage), ("disclosure", spec.disclosure)):
        if value != type(value)():
            yield from _table(f"[{name}]", values_of(value))


def _reading(spec: MemorySpec) -> Iterator[str]:
    for name, profile in spec.profiles.items():
        yield from _table(f"[profiles.{name}]", values_of(profile))
    context = {
        "budget": spec.context_budget,
        "inject_cap": spec.inject_cap,
        "standing_importance": spec.standing_importance,
    }
    yield from _table("[context]", context)
    yield from _table("[curated]", {"form": spec.curated, "keep": spec.curated_keeps})
    yield from _table("[taxonomy]", {"name": spec.taxonomy})


def _named(spec: MemorySpec) -> Iterator[str]:
    for entry in spec.named:
        yield from _table("[[named]]", values_of(entry))


def values_of(value: Any) -> dict[str, Any]:
    """The fields of a value as TOML. An absent value is an empty text, because TOML has no null."""
    found = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: "" if item is None else item for name, item in found.items()}


_WRITERS = {
    "anchor": _anchor,
    "typology": _typology,
    "tiers": _tiers,
    "backend": _backend,
    "retrieval": _retrieval,
    "behaviour": _behaviour,
    "reference_only": _reference_only,
    "sanitization": _sanitization,
    "visibility": _visibility,
    "audit": _audit,
    "upkeep": _upkeep,
    "reading": _reading,
    "named": _named,
}
