"""The shipped presets carry the figures of the sources they stand for."""

from __future__ import annotations

import math

import pytest

from lukasa.model.values import Kind
from lukasa.spec import MemorySpec, check, dump, load_preset, parse_spec, preset_names, preset_text
from lukasa.spec.types import (
    SIGNALS,
    Behaviour,
    ConflictRule,
    DecayModel,
    LifecyclePolicy,
    Profile,
    ValueOrigin,
    WriteMode,
)
from lukasa.spec.types import TRANSFORMS as SPEC_TRANSFORMS
from lukasa.write.transforms import TRANSFORMS

NAMES = ("default", "anchored", "observer", "tiered", "workspace")
FOUR = ("conversation", "channel", "workspace", "account")


def each(spec: MemorySpec, *tiers: str) -> list[Behaviour]:
    return [spec.behaviour(tier, kind) for tier in tiers or [t.name for t in spec.tiers] for kind in Kind]


def test_names() -> None:
    """Five presets ship, the default first."""
    assert preset_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_loads_whole(name: str) -> None:
    """P2: a preset has nothing wrong with it, and a behaviour for every kind in every tier."""
    assert check(preset_text(name)) == []
    spec = load_preset(name)
    assert spec.name == name
    assert set(spec.behaviours) == {(tier.name, kind) for tier in spec.tiers for kind in Kind}
    assert len(spec.choices) == len(spec.behaviours) * 7


@pytest.mark.parametrize("name", NAMES)
def test_every_deviation_has_a_reason(name: str) -> None:
    """P2: in no preset does a value deviate silently."""
    for choice in load_preset(name).choices:
        assert bool(choice.reason) == (choice.provenance is ValueOrigin.DEVIATION)


@pytest.mark.parametrize("name", NAMES)
def test_dump_round_trip(name: str) -> None:
    """A stored spec reads back equal, origins and reasons included."""
    spec = load_preset(name)
    again = parse_spec(dump(spec))
    assert again == spec
    assert dump(again) == dump(spec)


@pytest.mark.parametrize("name", NAMES)
def test_voice_and_soul(name: str) -> None:
    """M8: VOICE and SOUL exist from the start, in tiers that last."""
    spec = load_preset(name)
    named = {entry.name: entry for entry in spec.named}
    assert set(named) == {"VOICE", "SOUL"}
    assert all(spec.tier(entry.tier).persistent and len(entry.body) > 80 for entry in named.values())
    if name != "anchored":
        assert (named["VOICE"].tier, named["SOUL"].tier) == ("workspace", "account")


@pytest.mark.parametrize("name", ["default", "observer", "tiered", "workspace"])
def test_four_tiers(name: str) -> None:
    """M1: conversation, channel, workspace, account; the account's alone lives outside the workspace."""
    spec = load_preset(name)
    assert tuple(tier.name for tier in spec.tiers) == FOUR
    assert [tier.home for tier in spec.tiers] == ["workspace", "workspace", "workspace", "account"]
    anchors = {tier.name: tuple(key.name for key in tier.anchor) for tier in spec.tiers}
    assert anchors == {
        "conversation": ("workspace", "conversation"),
        "channel": ("workspace", "channel"),
        "workspace": ("workspace",),
        "account": ("account",),
    }


@pytest.mark.parametrize(
    ("tier", "rate", "week"), [("channel", 0.990, 0.18), ("workspace", 0.995, 0.43), ("account", 0.998, 0.71)]
)
def test_workspace_hourly_rates(tier: str, rate: float, week: float) -> None:
    """D1: hourly rates for each tier, and what they leave after a week."""
    for behaviour in each(load_preset("workspace"), tier):
        assert (behaviour.decay.model, behaviour.decay.rate) == (DecayModel.HOURLY, rate)
        assert behaviour.decay.rate ** (7 * 24) == pytest.approx(week, abs=0.006)


def test_workspace_conversation_does_not_decay() -> None:
    """D1: a conversation's memory has no decay."""
    assert all(b.decay.model is DecayModel.NONE for b in each(load_preset("workspace"), "conversation"))


def test_workspace_check_values() -> None:
    """D1: the workspace rate gives the check values for a day, a week and thirty days."""
    rate = load_preset("workspace").behaviour("workspace", Kind.SEMANTIC).decay.rate
    assert [round(rate**hours, 3) for hours in (24, 168)] == [0.887, 0.431]
    assert rate**720 == pytest.approx(0.027, abs=0.0005)


