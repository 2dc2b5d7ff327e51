"""Every plain table and every query of one: the list that each backend gets its statements from.

Entries, their vectors and items have tables of their own shape; see `entry_codec` and `rows`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple

from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.answer import Answer
from lukasa.model.citation import Citation, CitationCheck, CitationVerdict, Cited
from lukasa.model.conversation import Channel, Conversation, Note, Status, WorkspaceInfo
from lukasa.model.corpus import DocumentSource, Passage, Unsplit, Watch
from lukasa.model.disclosure import Disclosure, items_of, items_text, mark, pack, unpack
from lukasa.model.entry import (
    CanonicalLink,
    ClosedScope,
    Confirmation,
    Derivation,
    Document,
    DocumentHead,
    NamedEntry,
    Rivalry,
    Scope,
)
from lukasa.model.events import Actor, Event, canonical_json
from lukasa.model.grant import Capability, Grant, Reach
from lukasa.model.job import Job, JobState
from lukasa.model.submission import Change, How, Submission, SubmissionMemory, SubmissionState
from lukasa.model.sync import Erasure, KeptRevision, Revision, Stage, SyncNote
from lukasa.model.telemetry import Spending, TelemetryEvent
from lukasa.model.text import content_hash
from lukasa.model.transcript import Progress, Quote, Transcript, Utterance
from lukasa.model.values import Origin, Outcome, Relation, Trust
from lukasa.storage.codec import (
    CANONICAL,
    FLAG,
    ISO_TIME,
    JSON,
    REAL,
    TEXTS,
    TIME,
    TIME_OR_NONE,
    Codec,
    Column,
    PartQuery,
    Query,
    Table,
    TextTable,
    enum,
)
from lukasa.storage.port import FoundUtterance


class ActionRow(Struct, frozen=True):
    """Something that rests on entries; see `LinkAction`."""

    id: str
    description: str
    at: datetime


class Step(Struct, frozen=True):
    """The result of a step of a job, and the claim that it was kept under."""

    job: str
    name: str
    claim: int
    at: datetime
    output: Any


class Purged(Struct, frozen=True):
    """A conversation that was purged here, and of which a chat may still keep something outside the store."""

    conversation: str


class SealedEvent(NamedTuple):
    """An event as its row: the columns of `EVENTS`, in their order."""

    seq: int
    at: str
    principal: str
    surface: str
    transport: str
    action: str
    subject: str
    detail: str
    previous: str
    digest: str


def _quotes(text: str) -> tuple[Quote, ...]:
    return tuple(Quote(*parts) for parts in json.loads(text))


_NAMED = (
    Column("name"),
    Column("tier"),
    Column("body"),
    Column("edited_at", TIME),
    Column("editor"),
    Column("version"),
)
NAMED = Table("named", NamedEntry, _NAMED, ("name",))
NAMED_VERSIONS = Table("named_versions", NamedEntry, _NAMED, ("name", "version"))
ALL_NAMED = Query(NAMED, order="name")
NAMED_OF_TIER = Query(NAMED, "tier =", order="name")
NAMED_AMONG = Query(NAMED, "name in")
ALL_NAMED_VERSIONS = Query(NAMED_VERSIONS, order="name version")
VERSIONS_OF_NAMED = Query(NAMED_VERSIONS, "name =", order="version")
VERSIONS_OF_NAMED_AMONG = Query(NAMED_VERSIONS, "name in")

_DOCUMENT = (
    Column("id"),
    Column("title"),
    Column("body"),
    Column("origin"),
    Column("lifecycle"),
    Column("weight", REAL),
    Column("standing"),
    Column("version"),
    Column("updated_at", TIME),
    Column("collection"),
    Column("removed", FLAG),
)
DOCUMENTS = Table("documents", Document, _DOCUMENT, ("id",))
DOCUMENT_VERSIONS = Table("document_versions", Document, _DOCUMENT, ("id", "version"))
ALL_DOCUMENT_VERSIONS = Query(DOCUMENT_VERSIONS, order="id version")
ALL_DOCUMENTS = Query(DOCUMENTS, order="place")
DOCUMENTS_AMONG = Query(DOCUMENTS, "id in", order="place")
VERSIONS_OF_DOCUMENT = Query(DOCUMENT_VERSIONS, "id =", order="version")
# Without their texts, which may be long.
_HEAD = tuple(column for column in _DOCUMENT if column.name != "body")
HEADS_AMONG = PartQuery(DOCUMENTS, DocumentHead, _HEAD, "id in", order="id")
HEADS_AFTER = PartQuery(DOCUMENTS, DocumentHead, _HEAD, "id >", "collection = optional", "removed =", order="id")
HEADS_OF_VERSIONS = PartQuery(DOCUMENT_VERSIONS, DocumentHead, _HEAD, "id =", order="version")

PASSAGES = TextTable(
    "passages",
    Passage,
    (
        Column("document"),
        Column("number"),
        Column("version"),
        Column("headings", TEXTS),
        Column("page"),
        Column("line"),
        Column("tags", TEXTS),
        Column("text_hash", derive=lambda passage: content_hash(passage.text)),
        Column("text"),
    ),
    ("document", "number"),
    text=lambda passage: passage.indexed,
    row="passage",
)
ALL_PASSAGES = Query(PASSAGES)
PASSAGES_FROM = Query(PASSAGES, "document =", "number >=", order="number")
PASSAGES_OF = Query(PASSAGES, "document in")

UNSPLIT = Table("unsplit", Unsplit, (Column("document"),), ("document",))
ALL_UNSPLIT = Query(UNSPLIT, order="document")

DOCUMENT_SOURCES = Table(
    "document_sources",
    DocumentSource,
    (
        Column("document"),
        Column("location"),
        Column("media_type"),
        Column("digest"),
        Column("read_at", TIME),
        Column("etag"),
        Column("modified"),
        Column("notes", TEXTS),
    ),
    ("document",),
)
SOURCES_AMONG = Query(DOCUMENT_SOURCES, "document in", order="document")
SOURCES_AT = Query(DOCUMENT_SOURCES, "location =", order="document")
SOURCES_BETWEEN = Query(DOCUMENT_SOURCES, "location >", "location <", order="location document")

WATCHES = Table(
    "watches",
    Watch,
    (
        Column("id"),
        Column("kind"),
        Column("location"),
        Column("collection"),
        Column("created_at", TIME, fixed=True),
        Column("due_at", TIME),
        Column("checked_at", TIME_OR_NONE),
        Column("etag"),
        Column("modified"),
        Column("failures"),
        Column("error"),
        Column("seen", TEXTS),
        Column("version"),
    ),
    ("id",),
)
ALL_WATCHES = Query(WATCHES, order="place")

CHANNELS = Table(
    "channels",
    Channel,
    (
        Column("id"),
        Column("workspace"),
        Column("name"),
        Column("description"),
        Column("is_default", FLAG),
        Column("created_at", TIME),
    ),
    ("id",),
)
ALL_CHANNELS = Query(CHANNELS, order="place")
CHANNELS_NAMED = Query(CHANNELS, "workspace =", "name =")
DEFAULT_CHANNELS = Query(CHANNELS, "workspace =", "is_default =")

CONVERSATIONS = Table(
    "conversations",
    Conversation,
    (
        Column("id"),
        Column("ref_code"),
        Column("channel"),
        Column("started_at", TIME),
        Column("status", enum(Status)),
        Column("ended_at", TIME_OR_NONE),
        Column("keys", JSON),
    ),
    ("id",),
)
NEWEST_CONVERSATIONS = Query(CONVERSATIONS, "status <> optional", "channel = optional", order="-started_at -place")
CONVERSATIONS_BY_REF = Query(CONVERSATIONS, "ref_code =", order="place")

NOTES = Table(
    "notes",
    Note,
    (
        Column("conversation"),
        Column("key"),
        Column("value", JSON),
        Column("created_at", TIME, fixed=True),
        Column("updated_at", TIME),
    ),
    ("conversation", "key"),
)
ALL_NOTES = Query(NOTES, order="conversation key")
NOTES_OF = Query(NOTES, "conversation =", "key = optional", order="key")

WORKSPACES = Table(
    "workspaces",
    WorkspaceInfo,
    (
        Column("id"),
        Column("name"),
        Column("preset"),
        Column("spec_toml"),
        Column("created_at", TIME),
        Column("ready", FLAG),
    ),
    ("id",),
)
ALL_WORKSPACES = Query(WORKSPACES, order="created_at place")
WORKSPACES_NAMED = Query(WORKSPACES, "name =")

GRANTS = Table(
    "grants",
    Grant,
    (
        Column("id"),
        Column("name"),
        Column("principal"),
        Column("agent"),
        Column("workspaces", TEXTS),
        Column("capabilities", Codec(TEXTS.store, lambda text: tuple(map(Capability, TEXTS.load(text))))),  # type: ignore[misc]
        Column("tiers", TEXTS, "reach.tiers"),
        Column("channels", TEXTS, "reach.channels"),
        Column("conversations", TEXTS, "reach.conversations"),
        Column("scope", JSON, "reach.scope"),
        Column("trust", Codec(int, Trust)),
        Column("created_at", TIME, fixed=True),
        Column("digest"),
        Column("expires_at", TIME_OR_NONE),
        Column("revoked_at", TIME_OR_NONE),
        Column("version"),
    ),
    ("id",),
    parts={"reach": Reach},
)
ALL_GRANTS = Query(GRANTS, order="place")

ANSWERS = Table(
    "answers",
    Answer,
    (Column("key"), Column("request", fixed=True), Column("at", TIME), Column("status"), Column("body")),
    ("key",),
)
ANSWERS_BEFORE = Query(ANSWERS, "at <")
ANSWERED = Query(ANSWERS, "status <>")
UNANSWERED = Query(ANSWERS, "key =", "status =")

TRANSCRIPTS = Table(
    "transcripts",
    Transcript,
    (
        Column("id"),
        Column("key"),
        Column("format", fixed=True),
        Column("title"),
        Column("created_at", TIME, fixed=True),
        Column("updated_at", TIME),
        Column("started_at", TIME_OR_NONE),
        Column("progress", enum(Progress)),
        Column("kept"),
        Column("observed"),
        Column("how"),
        Column("detail"),
        Column("version"),
        Column("keys", JSON, fixed=True),
    ),
    ("id",),
)
NEWEST_TRANSCRIPTS = Query(TRANSCRIPTS, "progress = optional", order="-place", paged=True)
TRANSCRIPTS_BY_KEY = Query(TRANSCRIPTS, "key =")

UTTERANCES = TextTable(
    "utterances",
    FoundUtterance,
    (
        Column("transcript"),
        Column("place", field="utterance.place"),
        Column("id", field="utterance.id"),
        Column("role", field="utterance.role"),
        Column("at", TIME_OR_NONE, "utterance.at"),
        Column("text_hash", derive=lambda found: content_hash(found.utterance.text)),
        Column("text", field="utterance.text"),
    ),
    ("transcript", "place"),
    parts={"utterance": Utterance},
    text=lambda found: found.utterance.text,
    row="utterance",
)
ALL_UTTERANCES = Query(UTTERANCES)
UTTERANCES_FROM = Query(UTTERANCES, "transcript =", "place >=", order="place")
UTTERANCES_AT = Query(UTTERANCES, "transcript =", "place in", order="place")
UTTERANCES_NAMED = Query(UTTERANCES, "transcript =", "id =", order="place")

AMENDMENTS = Table(
    "amendments",
    Amendment,
    (
        Column("id"),
        Column("section"),
        Column("change"),
        Column("confidence", REAL),
        Column("sources", TEXTS),
        Column("created_at", TIME, fixed=True),
        Column("updated_at", TIME),
        Column("state", enum(AmendmentState)),
        Column("decided_by"),
        Column("reason"),
        Column("line"),
        Column("version"),
    ),
    ("id",),
)
OLDEST_AMENDMENTS = Query(AMENDMENTS, "id in optional", "state in optional", order="place")

SUBMISSIONS = Table(
    "submissions",
    Submission,
    (
        Column("id"),
        Column("document", fixed=True),
        Column("title"),
        Column("collection", fixed=True),
        Column("base", fixed=True),
        Column("how", enum(How), "change.how"),
        Column("place_in_text", field="change.place"),
        Column("text", field="change.text"),
        Column("memories", TEXTS, fixed=True),
        Column("derivable", TEXTS, fixed=True),
        Column("principal", field="origin.principal", fixed=True),
        Column("surface", field="origin.surface", fixed=True),
        Column("transport", field="origin.transport", fixed=True),
        Column("trust", Codec(int, Trust), "origin.trust", fixed=True),
        Column("note"),
        Column("created_at", TIME, fixed=True),
        Column("updated_at", TIME),
        Column("keys", JSON, fixed=True),
        Column("state", enum(SubmissionState)),
        Column("decided_by"),
        Column("reason"),
        Column("edited", FLAG),
        Column("accepted"),
        Column("retired", TEXTS),
        Column("version"),
    ),
    ("id",),
    parts={"change": Change, "origin": Origin},
)
OLDEST_SUBMISSIONS = Query(SUBMISSIONS, "id in optional", "state in optional", "document = optional", order="place")
SUBMISSION_MEMORIES = Table(
    "submission_memories", SubmissionMemory, (Column("submission"), Column("entry")), ("submission", "entry")
)
SUBMISSIONS_ON = Query(SUBMISSION_MEMORIES, "entry in optional", order="place")

JOBS = Table(
    "jobs",
    Job,
    (
        Column("id"),
        Column("kind"),
        Column("key"),
        Column("payload", JSON),
        Column("state", enum(JobState)),
        Column("attempts"),
        Column("max_attempts"),
        Column("claim"),
        Column("run_after", TIME),
        Column("created_at", TIME),
        Column("updated_at", TIME),
        Column("lease_until", TIME_OR_NONE),
        Column("worker"),
        Column("error"),
        Column("result", JSON),
    ),
    ("id",),
)
ALL_JOBS = Query(JOBS)
TOUCHED_JOBS = Query(JOBS, "state in optional", "kind = optional", order="-updated_at -place")
JOBS_BY_KEY = Query(JOBS, "key =")
JOBS_IN_STATE = Query(JOBS, "state =")
QUEUED_JOBS = Query(JOBS, "state =", "kind in optional", order="run_after place")
DUE_JOBS = Query(JOBS, "state in", "run_after <=", "lease_until ended", "kind in optional", order="run_after place")
LEASED_JOBS = Query(JOBS, "state =", "kind in optional", order="lease_until place")
EXPIRED_JOBS = Query(JOBS, "state =", "lease_until <=")
JOBS_TOUCHED_BEFORE = Query(JOBS, "state in", "updated_at <")
JOBS_AMONG = Query(JOBS, "id in")

STEPS = Table(
    "job_steps",
    Step,
    (Column("job"), Column("name"), Column("claim"), Column("at", TIME), Column("output", JSON)),
    ("job", "name"),
)
STEPS_OF = Query(STEPS, "job =", order="place")
STEPS_AMONG = Query(STEPS, "job in")

TELEMETRY = Table(
    "points",
    TelemetryEvent,
    (
        Column("at", TIME),
        Column("level"),
        Column("source"),
        Column("component"),
        Column("action"),
        Column("success", FLAG),
        Column("duration_ms", REAL),
        Column("metadata", CANONICAL),
    ),
    (),
    clock="at",
)
ALL_TELEMETRY = Query(TELEMETRY, order="place")
TELEMETRY_AT = Query(TELEMETRY, "at in", order="place")
TELEMETRY_BEFORE = Query(TELEMETRY, "at <", "level = optional")

SPENDING = Table(
    "spending",
    Spending,
    (
        Column("day"),
        Column("model"),
        Column("calls"),
        Column("prompt"),
        Column("completion"),
        Column("cost", REAL),
    ),
    ("day", "model"),
)
SPENDING_SINCE = Query(SPENDING, "day >=", order="day model")

_PACKED = Codec(pack, unpack)
DISCLOSURES = Table(
    "disclosures",
    Disclosure,
    (
        Column("at", TIME),
        Column("principal"),
        Column("surface"),
        Column("transport"),
        Column("conversation", _PACKED),
        Column("workspace", _PACKED),
        Column("verb"),
        Column("tokens"),
        Column("items", Codec(items_text, items_of, mark)),
    ),
    (),
    clock="at",
)
NEWEST_DISCLOSURES = Query(
    DISCLOSURES,
    "at >= optional",
    "conversation = optional",
    "principal = optional",
    "items holds optional",
    "at in optional",
    order="-at -place",
)
OLDEST_DISCLOSURES = Query(DISCLOSURES, "workspace = optional", order="at place")
DISCLOSURES_AT = Query(DISCLOSURES, "at in", order="at place")
DISCLOSURES_BEFORE = Query(DISCLOSURES, "at <", "workspace =")

RIVALS = Table(
    "rivals",
    Rivalry,
    (
        Column("entry"),
        Column("other"),
        Column("relation", enum(Relation)),
        Column("reason"),
        Column("at", TIME, fixed=True),
        Column("decided_by"),
    ),
    ("entry", "other"),
)
ALL_RIVALS = Query(RIVALS, order="place")
RIVALS_OF_LATER = Query(RIVALS, "entry in", order="place")
RIVALS_OF_EARLIER = Query(RIVALS, "other in", order="place")
NEWEST_RIVALS = Query(RIVALS, "relation =", "decided_by =", order="-place")

CONFIRMATIONS = Table(
    "confirmations",
    Confirmation,
    (
        Column("entry"),
        Column("at", TIME),
        Column("principal"),
        Column("speaker"),
        Column("conversation"),
        Column("said"),
        Column("quotes", Codec(lambda quotes: JSON.store([astuple(q) for q in quotes]), _quotes)),  # type: ignore[misc]
        Column("trust", Codec(int, Trust)),
        Column("outcome", enum(Outcome)),
    ),
    (),
)
ALL_CONFIRMATIONS = Query(CONFIRMATIONS, order="place")
CONFIRMATIONS_OF = Query(CONFIRMATIONS, "entry in", order="place")

CANONICAL_LINKS = Table(
    "canonical_links",
    CanonicalLink,
    (Column("entry"), Column("document"), Column("version"), Column("locator"), Column("checked")),
    (),
)
ALL_LINKS = Query(CANONICAL_LINKS)
LINKS_OF = Query(CANONICAL_LINKS, "entry in", order="place")
LINKS_TO = Query(CANONICAL_LINKS, "document in", order="place")

DERIVATIONS = Table("derivations", Derivation, (Column("entry"), Column("source")), ())
ALL_DERIVATIONS = Query(DERIVATIONS, order="place")
DERIVED_BY = Query(DERIVATIONS, "entry in", order="place")
DERIVED_FROM = Query(DERIVATIONS, "source in", order="place")

CITATIONS = Table(
    "citations",
    Citation,
    (
        Column("id"),
        Column("entry"),
        Column("kind", enum(Cited)),
        Column("target"),
        Column("name"),
        Column("first_line", field="first"),
        Column("last_line", field="last"),
        Column("hash"),
        Column("around"),
        Column("revision"),
        Column("project"),
        Column("made_by", field="by"),
        Column("at", TIME),
    ),
    ("id",),
)
ALL_CITATIONS = Query(CITATIONS, order="place")
CITATIONS_AFTER = Query(CITATIONS, "kind = optional", order="-place", paged=True)
CITATIONS_OF = Query(CITATIONS, "entry in", order="place")
CITATION_CHECKS = Table(
    "citation_checks",
    CitationCheck,
    (
        Column("citation"),
        Column("entry"),
        Column("verdict", enum(CitationVerdict)),
        Column("path"),
        Column("line"),
        Column("why"),
        Column("at", TIME),
        Column("verified_at", TIME_OR_NONE),
    ),
    ("citation",),
)
CHECKS_OF = Query(CITATION_CHECKS, "entry in", order="place")
CHECKS_THAT_SAY = Query(CITATION_CHECKS, "verdict in", order="-at -place")


def scope_text(scope: Scope) -> str:
    """A scope as one text: its tier and the values of its keys."""
    return canonical_json([scope.tier, *scope.anchor])


def _scope(text: str) -> Scope:
    tier, *anchor = json.loads(text)
    return Scope(tier, tuple((key, value) for key, value in anchor))


CLOSED_SCOPES = Table(
    "closed_scopes",
    ClosedScope,
    (Column("scope", Codec(scope_text, _scope)), Column("event"), Column("closed_at", TIME)),
    ("scope",),
)
CLOSED_AMONG = Query(CLOSED_SCOPES, "scope in optional", order="place")

_BODY = Codec(
    lambda body: None if body is None else canonical_json(body), lambda text: None if text is None else json.loads(text)
)
REVISIONS = Table(
    "revisions",
    KeptRevision,
    (
        Column("digest", field="revision.digest"),
        Column("workspace", field="revision.store"),
        Column("kind", field="revision.kind"),
        Column("thing", field="revision.thing"),
        Column("parents", TEXTS, "revision.parents"),
        Column("body", _BODY, "revision.body"),
        Column("at", TIME, "revision.at"),
        Column("machine", field="revision.machine"),
        Column("salt", field="revision.salt"),
        Column("spot"),
        Column("about"),
        Column("twin"),
        Column("stage", enum(Stage)),
        Column("told", FLAG),
        Column("erasure", enum(Erasure)),
        Column("member"),
        Column("trust", Codec(int, Trust)),
    ),
    ("digest",),
    parts={"revision": Revision},
)
ALL_REVISIONS = Query(REVISIONS, order="place")
REVISIONS_BY = {
    name: Query(REVISIONS, f"{name} in", order="place")
    for name in ("digest", "thing", "spot", "about", "twin", "kind", "stage", "told", "erasure")
}
SYNC_NOTES = Table("sync_notes", SyncNote, (Column("name"), Column("value", JSON)), ("name",))
SYNC_NOTES_AMONG = Query(SYNC_NOTES, "name in", order="name")

ACTIONS = Table("actions", ActionRow, (Column("id"), Column("description"), Column("at", TIME)), ("id",))

ALL_ACTIONS = Query(ACTIONS, order="id")

PURGED = Table("unswept", Purged, (Column("conversation"),), ("conversation",))
PURGED_CONVERSATIONS = Query(PURGED, "conversation <>", order="conversation")

EVENTS = Table(
    "events",
    Event,
    (
        Column("seq"),
        Column("at", ISO_TIME),
        Column("principal", field="actor.principal"),
        Column("surface", field="actor.surface"),
        Column("transport", field="actor.transport"),
        Column("action"),
        Column("subject"),
        Column("detail", CANONICAL),
        Column("previous"),
        Column("digest"),
    ),
    ("seq",),
    parts={"actor": Actor},
)
EVENTS_AFTER = Query(EVENTS, "seq >", "action = optional", order="seq")
EVENTS_SINCE = Query(EVENTS, "at >=")
EVENTS_OF_SUBJECT = Query(EVENTS, "subject =", "seq >", "action = optional", order="seq")
EVENTS_OF_SUBJECTS_BETWEEN = Query(EVENTS, "subject >=", "subject <", order="subject seq")
EVENTS_OF_SUBJECTS = Query(EVENTS, "subject in", order="seq")
EVENTS_OF_ACTIONS = Query(EVENTS, "action in", order="seq")


def tables() -> Iterator[Table[Any]]:
    return (value for value in globals().values() if isinstance(value, Table))


def text_tables() -> Iterator[TextTable[Any]]:
    return (value for value in globals().values() if isinstance(value, TextTable))


def queries() -> Iterator[Query[Any]]:
    yield from (value for value in globals().values() if isinstance(value, Query))
    yield from REVISIONS_BY.values()
