"""Keys of a spec that no other story shows: each changes what a user sees, and does not where it says something else.

`tests/spec_effects.toml` names the story of every key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, Memo, Workspace
from lukasa.model.entry import GateVerdict
from lukasa.model.errors import InvalidContent, InvalidScope, LukasaError, MirrorsCanonical
from lukasa.model.values import Gate, Trust
from lukasa.spec import dump, preset_text
from lukasa.spec.load import build
from tests.conftest import SYNONYMS
from tests.fakes import FakeEmbedder
from tests.helpers.cli import Shell
from tests.helpers.making import FixedClock
from tests.helpers.upkeep import run

WHY = {"reason": "a test"}


def spec(changes: Mapping[str, Any], like: str = "default") -> str:
    """A preset with values changed, each by its path; a path of behaviour gets a reason."""
    data: dict[str, Any] = tomllib.loads(preset_text(like))
    for path, value in changes.items():
        *parents, key = path.split(".")
        table = data
        for parent in parents:
            table = table.setdefault(parent, {})
        table[key] = value
        if parents[:1] == ["behaviour"] and len(parents) > 1:
            table |= WHY
    return dump(build(data))


def made(memory: Lukasa, changes: Mapping[str, Any], name: str = "made", like: str = "default") -> Workspace:
    return memory.workspace(name, spec=spec(changes, like))


def order(world: Workspace, question: str, **how: Any) -> list[str]:
    return [hit.content for hit in world.read(question, count=False, **how)]


# Names, anchor, tiers


def test_name_title_and_description_are_shown(tmp_path: Path) -> None:
    """P5: they tell specs apart: the workspace names its spec, and `spec show` has title and description."""
    shell = Shell(tmp_path / "data")
    file = tmp_path / "desk.toml"
    file.write_text(spec({"name": "desk", "title": "A desk", "description": "For one person."}))
    shell.run("workspace", "create", "w", "--spec", str(file))
    assert {"name": "w", "preset": "desk"}.items() <= shell.json("workspace", "list")["workspaces"][0].items()
    assert "A desk" in shell.run("spec", "show", str(file))
    differences = shell.json("spec", "diff", "default", str(file))["differences"]
    assert {"path": "description", "right": "For one person."}.items() <= differences[2].items()


def test_required_and_nullable_keys(memory: Lukasa) -> None:
    """P6: a write without a required key is refused; a nullable one may be left out, and scopes the entry if bound."""
    keys = {"org": "required", "desk": "nullable"}
    tier = {"name": "notes", "anchor": ["org", "desk"], "persistent": True, "home": "workspace"}
    changes = {
        "anchor.keys": keys,
        "tiers": [tier | {"boundary": {"type": "scope", "event": "org_change"}}],
        "typology": {"notes": ["semantic"]},
        "visibility": {"notes": {"agents": "shared", "external": "closed"}},
        "behaviour": {},
        "named": [],
        "retrieval.recency_tiers": [],
        "retrieval.tier_weights": {},
    }
    world = made(memory, changes)
    with pytest.raises(InvalidScope, match="org"):
        world.put("notes", "The lamp is green")
    world.at(org="a").put("notes", "The lamp is green")
    world.at(org="a", desk="d").put("notes", "The lamp is blue")
    assert order(world.at(org="a"), "lamp") == ["The lamp is green"]
    assert order(world.at(org="a", desk="d"), "lamp") == ["The lamp is blue"]


def test_a_tier_is_told_by_its_name_and_description(memory: Lukasa) -> None:
    """U5: the overview of a workspace shows each tier with the description of the spec."""
    text = preset_text("default").replace("A topic that several conversations share.", "Where the coast is planned.")
    tiers = {tier.name: tier.description for tier in memory.workspace("made", spec=text).survey().tiers}
    assert tiers["channel"] == "Where the coast is planned."


def test_the_home_of_a_tier_says_who_shares_it(memory: Lukasa) -> None:
    """X3: a tier at home in the account is seen in every workspace, one at home in the workspace in that alone."""
    first, second = memory.workspace("one"), memory.workspace("two")
    first.put("account", "The lamp is green")
    first.put("workspace", "The lamp stands in the hall")
    assert order(second, "lamp") == ["The lamp is green"]


@pytest.mark.parametrize("kind", ["semantic", "episodic", "procedural"])
def test_the_typology_decides_the_kind_of_a_text_that_states_none(memory: Lukasa, kind: str) -> None:
    """P2, M2: a text without a kind is what its tier holds, and so behaves as that kind does."""
    world = made(memory, {"typology.workspace": [kind]})
    entry = world.put("workspace", "The lamp stands in the hall").entry
    assert entry is not None
    assert entry.kind == kind


def test_named_entries_of_a_spec_are_there_from_the_start(memory: Lukasa) -> None:
    """M8: name, tier and text are those of the spec, and every context begins with them."""
    page = {"name": "HOUSE", "tier": "workspace", "body": "Shoes stay outside."}
    world = made(memory, {"named": [page]})
    assert [(one.name, one.tier, one.body) for one in world.named()] == [("HOUSE", "workspace", "Shoes stay outside.")]
    assert "Shoes stay outside." in str(world.context())


# Backend


def test_a_memory_that_is_only_in_the_process(tmp_path: Path) -> None:
    """P1: with `store = "memory"` nothing is kept after the process lets go of it; with sqlite it is."""
    kept = {}
    for store in ("memory", "sqlite"):
        text = spec({"backend.store": store})
        with Lukasa.open(tmp_path / store, embedder="none") as memory:
            memory.workspace("made", spec=text).put("workspace", "The lamp is green")
        with Lukasa.open(tmp_path / store, embedder="none") as memory:
            kept[store] = order(memory.workspace("made", spec=text), "lamp")
    assert kept == {"memory": [], "sqlite": ["The lamp is green"]}


def test_a_spec_without_an_embedder_finds_by_words_alone(tmp_path: Path, clock: FixedClock) -> None:
    """R1: `embedder = "none"` makes no vectors, though the memory has a model; `auto` uses it."""
    found = {}
    with Lukasa.open(tmp_path, embedder=FakeEmbedder(256, synonyms=SYNONYMS), clock=clock) as memory:
        for setting in ("none", "auto"):
            world = made(memory, {"backend.embedder": setting}, setting)
            world.put("workspace", "The villain waits")
            found[setting] = order(world, "antagonist")
    assert found == {"none": [], "auto": ["The villain waits"]}


# Retrieval


def test_a_signal_that_is_not_named_finds_nothing(memory: Lukasa) -> None:
    """R1: without `keyword`, words find nothing; with it they do."""
    silent = made(memory, {"retrieval.signals": ["structured"], "retrieval.weights": {}}, "silent")
    heard = made(memory, {"retrieval.signals": ["keyword"], "retrieval.weights": {}}, "heard")
    for world in (silent, heard):
        world.put("workspace", "The lamp is green")
    assert (order(silent, "lamp"), order(heard, "lamp")) == ([], ["The lamp is green"])


def test_weights_and_fusion_and_its_constant_decide_the_order(memory: Lukasa) -> None:
    """R1: how much a signal counts, by its weight, by ranks or by scores, shows in each hit's shares."""
    shares = {}
    cases: dict[str, dict[str, Any]] = {
        "light": {"retrieval.fusion": "rrf", "retrieval.weights": {"keyword": 0.5}},
        "heavy": {"retrieval.fusion": "rrf", "retrieval.weights": {"keyword": 2.0}},
        "near": {"retrieval.fusion": "rrf", "retrieval.rrf_k": 1, "retrieval.weights": {"keyword": 2.0}},
        "scores": {"retrieval.fusion": "zscore", "retrieval.weights": {"keyword": 2.0}},
    }
    for name, changes in cases.items():
        world = made(memory, {"retrieval.signals": ["keyword"], **changes}, name)
        world.put("workspace", "The lamp is green")
        (hit,) = world.read("lamp", count=False)
        shares[name] = round(sum(part.share for part in hit.score.match.contributions), 6)
    assert shares["light"] == round(0.5 / 61, 6)
    assert shares["heavy"] == round(2.0 / 61, 6)
    assert shares["near"] == round(2.0 / 2, 6)
    assert shares["scores"] not in (shares["heavy"], shares["near"])


