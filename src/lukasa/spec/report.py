"""A spec for a reader: every value with its origin, the differences of two specs, the walk through the primitives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from lukasa.model.values import Kind
from lukasa.spec.canonical import values_of
from lukasa.spec.questions import WALK, WalkStep
from lukasa.spec.types import BEHAVIOURS, AnchorKey, Choice, Decay, DecayModel, MemorySpec, Promotion, ValueOrigin

UNIVERSAL = "universal default"
EXEMPTION = "exemption"


class Row(Struct, frozen=True):
    """One value of a spec. Tier and kind are empty if the primitive does not depend on them."""

    primitive: str
    tier: str
    kind: str
    value: str
    provenance: str
    reason: str = ""


class Difference(Struct, frozen=True):
    """A value in which two specs differ; the side of a spec without it is empty."""

    path: str
    left: str
    right: str


def show(spec: MemorySpec) -> list[Row]:
    """List every value with its origin, in the order of the primitives."""
    rows = [*_foundational(spec)]
    for primitive in BEHAVIOURS:
        rows += [_behavioural(choice) for choice in spec.choices if choice.primitive == primitive]
    return [*rows, *_discipline(spec), *_upkeep(spec), *_audit(spec)]


def _explicit(primitive: str, value: str, tier: str = "") -> Row:
    return Row(primitive, tier, "", value, ValueOrigin.EXPLICIT.value)


def _foundational(spec: MemorySpec) -> Iterator[Row]:
    yield _explicit("anchor", anchor_text(spec.anchor))
    for tier in spec.tiers:
        yield _explicit("typology", ", ".join(kind.value for kind in tier.typology), tier.name)
    for tier in spec.tiers:
        life = "persistent" if tier.persistent else "transient"
        ends = f"ends by {tier.boundary.type} {tier.boundary.event}"
        admits = f", admits {' + '.join(tier.admits)}" if tier.admits else ""
        yield _explicit(
            "tiers", f"({anchor_text(tier.anchor)}), {life}, {ends}, kept in {tier.home}{admits}", tier.name
        )
    yield _explicit("backend", value_text(spec.backend))
    yield _explicit("retrieval", value_text(spec.retrieval))


def _behavioural(choice: Choice) -> Row:
    text = value_text(choice.value)
    return Row(choice.primitive, choice.tier, choice.kind.value, text, choice.provenance.value, choice.reason)


def _discipline(spec: MemorySpec) -> Iterator[Row]:
    yield _explicit("reference_only", value_text(spec.reference_only))
    for gate in spec.sanitization:
        way = f" to {gate.to}" if gate.to else ""
        yield _explicit("sanitization", f"{gate.boundary}{way}: {', '.join(gate.transforms)}", gate.into)
    if not spec.sanitization:
        yield _explicit("sanitization", "none")
    for tier, access in spec.visibility.items():
        yield _explicit("visibility", value_text(access), tier)


def _audit(spec: MemorySpec) -> Iterator[Row]:
    yield Row("audit", "", "", "universal posture", UNIVERSAL)
    for exemption in spec.audit_exemptions:
        yield Row("audit", "", "", f"without {exemption.rule}", EXEMPTION, exemption.reason)


def _upkeep(spec: MemorySpec) -> Iterator[Row]:
    for name, value in (("triggers", spec.triggers), ("triage", spec.triage), ("disclosure", spec.disclosure)):
        usual = value == type(value)()
        yield Row(name, "", "", value_text(value), UNIVERSAL if usual else ValueOrigin.EXPLICIT.value)


def anchor_text(keys: tuple[AnchorKey, ...]) -> str:
    """The keys in order, with a question mark after each nullable one."""
    return ", ".join(key.name if key.required else f"{key.name}?" for key in keys)


def value_text(value: Any) -> str:
    """A value in one line, without figures that do not apply to it."""
    if isinstance(value, Promotion) and not value.to:
        return "never"
    if isinstance(value, Decay) and value.model in (DecayModel.NONE, DecayModel.EXEMPT):
        return f"model {value.model.value}"
    parts = []
    for name, item in values_of(value).items():
        if item not in ("", 0, 0.0, (), {}) or isinstance(item, bool):
            parts.append(f"{name} {_plain(item)}")
    return ", ".join(parts)


def _plain(item: object) -> str:
    if isinstance(item, bool):
        return "yes" if item else "no"
    if isinstance(item, float):
        return f"{item:g}"
    if isinstance(item, tuple | list):
        return " + ".join(str(part) for part in item)
    if isinstance(item, dict):
        return " / ".join(f"{key} {_plain(part)}" for key, part in item.items())
    return str(item)


def render_show(spec: MemorySpec) -> str:
    """The rows as text; kinds and tiers with the same value share a line."""
    lines = [f"{spec.name}: {spec.title}" if spec.title else spec.name]
    current = ""
    for row in _folded(show(spec)):
        if row.primitive != current:
            current = row.primitive
            lines += ["", current]
        where = _where(row)
        origin = f"{row.provenance}: {row.reason}" if row.reason else row.provenance
        lines += [f"  {f'{where}: ' if where else ''}{row.value}", f"      [{origin}]"]
    return "\n".join(lines) + "\n"


def _where(row: Row) -> str:
    return ", ".join(filter(None, (row.tier, row.kind)))


def _folded(rows: list[Row]) -> list[Row]:
    """Merge rows that are equal for several kinds, then for several tiers."""
    by_kind: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        by_kind.setdefault((row.primitive, row.tier, row.value, row.provenance, row.reason), []).append(row.kind)
    by_tier: dict[tuple[str, ...], list[str]] = {}
    for (primitive, tier, value, provenance, reason), kinds in by_kind.items():
        kind = "all kinds" if len(kinds) == len(Kind) else " + ".join(filter(None, kinds))
        by_tier.setdefault((primitive, kind, value, provenance, reason), []).append(tier)
    return [
        Row(primitive, " + ".join(filter(None, tiers)), kind, value, provenance, reason)
        for (primitive, kind, value, provenance, reason), tiers in by_tier.items()
    ]


def diff(a: MemorySpec, b: MemorySpec) -> list[Difference]:
    """List every value in which two specs differ, reasons included, in the order of the first."""
    left, right = dict(_flat(a)), dict(_flat(b))
    paths = dict.fromkeys([*left, *right])
    return [
        Difference(path, left.get(path, ""), right.get(path, "")) for path in paths if left.get(path) != right.get(path)
    ]


def _flat(spec: MemorySpec) -> Iterator[tuple[str, str]]:
    yield from (("name", spec.name), ("title", spec.title), ("description", spec.description))
    yield "anchor", anchor_text(spec.anchor)
    yield "tiers", ", ".join(tier.name for tier in spec.tiers)
    for tier in spec.tiers:
        yield f"typology.{tier.name}", ", ".join(kind.value for kind in tier.typology)
        yield f"tiers.{tier.name}.anchor", anchor_text(tier.anchor)
        yield f"tiers.{tier.name}.boundary", f"{tier.boundary.type} {tier.boundary.event}"
        for name in ("persistent", "home", "description"):
            yield f"tiers.{tier.name}.{name}", _plain(getattr(tier, name))
    yield from _fields("backend", spec.backend)
    yield from _fields("retrieval", spec.retrieval)
    for choice in spec.choices:
        path = f"behaviour.{choice.primitive}.{choice.tier}.{choice.kind.value}"
        yield from _fields(path, choice.value)
        yield f"{path}.origin", choice.provenance.value
        yield f"{path}.reason", choice.reason
    yield from _fields("reference_only", spec.reference_only)
    for n, gate in enumerate(spec.sanitization, 1):
        yield from _fields(f"sanitization[{n}]", gate)
    for name, access in spec.visibility.items():
        yield from _fields(f"visibility.{name}", access)
    for exemption in spec.audit_exemptions:
        yield f"audit.{exemption.rule}", exemption.reason
    for name, profile in spec.profiles.items():
        yield from _fields(f"profiles.{name}", profile)
    yield from _fields("triggers", spec.triggers)
    yield from _fields("triage", spec.triage)
    yield from _fields("disclosure", spec.disclosure)
    for name in ("context_budget", "inject_cap", "standing_importance", "curated", "curated_keeps", "taxonomy"):
        yield name, _plain(getattr(spec, name))
    for entry in spec.named:
        yield from _fields(f"named.{entry.name}", entry)


def _fields(path: str, value: Any) -> Iterator[tuple[str, str]]:
    for name, item in values_of(value).items():
        yield f"{path}.{name}", repr(item) if isinstance(item, float) else _plain(item)


def explain(spec: MemorySpec) -> str:
    """The spec as answers to the questions that every agent's memory must answer, in a good order for asking."""
    rows = _folded(show(spec))
    lines = [f"{spec.name}: {spec.description}" if spec.description else spec.name]
    for n, step in enumerate(WALK, 1):
        lines += ["", f"{n}. {step.title}", f"   {step.question}", *_answer(step, rows)]
    return "\n".join(lines) + "\n"


def _answer(step: WalkStep, rows: list[Row]) -> Iterator[str]:
    for primitive in step.primitives:
        mine = [row for row in rows if row.primitive == primitive]
        if len(step.primitives) > 1:
            yield f"   {primitive}:"
        for row in mine:
            where = _where(row)
            yield f"   - {f'{where}: ' if where else ''}{row.value}"
            yield f"     {row.provenance}{f': {row.reason}' if row.reason else ''}"
