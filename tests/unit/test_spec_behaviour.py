"""Behaviour follows kind by default, and a spec that departs from it says why."""

from __future__ import annotations

import pytest

from lukasa.model.errors import SpecError
from lukasa.model.values import Kind
from lukasa.spec import MemorySpec, check, default_behaviour, load_preset, parse_spec, preset_text
from lukasa.spec.types import Choice, ConflictRule, DecayModel, LifecyclePolicy, ValueOrigin, WriteMode

PLAIN = preset_text("anchored")  # nothing but defaults, so that every difference is the test's


def with_behaviour(toml: str) -> MemorySpec:
    return parse_spec(f"{PLAIN}\n{toml}")


def choice(spec: MemorySpec, primitive: str, tier: str, kind: Kind) -> Choice:
    return next(c for c in spec.choices if (c.primitive, c.tier, c.kind) == (primitive, tier, kind))


@pytest.mark.parametrize(
    ("kind", "persistent", "lifecycle", "decay", "write", "conflict", "style"),
    [
        (Kind.EPISODIC, False, "drop", "none", "auto", "noop", "compound"),
        (Kind.EPISODIC, True, "dispose", "forcing", "auto", "noop", "compound"),
        (Kind.SEMANTIC, True, "corroborate", "validity", "promotion", "validity", "merge"),
        (Kind.PROCEDURAL, True, "indefinite", "exempt", "mixed", "supersede", "supersession"),
    ],
)
def test_typology_table(
    kind: Kind, persistent: bool, lifecycle: str, decay: str, write: str, conflict: str, style: str
) -> None:
    """P2, W4: the doctrine's tables, column by column."""
    behaviour = default_behaviour(kind, persistent=persistent)
    assert behaviour.lifecycle.policy is LifecyclePolicy(lifecycle)
    assert behaviour.decay.model is DecayModel(decay)
    assert behaviour.write.mode is WriteMode(write)
    assert behaviour.conflict.rule is ConflictRule(conflict)
    assert behaviour.consolidation.style == style


def test_typology_promotion() -> None:
    """W8: episodes rise by corroboration, facts by outliving versions, procedures never."""
    episode = default_behaviour(Kind.EPISODIC, persistent=True).promotion
    assert (episode.kind, episode.min_observations) == (Kind.SEMANTIC, 3)
    assert default_behaviour(Kind.SEMANTIC, persistent=True).promotion.min_versions == 2
    assert default_behaviour(Kind.PROCEDURAL, persistent=True).promotion.to == ""


@pytest.mark.parametrize("kind", list(Kind))
def test_typology_injection(kind: Kind) -> None:
    """C2: transient tiers are always in the prompt, persistent ones on demand."""
    assert default_behaviour(kind, persistent=False).injection.mode == "always"
    assert default_behaviour(kind, persistent=True).injection.mode == "on_demand"


def test_deviation_without_reason_is_refused() -> None:
    """P2: a value that differs from its default must say why."""
    with pytest.raises(SpecError, match="without a reason") as raised:
        with_behaviour('[behaviour.conflict.persistent.semantic]\nrule = "noop"')
    assert raised.value.key == "behaviour.conflict.persistent.semantic"
    assert "reason" in raised.value.fix


def test_a_blank_reason_is_none() -> None:
    """P2: spaces are no reason."""
    with pytest.raises(SpecError, match="without a reason"):
        with_behaviour('[behaviour.conflict.semantic]\nrule = "noop"\nreason = "  "')


def test_deviation_with_reason() -> None:
    """P2, P5: the reason is kept with the value and its origin."""
    spec = with_behaviour('[behaviour.conflict.persistent.semantic]\nrule = "noop"\nreason = "a debate club"')
    made = choice(spec, "conflict", "persistent", Kind.SEMANTIC)
    assert (made.provenance, made.reason) == (ValueOrigin.DEVIATION, "a debate club")
    assert spec.behaviour("persistent", Kind.SEMANTIC).conflict.rule is ConflictRule.NOOP
    assert choice(spec, "conflict", "session", Kind.SEMANTIC).provenance is ValueOrigin.DEFAULT


def test_stating_the_default_needs_no_reason() -> None:
    """P2, P5: a default that is written down is explicit, not a deviation."""
    spec = with_behaviour('[behaviour.decay.procedural]\nmodel = "exempt"')
    assert choice(spec, "decay", "persistent", Kind.PROCEDURAL).provenance is ValueOrigin.EXPLICIT


