"""Why: each stage answers for itself. And the log, and the presets."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from lukasa import Lukasa, Trust, Workspace
from lukasa.model.errors import InvalidInput, InvalidScope, NotFound, SpecError, StoreMissing
from lukasa.spec import preset_names, preset_text
from tests.helpers.making import FixedClock

MALACHAR = "The villain is called Malachar"


def outcome(world: Workspace, query: str, id: str, **options: object) -> tuple[str, str]:
    last = world.why(query, id, **options)[-1]  # type: ignore[arg-type]
    return last.step, last.outcome


def test_why_a_hit_is_returned(world: Workspace) -> None:
    """R8: a returned hit is traced through scope, state, signals, rank and profile."""
    id = world.put("workspace", MALACHAR).id
    trail = world.why("villain", id)
    assert [v.step for v in trail][:2] == ["scope", "state"]
    assert (trail[-1].step, trail[-1].outcome) == ("profile", "returned")
    assert all(v.reason for v in trail)


def test_why_words_do_not_meet(world: Workspace) -> None:
    """R8: an entry that no signal found says so."""
    id = world.put("workspace", MALACHAR).id
    steps = {v.step: v.outcome for v in world.why("quarterly budget", id)}
    assert steps["keyword"] == "missed"


def test_why_not_another_scope(world: Workspace) -> None:
    """R8: an entry of another channel is out by scope."""
    world.create_channel("research")
    id = world.at(channel="research").put("channel", MALACHAR).id
    trail = world.at(channel="general").why("villain", id)
    assert (trail[0].step, trail[0].outcome) == ("scope", "out")


def test_why_not_held_forgotten_or_filtered(world: Workspace) -> None:
    """R8: state and filters give their reason."""
    page = world.acting(principal="web", trust=Trust.UNTRUSTED)
    held = page.put("workspace", "The user prefers that invoices go to Acme").id
    gone = world.put("workspace", MALACHAR).id
    world.forget(gone, "retconned")
    kept = world.put("workspace", "The harbour has three lighthouses").id
    assert "held" in world.why("invoices", held)[-1].reason
    assert "retconned" in world.why("villain", gone)[-1].reason
    assert outcome(world, "harbour", kept, kind="episodic") == ("filter", "out")


def test_why_not_somebody_elses(world: Workspace) -> None:
    """R8, M4: a private entry is out by owner, for the person who may know of it."""
    id = world.acting(agent="researcher").put("workspace", MALACHAR, owner="researcher").id
    assert outcome(world, "villain", id) == ("owner", "out")


def test_why_cut_by_the_profile(world: Workspace) -> None:
    """R8, R6: an entry beyond the profile's limit says how many are returned."""
    places = ("barn", "mill", "cellar", "chapel", "tower", "granary")
    ids = [world.put("workspace", f"In the {place} hides a villain").id for place in places]
    cut = [id for id in ids if outcome(world, "villain hides", id, limit=2) == ("profile", "cut")]
    assert len(cut) == 4


def test_why_does_not_count(world: Workspace) -> None:
    """D6: explaining is not reading."""
    id = world.put("workspace", MALACHAR).id
    world.why("villain", id)
    assert world.standing(id).access is None


def test_a_hit_explains_itself(world: Workspace) -> None:
    """R8: curator, tier, kind, importance, relevance and each signal's rank and score come with the hit."""
    world.put("workspace", MALACHAR, importance=0.8)
    (hit,) = world.read("villain Malachar")
    assert (hit.entry.curator, hit.entry.scope.tier, hit.entry.kind, hit.authority) == (
        "author",
        "workspace",
        "semantic",
        "act",
    )
    assert hit.score.relevance == pytest.approx(0.8)
    (keyword,) = [c for c in hit.score.match.contributions if c.signal == "keyword"]
    assert keyword.rank == 1
    assert keyword.score is not None
    assert keyword.score > 0


def test_every_mutation_is_in_the_log(world: Workspace) -> None:
    """X2: each change has its event, in order, with actor and cause; reads have none."""
    id = world.put("workspace", MALACHAR).id
    world.update(id, importance=0.9)
    world.read("villain")
    world.forget(id, "retconned")
    world.restore(id)
    events = world.ledger(id)
    assert [e.action for e in events] == ["entry.put", "entry.updated", "entry.forgotten", "entry.restored"]
    assert events[2].detail["cause"] == "retconned"
    assert all(e.actor.surface == "library" for e in events)
    assert world.verify() == []


def test_the_ledger_of_a_write_is_in_its_event(world: Workspace) -> None:
    """W2, X2: the reasons for storing are kept with the event, without the text."""
    (event,) = world.ledger(world.put("workspace", MALACHAR).id)
    assert [v["step"] for v in event.detail["ledger"]][-1] == "resolve"
    assert "Malachar" not in repr(event)


