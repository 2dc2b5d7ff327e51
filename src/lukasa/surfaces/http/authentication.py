"""Authentication: checks of every request, the sessions of the owner's page, and credentials.

Any page that a browser shows can make it send requests to loopback. Such a request carries a foreign Host (a DNS name
that points here), or a foreign Origin, or declares itself cross-site. `RequestFilter` refuses it, and answers no CORS
preflight. Then `Authenticator` finds the credential: a bearer token belongs to a grant, the page's cookie to the owner.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lukasa.model.errors import Unauthenticated
from lukasa.ports import Clock
from lukasa.service.admin.access import AccessControl, Credential
from lukasa.surfaces.http.problems import Problem

MAX_BODY = 8_000_000
MAX_IMPORT = 1_000_000_000  # bytes of a file that is imported: it is not held in memory
_LARGE = re.compile(r"/v1/import|/v1/workspaces/[^/]+/past/file")  # paths that take a file
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


# Host, origin, size


@dataclass(frozen=True)
class ServerNames:
    """The host names of this server, and the origins of its own page."""

    hosts: frozenset[str]
    origins: frozenset[str]

    @classmethod
    def loopback(cls, port: int) -> ServerNames:
        hosts = frozenset(f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]"))
        return cls(hosts, frozenset(f"http://{host}" for host in hosts))

    def and_public(self, host: str) -> ServerNames:
        """Add the name that a TLS proxy in front of the server uses."""
        return ServerNames(self.hosts | {host.lower()}, self.origins | {f"https://{host.lower()}"})


class RequestFilter:
    """ASGI middleware: refuse foreign hosts and origins and large bodies; add security headers to every answer."""

    def __init__(self, app: ASGIApp, names: ServerNames, max_body: int = MAX_BODY) -> None:
        self._app = app
        self._names = names
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal.response()(scope, receive, _with_headers(send, cached=False))
            return
        cached = scope["path"].startswith("/assets/")
        await self._app(scope, _bounded(receive, self._most(scope)), _with_headers(send, cached=cached))

    def _refusal(self, scope: Scope) -> Problem | None:
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        host = headers.get("host", [])
        if len(host) != 1 or host[0].lower() not in self._names.hosts or not scope["path"].startswith("/"):
            return Problem(421, "wrong-host", "this server has another name", fix="use the link that it printed")
        foreign = Problem(403, "foreign-origin", "other sites cannot use this server", fix="use its own page")
        if any(origin not in self._names.origins for origin in headers.get("origin", [])):
            return foreign
        # Following a link to the page itself is harmless: the page shows nothing without a session.
        follows_link = (
            scope["method"] == "GET" and scope["path"] == "/" and headers.get("sec-fetch-mode") == ["navigate"]
        )
        if headers.get("sec-fetch-site", ["none"])[0] in ("cross-site", "same-site") and not follows_link:
            return foreign
        if scope["method"] == "OPTIONS":
            return Problem(403, "no-cors", "no other origin may use this server", fix="use its own page, or a token")
        length = headers.get("content-length", ["0"])[0]
        if length.isdigit() and int(length) > self._most(scope):
            return _too_large(self._most(scope))
        return None

    def _most(self, scope: Scope) -> int:
        """Return how many bytes the body of a request may have."""
        return MAX_IMPORT if _LARGE.fullmatch(scope["path"]) else self._max_body


def _too_large(most: int) -> Problem:
    return Problem(413, "too-large", f"a request has at most {most:,} bytes", fix="send less at a time")


def _bounded(receive: Receive, most: int) -> Receive:
    """Count the bytes of the body as they come: Content-Length may be missing or wrong."""
    received = 0

    async def bounded() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > most:
            raise _too_large(most)
        return message

    return bounded


def _with_headers(send: Send, *, cached: bool) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            rule = b"no-cache" if cached else b"no-store"
            message["headers"] = [*message.get("headers", ()), *_HEADERS, (b"cache-control", rule)]
        await send(message)

    return send_with_headers


# Sessions of the owner's page. This process alone keeps them.

CODE_LASTS = timedelta(minutes=15)
SESSION_LASTS = timedelta(days=7)
MAX_SESSIONS = 64


@dataclass(frozen=True)
class PageSession:
    """The page sends `csrf` with every change. A foreign page can make the browser send the cookie, but not this."""

    csrf: str
    ends: datetime

    def accepts(self, csrf: str) -> bool:
        return hmac.compare_digest(self.csrf.encode(), csrf.encode("utf-8", "replace"))


class PageSessions:
    """One-time codes of links, and the sessions that they open."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._codes: dict[str, datetime] = {}
        self._sessions: dict[str, PageSession] = {}

    def new_code(self) -> str:
        """Return a code that opens one session, within a few minutes.

        A link carries it in the fragment, which no browser sends to a server.
        """
        code, now = secrets.token_urlsafe(24), self._clock.now()
        with self._lock:
            self._codes = {key: ends for key, ends in self._codes.items() if ends > now}
            self._codes[_digest(code)] = now + CODE_LASTS
        return code

    def exchange(self, code: str) -> tuple[str, PageSession] | None:
        """Return the value of a new cookie and its session; None if the code is unknown, used or too old."""
        now = self._clock.now()
        with self._lock:
            ends = self._codes.pop(_digest(code), None)
            if ends is None or ends <= now:
                return None
            self._sessions = {key: kept for key, kept in self._sessions.items() if kept.ends > now}
            while len(self._sessions) >= MAX_SESSIONS:
                self._sessions.pop(next(iter(self._sessions)))
            cookie = secrets.token_urlsafe(32)
            session = PageSession(secrets.token_urlsafe(32), now + SESSION_LASTS)
            self._sessions[_digest(cookie)] = session
        return cookie, session

    def find(self, cookie: str) -> PageSession | None:
        session = self._sessions.get(_digest(cookie))
        return session if session is not None and session.ends > self._clock.now() else None

    def end(self, cookie: str) -> None:
        with self._lock:
            self._sessions.pop(_digest(cookie), None)


def _digest(secret: str) -> str:
    # The digest is the key of the look-up, so its duration tells nothing about the secret.
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


# Credentials

CSRF = "x-csrf-token"


class Authenticator:
    """Find the credential of a request."""

    def __init__(self, access: AccessControl, sessions: PageSessions, *, cookie: str, secure: bool = False) -> None:
        self.access = access
        self.sessions = sessions
        self.cookie = cookie
        self.secure = secure

    def credential(self, request: Request, surface: str = "http") -> Credential:
        """Return the credential of a request. It reads the database: call it in a thread, not in the event loop."""
        headers = request.headers.getlist("authorization")
        if headers:
            scheme, _, token = headers[0].partition(" ")
            if len(headers) > 1 or scheme.lower() != "bearer":
                raise Unauthenticated("no valid token", fix="send `Authorization: Bearer …` with one token")
            return self.access.admit(token, surface=surface, transport="http")
        session = self.session(request)
        if session is None:
            raise Unauthenticated(
                "the request has no credential",
                fix="send `Authorization: Bearer …`, or open the page by the link that `lukasa link` prints",
            )
        if request.method not in ("GET", "HEAD"):
            self.check_csrf(request, session)
        return self.access.owner("web", "http")

    def check_csrf(self, request: Request, session: PageSession | None) -> None:
        if session is None or not session.accepts(request.headers.get(CSRF, "")):
            raise Problem(403, "csrf", "a change from the page needs its CSRF token", fix=f"send the {CSRF} header")

    def session(self, request: Request) -> PageSession | None:
        """Return the session of the page's cookie, if it has one."""
        return self.sessions.find(request.cookies.get(self.cookie, ""))
