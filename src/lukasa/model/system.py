"""What operating systems do differently, each behind one name, with a fallback where a system lacks it.

Linux and macOS have all of it. Windows lacks most: it has locks of byte ranges, no modes, no descriptors of folders, no
forks, no sockets that are files. Each choice looks for the means and not for the name of the system, so the tests
can take the means away.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

# Flags of `os.open`. Windows opens as text unless it is told not to, and has none of the others.
CLOEXEC: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
NOCTTY: int = getattr(os, "O_NOCTTY", 0)
DIRECTORY: int = getattr(os, "O_DIRECTORY", 0)

_HELD = frozenset({errno.EAGAIN, errno.EACCES, errno.EDEADLK})
_FAR = 0x7FFFFFFE  # the byte that stands for a whole file: beyond what is written there, so that it can be read


def _module(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except ImportError:
        return None


_fcntl: Any = _module("fcntl")
_msvcrt: Any = None if _fcntl is not None else _module("msvcrt")


# Files


def open_file(path: Path | str, flags: int, mode: int = 0o600) -> int:
    """Open a file without following a link at its end; raise ELOOP for a link, also where no flag says so."""
    if not NOFOLLOW and os.path.islink(path):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return os.open(path, flags | NOFOLLOW | CLOEXEC, mode)


def set_mode(descriptor: int, mode: int) -> None:
    """Set the mode of an open file, where files have modes."""
    change = getattr(os, "fchmod", None)
    if change is not None:
        change(descriptor, mode)


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk. Without descriptors of folders, systems sync names."""
    if path.is_dir():
        if not DIRECTORY:
            return
        descriptor = os.open(path, os.O_RDONLY | CLOEXEC)
    else:
        descriptor = os.open(path, os.O_RDWR | CLOEXEC)  # Windows syncs only what may be written
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Read a part of a file."""
    read = getattr(os, "pread", None)
    if read is not None:
        found: bytes = read(descriptor, size, offset)
        return found
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def write_at(descriptor: int, data: bytes, offset: int) -> None:
    """Write a part of a file."""
    write = getattr(os, "pwrite", None)
    if write is not None:
        write(descriptor, data, offset)
        return
    os.lseek(descriptor, offset, os.SEEK_SET)
    os.write(descriptor, data)


def remove_held(path: Path) -> None:
    """Remove a file that this process has open. Where that is impossible it stays, and is empty."""
    with suppress(PermissionError):
        path.unlink(missing_ok=True)


def free_bytes(folder: Path) -> int:
    """Return how much this user may still write there. Raises OSError for a folder that is not there."""
    measure = getattr(os, "statvfs", None)
    if measure is None:
        free: int = import_module("shutil").disk_usage(folder).free
        return free
    room = measure(folder)
    return int(room.f_bavail * room.f_frsize)


def is_mine(status: os.stat_result) -> bool:
    """Say whether a file is this user's. Where users have no numbers, what is in a user's own folders is."""
    user = getattr(os, "getuid", None)
    return user is None or status.st_uid == user()


# Locks


def try_lock(descriptor: int) -> bool:
    """Lock a whole file for this descriptor; return False if another one holds it. It ends with the descriptor."""
    if _fcntl is not None:
        return _taken(lambda: _fcntl.flock(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB))
    return _taken(lambda: _lock_bytes(descriptor, _FAR, 1))


def is_range_locked(descriptor: int, first: int, size: int) -> bool:
    """Say whether another process holds a lock on these bytes; take none."""
    if _fcntl is not None:
        return not _taken(lambda: _fcntl.lockf(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB, size, first))
    return not _taken(lambda: _lock_bytes(descriptor, first, size))


def _taken(take: Callable[[], None]) -> bool:
    try:
        take()
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True


def _lock_bytes(descriptor: int, first: int, size: int) -> None:
    at = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, first, os.SEEK_SET)
    try:
        _msvcrt.locking(descriptor, _msvcrt.LK_NBLCK, size)
    finally:
        os.lseek(descriptor, at, os.SEEK_SET)


# Processes


def at_fork(*, before: Callable[[], None] | None = None, after_in_child: Callable[[], None]) -> None:
    """Have functions called around a fork, where processes fork."""
    register = getattr(os, "register_at_fork", None)
    if register is not None:
        register(after_in_child=after_in_child, **({"before": before} if before is not None else {}))


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all that it started. Without process groups, Windows' own command does it."""
    end = getattr(os, "killpg", None)
    with suppress(ProcessLookupError, PermissionError):
        if end is not None:
            end(process.pid, import_module("signal").SIGKILL)
            return
        command = import_module("shutil").which("taskkill")
        if command is not None:
            quiet = {"stdout": -3, "stderr": -3, "check": False}  # DEVNULL
            import_module("subprocess").run([command, "/T", "/F", "/PID", str(process.pid)], **quiet)
        process.kill()


def start_apart(command: Sequence[str], settings: Mapping[str, str]) -> None:
    """Start a program that outlives this one, without streams. `posix_spawn` starts it in a tenth of the time."""
    env = {**os.environ, **settings}
    spawn = getattr(os, "posix_spawn", None)
    if spawn is not None:
        opens: int = getattr(os, "POSIX_SPAWN_OPEN", 0)
        quiet = [(opens, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)]
        spawn(command[0], list(command), env, file_actions=quiet, setsid=True)
        return
    programs: Any = import_module("subprocess")
    apart: int = getattr(programs, "DETACHED_PROCESS", 0) | getattr(programs, "CREATE_NEW_PROCESS_GROUP", 0)
    nothing = programs.DEVNULL
    started = programs.Popen(
        command, env=env, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True, creationflags=apart
    )
    started.returncode = 0  # nobody waits for it; without this, Python would warn that it still runs


def waits_for_pipes() -> bool:
    """Say whether one thread can wait for several pipes."""
    return hasattr(import_module("select"), "poll")


def sockets_are_files() -> bool:
    """Say whether a socket can be a file, which only its owner can open."""
    return hasattr(import_module("socket"), "AF_UNIX") and os.name == "posix"


def shell(command: str) -> list[str]:
    """Return a command line as a program with its arguments."""
    return ["/bin/sh", "-c", command] if os.path.exists("/bin/sh") else ["cmd", "/c", command]


@contextmanager
def near(folder: Path) -> Iterator[str]:
    """Give a short path to a folder: the address of a socket holds about a hundred bytes."""
    links = Path("/proc/self/fd")
    if not DIRECTORY or not links.is_dir():
        yield str(folder)
        return
    descriptor = os.open(folder, os.O_RDONLY | DIRECTORY | CLOEXEC)
    try:
        yield f"{links}/{descriptor}"
    finally:
        os.close(descriptor)
