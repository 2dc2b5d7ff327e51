"""The twelve scenarios through the reference agent, on real SQLite, with embeddings and without (§14, L3)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lukasa import Lukasa, Workspace
from lukasa.ports import Embedder
from tests.conftest import SYNONYMS
from tests.fakes import FakeEmbedder
from tests.helpers.cli import ROOT
from tests.helpers.making import FixedClock
from tests.helpers.talk import agent, fact, facts, reads, say
from tests.helpers.upkeep import run


@pytest.fixture(params=["fake", "keyword", "default"])
def embedder(request: pytest.FixtureRequest) -> Embedder | str:
    """With an embedder that behaves, without any, and with the default model where its files are."""
    if request.param == "fake":
        return FakeEmbedder(256, synonyms=SYNONYMS)
    return "none" if request.param == "keyword" else "auto"


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock, embedder: Embedder | str) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder=embedder, clock=clock) as opened:
        yield opened


@pytest.fixture(params=["default", "workspace"])
def preset(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def world(memory: Lukasa, preset: str) -> Workspace:
    return memory.workspace("A", preset=preset)


@pytest.fixture
def other(memory: Lukasa, preset: str) -> Workspace:
    return memory.workspace("B", preset=preset)


def test_01_a_fact_is_stored(memory: Lukasa, world: Workspace) -> None:
    """§14.1, W1: the agent notes a fact of the workspace, long-term, and says so."""
    reply = say(memory, world, "Remember that this workspace is used for my fantasy novel project about dragons.")
    assert reply.startswith("I’ll remember that")
    stored = fact(world)
    assert (stored.scope.tier, stored.lifetime, stored.owner) == ("workspace", "long_term", "shared")
    assert stored.content == "this workspace is used for my fantasy novel project about dragons."
    assert (stored.curator, stored.source) == ("agent", "user")


def test_02_it_is_recalled_in_a_new_conversation(memory: Lukasa, world: Workspace) -> None:
    """§14.2, D6: a fresh conversation knows it, and the retrieval counts exactly once."""
    say(memory, world, "Remember that my main character’s name is Elarindë.")
    stored = fact(world)
    assert reads(world, stored) == 0
    reply = say(memory, world, "What do you know about my main character?")
    assert "Elarindë" in reply
    assert reply.startswith("You noted on 2026-11-15: ")
    assert reads(world, stored) == 1


def test_03_the_important_outlives_the_trivial(memory: Lukasa, clock: FixedClock) -> None:
    """§14.3, D1: after thirty days the trivial note is below the prune threshold, and consolidation prunes it."""
    world = memory.workspace("A", preset="workspace")
    say(memory, world, "Remember short-term, low priority: Temporary note: check formatting tomorrow.")
    say(memory, world, "Remember permanently, very important: Core theme: redemption arc for the protagonist.")
    trivial, core = facts(world)
    assert (trivial.importance, trivial.lifetime) == (0.1, "short_term")
    assert (core.importance, core.lifetime) == (0.9, "long_term")
    seen = reads(world, trivial)
    clock.time += timedelta(days=30)
    before = world.standing(trivial.id)
    assert before.relevance == pytest.approx(0.1 * 0.995**720 * before.frequency)
    assert before.relevance < 0.01 < world.standing(core.id).relevance
    ranked = [hit.id for hit in world.read("", tier="workspace", count=False)]
    assert ranked == [core.id, trivial.id]
    assert reads(world, trivial) == seen
    run(world, "consolidate")
    assert (str(world.get(trivial.id).state), str(world.get(core.id).state)) == ("pruned", "active")
    assert [entry.id for entry in world.entries("workspace")] == [core.id]
    reply = say(memory, world, "What do you remember about this workspace?")
    assert "redemption arc" in reply
    assert "check formatting" not in reply


def test_04_account_facts_cross_workspaces(memory: Lukasa, world: Workspace, other: Workspace) -> None:
    """§14.4: what is noted at the account level in A is known in B."""
    say(memory, world, "Remember that I always prefer dark themes in my writing — note this at the account level.")
    stored = fact(world, "account")
    assert (stored.scope.tier, stored.content) == ("account", "I always prefer dark themes in my writing")
    assert facts(world) == []
    assert "dark themes" in say(memory, other, "What do you know about my preferences?")
    assert reads(world, stored) == 1


def test_05_workspace_facts_do_not(memory: Lukasa, world: Workspace, other: Workspace) -> None:
    """§14.5: what is noted in A is unknown in B, and B says so."""
    say(memory, world, "Remember that the villain’s name is Malachar — workspace scope only.")
    stored = fact(world)
    assert stored.scope.value("workspace") == world.id
    reply = say(memory, other, "Do you know anything about a villain named Malachar?")
    assert reply == "I don't know: nothing I have noted here says anything about that."
    assert reads(world, stored) == 0
    assert "Malachar" in say(memory, world, "Do you know anything about a villain named Malachar?")


def test_06_conversation_memory_ends_with_it(memory: Lukasa, world: Workspace) -> None:
    """§14.6, L2: noted for this conversation: known in it, gone with it, and not made up afterwards."""
    with agent(memory, world) as talk:
        noted = talk.turn("Keep track for this conversation: I want to discuss chapters 1–3 today.")
        assert "for this conversation" in noted.reply
        here = fact(talk.world, "conversation")
        assert (here.lifetime, here.content) == ("conversation", "I want to discuss chapters 1–3 today.")
        assert "chapters 1–3" in talk.turn("What chapters did I want to discuss?").reply
        ended = talk.end()
    assert ended.ended.dropped == 1
    reply = say(memory, world, "What chapters did I want to discuss?")
    assert reply == "I don't know: nothing I have noted here says anything about that."
    everything = [e for tier in ("workspace", "account") for e in world.entries(tier, everything=True)]
    channel = world.at(channel="general").entries("channel", everything=True)
    assert not any("1–3" in entry.content for entry in (*everything, *channel))


def test_07_short_term_survives_the_conversation(memory: Lukasa, world: Workspace, clock: FixedClock) -> None:
    """§14.7, L2: short-term memory is there in the next conversation, counted, and its relevance can be computed."""
    say(memory, world, "Remind me short-term: I have a writing session scheduled for next week.")
    stored = fact(world)
    assert (stored.lifetime, stored.scope.tier) == ("short_term", "workspace")
    assert "writing session" in say(memory, world, "Do you remember anything about my schedule?")
    assert reads(world, stored) == 1
    clock.time += timedelta(hours=24)
    rate = {"default": 0.9995, "workspace": 0.995}[world.spec.name]
    standing = world.standing(stored.id)
    assert standing.relevance == pytest.approx(0.5 * rate**24 * (1 + 0.6931471805599453))


def test_08_an_agents_own_memory_stays_its_own(memory: Lukasa, world: Workspace) -> None:
    """§14.8, M4: the researcher's note is never shown to the writer, in a reply, a context or a summary."""
    note = "Remember privately: I have already investigated the historical context for Chapter 5."
    say(memory, world, note, name="researcher")
    stored = fact(world)
    assert stored.owner == "researcher"
    reply = say(memory, world, "What research has been done so far?", name="writer")
    assert reply == "I don't know: nothing I have noted here says anything about that."
    with agent(memory, world, name="writer") as talk:
        asked = talk.turn("What has been investigated about the historical context for Chapter 5?")
        assert "investigated the historical" not in asked.reply
        assert talk.context is not None
        assert "already investigated" not in str(talk.context)
        talk.leave()
    assert reads(world, stored) == 0
    assert "historical context" in say(memory, world, "What have I investigated for Chapter 5?", name="researcher")
    assert reads(world, stored) == 1


