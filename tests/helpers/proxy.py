"""A wire to PostgreSQL that a test can cut at a chosen moment: a small TCP proxy on loopback."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from psycopg import conninfo

Cut = Literal["before", "after", "unnoticed"]


_EXECUTE = b"E\0\0\0\t\0"  # the message that runs a statement
_PREPARED = re.compile(rb"(_pg3_[0-9]+)\0COMMIT\0")


class Proxy:
    """Forwards bytes both ways. Armed, it cuts the connection of the next COMMIT, before or after the server has it.

    Unnoticed is before, and the server does not learn that its client is gone.
    """

    def __init__(self, url: str) -> None:
        parts = conninfo.conninfo_to_dict(url)
        self._target = str(parts["host"]), int(str(parts["port"]))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.replace(f":{self._target[1]}/", f":{self._listener.getsockname()[1]}/")
        self.armed: Cut | None = None
        self.cuts = 0
        self.open = threading.Event()  # cleared, nobody gets through
        self.open.set()
        self.cut = threading.Event()
        self.left: socket.socket | None = None

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if not self.open.is_set():
                    client.close()
                    continue
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        threading.Thread(target=self._back, args=(server, client), daemon=True).start()
        with suppress(OSError):
            commits = [b"COMMIT\0"]  # its text, and then the names under which this connection prepared it
            while data := client.recv(65536):
                commits += [name + b"\0" for name in _PREPARED.findall(data)]
                if self.armed and _EXECUTE in data and any(one in data for one in commits):
                    self._cut(client, server, data)
                    return
                server.sendall(data)
        _end(client, server)

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
        _end(client, server)

    def _cut(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        how, self.armed = self.armed, None
        self.cuts += 1
        client.shutdown(socket.SHUT_RDWR)  # before the server can answer
        with suppress(OSError):
            if how == "after":
                server.sendall(data)
                server.shutdown(socket.SHUT_WR)
        _end(client, *([server] if how == "before" else []))
        self.left = server  # open until the server has answered, or forever
        self.cut.set()

    def close(self) -> None:
        self._listener.close()


def _end(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


@contextmanager
def proxy(url: str) -> Iterator[Proxy]:
    made = Proxy(url)
    thread = threading.Thread(target=made.serve, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.close()
