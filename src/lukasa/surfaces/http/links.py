"""New links to the owner's page from a running server, over a socket in the account's folder.

The mode of the folder alone decides who gets a link: only its owner can open the socket. No secret is stored for it,
and the socket file of a dead server answers nobody.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

PATIENCE = 5.0
_NAME = "serve-{port}.sock"
_MOST = 4096
_FDS = Path("/proc/self/fd")


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
        bound = _bound(folder, name)
    except OSError as error:  # a file system without sockets: everything else still works
        print(f"lukasa serve: `lukasa link` will not work: {error.strerror or error}", file=sys.stderr)
        yield
        return
    server = await asyncio.start_unix_server(answer, sock=bound)
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


def _link_from(folder: Path, name: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire, _near(folder) as near:
        wire.settimeout(PATIENCE)
        wire.connect(f"{near}/{name}")
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
        with _near(folder) as near:
            made.bind(f"{near}/{name}")
        (folder / name).chmod(0o600)
    except OSError:
        made.close()
        raise
    return made


@contextmanager
def _near(folder: Path) -> Iterator[str]:
    """Give a short path to a folder: the address of a socket holds about a hundred bytes."""
    if not _FDS.is_dir():
        yield str(folder)
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{_FDS}/{descriptor}"
    finally:
        os.close(descriptor)
