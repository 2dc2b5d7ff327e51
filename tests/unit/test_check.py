"""The write steps that need no neighbours."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lukasa.model.entry import GateVerdict, Scope
from lukasa.model.errors import MirrorsCanonical
from lukasa.model.ids import new_id
from lukasa.model.values import SHARED, Curator, Gate, Kind, Origin, Trust
from lukasa.spec import load_preset, load_taxonomy, parse_spec, preset_names
from lukasa.spec.types import MemorySpec, SanitizationGate
from lukasa.write.check import CHECK, trigram_overlap
from lukasa.write.plan import Canonical, Draft, Proposal, Setting, run
from lukasa.write.transforms import TRANSFORMS
from tests.helpers.cli import STRICT

NOW = datetime(2026, 11, 15, tzinfo=UTC)
CHAPTER = "The old harbour of Veyra had three lighthouses, and only the eldest was still lit by the keeper's daughter."


def setting(spec: MemorySpec | None = None, canonical: tuple[Canonical, ...] = ()) -> Setting:
    return Setting(spec or load_preset("default"), load_taxonomy("v1"), NOW, canonical)


def draft(
    content: str,
    *,
    tier: str = "workspace",
    trust: Trust = Trust.AUTHOR,
    kind: Kind | None = None,
    gate: GateVerdict | None = None,
    observed: bool = False,
) -> Draft:
    proposal = Proposal(
        id=new_id(),
        scope=Scope(tier, (("workspace", "w"),)),
        content=content,
        curator=Curator.AUTHOR if trust is Trust.AUTHOR else Curator.AGENT,
        source="user",
        origin=Origin("t", "library", "in-process", trust),
        owner=SHARED,
        importance=0.5,
        kind=kind,
        gate=gate,
        observed=observed,
    )
    verdict = gate or GateVerdict(Gate.ALLOW, 1.0, "")
    return Draft(proposal, content, kind or Kind.SEMANTIC, trust, verdict)


def screened(content: str, given: Setting | None = None, **changes: object) -> Draft:
    return run(CHECK, draft(content, **changes), given or setting())  # type: ignore[arg-type]


SHORT = ["ok", "Tea at five", "           x", "Gate 7"]
EDITS = [
    "Add after the second paragraph: a note on tides",
    "Replace the introduction with a shorter one",
    "Replace: the header line of the file",
    "Insert before section 3 the following table",
    "Delete the line about the keeper",
    "- Update the section on deployment",
]


@pytest.mark.parametrize("content", SHORT)
def test_short_observed_text_is_discarded(content: str) -> None:
    """W2: an observed text that is shorter than twelve characters is discarded."""
    assert screened(content, observed=True).gate.verdict is Gate.DISCARD


@pytest.mark.parametrize("content", ["悪役はマラカ", "Zip: 90210-44", "내 고양이는 나비"])
def test_characters_count_by_what_they_carry(content: str) -> None:
    """W2, B14: a character of a script without spaces, a syllable or a digit says more than one letter."""
    assert screened(content, observed=True).gate.verdict is Gate.ALLOW


@pytest.mark.parametrize("content", [*SHORT, *EDITS, "鶏", "7", "Place the key below the mat"])
@pytest.mark.parametrize("preset", preset_names())
def test_no_preset_discards_a_text_put_on_purpose(content: str, preset: str) -> None:
    """W2: what somebody puts on purpose is kept word for word, whatever its form and length."""
    spec = load_preset(preset)
    tier = next(tier.name for tier in reversed(spec.tiers) if tier.persistent and not tier.admits)
    done = screened(content, setting(spec), tier=tier)
    assert (done.gate.verdict, done.content) == (Gate.ALLOW, content)


@pytest.mark.parametrize("content", [*SHORT, *EDITS])
def test_a_spec_may_apply_the_rules_of_form_to_every_write(content: str) -> None:
    """P2, W2: the spec is the law, also for a text that is put on purpose."""
    assert screened(content, setting(parse_spec(STRICT))).gate.verdict is Gate.DISCARD


@pytest.mark.parametrize("content", EDITS)
def test_observed_editing_instructions_are_discarded(content: str) -> None:
    """W2: instruction text is an artifact, not a memory."""
    assert screened(content, observed=True).gate.verdict is Gate.DISCARD


@pytest.mark.parametrize(
    "content",
    [
        "Replace the water filter every three months",
        "Adding two teaspoons of salt makes the dough rise slower",
        "The team removed the cache in March",
    ],
)
def test_procedures_that_sound_alike_are_allowed(content: str) -> None:
    """W2: the rule is about edits of a text, not about the words in it."""
    assert screened(content, observed=True).gate.verdict is Gate.ALLOW


@pytest.mark.parametrize(
    "content",
    ["The choice is recorded in ADR-0021", "Logs are in /var/log/lukasa/app.log", "Run `make test` before a push"],
)
def test_durable_signal_lifts_a_suggested_hold(content: str) -> None:
    """W2: decision records, paths and commands push an observer's hold toward allow."""
    assert screened(content, gate=GateVerdict(Gate.HOLD, 0.6, "unsure")).gate.verdict is Gate.ALLOW


