"""The twelve scenarios in other words, with the default embedder and without any: the reply and the database (§14, L3).

Each row of a table is one wording: what the user says, and what is asked later. `test_scenarios.py` has the words of
the document.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lukasa import Entry, Lukasa, Workspace
from lukasa.model.values import Lifetime
from lukasa.providers.chat.offline import FRESH, NOTHING
from tests.helpers.making import FixedClock
from tests.helpers.talk import agent, fact, facts, reads, say
from tests.helpers.upkeep import run


@pytest.fixture(params=["auto", "none"])
def memory(request: pytest.FixtureRequest, clock: FixedClock) -> Iterator[Lukasa]:
    with Lukasa.open(in_memory=True, embedder=request.param, clock=clock) as opened:
        yield opened


@pytest.fixture
def world(memory: Lukasa) -> Workspace:
    return memory.workspace("A", preset="workspace")


@pytest.fixture
def other(memory: Lukasa) -> Workspace:
    return memory.workspace("B", preset="workspace")


def verbatim(entry: Entry, said: str) -> bool:
    """Whether an entry is a part of what was said, word for word."""
    return entry.content.casefold() in said.casefold()


def everywhere(world: Workspace) -> list[Entry]:
    here = [e for tier in ("workspace", "account") for e in world.entries(tier, everything=True)]
    return [*here, *world.at(channel="general").entries("channel", everything=True)]


@pytest.mark.parametrize(
    "said",
    [
        "This workspace is used for my fantasy novel project about dragons. Please remember it.",
        "I'd like you to keep in mind that this workspace is for my fantasy novel about dragons.",
        "Make a note: this is where I write my fantasy novel about dragons.",
        "My fantasy novel about dragons lives in this workspace, hang on to that for me.",
        "Could you remember that I use this workspace for a fantasy novel about dragons?",
        "Jot down that everything in here belongs to my fantasy novel about dragons.",
        "Merk dir bitte, dass dieser Workspace für meinen Fantasyroman über Drachen (dragons) ist.",
        "I use this workspace for my fantasy novel about dragons and want you to know that.",
        "I would be thankful if you noted that this workspace is for my fantasy novel about dragons.",
        "Here's a fact for you to keep: this workspace is for my fantasy novel about dragons.",
        "What you should remember: this workspace is for my fantasy novel about dragons.",
        "This workspace is my fantasy novel about dragons. Got that? Keep it.",
        "Don't let this slip: the fantasy novel about dragons is what this workspace is for.",
    ],
)
def test_01_a_fact_is_stored(memory: Lukasa, world: Workspace, said: str) -> None:
    """§14.1: stored in the workspace, long-term and word for word, and the reply says so."""
    assert say(memory, world, said).startswith("I’ll remember that")
    stored = fact(world)
    assert (stored.scope.tier, stored.lifetime, stored.owner) == ("workspace", "long_term", "shared")
    assert verbatim(stored, said)
    assert "dragons" in stored.content
    assert "fantasy" in stored.content.lower()


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("My main character is called Elarindë, please keep that in mind.", "Who is my main character?"),
        ("For future reference: my main character’s name is Elarindë.", "Tell me about my main character."),
        ("Note down that Elarindë is my main character.", "What's the name of my main character?"),
        (
            "Elarindë is the name of my main character. Don't forget it.",
            "Do you happen to know my main character's name?",
        ),
        ("You should know that my main character is Elarindë.", "Remind me who my main character is"),
        ("Store the name of my main character: Elarindë.", "How is my main character called?"),
        ("Elarindë, that's my main character. Remember her.", "What can you tell me about my main character?"),
        ("Meine Hauptfigur heißt Elarindë. Merk dir das.", "Wie heißt meine Hauptfigur?"),
    ],
)
def test_02_it_is_recalled(memory: Lukasa, world: Workspace, said: str, asked: str) -> None:
    """§14.2: a fresh conversation knows it, and the retrieval counts once."""
    say(memory, world, said)
    stored = fact(world)
    assert verbatim(stored, said)
    assert "Elarindë" in say(memory, world, asked)
    assert reads(world, stored) == 1


@pytest.mark.parametrize(
    ("trivial", "core", "asked"),
    [
        (
            "Remember short-term, low priority: Temporary note: check formatting tomorrow.",
            "Remember permanently, very important: Core theme: redemption arc for the protagonist.",
            "What do you remember about this workspace?",
        ),
        (
            "Jot this down as a low-priority, short-term note: Temporary note: check formatting tomorrow.",
            "This is crucial, keep it for good: Core theme: redemption arc for the protagonist.",
            "What have you got so far?",
        ),
        (
            "Temporary note: check formatting tomorrow. It's not important, just keep it for a few days.",
            "Core theme: redemption arc for the protagonist. Remember that forever, it is really important.",
            "Give me an overview of your notes.",
        ),
        (
            "Low importance and temporary: check formatting tomorrow.",
            "Store this long-term with high priority: the core theme is a redemption arc for the protagonist.",
            "Is there anything you know about this project?",
        ),
        (
            "For the next few days, and it is trivial, note that I have to check formatting tomorrow.",
            "Never forget, this is essential: the core theme is the protagonist's redemption arc.",
            "List everything you have stored.",
        ),
        (
            "Notiere kurzfristig, unwichtig: morgen die Formatierung prüfen (check formatting).",
            "Merke dir dauerhaft, sehr wichtig: Kernthema ist der redemption arc.",
            "Was weißt du über diesen Workspace?",
        ),
    ],
)
def test_03_consolidation_prunes_the_trivial(
    memory: Lukasa, world: Workspace, clock: FixedClock, trivial: str, core: str, asked: str
) -> None:
    """§14.3: after thirty days the job prunes the trivial note; the important one stays and is told."""
    say(memory, world, trivial)
    say(memory, world, core)
    low, high = facts(world)
    assert (low.importance, low.lifetime) == (0.1, "short_term")
    assert high.importance == 0.9
    assert high.lifetime == "long_term"
    clock.time += timedelta(days=30)
    assert world.standing(low.id).relevance < 0.01 < world.standing(high.id).relevance
    run(world, "consolidate")
    left = [entry.id for entry in world.entries("workspace")]
    assert high.id in left
    assert low.id not in left
    assert str(world.get(low.id).state) == "pruned"
    reply = say(memory, world, asked)
    assert "redemption arc" in reply
    assert "formatting" not in reply


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("I always prefer dark themes in my writing. Remember that for every workspace.", "What are my preferences?"),
        (
            "Across all my projects, keep in mind that I always prefer dark themes in my writing.",
            "Which themes do I prefer?",
        ),
        ("No matter which workspace: remember that I always prefer dark themes in my writing.", "What do I prefer?"),
        ("Please note globally that I always prefer dark themes in my writing.", "Do you know my preferences?"),
        ("I always prefer dark themes in my writing — make that an account-wide note.", "Tell me about my preferences"),
        (
            "Merk dir für alle meine Projekte: ich bevorzuge dunkle Themen (dark themes).",
            "Welche Themen bevorzuge ich?",
        ),
        (
            "I always prefer dark themes in my writing, and I want you to know that everywhere.",
            "What themes do I like?",
        ),
    ],
)
def test_04_account_facts_cross_workspaces(
    memory: Lukasa, world: Workspace, other: Workspace, said: str, asked: str
) -> None:
    """§14.4: stored in the account, known in the other workspace."""
    say(memory, world, said)
    stored = fact(world, "account")
    assert verbatim(stored, said)
    assert facts(world) == []
    assert "dark themes" in say(memory, other, asked)
    assert reads(world, stored) == 1


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("The villain’s name is Malachar. Keep that within this workspace only.", "Who is the villain Malachar?"),
        (
            "Just for this workspace, note that the villain is called Malachar.",
            "Have you heard of a villain called Malachar?",
        ),
        ("Remember: the villain is Malachar (this project only).", "What do you know about Malachar?"),
        ("The villain goes by Malachar, and that stays inside this workspace.", "Is there a villain named Malachar?"),
        (
            "Only here, in this workspace: remember that Malachar is the villain.",
            "Does the name Malachar mean anything to you?",
        ),
        (
            "Nur in diesem Workspace: merk dir, dass der Bösewicht Malachar heißt.",
            "Kennst du einen Bösewicht namens Malachar?",
        ),
    ],
)
def test_05_workspace_facts_stay(memory: Lukasa, world: Workspace, other: Workspace, said: str, asked: str) -> None:
    """§14.5: bound to its workspace; the other one says that it knows nothing."""
    say(memory, world, said)
    stored = fact(world)
    assert stored.scope.value("workspace") == world.id
    assert verbatim(stored, said)
    assert say(memory, other, asked) == NOTHING
    assert reads(world, stored) == 0
    assert facts(other) == []
    assert "Malachar" in say(memory, world, asked)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Just while we're talking: I want to discuss chapters 1–3 today.", "What chapters did I want to discuss?"),
        (
            "No need to store it for later, but for this chat: I want to discuss chapters 1–3.",
            "What chapters did I want?",
        ),
        ("Put on the scratchpad: I want to discuss chapters 1–3 today.", "Which chapters did I want to discuss?"),
        ("I want to discuss chapters 1–3 today — session only.", "What chapters did I want to discuss?"),
        ("For now, just in this chat: I want to discuss chapters 1–3 today.", "What chapters did I want to discuss?"),
        ("Only for this session, note that I want to discuss chapters 1–3.", "Which chapters do I want to discuss?"),
        (
            "I want to discuss chapters 1–3 today, but keep that for this conversation only.",
            "Which chapters did I mention?",
        ),
        (
            "During our chat please bear in mind that I want to discuss chapters 1–3.",
            "What chapters do I want to discuss?",
        ),
        ("Until we're done here, remember that I want to discuss chapters 1–3.", "Which chapters are we to discuss?"),
        (
            "I want to discuss chapters 1–3 today. You don't need to keep that after this conversation.",
            "Which chapters should we discuss?",
        ),
        (
            "Nur für dieses Gespräch: ich möchte heute die Kapitel 1–3 besprechen.",
            "Welche Kapitel wollte ich besprechen?",
        ),
    ],
)
def test_06_conversation_memory_ends(memory: Lukasa, world: Workspace, said: str, asked: str) -> None:
    """§14.6: known in the conversation, gone with it, and nowhere else afterwards."""
    with agent(memory, world) as talk:
        assert "for this conversation" in talk.turn(said).reply
        here = fact(talk.world, "conversation")
        assert here.lifetime is Lifetime.CONVERSATION
        assert verbatim(here, said)
        assert "1–3" in talk.turn(asked).reply
        assert talk.end().ended.dropped == 1
    assert say(memory, world, asked) == NOTHING
    assert not any("1–3" in entry.content for entry in everywhere(world))


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Short-term reminder: I have a writing session scheduled for next week.", "Is anything on my schedule?"),
        ("I have a writing session scheduled for next week. Keep that for a few days.", "What have I scheduled?"),
        ("Please note for a couple of weeks that I have a writing session scheduled.", "Do I have anything scheduled?"),
        ("As a temporary note: there is a writing session next week.", "What is happening next week?"),
        (
            "Remember this for the coming days: my writing session is scheduled for next week.",
            "Do you recall my schedule?",
        ),
        (
            "Notiere kurzfristig: nächste Woche habe ich eine Schreibsitzung (writing session).",
            "Was habe ich nächste Woche?",
        ),
    ],
)
def test_07_short_term_survives(memory: Lukasa, world: Workspace, said: str, asked: str) -> None:
    """§14.7: short-term, known in the next conversation, counted once."""
    assert "short-term" in say(memory, world, said)
    stored = fact(world)
    assert (stored.lifetime, stored.scope.tier) == ("short_term", "workspace")
    assert verbatim(stored, said)
    assert "writing session" in say(memory, world, asked)
    assert reads(world, stored) == 1


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (
            "Keep this to yourself: I have already investigated the historical context for Chapter 5.",
            "What research has been done so far?",
        ),
        (
            "I have already investigated the historical context for Chapter 5. Remember it, but only for you.",
            "What has been investigated?",
        ),
        (
            "Make a private note that I have investigated the historical context for Chapter 5.",
            "Who investigated the historical context?",
        ),
        (
            "For your own notes only: I investigated the historical context for Chapter 5.",
            "What do you know about Chapter 5?",
        ),
        (
            "I investigated the historical context for Chapter 5 — don't share that with other agents, please note it.",
            "Has anyone investigated Chapter 5?",
        ),
        (
            "Merk dir vertraulich: der historical context für Chapter 5 ist investigated.",
            "What about the historical context?",
        ),
    ],
)
def test_08_private_memory_stays_private(memory: Lukasa, world: Workspace, said: str, asked: str) -> None:
    """§14.8: owned by the agent that was told; another agent says that it knows nothing."""
    say(memory, world, said, name="researcher")
    stored = fact(world)
    assert stored.owner == "researcher"
    assert verbatim(stored, said)
    assert say(memory, world, asked, name="writer") == NOTHING
    assert reads(world, stored) == 0
    asked_by_owner = "What have I investigated about the historical context for Chapter 5?"
    assert "historical context" in say(memory, world, asked_by_owner, name="researcher")


@pytest.mark.parametrize(
    ("said", "later", "asked"),
    [
        (
            "Please keep count: I've edited 3 pages today.",
            "I edited two more pages. What's the total?",
            "How many pages have I edited?",
        ),
        (
            "Start a tally. I have edited 3 pages so far.",
            "Another 2 pages edited, how many is that?",
            "What's my total?",
        ),
        (
            "Keep a running count for me: 3 pages edited so far today.",
            "I've just edited 2 further pages. How many pages now?",
            "How many pages?",
        ),
        (
            "I've edited 3 pages so far, keep track of that please.",
            "Edited 2 more pages. What does that make in total?",
            "What is the count?",
        ),
        (
            "Track this for me — I edited three pages this morning.",
            "2 more pages are done. How many altogether?",
            "How many pages did I edit?",
        ),
        (
            "Zähl bitte mit: ich habe 3 Seiten bearbeitet.",
            "Ich habe noch 2 Seiten bearbeitet. Wie viele sind das?",
            "Wie viele Seiten?",
        ),
    ],
)
def test_09_the_scratchpad_counts(memory: Lukasa, world: Workspace, said: str, later: str, asked: str) -> None:
    """§14.9: three and two are five, in the notes of this conversation and nowhere else."""
    with agent(memory, world) as talk:
        assert "3 " in talk.turn(said).reply
        assert "5 " in talk.turn(later).reply
        assert "5 " in talk.turn(asked).reply
        notes = [n.value for n in talk.world.notes(talk.conversation.id) if not n.key.startswith("session:")]
        assert notes == [5]
        talk.end()
    assert facts(world) == []
    assert "5 " not in say(memory, world, asked)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (
            "Never forget: the protagonist’s backstory is that she was a scholar who lost her memory.",
            "What is the protagonist’s backstory?",
        ),
        (
            "Commit this to long-term memory: the protagonist was a scholar who lost her memory.",
            "Who was the protagonist?",
        ),
        (
            "The protagonist was a scholar who lost her memory. Keep that forever.",
            "Tell me what you know of the protagonist",
        ),
        (
            "Please store permanently that the protagonist was a scholar who lost her memory.",
            "What happened to the protagonist?",
        ),
        (
            "The protagonist’s backstory: a scholar who lost her memory. I want you to keep this for good.",
            "Do you know the backstory of the protagonist?",
        ),
        ("Speichere dauerhaft: die Protagonistin war a scholar who lost her memory.", "Was war die Protagonistin?"),
    ],
)
@pytest.mark.parametrize("setting", ["auto", "none"])
def test_10_a_restart_loses_nothing(tmp_path: Path, setting: str, said: str, asked: str) -> None:
    """§14.10: closed and opened again, the fact is there, long-term, and recalled."""
    with Lukasa.open(tmp_path, embedder=setting) as memory:
        say(memory, memory.workspace("A"), said)
    with Lukasa.open(tmp_path, embedder=setting) as memory:
        world = memory.workspace("A")
        stored = fact(world)
        assert stored.lifetime is Lifetime.LONG_TERM
        assert verbatim(stored, said)
        assert "a scholar who lost her memory" in say(memory, world, asked)
        assert reads(world, stored) == 1


@pytest.mark.parametrize(
    "asked",
    [
        "What have you got so far?",
        "What is stored in this workspace?",
        "Do you remember anything here?",
        "Tell me everything you know about this project.",
        "Have you noted anything yet?",
        "Show me your notes.",
        "Was weißt du über dieses Projekt?",
    ],
)
def test_11_a_new_workspace_is_empty(memory: Lukasa, world: Workspace, other: Workspace, asked: str) -> None:
    """§14.11: nothing of another workspace shows, account facts may, and nothing is written."""
    say(memory, world, "Remember that the capital of the realm is Veyra.")
    assert say(memory, other, asked) == FRESH
    say(memory, world, "Remember for all my workspaces: I prefer metric units.")
    reply = say(memory, memory.workspace("C", preset="workspace"), asked)
    assert reply.startswith(FRESH)
    assert "metric units" in reply
    assert "Veyra" not in reply
    assert facts(other) == []


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("The world map is kept in the ‘Maps’ page. Please remember it.", "Where is the world map kept?"),
        ("Save this: you can find the world map in the ‘Maps’ page.", "Where can I find the world map?"),
        ("Take a note that the world map is on the ‘Maps’ page.", "On which page is the world map?"),
        ("I put the world map on the ‘Maps’ page, write that down.", "Do you know where the map of the world is?"),
        ("Bear in mind: ‘Maps’ is the page with the world map.", "What page has the world map?"),
        ("Die Weltkarte liegt auf der Seite ‘Maps’. Vergiss das nicht.", "Wo liegt die Weltkarte?"),
    ],
)
def test_12_isolation_is_the_stores(memory: Lukasa, world: Workspace, other: Workspace, said: str, asked: str) -> None:
    """§14.12: B's agent knows nothing, no read of B reaches A's row, and A's agent answers."""
    say(memory, world, said)
    stored = fact(world)
    assert verbatim(stored, said)
    assert say(memory, other, asked) == NOTHING
    assert [hit.id for hit in other.read("world map Weltkarte", history=True, held=True)] == []
    assert other.ctx.local.entries([stored.id]) == {}
    assert "Maps" in say(memory, world, asked)


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        (
            "The deadline is on Friday. Please remember it.",
            "Note that the deadline is on Monday.",
            "When is the deadline?",
        ),
        ("Keep in mind: I live in Porto.", "I live in Lisbon now. Make a note of that.", "Where do I live?"),
    ],
)
def test_the_newer_value_is_told_first(
    memory: Lukasa, world: Workspace, clock: FixedClock, before: str, after: str, asked: str
) -> None:
    """W2: the user changed their mind: the reply begins with the newer statement."""
    say(memory, world, before)
    clock.time += timedelta(days=2)
    say(memory, world, after)
    first = say(memory, world, asked).splitlines()[0]
    assert ("Monday" in first) or ("Lisbon" in first)
