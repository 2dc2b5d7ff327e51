"""Taking out for good: erasures, and the removal of workspaces and of the account."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from lukasa.app.places import memory_at, open_database, threads_at
from lukasa.app.portable import PortableMethods
from lukasa.app.settings import Settings
from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.errors import NotFound
from lukasa.providers import folders
from lukasa.service import admin
from lukasa.service.call import CallContext
from lukasa.storage.sqlite.store_files import MEMORY_FILES

if TYPE_CHECKING:
    from lukasa.service.admin.erasing import ErasurePlan, Receipt
    from lukasa.service.admin.removing import AccountRemoval, Removal, Removed, Ways


class RemovalMethods(PortableMethods):
    """Erasing, removing and renaming."""

    def rename_workspace(self, name: str, to: str) -> WorkspaceInfo:
        """Give a workspace another name; its id and all that it holds stay."""
        return admin.removing.rename(self._ways(), self.portable.existing(name), to)

    def removal_plan(self, name: str) -> Removal:
        """List all that goes if a workspace is removed for good, and remove nothing."""
        return admin.removing.plan(self._ways(), self.portable.existing(name))

    def remove_workspace(self, name: str, *, confirm: str) -> Removed:
        """Remove a workspace for good, with its files; `confirm` repeats the digest of the plan. There is no undo."""
        return admin.removing.execute(self._ways(), self.portable.existing(name), confirm)

    def erase_plan(
        self,
        *,
        entry: str | None = None,
        source: str | None = None,
        person: str | None = None,
        aliases: Sequence[str] | None = None,
        group: Sequence[str] = (),
        shared: str = "redact",
    ) -> ErasurePlan:
        """Return what an erasure would remove from all workspaces and the account; see `Workspace.erase_plan`."""
        request = admin.erasing.request_of(entry, source, person, aliases=aliases, group=group, shared=shared)
        shown: ErasurePlan = admin.erasing.plan(self._everywhere(), request, account=True)
        return shown

    def erase(
        self,
        *,
        entry: str | None = None,
        source: str | None = None,
        person: str | None = None,
        aliases: Sequence[str] | None = None,
        group: Sequence[str] = (),
        shared: str = "redact",
        confirm: str,
    ) -> Receipt:
        """Erase what `erase_plan` lists from all workspaces and the account; see `Workspace.erase`."""
        request = admin.erasing.request_of(entry, source, person, aliases=aliases, group=group, shared=shared)
        receipt: Receipt = admin.erasing.execute(self._everywhere(), request, confirm, account=True)
        return receipt

    def _everywhere(self) -> list[CallContext]:
        infos = [info for info in self._account.workspaces() if info.ready]
        if not infos:
            raise NotFound("there is no workspace", fix="make one with `lukasa workspace create`")
        return [self._open_context(info) for info in infos]

    def _ways(self) -> Ways:
        made: Ways = admin.removing.Ways(
            account=self._account,
            open=lambda info: self._pages(info.id, "workspace", self._open_context(info).local),
            threads=lambda info: self._threads(info, self._spec_of(info)),
            files=lambda info: folders.count_files(self.settings.data / "workspaces" / info.id, but=MEMORY_FILES),
            free=self._free,
            drop=self._drop_store,
            sweep=self._sweep,
            clock=self._clock,
            origin=self._origin,
        )
        return made

    def _free(self, info: WorkspaceInfo) -> None:
        """Close the store of a workspace here, and raise if another process has it open."""
        if self._folder(info, self._spec_of(info)) is None:
            return
        store = self._stores.pop(info.id, None)
        if store is not None:
            store.close()
        if self._database is None:
            folders.require_closed(self.settings.data / "workspaces" / info.id)

    def _drop_store(self, info: WorkspaceInfo) -> None:
        """Remove the store of a workspace, and all of its files."""
        self._stores.pop(info.id, None)
        if self._folder(info, self._spec_of(info)) is None:
            return
        if self._database is not None:
            found = import_module("lukasa.storage.postgres.transfer")
            found.DatabaseMemory(self._database, self._account_id, self.settings.account_name).remove_store(info.id)
        folders.remove_tree(self.settings.data / "workspaces" / info.id)

    def _sweep(self) -> bool:
        """Rewrite the files that may still hold what was removed; return whether none does."""
        if self._database is None:
            return self._account.purge_files()
        swept: bool = import_module("lukasa.storage.postgres.rewriting").rewrite(
            self._database, large=False, whole=True
        )
        return swept


def account_removal(settings: Settings) -> AccountRemoval:
    """Return the removal of the account that the settings name. Nothing of it may be open."""
    place = memory_at(settings.database, settings.data, settings.account_name)
    data = settings.data

    def mine(ids: Sequence[str]) -> list[Path]:
        every = [data / "workspaces" / id for id in ids]
        return every if settings.database else [data / "workspaces", data / "prompts"]

    def drop_files(ids: Sequence[str]) -> None:
        for folder in mine(ids):
            folders.remove_tree(folder)
        if not settings.database:
            folders.remove_tree(data / "account")

    def sweep() -> bool:
        if not settings.database:
            return True
        database = open_database(settings.database)
        try:
            swept: bool = import_module("lukasa.storage.postgres.rewriting").rewrite(database, large=False, whole=True)
            return swept
        finally:
            database.close()

    made: AccountRemoval = admin.removing.AccountRemoval(
        place,
        require_unused=lambda: None if settings.database else folders.require_closed(data),
        threads=lambda id: threads_at(settings.database, data / "workspaces" / id),
        files=lambda ids: sum(folders.count_files(folder, but=MEMORY_FILES) for folder in mine(ids)),
        drop_files=drop_files,
        sweep=sweep,
        beside=not settings.database,
    )
    return made
