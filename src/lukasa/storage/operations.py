"""Operations: the values that describe every change of a store, and the event that each of them leaves in the log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct, field

from lukasa.model.amendment import Amendment
from lukasa.model.answer import Answer
from lukasa.model.citation import Citation, CitationCheck, citations_text
from lukasa.model.conversation import Channel, Conversation, Note, Status, WorkspaceInfo
from lukasa.model.corpus import DocumentSource, Passage, Watch
from lukasa.model.entry import ClosedScope, Confirmation, Document, Entry, NamedEntry, Rivalry
from lukasa.model.events import SCRUBBED, Actor, EventDraft, Redacted, Spelled, canonical_json
from lukasa.model.grant import Grant
from lukasa.model.item import Item, ItemAddress, item_id, value_text
from lukasa.model.job import JobDraft
from lukasa.model.scrub import Extent
from lukasa.model.submission import Submission
from lukasa.model.sync import KeptRevision, SyncNote
from lukasa.model.telemetry import Level, Spending, TelemetryEvent
from lukasa.model.text import commitment
from lukasa.model.transcript import Transcript, Utterance
from lukasa.model.values import Trust
from lukasa.ports import EmbeddingModel, Vector


class ItemVector(Struct, frozen=True):
    """The vector of one field of an item. `field` is the path that leads to its text."""

    field: str
    model: EmbeddingModel
    vector: Vector


class ItemIndex(Struct, frozen=True):
    """The texts that an item is found by, kept with it: each field with its text, None for the whole value.

    `by` is empty if the workspace's embedder makes the vectors, and otherwise says who does.
    """

    texts: tuple[tuple[str, str | None], ...] = ()
    by: str = ""


class SaveItem(Struct, frozen=True):
    """Insert an item, or replace the one in its place, which keeps its time of creation and loses its vectors."""

    item: Item
    vectors: tuple[ItemVector, ...] = ()
    index: ItemIndex = ItemIndex()


class SaveItemVectors(Struct, frozen=True):
    """Add vectors of a model to an item that has none of it; ignored if its value or its index has moved on."""

    place: ItemAddress
    value: dict[str, Any]
    index: ItemIndex
    vectors: tuple[ItemVector, ...]


class DropItem(Struct, frozen=True):
    """Remove an item for good. With `expired_by`, only one that has expired by then; otherwise a Conflict."""

    place: ItemAddress
    cause: str
    expired_by: datetime | None = None


class Enqueue(Struct, frozen=True):
    """Add a job to the queue. If there is a job with that key, in any state, nothing happens."""

    draft: JobDraft


class JournalStep(Struct, frozen=True):
    """Keep the result of a step, under a claim. LostClaim if another worker has taken the job since."""

    job: str
    claim: int
    name: str
    output: Any


class FinishJob(Struct, frozen=True):
    job: str
    claim: int
    result: dict[str, Any] = field(default_factory=dict)


class FailJob(Struct, frozen=True):
    """This attempt failed: try again at `run_after`, or with None never."""

    job: str
    claim: int
    error: str
    run_after: datetime | None


class PostponeJob(Struct, frozen=True):
    """Put a job back as if this attempt had not begun: the worker stops, a breaker is open, the budget is spent."""

    job: str
    claim: int
    until: datetime
    reason: str


class ReviveJob(Struct, frozen=True):
    """A dead or cancelled job is queued again, with all its attempts before it and the journal it had."""

    job: str


class CancelJob(Struct, frozen=True):
    """Give up a job that is not finished. Its worker can write no more."""

    job: str
    reason: str


class ForgetJobs(Struct, frozen=True):
    """Remove finished jobs and their journals, last touched before a time. Dead ones stay: they wait for a person."""

    before: datetime


class SaveTranscript(Struct, frozen=True):
    """Insert (`expect` 0) or replace the version `expect`. Its key is unique."""

    transcript: Transcript
    expect: int


class KeepUtterances(Struct, frozen=True):
    """Add messages to a transcript that is here. A place that is taken is a Conflict, unless they come `instead`."""

    transcript: str
    utterances: tuple[Utterance, ...]
    instead: bool = False


class SaveAmendment(Struct, frozen=True):
    amendment: Amendment
    expect: int


class SaveSubmission(Struct, frozen=True):
    """Insert (`expect` 0) or replace the version `expect` of a change that is submitted to a document."""

    submission: Submission
    expect: int


class EmptySubmissions(Struct, frozen=True):
    """Take the words out of the submissions that rest on these entries, which were removed for good elsewhere."""

    entries: tuple[str, ...]


class Emit(Struct, frozen=True):
    """Telemetry. It is no event: the log says what changed, this says how the work went."""

    point: TelemetryEvent


class ForgetTelemetry(Struct, frozen=True):
    """Remove telemetry events from before a time; of one level alone, if one is named."""

    before: datetime
    level: Level | None = None


class ForgetDisclosures(Struct, frozen=True):
    """Remove disclosures from before a time, and the oldest of those that are more than `most`.

    In the account's store it is about those that were sent from one workspace.
    """

    before: datetime
    most: int
    workspace: str = ""


class Spend(Struct, frozen=True):
    """Add to the spending of a model on a day."""

    spending: Spending


PipelineOperation = (
    Enqueue
    | JournalStep
    | FinishJob
    | FailJob
    | PostponeJob
    | ReviveJob
    | CancelJob
    | ForgetJobs
    | SaveTranscript
    | KeepUtterances
    | SaveAmendment
    | SaveSubmission
    | EmptySubmissions
    | Emit
    | ForgetTelemetry
    | ForgetDisclosures
    | Spend
)


class SaveGrant(Struct, frozen=True):
    """Insert (`expect` 0) or replace the version `expect`. A different current version is a Conflict."""

    grant: Grant
    expect: int


class SaveAnswer(Struct, frozen=True):
    """Take a key (status 0), or keep its answer. A key that another request has, or that is taken, is a Conflict.

    A key that was taken before `stale` and never answered may be taken again: whoever had it is gone.
    """

    answer: Answer
    stale: datetime | None = None


class DropAnswer(Struct, frozen=True):
    """Give a key back that was taken: nothing came of the request."""

    key: str


class ForgetAnswers(Struct, frozen=True):
    before: datetime


AccessOperation = SaveGrant | SaveAnswer | DropAnswer | ForgetAnswers


def grant_detail(grant: Grant) -> dict[str, Any]:
    """The detail of a grant's event."""
    return {
        "name": grant.name,
        "agent": grant.agent,
        "workspaces": list(grant.workspaces),
        "capabilities": [str(c) for c in grant.capabilities],
    }


