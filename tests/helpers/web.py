"""Web servers on loopback: they count what reaches them, and serve what a test puts there, also badly."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass(frozen=True)
class Page:
    """What a path answers. With `etag`, a conditional request gets 304. `pieces` are sent as they come, unframed."""

    body: bytes = b""
    type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    etag: bool = False
    pieces: Callable[[], Iterable[bytes]] | None = None


@dataclass
class Site:
    """A server with pages by path. `hits` are the paths that were asked for, in order."""

    server: ThreadingHTTPServer
    host: str
    port: int
    secure: bool = False
    pages: dict[str, Page] = field(default_factory=dict)
    hits: list[str] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    """The headers of each request."""
    dynamic: Callable[[str, str, bytes, Mapping[str, str]], Page | None] | None = None
    """Answers what has no page: it gets method, path, body and headers."""

    @property
    def allowed(self) -> str:
        """This server alone, as the setting of the owner names it."""
        return f"{self.host}:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"{'https' if self.secure else 'http'}://{self.host}:{self.port}{path}"

    def put(self, path: str, body: str | bytes, type: str = "text/html; charset=utf-8", **more: Any) -> str:
        """Serve a text at a path, and return its URL."""
        self.pages[path] = Page(body.encode() if isinstance(body, str) else body, type, **more)
        return self.url(path)

    def redirect(self, path: str, to: str, status: int = 302) -> str:
        self.pages[path] = Page(status=status, headers={"Location": to})
        return self.url(path)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        site = self.server.site
        site.hits.append(self.path)
        site.asked.append({name.lower(): value for name, value in self.headers.items()})
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        page = site.pages.get(self.path)
        if page is None and site.dynamic is not None:
            page = site.dynamic(self.command, self.path, body, dict(self.headers.items()))
        self._send(page or Page(b"not here", "text/plain", 404))

    do_POST = do_GET

    def _send(self, page: Page) -> None:
        if page.pieces is not None:
            with contextlib.suppress(OSError):
                for piece in page.pieces():
                    self.wfile.write(piece)
                    self.wfile.flush()
            self.close_connection = True
            return
        tag = f'"{hashlib.sha256(page.body).hexdigest()[:16]}"' if page.etag else ""
        same = bool(tag) and self.headers.get("If-None-Match") == tag
        body = b"" if same else page.body
        self.send_response(304 if same else page.status)
        if tag:
            self.send_header("ETag", tag)
        for name, value in {"Content-Type": page.type, **page.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    site: Site

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what many tests are about."""


class _Server6(_Server):
    address_family = socket.AF_INET6


@contextlib.contextmanager
def site(host: str = "127.0.0.1", port: int = 0, trust: ssl.SSLContext | None = None) -> Iterator[Site]:
    """Run a server on an address of this machine."""
    server = (_Server6 if ":" in host else _Server)((host, port), _Handler)
    if trust is not None:
        server.socket = trust.wrap_socket(server.socket, server_side=True)
    server.site = Site(server, f"[{host}]" if ":" in host else host, server.server_address[1], trust is not None)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.site
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def anything(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Page:
    """Answer every path with a page, or with a feed of nothing."""
    if path.startswith("/feed"):
        feed = '<?xml version="1.0"?><rss version="2.0"><channel><title>Quiet</title></channel></rss>'
        return Page(feed.encode(), "application/rss+xml")
    return Page(f"<title>Page {path[1:20]}</title><p>This is the page at {path[1:60]}.</p>".encode())


@contextlib.contextmanager
def any_web() -> Iterator[str]:
    """Run a server that has every page, and let this process fetch from it; yield where it is."""
    with site() as one, pytest.MonkeyPatch.context() as patch:
        one.dynamic = anything
        patch.setenv("LUKASA_FETCH_ALLOW", one.allowed)
        yield f"http://{one.allowed}"
