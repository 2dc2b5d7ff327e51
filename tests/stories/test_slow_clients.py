"""Clients that send slowly, or read slowly, do not keep others out: real sockets on loopback, waited for by events."""

from __future__ import annotations

import http.client
import resource
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from lukasa import Lukasa
from lukasa.surfaces.http.connections import Limits
from tests.helpers.processes import until
from tests.helpers.server import PATIENCE, Running, running

SLOW = 300
LONG = 3600.0


@contextmanager
def bounded(folder: Path, limits: Limits) -> Iterator[Running]:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most[1], most[1]))
    with Lukasa.open(folder, embedder="none") as memory:
        memory.workspace("novel")
        with running(memory, limits=limits) as house:
            yield house


def slow(house: Running, stack: ExitStack, sent: bytes) -> socket.socket:
    wire = stack.enter_context(socket.create_connection(("127.0.0.1", house.port), timeout=PATIENCE))
    wire.sendall(sent)
    return wire


def ended(wires: list[socket.socket], count: int) -> list[socket.socket]:
    """Wait until the server has ended so many of these connections."""
    poll = select.poll()
    by_number = {wire.fileno(): wire for wire in wires}
    for wire in wires:
        poll.register(wire, select.POLLIN)
    over: list[socket.socket] = []
    while len(over) < count:
        events = poll.poll(PATIENCE * 1000)
        assert events, f"only {len(over)} of {count} were ended"
        for number, _ in events:
            poll.unregister(number)
            over.append(by_number[number])
    return over


def reply(wire: socket.socket) -> bytes:
    """Everything that the server still says until it closes."""
    said = b""
    try:
        while piece := wire.recv(65536):
            said += piece
    except ConnectionResetError:
        pass
    return said


def test_slow_heads_are_dropped_in_time(tmp_path: Path) -> None:
    """300 connections that never finish their request's head are all ended, and a client is answered meanwhile."""
    with bounded(tmp_path, Limits(connections=SLOW * 2, head=2.0)) as house, ExitStack() as stack:
        wires = [slow(house, stack, b"GET /health HTTP/1.1\r\nHost:") for _ in range(SLOW)]
        assert house.stranger().get("/health").status == 200
        ended(wires, SLOW)
        assert {reply(wire)[:12] for wire in wires} == {b"HTTP/1.1 408"}
        until(lambda: not house.server.open_connections)
        assert house.stranger().get("/health").status == 200


def test_connections_are_capped_and_the_longest_wait_makes_room(tmp_path: Path) -> None:
    """With 40 places and 300 slow clients at most 40 stay, and every client that asks at once is answered."""
    with bounded(tmp_path, Limits(connections=40, head=LONG)) as house, ExitStack() as stack:
        wires = []
        for number in range(SLOW):
            wires.append(slow(house, stack, b"GET /health HTTP/1.1\r\nHost:" if number % 2 else b""))
            if number % 50 == 0:
                assert house.stranger().get("/health").status == 200
        ended(wires, SLOW - 40)
        assert house.server.open_connections <= 40
        assert house.granted().get("/v1/workspaces").status == 200


def test_a_full_house_says_so(tmp_path: Path) -> None:
    """If every place has a request in progress, a new connection gets 503 at once instead of waiting."""
    with bounded(tmp_path, Limits(connections=4, body=LONG)) as house, ExitStack() as stack:
        head = body_of(house, 10)
        busy = [slow(house, stack, head + b"x") for _ in range(4)]
        until(lambda: house.server.open_connections == 4 and house.server.busy_connections == 4)
        with socket.create_connection(("127.0.0.1", house.port), timeout=PATIENCE) as wire:
            assert reply(wire).startswith(b"HTTP/1.1 503")
        busy[0].close()
        until(lambda: house.server.open_connections == 3)
        assert house.stranger().get("/health").status == 200


@pytest.mark.parametrize("path", ["/v1/workspaces/novel/entries", "/mcp"])
def test_a_slow_body_is_dropped_in_time(tmp_path: Path, path: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A request whose body does not arrive is ended, writes nothing and leaves no traceback."""
    with bounded(tmp_path, Limits(body=0.3)) as house, ExitStack() as stack:
        before = house.heads()
        wire = slow(house, stack, body_of(house, 10, path) + b"x")
        ended([wire], 1)
        assert reply(wire).startswith(b"HTTP/1.1 408")
        assert house.granted().get("/v1/workspaces").status == 200
        assert house.heads()["novel"] == before["novel"]
    assert "Traceback" not in capfd.readouterr().err


def test_an_answer_that_nobody_reads_is_given_up(tmp_path: Path) -> None:
    """A client that asks for much and reads nothing loses its place."""
    with bounded(tmp_path, Limits(answer=0.3)) as house, ExitStack() as stack:
        request = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n" % (house.port, token_of(house))
        wire = socket.socket()
        stack.enter_context(wire)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.connect(("127.0.0.1", house.port))
        wire.sendall(request * 100)
        until(lambda: house.server.busy_connections == 1)
        until(lambda: not house.server.open_connections)


def test_a_patient_client_keeps_its_connection(tmp_path: Path) -> None:
    """The clock of a head runs for one request at a time: a connection between two requests is not ended by it."""
    with bounded(tmp_path, Limits(head=1.0)) as house, ExitStack() as stack:
        client = http.client.HTTPConnection("127.0.0.1", house.port, timeout=PATIENCE)
        stack.callback(client.close)
        assert asked(client) == 200
        wire = client.sock
        ended([slow(house, stack, b"GET")], 1)  # longer than a head may take
        assert asked(client) == 200
        assert client.sock is wire
        wire.sendall(b"GET")
        ended([wire], 1)


def asked(client: http.client.HTTPConnection) -> int:
    client.request("GET", "/health")
    answer = client.getresponse()
    answer.read()
    return answer.status


def token_of(house: Running) -> bytes:
    return f"Authorization: {house.granted('read', 'write').headers['authorization']}\r\n".encode()


def body_of(house: Running, length: int, path: str = "/v1/workspaces/novel/entries") -> bytes:
    """The head of a request with a body of that length."""
    lines = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{house.port}", "Content-Type: application/json"]
    more = ["Accept: application/json, text/event-stream", f"Content-Length: {length}", ""]
    return "\r\n".join([*lines, *more]).encode() + token_of(house) + b"\r\n"