@pytest.mark.parametrize("preset", preset_names())
def test_every_preset_works(memory: Lukasa, preset: str) -> None:
    """P1–P6: each preset is a working memory: put, read, context, spec kept with the workspace."""
    world = memory.workspace(preset, preset=preset)
    if preset == "anchored":
        world = world.at(org_id="acme", domain_id="robots")
    tier = world.spec.tiers[-1].name if preset == "anchored" else "workspace"
    written = world.put(tier, "The conformity gate needs two citations")
    assert written.outcome == "stored"
    assert [h.id for h in world.read("how many citations does the gate need")] == [written.id]
    assert "two citations" in str(world.context("citations for the gate"))
    assert memory.workspace(preset).spec == world.spec


def test_anchors_are_required(memory: Lukasa) -> None:
    """P6: a write without a required key is refused, naming the key."""
    world = memory.workspace("org", preset="anchored").at(org_id="acme")
    with pytest.raises(InvalidScope, match="domain_id"):
        world.put("persistent", "The conformity gate needs two citations")


def test_anchors_separate(memory: Lukasa) -> None:
    """P6, X3: another domain of the same organisation sees nothing."""
    world = memory.workspace("org", preset="anchored")
    robots, boats = world.at(org_id="acme", domain_id="robots"), world.at(org_id="acme", domain_id="boats")
    robots.put("persistent", "The conformity gate needs two citations")
    assert len(boats.read("conformity gate")) == 0


def test_disposition_is_visible(memory: Lukasa, clock: FixedClock) -> None:
    """D3: under the forcing function an old episode is shown as waiting for a disposition."""
    world = memory.workspace("org", preset="anchored").at(org_id="acme", domain_id="robots")
    id = world.put("persistent", "The operator asked for a tighter check", kind="episodic").id
    assert not world.standing(id).awaits_disposition
    clock.time += timedelta(days=400)
    assert world.standing(id).awaits_disposition


def test_a_workspace_keeps_its_spec(memory: Lukasa) -> None:
    """P5: opening with another preset is refused rather than silently ignored."""
    memory.workspace("novel", preset="workspace")
    with pytest.raises(InvalidInput):
        memory.workspace("novel", preset="observer")


def test_a_spec_of_ones_own(memory: Lukasa) -> None:
    """P5: a spec file makes a workspace; a broken one makes none."""
    text = preset_text("default").replace('name = "default"', 'name = "mine"', 1)
    assert memory.workspace("own", spec=text).spec.name == "mine"
    with pytest.raises(SpecError):
        memory.workspace("broken", spec="name = 3")
    assert [info.name for info in memory.workspaces()] == ["own"]


def test_a_lost_workspace_is_never_replaced(tmp_path: Path) -> None:
    """T16, T17: a workspace whose file is gone is refused; nothing empty takes its place."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        id = memory.workspace("novel").id
    (tmp_path / "workspaces" / id / "memory.db").unlink()
    with Lukasa.open(tmp_path, embedder="none") as memory, pytest.raises(StoreMissing):
        memory.workspace("novel")
    assert not (tmp_path / "workspaces" / id / "memory.db").exists()


def test_a_lost_account_is_never_replaced(tmp_path: Path) -> None:
    """T16: if the account's file is gone but workspaces are there, opening is refused."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        memory.workspace("novel")
    (tmp_path / "account" / "memory.db").unlink()
    with pytest.raises(StoreMissing):
        Lukasa.open(tmp_path, embedder="none")
    assert not (tmp_path / "account" / "memory.db").exists()


def test_existing_does_not_create(memory: Lukasa) -> None:
    """W9: asking for a workspace that is not there creates nothing."""
    with pytest.raises(NotFound):
        memory.existing("nope")
    assert memory.workspaces() == []


def test_why_an_earlier_statement_is_folded(world: Workspace) -> None:
    """R8, W4: the later one is returned; the earlier one says under which it stands."""
    old = world.put("workspace", "The villain is called Malachar").id
    new = world.put("workspace", "The villain is called Vexis").id
    assert outcome(world, "what is the villain called?", new) == ("profile", "returned")
    folded = world.why("what is the villain called?", old)[-1]
    assert (folded.step, folded.outcome, folded.data) == ("fold", "folded", {"under": new})
    assert "may no longer hold" in folded.reason


def test_why_an_entry_that_nothing_found_is_returned(world: Workspace) -> None:
    """R8, W4: the question finds the old wording, and the read returns what was said later."""
    old = world.put("workspace", "The villain is Malachar").id
    new = world.put("workspace", "The villain is Vexis").id
    assert [hit.id for hit in world.read("who is Malachar?")] == [new, old]
    assert outcome(world, "who is Malachar?", new)[1] == "returned"
