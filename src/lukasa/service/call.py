"""The context of a call: who acts, in which workspace and scope, with which stores and models.

A `CallContext` is frozen, so threads and requests share it. The instrument of the running verb is no part of it:
`lukasa.service.instrument` keeps that in a context variable. `retry_on_conflict` repeats a decision if another writer
changed its grounds before the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.entry import Entry, Scope
from lukasa.model.errors import (
    Conflict,
    Damaged,
    EmbedderError,
    InvalidInput,
    InvalidScope,
    LukasaError,
    NotFound,
    Refused,
)
from lukasa.model.events import Actor
from lukasa.model.ids import is_part_of_id, parse_id
from lukasa.model.secrets import MARK, redact, redact_all
from lukasa.model.values import SHARED, Curator, Trust
from lukasa.ports import (
    Chat,
    Clock,
    CuratedFile,
    DecisionFolder,
    DocumentFiles,
    DocumentParser,
    Embedder,
    ErasableFiles,
    LogFile,
    NoticeChannel,
    PastReader,
    ProjectFiles,
    Projects,
    Span,
    Splitter,
    Threads,
    TranscriptReader,
    Web,
    no_span,
)
from lukasa.service import inputs
from lukasa.service.instrument import running
from lukasa.service.sight import Sight
from lukasa.spec.taxonomy import Taxonomy, load_taxonomy
from lukasa.spec.types import SURFACES, TALK_KEYS, SanitizationGate, Tier
from lukasa.storage.operations import Embedding, Operation, SaveEmbedding, SaveEntry, Transaction
from lukasa.storage.port import Store
from lukasa.write.transforms import through

ACCOUNT = "self"
ATTEMPTS = 12
MOST_ALIKE = 50  # entries to look at whose ids share a beginning or an end
WITHHELD = "[withheld]"  # stands for a text of which the gates let nothing pass

T = TypeVar("T")


def no_machine(receipt: str) -> tuple[str, ...]:
    """Return the machines that a memory without a sync waits for: none."""
    return ()


class CallContext(Sight, frozen=True, kw_only=True):
    """The context of a call: its actor, workspace and scope, with the stores, models and files."""

    info: WorkspaceInfo
    account: Store
    embedder: Embedder | None
    second: Embedder | None = None  # a model for other languages beside it
    clock: Clock
    transcripts: Callable[[], TranscriptReader] | None = None  # opened when a session file is read
    past: Callable[[], PastReader] | None = None  # opened when what another program remembers is brought in
    parser: Callable[[], DocumentParser] | None = None  # opened when a document is read
    splitter: Splitter | None = None  # cuts a document into passages
    files: Callable[[], DocumentFiles] | None = None  # files of this machine that may become documents
    fetcher: Callable[[], Web] | None = None  # gets what a URL names, when somebody asks for it
    prompts: Path | None = None  # the folder of the owner's own prompts
    chat: Callable[[], Chat] | None = None  # opens the language model, if the settings name one
    curated_file: CuratedFile | None = None  # the file of the curated document, if the spec asks for one
    log_file: LogFile | None = None
    decisions: DecisionFolder | None = None  # the folder of decision records, if the spec keeps them
    kept_files: Callable[[], ErasableFiles] | None = None  # opens the files beside the store: the log, records …
    threads: Threads | None = None  # the checkpoints that chats keep of conversations outside memory
    span: Span = no_span
    notices: Callable[[], Sequence[NoticeChannel]] | None = None  # opens the channels for reviews, if any are set
    projects: Projects | None = None  # the projects of this machine, for what entries cite
    folder: str = ""  # the folder of the project at hand, if there is one
    unconfirmed: Callable[[str], tuple[str, ...]] = no_machine  # the machines that have not confirmed an erasure
    outward: tuple[str, ...] = ()  # the surfaces that what this context returns goes to

    def __post_init__(self) -> None:
        """Ask stores that are bound as this context is: each copy of a context comes by here, so none is left out.

        Background work is about all entries.
        """
        keys = self.tenancy if self.keys and not self.overseeing else {}
        if keys or self.overseeing:
            force_setattr(self, "local", self.local.within(keys))
            force_setattr(self, "account", self.account.within(keys))

    def at(self, **keys: str) -> CallContext:
        """Return this context with more scope keys bound: a channel, a conversation, an organisation."""
        known = {key.name for key in self.spec.anchor} - {"account", "workspace"}
        bound = self
        for name, value in sorted(keys.items(), key=lambda pair: pair[0] in TALK_KEYS):
            if name not in known:
                raise InvalidScope(
                    f"unknown scope key {name[:60]!r} in spec {self.spec.name!r}",
                    fix=f"use one of: {', '.join(sorted(known))}",
                )
            if not isinstance(value, str) or not value.strip() or len(value) > 200 or not value.isprintable():
                raise InvalidScope(
                    f"scope key {name!r} cannot be {str(value)[:60]!r}: a name has 1 to 200 printable characters",
                    fix="choose another name",
                )
            if not bound.may_bind(name, value):
                raise NotFound(f"no {name} {value[:60]!r} in this workspace", fix="ask the owner to grant it")
            bound = replace(bound, keys={**bound.keys, name: value})
        return bound

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
            if inputs.one_line(agent, "agent") == SHARED:
                raise InvalidInput(f"an agent cannot be called {SHARED!r}", fix="give it another name")
            origin = replace(origin, principal=agent).capped(Trust.AGENT)
        if principal is not None:
            origin = replace(origin, principal=inputs.one_line(principal, "principal"))
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
    def project(self) -> ProjectFiles | None:
        """The project at hand."""
        return self.projects.at(self.folder) if self.projects is not None and self.folder else None

    def in_project(self, folder: str) -> CallContext:
        """Return this context with the project of a folder at hand; an empty one is none."""
        return replace(self, folder=folder)

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

    def outbound(self, surface: str) -> CallContext:
        """Return this context for a surface: what it returns passes the spec's gates to that surface."""
        if surface not in SURFACES:
            raise InvalidInput(f"there is no surface {str(surface)[:60]!r}", fix=f"use one of: {', '.join(SURFACES)}")
        return replace(self, outward=tuple(dict.fromkeys((*self.outward, surface))))

    @property
    def gates(self) -> tuple[SanitizationGate, ...]:
        """The spec's gates for what this context returns; a grant is a client from outside."""
        outward = (*self.outward, "external") if self.reach is not None else self.outward
        return tuple(gate for gate in self.spec.sanitization if gate.to in outward) if outward else ()

    def passed(self, entry: Entry) -> tuple[Entry, dict[str, int]]:
        """Return an entry as it leaves through the gates, and how often each transform changed it."""
        content, changes = through(self.gates, entry.content, entry.trust)
        return (replace(entry, content=content or WITHHELD), changes) if changes else (entry, changes)

    def passed_text(self, text: str) -> str:
        """Return a text of a document as it leaves through the gates. The owner brought it, and confirmed no word."""
        return through(self.gates, text, Trust.IMPORTED)[0] or WITHHELD if self.gates else text

    def shown(self, entry: Entry, *, sensitive: bool = False) -> Entry:
        """Return an entry as this context may see it: through the gates, and secrets only for the owner."""
        open_ = sensitive or self.is_author or not entry.sensitive
        return self.passed(entry if open_ else self.masked(entry))[0]

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
        """Commit operations in one transaction, together with the telemetry event of the running verb.

        A text that is saved with its vector gets one of the second embedder too; if that one fails, it is backfilled.
        """
        operations = (*operations, *self._second_vectors(operations))
        instrument = running(self)
        if instrument is None:
            store.apply(Transaction(self.actor, self.now, operations))
            return
        store.apply(Transaction(self.actor, self.now, (*operations, *instrument.events_for(operations))))
        instrument.committed()

    def _second_vectors(self, operations: Sequence[Operation]) -> list[SaveEmbedding]:
        saved = [one for one in operations if isinstance(one, SaveEntry) and one.embedding is not None]
        if self.second is None or not saved:
            return []
        try:
            vectors = self.second.embed_memories([one.entry.content for one in saved])
        except EmbedderError:
            return []
        model = self.second.model
        return [
            SaveEmbedding(one.entry.id, one.entry.version, Embedding(model, vector))
            for one, vector in zip(saved, vectors, strict=True)
        ]

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
        """Return an entry that this context may see, and its store. Private entries of others are not found.

        Raise Damaged if its text is not the one that was written.
        """
        store, entry = self.row(id)
        if entry.damaged:
            raise Damaged(f"entry {entry.id}")
        return store, entry

    def entry_id(self, given: object, what: str = "id") -> str:
        """Return the id of an entry, of which the caller gave all, or a beginning or end that only this one has.

        Entries that this context does not see do not count.
        """
        if not is_part_of_id(given):
            return parse_id(given, what)
        part = str(given)
        found = {store: store.entry_ids(part, limit=MOST_ALIKE) for store in (self.local, self.account)}
        seen = [
            one.id
            for store, ids in found.items()
            for one in store.entries(ids, damaged=True).values()
            if self.sees(one)
        ]
        if not seen:
            raise NotFound(f"no entry {part} in workspace {self.info.name!r}", fix="`lukasa list --all` shows the ids")
        if len(seen) > 1:
            alike = ", ".join(seen[:4])
            raise InvalidInput(f"{what} {part!r} is part of several ids", fix=f"give the whole id, such as {alike}")
        return seen[0]

    def row(self, id: str) -> tuple[Store, Entry]:
        """Return an entry that this context may see, and its store, also if it is damaged; then it is marked."""
        key = self.entry_id(id)
        for store in (self.local, self.account):
            entry = store.entries([key], damaged=True).get(key)
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
