"""MCP at /mcp/ of the HTTP server: find the credential of every request, then hand it to the MCP package.

The package takes a second to load, and the page must not wait for it. So a task loads it beside the server, and the
first MCP request waits instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lukasa.model.errors import LukasaError, Unauthenticated
from lukasa.service.admin.access import AccessControl
from lukasa.surfaces.http.authentication import Authenticator
from lukasa.surfaces.http.observing import exchange_of
from lukasa.surfaces.http.problems import Problem, problem
from lukasa.surfaces.offload import offload

CREDENTIAL = "lukasa.credential"  # the key of the credential in the scope of a request
NO_CREDENTIAL = "send `Authorization: Bearer …` with a grant's token"
PATHS = ("/mcp/", "/mcp")


class McpMount:
    """The `routes` for the application, and `run` for its lifespan."""

    def __init__(self, access: AccessControl) -> None:
        self._access = access
        self.closing: asyncio.Event | None = None  # set when the server stops: streams of changes end then
        self._ready: asyncio.Future[ASGIApp] | None = None

    def routes(self, authenticator: Authenticator) -> Sequence[BaseRoute]:
        endpoint = _Endpoint(self, authenticator)
        return [Route(path, endpoint, name="mcp") for path in PATHS]

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        self._ready = asyncio.get_running_loop().create_future()
        over = asyncio.Event()
        living = asyncio.create_task(self._live(self._ready, over))
        try:
            yield
        finally:
            over.set()
            await living

    async def _live(self, ready: asyncio.Future[ASGIApp], over: asyncio.Event) -> None:
        """Enter and leave the package's session manager in one task, as it demands."""
        try:
            server = await offload(import_module, "lukasa.surfaces.mcp.server")
        except ImportError as error:
            ready.set_exception(error)
            ready.exception()  # mark it as retrieved: only an MCP request needs to see it
            return
        async with server.serving_http(self._access, self._stopped) as app:
            ready.set_result(app)
            await over.wait()

    def _stopped(self) -> bool:
        return self.closing is not None and self.closing.is_set()

    async def app(self) -> ASGIApp:
        if self._ready is None:
            raise Problem(503, "not-ready", "the server is not running", fix="ask again in a moment")
        return await asyncio.shield(self._ready)


class _Endpoint:
    """The ASGI endpoint at /mcp/."""

    def __init__(self, mount: McpMount, authenticator: Authenticator) -> None:
        self._mount = mount
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            if "authorization" not in request.headers:  # the page's cookie is not for programs
                raise Unauthenticated("the request has no credential", fix=NO_CREDENTIAL)
            credential = await offload(self._authenticator.credential, request, "mcp")
            if request.method != "POST":
                raise Problem(405, "no-such-method", "there are no sessions and no streams here", fix="use POST")
            app = await self._mount.app()
        except (Problem, LukasaError, ImportError) as error:
            refusal = problem(error)
            exchange_of(scope).failed(error, crash=refusal.type == "unexpected")
            headers = {"Allow": "POST"} if refusal.status == 405 else {}
            await refusal.response(headers)(scope, receive, send)
            return
        await app({**scope, CREDENTIAL: credential}, receive, send)
