"""Access control: grants for other clients, and the credentials that open a workspace.

A credential is the owner's or a grant's. A surface makes it by authenticating the caller; no argument of a verb can say
who asks. A grant always acts as its agent and never as the author, with every capability.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.errors import Forbidden, InvalidInput, InvalidScope, NotFound, Unauthenticated
from lukasa.model.events import Actor
from lukasa.model.grant import OWNERS_ALONE, Capability, Grant, Reach, grant_id, matches, new_token, token_digest
from lukasa.model.ids import new_id
from lukasa.model.values import SHARED, Origin, Trust
from lukasa.ports import Clock, ModelsInUse, ModelTrial, Span, no_span
from lukasa.service import inputs
from lukasa.service.instrument import running, verb
from lukasa.service.workspace import Workspace
from lukasa.storage.operations import SaveGrant, Transaction
from lukasa.storage.port import Store

if TYPE_CHECKING:
    from lukasa.service.admin.backing_up import BackedUp
    from lukasa.service.admin.erasing import ErasurePlan, Receipt
    from lukasa.service.admin.portable import ImportPlan, Portable
    from lukasa.service.admin.removing import Removal, Removed
    from lukasa.service.admin.restoring import Checked, Listed
    from lukasa.service.sync.syncing import Sync

WORKER = "lukasa"  # the principal of background work
_NOBODY = "0" * 64


class Credential(Struct, frozen=True):
    """An authenticated caller: the owner (`grant` is None), or the holder of a grant.

    With `only`, it is a program that acts as the owner with these capabilities alone.
    """

    surface: str
    transport: str
    grant: Grant | None = None
    only: tuple[Capability, ...] | None = None

    @property
    def is_owner(self) -> bool:
        return self.grant is None

    @property
    def holder(self) -> str:
        """A stable name of the caller, for what callers must not share, such as idempotency keys."""
        return "owner" if self.grant is None else self.grant.id

    def allows(self, *any_of: Capability) -> bool:
        """Say whether it has any of these capabilities."""
        held = self.only if self.grant is None else self.grant.capabilities
        return held is None or any(one in held for one in any_of)

    def require(self, *any_of: Capability) -> None:
        """Refuse a caller that has none of these capabilities."""
        if not self.allows(*any_of):
            named = " or ".join(repr(str(one)) for one in any_of)
            asked = "a grant that does, as with `lukasa grant create`"
            if self.grant is None:
                asked = "it: the owner starts this program, and gives it capabilities with --can"
            raise Forbidden(f"this credential does not include {named}", fix=f"ask the owner for {asked}")

    def require_owner(self, what: str) -> None:
        """Refuse a caller that holds a grant."""
        if self.grant is not None:
            raise Forbidden(
                f"only the owner can {what}", fix="use the command line or the page that `lukasa serve` opens"
            )


class Issued(Struct, frozen=True):
    """A new grant with its token. The token is shown once and stored nowhere."""

    grant: Grant
    token: str


class Bounds(Struct, frozen=True):
    """Where a grant reaches, as its maker says it, with names."""

    workspaces: Sequence[str]
    tiers: Sequence[str] = ()
    channels: Sequence[str] = ()
    conversations: Sequence[str] = ()
    scope: Mapping[str, str] = {}


class Workspaces(Protocol):
    """The workspaces of an account, as access control needs them."""

    def workspaces(self) -> list[WorkspaceInfo]: ...
    def existing(self, name: str) -> Workspace: ...
    def models(self) -> ModelsInUse: ...
    def try_model(self, what: Literal["chat", "embedder"], setting: str | None = None) -> ModelTrial: ...
    def create_workspace(self, name: str, *, preset: str | None = None) -> Workspace: ...
    @property
    def portable(self) -> Portable: ...
    def rename_workspace(self, name: str, to: str) -> WorkspaceInfo: ...
    def merge_plan(self, name: str, into: str) -> ImportPlan: ...
    def merge_workspaces(self, name: str, into: str, *, confirm: str = "") -> ImportPlan: ...
    def erase_plan(
        self,
        *,
        entry: str | None = None,
        source: str | None = None,
        person: str | None = None,
        aliases: Sequence[str] | None = None,
        group: Sequence[str] = (),
        shared: str = "redact",
    ) -> ErasurePlan: ...
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
    ) -> Receipt: ...
    @property
    def syncs(self) -> bool: ...
    @property
    def sync(self) -> Sync: ...
    def removal_plan(self, name: str) -> Removal: ...
    def remove_workspace(self, name: str, *, confirm: str) -> Removed: ...
    def backup(self, folder: str, *, keep: str = "", keep_last: int | None = None, purge: bool = False) -> BackedUp: ...
    def list_backups(self, folder: str) -> list[Listed]: ...
    def check_backups(self, folder: str, *, every: bool = False) -> list[Checked]: ...


class AccessControl(Struct, frozen=True):
    """Manage grants, authenticate tokens, and open workspaces for credentials."""

    memory: Workspaces
    account: Store
    clock: Clock
    origin: Origin
    span: Span = no_span

    @property
    def now(self) -> datetime:
        return self.clock.now()

    @property
    def home(self) -> Store:
        """The store that keeps the telemetry events of verbs."""
        return self.account

    # Grants

    @verb("grant", "create")
    def create(
        self,
        name: str,
        *,
        workspaces: Sequence[str],
        can: Iterable[Capability | str] = (Capability.READ,),
        tiers: Sequence[str] = (),
        channels: Sequence[str] = (),
        conversations: Sequence[str] = (),
        scope: Mapping[str, str] | None = None,
        agent: str | None = None,
        trust: Trust = Trust.AGENT,
        expires: timedelta | datetime | None = None,
    ) -> Issued:
        """Create a grant for another client: to read, unless `can` says more. Its token is not shown again.

        `scope` binds scope keys of the spec's own, as in `{"org_id": "acme"}`.
        """
        id = new_id()
        token = new_token(id)
        who = agent if agent is not None else name
        reach = Bounds(workspaces, tiers, channels, conversations, scope or {})
        made = self._made(name, who, can, reach, trust=trust, expires=expires)
        grant = replace(made, id=id, digest=token_digest(token))
        self._apply(SaveGrant(grant, 0))
        return Issued(grant, token)

    def lend(
        self,
        agent: str,
        *,
        workspaces: Sequence[str],
        can: Iterable[Capability | str],
        tiers: Sequence[str] = (),
        channels: Sequence[str] = (),
        conversations: Sequence[str] = (),
        scope: Mapping[str, str] | None = None,
        surface: str,
        transport: str,
    ) -> Credential:
        """Return a credential for an agent that the owner starts on this machine. It has no token and is not stored."""
        reach = Bounds(workspaces, tiers, channels, conversations, scope or {})
        return Credential(surface, transport, self._made(agent, agent, can, reach))

    def grants(self) -> list[Grant]:
        """Return all grants."""
        return self.account.grants()

    def get(self, id_or_name: str) -> Grant:
        """Return a grant by id, or by name if exactly one live grant has that name."""
        found = self.account.grant(id_or_name)
        if found is not None:
            return found
        now = self.clock.now()
        named = [grant for grant in self.account.grants() if grant.name == id_or_name]
        live = [grant for grant in named if grant.live(now)] or named
        if len(live) > 1:
            raise InvalidInput(f"there are {len(live)} grants {id_or_name[:60]!r}", fix="give the id of the grant")
        if not live:
            raise NotFound(f"no grant {id_or_name[:60]!r}", fix="`lukasa grant list` shows them")
        return live[0]

    @verb("grant", "revoke")
    def revoke(self, id_or_name: str) -> Grant:
        """End a grant: its token is invalid from the next request on. A second call changes nothing."""
        grant = self.get(id_or_name)
        if grant.revoked_at is not None:
            return grant
        ended = replace(grant, revoked_at=self.clock.now(), version=grant.version + 1)
        self._apply(SaveGrant(ended, grant.version))
        return ended

    # Credentials

    def owner(self, surface: str, transport: str, *, can: Iterable[Capability | str] | None = None) -> Credential:
        """The owner's credential, with all capabilities or those in `can`. The surface must have verified the owner."""
        return Credential(surface, transport, only=None if can is None else _chosen(can))

    def admit(self, token: str, *, surface: str, transport: str) -> Credential:
        """Return the credential of a token. Every invalid token gives the same error."""
        id = grant_id(token)
        grant = None if id is None else self.account.grant(id)
        genuine = matches(token, grant.digest if grant is not None else _NOBODY)
        if grant is None or not genuine or not grant.live(self.clock.now()):
            raise Unauthenticated("no valid token", fix="ask the owner for one, as with `lukasa grant create`")
        return Credential(surface, transport, grant)

    def credential(self, grant: Grant, *, surface: str, transport: str) -> Credential:
        """Return the credential of a live grant without its token: for the owner, to see what the grant sees."""
        if not grant.live(self.clock.now()):
            raise NotFound(f"grant {grant.name[:60]!r} has ended", fix="`lukasa grant list` shows the live ones")
        return Credential(surface, transport, grant)

    def enter(self, given: Credential, workspace: str, scope: Mapping[str, str] | None = None) -> Workspace:
        """Open a workspace for a credential. A workspace outside its grant is reported as missing.

        `scope` binds more scope keys. It can narrow what the grant binds, and never change or widen it.
        """
        for info in self.visible(given):
            if workspace in (info.name, info.id):
                held = self._held(given, self.memory.existing(info.name))
                return held.at(**scope) if scope else held
        raise NotFound(f"no workspace {workspace[:60]!r}", fix="ask the owner which workspaces the grant covers")

    def visible(self, given: Credential) -> list[WorkspaceInfo]:
        """Return the workspaces that a credential may open."""
        return [info for info in self.memory.workspaces() if given.grant is None or info.id in given.grant.workspaces]

    def written_at(self, info: WorkspaceInfo) -> datetime | None:
        """Return when the workspace was last written: the time of its last event; None for one without an entry.

        A server makes the workspace `main`, which is then the newest, and no reason to show it first.
        """
        if not info.ready:
            return None
        store = self.memory.existing(info.name).ctx.local
        if not store.census():
            return None
        last = store.events(after=store.head()[0] - 1, limit=1)
        return last[0].at if last else None

    def through(self, given: Credential) -> AccessControl:
        """Return this access control with events that name the surface of the credential."""
        given.require_owner("manage grants")
        return replace(self, origin=Origin(self.origin.principal, given.surface, given.transport, self.origin.trust))

    def overseen(self, given: Credential, workspace: Workspace, capability: Capability) -> Workspace:
        """Return a workspace without a grant's limits, for verbs about all of it: jobs, statistics, the log.

        The verb's own capability is required, and events still name the caller.
        """
        given.require(capability)
        whole = replace(workspace.ctx, agent=None, reach=None, keys=workspace.ctx.tenancy)
        return Workspace(replace(whole, origin=replace(whole.origin, trust=Trust.AUTHOR)))

    # Parts of the above

    def _held(self, given: Credential, workspace: Workspace) -> Workspace:
        ctx, grant = workspace.ctx, given.grant
        if grant is None:
            mine = Origin(self.origin.principal, given.surface, given.transport, Trust.AUTHOR)
            return Workspace(replace(ctx, origin=mine))
        theirs = Origin(grant.principal, given.surface, given.transport, min(grant.trust, Trust.AGENT))
        bound = {key: value for key, value in grant.reach.scope.items() if key in ctx.spec.custom_keys}
        return Workspace(replace(ctx, origin=theirs, agent=grant.agent, reach=grant.reach, keys=bound))

    def _made(
        self,
        name: str,
        agent: str,
        can: Iterable[Capability | str],
        where: Bounds,
        *,
        trust: Trust = Trust.AGENT,
        expires: timedelta | datetime | None = None,
    ) -> Grant:
        """Return a grant without a token."""
        label = inputs.one_line(name, "a grant's name")
        opened = [self._workspace(name) for name in inputs.several(where.workspaces, "workspaces")]
        if not opened:
            raise InvalidInput(f"grant {label[:60]!r} names no workspace", fix="name at least one workspace")
        if trust not in (Trust.AGENT, Trust.UNTRUSTED):
            raise InvalidInput(f"a grant cannot have trust {trust!r}", fix="use agent or untrusted")
        now, who = self.clock.now(), self._agent(agent)
        return Grant(
            id=new_id(),
            name=label,
            principal=who,
            agent=who,
            workspaces=tuple(dict.fromkeys(workspace.id for workspace in opened)),
            capabilities=_capabilities(can),
            reach=_reach(opened, where),
            trust=trust,
            created_at=now,
            digest=_NOBODY,
            expires_at=_expiry(expires, now),
        )

    def _workspace(self, name: str) -> Workspace:
        known = next((info for info in self.memory.workspaces() if name in (info.name, info.id)), None)
        return self.memory.existing(known.name if known is not None else name)

    def _agent(self, name: str) -> str:
        if inputs.one_line(name, "agent") in (SHARED, WORKER, self.origin.principal):
            raise InvalidInput(f"an agent cannot be called {name!r}: that name is taken", fix="choose another name")
        return name

    def _apply(self, operation: SaveGrant) -> None:
        instrument = running(self)
        reported = instrument.events_for((operation,)) if instrument is not None else ()
        actor = Actor(self.origin.principal, self.origin.surface, self.origin.transport)
        self.account.apply(Transaction(actor, self.now, (operation, *reported)))
        if instrument is not None:
            instrument.committed()


