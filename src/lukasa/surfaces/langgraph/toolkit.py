"""Nodes and tools for any LangGraph graph.

`context_node` brings memory into the state, and `persist_node` ends a session. The tools are those of the toolbox.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage, SystemMessage, convert_to_messages
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from lukasa.ports import Tool, ToolCall
from lukasa.read.context import Context
from lukasa.service.sessions import session
from lukasa.service.sessions.distill import Distil, Turn
from lukasa.service.sessions.refine import Refine
from lukasa.service.workspace import Workspace
from lukasa.surfaces.api.toolbox import Toolbox

CONTEXT_ID = "lukasa-context"


class Node(Protocol):
    """A node of any graph whose state has messages."""

    def __call__(self, state: Any) -> dict[str, Any]: ...


def context_node(
    world: Workspace,
    *,
    tiers: Sequence[str] | None = None,
    budget: int | None = None,
    key: str = "messages",
    refine: Refine | None = None,
    on_context: Callable[[Context], None] | None = None,
) -> Node:
    """Return a node that reads memory for the last human message and puts the context document into the state.

    Under `messages` the document is one system message, first, and replaced each turn; under any other key it is a
    text. `tiers` limits this context alone: give a subagent `world.limited(…)`, which bounds its tools too.
    """

    def context(state: Any) -> dict[str, Any]:
        messages = listed(state)
        found = session.orient(world, last_said(messages), tiers=tiers, budget=budget, refine=refine)
        if on_context is not None:
            on_context(found)
        if key != "messages":
            return {key: str(found)}
        system = SystemMessage(str(found), id=CONTEXT_ID)
        if any(message.id == CONTEXT_ID for message in messages):
            return {"messages": [system]}  # the reducer replaces the message of the turn before
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), system, *messages]}

    return context


def persist_node(world: Workspace, *, distil: Distil | None = None) -> Node:
    """Return a node that ends the conversation of `world`: it stores missed facts and the summary first.

    Without `distil`, rules find the facts.
    """

    def persist(state: Any) -> dict[str, Any]:
        session.persist(world, turns_of(listed(state)), distil=distil)
        return {}

    return persist


def listed(state: Mapping[str, Any]) -> list[BaseMessage]:
    return convert_to_messages(state.get("messages") or [])


def last_said(messages: Sequence[BaseMessage]) -> str:
    return next((text_of(m) for m in reversed(messages) if isinstance(m, HumanMessage)), "")


def text_of(message: BaseMessage) -> str:
    """Return the text of a message, without other parts such as pictures."""
    return str(message.text)


def turns_of(messages: Sequence[BaseMessage]) -> list[Turn]:
    """Return the messages of people and of the assistant, without system prompts and tool results."""
    roles: dict[str, Literal["user", "assistant"]] = {"human": "user", "ai": "assistant"}
    return [Turn(roles[m.type], text_of(m), id=m.id or "") for m in messages if m.type in roles and text_of(m).strip()]


# Tools


def memory_tools(world: Workspace) -> list[BaseTool]:
    """Return memory as LangChain tools for an agent of your own: put, read, update, forget, notes, documents."""
    box = Toolbox(world)
    return [_langchain(box, tool) for tool in box.tools]


def _langchain(box: Toolbox, tool: Tool) -> BaseTool:
    def run(**arguments: Any) -> str:
        return box.call(ToolCall("", tool.name, arguments)).text

    return StructuredTool(
        name=tool.name, description=tool.description, args_schema=dict(tool.parameters), func=run, metadata={}
    )