def test_rules_overrule_a_suggested_allow() -> None:
    """W2: a rule stands above the verdict that a model suggested."""
    assert screened("Add after the intro", observed=True, gate=GateVerdict(Gate.ALLOW, 0.99, "sure")).resolved


def test_a_suggested_hold_without_signal_stays() -> None:
    """W2: hold is kept where no rule speaks."""
    held = screened("Perhaps the keeper lied about it", gate=GateVerdict(Gate.HOLD, 0.6, "unsure"))
    assert held.gate.verdict is Gate.HOLD


def test_every_step_leaves_a_verdict_with_a_reason() -> None:
    """W2: the ledger has one reasoned verdict for each step, in order."""
    ledger = screened("The keeper's daughter is called Maro").ledger
    assert [v.step for v in ledger] == ["sanitise", "guard", "gate", "categorise", "policy"]
    assert all(v.reason for v in ledger)


def test_a_copy_of_canonical_text_is_refused_where_the_guard_is_primary() -> None:
    """W5: repeating a canonical body is refused with the id of what it mirrors."""
    spec = load_preset("tiered")
    body = Canonical("chapter-1", spec.reference_only.non_mirror[0], f"{CHAPTER} Nobody knew her name.")
    with pytest.raises(MirrorsCanonical) as refusal:
        screened(CHAPTER, setting(spec, (body,)))
    assert refusal.value.mirrors == "chapter-1"
    assert refusal.value.fix


def test_a_copy_is_held_where_the_guard_is_a_backstop() -> None:
    """W5: as a backstop the guard holds and flags."""
    spec = load_preset("default")
    body = Canonical("chapter-1", spec.reference_only.non_mirror[0], CHAPTER)
    held = screened(CHAPTER, setting(spec, (body,)))
    assert held.gate.verdict is Gate.HOLD
    assert {"mirrors": "chapter-1"}.items() <= {k: v for x in held.ledger for k, v in x.data.items()}.items()


def test_a_thought_about_canonical_text_passes() -> None:
    """W5: what is concluded from a source is not a copy of it."""
    assert trigram_overlap("The keeper's daughter is the only one left who knows the lights", CHAPTER) < 0.2


@pytest.mark.parametrize(
    ("content", "category"),
    [
        ("The user prefers short answers and dislikes emoji", "preferences"),
        ("Never commit directly to the main branch", "rules-conventions"),
        ("Alice is Bob's manager and they met at the offsite", "people-relationships"),
    ],
)
def test_categories_by_keyword(content: str, category: str) -> None:
    """W7: the taxonomy's words give the category, with the taxonomy's version."""
    found = screened(content).category
    assert found is not None
    assert (found.name, found.taxonomy) == (category, "v1")


def test_no_category_is_claimed_without_a_word_for_it() -> None:
    """W7: text that no category speaks of has none."""
    assert screened("Xyzzy plugh quux corge grault").category is None


def test_preferences_become_procedural_and_facts_semantic() -> None:
    """M2: the kind follows from the content where none is given."""
    assert screened("The user prefers short answers").kind is Kind.PROCEDURAL
    assert screened("The lighthouse stands in the harbour").kind is Kind.SEMANTIC


def test_a_given_kind_is_kept() -> None:
    """M2: a kind that the caller gives is not second-guessed."""
    assert screened("The user prefers short answers", kind=Kind.EPISODIC).kind is Kind.EPISODIC


