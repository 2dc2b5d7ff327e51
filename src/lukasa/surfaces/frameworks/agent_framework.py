"""Memory for Microsoft's Agent Framework: a context provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_framework import AgentSession, ContextProvider, FunctionTool, Message, SessionContext

from lukasa.ports import Tool
from lukasa.service.sessions.distill import Distil, Turn
from lukasa.surfaces.frameworks.memory import RunMemory, World


class AgentFrameworkProvider(ContextProvider):
    """Memory of an agent: `Agent(client, context_providers=[AgentFrameworkProvider(world)])`.

    `world` may be a function of the run's `AgentSession`; its `state` can say whose session it is. What the user says
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
        source_id: str = "lukasa",
    ) -> None:
        super().__init__(source_id)
        self._memory = RunMemory(world, agent, budget, distil)
        self._tools = tools

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Give the run its context and the agent its tools, and keep what the user says."""
        said = turns_of(context.input_messages)
        question = said[-1].text if said else ""
        context.extend_instructions(self.source_id, await self._memory.turn(session, question, said))
        if self._tools:
            context.extend_tools(self.source_id, [self._tool(t, session) for t in await self._memory.tools(session)])

    def _tool(self, tool: Tool, session: AgentSession) -> FunctionTool:
        async def call(**arguments: Any) -> str:
            return await self._memory.call(session, tool.name, arguments)

        return FunctionTool(name=tool.name, description=tool.description, func=call, input_model=dict(tool.parameters))


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    """Return the user's messages."""
    return [Turn("user", m.text, id=m.message_id or "") for m in messages if str(m.role) == "user" and m.text.strip()]