def grant_text(grant: Grant) -> str:
    """All of a grant in one spelling: what the log commits to, so that a row cannot be widened behind its back."""
    times = [t.isoformat() if t else None for t in (grant.created_at, grant.expires_at, grant.revoked_at)]
    reach: list[Any] = [list(grant.reach.tiers), list(grant.reach.channels), list(grant.reach.conversations)]
    if grant.reach.scope:  # grants of before have none, and keep their spelling
        reach.append(dict(grant.reach.scope))
    who = [grant.id, grant.principal, grant.trust.name, grant.digest]
    return canonical_json([who, grant_detail(grant), reach, times])


class Scrub(Struct, frozen=True):
    """Remove everything in an extent: rows, versions, vectors, index, links; and empty the events about it.

    `expect` is the manifest's digest: if what is there is anything else, a Conflict. `about` goes into the event,
    which the store completes with the events it has emptied.

    An erasure may leave some of its entries without the words: `restated` has what they say instead. Their earlier
    versions are gone all the same, so each begins again with version 1.
    """

    extent: Extent
    expect: str
    about: Mapping[str, Any] = field(default_factory=dict)
    redacted: Redacted = Redacted()
    restated: tuple[Entry, ...] = ()

    def draft(self) -> EventDraft:
        scope = self.extent.scope
        subject = scope.tier if scope is not None else self.extent.conversation or ""
        detail = {"mode": str(self.extent.mode), "scope": self.extent.plain(), "digest": self.expect}
        return EventDraft(SCRUBBED, subject, {**self.about, **detail, "redacted": self.redacted.plain()})


class DropWorkspace(Struct, frozen=True):
    """Take a workspace off the account's list for good, and empty the events that name it. Its store goes first.

    `about` goes into the event, which vouches for those that it empties as that of a scrub does.
    """

    id: str
    about: Mapping[str, Any] = field(default_factory=dict)
    redacted: Redacted = Redacted()

    def draft(self) -> EventDraft:
        detail = {"mode": "workspace", "scope": {"workspace": self.id}, "redacted": self.redacted.plain()}
        return EventDraft(SCRUBBED, self.id, {**self.about, **detail})


class Embedding(Struct, frozen=True):
    model: EmbeddingModel
    vector: Vector


class Verdict(Struct, frozen=True):
    """The decision of one step, and its reason. Reasons name ids and numbers, never the content itself."""

    step: str
    outcome: str
    reason: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        return {"step": self.step, "outcome": self.outcome, "reason": self.reason, **self.data}

    def spelled(self) -> str | None:
        """The canonical JSON of that, if there is nothing in it that reading back might change."""
        if not self.data:
            return _plain_step(self.outcome, self.reason, self.step)
        flat = all(type(key) is str and type(value) in _FLAT for key, value in self.data.items())
        return canonical_json(self.plain()) if flat else None