def test_candidates_bound_what_is_weighed(memory: Lukasa) -> None:
    """R1: with one candidate, importance cannot lift the second best match; with many it can."""
    tops = {}
    for many in (1, 50):
        changes = {"retrieval.candidates": many, "retrieval.prior_weight": 1.0, "backend.embedder": "none"}
        world = made(memory, {**changes, "retrieval.signals": ["keyword"], "retrieval.weights": {}}, f"n{many}")
        for number in range(6):
            world.put("workspace", f"lamp lamp shade {number}", importance=0.1)
        world.put("workspace", "a lamp of great importance in the long hall", importance=1.0)
        tops[many] = order(world, "lamp", limit=1)
    assert tops[1] != tops[50]


def test_the_prior_weighs_as_much_as_the_spec_says(memory: Lukasa) -> None:
    """R2: with a weight of 0 importance changes no score; with 1 it multiplies the match."""
    priors = {}
    for weight in (0.0, 1.0):
        world = made(memory, {"retrieval.prior_weight": weight}, f"w{weight:.0f}")
        world.put("workspace", "The lamp is green", importance=0.25)
        priors[weight] = round(world.read("lamp", count=False)[0].score.prior, 3)
    assert priors == {0.0: 1.0, 1.0: 0.25}


def test_tier_weights_lower_a_tier(memory: Lukasa) -> None:
    """D5: a weight multiplies the score of a tier's hits, and the hit says so."""
    world = made(memory, {"retrieval.tier_weights": {"workspace": 0.1}})
    world.put("workspace", "The lamp is green")
    world.put("account", "The lamp is mine")
    assert [hit.entry.scope.tier for hit in world.read("lamp", count=False)] == ["account", "workspace"]
    assert world.read("green lamp", tier="workspace", count=False)[0].score.tier_weight == 0.1