def test_09_the_scratchpad_counts(memory: Lukasa, world: Workspace) -> None:
    """§14.9, M7: three pages and two more are five, by the notes of this conversation and not by memory."""
    with agent(memory, world) as talk:
        talk.turn("Keep track of this — I’ve edited 3 pages so far today.")
        assert talk.world.read_note(talk.conversation.id, "pages edited").value == 3
        reply = talk.turn("I just edited 2 more pages. How many have I edited today?").reply
        assert "5 pages" in reply
        assert talk.world.read_note(talk.conversation.id, "pages edited").value == 5
        assert facts(talk.world) == facts(talk.world, "conversation") == []
        assert "5 pages" in talk.turn("How many pages have I edited today?").reply
        talk.end()
    assert "5 pages" not in say(memory, world, "How many pages have I edited today?")


@pytest.mark.parametrize("setting", ["none", "auto"])
def test_10_a_restart_loses_nothing(tmp_path: Path, setting: str) -> None:
    """§14.10, L2: stored by one process, recalled by another, in a conversation without history."""
    for said in (
        "Remember permanently: The protagonist’s backstory is that she was a scholar who lost her memory.",
        "What do you know about the protagonist’s backstory?",
    ):
        command = [sys.executable, "-W", "error", "-m", "tests.helpers.talk", str(tmp_path), setting, said]
        reply = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "a scholar who lost her memory" in reply
    with Lukasa.open(tmp_path, embedder=setting) as memory:
        world = memory.workspace("A")
        stored = fact(world)
        assert stored.lifetime == "long_term"
        assert reads(world, stored) == 1


def test_11_a_new_workspace_is_empty_and_polite(memory: Lukasa, world: Workspace, other: Workspace) -> None:
    """§14.11: nothing is known, nothing fails, nothing of another workspace shows; account facts may."""
    say(memory, world, "Remember that the capital of the realm is Veyra.")
    reply = say(memory, other, "What do you know about this workspace?")
    assert reply == "I have no stored information about this workspace yet: it is a fresh start."
    say(memory, world, "Remember for all my workspaces: I prefer metric units.")
    reply = say(memory, memory.workspace("C"), "What do you know about this workspace?")
    assert reply.startswith("I have no stored information about this workspace yet")
    assert "metric units" in reply
    assert "Veyra" not in reply


def test_12_isolation_is_the_stores(memory: Lukasa, world: Workspace, other: Workspace) -> None:
    """§14.12, X3: B's agent knows nothing of A's map, and no read of B, however broad, can reach A's row."""
    say(memory, world, "Remember: The world map is kept in the ‘Maps’ page.")
    stored = fact(world)
    assert world.id != other.id
    reply = say(memory, other, "Where is the world map?")
    assert reply == "I don't know: nothing I have noted here says anything about that."
    assert [hit.id for hit in other.read("world map", history=True, held=True)] == []
    assert other.ctx.local.entries([stored.id]) == {}
    assert "Maps" in say(memory, world, "Where is the world map?")
