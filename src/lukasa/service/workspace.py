"""A workspace as its users hold it: the verbs of memory, bound to one place and one identity.

Handles are frozen. `at` and `acting` give new ones; nothing that a handle does changes what another one sees of
itself, so handles can be shared between threads and requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.conversation import Channel, Conversation, Note
from lukasa.model.entry import Access, Document, Entry, NamedEntry, SourceLink, Version
from lukasa.model.errors import InvalidInput, InvalidQuery
from lukasa.model.events import Event, chain_faults
from lukasa.model.ids import parse_id
from lukasa.model.job import Job, JobState
from lukasa.model.late import late
from lukasa.model.scrub import Mode
from lukasa.model.selection import NO_FILTERS, Filters, Selection
from lukasa.model.telemetry import TelemetryEvent, TelemetryQuery
from lukasa.model.values import SHARED, VISIBILITY, Curator, Kind, Lifetime, Trust, Visibility
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.service.instrument import verb
from lukasa.service.sessions import conversations as talking
from lukasa.spec.types import MemorySpec
from lukasa.storage.operations import LinkAction, Verdict
from lukasa.storage.port import Census, Finding

if TYPE_CHECKING:
    from lukasa.model.transcript import Progress, Transcript, Utterance
    from lukasa.read import decay as fading
    from lukasa.read.context import Context
    from lukasa.service.admin import overview, scrub
    from lukasa.service.admin import stats as counting
    from lukasa.service.admin.overview import Said, Survey
    from lukasa.service.admin.scrub import Scrubbed
    from lukasa.service.admin.stats import Stats
    from lukasa.service.curation import document, review
    from lukasa.service.curation import slog as journaling
    from lukasa.service.curation.document import Curated
    from lukasa.service.curation.review import Decided, Inbox
    from lukasa.service.curation.slog import Slog
    from lukasa.service.entries import pages as pages
    from lukasa.service.entries import put as writing
    from lukasa.service.entries import revise
    from lukasa.service.entries import undo as undoing
    from lukasa.service.entries.put import Memo, Written
    from lukasa.service.entries.undo import Undone
    from lukasa.service.jobs import queue
    from lukasa.service.retrieval import context as orienting
    from lukasa.service.retrieval import explain
    from lukasa.service.retrieval import read as reading
    from lukasa.service.retrieval.read import Question, Recall
    from lukasa.service.sessions import transcripts
    from lukasa.service.sessions.conversations import Ended
    from lukasa.service.sessions.transcripts import Taken
    from lukasa.service.upkeep import backfill as backfilling
    from lukasa.service.upkeep import dispose as disposing
    from lukasa.storage.port import Said as Found
    from lukasa.upkeep.scrub import Manifest
    from lukasa.upkeep.weighed import Weighed
else:
    # Each is loaded by the first verb that needs it: a hook calls three or four.
    fading = late("lukasa.read.decay")
    backfilling = late("lukasa.service.upkeep.backfill")
    counting = late("lukasa.service.admin.stats")
    document = late("lukasa.service.curation.document")
    disposing = late("lukasa.service.upkeep.dispose")
    journaling = late("lukasa.service.curation.slog")
    orienting = late("lukasa.service.retrieval.context")
    pages = late("lukasa.service.entries.pages")
    queue = late("lukasa.service.jobs.queue")
    reading = late("lukasa.service.retrieval.read")
    review = late("lukasa.service.curation.review")
    revise = late("lukasa.service.entries.revise")
    scrub = late("lukasa.service.admin.scrub")
    overview = late("lukasa.service.admin.overview")
    explain = late("lukasa.service.retrieval.explain")
    transcripts = late("lukasa.service.sessions.transcripts")
    undoing = late("lukasa.service.entries.undo")
    writing = late("lukasa.service.entries.put")


class Standing(Struct, frozen=True):
    """Where an entry stands now, before any question: its relevance and the factors of it."""

    entry: Entry
    access: Access | None
    decay: float
    frequency: float
    relevance: float
    awaits_disposition: bool


class Workspace(Struct, frozen=True):
    ctx: CallContext

    # Who and where

    @property
    def id(self) -> str:
        return self.ctx.info.id

    @property
    def name(self) -> str:
        return self.ctx.info.name

    @property
    def spec(self) -> MemorySpec:
        return self.ctx.spec

    def at(self, **keys: str) -> Workspace:
        """The same workspace with more of its scope bound, as in `at(channel=…)` or `at(org_id=…, domain_id=…)`.

        A channel may be given by name, a conversation by ref code; both must exist.
        """
        bound = dict(keys)
        if "conversation" in keys:
            found = talking.conversation(self.ctx, keys["conversation"])
            bound["conversation"] = found.id
            has_channel = any(k.name == "channel" for k in self.spec.anchor)
            if "channel" not in keys and has_channel and self.ctx.takes_part("channel", found.channel):
                bound["channel"] = found.channel
        if "channel" in keys:
            bound["channel"] = talking.channel(self.ctx, keys["channel"]).id
        return Workspace(self.ctx.at(**bound))

    def acting(
        self, *, agent: str | None = None, principal: str | None = None, trust: Trust | None = None
    ) -> Workspace:
        """The same workspace for an agent or another principal. Trust can only be lowered."""
        return Workspace(self.ctx.acting(agent=agent, principal=principal, trust=trust))

    # Writing

    @verb("memory", "put")
    def put(
        self,
        tier: str,
        content: str,
        *,
        kind: Kind | str | None = None,
        importance: float = 0.5,
        lifetime: Lifetime | str | None = None,
        tags: Sequence[str] = (),
        owner: str = SHARED,
        source: str = "",
        curator: Curator | str | None = None,
        links: Sequence[SourceLink | str] = (),
        derived_from: Sequence[str] = (),
        valid_at: datetime | str | None = None,
        supersedes: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Written:
        """Remember something in a tier. The answer says what became of it, and why."""
        memo = writing.Memo(
            content=content,
            kind=kind,
            importance=importance,
            lifetime=lifetime,
            tags=tags,
            owner=owner,
            source=source,
            curator=curator,
            links=links,
            derived_from=derived_from,
            valid_at=valid_at,
            supersedes=supersedes,
            metadata=metadata or {},
        )
        return writing.put_many(self.ctx, tier, [memo])[0]

    @verb("memory", "put")
    def put_many(self, tier: str, memos: Sequence[Memo | str]) -> list[Written]:
        """Remember a batch in one transaction: all of it, or none."""
        batch = inputs.several(memos, "memos")
        return writing.put_many(self.ctx, tier, [writing.Memo(m) if isinstance(m, str) else m for m in batch])

    @verb("memory", "update")
    def update(self, id: str, *, expect: int | None = None, **patch: Any) -> Written:
        """Change content, importance, tags, kind, lifetime, metadata or valid_at of an entry.

        With `expect`, only if it is still at that version; otherwise the change is applied to whatever it is now.
        """
        return revise.update(self.ctx, id, patch, expect=expect)

    @verb("memory", "forget")
    def forget(self, id: str, reason: str = "forgotten on request") -> Written:
        """Take an entry out of memory. Its row and history stay; `restore` brings it back.

        What it had corrected is in force again, unless something else speaks against that.
        """
        return revise.forget(self.ctx, id, inputs.label(reason, "reason"))

    @verb("memory", "restore")
    def restore(self, id: str, reason: str = "restored on request") -> Written:
        """Bring an entry back from history; what contradicts it now is retired."""
        return revise.restore(self.ctx, id, inputs.label(reason, "reason"))

    @verb("memory", "accept")
    def accept(self, id: str, reason: str = "accepted by the author") -> Written:
        """Let a held entry in. Only the author may."""
        return revise.accept(self.ctx, id, inputs.label(reason, "reason"))

    @verb("memory", "undo")
    def undo(self, what: str | int, reason: str = "undone on request") -> Undone:
        """Take back the last change of an entry, the change of an event, or all that a job changed."""
        return undoing.undo(self.ctx, what, inputs.label(reason, "reason"))

    @verb("memory", "link")
    def link_action(self, action: str, entries: Sequence[str], description: str = "") -> None:
        """Record that an action rests on entries: from now on none of their rows can be removed."""
        label = inputs.label(action, "action")
        found = [self.ctx.entry(id) for id in entries]
        if not found:
            raise InvalidInput("an action must rest on at least one entry", fix="name the entries")
        for store in (self.ctx.local, self.ctx.account):
            ids = tuple(entry.id for home, entry in found if home is store)
            if ids:
                self.ctx.apply(store, LinkAction(label, description[:2000], ids))

    # Finding

    @verb("memory", "read", reads=True)
    def read(
        self,
        query: str,
        *,
        tier: str | Sequence[str] | None = None,
        profile: str = "auto",
        limit: int | None = None,
        held: bool = False,
        history: bool = False,
        as_of: datetime | str | None = None,
        count: bool = True,
        rewrite: bool | None = None,
        **conditions: Any,
    ) -> Recall:
        """Ranked hits, each explaining itself. One tier reads that tier alone; none widens over all that are bound.

        Conditions: kind, category, tags, source, curator, state, since, until. Where a language model is set, it may
        put the question into better words first, as the profile says or `rewrite` does.
        """
        question = self._question(query, tier, profile, limit, held, history, as_of, conditions)
        asked = question if rewrite is None else replace(question, rewrite=rewrite)
        return reading.read(self.ctx, asked, count=count)

    def why(self, query: str, id: str, *, tier: str | Sequence[str] | None = None, **options: Any) -> list[Verdict]:
        """Why an entry is, or is not, among the hits of a query: every stage with its reason."""
        given = {"profile": "auto", "limit": None, "held": False, "history": False, "as_of": None}
        taken = {key: options.pop(key, default) for key, default in given.items()}
        return explain.why(self.ctx, self._question(query, tier, conditions=options, **taken), id)

    def _question(
        self,
        query: str,
        tier: str | Sequence[str] | None,
        profile: str,
        limit: int | None,
        held: bool,
        history: bool,
        as_of: datetime | str | None,
        conditions: Mapping[str, Any],
    ) -> Question:
        tiers = None if tier is None else (tier,) if isinstance(tier, str) else tuple(tier)
        moment = inputs.moment(as_of, "as_of") if as_of is not None else None
        filters = self._filters(conditions)
        # Asking for a state is asking to see it.
        seen = {VISIBILITY[state] for state in filters.states}
        held, history = held or Visibility.HELD in seen, history or Visibility.HISTORY in seen
        return reading.Question(query, tiers, profile, limit, filters, held, history, moment)

    def _filters(self, conditions: Mapping[str, Any]) -> Filters:
        if not conditions:
            return NO_FILTERS
        known = ("kind", "category", "tags", "source", "curator", "state", "since", "until")
        unknown = set(conditions) - set(known)
        if unknown:
            raise InvalidQuery(f"unknown condition {sorted(unknown)[0][:60]!r}", fix=f"use: {', '.join(known)}")
        return reading.filters(**conditions)

    @verb("memory", "context", reads=True)
    def context(
        self,
        query: str = "",
        *,
        tiers: Sequence[str] | None = None,
        budget: int | None = None,
        profile: str = "balanced",
        count: bool = False,
    ) -> Context:
        """The orientation document for a prompt: `str()` of it is the text, `.document` the same as data."""
        chosen = None if tiers is None else (tiers,) if isinstance(tiers, str) else tuple(tiers)
        return orienting.context(self.ctx, query, tiers=chosen, budget=budget, profile=profile, count=count)

    def get(self, id: str) -> Entry:
        return self.ctx.entry(id)[1]

    def entries(
        self,
        tier: str,
        *,
        limit: int = 100,
        after: str | None = None,
        everything: bool = False,
        **conditions: Any,
    ) -> list[Entry]:
        """Entries of one tier, newest first; `everything` adds what is held or history. Nothing is counted."""
        rooms = frozenset(Visibility) if everything or "state" in conditions else frozenset({Visibility.OPEN})
        owners = None if self.ctx.is_author else self.ctx.owners
        selection = Selection((self.ctx.scope(tier),), rooms, owners, self._filters(conditions))
        page = parse_id(after, "after") if after is not None else None
        return self.ctx.store(tier).find(selection, limit=inputs.limit(limit), after=page)

    def standing(self, id: str) -> Standing:
        """An entry's present relevance with every factor of it."""
        store, entry = self.ctx.entry(id)
        access = store.access([entry.id]).get(entry.id)
        decay = self.spec.behaviour(entry.scope.tier, entry.kind).decay
        closed = None
        if entry.scope.value("conversation"):
            conversation = store.conversation(entry.scope.value("conversation") or "")
            closed = conversation.ended_at if conversation else None
        factor = fading.decay_factor(decay, entry, access, self.ctx.now, closed)
        often = fading.frequency(access)
        value = fading.relevance(entry.importance, factor, often)
        return Standing(entry, access, factor, often, value, fading.awaits_disposition(decay, value))

    def stats(self, since: datetime | str = "7d") -> Stats:
        """What is remembered and what happened to it since a time, or for so long: 24h, 7d, 2w. The author's."""
        moment = inputs.since(since, "since", self.ctx.now)
        return counting.stats(self.ctx, moment)

    def reports(
        self,
        since: datetime | str = "24h",
        *,
        component: str | None = None,
        action: str | None = None,
        failed: bool = False,
        limit: int = 100,
    ) -> list[TelemetryEvent]:
        """What single steps reported of themselves since a time, the newest first. The author's."""
        moment = inputs.since(since, "since", self.ctx.now)
        query = TelemetryQuery(since=moment, component=component, action=action, success=False if failed else None)
        return counting.reports(self.ctx, query, inputs.limit(limit))

    def dispositions(self) -> list[Weighed]:
        """What has faded so far that somebody must decide about it, the most faded first. The author's."""
        return disposing.waiting(self.ctx)

    @verb("memory", "dispose")
    def dispose(self, id: str, how: str, reason: str = "decided by the author") -> Written:
        """Decide about an entry that waits: `promote` it to a fact, `exempt` it from decay, or `archive` it."""
        verbs = ("promote", "exempt", "archive")
        if how not in verbs:
            raise InvalidInput(f"{str(how)[:60]!r} is no disposition", fix=f"use one of: {', '.join(verbs)}")
        done: Written = getattr(disposing, how)(self.ctx, id, inputs.label(reason, "reason"))
        return done

    def history(self, id: str) -> list[Version]:
        """Every form an entry has had, oldest first."""
        store, entry = self.ctx.entry(id)
        return store.versions(entry.id)

    def ledger(self, id: str) -> list[Event]:
        """Every event about an id, also of a write that was discarded or refused: why it is as it is."""
        key = parse_id(id)
        stores = (self.ctx.local, self.ctx.account)
        if any(key in store.entries([key]) for store in stores):
            self.ctx.entry(key)  # somebody else's private entry has no history here either
        return [e for store in stores for e in store.events(subject=key)]

    def census(self) -> list[Census]:
        """Counts by scope and state, private entries included: this workspace's and the account's. The author's."""
        self.ctx.require_author("count all entries")
        return [*self.ctx.local.census(), *self.ctx.account.census()]

    def survey(self) -> Survey:
        """The workspace at a glance: counts, growth, what fades, what waits. The author's."""
        return overview.survey(self.ctx)

    def evidence(self, id: str) -> list[Said]:
        """The words that an entry rests on, as they were said."""
        return overview.evidence(self.ctx, id)

    # Review and curation

    def inbox(self, *, limit: int = 100) -> Inbox:
        """What waits for you: held entries and proposals, each with why and the words it came from."""
        return review.inbox(self.ctx, inputs.limit(limit))

    @verb("review", "approve")
    def approve(self, id: str, *, text: str | None = None, reason: str = "approved by the author") -> Decided:
        """Let a held entry in, or put a proposal on the curated page; with `text`, in these words instead."""
        return review.approve(self.ctx, id, text=text, reason=inputs.label(reason, "reason"))

    @verb("review", "reject")
    def reject(self, id: str, reason: str = "rejected by the author") -> Decided:
        """Set a held entry aside, or turn a proposal down; neither is lost."""
        return review.reject(self.ctx, id, reason=inputs.label(reason, "reason"))

    @property
    def curated(self) -> Curated:
        """The curated document: its text, history and file."""
        return document.Curated(self.ctx)

    # Standing content

    def named(self) -> list[NamedEntry]:
        return pages.named(self.ctx)

    def get_named(self, name: str) -> NamedEntry:
        return pages.get_named(self.ctx, name)

    @verb("page", "edit")
    def edit_named(self, name: str, body: str, *, tier: str | None = None, expect: int | None = None) -> NamedEntry:
        return pages.edit_named(self.ctx, name, body, tier=tier, expect=expect)

    def named_history(self, name: str) -> list[NamedEntry]:
        return pages.named_versions(self.ctx, name)

    def documents(self) -> list[Document]:
        return pages.documents(self.ctx)

    def get_document(self, id: str) -> Document:
        return pages.get_document(self.ctx, id)

    @verb("document", "save")
    def save_document(
        self,
        id: str,
        body: str,
        *,
        title: str = "",
        collection: str = "documents",
        origin: str = "author",
        lifecycle: str = "current",
        weight: float = 1.0,
        standing: str = "canonical",
    ) -> Document:
        """Add or revise canonical content, with its standing in the world."""
        return pages.save_document(
            self.ctx,
            id,
            body,
            title=title,
            collection=collection,
            origin=origin,
            lifecycle=lifecycle,
            weight=weight,
            standing=standing,
        )

    @verb("document", "remove")
    def remove_document(self, id: str) -> Document:
        return pages.remove_document(self.ctx, id)

    # Conversations

    def channels(self) -> list[Channel]:
        return talking.channels(self.ctx)

    @verb("channel", "create")
    def create_channel(self, name: str, description: str = "") -> Channel:
        return talking.create_channel(self.ctx, name, description)

    @verb("conversation", "start")
    def start(self, channel: str | None = None) -> Conversation:
        """Start a conversation, in the default channel if none is named. `at(conversation=…)` then works in it."""
        return talking.start(self.ctx, channel)

    def conversations(self, *, archived: bool = False, channel: str | None = None) -> list[Conversation]:
        chosen = talking.channel(self.ctx, channel).id if channel is not None else None
        return talking.conversations(self.ctx, archived=archived, channel=chosen)

    def conversation(self, id_or_ref: str) -> Conversation:
        return talking.conversation(self.ctx, id_or_ref)

    @verb("conversation", "idle")
    def idle(self, id_or_ref: str) -> Conversation:
        return talking.idle(self.ctx, id_or_ref)

    @verb("conversation", "archive")
    def archive(self, id_or_ref: str) -> Conversation:
        return talking.archive(self.ctx, id_or_ref)

    @verb("conversation", "end")
    def end(self, id_or_ref: str) -> Ended:
        """Idle a conversation and clear what lives only in it; the answer counts what was dropped and archived."""
        return talking.end(self.ctx, id_or_ref)

    @verb("note", "write")
    def write_note(self, conversation: str, key: str, value: object) -> Note:
        return talking.write_note(self.ctx, conversation, key, value)

    def read_note(self, conversation: str, key: str) -> Note:
        return talking.read_note(self.ctx, conversation, key)

    def notes(self, conversation: str) -> list[Note]:
        return self.ctx.local.notes(talking.conversation(self.ctx, conversation).id)

    @verb("note", "clear")
    def clear_notes(self, conversation: str, key: str | None = None) -> int:
        return talking.clear_notes(self.ctx, conversation, key)

    # Background work

    def jobs(self, *, state: JobState | str | None = None, kind: str | None = None, limit: int = 100) -> list[Job]:
        """The work that waits, runs, is done or died; the last touched first. The author's, like all about jobs."""
        return queue.jobs(self.ctx, state=state, kind=kind, limit=limit)

    def job(self, id_or_key: str) -> Job:
        return queue.job(self.ctx, id_or_key)

    def job_steps(self, id_or_key: str) -> dict[str, Any]:
        """The journal of a job: what each finished step gave, in order."""
        return queue.steps(self.ctx, id_or_key)

    @verb("job", "retry")
    def retry_job(self, id_or_key: str) -> Job:
        """Queue a dead or cancelled job again, with the journal it had."""
        return queue.retry(self.ctx, id_or_key)

    @verb("job", "cancel")
    def cancel_job(self, id_or_key: str, reason: str = "cancelled on request") -> Job:
        """Give a job up that is not finished."""
        return queue.cancel(self.ctx, id_or_key, reason)

    # Removing for good

    def scrub_plan(self, tier: str, *, mode: Mode | str = Mode.FULL) -> Manifest:
        """What a scrub of this tier's scope would remove; `keep_named` spares the named entries. Removes nothing."""
        return scrub.plan(self.ctx, tier, mode)

    @verb("scrub", "execute")
    def scrub_execute(self, tier: str, *, confirm: str, mode: Mode | str = Mode.FULL) -> Scrubbed:
        """Remove all of it for good. `confirm` repeats the plan's digest. Only the author may; there is no undo."""
        return scrub.execute(self.ctx, tier, confirm, mode)

    def purge_plan(self, conversation: str) -> Manifest:
        """What a purge of one conversation would remove, its checkpoints and events included. Removes nothing."""
        return scrub.plan_purge(self.ctx, conversation)

    @verb("scrub", "purge")
    def purge_execute(self, conversation: str, *, confirm: str) -> Scrubbed:
        """Remove all of a conversation for good, and archive it. Only the author may; there is no undo."""
        return scrub.purge(self.ctx, conversation, confirm)

    # Sessions that were recorded

    @verb("observe", "hand-in")
    def observe(self, path: str | Path) -> Taken:
        """Take in a session file: kept and findable at once, and queued to be observed. Again, it adds what is new."""
        self.ctx.require_agent("take in transcripts")
        return transcripts.take_in(self.ctx, str(path))

    @verb("observe", "again")
    def observe_by_rules(self, id_or_key: str) -> Transcript:
        """Have what is left of a transcript observed without a model, as after it has failed for good."""
        return transcripts.again(self.ctx, id_or_key)

    def transcripts(
        self, *, progress: Progress | str | None = None, limit: int = 100, after: str | None = None
    ) -> list[Transcript]:
        """Sessions that were taken in, the last first."""
        return transcripts.transcripts(self.ctx, progress=progress, limit=limit, after=after)

    def transcript(self, id_or_key: str) -> Transcript:
        return transcripts.transcript(self.ctx, id_or_key)

    def said(self, id_or_key: str, *, start: int = 0, limit: int | None = None) -> list[Utterance]:
        """The messages of a transcript, in order."""
        return transcripts.said(self.ctx, id_or_key, start=start, limit=limit)

    def search_transcripts(self, words: str, limit: int = 20) -> list[Found]:
        """Messages with any of these words, the best match first, also of sessions that wait to be observed."""
        return transcripts.search(self.ctx, words, limit)

    # Log and health

    @property
    def slog(self) -> Slog:
        """The structured log: what was done, with what and why, in a file that is only ever added to."""
        return journaling.Slog(self.ctx)

    def events(self, *, after: int = 0, limit: int = 100, action: str | None = None) -> list[Event]:
        self.ctx.require_author("read the event log")
        return self.ctx.local.events(after=after, limit=inputs.limit(limit, 100_000), action=action)

    def verify(self) -> list[str]:
        """What is wrong with this workspace's event chain; empty when it verifies."""
        return chain_faults(self.ctx.local.event_stream(), head=self.ctx.local.head())

    def check(self) -> list[Finding]:
        return self.ctx.local.check()

    @verb("index", "rebuild")
    def rebuild(self) -> None:
        self.ctx.local.rebuild()

    @verb("vectors", "backfill")
    def backfill(self, limit: int = 1000) -> int:
        """Embed entries and items that have no vector of the present model yet; returns how many got one."""
        return backfilling.backfill(self.ctx, inputs.limit(limit, 1_000_000))
