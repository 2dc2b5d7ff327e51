"""Whatever a spec file holds, the answer is a spec or a SpecError."""

from __future__ import annotations

import tomllib
from datetime import UTC, date, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lukasa.model.errors import SpecError
from lukasa.spec import MemorySpec, diff, dump, explain, parse_spec, preset_names, preset_text, render_show
from lukasa.spec.decode import Problems
from lukasa.spec.load import decode

SCALARS = st.one_of(
    st.booleans(),
    st.integers(),
    st.sampled_from([2**63, -(2**63), 10**400]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([date(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)]),
    st.sampled_from(["workspace", "semantic", "next", "hourly", "required", "keyword", "reason", ""]),
)
WORDS = st.sampled_from(
    ["name", "rate", "tiers", "workspace", "semantic", "reason", "model", "keys", "decay", "to", "x", "", "ä.b"]
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=6
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in the data with each of its keys."""
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [(value, key) for key, _ in pairs] + [place for _, inner in pairs for place in places(inner)]


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A preset's data with a few places removed, replaced or added to."""
    data = tomllib.loads(preset_text(draw(st.sampled_from(preset_names()))))
    for _ in range(draw(st.integers(1, 4))):
        found = places(data)
        if not found:
            break
        holder, key = found[draw(st.integers(0, len(found) - 1))]
        action = draw(st.sampled_from(["remove", "replace", "add"]))
        if action == "remove":
            del holder[key]
        elif action == "replace":
            holder[key] = draw(VALUES)
        elif isinstance(holder, dict):
            holder[draw(WORDS)] = draw(VALUES)
    return data


@settings(max_examples=400, deadline=None)
@given(mutated())
def test_only_spec_errors(data: dict[str, Any]) -> None:
    """P1, W9: any mutation of a preset is understood, or refused in our own words with a fix."""
    found = Problems("fuzz")
    spec = decode(data, found)
    assert all(isinstance(error, SpecError) and str(error) and error.fix for error in found.found)
    assert spec is not None or found.found
    if spec and not found.found:
        usable(spec)


def usable(spec: MemorySpec) -> None:
    again = parse_spec(dump(spec))
    assert again == spec
    assert diff(spec, again) == []
    assert render_show(spec)
    assert explain(spec)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    """W9: a text that is no spec is a SpecError, whatever it is."""
    try:
        parse_spec(text)
    except SpecError:
        return
    raise AssertionError("no text this short is a spec")