def test_a_recency_tier_is_ordered_by_time_alone(memory: Lukasa, clock: FixedClock) -> None:
    """R2: the newest first, however well an older entry matches; elsewhere the match leads."""
    orders = {}
    for name, tiers in (("time", ["workspace"]), ("match", [])):
        world = made(memory, {"retrieval.recency_tiers": tiers}, name)
        world.put("workspace", "The green lamp of the harbour")
        clock.time += timedelta(minutes=1)
        world.put("workspace", "A lamp")
        orders[name] = order(world, "green lamp harbour", tier="workspace")[0]
    assert orders == {"time": "A lamp", "match": "The green lamp of the harbour"}


@pytest.mark.parametrize("name", ["lean", "balanced", "deep"])
def test_profiles_say_how_many(memory: Lukasa, name: str) -> None:
    """R6: `limit` of a profile is what a read returns, `inject_cap` what its context shows of a tier."""
    world = made(memory, {f"profiles.{name}": {"limit": 2, "inject_cap": 1}})
    for colour in ("green", "blue", "red", "black"):
        world.put("workspace", f"The {colour} lamp stands in the {colour} hall")
    assert len(order(world, "lamp", profile=name)) == 2
    assert str(world.context("lamp", profile=name)).count("lamp stands") == 1


# Context