def _capabilities(given: Iterable[Capability | str]) -> tuple[Capability, ...]:
    asked = _chosen(given)
    if kept := OWNERS_ALONE.intersection(asked):
        raise InvalidInput(f"{sorted(kept)[0]!s} is the owner's and cannot be granted", fix="leave that capability out")
    return asked


def _chosen(given: Iterable[Capability | str]) -> tuple[Capability, ...]:
    asked = {inputs.choice(one, Capability, "capability") for one in inputs.several(given, "can")}
    if not asked:
        raise InvalidInput("no capability is given", fix=f"choose among: {', '.join(Capability)}")
    return tuple(one for one in Capability if one in asked)


def _reach(opened: Sequence[Workspace], where: Bounds) -> Reach:
    tiers = where.tiers
    known = {tier.name for workspace in opened for tier in workspace.spec.tiers}
    for tier in inputs.several(tiers, "tiers"):
        if tier not in known:
            raise InvalidScope(
                f"no tier {str(tier)[:60]!r} in these workspaces", fix=f"use: {', '.join(sorted(known))}"
            )
    in_channels = [
        _somewhere([c.id for w in opened for c in w.channels() if name in (c.name, c.id)], "channel", name)
        for name in inputs.several(where.channels, "channels")
    ]
    in_conversations = [
        _somewhere(
            [c.id for w in opened for c in w.conversations(archived=True) if ref in (c.ref_code, c.id)],
            "conversation",
            ref,
        )
        for ref in inputs.several(where.conversations, "conversations")
    ]
    listed, joined = [
        tuple(dict.fromkeys(id for ids in found for id in ids)) for found in (in_channels, in_conversations)
    ]
    return Reach(tuple(dict.fromkeys(tiers)), listed, joined, _scope(opened, where.scope))


