"""Memory for Pydantic AI: a capability of an agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.toolsets import FunctionToolset

from lukasa.ports import Tool as MemoryTool
from lukasa.service.sessions.distill import Distil, Turn
from lukasa.surfaces.frameworks.memory import RunMemory, World


class PydanticAIMemory(AbstractCapability[Any]):
    """Memory of an agent: `Agent(model, capabilities=[PydanticAIMemory(world)])`.

    `world` may be a function of the run's dependencies, the `deps` that the program gives to `run`. What the user says
    is kept before the model is asked, so a model that fails loses nothing.
    """

    def __init__(
        self,
        world: World,
        *,
        agent: str = "assistant",
        budget: int | None = None,
        tools: bool = True,
        distil: Distil | None = None,
    ) -> None:
        super().__init__()
        self._memory = RunMemory(world, agent, budget, distil)
        self._with_tools = tools
        self._run: Any = None
        self._tools: tuple[MemoryTool, ...] = ()
        self._context = ""

    async def for_run(self, ctx: RunContext[Any]) -> PydanticAIMemory:
        """Return the capability of one run, with its context and its tools; runs at the same time share nothing."""
        mine = copy(self)
        mine._run = ctx.deps
        said = turns_of(ctx.prompt)
        mine._context = await self._memory.turn(ctx.deps, said[-1].text if said else "", said)
        mine._tools = await self._memory.tools(ctx.deps) if self._with_tools else ()
        return mine

    def get_instructions(self) -> Callable[[], str]:
        """Return the context of the run as instructions."""
        return lambda: self._context

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """Return the tools of the run: put, read, update and forget."""
        return FunctionToolset([self._tool(tool) for tool in self._tools]) if self._tools else None

    def _tool(self, tool: MemoryTool) -> Tool[Any]:
        async def call(**arguments: Any) -> str:
            return await self._memory.call(self._run, tool.name, arguments)

        return Tool.from_schema(call, tool.name, tool.description, dict(tool.parameters))


def turns_of(prompt: str | Sequence[Any] | None) -> list[Turn]:
    """Return the text of a prompt as a message of the user, without pictures and documents."""
    parts = [prompt] if isinstance(prompt, str) else [part for part in prompt or () if isinstance(part, str)]
    text = "\n".join(parts)
    return [Turn("user", text)] if text.strip() else []
