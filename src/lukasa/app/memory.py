"""A Lukasa: the memory of an account, opened from settings."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lukasa.app.backups import BackupMethods
from lukasa.app.outside import past_reader
from lukasa.app.removal import RemovalMethods
from lukasa.app.settings import DEFAULT_WORKSPACE, Settings
from lukasa.app.working import WorkMethods
from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.errors import Conflict, NotFound
from lukasa.model.values import Origin, Trust
from lukasa.ports import Clock, Embedder, SystemClock
from lukasa.providers.embed import EmbedderStatus
from lukasa.service import admin, inputs
from lukasa.service.workspace import Workspace
from lukasa.spec.load import preset_text

if TYPE_CHECKING:
    from lukasa.ports import Chat, ModelsInUse, ModelTrial
    from lukasa.service.admin.access import AccessControl
    from lukasa.service.admin.projects import ProjectBook
    from lukasa.service.past.importing import Import


class Lukasa(BackupMethods, RemovalMethods, WorkMethods):
    """The memory of an account: its workspaces, and the tiers that they share."""

    @classmethod
    def open(
        cls,
        data: str | Path | None = None,
        *,
        database: str | None = None,
        account: str | None = None,
        embedder: Embedder | str | None = None,
        second_embedder: Embedder | None = None,
        clock: Clock | None = None,
        surface: str = "library",
        transport: str = "in-process",
        principal: str | None = None,
        in_memory: bool = False,
        chat: Chat | None = None,
        project: str | Path | None = None,
    ) -> Lukasa:
        """Open memory in a folder (the platform's data folder by default), creating it on first use.

        With `database`, the URL of a PostgreSQL database, memory is there, in an `account` of that name; the folder
        keeps what are files. `embedder` is a setting ("auto", "none", "folder:…") or an embedder of your own;
        `second_embedder` is one beside your own, for the signal `multilingual`.
        `in_memory` keeps everything in this process and writes no file. `chat` is a language model of your own, instead
        of the setting's. `project` is a folder of the project at hand, whose files entries may cite; by default that of
        LUKASA_PROJECT, or none.
        """
        setting = embedder if isinstance(embedder, str) else None
        settings = Settings.resolve(data=data, database=database, account=account, embedder=setting, project=project)
        settings.embedder_status()  # refuse an unknown setting here, not at the first use
        given = None if isinstance(embedder, str) else embedder
        origin = Origin(principal or _user(), surface, transport, Trust.AUTHOR)
        time = clock or SystemClock()
        return cls(
            settings, embedder=given, second=second_embedder, clock=time, origin=origin, in_memory=in_memory, chat=chat
        )

    def workspace(
        self, name: str = DEFAULT_WORKSPACE, *, preset: str | None = None, spec: str | None = None
    ) -> Workspace:
        """Return the workspace of that name; on first use create it, with a preset or the text of a spec file."""
        label = inputs.label(name, "workspace name")
        info = self._registered(label)
        if info is None:
            inputs.one_line(label, "workspace name")
            text = spec if spec is not None else preset_text(preset or self.settings.preset)
            info = self._register(label, text)
        elif preset is not None or spec is not None:
            self._same_spec(info, preset, spec)
        return Workspace(self._open_context(info))

    def models(self) -> ModelsInUse:
        """Return the models that the settings name, and whether each can be used, without calling them."""
        made: ModelsInUse = import_module("lukasa.app.trying").in_use(self.settings)
        return made

    def try_model(self, what: Literal["chat", "embedder"], setting: str | None = None) -> ModelTrial:
        """Ask a model once, of the present setting or of another one, and say what came of it. Nothing is kept."""
        trying = import_module("lukasa.app.trying")
        made: ModelTrial = (trying.try_chat if what == "chat" else trying.try_embedder)(self.settings, setting)
        return made

    def create_workspace(self, name: str, *, preset: str | None = None, spec: str | None = None) -> Workspace:
        """Create the workspace of that name; Conflict if there is one."""
        if self._registered(inputs.label(name, "workspace name")) is not None:
            raise Conflict(f"the workspace {name[:60]!r} exists already", fix="use it, or choose another name")
        return self.workspace(name, preset=preset, spec=spec)

    def existing(self, name: str) -> Workspace:
        """Return the workspace of that name; NotFound if there is none."""
        if self._registered(inputs.label(name, "workspace name")) is None:
            raise NotFound(
                f"no workspace {name[:60]!r}",
                fix="`lukasa workspace list` shows the names, `lukasa workspace create` makes one",
            )
        return self.workspace(name)

    @property
    def projects(self) -> ProjectBook:
        """Which workspace belongs to the project in a folder; to be shown, set and forgotten."""
        made: type[ProjectBook] = admin.projects.ProjectBook
        return made(self._account, self._account.workspaces, self._projects, self._clock, self._origin)

    def project_workspace(self, folder: str | Path) -> Workspace:
        """Return the workspace of the project in a folder, created on first use.

        All folders of a project have the same one: its worktrees, its clones, and the folder after it was renamed.
        """
        opened: list[Workspace] = []

        def open_(name: str) -> WorkspaceInfo:
            opened.append(self.workspace(name))
            return opened[0].ctx.info

        self.projects.take(str(folder), open_)
        return opened[0]

    def importing(
        self,
        path: str | Path,
        *,
        format: str = "",
        workspace: str | None = None,
        since: datetime | str | None = None,
        tier: str | None = None,
        mine: bool = False,
        bind: Callable[[Workspace], Workspace] | None = None,
    ) -> Import:
        """Return an import of what another program remembers: `plan()` says what there is, `run()` brings it.

        Without a `format` the path is recognised. Without a `workspace`, what belongs to a project goes to the
        workspace of its folder, and all else to `main`. `since` leaves out what was said before. With `mine`, rules
        files count as the author's own words. `bind` binds scope keys of each workspace.
        """
        reader = past_reader()
        if workspace is not None:
            inputs.one_line(workspace, "workspace name")
        made: Import = import_module("lukasa.service.past.importing").Import(
            reader,
            str(path),
            format or reader.recognise(str(path)),
            _Places(self, workspace, bind or (lambda one: one)),
            inputs.moment(since, "since") if since is not None else None,
            tier,
            mine,
        )
        return made

    def embedder_status(self) -> EmbedderStatus:
        """Say whether the configured embedder is available."""
        return self.settings.embedder_status()

    @property
    def access(self) -> AccessControl:
        """The access control of this memory: grants and credentials of other clients."""
        return admin.access.AccessControl(self, self._account, self._clock, self._origin, self._span)


class _Places:
    """The workspaces that an import goes into: one that is named, or those of the projects."""

    def __init__(self, memory: Lukasa, name: str | None, bind: Callable[[Workspace], Workspace]) -> None:
        self._memory = memory
        self._name = name
        self._bind = bind
        self._open: dict[str, Workspace] = {}
        self._names: dict[str, str] = {}  # of the workspaces of folders

    def named(self, folder: str) -> str:
        if self._name is not None:
            return self._name
        if not folder:
            return DEFAULT_WORKSPACE
        if folder not in self._names:
            self._names[folder] = self._memory.projects.at(folder).workspace
        return self._names[folder]

    def found(self, name: str) -> Workspace | None:
        if name not in self._open and all(info.name != name for info in self._memory.workspaces()):
            return None
        return self._open[name] if name in self._open else self._bind(self._memory.existing(name))

    def made(self, name: str) -> Workspace:
        if name not in self._open:
            folder = next((folder for folder, named in self._names.items() if named == name), "")
            found = self._memory.project_workspace(folder) if folder else self._memory.workspace(name)
            self._open[name] = self._bind(found)
        return self._open[name]


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # the last where users are in no list
        return "owner"
