"""Apply answers about a spec to a spec as TOML data.

The data is a whole spec before and after every change, so each answer can be checked by building the spec. A question
about a value shows it in the same form in which it takes the answer.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from lukasa.model.errors import SpecError
from lukasa.model.values import Kind
from lukasa.spec.behaviours import default_behaviour
from lukasa.spec.canonical import values_of
from lukasa.spec.decode import literal
from lukasa.spec.types import Primitive

Data = dict[str, Any]
ALL, NONE, KEEP, TYPOLOGY = "all", "none", "keep", "typology"
_BARE = re.compile(r"=\s*([A-Za-z][\w:.-]*)(?=\s*(?:,|$))")
_GATE = re.compile(r"(?P<boundary>[\w-]+)(?:\s+(?P<way>into|to)\s+(?P<where>[\w-]+))?\s*:(?P<transforms>.*)", re.DOTALL)


def listed(answer: str) -> list[str]:
    """The parts between commas; none for `none`."""
    return [] if answer == NONE else list(dict.fromkeys(part.strip() for part in answer.split(",") if part.strip()))


def shown(values: Sequence[str]) -> str:
    return ", ".join(values) or NONE


def refuse(message: str, fix: str) -> SpecError:
    return SpecError(message, fix=fix)


# Anchor and tiers


def anchor_shown(data: Data) -> str:
    return shown([name if rule == "required" else f"{name}?" for name, rule in data["anchor"]["keys"].items()])


def set_anchor(data: Data, answer: str) -> None:
    """Declare the keys. Tiers that need another key go; if none is left, each key begins a tier."""
    keys = listed(answer)
    if all(key.endswith("?") for key in keys):
        raise refuse("at least one key must be required", "leave out a question mark")
    data["anchor"] = {"keys": {k.removesuffix("?"): "nullable" if k.endswith("?") else "required" for k in keys}}
    known = set(data["anchor"]["keys"])
    fitting = [tier for tier in data["tiers"] if {k.removesuffix("?") for k in tier["anchor"]} <= known]
    data["tiers"] = fitting if any(tier["persistent"] for tier in fitting) else _tiers_of(keys)
    _follow(data)


def _tiers_of(keys: Sequence[str]) -> list[Data]:
    """A tier for each required key, scoped by it and the keys before it; the narrowest first."""
    required = [key for key in keys if not key.endswith("?")]
    return [_tier(key.removesuffix("_id"), required[: n + 1]) for n, key in enumerate(required)][::-1]


def _tier(name: str, anchor: Sequence[str]) -> Data:
    passing = any(key in ("conversation", "session", "thread") for key in anchor)
    home = "account" if list(anchor) == ["account"] else "workspace"
    return {
        "name": name,
        "anchor": list(anchor),
        "boundary": {"type": "lifecycle", "event": f"{name}_end"}
        if passing
        else {"type": "scope", "event": f"{name}_change"},
        "persistent": not passing,
        "home": home,
    }


def set_tiers(data: Data, answer: str) -> None:
    """Keep the named tiers in the order of the answer, and make those that are new."""
    names, known = listed(answer), {tier["name"]: tier for tier in data["tiers"]}
    if not names:
        raise refuse("a memory needs a tier", "name one or more, the narrowest first, separated by commas")
    keys = [name for name, rule in data["anchor"]["keys"].items() if rule == "required"]
    width = {name: max(1, len(keys) - n) for n, name in enumerate(names)}
    data["tiers"] = [known.get(name) or _tier(name, _keys_of(name, keys, width[name])) for name in names]
    if not any(tier["persistent"] for tier in data["tiers"]):
        data["tiers"][-1]["persistent"] = True
    _follow(data)


def _keys_of(name: str, keys: Sequence[str], width: int) -> list[str]:
    """The keys up to the one that the tier is named after; if there is none, as many as its place among the tiers."""
    for n, key in enumerate(keys):
        if key.removesuffix("_id") == name:
            return list(keys[: n + 1])
    return list(keys[:width])


def _follow(data: Data) -> None:
    """Let everything that mentions tiers mention those that there are: new tiers get values, others leave no trace."""
    data["description"] = ""  # it described the tiers of the preset
    tiers = {tier["name"]: tier for tier in data["tiers"]}
    lasting = [name for name, tier in tiers.items() if tier["persistent"]]
    data["typology"] = {
        name: data["typology"].get(name, list(Kind)[::-1] if tier["persistent"] else ["episodic"])
        for name, tier in tiers.items()
    }
    closed = {"agents": "shared", "external": "closed"}
    data["visibility"] = {name: data["visibility"].get(name, dict(closed)) for name in tiers}
    retrieval = data["retrieval"]
    retrieval["recency_tiers"] = [name for name in retrieval.get("recency_tiers", []) if name in tiers]
    retrieval["tier_weights"] = {name: w for name, w in retrieval.get("tier_weights", {}).items() if name in tiers}
    data["sanitization"] = [gate for gate in data["sanitization"] if gate.get("into", "") in ("", *tiers)]
    for table in data.get("behaviour", {}).values():
        for name in [key for key, value in table.items() if isinstance(value, dict) and key not in {*tiers, *Kind}]:
            del table[name]
    for page in data.get("named", []):
        page["tier"] = page["tier"] if page["tier"] in lasting else lasting[-1]


def tier_of(data: Data, name: str) -> Data:
    return next(tier for tier in data["tiers"] if tier["name"] == name)


def set_boundary(tier: Data, answer: str) -> None:
    kind, _, event = answer.partition(" ")
    tier["boundary"] = {"type": kind, "event": event.strip().replace(" ", "_")}


def yes(answer: str) -> bool:
    if answer.lower() not in ("yes", "y", "no", "n"):
        raise refuse(f"{answer[:60]!r} is neither yes nor no", "answer yes or no")
    return answer.lower().startswith("y")


def set_persistent(data: Data, name: str, answer: str) -> None:
    tier = tier_of(data, name)
    tier["persistent"] = yes(answer)
    if not tier["persistent"]:
        tier["boundary"] = {"type": "lifecycle", "event": f"{name}_end"}
        _follow(data)


# Backend and retrieval


def set_embedder(data: Data, answer: str) -> None:
    data["backend"]["embedder"] = answer
    if answer == NONE:
        set_signals(data, shown([name for name in data["retrieval"]["signals"] if name != "vector"]))


def set_signals(data: Data, answer: str) -> None:
    retrieval = data["retrieval"]
    retrieval["signals"] = listed(answer)
    retrieval["weights"] = {n: w for n, w in retrieval.get("weights", {}).items() if n in retrieval["signals"]}


# Behaviour


def behaviour_shown(data: Data, primitive: Primitive) -> str:
    return KEEP if data.get("behaviour", {}).get(primitive) else TYPOLOGY


def places(data: Data, answer: str) -> list[str]:
    """Where a primitive deviates: everywhere, in tiers, for kinds, or for a kind in a tier."""
    if answer in (KEEP, TYPOLOGY):
        return []
    tiers, kinds = [tier["name"] for tier in data["tiers"]], [kind.value for kind in Kind]
    known = {ALL, *tiers, *kinds, *(f"{tier}.{kind}" for tier in tiers for kind in kinds)}
    found = listed(answer)
    for place in found:
        if place not in known:
            fix = f"use {KEEP}, {TYPOLOGY}, {ALL}, {', '.join([*tiers, *kinds])}, or a tier and a kind as in TIER.KIND"
            raise refuse(f"{place[:60]!r} is neither a tier nor a kind", fix)
    return found


def set_places(data: Data, primitive: Primitive, answer: str) -> None:
    """Drop the deviations of a primitive unless they are kept; those of the named places are asked for next."""
    if answer != KEEP:
        places(data, answer)
        data.get("behaviour", {}).pop(primitive, None)


def default_shown(data: Data, primitive: Primitive, place: str) -> str:
    """The value that a place has without a deviation, as an answer states it."""
    tier, _, kind = place.partition(".")
    kind = kind or (tier if tier in set(Kind) else "")
    here = [t for t in data["tiers"] if t["name"] == tier] or data["tiers"][-1:]
    of = Kind(kind) if kind else Kind(data["typology"][here[0]["name"]][0])
    value = values_of(getattr(default_behaviour(of, persistent=here[0]["persistent"]), primitive))
    return ", ".join(f"{name} = {literal(item)}" for name, item in value.items())


def set_deviation(data: Data, primitive: Primitive, place: str, answer: str) -> None:
    """Set the values of a place, with a reason to be replaced by the one that is asked for next."""
    try:
        values = tomllib.loads("v = {" + _BARE.sub(_quoted, answer) + "}")["v"]
    except tomllib.TOMLDecodeError as error:
        fix = "write the values that change: KEY = VALUE, KEY = VALUE"
        raise refuse(f"{answer[:60]!r} cannot be read: {error}", fix) from error
    table(data, primitive, place).update(values | {"reason": "given below"})


def _quoted(match: re.Match[str]) -> str:
    return match[0] if match[1] in ("true", "false") else f'= "{match[1]}"'


def table(data: Data, primitive: Primitive, place: str) -> Data:
    """The table of a place: made if it is not there."""
    found: Data = data.setdefault("behaviour", {}).setdefault(primitive, {})
    for part in () if place == ALL else place.split("."):
        found = found.setdefault(part, {})
    return found


# Discipline and audit


def gates_shown(data: Data) -> str:
    return "; ".join(_gate_shown(gate) for gate in data["sanitization"]) or NONE


def _gate_shown(gate: Data) -> str:
    way = next((f" {way} {gate[way]}" for way in ("into", "to") if gate.get(way)), "")
    return f"{gate['boundary']}{way}: {', '.join(gate['transforms'])}"


def set_gates(data: Data, answer: str) -> None:
    gates = []
    for text in [] if answer == NONE else [part.strip() for part in answer.split(";") if part.strip()]:
        match = _GATE.fullmatch(text)
        if match is None:
            fix = "write BOUNDARY into TIER: TRANSFORM, TRANSFORM; BOUNDARY to SURFACE: TRANSFORM"
            raise refuse(f"{text[:60]!r} is not a gate", fix)
        gate: Data = {"boundary": match["boundary"], "transforms": listed(match["transforms"])}
        gates.append(gate | ({match["way"]: match["where"]} if match["way"] else {}))
    data["sanitization"] = gates


def exempted(data: Data) -> str:
    return shown([item["rule"] for item in data.get("audit", {}).get("exemptions", [])])


def set_exemptions(data: Data, answer: str) -> None:
    data["audit"] = {"exemptions": [{"rule": rule, "reason": "given below"} for rule in listed(answer)]}


def whole(answer: str) -> int:
    if not answer.isdecimal():
        raise refuse(f"{answer[:60]!r} is not a number", "a whole number, as 20")
    return int(answer[:20])
