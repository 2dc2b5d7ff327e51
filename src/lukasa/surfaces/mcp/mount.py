"""MCP at /mcp/ of the server: who asks is settled here, with every request, and the rest is the package's.

The package takes a second to load, and the page must not wait for it: it is loaded beside the server, and the first MCP
request waits instead.
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
from lukasa.service.admin.access import Access
from lukasa.surfaces.http.passes import Doorkeeper
from lukasa.surfaces.http.problems import Problem, problem
from lukasa.surfaces.offload import offload

PASS = "lukasa.pass"  # where a request's scope has the pass of its token
PATHS = ("/mcp/", "/mcp")


class Mount:
    """`routes` are for the application, `run` for its lifespan."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._ready: asyncio.Future[ASGIApp] | None = None

    def routes(self, doorkeeper: Doorkeeper) -> Sequence[BaseRoute]:
        door = _Door(self, doorkeeper)
        return [Route(path, door, name="mcp") for path in PATHS]

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
        """The package's session manager must be entered and left by one and the same task."""
        try:
            http = await offload(import_module, "lukasa.surfaces.mcp.http")
        except ImportError as error:
            ready.set_exception(error)
            ready.exception()  # seen: whoever asks is told, and nobody need ask
            return
        async with http.serving(self._access) as app:
            ready.set_result(app)
            await over.wait()

    async def app(self) -> ASGIApp:
        if self._ready is None:
            raise Problem(503, "not-ready", "the server is not running", fix="ask again in a moment")
        return await asyncio.shield(self._ready)


class _Door:
    def __init__(self, mount: Mount, doorkeeper: Doorkeeper) -> None:
        self._mount = mount
        self._doorkeeper = doorkeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            if "authorization" not in request.headers:  # the page's cookie is not for programs
                raise Unauthenticated("no pass", fix="send `Authorization: Bearer …` with a grant's token")
            given = await offload(self._doorkeeper.admit, request, "mcp")
            if request.method != "POST":
                raise Problem(405, "no-such-method", "there are no sessions and no streams here", fix="use POST")
            app = await self._mount.app()
        except (Problem, LukasaError, ImportError) as error:
            told = problem(error)
            headers = {"Allow": "POST"} if told.status == 405 else {}
            await told.response(headers)(scope, receive, send)
            return
        await app({**scope, PASS: given}, receive, send)
