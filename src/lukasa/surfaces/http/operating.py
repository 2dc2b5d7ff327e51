"""Routes for whoever runs the server: does the process live, is it ready, and what has it done.

`/live` and `/ready` need no credential, since a load balancer has none, and tell nothing but their answer. `/metrics`
needs the capability `metrics`, for its numbers are about everybody's use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from lukasa import __version__
from lukasa.model.errors import LukasaError
from lukasa.model.grant import Capability
from lukasa.model.job import JobState
from lukasa.service.metrics import MEDIA_TYPE, Metrics
from lukasa.storage.port import Store
from lukasa.surfaces.http.authentication import Authenticator
from lukasa.surfaces.http.observing import exchange_of
from lukasa.surfaces.http.problems import Problem, safely
from lukasa.surfaces.offload import offload

PATIENCE = 2.0  # seconds in which the database must answer; load balancers mostly wait for five

QueueDepth = Callable[[], Mapping[JobState, int]]


class Readiness:
    """Say whether the server can take requests: its database answers, and it is not stopping.

    The question runs in a thread of its own, because the threads of requests may all wait for the database. While an
    earlier question has no answer, no second one is asked.
    """

    def __init__(self, store: Store, patience: float = PATIENCE) -> None:
        self.draining = False
        self._store = store
        self._patience = patience
        self._thread = ThreadPoolExecutor(1, "lukasa-ready")
        self._asked: asyncio.Future[object] | None = None

    async def check(self) -> None:
        """Return if the server is ready; raise the problem that says what is not."""
        if self.draining:
            raise _not_ready("server", "the server is stopping", fix="send requests to another server")
        if self._asked is None or not self.asking:
            self._asked = asyncio.get_running_loop().run_in_executor(self._thread, self._store.head)
            self._asked.add_done_callback(_retrieved)
        try:
            await asyncio.wait_for(asyncio.shield(self._asked), self._patience)
        except TimeoutError as error:
            detail = f"the database has not answered for {self._patience:g} seconds"
            raise _not_ready("database", detail, fix="look at the database and its disk") from error
        except LukasaError as error:
            # The message may name a folder or a host, and anybody may ask.
            detail = f"the database answers with an error: {error.code}"
            raise _not_ready("database", detail, fix="`lukasa doctor` tells more") from error

    @property
    def asking(self) -> bool:
        """Whether a question still has no answer."""
        return self._asked is not None and not self._asked.done()

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def _retrieved(asked: asyncio.Future[object]) -> None:
    """Take the error of a question that nobody waits for any more, so that asyncio does not report it as lost."""
    if not asked.cancelled():
        asked.exception()


def _not_ready(part: str, detail: str, *, fix: str) -> Problem:
    return Problem(503, "not-ready", detail, fix=fix, part=part)


def operating_routes(
    authenticator: Authenticator, readiness: Readiness, metrics: Metrics, depth: QueueDepth
) -> list[BaseRoute]:
    async def live(request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__})

    async def ready(request: Request) -> Response:
        try:
            await readiness.check()
        except Problem as problem:
            if problem.__cause__ is not None:
                exchange_of(request.scope).failed(problem.__cause__, crash=False)
            raise
        return JSONResponse({"status": "ready", "version": __version__})

    async def measured(request: Request) -> Response:
        credential = await offload(authenticator.credential, request)
        credential.require(Capability.METRICS)
        try:
            jobs = await offload(depth)
        except LukasaError as error:  # what this process counts itself is wanted most when the database is down
            exchange_of(request.scope).failed(error, crash=False)
            jobs = None
        return Response(metrics.text(jobs), media_type=MEDIA_TYPE)

    return [
        Route("/live", live, methods=["GET"], name="live"),
        Route("/health", live, methods=["GET"], name="health"),
        Route("/ready", safely(ready), methods=["GET"], name="ready"),
        Route("/metrics", safely(measured), methods=["GET"], name="metrics"),
    ]
