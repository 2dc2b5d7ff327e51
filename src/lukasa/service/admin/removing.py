"""Remove a workspace, or the whole account, for good: a plan first, then its digest, as for a scrub.

The store goes first and the account's list last, so a removal that was killed is finished by planning it again. What is
left is one event, which names no text: that a workspace of this id was removed, when and by whom.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.errors import Conflict, InvalidInput, Refused, StoreMissing
from lukasa.model.events import Actor, canonical_json
from lukasa.model.grant import Grant
from lukasa.model.values import Origin, Trust
from lukasa.ports import Clock, Threads
from lukasa.service import inputs
from lukasa.storage import transfer
from lukasa.storage.operations import DropWorkspace, Operation, SaveGrant, SaveWorkspace, Transaction
from lukasa.storage.port import Store
from lukasa.storage.transfer import Given, conversations
from lukasa.storage.transfer import Origin as Place
from lukasa.upkeep.scrub_plan import SHORTEST

MOST_NAME = 60


class Removal(Struct, frozen=True):
    """What a removal would take: rows by kind, grants that lose a workspace, and files. Nothing has been removed."""

    what: str
    name: str
    rows: dict[str, int]
    workspaces: tuple[str, ...]
    grants: tuple[str, ...]
    files: int
    digest: str


class Removed(Struct, frozen=True):
    """A removal that was done; `swept` says whether the database's files were rewritten at once as well."""

    removal: Removal
    swept: bool


class Ways(Struct, frozen=True, kw_only=True):
    """What a removal of a workspace needs of the memory that is open."""

    account: Store
    open: Callable[[WorkspaceInfo], Given]  # raises StoreMissing if a removal that was killed took the store
    threads: Callable[[WorkspaceInfo], Threads | None]
    files: Callable[[WorkspaceInfo], int]
    free: Callable[[WorkspaceInfo], None]  # closes the store here; raises if another process has it open
    drop: Callable[[WorkspaceInfo], None]  # the store and all files
    sweep: Callable[[], bool]
    clock: Clock
    origin: Origin


def rename(ways: Ways, info: WorkspaceInfo, name: object) -> WorkspaceInfo:
    """Give a workspace another name. Its id stays, so grants, harness settings by id and its scopes go on."""
    _require_owner(ways, "rename a workspace")
    label = inputs.one_line(inputs.label(name, "workspace name"), "workspace name")
    renamed = replace(info, name=label)
    if renamed != info:
        _apply(ways, SaveWorkspace(renamed, info.ready))
    return renamed


def plan(ways: Ways, info: WorkspaceInfo) -> Removal:
    """List all that goes with a workspace."""
    _require_owner(ways, "remove a workspace")
    rows, head = dict[str, int](), (0, "")
    try:
        given = ways.open(info)
        with given.snapshot():
            rows, head = transfer.outline([given]).rows, given.about.head
    except StoreMissing:
        pass  # a removal that was killed has taken it
    grants = tuple(grant.name for grant in _grants(ways, info.id))
    made = Removal("workspace", info.name, rows, (info.name,), grants, ways.files(info), "")
    return _sealed(made, {info.id: head})


def execute(ways: Ways, info: WorkspaceInfo, confirm: object) -> Removed:
    """Remove a workspace as planned; `confirm` repeats the digest of the plan."""
    shown = plan(ways, info)
    require_confirmed(shown, confirm)
    chats = _chats(ways, info)
    ways.free(info)
    _purge(ways.threads(info), chats)
    ways.drop(info)
    actor, now = str(_actor(ways)), ways.clock.now()
    saves: list[Operation] = []
    for grant in _grants(ways, info.id):
        left = tuple(one for one in grant.workspaces if one != info.id)
        saves.append(SaveGrant(replace(grant, workspaces=left, revoked_at=None if left else now), grant.version))
    about = {"counts": shown.rows, "digest": shown.digest, "operator": actor}
    _apply(ways, *saves, DropWorkspace(info.id, about))
    return Removed(shown, ways.sweep())


