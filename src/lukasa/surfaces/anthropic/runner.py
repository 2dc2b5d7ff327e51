"""The memory tool for the SDK's tool runners: subclasses of the SDK's base classes that call `MemoryTool`.

The SDK takes seconds to import, so no other module imports it.
"""

from __future__ import annotations

from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import BetaCacheControlEphemeralParam

from lukasa.service.workspace import Workspace
from lukasa.surfaces.anthropic.command_text import ToolRefusal
from lukasa.surfaces.anthropic.tool import MemoryTool
from lukasa.surfaces.offload import offload


class RunnerMemoryTool(BetaAbstractMemoryTool):
    """For `Anthropic().beta.messages.tool_runner(tools=[…])`. A refused command is a result marked as an error."""

    def __init__(self, world: Workspace, *, cache_control: BetaCacheControlEphemeralParam | None = None) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MemoryTool(world)

    def call(self, input: object) -> str:
        return _marked(self._tool, input)

    def execute(self, command: Any) -> str:
        return self.call(command)

    def view(self, command: object) -> str:
        return self.call(command)

    def create(self, command: object) -> str:
        return self.call(command)

    def str_replace(self, command: object) -> str:
        return self.call(command)

    def insert(self, command: object) -> str:
        return self.call(command)

    def delete(self, command: object) -> str:
        return self.call(command)

    def rename(self, command: object) -> str:
        return self.call(command)


class AsyncRunnerMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for `AsyncAnthropic()`; each command runs in a thread and does not block the event loop."""

    def __init__(self, world: Workspace, *, cache_control: BetaCacheControlEphemeralParam | None = None) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MemoryTool(world)

    async def call(self, input: object) -> str:
        return await offload(_marked, self._tool, input)

    async def execute(self, command: Any) -> str:
        return await self.call(command)

    async def view(self, command: object) -> str:
        return await self.call(command)

    async def create(self, command: object) -> str:
        return await self.call(command)

    async def str_replace(self, command: object) -> str:
        return await self.call(command)

    async def insert(self, command: object) -> str:
        return await self.call(command)

    async def delete(self, command: object) -> str:
        return await self.call(command)

    async def rename(self, command: object) -> str:
        return await self.call(command)


def _marked(tool: MemoryTool, input: object) -> str:
    try:
        return tool.attempt(input)
    except ToolRefusal as refusal:
        raise ToolError(str(refusal)) from refusal
