"""The chat looks things up: without a model by rules, and with one by its tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lukasa import Lukasa, Workspace
from lukasa.langgraph import memory_tools
from lukasa.providers.chat import open_chat
from tests.helpers.chat_server import ChatServer, follow, when
from tests.helpers.documents import pdf
from tests.helpers.talk import agent

GUIDE = (
    "# Deploys\n\nTwo people deploy.\n\n## On Fridays\n\nNobody deploys on a Friday, because the crane stands still.\n"
)
BOAT = "# The boat\n\nThe keeper rows out at dusk. A Friday is a day like any other at sea.\n"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        yield memory


@pytest.fixture
def world(memory: Lukasa) -> Workspace:
    world = memory.workspace()
    world.add_upload("handbook.md", GUIDE.encode(), standing="canonical")
    world.add_upload("boat.md", BOAT.encode())
    world.add_upload("crane.pdf", pdf([["It lifts forty tonnes."], ["Oil the winch weekly."]], "Crane manual"))
    return world


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        (
            "Look up deploys on Friday in the handbook",
            ["Nobody deploys on a Friday", "On Fridays, line 7", "canonical"],
        ),
        ("Please look up the winch.", ["Oil the winch weekly.", "Crane manual, p. 2"]),
        ("What does the crane manual say about tonnes?", ["It lifts forty tonnes.", "p. 1"]),
        ("What do the documents say about Friday?", ["Nobody deploys", "boat.md, version 1"]),
        ("Search the boat for the keeper", ["rows out at dusk"]),
        ("Look up elephants in the handbook", ["I found nothing about “elephants” in a document called “handbook”."]),
    ],
)
def test_a_lookup_is_answered_by_quoted_passages(memory: Lukasa, world: Workspace, said: str, parts: list[str]) -> None:
    """K4: the answer quotes passages with their place, document, version and standing, and says what is not."""
    with agent(memory, world) as talk:
        reply = talk.turn(said).reply
    assert all(part in reply for part in parts), reply


def test_it_is_what_was_asked_before(memory: Lukasa, world: Workspace) -> None:
    """K4: "look it up in …" takes the question of the message before."""
    with agent(memory, world) as talk:
        assert "don’t know" in talk.turn("Who deploys on a Friday?").reply.replace("'", "’")
        assert "Nobody deploys on a Friday" in talk.turn("Look it up in the handbook").reply


def test_a_person_is_no_document(memory: Lukasa, world: Workspace) -> None:
    """K4: what somebody says is a question to memory, unless a document has that name; an empty corpus says so."""
    world.put("workspace", "Ines says about Fridays that the harbour sleeps")
    with agent(memory, world) as talk:
        assert "the harbour sleeps" in talk.turn("What does Ines say about Fridays?").reply
    empty = memory.workspace("empty")
    with agent(memory, empty) as talk:
        assert "lukasa corpus add PATH" in talk.turn("Look up deploys in the handbook").reply


def test_a_model_looks_up_by_its_tools(memory: Lukasa, world: Workspace) -> None:
    """K4, L3: the tools are offered to a model, and its calls get passages with their places."""
    with ChatServer() as server:
        server.model = follow(when("Friday").call("corpus_search", {"query": "deploys on Friday"}))
        with agent(memory, world, chat=open_chat("openai:fake", server.env)) as talk:
            answer = talk.turn("May we deploy on Friday?")
    (called,) = answer.calls
    assert called.name == "corpus_search"
    assert '"place": "Deploys › On Fridays, line 7"' in called.result
    assert '"standing": "canonical"' in called.result


def test_the_tools_read_on_from_a_passage(world: Workspace) -> None:
    """L3: in a graph of one's own, a document is read by its place, within bounds, and a wrong place is an answer."""
    tools = {tool.name: tool for tool in memory_tools(world.acting(agent="helper"))}
    assert "Oil the winch" in tools["corpus_read"].invoke({"document": "crane.pdf", "page": 2})
    assert "pages 1 to 2" in tools["corpus_read"].invoke({"document": "crane.pdf", "page": 9})
    assert "two places" in tools["corpus_read"].invoke({"document": "crane.pdf", "page": 1, "section": "x"})
