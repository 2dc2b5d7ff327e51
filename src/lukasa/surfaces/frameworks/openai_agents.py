"""Memory for the OpenAI Agents SDK: instructions with the context of a run, and tools.

The SDK asks for the instructions before every call of the model. The context is made once for each message.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from agents import Agent, FunctionTool, RunContextWrapper

from lukasa.ports import Tool
from lukasa.service.sessions.distill import Distil, Turn
from lukasa.surfaces.frameworks.memory import RunMemory, World

Instructions = Callable[[RunContextWrapper[Any], Agent[Any]], Awaitable[str]]


class OpenAIAgentsMemory:
    """Memory of an agent: `Agent(instructions=memory.instructions("…"), tools=memory.tools())`.

    `world` may be a function of the run's context, the object that the program gives to `Runner.run`.
    """

    def __init__(
        self, world: World, *, agent: str = "assistant", budget: int | None = None, distil: Distil | None = None
    ) -> None:
        self._memory = RunMemory(world, agent, budget, distil)
        self._contexts: WeakKeyDictionary[Any, tuple[list[Turn], str]] = WeakKeyDictionary()

    def instructions(self, text: str = "") -> Instructions:
        """Return instructions of which each run's context is a part. They also keep what the run's user says."""

        async def instruct(run: RunContextWrapper[Any], agent: Agent[Any]) -> str:
            said = list(turns_of(run.turn_input))
            known, context = self._contexts.get(run, ([], ""))
            if not context or said != known:
                question = said[-1].text if said else ""
                context = await self._memory.turn(run.context, question, said)
                self._contexts[run] = (said, context)
            return f"{text}\n\n{context}".strip()

        return instruct

    def tools(self, world: World | None = None) -> list[FunctionTool]:
        """Return the tools: put, read, update and forget.

        If the world depends on the run, give one of them: it says which tiers there are.
        """
        described = RunMemory(world, self._memory.agent) if world is not None else self._memory
        return [self._tool(tool) for tool in described.tools_now(None)]

    def _tool(self, tool: Tool) -> FunctionTool:
        async def invoke(run: Any, arguments: str) -> str:
            return await self._memory.call(run.context, tool.name, json.loads(arguments or "{}"))

        return FunctionTool(tool.name, tool.description, dict(tool.parameters), invoke, strict_json_schema=False)


def turns_of(items: Sequence[Any]) -> list[Turn]:
    """Return the user's messages of input items."""
    users = [item for item in items if isinstance(item, dict) and item.get("role") == "user"]
    return [Turn("user", text) for item in users if (text := _text(item.get("content"))).strip()]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part.get("text", "") for part in parts if part.get("type") == "input_text")
