"""The owner's page is told of events as they happen, by server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from lukasa.model.grant import Capability
from lukasa.service.workspace import Workspace
from lukasa.surfaces.api.shapes import EventOut
from lukasa.surfaces.http.passes import Doorkeeper
from lukasa.surfaces.http.problems import Problem, safely
from lukasa.surfaces.http.routes import ROOT
from lukasa.surfaces.offload import offload

PATH = f"{ROOT}/workspaces/{{workspace}}/events/stream"
LOOK = 0.5  # seconds between looks: other processes write too, and tell nobody
ALIVE = 15.0
BATCH = 200


def route(doorkeeper: Doorkeeper, closing: asyncio.Event) -> Route:
    async def endpoint(request: Request) -> Response:
        given = await offload(doorkeeper.admit, request)
        given.require(Capability.EVENTS)
        given.require_owner("follow events")
        here = await offload(doorkeeper.access.enter, given, request.path_params["workspace"])
        after = await offload(_start, here, request)
        lines = _follow(request, doorkeeper, here, after, closing)
        return StreamingResponse(lines, media_type="text/event-stream")

    return Route(PATH, safely(endpoint), methods=["GET"], name="event_stream")


def _start(here: Workspace, request: Request) -> int:
    """From where a browser that reconnects left off, from where the caller says, else from now."""
    said = request.headers.get("last-event-id") or request.query_params.get("after")
    if said is None:
        return here.ctx.local.head()[0]
    if not said.isdigit() or len(said) > 15:
        raise Problem(422, "invalid-input", "after is not the number of an event", fix="leave it out for what comes")
    return int(said)


async def _follow(
    request: Request, doorkeeper: Doorkeeper, here: Workspace, after: int, closing: asyncio.Event
) -> AsyncIterator[str]:
    yield f"retry: {int(LOOK * 4000)}\n\n"
    quiet = 0.0
    while not closing.is_set() and doorkeeper.session(request) is not None:
        events = await offload(here.events, after=after, limit=BATCH)
        for event in events:
            after = event.seq
            yield f"id: {event.seq}\ndata: {EventOut.of(event).model_dump_json()}\n\n"
        quiet = 0.0 if events else quiet + LOOK
        if quiet >= ALIVE:
            quiet = 0.0
            yield ": still here\n\n"
        try:
            await asyncio.wait_for(closing.wait(), LOOK)
        except TimeoutError:
            continue
