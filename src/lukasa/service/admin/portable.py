"""Export and import: all that a memory holds into a file, and out of one.

A store that is not here yet comes in whole, row by row, with its log; one that is here is merged. Only the owner may do
either: a file of everything is a copy of everything, and what comes out of a file was written by somebody else.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model import system
from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.errors import Conflict, InvalidInput, NotFound, Refused
from lukasa.model.events import Actor, EventDraft, canonical_json
from lukasa.model.values import Origin, Trust
from lukasa.ports import Clock
from lukasa.service import inputs
from lukasa.service.admin import page_folder
from lukasa.service.admin.merging import HERE_ONLY, Merged, Merging, Outcome, Sample, merge, outlook
from lukasa.service.admin.page_folder import Pages
from lukasa.service.call import CallContext
from lukasa.spec.load import parse_spec, up_to_date
from lukasa.storage import export_file, transfer
from lukasa.storage.export_file import Exported, ExportFile, FileStore, Written
from lukasa.storage.export_records import KINDS
from lukasa.storage.operations import Record, SaveWorkspace, Transaction
from lukasa.storage.port import Store
from lukasa.storage.transfer import THE_ACCOUNT, Given, Ground, Role

_OF_PLACES = {part.name for part in (*HERE_ONLY, transfer.ACCESS)}  # what only tells how memory is used

What = Literal["workspace", "account", "all"]
Way = Literal["whole", "merge"]
Tell: TypeAlias = Callable[[int], None]
MOST_NAME = 60  # characters of a name in a message


class StorePlan(Struct, frozen=True):
    """What becomes of one store of a file: it comes in whole or is merged into `name`; counts by kind and outcome."""

    id: str
    name: str
    way: Way
    counts: dict[str, dict[Outcome, int]]
    samples: tuple[Sample, ...] = ()

    def total(self, *outcomes: Outcome) -> int:
        return sum(of.get(outcome, 0) for of in self.counts.values() for outcome in outcomes)


class ImportPlan(Struct, frozen=True):
    """What an import does. `digest` is of the file and of all that is listed here; an accepted import repeats it."""

    file: str
    made_at: str
    lines: int
    trusts: dict[str, int]
    sensitive: int
    stores: tuple[StorePlan, ...]
    digest: str
    done: bool = False

    def total(self, *outcomes: Outcome) -> int:
        return sum(store.total(*outcomes) for store in self.stores)


class Rooms(Struct, frozen=True, kw_only=True):
    """What an import and an export need of the memory that is open: its stores, and how others are made."""

    account: Store
    infos: Callable[[], Sequence[WorkspaceInfo]]
    context: Callable[[WorkspaceInfo], CallContext]
    holds: Callable[[WorkspaceInfo], bool]  # whether the workspace has a store that an export can read
    pages: Callable[[str, Role, Store], Given]
    ground: Callable[[], Ground]
    fits: Callable[[str, str], None]  # refuses a workspace whose spec this place cannot keep
    clock: Clock
    origin: Origin
    program: str


class Portable:
    """Takes a memory out, and brings one in."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

    def _require_owner(self, what: str) -> None:
        if self._rooms.origin.trust is not Trust.AUTHOR:
            raise Refused(f"only the owner can {what}", fix="ask the owner")

    # Out

    def write(
        self,
        stream: BinaryIO,
        *,
        what: What = "all",
        workspace: str = "",
        vectors: bool = False,
        tell: Tell = lambda lines: None,
    ) -> Written:
        """Write an export to a stream: of one workspace, of the account's own store, or of everything."""
        self._require_owner("export memory")
        chosen, told = self._chosen(what, workspace), list[Written]()
        head = export_file.header(self._rooms.clock.now(), what, vectors=vectors, program=self._rooms.program)
        for line in export_file.lines(head, chosen, told.append, tell):
            stream.write(line)
        return told[0]

    def save(
        self,
        path: Path,
        *,
        what: What = "all",
        workspace: str = "",
        vectors: bool = False,
        tell: Tell = lambda lines: None,
    ) -> Written:
        """Write an export to a file that only its owner can read; .gz and .zst pack it. It is there whole, or not."""
        temporary = path.with_name(f".{path.name}.part")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | system.CLOEXEC, 0o600)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    with export_file.packed(file, path.name) as stream:
                        done = self.write(stream, what=what, workspace=workspace, vectors=vectors, tell=tell)  # type: ignore[arg-type]
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(path)
            except BaseException:
                with suppress(OSError):
                    temporary.unlink()
                raise
        except OSError as error:
            raise InvalidInput(f"{path} cannot be written: {error.strerror}", fix="choose another file") from error
        return done

    def pages(self, folder: Path, workspace: str, *, sensitive: bool = False) -> Pages:
        """Write a workspace, with the account's tiers, as a folder of Markdown pages to read.

        Secrets of sensitive entries are masked, unless they are asked for.
        """
        self._require_owner("export memory")
        rooms, info = self._rooms, self.existing(workspace)
        ctx = rooms.context(info)
        stores = [rooms.pages(THE_ACCOUNT, "account", rooms.account), rooms.pages(info.id, "workspace", ctx.local)]
        return page_folder.write(folder, info.name, stores, sensitive=sensitive)

    def existing(self, name: str) -> WorkspaceInfo:
        """Return the workspace of that name; NotFound if there is none."""
        found = next((info for info in self._rooms.infos() if info.name == name), None)
        if found is None:
            raise NotFound(f"no workspace {name[:MOST_NAME]!r}", fix="`lukasa workspace list` shows the names")
        return found

    def _chosen(self, what: What, workspace: str) -> Iterator[Exported]:
        if what not in ("workspace", "account", "all"):
            raise InvalidInput(f"{what!r} cannot be exported", fix="use workspace, account or all")
        rooms = self._rooms
        infos = [self.existing(workspace)] if what == "workspace" else rooms.infos()
        return self._stores(what, [info for info in infos if rooms.holds(info)])

    def _stores(self, what: What, infos: Sequence[WorkspaceInfo]) -> Iterator[Exported]:
        """Give the stores one after the other, each as it is at one moment."""
        rooms = self._rooms
        if what != "account":
            contexts = [(info, rooms.context(info)) for info in infos]  # opening one may write to the account
        if what != "workspace":
            with rooms.account.snapshot():
                yield Exported(rooms.pages(THE_ACCOUNT, "account", rooms.account))
        if what != "account":
            for info, ctx in contexts:
                with ctx.local.snapshot():
                    yield Exported(rooms.pages(info.id, "workspace", ctx.local), info)

    # In

    def plan(
        self,
        file: ExportFile,
        *,
        into: str = "",
        trust: Trust = Trust.AUTHOR,
        live: bool = False,
        tell: Tell = lambda steps: None,
    ) -> ImportPlan:
        """Return what an import would do, and do nothing.

        With `live`, the file was made just now of a workspace in use: the digest covers its memory, and not how it is
        used.
        """
        self._require_owner("import memory")
        stores = tuple(self._planned(store, into, trust, tell) for store in _wanted(file, into))
        return _plan(file, stores, into, trust, live)

    def run(
        self,
        file: ExportFile,
        *,
        into: str = "",
        trust: Trust = Trust.AUTHOR,
        confirm: str = "",
        live: bool = False,
        tell: Tell = lambda steps: None,
    ) -> ImportPlan:
        """Bring a file in. With `confirm`, only what a dry run with that digest showed.

        If it is killed, the same call goes on: what has come in already is known.
        """
        self._require_owner("import memory")
        if confirm and self.plan(file, into=into, trust=trust, live=live).digest != confirm:
            raise Conflict("what would be imported has changed since the dry run", fix="look at a new dry run")
        stores = tuple(self._taken(file, store, into, trust, tell) for store in _wanted(file, into))
        return replace(_plan(file, stores, into, trust, live), done=True)

    def clear(self, file: ExportFile) -> list[str]:
        """Remove what an interrupted import of a file has left of workspaces that are not here; return their names."""
        self._require_owner("import memory")
        here, ground, cleared = {info.id for info in self._rooms.infos()}, self._rooms.ground(), list[str]()
        for store in file.stores:
            if store.workspace is not None and store.about.id not in here and ground.left(store.about):
                ground.clear(store.about)
                cleared.append(store.workspace.name)
        return cleared

    def _home(self, store: FileStore, into: str, trust: Trust) -> WorkspaceInfo | None:
        """Return the workspace that a store is merged into; None if it comes in whole."""
        info, every = store.workspace, self._rooms.infos()
        if into:
            return self.existing(into)
        assert info is not None
        found = next((one for one in every if one.id == info.id), None)
        if found is None:
            taken = next((one for one in every if one.name == info.name), None)
            if taken is not None:
                raise Conflict(
                    f"there is another workspace {info.name[:MOST_NAME]!r} here",
                    fix=f"merge the file into it with --into {info.name[:MOST_NAME]}, or rename it first",
                )
            if trust is not Trust.AUTHOR:
                raise Conflict(
                    f"workspace {info.name[:MOST_NAME]!r} is not here, and one that comes in whole keeps its trust",
                    fix="create a workspace, and name it with --into",
                )
            inputs.one_line(inputs.label(info.name, "workspace name"), "workspace name")
            self._rooms.fits(info.name, info.spec_toml)
        return found

    def _merging(self, store: FileStore, home: WorkspaceInfo | None, trust: Trust) -> tuple[Merging, Store, str]:
        rooms, source = self._rooms, store.source
        if home is None:
            merging = Merging(store, rooms.account, rooms.clock.now(), source=source, trust=trust)
            return merging, rooms.account, THE_ACCOUNT
        ctx = rooms.context(home)
        at = rooms.clock.now()
        merging = Merging(store, ctx.local, at, here=home, spec=ctx.spec, source=source, trust=trust)
        return merging, ctx.local, home.name

    def _planned(self, store: FileStore, into: str, trust: Trust, tell: Tell) -> StorePlan:
        home = None if store.workspace is None else self._home(store, into, trust)
        if store.workspace is not None and home is None:
            return _whole(store)
        merging, _, name = self._merging(store, home, trust)
        return _merged(store, name, outlook(merging, tell))

    def _taken(self, file: ExportFile, store: FileStore, into: str, trust: Trust, tell: Tell) -> StorePlan:
        home = None if store.workspace is None else self._home(store, into, trust)
        actor = Actor(self._rooms.origin.principal, "import", self._rooms.origin.transport)
        seq, digest = store.about.head
        about = {"file": file.survey.digest, "store": store.about.id, "head": [seq, digest]}
        if store.workspace is not None and home is None:
            transfer.settle(store, self._rooms.ground(), tell)
            told = Record(EventDraft("import.finished", store.about.id, {**about, "way": "whole"}))
            saved = SaveWorkspace(replace(store.workspace, ready=True), None)
            self._rooms.account.apply(Transaction(actor, self._rooms.clock.now(), (saved, told)))
            return _whole(store)
        merging, target, name = self._merging(store, home, trust)
        return _merged(store, name, merge(merging, target, actor, self._rooms.clock.now(), about, tell))


