"""The server process: the HTTP server on loopback, and a worker beside it.

The server answers before the embedding model is loaded.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import uvicorn

from lukasa.app import Lukasa
from lukasa.model.errors import InvalidInput, LukasaError
from lukasa.surfaces.http.application import ApplicationParts, build
from lukasa.surfaces.http.authentication import ServerNames
from lukasa.surfaces.http.connections import USUAL, Limits, bounded
from lukasa.surfaces.http.links import handing_out
from lukasa.surfaces.mcp.mount import McpMount

BACKLOG = 512
GRACE = 5  # seconds for requests in flight; with the worker's, a stop takes less than ten
WORKER_GRACE = 3.0


@dataclass(frozen=True)
class Address:
    """The address to listen on. One other than loopback needs a TLS proxy in front, with its `public` name."""

    host: str = "127.0.0.1"
    port: int = 7437
    public: str | None = None

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def listen(address: Address, memory: Lukasa) -> socket.socket:
    """Return a bound socket; raise InvalidInput if the address is unsafe or taken."""
    if not address.is_loopback:
        if address.public is None:
            raise InvalidInput(
                f"{address.host} is not loopback: tokens and memory would cross the network unencrypted",
                fix="leave --host out, or put a TLS proxy in front and name it with --behind-tls NAME",
            )
        now = memory.access.clock.now()
        if not any(grant.live(now) for grant in memory.access.grants()):
            raise InvalidInput("no grant exists, so nobody has a token", fix="run `lukasa grant create NAME` first")
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on a socket that names TCP; without it small answers wait for an acknowledgement.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((address.host, address.port))
        made.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        made.close()
        why = getattr(error, "strerror", None) or "it is not a port number"
        raise InvalidInput(f"cannot listen on port {address.port}: {why}", fix="choose one with --port") from None
    return made


class Server:
    """The HTTP server on a bound socket. `link` opens the owner's page once; any thread may call `stop`.

    With `links`, a folder of the owner, `lukasa link` in another process gets links from this server too. `limits` are
    the bounds on connections.
    """

    def __init__(
        self,
        memory: Lukasa,
        bound: socket.socket,
        *,
        public: str | None = None,
        links: Path | None = None,
        limits: Limits = USUAL,
    ) -> None:
        self.port: int = bound.getsockname()[1]
        names = ServerNames.loopback(self.port)
        mcp = McpMount(memory.access)
        parts = ApplicationParts(
            memory.access,
            names.and_public(public) if public else names,
            cookie=f"lukasa_{self.port}",  # browsers share cookies between ports: two servers need two names
            more=mcp.routes,
            lifespans=(mcp.run,) if links is None else (mcp.run, lambda: handing_out(links, self.port, self.link)),
        )
        self.parts = replace(parts, secure=True) if public else parts
        self._memory = memory
        self._bound = bound
        config = uvicorn.Config(
            build(self.parts),
            lifespan="on",
            ws="none",
            http=bounded(limits),
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=GRACE,
        )
        self._server = _Uvicorn(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.ready = threading.Event()

    def link(self) -> str:
        return f"http://127.0.0.1:{self.port}/#enter={self.parts.sessions.new_code()}"

    @property
    def open_connections(self) -> int:
        """How many connections are open."""
        return len(self._server.server_state.connections)

    @property
    def busy_connections(self) -> int:
        """How many of them have a request in progress."""
        return len(self._server.server_state.tasks)

    def run(self, *, signals: Sequence[signal.Signals] = ()) -> None:
        """Serve until stopped. Only the main thread can handle signals."""
        asyncio.run(self._run(signals))

    async def _run(self, signals: Sequence[signal.Signals]) -> None:
        self._loop = asyncio.get_running_loop()
        for number in signals:
            self._loop.add_signal_handler(number, self._stop)
        self._server.listening = self.ready.set
        await self._server.serve(sockets=[self._bound])

    def stop(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # the loop closed in between
                self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if self._server.should_exit:
            self._server.force_exit = True  # a second signal does not wait
        self._server.should_exit = True
        self.parts.closing.set()


class _Uvicorn(uvicorn.Server):
    """uvicorn without signal handlers of its own; it calls `listening` when it listens."""

    listening: Callable[[], None] = staticmethod(lambda: None)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening()


@contextlib.contextmanager
def working(memory: Lukasa, tell: Callable[[str], None]) -> Iterator[None]:
    """Run the worker, and load the embedding model, in threads beside the server."""
    stop, hurry = threading.Event(), threading.Event()
    try:
        crew = memory.crew(1)
    except LukasaError as error:
        tell(f"no language model: {error}")
        crew = memory.crew(1, chat="none")
    threads = [
        threading.Thread(target=crew.serve, args=(stop, hurry), kwargs={"grace": WORKER_GRACE}, name="lukasa-crew"),
        threading.Thread(target=warm, args=(memory,), name="lukasa-warm", daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        threads[0].join(WORKER_GRACE + 1)
        hurry.set()


def warm(memory: Lukasa) -> None:
    """Load the embedding models of all workspaces, so that the first question does not wait."""
    for info in memory.workspaces():
        with contextlib.suppress(LukasaError):
            embedder = memory.existing(info.name).ctx.embedder
            if embedder is not None:
                embedder.embed_query("ready")
