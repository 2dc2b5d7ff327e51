"""The package's streamable HTTP, without sessions: nothing outlives a request, so nothing can be mixed up or lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import ASGIApp

from lukasa.model.errors import Unauthenticated
from lukasa.service.admin.access import Access, Credential
from lukasa.surfaces.mcp.desk import Asked, Desk
from lukasa.surfaces.mcp.mount import PASS
from lukasa.surfaces.mcp.server import build


@asynccontextmanager
async def serving(access: Access) -> AsyncIterator[ASGIApp]:
    # Host and Origin were checked before anything came here.
    manager = StreamableHTTPSessionManager(build(Desk(access, identify)), json_response=True, stateless=True)
    async with manager.run():
        yield manager.handle_request


def identify(ctx: Asked) -> Credential:
    """The pass that the door put into the scope of this very request."""
    given = None if ctx.request is None else ctx.request.scope.get(PASS)
    if not isinstance(given, Credential):
        raise Unauthenticated("no pass", fix="send `Authorization: Bearer …` with a grant's token")
    return given
