"""Write files atomically, readable for their owner alone, one writer at a time."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lukasa.model import system
from lukasa.model.errors import StoreBusy, StoreError, StoreFull

LOCK_SECONDS = 30.0
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def os_errors(path: Path) -> Iterator[None]:
    """Translate the file system's errors into ours, with the path and the fix."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in _FULL:
            raise StoreFull(f"{path} cannot be written: {why}", fix="free disk space, then try again") from error
        raise StoreError(f"{path} cannot be used: {why}", fix="check the folder and its permissions") from error


def make_folder(folder: Path) -> None:
    """Make a folder that only its owner can read; a folder that exists keeps its mode."""
    with os_errors(folder), suppress(FileExistsError):
        folder.mkdir(mode=0o700)


@contextmanager
def locked(path: Path, seconds: float = LOCK_SECONDS) -> Iterator[int]:
    """Hold an exclusive lock on a file, which is created if missing; yield a descriptor for reading and appending."""
    with os_errors(path):
        descriptor = system.open_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        _wait(descriptor, path, time.monotonic() + seconds)
        yield descriptor
    finally:
        os.close(descriptor)  # releases the lock


def _wait(descriptor: int, path: Path, ends: float) -> None:
    while True:
        if system.try_lock(descriptor):
            return
        if time.monotonic() > ends:
            raise StoreBusy(f"another process holds {path}", fix="try again when that process has finished")
        time.sleep(0.005)


def put_whole(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace a file by rename: a reader sees the old content or the new one, also after a power cut."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    with os_errors(path):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | system.CLOEXEC, mode)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        system.sync(path.parent)