def test_one_number_is_a_deviation_too() -> None:
    """P2: changing a figure and not the rule still needs a reason."""
    assert check(f"{PLAIN}\n[behaviour.injection.persistent]\nbudget = 601")
    assert check(f'{PLAIN}\n[behaviour.injection.persistent]\nbudget = 601\nreason = "measured"') == []


def test_the_narrower_table_wins() -> None:
    """P2: everywhere < tier < kind < kind in a tier, and only the tables that count need their reasons."""
    spec = with_behaviour(
        """
        [behaviour.write]
        min_chars = 1
        reason = "everywhere"
        [behaviour.write.session]
        min_chars = 2
        reason = "tier"
        [behaviour.write.semantic]
        min_chars = 3
        reason = "kind"
        [behaviour.write.session.semantic]
        min_chars = 4
        reason = "both"
        """
    )
    found = {(tier, kind.value): b.write.min_chars for (tier, kind), b in spec.behaviours.items()}
    assert found["persistent", "episodic"] == 1
    assert found["session", "episodic"] == 2
    assert found["persistent", "semantic"] == 3
    assert found["session", "semantic"] == 4
    assert choice(spec, "write", "session", Kind.SEMANTIC).reason == "both"


def test_restoring_the_default_for_one_kind() -> None:
    """P2: an exception back to the default needs no reason of its own."""
    spec = with_behaviour(
        '[behaviour.write]\nmode = "auto"\nconfidence = 0.0\nreason = "r"\n'
        '[behaviour.write.semantic]\nmode = "promotion"'
    )
    made = choice(spec, "write", "persistent", Kind.SEMANTIC)
    assert (made.provenance, spec.behaviour("persistent", Kind.SEMANTIC).write.mode) == (
        ValueOrigin.EXPLICIT,
        WriteMode.PROMOTION,
    )


def test_reasons_of_all_tables_a_value_rests_on() -> None:
    """P5: a value made by two tables carries both reasons."""
    spec = with_behaviour(
        '[behaviour.write]\nmin_chars = 5\nreason = "Short."\n'
        '[behaviour.write.semantic]\nmode = "explicit"\nreason = "Said."'
    )
    assert choice(spec, "write", "session", Kind.SEMANTIC).reason == "Short. Said."


def test_another_decay_model_starts_afresh() -> None:
    """D1, D2: a rate by the hour is not taken over as a rate by the day."""
    with pytest.raises(SpecError, match="needs a rate"):
        with_behaviour('[behaviour.decay.semantic]\nmodel = "daily"\nreason = "r"')
    spec = with_behaviour('[behaviour.decay.semantic]\nmodel = "hourly"\nrate = 0.9\nreason = "r"')
    assert spec.behaviour("persistent", Kind.SEMANTIC).decay.window_days == 0


def test_validity_needs_a_window() -> None:
    """D3: a window of nothing is refused."""
    assert check(f'{PLAIN}\n[behaviour.decay.semantic]\nwindow_days = 0\nreason = "r"')


def test_next_tier_stays_at_home() -> None:
    """W8, X3: "next" climbs inside the workspace and stops at its top."""
    spec = load_preset("default")
    assert spec.behaviour("channel", Kind.SEMANTIC).promotion.to == "workspace"
    assert spec.behaviour("workspace", Kind.SEMANTIC).promotion.to == "workspace"


@pytest.mark.parametrize(("to", "said"), [("attic", "unknown tier"), ("interaction", "narrower")])
def test_promotion_goes_up_to_a_tier(to: str, said: str) -> None:
    """W8: a promotion rises to a tier that exists."""
    with pytest.raises(SpecError, match=said):
        with_behaviour(f'[behaviour.promotion.persistent.semantic]\nto = "{to}"\nreason = "r"')


def test_unknown_trigger() -> None:
    """O5: a trigger nobody fires would leave a tier unconsolidated for ever."""
    with pytest.raises(SpecError, match="session_close"):
        with_behaviour('[behaviour.consolidation.semantic]\ntriggers = ["session_closed"]\nreason = "r"')


def test_forgetting_comes_after_staleness() -> None:
    """O7: nothing is forgotten that was not stale first."""
    with pytest.raises(SpecError, match="stale"):
        with_behaviour('[behaviour.consolidation.semantic]\nforget_after_days = 10.0\nreason = "r"')
