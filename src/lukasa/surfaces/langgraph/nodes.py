"""Nodes for any LangGraph graph: one that brings memory into the state, one that persists at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage, SystemMessage, convert_to_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from lukasa.read.context import Context
from lukasa.service.sessions import session
from lukasa.service.sessions.distill import Distil, Turn, by_rules
from lukasa.service.sessions.refine import Refine
from lukasa.service.workspace import Workspace

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
    """A node that orients: it reads memory for the last human message and puts the document into the state.

    Under `messages` it is one system message, first, renewed each turn; under any other key it is the text. A subagent
    names the tiers it reads.
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
            return {"messages": [system]}  # the reducer puts it where the one before it stood
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), system, *messages]}

    return context


def persist_node(world: Workspace, *, distil: Distil = by_rules) -> Node:
    """A node that persists: what was missed, the summary, and then the end of the conversation `world` is bound to."""

    def persist(state: Any) -> dict[str, Any]:
        session.persist(world, turns_of(listed(state)), distil=distil)
        return {}

    return persist


def listed(state: Mapping[str, Any]) -> list[BaseMessage]:
    return convert_to_messages(state.get("messages") or [])


def last_said(messages: Sequence[BaseMessage]) -> str:
    return next((text_of(m) for m in reversed(messages) if isinstance(m, HumanMessage)), "")


def text_of(message: BaseMessage) -> str:
    """The text of a message; other parts, such as pictures, are not memory's."""
    return str(message.text)


def turns_of(messages: Sequence[BaseMessage]) -> list[Turn]:
    """What people and the assistant said. System prompts and tool results are not what anybody said."""
    roles: dict[str, Literal["user", "assistant"]] = {"human": "user", "ai": "assistant"}
    return [Turn(roles[m.type], text_of(m), id=m.id or "") for m in messages if m.type in roles and text_of(m).strip()]
