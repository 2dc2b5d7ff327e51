"""Sixty-four clients at once, who ask one server or two over HTTP, on one database.

    python -m bench.postgres_clients serve URL FOLDER        a server with the embedder that is free; prints its port

Each client has a connection of its own and sends the next request when the last one was answered: of ten, eight are
reads, one is a context and one is a put. Clients are spread over workspaces and over servers.

Clients, servers and PostgreSQL share the cores of one machine, so a second server mostly takes from the first one. To
see what a second one on a machine of its own would add, servers are also held back: each may run for a quarter of the
time, in turn, and stands still otherwise, also in the middle of a transaction.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import psutil

from bench.load import FreeEmbedder
from bench.made import texts
from bench.postgres_load import Held, held
from lukasa import Lukasa
from lukasa.surfaces.http.serving import Address, Server, listen

CLIENTS, SECONDS, ROUNDS = 64, 8.0, 3
TURN, TURNS = 0.01, 4  # seconds that a server that is held back runs, and of how many turns one is its own
MIX = ("read",) * 4 + ("put",) + ("read",) * 4 + ("context",)


def serve(url: str, folder: Path) -> None:
    embedder = FreeEmbedder()
    with Lukasa.open(folder, database=url, embedder=embedder) as memory:
        server = Server(memory, listen(Address(port=0), memory))
        print(server.port, flush=True)
        threading.Thread(target=_stop_at_the_end_of_input, args=(server,), daemon=True).start()
        server.run()


def _stop_at_the_end_of_input(server: Server) -> None:
    sys.stdin.read()
    server.stop()


@contextmanager
def serving(url: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Give the process and the port of a server of its own, with a folder of its own."""
    command = [sys.executable, "-m", "bench.postgres_clients", "serve", url, str(folder)]
    here = Path(__file__).parents[1]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=here)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.pid, int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


class Client:
    """A connection to a server, kept open."""

    def __init__(self, number: int, port: int, token: str, about: Held, seed: str) -> None:
        self._number, self._port, self._seed = number, port, seed
        self._head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json"
        self._at = f"/v1/workspaces/bench-{number % about.workspaces}"
        self._asked = about.questions[number :: about.workspaces] or about.questions
        self._fresh = texts(400, 1000 + number)
        self.waits: list[float] = []
        self.errors: list[str] = []

    async def run(self, until: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        turn = self._number  # not all at the same place of the mix
        while time.perf_counter() < until:
            what, began = MIX[turn % len(MIX)], time.perf_counter()
            body = {"query": self._asked[turn % len(self._asked)]}
            path = f"{self._at}/{what}"
            if what == "put":
                text = f"{self._fresh[turn % len(self._fresh)]} {self._seed} {turn}"
                path, body = f"{self._at}/entries", {"content": text}
            status, answer = await self._ask(reader, writer, path, json.dumps(body).encode())
            if status in (200, 201):
                self.waits.append((time.perf_counter() - began) * 1000)
            else:
                self.errors.append(f"{status} {answer[:200]!r}")
            turn += 1
        writer.close()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes) -> Any:
        writer.write(f"POST {path} HTTP/1.1\r\n{self._head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r", 1)[0])
        return int(head.split(b" ", 2)[1]), await reader.readexactly(length)


async def _all(clients: Sequence[Client], seconds: float) -> None:
    until = time.perf_counter() + seconds
    await asyncio.gather(*[client.run(until) for client in clients])


def burst(ports: Sequence[int], token: str, about: Held, seed: str, seconds: float) -> tuple[list[Client], float]:
    clients = [Client(number, ports[number % len(ports)], token, about, seed) for number in range(CLIENTS)]
    began = time.perf_counter()
    asyncio.run(_all(clients, seconds))
    return clients, time.perf_counter() - began


@contextmanager
def held_back(processes: Sequence[int]) -> Iterator[None]:
    """Let each process run in a turn of its own, and stand still in the others."""
    ended = threading.Event()

    def take_turns() -> None:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        for turn in count():
            if ended.is_set():
                break
            mine = processes[turn % TURNS :][:1]
            for process in mine:
                os.kill(process, signal.SIGCONT)
            time.sleep(TURN)
            for process in mine:
                os.kill(process, signal.SIGSTOP)
        for process in processes:
            os.kill(process, signal.SIGCONT)

    thread = threading.Thread(target=take_turns)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def spent(process: int) -> float:
    times = psutil.Process(process).cpu_times()
    return float(times.user + times.system)


def family(process: int) -> float:
    """Seconds of CPU of a process and all that it started and that still run."""
    found = psutil.Process(process)
    return sum(spent(one.pid) for one in (found, *found.children(recursive=True)))


def through(
    servers: int, folder: Path, url: str, postmaster: int, *, slow: bool = False, seconds: float = SECONDS
) -> dict[str, Any]:
    """What so many servers answer to all clients: a burst to warm up, and then the one that counts."""
    about = held(folder)
    with Lukasa.open(folder / "store", database=url, embedder="none") as memory:
        names = [f"bench-{number}" for number in range(about.workspaces)]
        token = memory.access.create("clients", workspaces=names, can=["read", "write"]).token
    with ExitStack() as stack:
        running = [stack.enter_context(serving(url, folder / f"server-{number}")) for number in range(servers)]
        ports = [port for _, port in running]
        moment = time.time_ns()
        burst(ports, token, about, f"warm {moment}", seconds / 4)
        before, backends, own = [spent(pid) for pid, _ in running], family(postmaster), time.process_time()
        with held_back([pid for pid, _ in running]) if slow else nullcontext():
            clients, took = burst(ports, token, about, f"round {moment}", seconds)
        cpu = {
            "servers": sum(spent(pid) for pid, _ in running) - sum(before),
            "PostgreSQL": family(postmaster) - backends,
            "clients": time.process_time() - own,
        }
    waits = sorted(wait for client in clients for wait in client.waits)
    return {
        "servers": servers,
        "slow": slow,
        "requests": len(waits),
        "rate": len(waits) / took,
        "errors": [error for client in clients for error in client.errors],
        "p50": statistics.median(waits),
        "p95": waits[int(len(waits) * 0.95)],
        "cpu": {name: value * 1000 / len(waits) for name, value in cpu.items()},
        "busy": sum(cpu.values()) / took,
    }


if __name__ == "__main__":
    serve(sys.argv[2], Path(sys.argv[3]))
