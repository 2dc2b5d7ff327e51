"""What a tier admits, and the order of tiers when results are cut: the account of the preset `workspace` (S1)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.errors import WrongTier
from lukasa.spec import preset_text
from tests.helpers.cli import Shell
from tests.helpers.making import FixedClock
from tests.helpers.talk import facts, say

PROJECT = (
    "The API runs on port 8080",
    "The villain's name is Malachar",
    "The bridge collapses in the second act",
    "My main character is Elarindë",
    "Invoice 88 was paid in May",
)
PERSONAL = (
    "I always prefer dark themes in my writing",
    "Call me Ada",
    "I write best in the mornings",
    "Antworte mir immer auf Deutsch",
    "Prefers concise answers",
)


@pytest.fixture
def project(memory: Lukasa) -> Workspace:
    return memory.workspace("project", preset="workspace")


@pytest.mark.parametrize("text", PROJECT)
def test_project_content_does_not_enter_the_account(project: Workspace, text: str) -> None:
    """S1: the account refuses it and names the tier to use; nothing is stored, and the refusal is on record."""
    with pytest.raises(WrongTier, match="account") as raised:
        project.put("account", text)
    assert (raised.value.tier, "'workspace'" in raised.value.fix) == ("workspace", True)
    assert project.entries("account", everything=True) == []
    (event,) = [e for e in project.ctx.account.events(limit=100) if e.action == "entry.refused"]
    assert event.detail["instead"] == "workspace"
    assert project.put(raised.value.tier, text).outcome == "stored"


@pytest.mark.parametrize("text", PERSONAL)
def test_preferences_and_ways_of_working_enter(project: Workspace, text: str) -> None:
    """S1: these are what the account is for."""
    assert project.put("account", text).outcome == "stored"


def test_the_owner_says_that_it_is_a_way_of_working(project: Workspace) -> None:
    """S1: the words leave doubt, and the kind that the owner states decides."""
    text = "Spaces before dashes"
    with pytest.raises(WrongTier, match="kind='procedural'"):
        project.put("account", text)
    assert project.put("account", text, kind="procedural").outcome == "stored"


def test_an_agent_cannot_relabel_project_content(project: Workspace) -> None:
    """S1: against the words, the kind that an agent states counts nothing."""
    with pytest.raises(WrongTier):
        project.acting(agent="helper").put("account", "The API runs on port 8080", kind="procedural")


def test_an_edit_does_not_bring_it_in(project: Workspace) -> None:
    """S1: what may not be put may not be edited in either."""
    id = project.put("account", "Call me Ada").id
    with pytest.raises(WrongTier):
        project.update(id, content="The API runs on port 8080")
    assert project.get(id).content == "Call me Ada"


def test_the_agent_is_told_in_chat(memory: Lukasa, project: Workspace) -> None:
    """S1: a request for the account with project content is not stored there, and the reply names the tier to use."""
    asked = "Remember that the villain's name is Malachar — note this at the account level."
    reply = say(memory, project, asked)
    assert "workspace" in reply
    assert facts(project, "account") == []


def test_on_the_command_line(tmp_path: Path) -> None:
    """S1: the error has the tier to use; an option says that it is a way of working."""
    shell = Shell(tmp_path / "data")
    shell.run("workspace", "create", "project", "--preset", "workspace")
    put = ("-w", "project", "put", "Room 12 is booked for the workshop", "--tier", "account")
    error = shell.fails(*put, code=1)
    assert (error["code"], "'workspace'" in error["fix"]) == ("wrong-tier", True)
    assert shell.json(*put, "--kind", "procedural")["outcome"] == "stored"


def test_other_presets_admit_everything(world: Workspace) -> None:
    """S1: only a spec that says so limits a tier."""
    assert world.put("account", PROJECT[0]).outcome == "stored"


NOTED = (
    "I like the harbour at dawn",
    "I like the harbour at dusk",
    "I like the harbour at noon",
    "I like the harbour at night",
)


def kept_by_tier(memory: Lukasa, clock: FixedClock, spec: str) -> list[str]:
    """The tiers of the hits, of similar statements in each tier a week ago, when two are cut."""
    world = memory.workspace("project", spec=spec)
    world.create_channel("coast")
    talk = world.at(channel="coast", conversation=world.start("coast").id)
    for tier, text in zip(("account", "workspace", "channel", "conversation"), NOTED, strict=True):
        talk.put(tier, text, kind="procedural")
    clock.time += timedelta(days=7)
    return [hit.entry.scope.tier for hit in talk.read("harbour like", limit=2, count=False)]


def test_the_widening_order_is_kept_when_results_are_cut(memory: Lukasa, clock: FixedClock) -> None:
    """R3: of entries that match equally well the narrower tiers stay, although theirs fade faster."""
    assert kept_by_tier(memory, clock, preset_text("workspace")) == ["conversation", "channel"]


def test_without_the_key_decay_decides(memory: Lukasa, clock: FixedClock) -> None:
    """R3: `widening = 0` ranks by relevance alone; then the channel, which fades fastest, is cut first."""
    spec = preset_text("workspace").replace("widening = 0.9", "widening = 0.0")
    assert "channel" not in kept_by_tier(memory, clock, spec)


def test_widening_lifts_nothing_irrelevant(memory: Lukasa) -> None:
    """R3, D5: an account entry that answers stays above a workspace entry that hardly matches."""
    world = memory.workspace("project", preset="workspace")
    world.put("workspace", "The harbour has three lighthouses")
    answer = world.put("account", "I prefer tea with lemon after the harbour walk").id
    assert world.read("which tea do I prefer after the walk?", count=False)[0].id == answer


MILD = {"channel": ("0.990", "0.995"), "workspace": ("0.995", "0.998"), "account": ("0.998", "0.999")}


def after_a_week(memory: Lukasa, clock: FixedClock, spec: str) -> dict[str, float]:
    """What time has left for an entry of each lasting tier that nobody read for a week."""
    world = memory.workspace("project", spec=spec)
    world.create_channel("coast")
    talk = world.at(channel="coast")
    ids = {tier: talk.put(tier, "I like the harbour").id for tier in MILD}
    clock.time += timedelta(days=7)
    return {tier: round(talk.standing(id).decay, 3) for tier, id in ids.items()}


def test_the_presets_own_rates(memory: Lukasa, clock: FixedClock) -> None:
    """D1: a week unread leaves 18, 43 and 71 percent."""
    assert after_a_week(memory, clock, preset_text("workspace")) == {
        "channel": 0.185,
        "workspace": 0.431,
        "account": 0.714,
    }


def test_the_milder_rates(memory: Lukasa, clock: FixedClock) -> None:
    """D1: the second table of S1, as a spec: a week unread leaves 43, 71 and 85 percent."""
    spec = preset_text("workspace")
    for tier, (own, mild) in MILD.items():
        header = f'[behaviour.decay.{tier}]\nmodel = "hourly"\nrate = '
        assert header + own in spec
        spec = spec.replace(header + own, header + mild)
    assert after_a_week(memory, clock, spec) == {"channel": 0.431, "workspace": 0.714, "account": 0.845}
