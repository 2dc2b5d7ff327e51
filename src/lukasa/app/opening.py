"""An open memory: the account, and the stores of its workspaces as they are asked for."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from lukasa.app.outside import (
    CURATED,
    decisions_folder,
    document_files,
    document_parser,
    kept_files,
    log_file,
    notices,
    open_curated_file,
    past_reader,
    shared_embedder,
    shared_second,
    split,
    transcripts,
    web,
)
from lukasa.app.places import (
    in_process,
    open_database,
    parsed,
    private,
    require_account,
    require_database,
    require_whole,
    threads_at,
)
from lukasa.app.settings import DEFAULT_ACCOUNT, Settings
from lukasa.model.conversation import Channel, WorkspaceInfo
from lukasa.model.entry import NamedEntry
from lukasa.model.errors import Conflict, InvalidInput
from lukasa.model.events import Actor
from lukasa.model.ids import new_id
from lukasa.model.values import Origin
from lukasa.ports import Clock, Embedder, Span, Threads, nested, within
from lukasa.providers.files.projects import LocalProjects
from lukasa.providers.spans import spans_of_verbs
from lukasa.service import admin, inputs
from lukasa.service.call import CallContext
from lukasa.service.workspace import Workspace
from lukasa.spec.load import parse_spec, preset_text, up_to_date
from lukasa.spec.types import MemorySpec
from lukasa.storage.operations import Operation, SaveChannel, SaveNamed, SaveWorkspace, Transaction
from lukasa.storage.port import Store
from lukasa.storage.sqlite import SqliteStore

if TYPE_CHECKING:
    from lukasa.ports import Chat, CuratedFile
    from lukasa.storage.postgres.bell import JobBell
    from lukasa.storage.postgres.database import Database
    from lukasa.storage.transfer import Given, Ground, Role

_NOTICES = ("LUKASA_REVIEW_COMMAND", "LUKASA_REVIEW_URL")


class OpenMemory:
    """The stores of an account, and the call contexts of its workspaces."""

    def __init__(
        self,
        settings: Settings,
        *,
        embedder: Embedder | None,
        second: Embedder | None = None,
        clock: Clock,
        origin: Origin,
        in_memory: bool = False,
        chat: Chat | None = None,
    ) -> None:
        self.settings = settings
        self._chat = chat
        self._embedder, self._second = embedder, second
        self._clock = clock
        self._origin = origin
        self._in_memory = in_memory
        self._span: Span = spans_of_verbs
        self._stores: dict[str, Store] = {}
        self._opening = threading.Lock()
        self._database: Database | None = None
        self._account_id = ""  # in a database, which may have several accounts
        self._bell: JobBell | None = None
        self._foreign: set[str] = set()  # stores of other accounts that have rung
        self._projects = LocalProjects(None if in_memory else settings.data)
        try:
            self._account = self._open_account()
        except BaseException:
            self._close_database()
            raise

    def close(self) -> None:
        """Close all stores."""
        for store in (*self._stores.values(), self._account):
            store.close()
        self._stores.clear()
        self._close_database()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def account(self) -> Store:
        """The store of the account."""
        return self._account

    def workspaces(self) -> list[WorkspaceInfo]:
        """Return all workspaces, by name."""
        return sorted(self._account.workspaces(), key=lambda info: info.name)

    def folder(self, workspace: Workspace) -> Path | None:
        """Return the folder of a workspace's files; None if it is kept in this process alone."""
        return self._folder(workspace.ctx.info, workspace.spec)

    def threads(self, workspace: Workspace) -> Threads | None:
        """Return the chats of a workspace: which run, and their state; None if it is kept in this process alone."""
        return self._threads(workspace.ctx.info, workspace.spec)

    def measure(self, span: Span) -> None:
        """Open this span around every verb from now on, in addition to those of OpenTelemetry."""
        self._span = nested(span, spans_of_verbs)

    def chat(self) -> Chat:
        """Return the language model of the settings, or the offline responder if none is set."""
        provider = self._chat or self._model(self.settings.chat)
        offline: type[Chat] = import_module("lukasa.providers.chat.offline").OfflineChat
        return provider or offline()

    def _model(self, setting: str) -> Chat | None:
        # Imported on first use: sockets and certificates would add a fifth to the time of a hook.
        provider: Chat | None = import_module("lukasa.providers.chat").open_chat(setting, os.environ)
        return provider

    def _folder(self, info: WorkspaceInfo, spec: MemorySpec) -> Path | None:
        if self._in_memory or spec.backend.store == "memory":
            return None
        return self.settings.data / "workspaces" / info.id

    def _threads(self, info: WorkspaceInfo, spec: MemorySpec) -> Threads | None:
        folder = self._folder(info, spec)
        if folder is None:
            return None
        return threads_at(self.settings.database, folder)

    def _spec_of(self, info: WorkspaceInfo) -> MemorySpec:
        return parsed(up_to_date(info.spec_toml), info.name)

    def _pages(self, id: str, role: Role, store: Store) -> Given:
        """Return a store as an export reads it."""
        made: Given
        if isinstance(store, SqliteStore):
            store.part()
            made = import_module("lukasa.storage.sqlite.transfer").SqlitePages(store, id, role)
        elif self._database is not None and hasattr(store, "part"):
            store.part()
            where = import_module("lukasa.storage.postgres.transfer").DatabaseMemory(
                self._database, self._account_id, self.settings.account_name
            )
            made = where.pages(id)
        else:
            made = import_module("lukasa.storage.memory.transfer").MemoryPages(store, id, role)
        return made

    def _ground(self) -> Ground:
        """Return the place where the store of a workspace that comes in whole is made."""
        made: Ground
        if self._in_memory:
            made = import_module("lukasa.storage.memory.transfer").MemoryGround(self._stores.__setitem__)
        elif self._database is not None:
            found = import_module("lukasa.storage.postgres.transfer")
            made = found.DatabaseGround(self._database, self._account_id)
        else:
            made = import_module("lukasa.storage.sqlite.transfer").FolderGround(self.settings.data)
        return made

    def _chat_opener(self) -> Callable[[], Chat] | None:
        """Return a function that opens the model, or None if the settings name none. This loads nothing."""
        named = self.settings.chat not in ("", "none", "auto")
        if (
            self._chat is None
            and not named
            and not (self.settings.chat == "auto" and os.environ.get("LUKASA_CHAT_MODEL"))
        ):
            return None
        return self.chat

    def _open_context(self, info: WorkspaceInfo) -> CallContext:
        info = replace(info, spec_toml=up_to_date(info.spec_toml))
        spec = parsed(info.spec_toml, info.name)
        return self._context(self._ready(info, spec), spec)

    def _context(self, info: WorkspaceInfo, spec: MemorySpec) -> CallContext:
        folder = self._folder(info, spec)
        return CallContext(
            spec=spec,
            info=info,
            local=self._stores[info.id],
            account=self._account,
            embedder=self._embedder_for(spec),
            second=self._second_for(spec),
            clock=self._clock,
            origin=self._origin,
            transcripts=transcripts,
            parser=document_parser,
            splitter=split,
            files=document_files,
            fetcher=web,
            past=past_reader,
            prompts=None if self._in_memory else self.settings.data / "prompts",
            chat=self._chat_opener(),
            notices=notices if any(os.environ.get(name, "").strip() for name in _NOTICES) else None,
            curated_file=self._curated_file(folder, spec),
            log_file=log_file(folder, spec),
            decisions=decisions_folder(folder, spec),
            kept_files=kept_files(folder),
            threads=None if spec.backend.checkpointer == "none" else self._threads(info, spec),
            span=within(self._span, {"lukasa.workspace": info.id}),
            projects=self._projects,
            folder=self.settings.project,
            unconfirmed=self._unconfirmed,
        )

    def _unconfirmed(self, receipt: str) -> tuple[str, ...]:
        """Return the machines of a sync that have not confirmed an erasure."""
        return ()

    def _curated_file(self, folder: Path | None, spec: MemorySpec) -> CuratedFile | None:
        return None if folder is None or spec.curated != "git" else open_curated_file(folder / CURATED)

    def _embedder_for(self, spec: MemorySpec) -> Embedder | None:
        """Return a workspace's embedder: none if its spec says so, else one given in code, by setting or by spec."""
        if spec.backend.embedder == "none":
            return None
        if self._embedder is not None:
            return self._embedder
        return shared_embedder(self._setting_for(spec), self.settings.models)

    def _second_for(self, spec: MemorySpec) -> Embedder | None:
        """Return the second embedder, if the spec has a signal for it and it is given or belongs to the first one."""
        if "multilingual" not in spec.retrieval.signals or self._embedder_for(spec) is None:
            return None
        if self._embedder is not None:
            return self._second
        return shared_second(self._setting_for(spec), self.settings.models)

    def _setting_for(self, spec: MemorySpec) -> str:
        return self.settings.embedder if self.settings.embedder != "auto" else spec.backend.embedder

    def _open_account(self) -> Store:
        if self._in_memory:
            return in_process()
        for folder in (self.settings.data, self.settings.data / "workspaces"):
            private(folder)
        if self.settings.database:
            private(self.settings.account)
            self._database = open_database(self.settings.database)
            self._account_id = self._database.account(inputs.one_line(self.settings.account_name, "account name"))
            return self._database.store(self._account_id, account=self._account_id, role="account", create=True)
        if self.settings.account_name != DEFAULT_ACCOUNT:
            raise InvalidInput(
                f"account {self.settings.account_name[:60]!r} is named, but a data folder has one account",
                fix="name the database of that account with LUKASA_DATABASE, or unset LUKASA_ACCOUNT",
            )
        require_whole(self.settings.data)
        require_account(self.settings.data)
        return SqliteStore(self.settings.account, role="account", create=True)

    def _close_database(self) -> None:
        if self._bell is not None:
            self._bell.close()
        if self._database is not None:
            self._database.close()

    def _require_database(self, name: str, spec: MemorySpec) -> None:
        """Raise if a spec asks for PostgreSQL and none is set; memory of this process alone needs none."""
        if not self._in_memory:
            require_database(name, spec, self.settings.database)

    def _registered(self, name: str) -> WorkspaceInfo | None:
        return next((info for info in self._account.workspaces() if info.name == name), None)

    def _register(self, name: str, text: str) -> WorkspaceInfo:
        spec = parse_spec(text)
        self._require_database(name, spec)
        info = WorkspaceInfo(new_id(), name, spec.name, text, self._clock.now(), ready=False)
        try:
            about = {"lukasa.workspace": info.id, "lukasa.source": self._origin.surface}
            with self._span("store.create", about):
                self._commit(self._account, SaveWorkspace(info, None))
        except Conflict:
            # Another process registered the name first; names are unique, so this is the same workspace.
            found = self._registered(name)
            if found is None:
                raise
            return found
        return info

    def _same_spec(self, info: WorkspaceInfo, preset: str | None, spec: str | None) -> None:
        asked = spec if spec is not None else preset_text(preset or "")
        if parse_spec(up_to_date(asked)) != parse_spec(up_to_date(info.spec_toml)):
            raise InvalidInput(
                f"workspace {info.name!r} already exists with spec {info.preset!r}",
                fix="leave the preset out, or choose another workspace name",
            )

    def _ready(self, info: WorkspaceInfo, spec: MemorySpec) -> WorkspaceInfo:
        """Open a workspace's store. On its first opening, furnish it and mark it ready; from then on it must exist."""
        with self._opening:
            if info.id not in self._stores:
                store = self._open_workspace(info, spec)
                self._furnish(store, info, spec)
                self._stores[info.id] = store
        if info.ready:
            return info
        ready = replace(info, ready=True)
        try:
            self._commit(self._account, SaveWorkspace(ready, False))
        except Conflict:
            return ready  # another process marked it first
        return ready

    def _open_workspace(self, info: WorkspaceInfo, spec: MemorySpec) -> Store:
        folder = self._folder(info, spec)
        if folder is None:
            return in_process()
        self._require_database(info.name, spec)
        store: Store
        if self._database is not None:
            private(folder)
            store = self._database.store(info.id, account=self._account_id, role="workspace", create=not info.ready)
        else:
            store = SqliteStore(folder, role="workspace", create=not info.ready)
        if store.purged_conversations():
            admin.scrubbing.finish(store, self._threads(info, spec))
        return store

    def _furnish(self, store: Store, info: WorkspaceInfo, spec: MemorySpec) -> None:
        """Create the default channel and the pages of the spec, each once."""
        now = self._clock.now()
        if not any(channel.is_default for channel in store.channels()):
            self._once(store, SaveChannel(Channel(new_id(), info.id, "general", "", True, now)))
        for home, target in (("workspace", store), ("account", self._account)):
            present = {n.name for n in target.named()}
            for default in spec.named:
                if spec.tier(default.tier).home == home and default.name not in present:
                    entry = NamedEntry(default.name, default.tier, default.body.strip(), now, "lukasa@first-start")
                    self._once(target, SaveNamed(entry, 0))

    def _once(self, store: Store, operation: Operation) -> None:
        try:
            self._commit(store, operation)
        except Conflict:
            return  # another process created it at the same moment

    def _commit(self, store: Store, *operations: Operation) -> None:
        actor = Actor(self._origin.principal, self._origin.surface, self._origin.transport)
        store.apply(Transaction(actor, self._clock.now(), operations))