_FLAT = (str, int, float, bool)


@lru_cache(maxsize=1024)
def _plain_step(outcome: str, reason: str, step: str) -> str:
    return canonical_json({"outcome": outcome, "reason": reason, "step": step})


class SaveEntry(Struct, frozen=True):
    """Insert (`expect` 0) or replace the version `expect`. A different current version is a Conflict."""

    entry: Entry
    expect: int
    action: str
    cause: str
    ledger: tuple[Verdict, ...] = ()
    embedding: Embedding | None = None


class DropEntry(Struct, frozen=True):
    """Remove an entry for good: one of a transient scope, on which no action rests.

    `exempt` names the rules of the audit posture that the spec lifts for this removal, each with the spec's reason.
    """

    id: str
    expect: int
    cause: str
    exempt: dict[str, str] = field(default_factory=dict)


class CloseScope(Struct, frozen=True):
    """End a scope for good. One that has ended already is a Conflict, unless it is to be said `again` of what."""

    closed: ClosedScope
    again: bool = False


class SaveEmbedding(Struct, frozen=True):
    """Attach a vector to the version of the text that it was computed from; ignored if the text has moved on."""

    id: str
    version: int
    embedding: Embedding


class SaveRivalry(Struct, frozen=True):
    """Note that two entries concern the same thing, or how somebody judged that. Both entries stay as they are."""

    rivalry: Rivalry


class DropRivals(Struct, frozen=True):
    """Forget the pairs of an entry, because its text is another one now."""

    id: str


class SaveConfirmation(Struct, frozen=True):
    """Note that somebody stated an entry again."""

    confirmation: Confirmation


class SaveCitations(Struct, frozen=True):
    """Give an entry these citations in place of those with the ids `onto`. If it has others, a Conflict.

    The checks of citations that go are removed with them.
    """

    entry: str
    citations: tuple[Citation, ...]
    onto: tuple[str, ...] = ()


class SaveChecks(Struct, frozen=True):
    """Keep what checks found. It is no event, because it changes no memory; a check of what is gone is let go."""

    checks: tuple[CitationCheck, ...]


class SaveNamed(Struct, frozen=True):
    entry: NamedEntry
    expect: int


class SaveDocument(Struct, frozen=True):
    """Insert a document (`expect` 0) or replace the version `expect`, with the passages of its text and its source.

    Without `passages`, the document is noted as one that has still to be split. Without `source`, it has none.
    """

    document: Document
    expect: int
    passages: tuple[Passage, ...] | None = None
    source: DocumentSource | None = None


class SavePassages(Struct, frozen=True):
    """Store the passages of a document that is to be split; ignored if the document has moved on."""

    document: str
    version: int
    passages: tuple[Passage, ...]


class SavePassageEmbedding(Struct, frozen=True):
    """Attach a vector to a passage; ignored if its document has moved on."""

    document: str
    version: int
    number: int
    embedding: Embedding


class SaveDocumentSource(Struct, frozen=True):
    """Note what is known of the source of a document that is here, whose text has not changed."""

    source: DocumentSource


class SaveWatch(Struct, frozen=True):
    """Begin to follow a folder or a feed (`expect` 0), or note what is known of it now."""

    watch: Watch
    expect: int


class DropWatch(Struct, frozen=True):
    id: str
    expect: int


class SaveChannel(Struct, frozen=True):
    """Make a channel, or with `again` change the one that has its id."""

    channel: Channel
    again: bool = False


class SaveConversation(Struct, frozen=True):
    """`expect` is the status it must have now; None inserts it."""

    conversation: Conversation
    expect: Status | None


class SaveNote(Struct, frozen=True):
    """Write a note. With `onto`, only in place of what was read: that note, or nothing (None); else a Conflict."""

    note: Note
    onto: Note | Literal["anything"] | None = "anything"


class DropNotes(Struct, frozen=True):
    conversation: str
    key: str | None = None


class LinkAction(Struct, frozen=True):
    """Record that an action rests on these entries; from now on none of them can be dropped."""

    action: str
    description: str
    entries: tuple[str, ...]


class SaveWorkspace(Struct, frozen=True):
    """Register a workspace (`expect` None) or mark it ready (`expect` its present readiness)."""

    info: WorkspaceInfo
    expect: bool | None


