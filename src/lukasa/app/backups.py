"""Backups of a memory that is in use, and bringing one back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lukasa.app.opening import OpenMemory
from lukasa.app.places import memory_at, require_engine, threads_at, trial_ground
from lukasa.app.settings import Settings
from lukasa.model.errors import InvalidInput
from lukasa.ports import CHECKPOINTS
from lukasa.providers.checkpoints import CheckpointFile
from lukasa.service import admin
from lukasa.storage.sqlite.store_files import MEMORY_FILES
from lukasa.storage.transfer import THE_ACCOUNT

if TYPE_CHECKING:
    from lukasa.providers.backup_files import FoundFile
    from lukasa.service.admin.backing_up import BackedUp, Backups
    from lukasa.service.admin.restoring import Checked, Listed, Restored
    from lukasa.storage.export_file import Exported
    from lukasa.storage.transfer import Watch


class BackupMethods(OpenMemory):
    """Making backups."""

    @property
    def backups(self) -> Backups:
        """Backups of this memory, made while it is in use."""
        files = import_module("lukasa.providers.backup_files")
        made: Backups = admin.backing_up.Backups(
            admin.backing_up.Source(
                moment=self._moment,
                files=lambda ids: files.held(self.settings.data, [] if self._in_memory else ids, MEMORY_FILES),
                copy_chats=self._copied_chats,
                ground=trial_ground,
                chats=CheckpointFile,
                clock=self._clock,
                origin=self._origin,
                program="lukasa",
            )
        )
        return made

    def backup(
        self,
        folder: str | Path,
        *,
        keep: str = "",
        keep_last: int | None = None,
        purge: bool = False,
        tell: Callable[[int], None] = lambda rows: None,
    ) -> BackedUp:
        """Make a backup of all memory in a folder of backups, while it is in use, and try it out.

        `keep`, as in 7d/4w/12m, and `keep_last` say which backups stay; without them all do, and the last good one
        always does. `purge` takes out of older backups what has been removed for good since.
        """
        path = Path(folder).expanduser().absolute()
        if self._in_memory:
            raise InvalidInput("memory of this process alone has no backup", fix="export it to a file")
        if path.resolve().is_relative_to(self.settings.data.resolve()):
            raise InvalidInput(
                f"{path} is in the data folder, and would be lost with it", fix="choose a folder elsewhere"
            )
        return self.backups.run(path, keep=keep, keep_last=keep_last, purge=purge, tell=tell)

    def list_backups(self, folder: str | Path) -> list[Listed]:
        """Return the backups of a folder, newest first."""
        return list_backups(folder)

    def check_backups(self, folder: str | Path, *, every: bool = False) -> list[Checked]:
        """Read all backups of a folder, and try out the newest one, or all of them."""
        return check_backups(folder, every=every)

    @contextmanager
    def _moment(self) -> Iterator[Sequence[Exported]]:
        """Hold all stores at one moment, for reading; nobody waits for it."""
        exported: type[Exported] = import_module("lukasa.storage.export_file").Exported
        infos = [info for info in self._account.workspaces() if self._folder(info, self._spec_of(info)) is not None]
        contexts = [(info, self._open_context(info)) for info in infos]  # opening one may write to the account
        stores: list[Any] = [self._account, *(ctx.local for _, ctx in contexts)]
        for store in stores:
            store.part()
        with ExitStack() as stack:
            if self._database is None:
                together = import_module("lukasa.storage.sqlite.transfer").at_one_moment
                stack.enter_context(together(stores))
            else:
                for store in stores:
                    stack.enter_context(store.snapshot())
            first = exported(self._pages(THE_ACCOUNT, "account", self._account))
            yield [first, *(exported(self._pages(i.id, "workspace", ctx.local), i) for i, ctx in contexts)]

    def _copied_chats(self, id: str, conversations: Sequence[str], folder: Path) -> FoundFile | None:
        """Copy the states of chats of a workspace to a file in a folder; None if there are none."""
        folder.mkdir(parents=True, mode=0o700)
        copy = CheckpointFile(folder)
        if self._database is None:
            if not CheckpointFile(self.settings.data / "workspaces" / id).copy_to(folder):
                return None
        else:
            here = threads_at(self.settings.database, folder)
            if not import_module("lukasa.providers.checkpoint_copy").copy_threads(here, copy, conversations):
                return None
        found: type[FoundFile] = import_module("lukasa.providers.backup_files").FoundFile
        return found(f"workspaces/{id}/{CHECKPOINTS}", folder / CHECKPOINTS, 0o600)


def list_backups(folder: str | Path) -> list[Listed]:
    """Return the backups of a folder, newest first."""
    found: list[Listed] = admin.restoring.listed(_backup_folder(folder))
    return found


def check_backups(
    folder: str | Path,
    *,
    at: object = None,
    every: bool = False,
    tell: Callable[[int], None] = lambda rows: None,
) -> list[Checked]:
    """Read all backups of a folder, and try out the newest one, that of a time, or all of them."""
    found: list[Checked] = admin.restoring.check(_backup_folder(folder), trial_ground, at=at, every=every, tell=tell)
    return found


def restore_backup(
    settings: Settings,
    folder: str | Path,
    *,
    at: object = None,
    dry_run: bool = False,
    watch: Watch = lambda steps: lambda rows: None,
) -> Restored:
    """Bring a backup back into the place that the settings name, which must hold no memory."""
    backups, data = _backup_folder(folder), settings.data
    files = import_module("lukasa.providers.backup_files")
    target = memory_at(settings.database, data, settings.account_name)

    def put_chats(id: str, conversations: Sequence[str], pieces: Callable[[], Iterator[bytes]]) -> None:
        with import_module("tempfile").TemporaryDirectory(prefix="lukasa-chats-") as place:
            (Path(place) / CHECKPOINTS).write_bytes(b"".join(pieces()))
            there = threads_at(settings.database, data)
            copy_threads = import_module("lukasa.providers.checkpoint_copy").copy_threads
            copy_threads(CheckpointFile(Path(place)), there, conversations)

    place = admin.restoring.Place(
        target=target,
        fits=lambda name, text: require_engine(name, text, settings.database),
        require_absent=lambda paths: files.require_absent(data, paths),
        put=lambda *file: files.put(data, *file),
        put_chats=put_chats if settings.database else None,
    )
    try:
        done: Restored = admin.restoring.restore(backups, place, watch, at=at, dry_run=dry_run)
        return done
    finally:
        target.close()


def is_backup_folder(path: str | Path) -> bool:
    """Say whether a path is a folder of backups."""
    found: bool = import_module("lukasa.storage.backup_folder").is_backup(Path(path).expanduser())
    return found


def _backup_folder(folder: str | Path) -> Any:
    return import_module("lukasa.storage.backup_folder").BackupFolder.open(Path(folder).expanduser().absolute())