def test_the_context_keeps_to_budget_and_cap(memory: Lukasa) -> None:
    """C2: fewer tokens or a smaller cap show fewer entries, and what was left out is told."""
    shown = {}
    cases: dict[str, dict[str, Any]] = {
        "wide": {},
        "narrow": {"context.inject_cap": 2},
        "poor": {"context.budget": 200, "named": []},
    }
    for name, changes in cases.items():
        world = made(memory, changes, name)
        for number in range(8):
            world.put("workspace", f"Lamp {number} stands in hall {number} beside window {number} of house {number}")
        found = world.context("lamp hall window house", profile="lean")
        shown[name] = len(found.hits)
        assert found.budget == (200 if name == "poor" else 2000)
    assert shown["narrow"] == 2 < shown["wide"]
    assert shown["poor"] < shown["wide"]


def test_standing_importance_says_which_rules_are_always_there(memory: Lukasa) -> None:
    """B7: a procedure of this importance is in every context, whatever is asked."""
    there = {}
    for bar in (0.5, 0.9):
        world = made(memory, {"context.standing_importance": bar, "backend.embedder": "none"}, f"bar{bar * 10:.0f}")
        world.put("workspace", "Close the harbour gate", kind="procedural", importance=0.7)
        there[bar] = "harbour gate" in str(world.context("something else entirely"))
    assert there == {0.5: True, 0.9: False}


def test_a_tier_that_is_always_present_needs_no_match(memory: Lukasa) -> None:
    """C2: `mode = "always"` shows a tier's newest entries without a match, `on_demand` only what matches."""
    there = {}
    for mode in ("always", "on_demand"):
        world = made(memory, {"behaviour.injection.workspace.mode": mode}, mode.replace("_", ""))
        world.put("workspace", "The lamp is green")
        there[mode] = "lamp is green" in str(world.context("zebra"))
    assert there == {"always": True, "on_demand": False}


def test_a_tiers_budget_and_priority_decide_what_gives_way(memory: Lukasa) -> None:
    """C2: a tier keeps to its own tokens; where all together are too many, the lowest priority leaves first."""
    world = made(memory, {"behaviour.injection.account.budget": 1})
    world.put("account", "The lamp of the account is green")
    assert "lamp of the account" not in str(world.context("lamp"))
    left = {}
    for first in ("workspace", "account"):
        changes = {
            f"behaviour.injection.{tier}": {
                "mode": "on_demand",
                "budget": 600,
                "priority": 90 if tier == first else 10,
                **WHY,
            }
            for tier in ("workspace", "account")
        }
        other = made(memory, {**changes, "context.budget": 60, "named": []}, f"first{first}")
        for tier in ("workspace", "account"):
            other.put(tier, f"The {tier} keeps a lamp in every hall of the long house by the harbour wall")
        shown = [hit.entry.scope.tier for hit in other.context("lamp hall").hits.values()]
        left[first] = set(shown)
    assert left["workspace"] != left["account"]


# Behaviour


@pytest.mark.parametrize(
    ("decay", "left"),
    [
        ({"model": "none"}, 1.0),
        ({"model": "exempt"}, 1.0),
        ({"model": "hourly", "rate": 0.995}, 0.431),
        ({"model": "daily", "rate": 0.01}, 0.932),
        ({"model": "forcing", "rate": 0.995, "threshold": 0.9}, 0.431),
        ({"model": "validity", "rate": 0.995, "window_days": 3.0}, 0.618),
        ({"model": "validity", "rate": 0.995, "window_days": 30.0}, 1.0),
        ({"model": "scope_close", "rate": 0.995}, 1.0),
    ],
)
def test_each_decay_model_leaves_its_share(
    memory: Lukasa, clock: FixedClock, decay: dict[str, Any], left: float
) -> None:
    """D1–D4: what a week without a read leaves of an entry, by model, rate and window."""
    world = made(memory, {"behaviour.decay": {"workspace": {"semantic": {**decay, **WHY}}}})
    id = world.put("workspace", "The lamp is green", kind="semantic").id
    clock.time += timedelta(days=7)
    assert round(world.standing(id).decay, 3) == left


