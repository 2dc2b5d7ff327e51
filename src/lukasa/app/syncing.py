"""Sync of a memory with its other machines: when somebody asks, and by itself beside a worker."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from lukasa.app.opening import OpenMemory
from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.errors import InvalidInput, LukasaError, MissingExtra, Refused, StoreBusy
from lukasa.model.values import Trust
from lukasa.service import admin, jobs
from lukasa.storage.port import Store

if TYPE_CHECKING:
    from lukasa.service.jobs.worker import Stop, Tell
    from lukasa.service.sync.replica import Replica
    from lukasa.service.sync.syncing import Sync

EVERY = 5.0  # minutes
FIRST = 1.0  # seconds after the start of a worker
MACHINE = "sync/machine.json"


class SyncMethods(OpenMemory):
    """Sync with other machines."""

    @property
    def sync(self) -> Sync:
        """The sync of this memory with its other machines: begin it, join it, do a round, see how it stands."""
        if self._in_memory:
            raise InvalidInput("memory of this process alone does not sync", fix="open it in a data folder")
        try:
            parts = import_module("lukasa.providers.sync.sync_files").Parts(self.settings.data)
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] == "lukasa":
                raise
            raise MissingExtra(
                f"sync needs the package {missing.name!r}, which is not installed", fix="pip install 'lukasa[sync]'"
            ) from None
        made: Sync = import_module("lukasa.service.sync.syncing").Sync(
            parts, self._replica, self._erasures, self._clock, self._require_author
        )
        return made

    @property
    def syncs(self) -> bool:
        """Whether this memory syncs; asking loads nothing."""
        return not self._in_memory and (self.settings.data / MACHINE).is_file()

    def _replica(self, machine: str) -> Replica:
        found = import_module("lukasa.service.sync.replica")
        rooms = found.Rooms(
            account=self._account, infos=self._account.workspaces, context=self._open_context, bare=self._bare
        )
        made: Replica = found.Replica(rooms, machine)
        return made

    def _bare(self, info: WorkspaceInfo) -> Store:
        """Open the store of a workspace without giving it a channel and pages: those come from another machine."""
        spec = self._spec_of(info)
        with self._opening:
            if info.id not in self._stores:
                self._stores[info.id] = self._open_workspace(info, spec)
        return self._stores[info.id]

    def _erasures(self) -> Sequence[str]:
        """Return the receipts of all erasures."""
        contexts = [self._open_context(info) for info in self._account.workspaces() if info.ready]
        return [receipt.id for receipt in admin.erasing.receipts(contexts)] if contexts else []

    def _unconfirmed(self, receipt: str) -> tuple[str, ...]:
        return self.sync.unconfirmed(receipt) if self.syncs else ()

    def _require_author(self, what: str) -> None:
        if self._origin.trust is not Trust.AUTHOR:
            raise Refused(f"{self._origin.principal!r} cannot {what}: only the owner can", fix="ask the owner")

    def _sync_regularly(self, stop: Stop, tell: Tell) -> None:
        """Sync every few minutes until `stop` is set, if this memory syncs. A trouble is told, once while it lasts."""
        minutes, before, pause = sync_minutes(), "", FIRST
        while minutes and not stop.wait(pause):
            pause = minutes * 60
            if not self.syncs:
                continue
            try:
                done = self.sync.run(quiet=True)
                trouble = "; ".join((*done.refused, *done.waits))
            except StoreBusy:
                continue  # somebody syncs by hand
            except LukasaError as error:
                trouble = jobs.worker.said(error)
            except Exception as error:  # noqa: BLE001 - the worker must survive every error of a sync
                trouble = jobs.worker.said(error)
            if trouble and trouble != before:
                tell(jobs.worker.Trouble("sync", trouble))
            before = trouble


def sync_minutes() -> float:
    """Return how often a worker syncs; 0 is never."""
    given = os.environ.get("LUKASA_SYNC_MINUTES", "").strip()
    try:
        minutes = float(given) if given else EVERY
    except ValueError:
        minutes = -1.0
    if not 0 <= minutes <= 1440:
        raise InvalidInput(f"LUKASA_SYNC_MINUTES is {given[:60]!r}", fix="give minutes up to 1440, or 0 for never")
    return minutes