def _scope(opened: Sequence[Workspace], scope: Mapping[str, str]) -> dict[str, str]:
    """Return the scope keys that a grant binds. The broadest comes first: alone, a customer is one of every tenant."""
    known = {key for workspace in opened for key in workspace.spec.custom_keys}
    for key in scope:
        if key not in known:
            names = (
                f"use: {', '.join(sorted(known))}" if known else "the specs of these workspaces have none; leave it out"
            )
            raise InvalidScope(f"no scope key {str(key)[:60]!r} of their own in these workspaces", fix=names)
    for workspace in opened:
        mine = {key: scope[key] for key in workspace.spec.custom_keys if key in scope}
        if mine and (first := workspace.spec.custom_keys[0]) not in mine:
            raise InvalidScope(
                f"the grant binds {', '.join(mine)}, but not {first!r}, which comes first in the anchor of "
                f"{workspace.name!r}",
                fix=f"bind {first!r} too, as in --scope {first}=…",
            )
        workspace.at(**mine)
    return dict(scope)


def _somewhere(ids: list[str], what: str, name: str) -> list[str]:
    if not ids:
        raise NotFound(f"no {what} {str(name)[:60]!r} in these workspaces", fix=f"`lukasa {what} list` shows them")
    return ids


def _expiry(expires: timedelta | datetime | None, now: datetime) -> datetime | None:
    if expires is None:
        return None
    at = now + expires if isinstance(expires, timedelta) else inputs.moment(expires, "expires")
    if at <= now:
        raise InvalidInput(
            f"the grant would expire at {at.isoformat()}, in the past", fix="choose a later time, such as 30d"
        )
    return at
