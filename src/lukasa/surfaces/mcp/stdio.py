"""MCP over a pipe: one client, which is whoever started the process."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from mcp.server import Server
from mcp.server.stdio import stdio_server


def serve(server: Server[Any]) -> None:
    """Until the client closes the pipe. Meanwhile whatever is printed goes to stderr: stdout is the protocol's."""
    # Ctrl-C ends the process at once, as a closed pipe would: a thread that waits for stdin cannot be woken, and what
    # was acknowledged is on disk.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(_serve(server))


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