def test_workspace_consolidation() -> None:
    """W8, O6: promote above 0.7 and 3 reads, prune below 0.01, merge at 0.95, cap 10,000."""
    for behaviour in each(load_preset("workspace")):
        assert (behaviour.promotion.min_relevance, behaviour.promotion.min_access) == (0.7, 3)
        done = behaviour.consolidation
        assert (done.prune_below, done.merge_cosine, done.cap) == (0.01, 0.95, 10_000)
        assert "schedule:daily" in done.triggers


def test_workspace_promotes_in_place() -> None:
    """W8: short-term becomes long-term inside its own tier."""
    spec = load_preset("workspace")
    assert all(b.promotion.to == tier and b.promotion.kind is None for (tier, _), b in spec.behaviours.items())


def test_workspace_retrieval() -> None:
    """R1, R4: rank fusion with k = 60, results deduplicated at 0.9, relevance in full."""
    retrieval = load_preset("workspace").retrieval
    assert (retrieval.fusion, retrieval.rrf_k, retrieval.dedup_cosine, retrieval.prior_weight) == ("rrf", 60, 0.9, 1.0)


def test_workspace_keeps_the_scratchpad() -> None:
    """M7: where sources disagree about the scratchpad, this preset keeps it and says why."""
    spec = load_preset("workspace")
    assert spec.behaviour("conversation", Kind.EPISODIC).lifecycle.scratchpad == "keep"
    choice = next(c for c in spec.choices if c.primitive == "lifecycle" and c.tier == "conversation")
    assert "review" in choice.reason


def test_observer_decay() -> None:
    """D2: exp(-0.01 a day), half at about 70 days; stale counts half again."""
    for behaviour in each(load_preset("observer")):
        decay = behaviour.decay
        assert (decay.model, decay.rate, decay.stale_factor) == (DecayModel.DAILY, 0.01, 0.5)
        assert math.exp(-decay.rate * 70) == pytest.approx(0.5, abs=0.01)


def test_observer_gate_and_dedup() -> None:
    """W2, W3: shorter than 12 characters is discarded, closer than 0.85 is merged."""
    for behaviour in each(load_preset("observer")):
        assert (behaviour.write.min_chars, behaviour.write.dedup_cosine) == (12, 0.85)
        assert behaviour.write.mode is WriteMode.AUTO


def test_observer_maintenance() -> None:
    """O7: 90 days unread is stale, 180 days stale is forgotten."""
    for behaviour in each(load_preset("observer")):
        assert (behaviour.consolidation.stale_after_days, behaviour.consolidation.forget_after_days) == (90, 180)


def test_observer_profiles() -> None:
    """R5, R6: lean 3 without rewrite, balanced 7, deep 15; at most 10 injected, 15 when deep."""
    spec = load_preset("observer")
    assert spec.profiles == {"lean": Profile(3, False), "balanced": Profile(7, True), "deep": Profile(15, True, 15)}
    assert spec.inject_cap == 10


def test_observer_curates_in_git() -> None:
    """K1: the observer's curated document is a file under git; the tiered preset has no files."""
    assert load_preset("observer").curated == "git"
    assert load_preset("tiered").curated == "named"


def test_anchored_deviates_nowhere() -> None:
    """P2: the doctrine's own preset is typology defaults throughout."""
    assert {choice.provenance for choice in load_preset("anchored").choices} == {ValueOrigin.DEFAULT}


def test_anchored_anchor() -> None:
    """P6: organisation and domain are required everywhere; a session is nullable for an interaction."""
    spec = load_preset("anchored")
    assert [tier.name for tier in spec.tiers] == ["interaction", "session", "persistent"]
    assert [(k.name, k.required) for k in spec.tier("interaction").anchor] == [
        ("org_id", True),
        ("domain_id", True),
        ("session", False),
        ("conversation", True),
    ]
    assert [k.name for k in spec.tier("persistent").anchor if k.required] == ["org_id", "domain_id"]


def test_anchored_decay() -> None:
    """D3: episodes press for a disposition, facts have a window, procedures are exempt."""
    spec = load_preset("anchored")
    models = {kind: spec.behaviour("persistent", kind).decay.model for kind in Kind}
    assert models == {
        Kind.EPISODIC: DecayModel.FORCING,
        Kind.SEMANTIC: DecayModel.VALIDITY,
        Kind.PROCEDURAL: DecayModel.EXEMPT,
    }
    assert spec.behaviour("persistent", Kind.EPISODIC).lifecycle.policy is LifecyclePolicy.DISPOSE


def test_anchored_writes_facts_by_promotion() -> None:
    """W8: agents do not write facts directly; episodes become facts by corroboration."""
    spec = load_preset("anchored")
    assert spec.behaviour("persistent", Kind.SEMANTIC).write.mode is WriteMode.PROMOTION
    rise = spec.behaviour("persistent", Kind.EPISODIC).promotion
    assert (rise.to, rise.kind, rise.min_observations) == ("persistent", Kind.SEMANTIC, 3)
    assert spec.behaviour("persistent", Kind.SEMANTIC).promotion.min_versions == 2