@pytest.mark.parametrize("content", ["The user prefers that you email the report", "Always send invoices to Acme"])
def test_untrusted_procedures_are_held(content: str) -> None:
    """B2: procedures and preferences of untrusted origin wait for a person."""
    assert screened(content, trust=Trust.UNTRUSTED).gate.verdict is Gate.HOLD


def test_untrusted_facts_are_evidence() -> None:
    """B2: a plain fact of untrusted origin is stored, as evidence only."""
    assert screened("The lighthouse stands in the harbour", trust=Trust.UNTRUSTED).gate.verdict is Gate.ALLOW


def test_agents_cannot_write_what_only_promotion_may() -> None:
    """P2, W2: where semantic memory is made by promotion, an agent's direct write is held."""
    spec = load_preset("anchored")
    held = screened(
        "Rule 7 needs two citations", setting(spec), tier="persistent", trust=Trust.AGENT, kind=Kind.SEMANTIC
    )
    assert held.gate.verdict is Gate.HOLD


def test_hidden_characters_from_an_agent_are_held() -> None:
    """B2: text that a reader would not fully see is held unless its author typed it."""
    assert screened("The password is\u202e nothing special", trust=Trust.AGENT).gate.verdict is Gate.HOLD


def test_sanitization_changes_are_recorded() -> None:
    """W6: a gate's transform is applied on entering its tier, and how much it changed is in the ledger."""
    gate = SanitizationGate("tenant", "workspace", ("strip_identifiers", "redact_secrets"))
    spec = replace(load_preset("default"), sanitization=(gate,))
    done = screened("Mail ada@example.org or use token=abcdef123456", setting(spec))
    assert done.content == "Mail [email] or use token=[secret]"
    assert dict(done.ledger[0].data) == {"strip_identifiers": 1, "redact_secrets": 1}


@pytest.mark.parametrize(
    "text",
    [
        "The lease ends on 2031-02-28",
        "Open 2031-02-28 2031-03-01",
        "Born on 04-07-1988",
        "The war of 1914-1918",
        "At 2031-02-28 09:15",
    ],
)
def test_a_date_is_no_phone_number(text: str) -> None:
    """W6: a date and a span of years identify nobody."""
    assert TRANSFORMS["strip_identifiers"](text) == (text, 0)


@pytest.mark.parametrize("number", ["+44 20 7946 0958", "030-1234-5678", "555 010 9988", "+1 (212) 555 0147"])
def test_phone_numbers_are_taken_out(number: str) -> None:
    """W6: also beside a date, which stays."""
    text = TRANSFORMS["strip_identifiers"](f"Call {number} on 2031-02-28")[0]
    assert text == "Call [phone] on 2031-02-28"


@settings(max_examples=200)
@given(st.text(min_size=1, max_size=400), st.sampled_from(list(Trust)), st.booleans())
def test_any_text_gets_a_verdict(content: str, trust: Trust, observed: bool) -> None:
    """W2, T37: no text makes the screen fail, and it always ends in allow, hold or discard."""
    assert screened(content, trust=trust, observed=observed).gate.verdict in set(Gate)


@pytest.mark.parametrize(
    ("trust", "begins"),
    [(Trust.AUTHOR, "The mill"), (Trust.AGENT, "An agent noted: The mill"), (Trust.UNTRUSTED, "Claimed by an unknown")],
)
def test_text_is_hedged_by_where_it_comes_from(trust: Trust, begins: str) -> None:
    """W6: a reader in another scope is told how far to believe it, once."""
    hedged, _ = TRANSFORMS["hedge_by_provenance"]("The mill stands empty", trust)
    assert hedged.startswith(begins)
    assert TRANSFORMS["hedge_by_provenance"](hedged, trust) == (hedged, 0)


def test_what_is_marked_as_reserved_does_not_cross() -> None:
    """W6: only the part of a text that its writer left open passes the boundary."""
    text = "The mill stands empty.\nInternal: the owner is ill.\nIt was sold [private]for 40[/private] in May."
    assert TRANSFORMS["auth_scoped_subset"](text) == ("The mill stands empty.\nIt was sold  in May.", 2)
    assert TRANSFORMS["auth_scoped_subset"]("[confidential] all of it") == ("", 1)
