"""New links to the owner's page from a running server, over a socket in the account's folder.

The mode of the folder alone decides who gets a link: only its owner can open the socket. No secret is stored for it,
and the socket file of a dead server answers nobody. Where sockets are no files, the file holds a port
of this machine and a secret that lives as long as the server.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from lukasa.model import system

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

PATIENCE = 5.0
_NAME = "serve-{port}.sock"
_MOST = 4096
_SECRET = 32


@asynccontextmanager
async def handing_out(folder: Path, port: int, link: Callable[[], str]) -> AsyncIterator[None]:
    """Give a new link to every client of the socket."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # the client left early; the code of its link expires by itself
            writer.write(link().encode())
            await writer.drain()
        writer.close()

    name = _NAME.format(port=port)
    try:
        server = await _serving(folder, name, answer)
    except OSError as error:  # a file system without sockets: everything else still works
        print(f"lukasa serve: `lukasa link` will not work: {error.strerror or error}", file=sys.stderr)
        yield
        return
    try:
        yield
    finally:
        server.close()
        (folder / name).unlink(missing_ok=True)


def ask(folder: Path, port: int | None = None) -> dict[int, str]:
    """Return a new link from each server that runs on this folder, by port; or only from the one at `port`."""
    found: dict[int, str] = {}
    for path in folder.glob(_NAME.format(port="*" if port is None else port)):
        with suppress(OSError, ValueError):  # a killed server left the file, or it is not our socket
            found[int(path.stem.partition("-")[2])] = _link_from(folder, path.name)
    return dict(sorted(found.items()))


async def _serving(folder: Path, name: str, answer: Answer) -> asyncio.Server:
    if system.sockets_are_files():
        return await asyncio.start_unix_server(answer, sock=_bound(folder, name))
    secret = os.urandom(_SECRET)

    async def admitted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            if hmac.compare_digest(await asyncio.wait_for(reader.readexactly(_SECRET), PATIENCE), secret):
                await answer(reader, writer)
                return
        writer.close()

    server = await asyncio.start_server(admitted, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    (folder / name).unlink(missing_ok=True)
    descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{port} {secret.hex()}")
    return server


@contextmanager
def _connected(folder: Path, name: str) -> Iterator[socket.socket]:
    if system.sockets_are_files():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire, system.near(folder) as near:
            wire.settimeout(PATIENCE)
            wire.connect(f"{near}/{name}")
            yield wire
        return
    port, _, secret = (folder / name).read_text("ascii").partition(" ")
    with socket.create_connection(("127.0.0.1", int(port)), PATIENCE) as wire:
        wire.sendall(bytes.fromhex(secret))
        yield wire


def _link_from(folder: Path, name: str) -> str:
    with _connected(folder, name) as wire:
        received = b""
        while (piece := wire.recv(_MOST)) and len(received) < _MOST:
            received += piece
    if not received:
        raise ConnectionError("the server is stopping")
    return received.decode()


def _bound(folder: Path, name: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        (folder / name).unlink(missing_ok=True)
        with system.near(folder) as near:
            made.bind(f"{near}/{name}")
        (folder / name).chmod(0o600)
    except OSError:
        made.close()
        raise
    return made
