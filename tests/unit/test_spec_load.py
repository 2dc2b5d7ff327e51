"""What a spec file may say, and what each wrong thing is answered with."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lukasa.model.errors import SpecError
from lukasa.model.values import Kind
from lukasa.spec import InvalidSpec, check, load_preset, load_spec, parse_spec, preset_text
from lukasa.spec.decode import Problems
from lukasa.spec.load import decode
from lukasa.spec.types import SIGNALS

Data = dict[str, Any]
GATE = {"boundary": "tenant", "into": "account", "transforms": ["strip_identifiers"]}


def problems(change: Callable[[Data], object], preset: str = "default") -> list[SpecError]:
    """What is wrong with a preset after a change to its data."""
    data = tomllib.loads(preset_text(preset))
    change(data)
    found = Problems("spec.toml")
    decode(data, found)
    return found.found


def only(change: Callable[[Data], object], preset: str = "default") -> SpecError:
    found = problems(change, preset)
    assert len(found) == 1, [str(error) for error in found]
    return found[0]


@pytest.mark.parametrize(
    ("key", "title"),
    [
        ("anchor", "anchor entity"),
        ("typology", "memory typology"),
        ("tiers", "tier model"),
        ("backend", "persistence backend"),
        ("retrieval", "retrieval model"),
    ],
)
def test_missing_foundational(key: str, title: str) -> None:
    """P1: a spec without a foundational primitive is refused by an error that names it and what to write."""
    error = only(lambda data: data.pop(key))
    assert title in str(error)
    assert (error.key, error.file) == (key, "spec.toml")
    assert key in tomllib.loads(error.fix)


@pytest.mark.parametrize("key", ["reference_only", "sanitization", "visibility"])
def test_missing_discipline(key: str) -> None:
    """P3: a discipline primitive is never assumed, and its absence is one complaint, not ten."""
    assert only(lambda data: data.pop(key)).key == key


def test_no_sanitization_is_a_choice() -> None:
    """P3: having no gate is fine when it is said."""
    assert problems(lambda data: data.update(sanitization=[])) == []
    assert problems(lambda data: data.update(sanitization=[GATE])) == []


def test_tier_without_visibility() -> None:
    """P3: each tier says who reads it."""
    error = only(lambda data: data["visibility"].pop("channel"))
    assert error.key == "visibility.channel"
    assert "agents" in error.fix


def test_tier_without_typology() -> None:
    """P1: each tier says which kinds it holds."""
    assert only(lambda data: data["typology"].pop("channel")).key == "typology.channel"


def test_audit_defaults_to_universal() -> None:
    """P4: leaving the audit out means the universal posture."""
    assert problems(lambda data: data.pop("audit")) == []


def test_exemption_needs_a_reason() -> None:
    """P4: an exemption without a reason is refused, one with a reason is kept."""
    rule = {"rule": "keep-persistent"}
    assert only(lambda data: data.update(audit={"exemptions": [rule]})).key == "audit.exemptions[1].reason"
    assert only(lambda data: data.update(audit={"exemptions": [rule | {"reason": " "}]})).key.endswith("reason")
    assert problems(lambda data: data.update(audit={"exemptions": [rule | {"reason": "test data"}]})) == []


def test_undeclared_anchor_key() -> None:
    """P6: a tier is scoped by declared keys alone, and the nearest is suggested."""
    error = only(lambda data: data["tiers"][2].update(anchor=["workspce"]))
    assert "not declared" in str(error)
    assert '"workspace"' in error.fix


def test_tier_needs_a_required_key() -> None:
    """P6: a scope must have at least one key that is always there."""
    assert only(lambda data: data["tiers"][2].update(anchor=["workspace?"])).key == "tiers[3].anchor"


def test_boundary_type() -> None:
    """P6: a boundary is a lifecycle event, a scope change or an escalation."""
    error = only(lambda data: data["tiers"][0]["boundary"].update(type="lifecycl"))
    assert error.key == "tiers[1].boundary.type"
    assert error.fix.endswith('type = "lifecycle"')


def test_empty_boundary() -> None:
    """P6: a boundary that says nothing is not a boundary."""
    keys = {error.key for error in problems(lambda data: data["tiers"][0].update(boundary={}))}
    assert keys == {"tiers[1].boundary.type", "tiers[1].boundary.event"}


def test_account_tier_stays_out_of_workspaces() -> None:
    """X3: the account's store is shared, so nothing in it is scoped by what a workspace holds."""
    assert only(lambda data: data["tiers"][3].update(anchor=["account", "channel"])).key == "tiers[4].anchor"


