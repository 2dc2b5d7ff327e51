"""The means that a system lends, and the fallbacks where it lends none: these tests run both ways."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from lukasa import Lukasa
from lukasa.model import system
from lukasa.model.errors import StoreBusy
from lukasa.providers import programs
from lukasa.providers.files import safe_write
from lukasa.providers.folders import require_closed
from lukasa.surfaces.http import links

FORCED = "elsewhere" in os.environ.get("PYTHONPATH", "")
HOLD = """
import os, sys
from lukasa.model import system
descriptor = os.open(sys.argv[1], os.O_RDWR)
print(system.try_lock(descriptor), flush=True)
sys.stdin.read()
"""


def test_the_means_are_those_that_this_run_has() -> None:
    """Portability: where the fallbacks are forced, none of the means is there, or the other tests show nothing."""
    assert (system._fcntl is None, system.NOFOLLOW == 0, not system.sockets_are_files()) == (FORCED,) * 3


def test_a_lock_excludes_another_process_and_ends_with_it(tmp_path: Path) -> None:
    """Portability: one process at a time holds a file, and a killed one lets go."""
    path = tmp_path / "lock"
    path.write_bytes(b"")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        mine = os.open(path, os.O_RDWR)
        assert not system.try_lock(mine)
        with pytest.raises(StoreBusy), safe_write.locked(path, 0.05):
            pass
        holder.kill()
        holder.wait()
        assert system.try_lock(mine)
        os.close(mine)
    with safe_write.locked(path) as descriptor:
        os.write(descriptor, b"written")
    assert path.read_bytes() == b"written"


def test_memory_that_another_process_has_open_is_seen(tmp_path: Path) -> None:
    """Portability: moving a folder asks whether a process uses a database in it."""
    code = (
        "import sys; from lukasa import Lukasa; m = Lukasa.open(sys.argv[1], embedder='none');"
        "m.workspace('a').put('workspace', 'The villain is called Malachar');"
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "data")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreBusy):
            require_closed(tmp_path / "data")
        with Lukasa.open(tmp_path / "data", embedder="none") as memory:
            assert memory.workspace("a").read("villain")[0].content == "The villain is called Malachar"
        holder.communicate("")
    require_closed(tmp_path / "data")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Portability: a link in the place of a file is refused, with or without a flag for it."""
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError, match="link") as refused:
        system.open_file(tmp_path / "link", os.O_RDONLY)
    assert refused.value.errno == errno.ELOOP


def test_parts_of_files(tmp_path: Path) -> None:
    """Portability: a part is read and written in its place."""
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    descriptor = os.open(path, os.O_RDWR)
    system.write_at(descriptor, b"xy", 4)
    assert (system.read_at(descriptor, 4, 3), path.read_bytes()) == (b"3xy6", b"0123xy6789")
    os.close(descriptor)
    assert system.free_bytes(tmp_path) > 0
    assert system.is_mine(path.stat())
    system.sync(tmp_path)


def test_links_to_the_page_come_from_the_running_server(tmp_path: Path) -> None:
    """Portability: `lukasa link` asks over a socket that is a file, or over a port with a secret; never a stranger."""

    async def serve() -> tuple[dict[int, str], bytes]:
        async with links.handing_out(tmp_path, 4711, lambda: "http://127.0.0.1:4711/in#secret"):
            given = await asyncio.to_thread(links.ask, tmp_path)
            stranger = b""
            if FORCED:
                port = int((tmp_path / "serve-4711.sock").read_text().split()[0])
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(bytes(32))
                stranger = await reader.read()
                writer.close()
            return given, stranger

    assert asyncio.run(serve()) == ({4711: "http://127.0.0.1:4711/in#secret"}, b"")
    assert links.ask(tmp_path) == {}


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("import sys; print(sys.stdin.read() * 2)", "abab\n"),
        ("import sys; sys.stderr.write('no'); sys.exit(3)", ""),
        ("import time; time.sleep(60)", TimeoutError),
        ("print('x' * 100_000)", programs.TooLong),
    ],
)
def test_a_program_gets_its_input_a_deadline_and_a_bound(code: str, outcome: str | type[Exception]) -> None:
    """Portability: a program of the user's is bounded in time and output, however its pipes are read."""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with programs.ended(process):
        ends = time.monotonic() + (0.5 if outcome is TimeoutError else 60)
        if isinstance(outcome, str):
            assert programs.exchange(process, b"ab", ends, 50_000)[0].decode().replace("\r", "") == outcome
        else:
            with pytest.raises(outcome):
                programs.exchange(process, b"ab", ends, 50_000)


def test_a_program_that_is_started_apart_outlives_the_call() -> None:
    """Portability: a hook starts a worker that it does not wait for, with its settings."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        code = "import os, socket; socket.create_connection(('127.0.0.1', int(os.environ['PORT']))).sendall(b'done')"
        system.start_apart([sys.executable, "-c", code], {"PORT": str(server.getsockname()[1])})
        wire, _ = server.accept()
        with wire:
            assert wire.recv(4) == b"done"


def test_a_command_line_runs() -> None:
    """Portability: a cited command runs in the system's own shell."""
    assert (
        subprocess.run(system.shell("echo hello"), capture_output=True, text=True, check=True).stdout.strip() == "hello"
    )


def test_sqlite_is_the_one_that_lukasa_needs() -> None:
    """Portability: SQLite comes with the package apsw, so its version is the same on every system."""
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)