def test_the_threshold_of_a_forcing_decay_asks_for_a_disposition(memory: Lukasa, clock: FixedClock) -> None:
    """D3: an episode below the threshold waits in the queue; above it, it does not."""
    waiting = {}
    for threshold in (0.01, 0.5):
        changes = {
            "behaviour.lifecycle.workspace.episodic": {"policy": "dispose"},
            "behaviour.decay.workspace.episodic": {"model": "forcing", "rate": 0.998, "threshold": threshold, **WHY},
        }
        world = made(memory, changes, f"t{threshold * 100:.0f}")
        id = world.put("workspace", "The lamp fell over", kind="episodic").id
        clock.time += timedelta(days=7)
        waiting[threshold] = world.standing(id).awaits_disposition
    assert waiting == {0.01: False, 0.5: True}


def test_an_entry_of_a_closed_conversation_fades_from_its_end(memory: Lukasa, clock: FixedClock) -> None:
    """D4: with `scope_close` nothing fades while the conversation is open; then it does."""
    world = made(memory, {}, like="tiered")
    talk = world.start()
    id = world.at(conversation=talk.id).put("conversation", "The lamp is green", lifetime="short_term").id
    clock.time += timedelta(days=7)
    before = world.standing(id).decay
    world.idle(talk.id)
    clock.time += timedelta(days=7)
    assert before == 1.0 > world.standing(id).decay


@pytest.mark.parametrize(
    ("write", "outcome"),
    [
        ({"mode": "auto"}, "stored"),
        ({"mode": "explicit"}, "stored"),
        ({"mode": "promotion"}, "held"),
        ({"mode": "mixed", "confidence": 0.8}, "stored"),
    ],
)
def test_write_modes_decide_about_an_agents_put(memory: Lukasa, write: dict[str, Any], outcome: str) -> None:
    """P2, W1: an agent's put on purpose is stored, or held where only promotion makes memory active."""
    world = made(memory, {"behaviour.write": {"semantic": {**write, **WHY}}})
    put = world.acting(agent="scout").put("workspace", "The lamp is green", kind="semantic")
    assert put.outcome == outcome


@pytest.mark.parametrize(
    ("write", "outcome"),
    [
        ({"mode": "auto"}, "stored"),
        ({"mode": "explicit"}, "discarded"),
        ({"mode": "mixed", "confidence": 0.8}, "held"),
        ({"mode": "mixed", "confidence": 0.3}, "stored"),
    ],
)
def test_write_modes_decide_about_what_is_observed(memory: Lukasa, write: dict[str, Any], outcome: str) -> None:
    """P2, W2: nobody decided to keep what an observer took: `explicit` drops it, `mixed` asks how sure it is."""
    world = made(memory, {"behaviour.write": {"semantic": {**write, **WHY}}})
    half = GateVerdict(Gate.ALLOW, 0.5, "")
    memo = Memo("The lamp in the hall is green", kind="semantic", gate=half, observed=True)
    (put,) = world.put_many("workspace", [memo])
    assert put.outcome == outcome


def test_observed_texts_below_the_shortest_length_are_dropped(memory: Lukasa) -> None:
    """W2: `min_chars` is the spec's: what is shorter is not kept when it was only observed."""
    outcomes = {}
    for least in (1, 60):
        world = made(memory, {"behaviour.write": {"min_chars": least, "mode": "auto", **WHY}}, f"least{least}")
        (put,) = world.put_many("workspace", [Memo("The lamp in the hall is green", kind="semantic", observed=True)])
        outcomes[least] = put.outcome
    assert outcomes == {1: "stored", 60: "discarded"}


