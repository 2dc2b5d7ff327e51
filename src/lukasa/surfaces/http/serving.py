"""One process on loopback: the server, and the worker beside it. It answers before the embedding model is loaded."""

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
from lukasa.surfaces.http.app import House, build
from lukasa.surfaces.http.guard import Names
from lukasa.surfaces.http.links import handing_out
from lukasa.surfaces.mcp.mount import Mount

BACKLOG = 512
GRACE = 5  # seconds for requests in flight; with the worker's own, a stop takes less than ten
WORKER_GRACE = 3.0


@dataclass(frozen=True)
class Address:
    """Where to listen. Other than loopback only behind something that speaks TLS, under the name it is known by."""

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
    """A socket that is bound, or a refusal that says why."""
    if not address.is_loopback:
        if address.public is None:
            raise InvalidInput(
                f"{address.host} is not loopback: tokens and memory would cross the network unencrypted",
                fix="leave --host out, or put TLS in front and say --behind-tls NAME",
            )
        now = memory.access.clock.now()
        if not any(grant.live(now) for grant in memory.access.grants()):
            raise InvalidInput("nobody has a token yet", fix="`lukasa grant create NAME` first")
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # Named as TCP, or asyncio would not see that it is, and leave small answers to wait for an acknowledgement.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((address.host, address.port))
        made.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        made.close()
        why = getattr(error, "strerror", None) or "it is no port"
        raise InvalidInput(f"cannot listen on port {address.port}: {why}", fix="choose another with --port") from None
    return made


class Server:
    """A server on a socket. `link` opens the page for the owner, once; `stop` may be called from any thread.

    With `links`, a folder of the owner's, other processes get links there as well, as `lukasa link` does.
    """

    def __init__(
        self, memory: Lukasa, bound: socket.socket, *, public: str | None = None, links: Path | None = None
    ) -> None:
        self.port: int = bound.getsockname()[1]
        names = Names.loopback(self.port)
        # Cookies do not keep to a port, so that two servers on one machine need two names.
        mcp = Mount(memory.access)
        house = House(
            memory.access,
            names.and_public(public) if public else names,
            cookie=f"lukasa_{self.port}",
            more=mcp.routes,
            lifespans=(mcp.run,) if links is None else (mcp.run, lambda: handing_out(links, self.port, self.link)),
        )
        self.house = replace(house, secure=True) if public else house
        self._memory = memory
        self._bound = bound
        config = uvicorn.Config(
            build(self.house),
            lifespan="on",
            ws="none",
            http="h11",
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
        return f"http://127.0.0.1:{self.port}/#enter={self.house.sessions.new_code()}"

    def run(self, *, signals: Sequence[signal.Signals] = ()) -> None:
        """Serve until stopped. Signals can only be taken in the main thread."""
        asyncio.run(self._run(signals))

    async def _run(self, signals: Sequence[signal.Signals]) -> None:
        self._loop = asyncio.get_running_loop()
        for number in signals:
            self._loop.add_signal_handler(number, self._stop)
        self._server.told = self.ready.set
        await self._server.serve(sockets=[self._bound])

    def stop(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # it closed in between
                self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if self._server.should_exit:
            self._server.force_exit = True  # a second signal does not wait
        self._server.should_exit = True
        self.house.closing.set()


class _Uvicorn(uvicorn.Server):
    """uvicorn that leaves signals to us, and says when it listens."""

    told: Callable[[], None] = staticmethod(lambda: None)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.told()


@contextlib.contextmanager
def working(memory: Lukasa, tell: Callable[[str], None]) -> Iterator[None]:
    """The worker and the warming of the embedding model, in threads beside the server."""
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
    """Load the embedding models of all workspaces, so that no first question waits for them."""
    for info in memory.workspaces():
        with contextlib.suppress(LukasaError):
            embedder = memory.existing(info.name).ctx.embedder
            if embedder is not None:
                embedder.embed_query("ready")