def _wanted(file: ExportFile, into: str) -> list[FileStore]:
    """Return the stores of a file that come in; those of workspaces must say which."""
    for store in file.stores:
        if store.about.role == "workspace":
            if store.workspace is None:
                raise InvalidInput(
                    f"{file.name} does not say which workspace {store.about.id} is", fix="export it again"
                )
            parse_spec(up_to_date(store.workspace.spec_toml), file=f"workspace {store.workspace.name[:MOST_NAME]}")
    if not into:
        return file.stores
    found = [store for store in file.stores if store.about.role == "workspace"]
    if len(found) != 1:
        raise InvalidInput(
            f"the file holds {len(found)} workspaces, and --into takes one", fix="export the one workspace alone"
        )
    return found


def _whole(store: FileStore) -> StorePlan:
    counts = {name: {"new": store.count(part)} for name, part in KINDS.items() if store.count(part)}
    assert store.workspace is not None
    return StorePlan(store.about.id, store.workspace.name, "whole", counts)  # type: ignore[arg-type]


def _merged(store: FileStore, name: str, found: Merged) -> StorePlan:
    return StorePlan(store.about.id, name, "merge", found.counts, tuple(found.samples))


def _plan(file: ExportFile, stores: tuple[StorePlan, ...], into: str, trust: Trust, live: bool) -> ImportPlan:
    survey, counts = file.survey, [store.counts for store in stores]
    origin: Any = survey.digest
    if live:
        origin = [[store.about.id, *store.about.head] for store in file.stores]
        counts = [{kind: of for kind, of in one.items() if kind not in _OF_PLACES} for one in counts]
    listed = [[store.id, store.name, store.way, of] for store, of in zip(stores, counts, strict=True)]
    digest = hashlib.sha256(canonical_json([origin, into, int(trust), listed]).encode()).hexdigest()
    trusts = {Trust(int(value)).name.lower(): count for value, count in sorted(survey.trusts.items())}
    made_at = str(survey.header.get("made_at", ""))[:MOST_NAME]
    return ImportPlan(file.name, made_at, survey.lines, trusts, survey.sensitive, stores, digest)


class Whole(Struct, frozen=True):
    """An import of a whole account into a place without memory: how many rows came in, and were there already."""

    rows: int
    resumed: int


def all_of_it(file: ExportFile) -> bool:
    """Return whether a file holds a whole account."""
    return bool(file.stores) and file.stores[0].about.role == "account"


def into_nothing(
    file: ExportFile, target: transfer.Target, fits: Callable[[str, str], None], tell: Tell
) -> Whole | None:
    """Bring a whole account into a place that holds no memory; None, and nothing is done, if memory is there.

    It goes on where an interrupted import ended, and nobody opens the place before all of it is there.
    """
    try:
        target.mark()
    except Conflict:
        return None
    for store in _wanted(file, "")[1:]:
        assert store.workspace is not None
        fits(store.workspace.name, store.workspace.spec_toml)
    moved = transfer.move(file.stores, file.name, target, lambda steps: tell, lambda: None)
    return Whole(moved.total, moved.resumed)
