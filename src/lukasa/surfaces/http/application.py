"""The application: the verbs' routes, the owner's page, its stream of events, and the OpenAPI document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from lukasa import __version__
from lukasa.model.errors import Unauthenticated
from lukasa.model.grant import Capability
from lukasa.service.admin.access import AccessControl
from lukasa.service.metrics import Metrics
from lukasa.service.workspace import Workspace
from lukasa.surfaces.api.shapes import EventOut
from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.api.verb import Verb
from lukasa.surfaces.http import verb_routes
from lukasa.surfaces.http.authentication import (
    SESSION_LASTS,
    Authenticator,
    PageSession,
    PageSessions,
    RequestFilter,
    ServerNames,
)
from lukasa.surfaces.http.observing import Observed, RequestLog
from lukasa.surfaces.http.openapi import document
from lukasa.surfaces.http.operating import QueueDepth, Readiness, operating_routes
from lukasa.surfaces.http.portable_routes import portable_routes
from lukasa.surfaces.http.problems import Problem, problem, safely
from lukasa.surfaces.offload import offload
from lukasa.surfaces.web import STATIC

Lifespan = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(frozen=True)
class ApplicationParts:
    """The parts of the application. Other surfaces add routes by `more`, and what must run beside it by `lifespans`."""

    access: AccessControl
    names: ServerNames
    cookie: str = "lukasa_session"
    secure: bool = False
    verbs: Sequence[Verb] = VERBS
    more: Callable[[Authenticator], Sequence[BaseRoute]] = lambda authenticator: ()
    lifespans: Sequence[Lifespan] = ()
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    metrics: Metrics = field(default_factory=lambda: Metrics(__version__))
    depth: QueueDepth = dict
    log: RequestLog = field(default_factory=RequestLog)
    readiness: Readiness = field(init=False)
    sessions: PageSessions = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sessions", PageSessions(self.access.clock))
        object.__setattr__(self, "readiness", Readiness(self.access.account))


def build(parts: ApplicationParts) -> ASGIApp:
    authenticator = Authenticator(parts.access, parts.sessions, cookie=parts.cookie, secure=parts.secure)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for enter in parts.lifespans:
                await stack.enter_async_context(enter())
            yield

    async def openapi(request: Request) -> Response:
        """Show the document to anybody: it describes the program, and nothing that this server holds."""
        return JSONResponse(document(parts.verbs))

    async def no_route(request: Request, error: Exception) -> Response:
        """Answer for a path or a method that does not exist. Without a credential the answer is 401 for any path."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        try:
            await offload(authenticator.credential, request)
        except (Problem, Unauthenticated) as refusal:
            return problem(refusal).response()
        if status == 405:
            detail = f"{request.method} is not a method of this path"
            allow = {"Allow": ", ".join(methods_at(request.url.path, routes))}
            return Problem(405, "no-such-method", detail, fix="see /openapi.json").response(allow)
        return Problem(404, "not-found", "there is nothing at this path", fix="see /openapi.json").response()

    async def crashed(request: Request, error: Exception) -> Response:
        return problem(error).response()

    routes = [
        *operating_routes(authenticator, parts.readiness, parts.metrics, parts.depth),
        Route("/openapi.json", safely(openapi), methods=["GET"], name="openapi"),
        event_stream(authenticator, parts.closing),
        *(verb_routes.route(verb, authenticator) for verb in parts.verbs),
        *portable_routes(authenticator),
        *parts.more(authenticator),
        *page_routes(authenticator),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: no_route, Exception: crashed})
    app.router.redirect_slashes = False
    return Observed(RequestFilter(app, parts.names), parts.metrics, parts.log, _given_up)


def methods_at(path: str, routes: Sequence[BaseRoute]) -> list[str]:
    """Return the methods of all routes at a path."""
    found = {
        method
        for route in routes
        if isinstance(route, Route) and route.path_regex.match(path)
        for method in route.methods or ()
    }
    return sorted(found)


def _given_up() -> Response:
    detail = "the server stopped before this request ended; it may have been done"
    return Problem(503, "stopped", detail, fix="look whether it was done, and send it again if not").response()


# The owner's page, and the session that the code in its link opens

_ANOTHER_LINK = "run `lukasa link`, and open the link that it prints"


