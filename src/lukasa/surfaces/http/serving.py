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
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import uvicorn

from lukasa import __version__
from lukasa.app import Lukasa
from lukasa.model.errors import InvalidInput, LukasaError
from lukasa.service.metrics import Metrics
from lukasa.surfaces.http.application import ApplicationParts, build
from lukasa.surfaces.http.authentication import ServerNames
from lukasa.surfaces.http.connections import USUAL, Limits, bounded
from lukasa.surfaces.http.links import handing_out
from lukasa.surfaces.http.observing import Form, RequestLog
from lukasa.surfaces.mcp.mount import McpMount

P = ParamSpec("P")
T = TypeVar("T")

BACKLOG = 512
# Seconds of a stop, which takes less than ten: requests and the job in hand end at the same time.
GRACE = 5  # for requests in progress
WORKER_GRACE = 3.0  # for the job in hand
LAST = 2.0  # for threads whose request was cancelled
GLANCE = 0.05


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
    the bounds on connections. `drain` is how many seconds it goes on serving after it was told to stop, while `/ready`
    answers 503, so that a load balancer takes it out first.
    """

    def __init__(
        self,
        memory: Lukasa,
        bound: socket.socket,
        *,
        public: str | None = None,
        links: Path | None = None,
        limits: Limits = USUAL,
        drain: float = 0.0,
        log: Form = "none",
    ) -> None:
        self.port: int = bound.getsockname()[1]
        self.metrics = Metrics(__version__)
        memory.measure(self.metrics.span)
        names = ServerNames.loopback(self.port)
        mcp = McpMount(memory.access)
        parts = ApplicationParts(
            memory.access,
            names.and_public(public) if public else names,
            cookie=f"lukasa_{self.port}",  # browsers share cookies between ports: two servers need two names
            metrics=self.metrics,
            depth=memory.queue_depth,
            log=RequestLog(log),
            more=mcp.routes,
            lifespans=(mcp.run,) if links is None else (mcp.run, lambda: handing_out(links, self.port, self.link)),
        )
        self.parts = replace(parts, secure=True) if public else parts
        mcp.closing = self.parts.closing
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
        self._drain = drain
        self.ready = threading.Event()
        self.stopping = threading.Event()
        self.hurry = threading.Event()
        self.worker: threading.Thread | None = None  # the server listens to signals until it has ended

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

    def run(self, *, signals: Sequence[signal.Signals] = ()) -> bool:
        """Serve until stopped. Only the main thread can handle signals.

        Return whether all requests have ended. The threads of those that have not still run, and end with the process.
        """
        threads = _Threads(self.hurry)
        asyncio.run(self._run(signals, threads))
        return not threads.at_work and not self.parts.readiness.asking

    async def _run(self, signals: Sequence[signal.Signals], threads: _Threads) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(threads)
        for number in signals:
            _handle(self._loop, number, self._stop)
        self._server.listening = self.ready.set
        try:
            await self._server.serve(sockets=[self._bound])
            if self._server.force_exit:  # then uvicorn leaves the lifespan to be cancelled, which fails with noise
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._server.lifespan.shutdown(), 1)
            while self.worker is not None and self.worker.is_alive():
                await asyncio.sleep(GLANCE)
        finally:
            self.parts.readiness.close()

    def stop(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # the loop closed in between
                self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        """Begin to drain, or to end if there is no time to drain. A further call ends the drain, or the waiting."""
        readiness = self.parts.readiness
        if self._server.should_exit:
            self._server.force_exit = True
            self.hurry.set()
        elif readiness.draining or not self._drain:
            self._end()
        else:
            readiness.draining = True
            asyncio.get_running_loop().call_later(self._drain, self._end)

    def _end(self) -> None:
        """Accept no more connections, and let the requests and the job in progress end."""
        self.parts.readiness.draining = True
        self.stopping.set()
        self._server.should_exit = True
        self.parts.closing.set()


def _handle(loop: asyncio.AbstractEventLoop, number: signal.Signals, then: Callable[[], None]) -> None:
    """Call a function in the loop at a signal. A loop that handles no signals is told by the main thread."""
    try:
        loop.add_signal_handler(number, then)
    except NotImplementedError:
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(then))


class _Threads(ThreadPoolExecutor):
    """The threads that requests run in. Python waits for such threads without end; a stop must not."""

    def __init__(self, hurry: threading.Event) -> None:
        super().__init__(thread_name_prefix="lukasa-request")
        self.at_work: set[Future[Any]] = set()
        self._hurry = hurry

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future = super().submit(fn, *args, **kwargs)
        self.at_work.add(future)
        future.add_done_callback(self.at_work.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=True)
        ends = time.monotonic() + LAST
        while wait and self.at_work and time.monotonic() < ends and not self._hurry.wait(GLANCE):
            pass


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
def working(memory: Lukasa, server: Server, tell: Callable[[str], None]) -> Iterator[None]:
    """Run the worker, and load the embedding model, in threads beside the server, until the server stops."""
    counted = server.metrics.worked
    try:
        crew = memory.crew(1, tell=counted)
    except LukasaError as error:
        tell(f"no language model: {error}")
        crew = memory.crew(1, chat="none", tell=counted)
    grace = {"grace": WORKER_GRACE}
    server.worker = threading.Thread(
        target=crew.serve, args=(server.stopping, server.hurry), kwargs=grace, name="lukasa-crew"
    )
    server.worker.start()
    threading.Thread(target=warm, args=(memory,), name="lukasa-warm", daemon=True).start()
    try:
        yield
    finally:
        server.stopping.set()
        server.worker.join()


def warm(memory: Lukasa) -> None:
    """Load the embedding models of all workspaces, so that the first question does not wait."""
    for info in memory.workspaces():
        with contextlib.suppress(LukasaError):
            embedder = memory.existing(info.name).ctx.embedder
            if embedder is not None:
                embedder.embed_query("ready")
