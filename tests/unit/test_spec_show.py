"""A spec shown, compared, explained, and made from answers."""

from __future__ import annotations

import pytest

from lukasa.model.errors import SpecError
from lukasa.model.values import Kind
from lukasa.spec import (
    WALK,
    Difference,
    compose,
    diff,
    dump,
    explain,
    list_questions,
    load_preset,
    parse_spec,
    preset_names,
    render_show,
    show,
)
from lukasa.spec.types import BEHAVIOURS, DecayModel

ORDER = ["Anchor", "Typology", "Tiers", "Backend", "Retrieval", "Behaviour", "Discipline", "Audit", "Upkeep"]


def test_show_has_every_primitive() -> None:
    """P5: fifteen primitives, the ledger of what was shown and the audit posture, each value with its origin."""
    rows = show(load_preset("default"))
    primitives = list(dict.fromkeys(row.primitive for row in rows))
    assert primitives == [
        *("anchor", "typology", "tiers", "backend", "retrieval"),
        *BEHAVIOURS,
        *("reference_only", "sanitization", "visibility"),
        *("triggers", "triage", "disclosure", "audit"),
    ]
    assert all(row.value and row.provenance for row in rows)


def test_show_tells_origins_apart() -> None:
    """P5: explicit, typology default, and deviation with its reason."""
    rows = show(load_preset("default"))
    origins = {row.provenance for row in rows if row.primitive in BEHAVIOURS}
    assert origins == {"explicit", "typology default", "deviation"}
    assert all(bool(row.reason) == (row.provenance == "deviation") for row in rows)


def test_show_names_exemptions() -> None:
    """P4, P5: an exemption is shown with its reason."""
    text = dump(load_preset("tiered")).replace(
        "exemptions = []", 'exemptions = [{ rule = "soft-supersession", reason = "a sandbox" }]'
    )
    last = show(parse_spec(text))[-1]
    assert (last.provenance, last.reason) == ("exemption", "a sandbox")


@pytest.mark.parametrize("name", preset_names())
def test_render(name: str) -> None:
    """P5: the text holds every value and every reason."""
    spec = load_preset(name)
    text = render_show(spec)
    for row in show(spec):
        assert row.value in text
        assert row.reason in text


@pytest.mark.parametrize("name", preset_names())
def test_diff_of_equals_is_empty(name: str) -> None:
    """P5: a spec does not differ from what was stored of it."""
    assert diff(load_preset(name), parse_spec(dump(load_preset(name)))) == []


def test_diff_finds_one_change() -> None:
    """P5: one changed line is one difference, with both sides."""
    spec = load_preset("default")
    other = parse_spec(dump(spec).replace('fusion = "zscore"', 'fusion = "rrf"'))
    assert diff(spec, other) == [Difference("retrieval.fusion", "zscore", "rrf")]


def test_diff_sees_small_numbers_and_reasons() -> None:
    """P5: neither the sixth digit nor a reworded reason is lost."""
    spec = load_preset("default")
    other = parse_spec(dump(spec).replace("0.9995", "0.99950001").replace("Topics cool", "Subjects cool"))
    paths = {d.path for d in diff(spec, other)}
    assert "behaviour.decay.workspace.semantic.rate" in paths
    assert "behaviour.decay.channel.episodic.reason" in paths


def test_diff_between_presets() -> None:
    """P5: tiers that only one side has show as such."""
    found = {d.path: d for d in diff(load_preset("tiered"), load_preset("anchored"))}
    assert found["typology.channel"].right == ""
    assert found["typology.session"].left == ""


@pytest.mark.parametrize("name", preset_names())
def test_explain_walks_in_order(name: str) -> None:
    """P5: the questions come in the order a new agent is parameterised."""
    lines = explain(load_preset(name)).splitlines()
    heads = [line.split(". ", 1)[1] for line in lines if line[:1].isdigit()]
    assert heads == ORDER == [step.title for step in WALK]


def test_questions_follow_the_walk() -> None:
    """P5: `spec new` asks in the same order."""
    steps = [step.section for step in WALK]
    positions = [steps.index(question.step) for question in list_questions()]
    assert positions == sorted(positions)
    assert set(positions) == set(range(len(steps)))


def test_compose_without_answers() -> None:
    """P5: no answers make the default preset under a new name, with comments."""
    text = compose()
    spec = parse_spec(text)
    assert {d.path for d in diff(load_preset("default"), spec)} == {"name", "title"}
    assert all(f"# {n}. {title}" in text for n, title in enumerate(ORDER, 1))


@pytest.mark.parametrize("like", preset_names())
def test_compose_every_option(like: str) -> None:
    """P5: each single answer that is offered makes a valid spec."""
    for question in list_questions({"like": like}):
        for option in question.options:
            if not question.id.endswith((".home", ".persistent")):  # these depend on the other tiers
                parse_spec(compose({"like": like, question.id: option}))


def test_compose_defaults_are_the_nearest_preset() -> None:
    """P5: with a preset as the nearest one and every default, the spec is that preset under a new name."""
    for like in preset_names():
        made = parse_spec(compose({"like": like}))
        assert {d.path for d in diff(load_preset(like), made)} == {"name", "title"}


def test_compose_fewer_tiers() -> None:
    """P5: a tier that is left out leaves no trace."""
    spec = parse_spec(compose({"tiers": "workspace, account"}))
    assert [tier.name for tier in spec.tiers] == ["workspace", "account"]
    assert set(spec.visibility) == {"workspace", "account"}