def test_tiers_go_from_narrow_to_broad() -> None:
    """M1: a workspace tier after the account tier is refused."""
    assert "narrowest" in str(problems(lambda data: data["tiers"].reverse())[0])


def test_tier_names_are_unique() -> None:
    """M1: an item is in exactly one tier, so a name is one tier."""
    found = problems(lambda data: data["tiers"].append(dict(data["tiers"][3])))
    assert "twice" in str(found[0])


def test_reserved_tier_name() -> None:
    """A tier called after a kind would make [behaviour] tables ambiguous."""

    def rename(data: Data) -> None:
        data["tiers"][0]["name"] = "semantic"

    assert any("reserved" in str(error) for error in problems(rename))


def test_some_tier_lasts() -> None:
    """P6: a memory in which nothing outlives its scope is refused."""

    def make_transient(data: Data) -> None:
        for tier in data["tiers"]:
            tier["persistent"] = False
        data["named"] = []

    assert any("no tier is persistent" in str(error) for error in problems(make_transient))


@pytest.mark.parametrize(
    ("change", "key", "meant"),
    [
        (lambda data: data.update(retreival={}), "retreival", "retrieval"),
        (lambda data: data["retrieval"].update(fussion="rrf"), "retrieval.fussion", "fusion"),
        (lambda data: data["behaviour"]["decay"]["channel"].update(rat=1), "behaviour.decay.channel.rat", "rate"),
        (lambda data: data["behaviour"].update(decai={}), "behaviour.decai", "decay"),
        (lambda data: data["behaviour"]["decay"].update(chanel={}), "behaviour.decay.chanel", "channel"),
        (lambda data: data["typology"].update(chanels=["episodic"]), "typology.chanels", "channel"),
        (lambda data: data["retrieval"].update(tier_weights={"acount": 1}), "retrieval.tier_weights.acount", "account"),
    ],
)
def test_unknown_key_is_refused_with_the_nearest(change: Callable[[Data], object], key: str, meant: str) -> None:
    """A misspelt key is never silently without effect."""
    error = only(change)
    assert error.key == key
    assert repr(meant) in str(error)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda data: data["retrieval"].update(rrf_k="60"), "retrieval.rrf_k"),
        (lambda data: data["retrieval"].update(rrf_k=True), "retrieval.rrf_k"),
        (lambda data: data["retrieval"].update(signals="keyword"), "retrieval.signals"),
        (lambda data: data["retrieval"].update(signals=["keyword", "psychic"]), "retrieval.signals"),
        (lambda data: data["tiers"][0].update(persistent="no"), "tiers[1].persistent"),
        (lambda data: data.update(backend="sqlite"), "backend"),
        (lambda data: data.update(name="No Spaces"), "name"),
        (lambda data: data["named"][0].update(tier="conversation"), "named[1].tier"),
        (lambda data: data.update(sanitization=[GATE | {"transforms": ["bleach"]}]), "sanitization[1].transforms"),
        (lambda data: data.update(sanitization=[GATE | {"transforms": []}]), "sanitization[1].transforms"),
        (lambda data: data.update(sanitization=[GATE | {"into": "attic"}]), "sanitization[1].into"),
        (lambda data: data["taxonomy"].update(name="v99"), "taxonomy.name"),
    ],
)
def test_wrong_type_or_word(change: Callable[[Data], object], key: str) -> None:
    """W9: a value of the wrong sort is named with its place and a line to write instead."""
    found = problems(change)
    assert found[0].key == key
    assert found[0].fix


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), -float("inf"), 0, -0.5, 1.5, 10**400])
def test_impossible_rates(rate: float) -> None:
    """D1: a rate is a finite number above 0 and at most 1."""
    error = problems(lambda data: data["behaviour"]["decay"]["channel"].update(rate=rate))[0]
    assert error.key == "behaviour.decay.channel.rate"
    assert "rate = 0.998" in error.fix


