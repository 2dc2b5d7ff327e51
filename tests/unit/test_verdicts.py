"""The rules of triage, and how a model's judgement is read."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lukasa.curated.document import lines
from lukasa.curated.verdicts import ProposalFacts, read_verdicts, rule, unfaithful
from lukasa.model.amendment import Amendment
from lukasa.model.errors import InvalidInput
from lukasa.model.ids import new_id
from lukasa.spec.types import Triage
from tests.helpers.stores import NOW

PAGE = "## Operations\n\n- (2026-11-01) The gateway is deployed with make ship on Tuesdays."
PLAIN = ProposalFacts((), False, False, True, False, False)


def proposal(change: str, confidence: float = 0.9) -> Amendment:
    return Amendment(new_id(), "operations", change, confidence, ("e",), NOW, NOW)


@pytest.mark.parametrize(
    ("change", "confidence", "facts", "outcome"),
    [
        ("Deploy with `make ship`", 0.81, {"signals": ("command",)}, "promote"),
        ("Deploy with `make ship`", 0.8, {"signals": ("command",)}, "judge"),
        ("Deploys happen on Tuesdays", 0.95, {}, "judge"),
        ("Insert after line 3", 0.95, {"artifact": True}, "reject"),
        ("Short", 0.95, {"short": True}, "reject"),
        ("the gateway is deployed with make ship on tuesdays", 0.95, {}, "reject"),
        ("Deploys may happen on Tuesdays", 0.29, {}, "reject"),
        ("Deploys happen on Tuesdays", 0.95, {"standing": False}, "reject"),
        ("Deploy with `make ship`", 0.95, {"signals": ("command",), "untrusted": True}, "review"),
        ("Deploy with `make ship`", 0.95, {"signals": ("command",), "restricted": True}, "review"),
        ("Deploy with\u200b `make ship`", 0.95, {"signals": ("command",)}, "review"),
        ("The gateway is deployed with make ship", 0.5, {}, "merge"),
    ],
)
def test_the_first_tier(change: str, confidence: float, facts: dict[str, Any], outcome: str) -> None:
    """O4: promote, reject and merge by rule; reserve for a person what no rule and no model may decide."""
    ruling = rule(proposal(change, confidence), PAGE, replace(PLAIN, **facts))
    assert ruling.outcome == outcome
    assert ruling.reason


def test_a_contradiction_is_a_persons() -> None:
    """O4: what the page says otherwise is not overwritten by a rule."""
    page = "- (2026-11-01) The owner of the gateway is Omar"
    ruling = rule(proposal("The owner of the gateway is Ines"), page, replace(PLAIN, signals=("command",)))
    assert (ruling.outcome, "contradicts" in ruling.reason) == ("review", True)


def test_an_embedder_narrows_what_is_similar() -> None:
    """O4: by vector where there is one: a line that is not near is not merged with."""
    change = "The gateway is deployed with make ship"
    assert rule(proposal(change), PAGE, replace(PLAIN, near=())).outcome == "judge"
    assert rule(proposal(change), PAGE, replace(PLAIN, near=tuple(lines(PAGE)))).outcome == "merge"


def test_verdicts_are_read_in_order() -> None:
    """O4: one for each proposal."""
    data = {
        "verdicts": [
            {"n": 2, "decision": "reject", "reason": "noise"},
            {"n": 1, "decision": "promote", "text": " Deploys\nare gated. "},
        ]
    }
    first, second = read_verdicts(data, 2)
    assert (first.decision, first.text, second.reason) == ("promote", "Deploys are gated.", "noise")


@pytest.mark.parametrize(
    "verdicts",
    [
        None,
        [],
        ["promote"],
        [{"n": 1, "decision": "promote", "text": ""}],
        [{"n": 1, "decision": "keep", "reason": "x"}],
        [{"n": 1, "decision": "reject"}],
        [{"n": 2, "decision": "reject", "reason": "x"}],
        [{"n": 1, "decision": "promote", "text": "x" * 401}],
        [{"n": 1, "decision": "promote", "text": 5}],
        [{"n": 1, "decision": "reject", "reason": "x"}] * 2,
    ],
)
def test_what_is_no_verdict_is_refused(verdicts: Any) -> None:
    """O4, T05: a malformed answer is an error, never a decision."""
    with pytest.raises(InvalidInput):
        read_verdicts({"verdicts": verdicts}, 1)


@pytest.mark.parametrize(
    ("clean", "says"),
    [
        ("Retries are never set to 0.", ""),
        ("Retries are set to 0.", "negates"),
        ("Retries are never set to 0 in Kafka.", "names something"),
        ("Retries are never set.", "number"),
    ],
)
def test_a_models_wording_must_say_the_same(clean: str, says: str) -> None:
    """O4: a rewording that drops a negation, adds a name or loses a number goes to a person."""
    told = unfaithful(clean, "never set retries to 0")
    assert (says in told) if says else (told == "")


def test_a_spec_says_how_sure_is_sure() -> None:
    """O4: what rules promote and reject by confidence is the spec's."""
    command = replace(PLAIN, signals=("command",))
    strict = Triage(promote_above=0.95, reject_below=0.6)
    outcomes = [rule(proposal("Deploy with `make ship`", c), PAGE, command, strict).outcome for c in (0.96, 0.9, 0.5)]
    assert outcomes == ["promote", "judge", "reject"]
    assert (
        rule(proposal("Deploy with `make ship`", 0.5), PAGE, command, strict).reason == "confidence 0.50 is below 0.6"
    )