def test_compose_any_anchor() -> None:
    """P5, P6: any keys scope a memory; tiers follow from them, and from the answers about each tier."""
    spec = parse_spec(compose({"anchor": "tenant_id, customer_id"}))
    assert [(tier.name, [key.name for key in tier.anchor]) for tier in spec.tiers] == [
        ("customer", ["tenant_id", "customer_id"]),
        ("tenant", ["tenant_id"]),
    ]
    answers = {
        "anchor": "tenant_id, region?",
        "tiers": "call, tenant",
        "tiers.call.anchor": "tenant_id, region",
        "tiers.call.persistent": "no",
        "tiers.call.boundary": "lifecycle hang_up",
    }
    call = parse_spec(compose(answers)).tier("call")
    assert [(key.name, key.required) for key in call.anchor] == [("tenant_id", True), ("region", False)]
    assert (call.persistent, call.boundary.type, call.boundary.event) == (False, "lifecycle", "hang_up")


def test_compose_behaviour() -> None:
    """P2, P5: every primitive may deviate anywhere, and the deviation carries the reason that was given."""
    answers = {
        "behaviour.decay": "semantic, channel.episodic",
        "behaviour.decay.semantic": "model = hourly, rate = 0.995",
        "behaviour.decay.semantic.reason": "news only",
        "behaviour.decay.channel.episodic": "model = none",
        "behaviour.decay.channel.episodic.reason": "short topics",
        "behaviour.promotion": "all",
        "behaviour.promotion.all": 'to = "same", min_access = 4',
        "behaviour.promotion.all.reason": "use is worth",
    }
    spec = parse_spec(compose(answers))
    fact = spec.behaviour("workspace", Kind.SEMANTIC)
    assert (fact.decay.model, fact.decay.rate, fact.promotion.min_access) == (DecayModel.HOURLY, 0.995, 4)
    assert spec.behaviour("channel", Kind.EPISODIC).decay.model is DecayModel.NONE
    assert {"news only", "short topics"} <= {c.reason for c in spec.choices}


def test_compose_discipline() -> None:
    """P3, P5: the list of what is never copied, gates and visibility are the answers."""
    answers = {
        "reference_only.non_mirror": "tickets, invoices",
        "sanitization": "tenant into account: strip_identifiers, redact_secrets; trust: hedge_by_provenance",
        "visibility.channel.external": "closed",
    }
    spec = parse_spec(compose(answers))
    assert spec.reference_only.non_mirror == ("tickets", "invoices")
    assert [(g.boundary, g.into, g.transforms) for g in spec.sanitization] == [
        ("tenant", "account", ("strip_identifiers", "redact_secrets")),
        ("trust", "", ("hedge_by_provenance",)),
    ]
    assert spec.visibility["channel"].external == "closed"


def test_compose_without_embedder() -> None:
    """R1: no embedder, no vector signal."""
    assert "vector" not in parse_spec(compose({"backend.embedder": "none"})).retrieval.signals


@pytest.mark.parametrize(
    ("answers", "key"),
    [
        ({"nmae": "x"}, "nmae"),
        ({"backend.store": "tape"}, "backend.store"),
        ({"tiers": ","}, "tiers"),
        ({"name": "Two Words"}, "name"),
        ({"typology.account": "vibes"}, "typology.account"),
        ({"anchor": "Tenant Id"}, "anchor"),
        ({"anchor": "one?, two?"}, "anchor"),
        ({"tiers.channel.anchor": "colour"}, "tiers.channel.anchor"),
        ({"sanitization": "wash it"}, "sanitization"),
        ({"sanitization": "tenant into nowhere: strip_identifiers"}, "sanitization"),
        ({"behaviour.decay": "cellar"}, "behaviour.decay"),
        ({"behaviour.decay": "all", "behaviour.decay.all": "rate"}, "behaviour.decay.all"),
        ({"behaviour.decay": "all", "behaviour.decay.all": "model = none"}, "behaviour.decay.all.reason"),
        ({"audit.exemptions": "keep-persistent"}, "audit.exemptions.keep-persistent"),
        ({"triggers.queue_depth": "many"}, "triggers.queue_depth"),
    ],
)
def test_compose_refuses(answers: dict[str, str], key: str) -> None:
    """P5: an answer that makes no sense is a SpecError that names the question, with a way out."""
    with pytest.raises(SpecError) as raised:
        compose(answers)
    assert (raised.value.key, bool(raised.value.fix)) == (key, True)


def test_thresholds_are_shown_kept_and_asked_for() -> None:
    """P5, O5: when work begins is a value like others: explained, compared, dumped where it is not the usual one."""
    usual = load_preset("default")
    assert "[triggers]" not in dump(usual)
    spec = parse_spec(compose({"triggers.queue_depth": "3"}))
    assert (spec.triggers.queue_depth, spec.triage) == (3, usual.triage)
    assert parse_spec(dump(spec)) == spec
    assert [d.path for d in diff(usual, spec)] == ["name", "title", "triggers.queue_depth"]
    origins = {row.primitive: row.provenance for row in show(spec)}
    assert (origins["triggers"], origins["triage"]) == ("explicit", "universal default")
    assert "queue_depth 3" in explain(spec)
    for nonsense in ("many", "0", "-1"):
        with pytest.raises(SpecError):
            compose({"triggers.queue_depth": nonsense})
