"""Errors as problem+json: a stable type, what happened, and what to change. They never repeat the input or a trace."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from lukasa.model.errors import (
    ChatError,
    Conflict,
    Contradicts,
    DocumentMoved,
    EmbedderError,
    InvalidInput,
    InvalidTransition,
    LukasaError,
    NotFound,
    Refused,
    StoreBusy,
    StoreFull,
    StoreUnreachable,
    Unauthenticated,
    brief,
)
from lukasa.surfaces.http.observing import current_request, exchange_of

MOST_FAULTS = 20  # of one request

# The first match decides, so subclasses come before their bases.
_STATUS: tuple[tuple[type[LukasaError], int], ...] = (
    (Unauthenticated, 401),
    (NotFound, 404),
    (InvalidTransition, 409),
    (Contradicts, 409),
    (Conflict, 409),
    (Refused, 403),
    (InvalidInput, 422),
    (StoreBusy, 503),
    (StoreUnreachable, 503),
    (StoreFull, 507),
    (EmbedderError, 503),
    (ChatError, 502),
)
_TITLES = {
    400: "The request cannot be read",
    401: "No valid credential",
    403: "Not allowed",
    404: "Not found",
    405: "No such method",
    409: "Conflict",
    412: "It has changed",
    413: "Too large",
    415: "Not JSON",
    421: "Another server",
    422: "The input is wrong",
    428: "Say which version you read",
    502: "The language model gave no answer",
    503: "Busy",
    507: "No space left",
}


class Problem(Exception):
    """A refusal by the HTTP surface itself."""

    def __init__(self, status: int, type: str, detail: str, *, fix: str = "", **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.type = type
        self.detail = detail
        self.fix = fix
        self.more = more

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        title = _TITLES.get(self.status, "Something went wrong")
        said = {"detail": brief(self.detail), "fix": brief(self.fix)}
        body = {"type": self.type, "title": title, "status": self.status, **said}
        if request_id := current_request.get():
            body["request_id"] = request_id
        extra = dict(headers or {})
        if self.status == 401:
            extra["WWW-Authenticate"] = 'Bearer realm="lukasa"'
        if self.status == 503:
            extra["Retry-After"] = "1"
        if isinstance(self.more.get("version"), int):
            extra["ETag"] = f'"{self.more["version"]}"'
        content = json.dumps(body | self.more, ensure_ascii=False)
        return Response(content, self.status, extra, media_type="application/problem+json")


Endpoint = Callable[[Request], Awaitable[Response]]


def safely(endpoint: Endpoint) -> Endpoint:
    """Turn every error of an endpoint into a problem, and log the place of an unexpected one."""

    @wraps(endpoint)
    async def safe(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:  # noqa: BLE001 - the surface's last handler: the client gets an answer for any error
            answer = problem(error)
            exchange_of(request.scope).failed(error, crash=answer.type == "unexpected")
            return answer.response()

    return safe


def problem(error: Exception) -> Problem:
    """Return an error as a problem."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, ValidationError):
        return _invalid(error)
    if isinstance(error, LukasaError):
        status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
        more = {"diff": error.diff} if isinstance(error, DocumentMoved) else {}
        return Problem(status, error.code, error.message, fix=error.fix, **more)
    detail = f"unexpected {type(error).__name__}"
    fix = "look for the request_id in what `lukasa serve` printed, and report it"
    return Problem(500, "unexpected", detail, fix=fix)


def _invalid(error: ValidationError) -> Problem:
    faults = [
        {"field": brief(".".join(map(str, fault["loc"])), 200), "message": brief(fault["msg"], 500)}
        for fault in error.errors(include_url=False, include_input=False, include_context=False)[:MOST_FAULTS]
    ]
    first = faults[0]
    detail = f"{first['field']}: {first['message']}" if first["field"] else first["message"]
    return Problem(422, "invalid-input", detail, fix="send what /openapi.json describes", errors=faults)
