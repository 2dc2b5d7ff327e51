"""Taking memory out into a file and bringing it in: the account, a workspace, and workspaces into one another."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from lukasa.app.opening import OpenMemory
from lukasa.app.places import memory_at, require_engine, require_kept
from lukasa.app.settings import DEFAULT_WORKSPACE, Settings
from lukasa.model.errors import Conflict, InvalidInput
from lukasa.model.values import Trust
from lukasa.service import admin
from lukasa.spec.load import parse_spec, up_to_date

if TYPE_CHECKING:
    from lukasa.service.admin.page_folder import Pages
    from lukasa.service.admin.portable import ImportPlan, Portable, What, Whole
    from lukasa.storage.export_file import ExportFile, Written


class PortableMethods(OpenMemory):
    """Export, import and merging."""

    @property
    def portable(self) -> Portable:
        """Export and import of this memory."""
        made: type[Portable] = admin.portable.Portable
        return made(
            admin.portable.Rooms(
                account=self._account,
                infos=self._account.workspaces,
                context=self._open_context,
                holds=lambda info: info.id in self._stores or self._folder(info, self._spec_of(info)) is not None,
                pages=self._pages,
                ground=self._ground,
                fits=self._require_room,
                clock=self._clock,
                origin=self._origin,
                program="lukasa",
            )
        )

    def export(
        self, path: str | Path, *, workspace: str | None = None, what: What = "all", vectors: bool = False
    ) -> Written:
        """Write all memory to a file that only its owner can read: JSON Lines, packed if it ends in .gz or .zst.

        `workspace` exports one workspace alone; `what="account"` exports the account's own store alone.
        """
        chosen: What = "workspace" if workspace is not None else what
        return self.portable.save(Path(path).expanduser(), what=chosen, workspace=workspace or "", vectors=vectors)

    def export_pages(self, folder: str | Path, workspace: str = DEFAULT_WORKSPACE, *, sensitive: bool = False) -> Pages:
        """Write a workspace as a new folder of Markdown pages; secrets are masked, unless they are asked for."""
        return self.portable.pages(Path(folder).expanduser(), workspace, sensitive=sensitive)

    def import_plan(self, path: str | Path, *, into: str = "", trust: Trust = Trust.AUTHOR) -> ImportPlan:
        """Return what `import_file` would do with an export, and do nothing."""
        with open_export(Path(path).expanduser()) as file:
            return self.portable.plan(file, into=into, trust=trust)

    def import_file(
        self, path: str | Path, *, into: str = "", trust: Trust = Trust.AUTHOR, confirm: str = ""
    ) -> ImportPlan:
        """Bring an export in. A workspace that is not here comes in whole; others are merged, and nothing is lost.

        `into` names the workspace that the only one of the file is merged into. `trust` is the most that entries keep.
        `confirm` is the digest of a plan: if the import would do anything else by now, it is refused.
        """
        with open_export(Path(path).expanduser()) as file:
            return self.portable.run(file, into=into, trust=trust, confirm=confirm)

    def merge_plan(self, name: str, into: str) -> ImportPlan:
        """Return what `merge_workspaces` would do, and do nothing."""
        with self._taken_out(name, into) as file:
            return self.portable.plan(file, into=into, live=True)

    def merge_workspaces(self, name: str, into: str, *, confirm: str = "") -> ImportPlan:
        """Merge all of a workspace into another one, as an import of its export does. The first one stays as it is."""
        with self._taken_out(name, into) as file:
            return self.portable.run(file, into=into, confirm=confirm, live=True)

    def _taken_out(self, name: str, into: str) -> ExportFile:
        """Return an export of a workspace in a file that has no name."""
        if name == into:
            raise InvalidInput("a workspace cannot be merged into itself", fix="name two workspaces")
        self.portable.existing(into)
        stream = import_module("tempfile").TemporaryFile()
        self.portable.write(stream, what="workspace", workspace=name)
        stream.seek(0)
        opened: ExportFile = import_module("lukasa.storage.export_file").ExportFile(stream, f"workspace {name[:60]}")
        return opened

    def _require_room(self, name: str, spec_toml: str) -> None:
        """Raise if a workspace with this spec cannot be kept here."""
        spec = parse_spec(up_to_date(spec_toml), file=f"workspace {name[:60]}")
        self._require_database(name, spec)
        if not self._in_memory:
            require_kept(name, spec)


def open_export(path: Path, tell: Callable[[int], None] = lambda size: None) -> ExportFile:
    """Open an export, and verify every line of it."""
    opened: ExportFile = import_module("lukasa.storage.export_file").ExportFile.open(path, tell)
    return opened


def clear_whole(settings: Settings, file: ExportFile) -> bool:
    """Remove what an interrupted import of a whole account has left in a place without memory; False if nothing."""
    if not admin.portable.all_of_it(file):
        return False
    target = memory_at(settings.database, settings.data, settings.account_name)
    try:
        found = target.mark() is not None
        if found:
            target.clear()
        return found
    except Conflict:  # memory is there, and whole
        return False
    finally:
        target.close()


def import_whole(settings: Settings, file: ExportFile, tell: Callable[[int], None]) -> Whole | None:
    """Bring a whole account into the place that the settings name, if it holds no memory; otherwise return None."""
    if not admin.portable.all_of_it(file):
        return None
    target = memory_at(settings.database, settings.data, settings.account_name)

    def fits(name: str, text: str) -> None:
        require_engine(name, text, settings.database)

    try:
        done: Whole | None = admin.portable.into_nothing(file, target, fits, tell)
        return done
    finally:
        target.close()