def test_conflict_rules_say_how_an_entry_ends(memory: Lukasa) -> None:
    """W4: what a caller replaces loses its validity, is archived, or stays."""
    states = {}
    for rule in ("validity", "supersede", "noop"):
        world = made(memory, {"behaviour.conflict": {"semantic": {"rule": rule, **WHY}}}, rule)
        old = world.put("workspace", "The lamp is green", kind="semantic").id
        world.put("workspace", "The lamp is blue", kind="semantic", supersedes=old)
        states[rule] = str(world.get(old).state)
    assert len(set(states.values())) == 3


def test_rules_retire_only_where_the_spec_lets_them(memory: Lukasa) -> None:
    """W4: with `prefer` both statements stay active; with `retire` the rules end the earlier one."""
    states = {}
    for by in ("prefer", "retire"):
        world = made(memory, {"behaviour.conflict": {"semantic": {"rule": "validity", "by_rule": by, **WHY}}}, by)
        old = world.put("workspace", "The lamp in the hall is called Vega", kind="semantic").id
        world.put("workspace", "The lamp in the hall is called Rigel", kind="semantic")
        states[by] = str(world.get(old).state)
    assert (states["prefer"], states["retire"] != "active") == ("active", True)


def test_styles_decide_what_consolidation_makes(memory: Lukasa, clock: FixedClock) -> None:
    """O5: `compound` makes one entry of a day's notes, `merge` and `supersession` join copies, `none` does nothing."""
    left = {}
    for style in ("none", "compound", "merge", "supersession"):
        changes = {
            "behaviour.consolidation": {"episodic": {"style": style, "triggers": ["operator"], **WHY}},
            "behaviour.lifecycle.workspace.episodic": {"policy": "indefinite", **WHY},
        }
        world = made(memory, changes, style)
        for text in ("The lamp fell over at noon", "Ada set the lamp upright again", "The shade was bought in May"):
            world.put("workspace", text, kind="episodic")
        clock.time += timedelta(days=3)
        run(world, "consolidate")
        left[style] = len(world.entries("workspace"))
    assert left["none"] == 3
    assert left["compound"] == 1
    assert left["merge"] == left["supersession"] == 3


# Discipline


def test_what_must_not_be_copied_is_the_specs(memory: Lukasa) -> None:
    """W5: a copy of a collection in `non_mirror` is refused or held, by `calibration` and `similarity`."""
    body = "The conformity gate requires two citations from independent authorities before promotion"
    part = "The conformity gate requires two citations, says the handbook of the harbour office in its third part"
    outcomes = {}
    for name, rule in {
        "primary": {"non_mirror": ["rules"], "calibration": "primary"},
        "backstop": {"non_mirror": ["rules"], "calibration": "backstop"},
        "other": {"non_mirror": ["letters"], "calibration": "primary"},
        "strict": {"non_mirror": ["rules"], "calibration": "backstop", "similarity": 0.2},
    }.items():
        world = made(memory, {"reference_only": rule}, name)
        world.save_document("rule-1", body, collection="rules")
        try:
            outcomes[name] = (world.put("workspace", body).outcome, world.put("workspace", part).outcome)
        except MirrorsCanonical:
            outcomes[name] = ("refused", world.put("workspace", part).outcome)
    assert outcomes == {
        "primary": ("refused", "stored"),
        "backstop": ("held", "stored"),
        "other": ("stored", "stored"),
        "strict": ("held", "held"),
    }


def test_an_entry_has_a_longest_length(memory: Lukasa) -> None:
    """W5: `max_chars` is the spec's, and the error says what it is."""
    world = made(memory, {"reference_only": {"non_mirror": [], "calibration": "primary", "max_chars": 30}})
    with pytest.raises(InvalidContent, match="30"):
        world.put("workspace", "The lamp in the hall is as green as the sea")
    assert world.put("workspace", "The lamp is green").outcome == "stored"


