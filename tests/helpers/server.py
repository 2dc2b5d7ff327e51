"""A real server on loopback in a thread, and clients for it: raw sockets, a token's, the owner's page's."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lukasa import Lukasa
from lukasa.surfaces.http.serving import Address, Server, listen

PATIENCE = 30.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Client:
    """Somebody with certain headers. Every request has a connection of its own."""

    port: int
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        sent = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("content-type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, data, sent)
            got = connection.getresponse()
            return Answer(got.status, {name.lower(): value for name, value in got.getheaders()}, got.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: object = None, **headers: str) -> Answer:
        return self.ask("POST", path, {} if body is None else body, **headers)


@dataclass(frozen=True)
class Running:
    memory: Lukasa
    server: Server

    @property
    def port(self) -> int:
        return self.server.port

    def stranger(self) -> Client:
        return Client(self.port)

    def holder(self, token: str) -> Client:
        return Client(self.port, {"authorization": f"Bearer {token}"})

    def granted(self, *can: str, workspaces: tuple[str, ...] = ("novel",), name: str = "claude", **how: Any) -> Client:
        issued = self.memory.access.create(name, workspaces=workspaces, can=can or ("read", "write"), **how)
        return self.holder(issued.token)

    def owner(self) -> Client:
        """The page, as it is after it exchanged the code of its link."""
        code = self.server.link().partition("#enter=")[2]
        entered = self.stranger().post("/session", {"code": code})
        assert entered.status == 201, entered.body
        cookie = entered.headers["set-cookie"].partition(";")[0]
        return Client(self.port, {"cookie": cookie, "x-csrf-token": entered.json["csrf"]})

    def raw(self, request: bytes) -> tuple[int, bytes]:
        """What a socket gets for these bytes: the status and the whole reply."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as wire:
            wire.sendall(request)
            reply = b""
            while piece := wire.recv(65536):
                reply += piece
        return int(reply.split(b" ", 2)[1]), reply

    def heads(self) -> dict[str, tuple[int, str]]:
        """Where every log stands: what no refused request may change."""
        found = {info.name: self.memory.existing(info.name).ctx.local.head() for info in self.memory.workspaces()}
        return {**found, "(account)": self.memory.account.head()}


@contextmanager
def running(memory: Lukasa, **options: Any) -> Iterator[Running]:
    server = Server(memory, listen(Address(port=0), memory), **options)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert server.ready.wait(PATIENCE)
        yield Running(memory, server)
    finally:
        server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def raw_request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"", version: str = "1.1") -> bytes:
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "Connection: close", f"Content-Length: {len(body)}", "", ""]).encode() + body