def _chats(ways: Ways, info: WorkspaceInfo) -> list[str]:
    try:
        return conversations(ways.open(info))
    except StoreMissing:
        return []


def _purge(threads: Threads | None, chats: Sequence[str]) -> None:
    """Remove what chats keep of conversations outside the store."""
    for conversation in chats:
        if threads is not None and threads.kept(conversation):
            threads.purge(conversation)


def _grants(ways: Ways, id: str) -> list[Grant]:
    """Return the grants in force that name a workspace."""
    return [grant for grant in ways.account.grants() if id in grant.workspaces and grant.revoked_at is None]


def _sealed(made: Removal, heads: Mapping[str, Any]) -> Removal:
    listed = [made.what, made.name, made.rows, made.workspaces, made.grants, made.files, heads]
    return replace(made, digest=hashlib.sha256(canonical_json(listed).encode()).hexdigest())


def require_confirmed(shown: Removal, typed: object) -> None:
    """Raise unless `typed` repeats the digest of a plan, or its beginning."""
    given = typed.strip().lower() if isinstance(typed, str) else ""
    if len(given) < SHORTEST:
        raise InvalidInput(
            "a removal needs the digest of its plan", fix=f"plan it, and repeat at least {SHORTEST} characters of it"
        )
    if not shown.digest.startswith(given):
        raise Conflict(
            "the digest does not match what a removal would take now",
            fix="plan again, read the new plan, and confirm its digest; nothing was removed",
        )


def _require_owner(ways: Ways, what: str) -> None:
    if ways.origin.trust is not Trust.AUTHOR:
        raise Refused(f"only the owner can {what}", fix="ask the owner")


def _actor(ways: Ways) -> Actor:
    return Actor(ways.origin.principal, ways.origin.surface, ways.origin.transport)


def _apply(ways: Ways, *operations: Operation) -> None:
    ways.account.apply(Transaction(_actor(ways), ways.clock.now(), operations))


class AccountRemoval:
    """The removal of an account that nothing has open: all of its stores, its files, and the states of its chats."""

    def __init__(
        self,
        place: Place,
        *,
        require_unused: Callable[[], None],
        threads: Callable[[str], Threads],
        files: Callable[[Sequence[str]], int],
        drop_files: Callable[[Sequence[str]], None],
        sweep: Callable[[], bool],
        beside: bool,
    ) -> None:
        """`beside` says that files and stores are in the same folders: then the stores go first, all at once."""
        self._beside = beside
        self._place, self._require_unused, self._threads = place, require_unused, threads
        self._files, self._drop_files, self._sweep = files, drop_files, sweep

    def plan(self) -> Removal:
        """List all that goes with the account."""
        return self._planned()[0]

    def _planned(self) -> tuple[Removal, dict[str, tuple[int, str]], dict[str, list[str]]]:
        names: list[str] = []

        def every(infos: Sequence[WorkspaceInfo]) -> Sequence[WorkspaceInfo]:
            names.extend(info.name for info in infos)
            return infos

        outline, chats = transfer.Moved(0, {}, {}), dict[str, list[str]]()
        try:
            with self._place.held(every) as stores:
                outline = transfer.outline(stores)
                chats = {store.about.id: conversations(store) for store in stores[1:]}
        except StoreMissing:
            if not self._files([]):  # unless a removal that was killed has left files
                raise
        files = self._files(list(chats))
        made = Removal("account", self._place.where, outline.rows, tuple(sorted(names)), (), files, "")
        return _sealed(made, outline.heads), outline.heads, chats

    def execute(self, confirm: object) -> Removed:
        """Remove the account as planned; `confirm` repeats the digest of the plan."""
        shown, heads, chats = self._planned()
        require_confirmed(shown, confirm)
        self._require_unused()
        for id, every in chats.items():
            _purge(self._threads(id), every)
        if not self._beside:
            self._drop_files(list(chats))
        if heads:
            self._place.remove(heads)
        if self._beside:
            self._drop_files(list(chats))
        return Removed(shown, self._sweep())