class Code(BaseModel):
    model_config = ConfigDict(extra="forbid")

    code: str


def page_routes(authenticator: Authenticator) -> list[BaseRoute]:
    async def index(request: Request) -> Response:
        return FileResponse(STATIC / "index.html", media_type="text/html; charset=utf-8")

    async def enter(request: Request) -> Response:
        """Exchange the code of a link for a session. Only the page itself can send JSON here."""
        code = Code.model_validate(await verb_routes.read_body(request)).code
        opened = authenticator.sessions.exchange(code)
        if opened is None:
            raise Problem(401, "code-spent", "the code of this link was used, or is too old", fix=_ANOTHER_LINK)
        cookie, session = opened
        response = JSONResponse(_session_data(authenticator, session), 201)
        response.set_cookie(
            authenticator.cookie,
            cookie,
            max_age=int(SESSION_LASTS.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=authenticator.secure,
        )
        return response

    async def show(request: Request) -> Response:
        """Return the session's data, for a page that was loaded again."""
        session = authenticator.session(request)
        if session is None:
            raise Problem(401, "no-session", "there is no session", fix=_ANOTHER_LINK)
        return JSONResponse(_session_data(authenticator, session))

    async def leave(request: Request) -> Response:
        authenticator.check_csrf(request, authenticator.session(request))
        authenticator.sessions.end(request.cookies[authenticator.cookie])
        response = Response(status_code=204)
        response.delete_cookie(authenticator.cookie, httponly=True, samesite="strict", secure=authenticator.secure)
        return response

    return [
        Route("/", safely(index), methods=["GET"], name="page"),
        Route("/session", safely(enter), methods=["POST"], name="session_enter"),
        Route("/session", safely(show), methods=["GET"], name="session_show"),
        Route("/session", safely(leave), methods=["DELETE"], name="session_leave"),
        Mount("/assets", StaticFiles(directory=STATIC / "assets"), name="assets"),
    ]


def _session_data(authenticator: Authenticator, session: PageSession) -> dict[str, str]:
    principal = authenticator.access.origin.principal
    return {"csrf": session.csrf, "principal": principal, "expires_at": session.ends.isoformat()}


# Events for the owner's page as they happen, by server-sent events

POLL = 0.5  # seconds between two looks at the log: other processes write to it too, and notify nobody
KEEP_ALIVE = 15.0
BATCH = 200


def event_stream(authenticator: Authenticator, closing: asyncio.Event) -> Route:
    async def endpoint(request: Request) -> Response:
        credential = await offload(authenticator.credential, request)
        credential.require(Capability.EVENTS)
        credential.require_owner("follow events")
        workspace = await offload(authenticator.access.enter, credential, request.path_params["workspace"])
        after = await offload(_first_event, workspace, request)
        lines = _follow(request, authenticator, workspace, after, closing)
        return StreamingResponse(lines, media_type="text/event-stream")

    path = f"{verb_routes.ROOT}/workspaces/{{workspace}}/events/stream"
    return Route(path, safely(endpoint), methods=["GET"], name="event_stream")


def _first_event(workspace: Workspace, request: Request) -> int:
    """Return the event to start after: the last one that a reconnecting browser has, the caller's `after`, or now."""
    given = request.headers.get("last-event-id") or request.query_params.get("after")
    if given is None:
        return workspace.ctx.local.head()[0]
    if not given.isdigit() or len(given) > 15:
        fix = "leave `after` out to get the events from now on"
        raise Problem(422, "invalid-input", "`after` is not the number of an event", fix=fix)
    return int(given)


async def _follow(
    request: Request, authenticator: Authenticator, workspace: Workspace, after: int, closing: asyncio.Event
) -> AsyncIterator[str]:
    yield f"retry: {int(POLL * 4000)}\n\n"
    quiet = 0.0
    while not closing.is_set() and authenticator.session(request) is not None:
        events = await offload(workspace.events, after=after, limit=BATCH)
        for event in events:
            after = event.seq
            yield f"id: {event.seq}\ndata: {EventOut.of(event).model_dump_json()}\n\n"
        quiet = 0.0 if events else quiet + POLL
        if quiet >= KEEP_ALIVE:
            quiet = 0.0
            yield ": still here\n\n"
        try:
            await asyncio.wait_for(closing.wait(), POLL)
        except TimeoutError:
            continue
