"""What a machine keeps of a sync in its data folder, and what opens the place through which it syncs.

sync/machine.json     state and private keys, readable for the owner alone
sync/own/N.bundle     what this machine has told
sync/git              a bare copy of the branches, if the place is a git repository
sync/lock             held while a process syncs
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from lukasa.model.errors import StoreBusy, StoreDamaged, SyncNewer
from lukasa.model.machines import Secrets, SyncState
from lukasa.ports import SyncRemote
from lukasa.providers.files.safe_write import locked, make_folder, os_errors, put_whole
from lukasa.providers.folders import remove_tree
from lukasa.providers.sync import ciphers
from lukasa.providers.sync.folder import FolderRemote, bundle_name, is_ours
from lukasa.providers.sync.git_remote import GitRemote, checked_address, is_git_address
from lukasa.providers.sync.sealing import Sealing

SYNC, MACHINE, OWN, GIT, LOCK = "sync", "machine.json", "own", "git", "lock"
VERSION = 1


class SyncFiles:
    """The folder `sync` of a data folder."""

    def __init__(self, data: Path) -> None:
        self.folder = data / SYNC

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the sync of this machine; StoreBusy if another process does."""
        make_folder(self.folder)
        try:
            with locked(self.folder / LOCK, 0.0):
                yield
        except StoreBusy as error:
            if str(self.folder / LOCK) not in error.message:
                raise
            raise StoreBusy("another process of this machine syncs now", fix="wait until it has finished") from None

    def load(self) -> SyncState | None:
        path = self.folder / MACHINE
        with os_errors(path):
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                return None
        try:
            version = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("version", b"1")
            if int(bytes(version)) > VERSION:
                raise SyncNewer(f"{path} has version {bytes(version).decode()}", fix="upgrade Lukasa")
            return msgspec.json.decode(data, type=SyncState)
        except ValueError as error:
            raise StoreDamaged(
                f"{path} cannot be read: {error}",
                fix="`lukasa sync leave`, then join again: the memory itself is whole",
            ) from error

    def save(self, state: SyncState) -> None:
        make_folder(self.folder)
        put_whole(self.folder / MACHINE, msgspec.json.encode(state))

    def bundle(self, number: int) -> bytes | None:
        path = self.folder / OWN / bundle_name(number)
        with os_errors(path):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                return None

    def sizes(self) -> dict[int, int]:
        folder = self.folder / OWN
        with os_errors(folder):
            if not folder.is_dir():
                return {}
            return {int(one.name[:8]): one.stat().st_size for one in folder.iterdir() if is_ours(one.name)}

    def keep(self, number: int, data: bytes) -> None:
        make_folder(self.folder / OWN)
        put_whole(self.folder / OWN / bundle_name(number), data)

    def clear(self) -> None:
        """Forget the keys first: what is left without them says nothing."""
        with os_errors(self.folder):
            (self.folder / MACHINE).unlink(missing_ok=True)
        for part in (OWN, GIT):
            remove_tree(self.folder / part)


class Parts:
    """What makes the parts of a sync for a data folder."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def place(self) -> SyncFiles:
        return SyncFiles(self._data)

    def sealing(self, memory: str) -> Sealing:
        return Sealing(memory)

    def remote(self, address: str) -> SyncRemote:
        """Open a folder, or a git repository, by its address."""
        if is_git_address(address):
            return GitRemote(checked_address(address), self._data / SYNC / GIT)
        return FolderRemote(Path(address).expanduser().absolute())

    def new_machine(self) -> tuple[Secrets, str, str]:
        secrets = ciphers.new_secrets()
        return secrets, *ciphers.public(secrets)