class KeepRevisions(Struct, frozen=True):
    """Keep what a sync knows: revisions, each new or in place of the one with its digest, and notes of this machine.

    With `read`, a Conflict if the log had other events when the transaction began: what was decided with, is past. Then
    the note of that name also says how far the log goes after the transaction. It is no event itself.
    """

    revisions: tuple[KeptRevision, ...] = ()
    notes: tuple[SyncNote, ...] = ()
    forget: tuple[str, ...] = ()  # notes that go
    drop: tuple[str, ...] = ()  # digests of revisions that another store keeps from now on
    read: int | None = None


class ForgetThing(Struct, frozen=True):
    """Remove a thing for good, because another machine erased it.

    `name` is its name or id; of a message, the transcript and its place; of a confirmation, the entry. Then `value`
    says which of the entry's.
    """

    kind: Literal["page", "document", "transcript", "utterance", "amendment", "confirmation"]
    name: tuple[str, ...]
    value: Confirmation | None = None


class Record(Struct, frozen=True):
    """An event without a row: a discarded write, a refused one, an operator's note."""

    draft: EventDraft


Operation = (
    SaveEntry
    | DropEntry
    | CloseScope
    | SaveEmbedding
    | SaveRivalry
    | DropRivals
    | SaveConfirmation
    | SaveCitations
    | SaveChecks
    | SaveNamed
    | SaveDocument
    | SavePassages
    | SavePassageEmbedding
    | SaveDocumentSource
    | SaveWatch
    | DropWatch
    | SaveChannel
    | SaveConversation
    | SaveNote
    | DropNotes
    | LinkAction
    | SaveWorkspace
    | DropWorkspace
    | SaveItem
    | SaveItemVectors
    | DropItem
    | KeepRevisions
    | ForgetThing
    | Record
    | AccessOperation
    | Scrub
    | PipelineOperation
)


class Transaction(Struct, frozen=True):
    actor: Actor
    at: datetime
    operations: tuple[Operation, ...]


def describe(operation: Operation, salt: bytes) -> EventDraft | None:
    """The event of an operation; None for vectors, jobs, telemetry and answers, which change no memory.

    Content never enters the log: a salted commitment does, so that the log can outlive an erasure.
    """
    match operation:
        case SaveEntry(entry, expect, action, cause, ledger):
            return EventDraft(action, entry.id, _entry_detail(entry, expect, cause, ledger, salt))
        case DropEntry(id, expect, cause, exempt):
            detail = {"version": expect, "cause": cause} | ({"exempt": exempt} if exempt else {})
            return EventDraft("entry.dropped", id, detail)
        case CloseScope(closed):
            keys = canonical_json(closed.scope.anchor)
            ended = {"event": closed.event, "commitment": commitment(salt, keys)}
            return EventDraft("scope.ended", closed.scope.tier, ended)
        case SaveRivalry(rivalry):
            action = "rivals.judged" if rivalry.decided_by else "rivals.found"
            found = {"other": rivalry.other, "relation": str(rivalry.relation), "reason": rivalry.reason}
            return EventDraft(action, rivalry.entry, found | {"decided_by": rivalry.decided_by})
        case DropRivals(id):
            return EventDraft("rivals.dropped", id, {})
        case SaveCitations(entry_id, citations):
            kinds = {str(kind): sum(c.kind is kind for c in citations) for kind in {c.kind for c in citations}}
            proof = commitment(salt, citations_text(citations))
            return EventDraft("citation.made", entry_id, {"citations": kinds, "commitment": proof})
        case SaveNamed(named, expect):
            detail = {"tier": named.tier, "version": expect + 1, "commitment": commitment(salt, named.body)}
            return EventDraft("named.edited" if expect else "named.created", named.name, detail)
        case SaveDocument(document, expect):
            action = "document.removed" if document.removed else "document.saved"
            detail = {"version": expect + 1, "commitment": commitment(salt, document.body)}
            return EventDraft(action, document.id, detail)
        case SaveWatch(watch, 0):
            found = {"kind": watch.kind, "location": watch.location, "collection": watch.collection}
            return EventDraft("watch.begun", watch.id, found)
        case DropWatch(id, expect):
            return EventDraft("watch.ended", id, {"version": expect})
        case LinkAction(action, description, entries):
            return EventDraft("action.linked", action, {"description": description, "entries": list(entries)})
        case SaveWorkspace(info, expect_ready):
            action = "workspace.created" if expect_ready is None else "workspace.updated"
            return EventDraft(action, info.id, {"name": info.name, "preset": info.preset, "ready": info.ready})
        case SaveAmendment(amendment, expect):
            detail = {"section": amendment.section, "decided_by": amendment.decided_by, "reason": amendment.reason}
            detail |= {"version": expect + 1, "commitment": commitment(salt, amendment.line or amendment.change)}
            return EventDraft(f"amendment.{amendment.state}", amendment.id, detail)
        case SaveSubmission(submission, expect):
            return EventDraft(f"submission.{submission.state}", submission.id, _submitted(submission, expect, salt))
        case SaveGrant(grant, expect):
            action = "grant.created" if not expect else "grant.revoked" if grant.revoked_at else "grant.changed"
            detail = {**grant_detail(grant), "version": expect + 1, "commitment": commitment(salt, grant_text(grant))}
            return EventDraft(action, grant.id, detail)
        case Record(draft):
            return draft
        case Scrub() | DropWorkspace():
            return operation.draft()
        case _:
            return _of_a_session(operation, salt)


