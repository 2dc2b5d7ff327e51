"""The context of a call: who acts, in which workspace and scope, with which stores and models.

A `CallContext` is frozen, so threads and requests share it. The instrument of the running verb is no part of it:
`lukasa.service.instrument` keeps that in a context variable. `retry_on_conflict` repeats a decision if another writer
changed its grounds before the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.entry import Entry, Scope
from lukasa.model.errors import Conflict, InvalidInput, InvalidScope, LukasaError, NotFound, Refused
from lukasa.model.events import Actor
from lukasa.model.grant import Reach
from lukasa.model.ids import parse_id
from lukasa.model.secrets import MARK, redact, redact_all
from lukasa.model.selection import Selection
from lukasa.model.values import SHARED, Curator, Origin, Trust, Visibility
from lukasa.ports import Chat, Clock, CuratedFile, Embedder, LogFile, Span, Threads, TranscriptReader, no_span
from lukasa.service import inputs
from lukasa.service.instrument import running
from lukasa.spec.taxonomy import Taxonomy, load_taxonomy
from lukasa.spec.types import TALK_KEYS, MemorySpec, Tier, TierVisibility
from lukasa.storage.operations import Operation, Transaction
from lukasa.storage.port import Store

ACCOUNT = "self"
ATTEMPTS = 12
MOST_LOOKED_AT = 1000  # entries in which to look for one of a grant's own
UNBIND = "use a handle of the owner without these scope keys"

T = TypeVar("T")


class CallContext(Struct, frozen=True):
    """The context of a call: its actor, workspace and scope, with the stores, models and files."""

    spec: MemorySpec
    info: WorkspaceInfo
    local: Store
    account: Store
    embedder: Embedder | None
    clock: Clock
    origin: Origin
    agent: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    transcripts: Callable[[], TranscriptReader] | None = None  # opened when a session file is read
    prompts: Path | None = None  # the folder of the owner's own prompts
    chat: Callable[[], Chat] | None = None  # opens the language model, if the settings name one
    curated_file: CuratedFile | None = None  # the file of the curated document, if the spec asks for one
    log_file: LogFile | None = None
    reach: Reach | None = None  # the limits of a grant; None is no limit
    within: tuple[str, ...] | None = None  # the only tiers of a subagent; None is no limit
    overseeing: bool = False  # background work: it sees every scope, whoever it acts for
    threads: Threads | None = None  # the checkpoints that chats keep of conversations outside memory
    span: Span = no_span

    def at(self, **keys: str) -> CallContext:
        """Return this context with more scope keys bound: a channel, a conversation, an organisation."""
        known = {key.name for key in self.spec.anchor} - {"account", "workspace"}
        bound = self
        for name, value in sorted(keys.items(), key=lambda pair: pair[0] in TALK_KEYS):
            if name not in known:
                raise InvalidScope(
                    f"unknown scope key {name!r} in spec {self.spec.name!r}",
                    fix=f"use one of: {', '.join(sorted(known))}",
                )
            if not isinstance(value, str) or not value.strip() or len(value) > 200 or not value.isprintable():
                raise InvalidScope(
                    f"scope key {name!r} cannot be {str(value)[:60]!r}: a name has 1 to 200 printable characters",
                    fix="choose another name",
                )
            if not bound._may_bind(name, value):
                raise NotFound(f"no {name} {value[:60]!r} in this workspace", fix="ask the owner to grant it")
            bound = replace(bound, keys={**bound.keys, name: value})
        return bound

    def _may_bind(self, key: str, value: str) -> bool:
        """Say whether a handle may bind this value. Only the owner's may bind another value than the bound one."""
        if key in TALK_KEYS:
            return self.takes_part(key, value)
        if not self.is_author and key in self.keys:
            return self.keys[key] == value
        return self.reach is None or self._open(key)

    def limited(self, tiers: Sequence[str]) -> CallContext:
        """Return this context for these tiers alone, as a subagent has it. A limit cannot be widened again."""
        for name in tiers:
            self.scope_tier(name)
        return replace(self, within=tuple(dict.fromkeys(tiers)))

    def acting(
        self, *, agent: str | None = None, principal: str | None = None, trust: Trust | None = None
    ) -> CallContext:
        """Return this context for another actor. Trust can be lowered here, never raised."""
        origin = self.origin
        if agent is not None:
            if inputs.label(agent, "agent") == SHARED:
                raise InvalidInput(f"an agent cannot be called {SHARED!r}", fix="give it another name")
            origin = replace(origin, principal=agent).capped(Trust.AGENT)
        if principal is not None:
            origin = replace(origin, principal=inputs.label(principal, "principal"))
        if trust is not None:
            if not isinstance(trust, Trust):
                raise InvalidInput(f"trust {trust!r} is not a Trust", fix="use Trust.UNTRUSTED … Trust.AUTHOR")
            origin = origin.capped(trust)
        return replace(self, origin=origin, agent=agent if agent is not None else self.agent)

    @property
    def taxonomy(self) -> Taxonomy:
        """The categories of the spec; loaded on first use."""
        return load_taxonomy(self.spec.taxonomy)

    @property
    def now(self) -> datetime:
        """The present time, by the clock of this context."""
        return self.clock.now()

    @property
    def actor(self) -> Actor:
        """The actor that events name."""
        return Actor(self.origin.principal, self.origin.surface, self.origin.transport)

    @property
    def curator(self) -> Curator:
        """The curator of an entry written here: the author, or an agent."""
        return Curator.AUTHOR if self.origin.trust is Trust.AUTHOR else Curator.AGENT

    @property
    def owners(self) -> tuple[str, ...]:
        """The owners whose entries this context may see: all, and its own agent."""
        return (SHARED,) if self.agent is None else (SHARED, self.agent)

    @property
    def is_author(self) -> bool:
        """Whether the owner of the memory acts, who may see and decide everything."""
        return self.agent is None and self.origin.trust is Trust.AUTHOR

    def require_author(self, what: str) -> None:
        """Refuse anybody but the owner of the memory."""
        if not self.is_author:
            raise Refused(f"{self.origin.principal!r} cannot {what}: only the author can", fix="ask the author")

    def require_agent(self, what: str) -> None:
        """Refuse an untrusted caller: text that was merely read must not change a session."""
        if self.origin.trust < Trust.AGENT:
            raise Refused(f"{self.origin.principal!r} is not trusted to {what}", fix="ask the author")

    def require_trust(self, entry: Entry, verb: str) -> None:
        """Refuse an untrusted caller to change a more trusted entry. Agents may: `undo` takes it back."""
        if self.origin.trust < min(entry.trust, Trust.AGENT):
            raise Refused(
                f"{self.origin.principal!r} cannot {verb} entry {entry.id}: the entry is more trusted",
                fix="ask the author",
            )

    # Who sees what: every verb asks here. docs/explanation/trust.md states the rule.

    @property
    def tenancy(self) -> dict[str, str]:
        """The bound keys of the spec's own, such as a tenant. Channels and conversations are not among them."""
        return {key: self.keys[key] for key in self.spec.custom_keys if key in self.keys}

    @property
    def oversees(self) -> bool:
        """Whether keys that are not bound are open: to the owner, and to background work."""
        return self.reach is None and (self.is_author or self.overseeing)

    def require_whole(self, what: str) -> None:
        """Refuse a handle that is bound to one tenant: what concerns the whole workspace would tell of the others."""
        if self.tenancy:
            named = ", ".join(f"{key}={value[:60]}" for key, value in self.tenancy.items())
            raise Refused(f"a handle bound to {named} cannot {what}: that is about the whole workspace", fix=UNBIND)

    def opens(self, tier: str) -> bool:
        """Whether this context reaches a tier: by the limits of a subagent, of its grant, and of the spec."""
        if self.within is not None and tier not in self.within:
            return False
        if self.reach is None:
            return True
        if all(known.name != tier for known in self.spec.tiers):
            return False
        return tier in self.reach.tiers if self.reach.tiers else self.spec.readers(tier).external != "closed"

    def takes_part(self, key: str, id: str) -> bool:
        """Say whether this context may see a channel or conversation.

        A conversation is for the tenant under which it began. A grant sees the channels and conversations that it
        lists, those that its own principal began, and all of them if the spec grants a tier of that key.
        """
        if not self._owned(key, id):
            return False
        if self.reach is None or self._listed(key, id):
            return True
        return any(
            self.opens(tier.name) and self.spec.readers(tier.name).external == "granted"
            for tier in self.spec.tiers
            if any(one.name == key for one in tier.anchor)
        )

    def _listed(self, key: str, id: str) -> bool:
        reach = self.reach or Reach()
        return id in (reach.channels if key == "channel" else reach.conversations) or self._began(id)

    def _began(self, id: str) -> bool:
        begun = self.local.events(subject=id, limit=1)
        return bool(begun) and begun[0].actor.principal == self.origin.principal

    def _owned(self, key: str, id: str) -> bool:
        """Say whether a channel or conversation is for this tenant; channels are for all."""
        found = self.local.conversation(id) if key == "conversation" and self.spec.custom_keys else None
        return found is None or self.owns(found.keys)

    def owns(self, keys: Mapping[str, str]) -> bool:
        """Say whether something that was made under these keys is for this context."""
        return all(
            self.keys[key] == value if key in self.keys else self.oversees or self._open(key)
            for key, value in keys.items()
        )

    def _open(self, key: str) -> bool:
        """Say whether a grant leaves a key of the spec's own open: it binds the broadest one, and this one is below."""
        return self.reach is not None and self.spec.custom_keys[0] in self.reach.scope

    def admits(self, scope: Scope) -> bool:
        """Whether this context may see a scope: key by key, as it is bound, granted and declared."""
        return self.opens(scope.tier) and all(
            self._admits(scope.tier, key, value) for key, value in scope.anchor if key not in ("account", "workspace")
        )

    def _admits(self, tier: str, key: str, value: str | None) -> bool:
        bound = self.keys.get(key)
        if bound is not None and bound != value and key not in TALK_KEYS:
            return False
        if value is None or self.oversees:
            return True
        readers = self.spec.readers(tier)
        if key in TALK_KEYS:
            return self._owned(key, value) and self._among(readers, key, value)
        if self.reach is None:
            return bound is not None
        if not self._open(key):
            return False
        return readers.external != "participants" or key in self.reach.scope or self._joined(key, value)

    def _among(self, readers: TierVisibility, key: str, id: str) -> bool:
        """Say whether a grant, or an agent, is among those who see a channel or conversation in a tier."""
        if self.reach is not None:
            return readers.external == "granted" or self._listed(key, id)
        return self.keys.get(key) == id or readers.agents != "participants" or self._began(id)

    def _joined(self, key: str, value: str) -> bool:
        """Say whether a grant takes part in a scope of the spec's own: it wrote there, or nobody did yet."""
        there = tuple(
            count.scope
            for count in self.local.census()
            if count.scope.value(key) == value
            and self.owns({k: v for k, v in count.scope.anchor if k in self.tenancy and v})
        )
        if not there:
            return True
        found = self.local.find(Selection(there, frozenset(Visibility), None), limit=MOST_LOOKED_AT)
        return any(entry.origin.principal == self.origin.principal for entry in found)

    def sees(self, entry: Entry) -> bool:
        """Say whether an entry is there for this context."""
        return (self.is_author or entry.owner in self.owners) and self.admits(entry.scope)

    def shown(self, entry: Entry) -> Entry:
        """Return an entry as this context may see it: only the owner sees the secrets of a sensitive one."""
        return entry if self.is_author or not entry.sensitive else self.masked(entry)

    def masked(self, entry: Entry) -> Entry:
        """Return a sensitive entry with a mark in place of each secret, or of all of it if none is found."""
        content, found = redact(entry.content)
        return replace(entry, content=content if found else MARK, metadata=redact_all(entry.metadata))

    def store(self, tier: str) -> Store:
        """The store that holds a tier: the workspace's or the account's."""
        return self.account if self.spec.tier(tier).home == "account" else self.local

    def scope(self, tier: str) -> Scope:
        """Return the scope of a tier in this context; every required key must be bound."""
        definition = self.scope_tier(tier)
        values = {"account": ACCOUNT, "workspace": self.info.id, **self.keys}
        for key in definition.anchor:
            if key.required and key.name not in values:
                raise InvalidScope(
                    f"tier {tier!r} needs the scope key {key.name!r}",
                    fix=f"bind it first: `.at({key.name}=…)` in code, `--scope {key.name}=…` on the command line",
                )
        scope = Scope(tier, tuple((key.name, values.get(key.name)) for key in definition.anchor))
        if self.reach is not None and not self.admits(scope):
            raise self._no_access(tier)
        return scope

    def scope_tier(self, name: str) -> Tier:
        """Return a tier that this context reaches."""
        definition = self.spec.tier(name)
        if not self.opens(name):
            raise self._no_access(name)
        return definition

    def _no_access(self, tier: str) -> Refused:
        return Refused(f"{self.origin.principal!r} has no access to tier {tier!r}", fix="ask the owner to grant it")

    def reachable(self, wanted: tuple[str, ...] | None = None) -> list[Tier]:
        """Return the tiers whose keys are bound here, narrowest first; only the wanted ones, if any are named."""
        values = {"account", "workspace", *self.keys}
        if wanted is not None:
            for name in wanted:
                self.scope(name)
        return [
            tier
            for tier in self.spec.tiers
            if (wanted is None or tier.name in wanted)
            and self.opens(tier.name)
            and all(key.name in values for key in tier.anchor if key.required)
            and (self.reach is None or self._reaches(tier))
        ]

    def _reaches(self, tier: Tier) -> bool:
        bound = tuple((key.name, self.keys.get(key.name)) for key in tier.anchor)
        return self.admits(Scope(tier.name, bound))

    def default_tier(self) -> str:
        """Return the tier for a text whose writer names none: `default_tier` of the tiers bound here.

        If no lasting tier is bound, raise the error that says which key is missing or which grant.
        """
        lasting = [tier for tier in self.reachable() if tier.persistent]
        if lasting:
            return default_tier(lasting, self.tenancy)
        return self.scope(default_tier(self.spec.tiers)).tier

    def observed_tier(self) -> str:
        """Return the tier for facts of a session that name none: the narrowest lasting one that a bound key belongs to.

        The default channel is bound where nobody chose one, so it does not count.
        """
        bound = self.keys.get("channel")
        chosen = bound is not None and not any(one.is_default and one.id == bound for one in self.local.channels())
        told = {*self.tenancy, *(("channel",) if chosen else ())}
        lasting = (tier for tier in self.reachable() if tier.persistent)
        theirs = next((tier.name for tier in lasting if any(key.name in told for key in tier.anchor)), None)
        return theirs or self.default_tier()

    @property
    def home(self) -> Store:
        """The store that keeps the telemetry events of verbs."""
        return self.local

    def apply(self, store: Store, *operations: Operation) -> None:
        """Commit operations in one transaction, together with the telemetry event of the running verb."""
        instrument = running(self)
        if instrument is None:
            store.apply(Transaction(self.actor, self.now, operations))
            return
        store.apply(Transaction(self.actor, self.now, (*operations, *instrument.events_for(operations))))
        instrument.committed()

    def refuse(self, store: Store, error: LukasaError, *operations: Operation) -> None:
        """Commit the record of a refusal, together with its telemetry event."""
        instrument = running(self)
        reported = (instrument.refused(error),) if instrument is not None else ()
        store.apply(Transaction(self.actor, self.now, (*operations, *reported)))

    def note(self, **about: int | str) -> None:
        """Add counts and names to the telemetry event of the running verb."""
        instrument = running(self)
        if instrument is not None:
            instrument.about.update(about)

    def entry(self, id: str) -> tuple[Store, Entry]:
        """Return an entry that this context may see, and its store. Private entries of others are not found."""
        key = parse_id(id)
        for store in (self.local, self.account):
            entry = store.entries([key]).get(key)
            if entry is not None and self.sees(entry):
                return store, entry
        raise NotFound(f"no entry {key} in workspace {self.info.name!r}", fix="`lukasa list --all` shows the ids")


class Bound(Struct, frozen=True):
    """A handle that acts in one call context."""

    ctx: CallContext


def default_tier(tiers: Iterable[Tier], tenancy: Collection[str] = ()) -> str:
    """Name the tier for a text whose writer names none. This is the one rule for it.

    If keys of the spec's own are bound, it is the narrowest lasting tier that has one of them, so that no other tenant
    reads the text. Else it is `workspace`; if there is none of that name, the broadest lasting tier that is kept in the
    workspace; if none is, the broadest one of the account. `tiers` go from the narrowest to the broadest.
    """
    lasting = [tier for tier in tiers if tier.persistent]
    theirs = [tier.name for tier in lasting if any(key.name in tenancy for key in tier.anchor)]
    if theirs:
        return theirs[0]
    local = [tier.name for tier in lasting if tier.home == "workspace"]
    if "workspace" in local:
        return "workspace"
    return local[-1] if local else lasting[-1].name


def retry_on_conflict(attempt: Callable[[], T]) -> T:
    """Look, decide, commit; if another writer changed an entry in between, do it again, at most `ATTEMPTS` times."""
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except Conflict:
            continue
    return attempt()
