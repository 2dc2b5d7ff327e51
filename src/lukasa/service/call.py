"""A room: everything a verb needs, bound to one workspace, one identity and one place in it. Frozen and shareable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from operator import attrgetter
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.entry import Entry, Scope
from lukasa.model.errors import InvalidInput, InvalidScope, LukasaError, NotFound, Refused
from lukasa.model.events import Actor
from lukasa.model.grant import Reach
from lukasa.model.ids import parse_id
from lukasa.model.values import SHARED, Curator, Origin, Trust
from lukasa.ports import Chat, Clock, CuratedFile, Embedder, LogFile, Span, Threads, TranscriptReader, no_span
from lukasa.service import inputs
from lukasa.service.instrument import Stage
from lukasa.spec.taxonomy import Taxonomy, load_taxonomy
from lukasa.spec.types import MemorySpec, Tier
from lukasa.storage.operations import Operation, Transaction
from lukasa.storage.port import Store

ACCOUNT = "self"


class CallContext(Struct, frozen=True):
    spec: MemorySpec
    info: WorkspaceInfo
    local: Store
    account: Store
    embedder: Embedder | None
    clock: Clock
    origin: Origin
    agent: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    transcripts: Callable[[], TranscriptReader] | None = None  # made when a session is read
    prompts: Path | None = None  # where a person's own prompts are
    chat: Callable[[], Chat] | None = None  # opens the language model, where one is set
    curated_file: CuratedFile | None = None  # where the spec wants the curated document in a file
    log_file: LogFile | None = None
    reach: Reach | None = None  # how far a grant goes; None goes everywhere
    threads: Threads | None = None  # what chats keep of their conversations outside memory
    span: Span = no_span
    stage: Stage | None = None  # the verb that is under way

    def at(self, **keys: str) -> CallContext:
        """The same room with more of its anchor bound: a channel, a conversation, an organisation."""
        known = {key.name for key in self.spec.anchor} - {"account", "workspace"}
        for name, value in keys.items():
            if name not in known:
                raise InvalidScope(
                    f"unknown scope key {name!r} in spec {self.spec.name!r}",
                    fix=f"use one of: {', '.join(sorted(known))}",
                )
            if not isinstance(value, str) or not value.strip() or len(value) > 200 or not value.isprintable():
                raise InvalidScope(
                    f"scope key {name!r} needs a printable name of 1 to 200 characters", fix="give it one"
                )
            if not self.takes_part(name, value):
                raise NotFound(f"no {name} {value[:60]!r} in this workspace", fix="ask the owner to grant it")
        return replace(self, keys={**self.keys, **keys})

    def acting(
        self, *, agent: str | None = None, principal: str | None = None, trust: Trust | None = None
    ) -> CallContext:
        """The same room for another actor. Trust can be lowered here, never raised."""
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
        """The categories of the spec; read when something is first put into one."""
        return load_taxonomy(self.spec.taxonomy)

    @property
    def now(self) -> datetime:
        return self.clock.now()

    @property
    def actor(self) -> Actor:
        return Actor(self.origin.principal, self.origin.surface, self.origin.transport)

    @property
    def curator(self) -> Curator:
        return Curator.AUTHOR if self.origin.trust is Trust.AUTHOR else Curator.AGENT

    @property
    def owners(self) -> tuple[str, ...]:
        return (SHARED,) if self.agent is None else (SHARED, self.agent)

    @property
    def is_author(self) -> bool:
        """Whether this is the person the memory belongs to, who may see and decide everything."""
        return self.agent is None and self.origin.trust is Trust.AUTHOR

    def require_author(self, what: str) -> None:
        if not self.is_author:
            raise Refused(f"{self.origin.principal!r} cannot {what}: that is the author's", fix="ask the author")

    def require_agent(self, what: str) -> None:
        """What changes a session is for those who take part in it, not for text that was merely read."""
        if self.origin.trust < Trust.AGENT:
            raise Refused(f"{self.origin.principal!r} is not trusted to {what}", fix="ask the author")

    def require_standing(self, entry: Entry, verb: str) -> None:
        """Agents may change what others wrote, and it can be undone; what is less trusted may touch only its own."""
        if self.origin.trust < min(entry.trust, Trust.AGENT):
            raise Refused(
                f"{self.origin.principal!r} cannot {verb} entry {entry.id}, which is more trusted than they are",
                fix="ask the author",
            )

    def opens(self, tier: str) -> bool:
        """Whether a tier is within this room's reach at all."""
        if self.reach is None:
            return True
        home = next((known.home for known in self.spec.tiers if known.name == tier), None)
        return home is not None and self.reach.opens(tier, home)

    def takes_part(self, key: str, id: str) -> bool:
        """Whether what belongs to a channel or conversation is this room's to see.

        A grant takes part where it is listed, and in what was begun in its own name.
        """
        if self.reach is None or key not in ("channel", "conversation"):
            return True
        if id in (self.reach.channels if key == "channel" else self.reach.conversations):
            return True
        begun = self.local.events(subject=id, limit=1)
        return bool(begun) and begun[0].actor.principal == self.origin.principal

    def admits(self, scope: Scope) -> bool:
        """Whether a scope is within this room's reach."""
        return self.reach is None or (
            self.opens(scope.tier) and all(value is None or self.takes_part(key, value) for key, value in scope.anchor)
        )

    def store(self, tier: str) -> Store:
        return self.account if self.spec.tier(tier).home == "account" else self.local

    def scope(self, tier: str) -> Scope:
        """This room's scope of a tier; every required key must be bound."""
        definition = self.spec.tier(tier)
        if not self.opens(tier):
            raise Refused(f"{self.origin.principal!r} has no access to tier {tier!r}", fix="ask the owner to grant it")
        values = {"account": ACCOUNT, "workspace": self.info.id, **self.keys}
        for key in definition.anchor:
            if key.required and key.name not in values:
                raise InvalidScope(
                    f"tier {tier!r} needs the scope key {key.name!r}",
                    fix=f"bind it first: `.at({key.name}=…)` in code, `--scope {key.name}=…` on the command line",
                )
        return Scope(tier, tuple((key.name, values.get(key.name)) for key in definition.anchor))

    def reachable(self, wanted: tuple[str, ...] | None = None) -> list[Tier]:
        """The tiers whose scope is bound here, narrowest first; only the wanted ones, if any are named."""
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
        ]

    def durable_tier(self) -> str:
        """Where facts go if nobody says: the project's own tier, or the broadest lasting one at hand."""
        names = [tier.name for tier in self.reachable() if tier.persistent]
        if not names:
            raise InvalidInput("no lasting tier can be reached from here", fix="bind the scope keys of one first")
        return "workspace" if "workspace" in names else names[-1]

    @property
    def home(self) -> Store:
        """Where verbs report what they did."""
        return self.local

    def staged(self, stage: Stage) -> CallContext:
        """The same room while a verb is under way. As `replace`, in a third of the time: every read begins here."""
        return CallContext(*(*_WITHOUT_STAGE(self), stage))

    def apply(self, store: Store, *operations: Operation) -> None:
        """Commit, and with it what the verb that is under way reports of itself."""
        stage = self.stage
        if stage is None:
            store.apply(Transaction(self.actor, self.now, operations))
            return
        store.apply(Transaction(self.actor, self.now, (*operations, *stage.with_it(self, operations))))
        stage.told = stage.told or not stage.reads

    def refuse(self, store: Store, error: LukasaError, *operations: Operation) -> None:
        """Commit what a refusal leaves behind, and with it the report that it was one."""
        told = (self.stage.refused(self, error),) if self.stage is not None else ()
        store.apply(Transaction(self.actor, self.now, (*operations, *told)))

    def note(self, **about: int | str) -> None:
        """More for the report of the verb that is under way: counts and names."""
        if self.stage is not None:
            self.stage.about.update(about)

    def entry(self, id: str) -> tuple[Store, Entry]:
        """An entry that this room may see, and its store. Others' private entries answer as if they were not there."""
        key = parse_id(id)
        for store in (self.local, self.account):
            entry = store.entries([key]).get(key)
            if entry is not None and (self.is_author or entry.owner in self.owners) and self.admits(entry.scope):
                return store, entry
        raise NotFound(f"no entry {key} in workspace {self.info.name!r}", fix="`lukasa list --all` shows the ids")


_WITHOUT_STAGE = attrgetter(*(name for name in CallContext.__match_args__ if name != "stage"))
