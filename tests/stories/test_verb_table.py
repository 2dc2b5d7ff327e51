"""One table of verbs: a verb that is added to it is there on every surface (U3, U4, L3)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from pydantic import Field

from lukasa import Lukasa
from lukasa.langgraph import memory_tools
from lukasa.model.grant import Capability
from lukasa.ports import ToolCall
from lukasa.service.sessions.session import begin
from lukasa.service.workspace import Workspace
from lukasa.surfaces.api.table import BY_NAME, VERBS
from lukasa.surfaces.api.toolbox import Toolbox
from lukasa.surfaces.api.verb import Call, SessionAnswer, SessionTool, SessionTurn, Verb, VerbInput, VerbOutput
from lukasa.surfaces.http.openapi import document
from lukasa.surfaces.mcp.server import build
from lukasa.surfaces.mcp.tools import Dispatcher, tool
from tests.helpers.mcp import lent, reached, session, words


class CountIn(VerbInput):
    tier: str = Field("workspace", description="Tier to count.")
    state: str | None = Field(None, description="Only this state.")


class CountOut(VerbOutput):
    count: int


def count(call: Call, given: CountIn) -> CountOut:
    return CountOut(count=len(call.workspace.entries(given.tier)))


def count_in_session(world: Workspace, given: Mapping[str, Any], seen: SessionTurn) -> SessionAnswer:
    return {"count": len(world.entries(given.get("tier", "workspace")))}, ()


ADDED = Verb(
    "memory_count",
    "Count the entries of a tier.",
    Capability.READ,
    "GET",
    "/workspaces/{workspace}/count",
    CountIn,
    CountOut,
    count,
    session=SessionTool.of(CountIn, count_in_session, "tier"),
)
TABLE = (*VERBS, ADDED)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder="none", principal="ada") as opened:
        opened.workspace("novel").put("workspace", "The villain is called Malachar.")
        yield opened


def test_an_added_verb_is_an_mcp_tool(memory: Lukasa) -> None:
    """U3: it is listed with its description and schema, and it answers."""

    async def work(client: Client) -> tuple[types.Tool, Any]:
        assert "memory_count" in await reached(client)
        answer = await client.call_tool("more", {"tool": "memory_count", "arguments": {"tier": "workspace"}})
        return tool(ADDED), words(answer)

    dispatcher = Dispatcher(memory.access, lambda ctx: lent(memory), "novel", TABLE)
    listed, answer = session(lambda: Client(build(dispatcher)), work)
    assert listed.description == ADDED.description
    assert set(listed.input_schema["properties"]) == {"tier", "state", "workspace", "scope", "detail"}
    assert json.loads(answer) == {"count": 1}


def test_an_added_verb_is_a_langgraph_tool(memory: Lukasa) -> None:
    """L3: with a session form it is listed under its own name and description, and it answers."""
    box = Toolbox(memory.workspace("novel"), TABLE)
    (tool,) = [tool for tool in box.tools if tool.name == "memory_count"]
    assert tool.description == ADDED.description
    assert set(tool.parameters["properties"]) == {"tier"}
    assert json.loads(box.call(ToolCall("", "memory_count", {"tier": "workspace"})).text) == {"count": 1}


def test_an_added_verb_is_in_the_openapi_document() -> None:
    """U4: the path, the capability and the answer are described."""
    operation = document(TABLE)["paths"]["/v1/workspaces/{workspace}/count"]["get"]
    assert operation["operationId"] == "memory_count"
    assert operation["x-capabilities"] == ["read"]


def test_the_langgraph_tools_and_their_arguments(memory: Lukasa) -> None:
    """L3: these names and arguments are what programs rely on; the words are the verb's own."""
    tools = memory_tools(memory.workspace("novel"))
    schemas: dict[str, Any] = {tool.name: tool.args_schema for tool in tools}
    assert {name: (set(one["properties"]), one["required"]) for name, one in schemas.items()} == {
        "memory_put": (
            {"content", "tier", "kind", "lifetime", "importance", "tags", "corrects", "private", "said_by", "cites"},
            ["content"],
        ),
        "memory_read": ({"query", "tier", "limit"}, ["query"]),
        "memory_update": ({"id", "content", "importance", "tags", "kind", "lifetime"}, ["id"]),
        "memory_forget": ({"id", "reason"}, ["id"]),
        "corpus_search": ({"query", "limit", "documents"}, ["query"]),
        "corpus_read": ({"document", "passage", "section", "page", "line", "start"}, ["document"]),
        "corpus_submit": (
            {"document", "memories", "text", "under", "replaces", "whole", "derivable", "note"},
            ["document", "memories"],
        ),
        "note_write": ({"key", "value"}, ["key", "value"]),
        "note_read": ({"key"}, []),
    }
    assert all(tool.description == BY_NAME[tool.name].description for tool in tools)
    put = schemas["memory_put"]["properties"]
    assert put["kind"]["enum"] == ["episodic", "semantic", "procedural"]
    assert put["tier"]["enum"] == ["workspace", "account"]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("memory_put", {}, "content"),
        ("memory_put", {"content": "x", "owner": "bob"}, "owner"),
        ("memory_read", {"query": 7}, "query"),
        ("memory_read", {"query": "x", "limit": True}, "limit"),
        ("memory_put", {"content": "The ship is called Vey.", "kind": "poem"}, "kind"),
        ("memory_put", {"content": "The ship is called Vey.", "tier": "attic"}, "attic"),
    ],
)
def test_a_wrong_argument_is_told_by_name(memory: Lukasa, tool: str, arguments: Any, said: str) -> None:
    """L3: the answer is an error that names the argument, and nothing is written."""
    box = Toolbox(memory.workspace("novel"))
    outcome = box.call(ToolCall("", tool, arguments))
    assert outcome.failed
    assert said in json.loads(outcome.text)["error"]["message"]
    assert len(memory.workspace("novel").entries("workspace")) == 1


def test_the_agent_of_a_session_submits_and_the_person_decides(memory: Lukasa) -> None:
    """K5, L3: the tool answers with the id and that a person decides; a wrong place is an error with the headings."""
    world = memory.workspace("novel")
    world.save_document("ships", "# Ships\n\n## Vey\n\nA schooner.\n")
    box = Toolbox(begin(world).acting(agent="claude"))
    kept = json.loads(box.call(ToolCall("", "memory_put", {"content": "The ship is called Vey."})).text)["id"]
    asked = {"document": "ships", "memories": [kept], "text": "She sails on Mondays.", "under": "Vey"}
    said = json.loads(box.call(ToolCall("", "corpus_submit", asked)).text)
    assert (said["state"], said["about"]) == ("open", "a person decides")
    wrong = box.call(ToolCall("", "corpus_submit", {**asked, "under": "Hull"}))
    assert wrong.failed
    assert "Ships › Vey" in wrong.text
    assert world.approve(said["id"]).outcome == "accepted"
    assert world.get_document("ships").body.endswith("A schooner.\n\nShe sails on Mondays.\n")


@pytest.mark.parametrize("value", [None, 3, "three", [None, 1], {"edited": None, "pages": [1, 2]}])
def test_a_note_keeps_any_json_value(memory: Lukasa, value: Any) -> None:
    """L3, M7: null is a value too; null for an argument that can be left out means that it is left out."""
    box = Toolbox(begin(memory.workspace("novel")))
    written = box.call(ToolCall("", "note_write", {"key": "pages", "value": value}))
    assert json.loads(written.text) == {"key": "pages", "value": value}
    assert json.loads(box.call(ToolCall("", "note_read", {"key": None})).text) == {"notes": {"pages": value}}
