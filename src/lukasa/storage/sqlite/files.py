"""Files of a store's folder: private whatever the umask, made whole or not at all, locked while being opened."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from lukasa.model.errors import StoreError
from lukasa.storage.sqlite.sqlite_errors import busy, full

RESERVE_BYTES = 1 << 20
_SIDES = ("", "-journal", "-wal", "-shm")


def make_folder(folder: Path) -> None:
    with os_errors(folder):
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            folder.chmod(0o700)


def new_private_file(path: Path) -> None:
    """An empty file of mode 0600; SQLite gives its side files the mode of their database."""
    with os_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)


def discard(path: Path) -> None:
    """Remove a database that never became one, with its side files."""
    for suffix in _SIDES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def put_in_place(temporary: Path, final: Path) -> None:
    """Rename, with everything on disk before and after: the final path holds a whole database or nothing."""
    with os_errors(final):
        _sync(temporary)
        temporary.rename(final)
        _sync(final.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, timeout: float) -> Iterator[None]:
    """Hold the folder's lock file. The kernel lets go of it when the process dies, however it dies."""
    with os_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with os_errors(path):
            os.fchmod(descriptor, 0o600)
            _take(descriptor, path, time.monotonic() + timeout)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise busy(path) from None
            time.sleep(import_module("random").uniform(0.001, 0.02))
        else:
            return


@contextmanager
def os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise full(path) from error
        raise StoreError(
            f"{path}: {error.strerror or error}", fix="check that the folder exists and belongs to you"
        ) from error


class Reserve:
    """A megabyte set aside. On a full disk not even a checkpoint can run, so this is given up to let one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = False

    def fill(self) -> None:
        """Set the space aside again if it is not and there is plenty; a nearly full disk is left alone."""
        if self._held:
            return
        with suppress(OSError):
            if not self._path.exists():
                room = os.statvfs(self._path.parent)
                if room.f_bavail * room.f_frsize < 8 * RESERVE_BYTES:
                    return
                self._write()
            self._held = True

    def _write(self) -> None:
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            os.write(descriptor, bytes(RESERVE_BYTES))
            temporary.rename(self._path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)

    def release(self) -> None:
        self._held = False
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
