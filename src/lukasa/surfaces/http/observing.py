"""Requests as an operator sees them: an id for each, a line in the log, and counts for the metrics.

A line and a count name the route (`/v1/workspaces/{workspace}/entries`), never the path or the query: they may hold
names and words of a user. Nor do they hold a token or a body.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lukasa.service.metrics import Metrics

Form = Literal["json", "text", "none"]

HEADER = b"x-request-id"
NOWHERE = "(none)"  # the route of a request that met none
GONE = 499  # the status of a request whose client left before the answer
_GIVEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_STATE = "lukasa.exchange"

current_request: ContextVar[str] = ContextVar("lukasa_request", default="")  # the id, also in the threads of a request


class RequestLog:
    """One line for each request, as text, as JSON or not at all; and in any case the place of a crash."""

    def __init__(self, form: Form = "none", stream: TextIO | None = None) -> None:
        self.form = form
        self._stream = stream
        self._lock = threading.Lock()

    def answered(self, exchange: Exchange, took: float) -> None:
        if self.form == "none":
            return
        outcome = {"status": exchange.status, "duration_ms": round(took * 1000, 1)}
        self._write("info", "request", exchange.told | outcome)

    def crashed(self, exchange: Exchange, error: BaseException) -> None:
        """Write where an unexpected error happened, without its message, which might quote memory."""
        trace = list(_trace(error))
        if self.form == "json":
            self._write("error", "crash", exchange.told | {"error": type(error).__name__, "trace": trace})
            return
        about = " ".join(f"{name}={value}" for name, value in exchange.told.items())
        self._print("\n".join([f"lukasa serve: unexpected {type(error).__name__} {about}", *trace]))

    def _write(self, level: str, event: str, told: dict[str, Any]) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self.form == "json":
            self._print(json.dumps({"at": at, "level": level, "event": event, **told}, ensure_ascii=False))
        else:
            self._print(" ".join([at, event, *(f"{name}={value}" for name, value in told.items())]))

    def _print(self, text: str) -> None:
        stream = self._stream or sys.stderr
        with self._lock, suppress(OSError, ValueError):  # the reader of the log is gone; the server goes on
            stream.write(f"{text}\n")
            stream.flush()


def _trace(error: BaseException) -> Iterator[str]:
    """Give the places of an error and of those that it came from."""
    seen: BaseException | None = error
    while seen is not None:
        for frame in traceback.extract_tb(seen.__traceback__):
            yield f"  {frame.filename}:{frame.lineno} in {frame.name}"
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
        if seen is not None:
            yield f"  after {type(seen).__name__}"


@dataclass
class Exchange:
    """One request and what is known of its answer so far."""

    id: str
    scope: Scope
    metrics: Metrics
    log: RequestLog
    status: int = 0
    began: float = field(default_factory=time.perf_counter)

    @property
    def method(self) -> str:
        given = str(self.scope["method"])
        return given if given in _METHODS else "other"

    @property
    def route(self) -> str:
        return str(getattr(self.scope.get("route"), "path", NOWHERE))

    @property
    def told(self) -> dict[str, Any]:
        """The parts of a line of the log that say which request it is about."""
        return {"request_id": self.id, "method": self.method, "route": self.route}

    def failed(self, error: BaseException, *, crash: bool) -> None:
        """Count an error of the database, and log a crash."""
        self.metrics.failed(error)
        if crash:
            self.log.crashed(self, error)

    def ended(self) -> None:
        took = time.perf_counter() - self.began
        self.metrics.requests.add(self.route, self.method, str(self.status))
        self.metrics.request_seconds.observe(took, self.route, self.method)
        self.log.answered(self, took)


def exchange_of(scope: Scope) -> Exchange:
    """Return the exchange that a request belongs to."""
    found: Exchange = scope[_STATE]
    return found


class Observed:
    """ASGI middleware around everything else: give each request an id, and note its answer."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log: RequestLog, given_up: Callable[[], ASGIApp]) -> None:
        self._app = app
        self._metrics = metrics
        self._log = log
        self._given_up = given_up  # the answer to a request that a stop does not wait for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(_request_id(scope), scope, self._metrics, self._log)
        scope[_STATE] = exchange

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = [*message.get("headers", ()), (HEADER, exchange.id.encode())]
            await send(message)

        token = current_request.set(exchange.id)
        self._metrics.in_progress.add()
        try:
            await self._app(scope, receive, noting)
        except asyncio.CancelledError:  # only a stop cancels, and the process is about to end
            if not exchange.status:
                await self._given_up()(scope, receive, noting)
        except Exception as error:  # outside of every handler; uvicorn would log the message of the error
            exchange.failed(error, crash=True)
            if not exchange.status:
                exchange.status = 500
                raise
        finally:
            exchange.status = exchange.status or GONE
            current_request.reset(token)
            self._metrics.in_progress.add(by=-1)
            exchange.ended()


def _request_id(scope: Scope) -> str:
    """Return the id that the client or a proxy gave, if it is short and plain, or a new one."""
    given = [value.decode("latin-1") for name, value in scope["headers"] if name == HEADER]
    return given[0] if len(given) == 1 and _GIVEN.fullmatch(given[0]) else os.urandom(8).hex()
