"""The official MCP client: beside a server in this process, and over a pipe to a real one."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import mcp_types as types
from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp.client.session import ElicitationFnT
from mcp.client.stdio import StdioServerParameters

from lukasa import Lukasa
from lukasa.model.grant import OWNERS_ALONE, Capability
from lukasa.service.admin.access import Credential
from lukasa.surfaces.api.table import BY_NAME
from lukasa.surfaces.api.verb import tool_schema
from lukasa.surfaces.mcp.server import build
from lukasa.surfaces.mcp.tools import Dispatcher
from tests.helpers.cli import COMMAND, Shell

T = TypeVar("T")
EVERYTHING = tuple(one for one in Capability if one not in OWNERS_ALONE)


def wait(work: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine function to its end, and not for ever."""

    async def bounded() -> T:
        with anyio.fail_after(120):
            return await work()

    return anyio.run(bounded)


def lent(memory: Lukasa, *can: str, workspaces: tuple[str, ...] = ("novel",), agent: str = "claude") -> Credential:
    chosen = can or EVERYTHING
    return memory.access.lend(agent, workspaces=workspaces, can=chosen, surface="mcp", transport="stdio")


def beside(memory: Lukasa, given: Credential | None = None, home: str | None = "novel", **how: Any) -> Client:
    """Return a client of a server in this process with this credential: by default an agent with everything granted."""
    held = given or lent(memory)
    return Client(build(Dispatcher(memory.access, lambda ctx: held, home)), **how)


def piped(
    shell: Shell,
    *options: str,
    mode: str = "auto",
    script: str | None = None,
    person: ElicitationFnT | None = None,
    **env: str,
) -> Client:
    """A client of `lukasa mcp` as a process of its own, or of a script. With a person, it can ask them."""
    command = [sys.executable, "-c", script] if script else [*COMMAND, "mcp", *options]
    start = StdioServerParameters(command=command[0], args=command[1:], env=shell.environment(**env))
    return Client(start, mode=mode, elicitation_callback=person)


async def called(client: Client, tool: str, /, **arguments: Any) -> Any:
    """The answer of a call that must succeed, in full and as data: what the schema of the verb's output says."""
    result = await client.call_tool(tool, {**arguments, "detail": True})
    assert not result.is_error, words(result)
    Draft202012Validator(tool_schema(BY_NAME[tool].output, "serialization")).validate(result.structured_content)
    return result.structured_content


async def refused(client: Client, tool: str, /, **arguments: Any) -> str:
    """The words of a call that must fail."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    assert result.structured_content is None
    said = words(result)
    assert "Traceback" not in said
    return said


async def reached(client: Client) -> set[str]:
    """The names of the tools that are listed, and of those that `more` leads to."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    rest = tools.pop("more").input_schema["properties"]["tool"]["enum"] if "more" in tools else []
    return {*tools, *rest}


async def told(client: Client, tool: str, /, **arguments: Any) -> str:
    """The text of a call that must succeed, as a model reads it."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, words(result)
    assert result.structured_content is None
    return words(result)


def words(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


def session(make: Callable[[], Client], work: Callable[[Client], Awaitable[T]]) -> T:
    """Connect, do the work, and part."""

    async def run() -> T:
        async with make() as client:
            return await work(client)

    return wait(run)
