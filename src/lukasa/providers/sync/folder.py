"""A folder that a file syncer, a network drive or a USB stick carries from machine to machine.

    lukasa-sync.json              which memory this is; written once
    machines/ID/card              name and keys of a machine
    machines/ID/note              what that machine has read
    machines/ID/00000001.bundle   what that machine has told, in order

A machine writes in its own folder alone, each file under another name first. So a file is whole or not there, a copy
that a syncer has not finished is noticed by its contents, and names that are not in this list are passed over.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from pathlib import Path

from lukasa.model import system
from lukasa.model.errors import BundleRefused, Conflict, NotFound, StoreError, SyncError
from lukasa.model.machines import MOST_MACHINES
from lukasa.providers.files.safe_write import os_errors, put_whole

MARK, MACHINES, CARD, NOTE = "lukasa-sync.json", "machines", "card", "note"
_FILE = re.compile(r"^(card|note|\d{8}\.bundle)$")
_MACHINE = re.compile(r"^[0-9a-f]{32}$")


def bundle_name(number: int) -> str:
    return f"{number:08}.bundle"


def is_ours(name: str) -> bool:
    """Say whether a file of a machine is one that a machine writes; syncers leave others beside them."""
    return _FILE.match(name) is not None


def is_machine(name: str) -> bool:
    return _MACHINE.match(name) is not None


class FolderRemote:
    """The folder through which machines exchange their files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def keeps_old(self) -> str:
        return ""

    def refresh(self) -> None:
        """Raise if the folder is not there: a drive that is not mounted must not look like an empty one."""
        if not self.path.is_dir():
            raise NotFound(f"{self.path} is not there", fix="mount or make that folder, then sync again")

    def mark(self) -> bytes | None:
        with os_errors(self.path / MARK):
            try:
                return self._bytes(self.path / MARK, 100_000)
            except FileNotFoundError:
                return None

    def put_mark(self, data: bytes) -> None:
        """Claim the folder for a memory; Conflict if it is claimed, or holds other files."""
        with os_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            if any(not one.name.startswith(".") for one in self.path.iterdir()):
                raise Conflict(f"{self.path} is not empty", fix="choose a new or an empty folder, or join: `sync join`")
            temporary = self.path / f".{MARK}.{os.getpid()}.new"
            put_whole(temporary, data, mode=0o666)
            try:
                os.link(temporary, self.path / MARK)  # unlike a rename, it takes nobody's place
            except FileExistsError:
                raise Conflict(f"{self.path} was claimed just now", fix="join it: `lukasa sync join`") from None
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                    raise
                temporary.rename(self.path / MARK)  # a file system without links
            finally:
                temporary.unlink(missing_ok=True)
            system.sync(self.path)

    def machines(self) -> list[str]:
        with os_errors(self.path):
            try:
                found = sorted(one.name for one in (self.path / MACHINES).iterdir() if is_machine(one.name))
            except FileNotFoundError:
                return []
        if len(found) > 4 * MOST_MACHINES:
            raise SyncError(f"{self.path} has {len(found):,} machines", fix=f"use one with at most {MOST_MACHINES}")
        return found

    def files(self, machine: str) -> dict[str, int]:
        """Return the sizes of a machine's files by name."""
        with os_errors(self.path):
            try:
                with os.scandir(self.path / MACHINES / machine) as listed:
                    return {
                        one.name: one.stat(follow_symlinks=False).st_size
                        for one in listed
                        if is_ours(one.name) and one.is_file(follow_symlinks=False)
                    }
            except (FileNotFoundError, NotADirectoryError):
                return {}

    def read(self, machine: str, name: str, most: int) -> bytes | None:
        """Return the bytes of a file, None if it is gone; refuse one that is larger than `most`."""
        path = self.path / MACHINES / machine / name
        try:
            data = self._bytes(path, most)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}", fix="check the folder") from error
        if len(data) > most:
            raise BundleRefused(f"{machine}/{name} is refused: it has more than {most:,} bytes")
        return data

    def put(self, machine: str, name: str, data: bytes) -> None:
        folder = self.path / MACHINES / machine
        with os_errors(folder):
            for one in (folder.parent, folder):  # the place itself must be there: a drive may be gone just now
                one.mkdir(exist_ok=True)
            for left in folder.glob(".*.new"):  # of a process that was killed; this machine alone writes here
                left.unlink(missing_ok=True)
        put_whole(folder / name, data, mode=0o666)  # it is sealed; the umask decides

    def remove(self, machine: str, name: str) -> None:
        with os_errors(self.path), suppress(FileNotFoundError):
            (self.path / MACHINES / machine / name).unlink()

    def publish(self, machine: str, *, anew: bool) -> None:
        """Nothing: the files are where others read them."""

    def _bytes(self, path: Path, most: int) -> bytes:
        descriptor = system.open_file(path, os.O_RDONLY | system.NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read(most + 1)