def test_anchored_discipline() -> None:
    """W5, R1, P4: a non-mirror list guarded first-hand, three signals by rank fusion, no audit exemption."""
    spec = load_preset("anchored")
    assert {"rule texts", "audit-chain entries"} <= set(spec.reference_only.non_mirror)
    assert spec.reference_only.calibration == "primary"
    assert set(spec.retrieval.signals) == {"structured", "vector", "keyword"}
    assert (spec.retrieval.fusion, spec.retrieval.rrf_k) == ("rrf", 60)
    assert spec.audit_exemptions == ()


def test_named_transforms_exist() -> None:
    """W6: every transform a spec may name is one that writing can apply."""
    assert set(SPEC_TRANSFORMS) == set(TRANSFORMS)


def test_tiered_never_deletes() -> None:
    """D4: no pruning, no cap, nothing dropped: age only ranks, and a conversation ages once it has closed."""
    spec = load_preset("tiered")
    for behaviour in each(spec):
        assert (behaviour.consolidation.prune_below, behaviour.consolidation.cap) == (0, 0)
        assert behaviour.lifecycle.policy is LifecyclePolicy.INDEFINITE
    assert all(b.decay.model is DecayModel.SCOPE_CLOSE for b in each(spec, "conversation"))
    rates = [spec.behaviour(tier, Kind.SEMANTIC).decay.rate for tier in FOUR]
    assert rates == sorted(rates)


def test_tiered_consolidates_by_events() -> None:
    """O5: no clock starts a consolidation; a conversation's starts when it closes."""
    spec = load_preset("tiered")
    assert not any(t.startswith("schedule") for b in each(spec) for t in b.consolidation.triggers)
    assert all(b.consolidation.triggers == ("session_close",) for b in each(spec, "conversation"))


def test_tiered_writes_are_explicit() -> None:
    """W1: nothing is learnt in passing."""
    assert all(b.write.mode is WriteMode.EXPLICIT for b in each(load_preset("tiered")))


def test_tiered_ranking() -> None:
    """R1, R2: rank fusion with k = 60; a conversation is ranked by recency."""
    retrieval = load_preset("tiered").retrieval
    assert (retrieval.fusion, retrieval.rrf_k, retrieval.recency_tiers) == ("rrf", 60, ("conversation",))


def test_default_retrieval() -> None:
    """R1: what measured best: z-scores, meaning a little above words, a prior that does not drown the match."""
    retrieval = load_preset().retrieval
    assert (retrieval.fusion, retrieval.candidates, retrieval.prior_weight) == ("zscore", 40, 0.25)
    assert retrieval.weights["vector"] > retrieval.weights["keyword"] > retrieval.weights["structured"] > 0
    assert retrieval.weights["structured"] < 0.5
    assert set(retrieval.signals) == set(SIGNALS)
    assert set(retrieval.tier_weights.values()) == {1.0}


def test_default_behaviour() -> None:
    """W4, D1: facts and procedures by decision or gate, validity for facts, the latest procedure wins, never fades."""
    spec = load_preset()
    fact, way = spec.behaviour("workspace", Kind.SEMANTIC), spec.behaviour("workspace", Kind.PROCEDURAL)
    assert fact.write.mode is way.write.mode is WriteMode.MIXED
    assert fact.write.confidence == way.write.confidence == 0
    assert (fact.conflict.rule, way.conflict.rule) == (ConflictRule.VALIDITY, ConflictRule.SUPERSEDE)
    assert (fact.decay.model, way.decay.model) == (DecayModel.HOURLY, DecayModel.EXEMPT)
    assert fact.decay.rate ** (7 * 24) > 0.9
    assert fact.write.dedup_cosine == 0.92


def test_default_context_budget() -> None:
    """C2: the tiers' shares make up the whole."""
    spec = load_preset()
    shares = [spec.behaviour(tier, Kind.SEMANTIC).injection.budget for tier in FOUR]
    assert sum(shares) == spec.context_budget == 2000
    assert spec.reference_only.max_chars == 20_000


def test_nothing_rises_into_the_account_unasked() -> None:
    """X3: no preset moves a workspace's content into the account by itself."""
    for name in NAMES:
        spec = load_preset(name)
        homes = {tier.name: tier.home for tier in spec.tiers}
        for (tier, _), behaviour in spec.behaviours.items():
            assert not behaviour.promotion.to or homes[behaviour.promotion.to] == homes[tier]
