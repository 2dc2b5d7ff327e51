"""What every request passes before anything looks at it: a page elsewhere on the web must not reach this server.

A browser can be made to send requests to loopback by any page it shows. Such a request carries a foreign Host (a name
that was pointed here), or a foreign Origin, or says of itself that it is cross-site; and nothing here answers a
preflight. Who asks is decided later, by the pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lukasa.surfaces.http.problems import Problem

MOST_BODY = 8_000_000
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
        b"frame-ancestors 'none'",
    ),
)


@dataclass(frozen=True)
class Names:
    """Under which names this server is reached, and from which origins its own page asks."""

    hosts: frozenset[str]
    origins: frozenset[str]

    @classmethod
    def loopback(cls, port: int) -> Names:
        hosts = frozenset(f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]"))
        return cls(hosts, frozenset(f"http://{host}" for host in hosts))

    def and_public(self, host: str) -> Names:
        """Also as a proxy that speaks TLS presents it."""
        return Names(self.hosts | {host.lower()}, self.origins | {f"https://{host.lower()}"})


class Guard:
    def __init__(self, app: ASGIApp, names: Names, most_body: int = MOST_BODY) -> None:
        self._app = app
        self._names = names
        self._most = most_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal.response()(scope, receive, _guarded(send, cached=False))
            return
        cached = scope["path"].startswith("/assets/")
        await self._app(scope, _bounded(receive, self._most), _guarded(send, cached=cached))

    def _refusal(self, scope: Scope) -> Problem | None:
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        host = headers.get("host", [])
        if len(host) != 1 or host[0].lower() not in self._names.hosts or not scope["path"].startswith("/"):
            return Problem(421, "wrong-host", "this server is not known by that name", fix="use the link it printed")
        if any(origin not in self._names.origins for origin in headers.get("origin", [])):
            return Problem(403, "foreign-origin", "pages elsewhere cannot use this server", fix="use its own page")
        if headers.get("sec-fetch-site", ["none"])[0] in ("cross-site", "same-site") and not _visit(scope, headers):
            return Problem(403, "foreign-origin", "pages elsewhere cannot use this server", fix="use its own page")
        if scope["method"] == "OPTIONS":
            return Problem(403, "no-cors", "no other origin may use this server", fix="use its own page, or a token")
        length = headers.get("content-length", ["0"])[0]
        if length.isdigit() and int(length) > self._most:
            return Problem(413, "too-large", f"a request has at most {self._most:,} bytes", fix="send less at a time")
        return None


def _visit(scope: Scope, headers: dict[str, list[str]]) -> bool:
    """Somebody follows a link to the page itself, which shows nothing without a session."""
    return scope["method"] == "GET" and scope["path"] == "/" and headers.get("sec-fetch-mode") == ["navigate"]


def _bounded(receive: Receive, most: int) -> Receive:
    """The body, as long as it is short enough, whatever was announced."""
    seen = 0

    async def bounded() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise Problem(413, "too-large", f"a request has at most {most:,} bytes", fix="send less at a time")
        return message

    return bounded


def _guarded(send: Send, *, cached: bool) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            rule = b"no-cache" if cached else b"no-store"
            message["headers"] = [*message.get("headers", ()), *_HEADERS, (b"cache-control", rule)]
        await send(message)

    return guarded