def test_a_file_has_a_longest_length_of_its_own(memory: Lukasa) -> None:
    """W5: `max_file_chars` holds for an entry with a path, and `max_chars` for the others."""
    rules = {"non_mirror": [], "calibration": "primary", "max_chars": 10, "max_file_chars": 30}
    world = made(memory, {"reference_only": rules})
    assert world.put_many("workspace", [Memo("The lamp is green, once", path="lamp.md")])[0].outcome == "stored"
    for text, path, most in (
        ("The lamp is green, once", None, "10"),
        ("The lamp is as green as the sea", "b.md", "30"),
    ):
        with pytest.raises(InvalidContent, match=most):
            world.put_many("workspace", [Memo(text, path=path)])


@pytest.mark.parametrize("boundary", ["tenant", "context", "trust"])
def test_the_boundary_of_a_gate_is_told(memory: Lukasa, boundary: str) -> None:
    """W6: the ledger of a write names the boundary that the text crossed, and the gate applies to its tier alone."""
    gate = {"boundary": boundary, "into": "account", "transforms": ["strip_identifiers"]}
    world = made(memory, {"sanitization": [gate]})
    text = "Write to ada@acme.example"
    (verdict,) = [v for v in world.put("account", text).ledger if v.step == "sanitise"]
    assert (verdict.outcome, boundary in verdict.reason) == ("changed", True)
    assert world.get(world.put("workspace", text).id).content == text


@pytest.mark.parametrize(
    ("transform", "out"),
    [
        ("strip_identifiers", "Mail [email] [private]soon[/private] with AKIAIOSFODNN7EXAMPLE"),
        ("auth_scoped_subset", "Mail ada@acme.example  with AKIAIOSFODNN7EXAMPLE"),
        ("hedge_by_provenance", "Mail ada@acme.example [private]soon[/private] with AKIAIOSFODNN7EXAMPLE"),
    ],
)
def test_each_transform_changes_its_part(memory: Lukasa, transform: str, out: str) -> None:
    """W6: a gate changes what its transform is for, and nothing else."""
    world = made(memory, {"sanitization": [{"boundary": "tenant", "transforms": [transform]}]})
    text = "Mail ada@acme.example [private]soon[/private] with AKIAIOSFODNN7EXAMPLE"
    assert world.get(world.put("workspace", text).id).content == out


def test_a_gate_redacts_the_owners_secrets(memory: Lukasa) -> None:
    """W6: with `redact_secrets` not even what the owner puts on purpose enters with its secret."""
    text = "The key is AKIAIOSFODNN7EXAMPLE"
    plain = memory.workspace("plain")
    gated = made(memory, {"sanitization": [{"boundary": "trust", "transforms": ["redact_secrets"]}]})
    kept = [world.get(world.put("workspace", text).id).content for world in (plain, gated)]
    assert (kept[0], "AKIA" in kept[1]) == (text, False)


def test_the_universal_posture_alone_is_known() -> None:
    """P4: another posture is refused, so that nobody believes in one that does nothing."""
    with pytest.raises(LukasaError, match="universal"):
        spec({"audit.posture": "relaxed"})


def test_the_taxonomy_is_on_each_entry(memory: Lukasa) -> None:
    """W7: entries carry the version of the taxonomy that the spec names; an unknown one is refused."""
    entry = made(memory, {"taxonomy.name": "v1"}).put("workspace", "I prefer tea").entry
    assert entry is not None
    assert entry.category is not None
    assert entry.category.taxonomy == "v1"
    with pytest.raises(LukasaError, match="v1"):
        spec({"taxonomy.name": "v9"})


WORDINGS = ("Lena waits at the old mill", "Lena is waiting at the old mill")


@pytest.fixture
def near(tmp_path: Path, clock: FixedClock) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "near", embedder=FakeEmbedder(256), clock=clock) as opened:
        yield opened


def test_a_write_notes_two_wordings_above_the_cosine(near: Lukasa) -> None:
    """W3: `dedup_cosine` of a write says how near another wording must be to say the same."""
    noted = {}
    for cosine in (0.5, 0.99):
        world = made(near, {"behaviour.write": {"dedup_cosine": cosine, **WHY}}, f"c{cosine * 100:.0f}")
        first, _ = (world.put("workspace", text).id for text in WORDINGS)
        noted[cosine] = [str(pair.relation) for pair in world.related(first).rivals]
    assert noted == {0.5: ["same"], 0.99: []}


