"""New links to the page, from a server that runs: a socket in the account's folder, which only the owner can open.

Who may have a link is settled by the folder's mode and by nothing that is sent. No secret is kept for it, and a server
that is gone answers nobody, whatever it left behind.
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
    """A new link for whoever connects."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # they went before they had it, and the code in it ends by itself
            writer.write(link().encode())
            await writer.drain()
        writer.close()

    name = _NAME.format(port=port)
    try:
        bound = _bound(folder, name)
    except OSError as error:  # a file system without sockets: the rest of the server is as good as ever
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
    """A new link from each server that runs on this folder, by its port; or from the one of that port."""
    found: dict[int, str] = {}
    for path in folder.glob(_NAME.format(port="*" if port is None else port)):
        with suppress(OSError, ValueError):  # left behind by a server that was killed, or no socket of ours
            found[int(path.stem.partition("-")[2])] = _asked(folder, path.name)
    return dict(sorted(found.items()))


def _asked(folder: Path, name: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire, _near(folder) as near:
        wire.settimeout(PATIENCE)
        wire.connect(f"{near}/{name}")
        told = b""
        while (piece := wire.recv(_MOST)) and len(told) < _MOST:
            told += piece
    if not told:
        raise ConnectionError("it is stopping")
    return told.decode()


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
    """A short way to a folder: the address of a socket has room for about a hundred bytes."""
    if not _FDS.is_dir():
        yield str(folder)
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{_FDS}/{descriptor}"
    finally:
        os.close(descriptor)