def _submitted(submission: Submission, expect: int, salt: bytes) -> dict[str, Any]:
    """The detail of a submission's event. It names the document, the memories and what was decided, without words."""
    about: dict[str, Any] = {"document": submission.document, "base": submission.base, "version": expect + 1}
    about |= {"memories": list(submission.memories), "commitment": commitment(salt, submission.change.text)}
    if submission.decided_by:
        about |= {"decided_by": submission.decided_by, "reason": submission.reason, "edited": submission.edited}
    if submission.accepted:
        about |= {"accepted": submission.accepted, "retired": list(submission.retired)}
    return about


def _of_a_session(operation: Operation, salt: bytes) -> EventDraft | None:
    """The event of an operation on channels, conversations, notes, items and transcripts."""
    match operation:
        case ForgetThing(kind, name):
            prefix = {"page": "named", "utterance": "transcript", "confirmation": "entry"}.get(kind, kind)
            return EventDraft(f"{prefix}.{'unconfirmed' if prefix == 'entry' else 'forgotten'}", name[0], {})
        case SaveChannel(channel, again):
            return EventDraft("channel.changed" if again else "channel.created", channel.id, {"name": channel.name})
        case SaveConversation(conversation, expect_status):
            action = f"conversation.{conversation.status}" if expect_status else "conversation.started"
            return EventDraft(action, conversation.id, {"channel": conversation.channel})
        case SaveNote(note):
            return EventDraft("note.written", note.conversation, {"key": note.key})
        case DropNotes(conversation_id, key):
            return EventDraft("note.cleared", conversation_id, {"key": key})
        case SaveItem(item):
            detail = {"commitment": commitment(salt, value_text(item.value))}
            return EventDraft("item.saved", item_id(salt, item.place), detail)
        case DropItem(place, cause):
            return EventDraft("item.dropped", item_id(salt, place), {"cause": cause})
        case SaveTranscript(transcript, expect):
            told = {"format": transcript.format, "kept": transcript.kept, "observed": transcript.observed}
            told |= {"progress": str(transcript.progress), "how": transcript.how, "version": expect + 1}
            return EventDraft("transcript.updated" if expect else "transcript.kept", transcript.id, told)
        case KeepUtterances(id, utterances):
            said = canonical_json([[u.id, u.role, u.text] for u in utterances])
            return EventDraft(
                "transcript.said", id, {"messages": len(utterances), "commitment": commitment(salt, said)}
            )
        case _:  # vectors, jobs, telemetry, answers
            return None


def _entry_detail(entry: Entry, expect: int, cause: str, ledger: tuple[Verdict, ...], salt: bytes) -> Mapping[str, Any]:
    """Spelled at once if all steps are: half of it is the same for most entries, and spelled already."""
    tier, version, by, trust = entry.scope.tier, expect + 1, entry.superseded_by, _TRUSTS[entry.trust]
    proof = commitment(salt, entry.content)
    steps = [step for verdict in ledger if (step := verdict.spelled()) is not None]
    if len(steps) == len(ledger):
        return Spelled(
            f'{{"cause":{canonical_json(cause)},"commitment":"{proof}","kind":"{entry.kind}",'
            f'"ledger":[{",".join(steps)}],"state":"{entry.state}",'
            f'"superseded_by":{"null" if by is None else canonical_json(by)},'
            f'"tier":{canonical_json(tier)},"trust":"{trust}","version":{version}}}'
        )
    return {
        "tier": tier,
        "version": version,
        "state": str(entry.state),
        "kind": str(entry.kind),
        "trust": trust,
        "cause": cause,
        "superseded_by": by,
        "commitment": proof,
        "ledger": [verdict.plain() for verdict in ledger],
    }


_TRUSTS = {trust: trust.name.lower() for trust in Trust}