def test_a_read_folds_two_wordings_above_the_cosine(near: Lukasa) -> None:
    """R4: `dedup_cosine` of reads says how near two hits must be for one of them to be shown."""
    hits = {}
    for cosine in (0.5, 0.99):
        world = made(near, {"retrieval.dedup_cosine": cosine}, f"c{cosine * 100:.0f}")
        for text in WORDINGS:
            world.put("workspace", text, kind="episodic")
        hits[cosine] = len(order(world, "mill"))
    assert hits == {0.5: 1, 0.99: 2}


def test_consolidation_joins_two_wordings_above_the_cosine(near: Lukasa) -> None:
    """O6: `merge_cosine` says how near copies must be that consolidation joins."""
    joined = {}
    for cosine in (0.5, 0.99):
        merging = {"style": "merge", "triggers": ["operator"], "merge_cosine": cosine, **WHY}
        apart = {"dedup_cosine": 1.0, **WHY}
        changes = {"behaviour.consolidation": {"semantic": merging}, "behaviour.write": apart}
        world = made(near, changes, f"c{cosine * 100:.0f}")
        first, _ = (world.put("workspace", text, kind="semantic").id for text in WORDINGS)
        run(world, "consolidate")
        joined[cosine] = [str(pair.relation) for pair in world.related(first).rivals]
    assert joined == {0.5: ["same"], 0.99: []}


# Sources and trust


@pytest.mark.parametrize(
    ("key", "rule", "state", "after"),
    [
        ("source_changed", "archive", "archived", ""),
        ("source_changed", "recheck", "active", "archived"),
        ("source_changed", "keep", "active", "doubted"),
        ("source_vanished", "archive", "archived", ""),
        ("source_vanished", "recheck", "active", "archived"),
        ("source_vanished", "keep", "active", "doubted"),
    ],
)
def test_the_spec_says_what_a_source_takes_with_it(memory: Lukasa, key: str, rule: str, state: str, after: str) -> None:
    """S4: a changed or vanished source archives what rests on it, asks for a check, or nothing."""
    world = made(memory, {"behaviour.lifecycle": {"semantic": {key: rule, **WHY}}})
    world.save_document("guide", "Two people review each change.")
    fact = world.put("workspace", "Changes need two reviewers", kind="semantic", links=["guide"]).id
    if key == "source_changed":
        world.save_document("guide", "Three people review each change.")
    else:
        world.remove_document("guide")
    assert str(world.get(fact).state) == state
    if after:
        assert world.corroborate(fact, "failed").outcome == after


@pytest.mark.parametrize("trust", [Trust.UNTRUSTED, Trust.IMPORTED, Trust.AGENT])
def test_trust_weighs_and_has_its_share(memory: Lukasa, trust: Trust) -> None:
    """P1, R2: a weight lowers the score of text of that trust; a share of nothing keeps it behind the author's."""
    name = trust.name.lower()
    for share in (0.0, 1.0):
        changes = {"retrieval.shares": {name: share}, "retrieval.trust_weights": {name: 0.9}}
        world = made(memory, changes, f"{name}{share:.0f}")
        world.acting(principal="web", trust=trust).put("workspace", "The green lamp of the harbour office")
        world.put("workspace", "The office keeps a lamp on the wall beside the long green table in the hall")
        (hit,) = [hit for hit in world.read("green lamp harbour", count=False) if hit.entry.trust is trust]
        assert hit.score.trust_weight == 0.9
        only = world.read("green lamp of the harbour office", limit=1, count=False)
        assert only[0].entry.trust is (Trust.AUTHOR if share == 0.0 else trust)