def test_numbers_too_long_to_print() -> None:
    """W9: TOML's hexadecimal can hold a number that Python refuses to print; it is refused all the same."""
    text = preset_text("default").replace("budget = 2000", "budget = 0x" + "f" * 5000)
    assert [error.key for error in check(text)] == ["context.budget"]
    assert [error.key for error in check("name = 0x" + "f" * 5000)]


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("context", {"budget": 0}),
        ("context", {"inject_cap": 0}),
        ("context", {"standing_importance": 1.1}),
        ("retrieval", {"candidates": 0}),
        ("retrieval", {"prior_weight": -1}),
        ("retrieval", {"prior": ["age"]}),
        ("retrieval", {"dedup_cosine": 0}),
        ("retrieval", {"weights": dict.fromkeys(SIGNALS, 0)}),
        ("reference_only", {"similarity": 2}),
        ("reference_only", {"max_chars": 0}),
        ("reference_only", {"max_file_chars": 0}),
        ("triggers", {"queue_depth": 0}),
        ("triggers", {"revision_queue": 1.5}),
        ("triggers", {"idle_minutes": 0}),
        ("triggers", {"reflect_at": -1}),
        ("triage", {"promote_above": 1.1}),
        ("triage", {"promote_above": 0.2}),
        ("triage", {"reject_below": -0.1}),
        ("triage", {"batch": 101}),
        ("triage", {"every_minutes": 7}),
        ("disclosure", {"record": False}),
        ("disclosure", {"reason": "prompts are logged elsewhere"}),
        ("disclosure", {"keep_days": 0}),
        ("disclosure", {"keep_days": 4000}),
        ("disclosure", {"most": 0}),
    ],
)
def test_out_of_range(section: str, values: Data) -> None:
    """W9: numbers that cannot mean anything are refused."""
    assert only(lambda data: data.setdefault(section, {}).update(values)).key.startswith(f"{section}.")


def test_all_problems_at_once() -> None:
    """P5: the first problem is raised, says how many more there are, and carries them."""
    text = (
        preset_text("default").replace('fusion = "zscore"', 'fusion = "magic"').replace("budget = 2000", "budget = -1")
    )
    with pytest.raises(InvalidSpec, match=r"1 more") as raised:
        parse_spec(text, file="mine.toml")
    assert [error.key for error in (raised.value, *raised.value.others)] == ["retrieval.fusion", "context.budget"]
    assert raised.value.file == "mine.toml"
    assert raised.value.code == "spec-error"
    assert len(check(text)) == 2


@pytest.mark.parametrize("text", ["= 1", "a = 1\na = 2", "a = " + "9" * 5000, "a = " + "[" * 5000, "a = 1979-99-99"])
def test_broken_toml(text: str) -> None:
    """A file that is not TOML is a SpecError too."""
    with pytest.raises(SpecError):
        parse_spec(text)


def test_load_from_a_file(tmp_path: Path) -> None:
    """A copied preset is a spec of its own, and knows where it came from."""
    path = tmp_path / "mine.toml"
    path.write_text(preset_text("tiered"), "utf-8")
    spec = load_spec(path)
    assert spec == load_preset("tiered")
    assert spec.file == str(path)


def test_unreadable_files(tmp_path: Path) -> None:
    """A missing file, a folder and a file that is not UTF-8 are answered alike."""
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "none.toml", tmp_path, binary):
        with pytest.raises(SpecError, match="cannot be read"):
            load_spec(path)


def test_unknown_preset() -> None:
    """A misspelt preset suggests the one that was meant."""
    with pytest.raises(SpecError, match="tiered"):
        load_preset("teired")


def test_minimal_spec() -> None:
    """P1, P2: one tier, five foundational choices and three of discipline are a whole spec."""
    spec = parse_spec(
        """
        name = "tiny"
        sanitization = []
        anchor.keys = { workspace = "required" }
        typology.notes = ["semantic"]
        backend.store = "memory"
        retrieval = { signals = ["keyword"], fusion = "rrf" }
        reference_only = { non_mirror = [], calibration = "backstop" }
        visibility.notes = { agents = "shared", external = "closed" }
        [[tiers]]
        name = "notes"
        anchor = ["workspace"]
        boundary = { type = "scope", event = "workspace_change" }
        persistent = true
        home = "workspace"
        """
    )
    assert spec.retrieval.rrf_k == 60
    assert spec.retrieval.weights == {"keyword": 1.0}
    assert spec.inject_cap == 10
    assert {kind for _, kind in spec.behaviours} == set(Kind)
