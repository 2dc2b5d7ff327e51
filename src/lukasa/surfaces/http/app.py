"""The application: the table's routes, the page, health and the OpenAPI document, behind the guard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from lukasa import __version__
from lukasa.model.errors import Unauthenticated
from lukasa.service.admin.access import Access
from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.api.verb import Verb
from lukasa.surfaces.http import page, routes, stream
from lukasa.surfaces.http.guard import Guard, Names
from lukasa.surfaces.http.openapi import document
from lukasa.surfaces.http.passes import Doorkeeper
from lukasa.surfaces.http.problems import Problem, problem, safely
from lukasa.surfaces.http.sessions import Sessions
from lukasa.surfaces.offload import offload

Lifespan = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(frozen=True)
class House:
    """What the application is built of. Other surfaces add their `routes`, and what must run while it runs."""

    access: Access
    names: Names
    cookie: str = "lukasa_session"
    secure: bool = False
    verbs: Sequence[Verb] = VERBS
    more: Callable[[Doorkeeper], Sequence[BaseRoute]] = lambda doorkeeper: ()
    lifespans: Sequence[Lifespan] = ()
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    sessions: Sessions = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sessions", Sessions(self.access.clock))


def build(house: House) -> ASGIApp:
    doorkeeper = Doorkeeper(house.access, house.sessions, cookie=house.cookie, secure=house.secure)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for enter in house.lifespans:
                await stack.enter_async_context(enter())
            yield

    served = [
        Route("/health", _health, methods=["GET"], name="health"),
        Route("/openapi.json", _described(house, doorkeeper), methods=["GET"], name="openapi"),
        stream.route(doorkeeper, house.closing),
        *(routes.route(verb, doorkeeper) for verb in house.verbs),
        *house.more(doorkeeper),
        *page.routes(doorkeeper),
    ]
    app = Starlette(routes=served, lifespan=lifespan, exception_handlers={HTTPException: _elsewhere(doorkeeper)})
    app.router.redirect_slashes = False
    return Guard(app, house.names)


def _elsewhere(doorkeeper: Doorkeeper) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Paths and methods that are not there. What is there is told to nobody without a pass."""

    async def answer(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        try:
            await offload(doorkeeper.admit, request)
        except (Problem, Unauthenticated) as refusal:
            return problem(refusal).response()
        if status == 405:
            return Problem(405, "no-such-method", "that is not done this way", fix="see /openapi.json").response()
        return Problem(404, "not-found", "there is nothing at this path", fix="see /openapi.json").response()

    return answer


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok", "version": __version__})


def _described(house: House, doorkeeper: Doorkeeper) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        await offload(doorkeeper.admit, request)
        return JSONResponse(document(house.verbs))

    return safely(endpoint)
