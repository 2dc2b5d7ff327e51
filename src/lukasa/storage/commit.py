"""The one commit path: every operation of a transaction in order, and a sealed event for each.

All engines run this over their `Rows`, inside an open write transaction; whatever it raises undoes the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import groupby
from os import urandom
from typing import Any

from msgspec.structs import replace

from lukasa.model.corpus import Passage, Unsplit
from lukasa.model.entry import CanonicalLink, Derivation, Document, Entry
from lukasa.model.errors import Conflict, Damaged
from lukasa.model.events import EventDraft, Stamp
from lukasa.model.item import value_text
from lukasa.model.submission import SubmissionMemory
from lukasa.model.telemetry import Spending
from lukasa.storage import erasing, job_queue, removal, revision_rows, row_rules, tables
from lukasa.storage.backend import (
    EntryVersion,
    FieldVector,
    ModelVector,
    PassageVector,
    Rows,
    StoredEntry,
    StoredItem,
    get,
)
from lukasa.storage.operations import (
    CancelJob,
    CloseScope,
    DropAnswer,
    DropEntry,
    DropItem,
    DropNotes,
    DropRivals,
    DropWatch,
    DropWorkspace,
    Embedding,
    Emit,
    EmptySubmissions,
    Enqueue,
    FailJob,
    FinishJob,
    ForgetAnswers,
    ForgetDisclosures,
    ForgetJobs,
    ForgetTelemetry,
    ForgetThing,
    ItemVector,
    JournalStep,
    KeepRevisions,
    KeepUtterances,
    LinkAction,
    Operation,
    PostponeJob,
    Record,
    ReviveJob,
    SaveAmendment,
    SaveAnswer,
    SaveChannel,
    SaveChecks,
    SaveCitations,
    SaveConfirmation,
    SaveConversation,
    SaveDocument,
    SaveDocumentSource,
    SaveEmbedding,
    SaveEntry,
    SaveGrant,
    SaveItem,
    SaveItemVectors,
    SaveNamed,
    SaveNote,
    SavePassageEmbedding,
    SavePassages,
    SaveRivalry,
    SaveSubmission,
    SaveTranscript,
    SaveWatch,
    SaveWorkspace,
    Scrub,
    Spend,
    Transaction,
    describe,
)
from lukasa.storage.port import FoundUtterance
from lukasa.storage.redaction import redacted
from lukasa.storage.tables import ActionRow, SealedEvent

_SALT = 16  # bytes
ACTION_LINKED = "keep-action-linked"  # the rule of the audit posture that an entry's removal checks


def commit(rows: Rows, transaction: Transaction, secret: bytes) -> None:
    """Apply all operations without their secrets, and log their events.

    New entries that follow one another go in together.
    """
    log = _Log(rows, transaction)
    for new, group in groupby(map(redacted, transaction.operations), _is_new_entry):
        if new:
            saves = [operation for operation in group if isinstance(operation, SaveEntry)]
            log.add(map(describe, saves, _add_entries(rows, transaction, saves)))
            continue
        for operation in group:
            if isinstance(operation, Scrub | DropWorkspace):
                _scrub(rows, log, operation, transaction, secret)
            elif isinstance(operation, KeepRevisions):
                revision_rows.keep(rows, operation, log.begun, log.seq)
            else:
                salt = _CHANGES[type(operation)](rows, operation, transaction)
                log.add([describe(operation, salt or secret)])
    log.write()


def _is_new_entry(operation: Operation) -> bool:
    return isinstance(operation, SaveEntry) and not operation.expect


class _Log:
    """The end of the chain of events, as one transaction makes it longer."""

    def __init__(self, rows: Rows, transaction: Transaction) -> None:
        self._rows = rows
        self._stamp = Stamp(transaction.at, transaction.actor)
        self.seq, self._digest = rows.head()
        self.begun = self.seq
        self._sealed: list[SealedEvent] = []

    def add(self, drafts: Iterable[EventDraft | None]) -> None:
        stamp = self._stamp
        for draft in drafts:
            if draft is not None:
                detail, previous = row_rules.plain_text(draft.detail), self._digest
                self.seq += 1
                self._digest = stamp.digest(draft, detail, self.seq, previous)
                about = (draft.action, draft.subject, detail)
                self._sealed.append(SealedEvent(self.seq, stamp.at, *stamp.who, *about, previous, self._digest))

    def write(self) -> None:
        if self._sealed:
            self._rows.append_events(self._sealed)
            self._sealed = []


def _scrub(rows: Rows, log: _Log, given: Scrub | DropWorkspace, transaction: Transaction, secret: bytes) -> None:
    """Remove what a scrub reaches, or a workspace.

    It sees the events before it, and empties some once its own is in the log.
    """
    log.write()
    drafts: list[EventDraft | None] = []
    operation: Scrub | DropWorkspace
    if isinstance(given, Scrub):
        operation, drafts = removal.take(rows, given, secret)
    else:
        operation = removal.take_workspace(rows, given)
    log.add([describe(operation, secret)])
    log.write()
    removal.redact(rows, operation, log.seq)
    log.add(drafts)
    if isinstance(given, Scrub) and given.restated:
        log.add(_restate_entries(rows, transaction, given.restated))
    log.write()


def _restate_entries(rows: Rows, transaction: Transaction, entries: Sequence[Entry]) -> list[EventDraft | None]:
    """Add entries again of which an erasure left another text, each with version 1 and a salt of its own."""
    actor, action, cause = str(transaction.actor), "entry.redacted", "names were erased from it"
    new = [
        EntryVersion(replace(entry, version=1), 1, urandom(_SALT), action, cause, actor, transaction.at, None)
        for entry in entries
    ]
    rows.add_entries(new)
    for version in new:
        _save_grounds(rows, version.entry)
    return [describe(SaveEntry(one.entry, 0, action, cause), one.salt) for one in new]


# Entries


def _add_entries(rows: Rows, transaction: Transaction, saves: Sequence[SaveEntry]) -> list[bytes]:
    """Insert entries that must not be there yet, and return the salts for the commitments in their events."""
    blobs = iter(row_rules.checked_vectors([save.embedding for save in saves if save.embedding is not None]))
    ids = [save.entry.id for save in saves]
    for id, gone in rows.used_ids(ids).items():
        if gone:
            raise Conflict(f"id {id} was used before", fix="make a new id")
        row_rules.check_version("entry", id, 1, 0)
    if len(set(ids)) < len(ids):
        row_rules.check_version("entry", next(id for n, id in enumerate(ids) if id in ids[:n]), 1, 0)
    chance, actor = urandom(_SALT * len(saves)), str(transaction.actor)
    new = []
    for n, save in enumerate(saves):
        salt = chance[_SALT * n : _SALT * (n + 1)]
        vector = None if save.embedding is None else ModelVector(save.embedding.model, next(blobs))
        entry = _first_version(save.entry)
        new.append(EntryVersion(entry, 1, salt, save.action, save.cause, actor, transaction.at, vector))
    rows.add_entries(new)
    for version in new:
        if version.entry.links or version.entry.derived_from:
            _save_grounds(rows, version.entry)
    return [version.salt for version in new]


def _save_grounds(rows: Rows, entry: Entry) -> None:
    """Store what an entry rests on: documents, each with its pinned version, and the entries it was concluded from."""
    wanted = row_rules.unique(link.source for link in entry.links)
    known = {document.id for document in rows.select(tables.DOCUMENTS_AMONG, wanted)} if wanted else set()
    for id in wanted:
        if id not in known:
            raise row_rules.missing("document", id)
    links = [CanonicalLink(entry.id, link.source, link.version, link.locator, link.checked) for link in entry.links]
    rows.insert(tables.CANONICAL_LINKS, links)
    rows.insert(tables.DERIVATIONS, [Derivation(entry.id, source) for source in entry.derived_from])


def _first_version(entry: Entry) -> Entry:
    return entry if entry.version == 1 and not entry.metadata else row_rules.stored(entry, 1)


def _replace_entry(rows: Rows, save: SaveEntry, transaction: Transaction) -> bytes:
    entry = row_rules.stored(save.entry, save.expect + 1)
    before = _stored(rows, entry.id, save.expect)
    if before.entry.damaged or entry.damaged:  # a new version would vouch for what nobody wrote
        raise Damaged(f"entry {entry.id}")
    row_rules.check_revision(before.entry, entry)
    vector = None if save.embedding is None else _checked(save.embedding)
    same_text = before.entry.content == entry.content
    content_version = before.content_version if same_text else entry.version
    about = (save.action, save.cause, str(transaction.actor), transaction.at)
    rows.replace_entry(before, EntryVersion(entry, content_version, before.salt, *about, vector))
    if (before.entry.links, before.entry.derived_from) != (entry.links, entry.derived_from):
        removal.drop_grounds(rows, [entry.id])
        _save_grounds(rows, entry)
    return before.salt


def _stored(rows: Rows, id: str, expect: int) -> StoredEntry:
    """The entry with that id, which must be at the expected version."""
    found = rows.stored_entry(id)
    if found is None:
        raise row_rules.missing("entry", id)
    row_rules.check_version("entry", id, found.entry.version, expect)
    return found


def _checked(embedding: Embedding) -> ModelVector:
    return ModelVector(embedding.model, row_rules.checked_vector(embedding).tobytes())


def _drop_entry(rows: Rows, operation: DropEntry, _: Transaction) -> None:
    _stored(rows, operation.id, operation.expect)
    if rows.linked_entries([operation.id]):
        if ACTION_LINKED not in operation.exempt:
            raise row_rules.linked_refusal(operation.id)
        rows.unlink_entries([operation.id])
    removal.drop_entries(rows, [operation.id])


def _save_embedding(rows: Rows, operation: SaveEmbedding, _: Transaction) -> None:
    """A vector of text that has since changed or gone describes nothing here, and is let go."""
    vector = _checked(operation.embedding)
    found = rows.stored_entry(operation.id)
    if found is not None and found.content_version <= operation.version <= found.entry.version:
        rows.set_vector(found, vector)


def _link_action(rows: Rows, operation: LinkAction, transaction: Transaction) -> None:
    ids = row_rules.unique(operation.entries)
    used = rows.used_ids(ids)
    for id in ids:
        if used.get(id, True):
            raise row_rules.missing("entry", id)
    if get(rows, tables.ACTIONS, operation.action) is None:
        rows.insert(tables.ACTIONS, [ActionRow(operation.action, operation.description, transaction.at)])
    rows.link_entries(operation.action, ids)


def _save_rivalry(rows: Rows, operation: SaveRivalry, _: Transaction) -> None:
    rivalry = operation.rivalry
    used = rows.used_ids([rivalry.entry, rivalry.other])
    for id in (rivalry.entry, rivalry.other):
        if used.get(id, True):
            raise row_rules.missing("entry", id)
    rows.save(tables.RIVALS, rivalry)


def _drop_rivals(rows: Rows, operation: DropRivals, _: Transaction) -> None:
    removal.drop_rivals(rows, [operation.id])


def _save_confirmation(rows: Rows, operation: SaveConfirmation, _: Transaction) -> None:
    rows.insert(tables.CONFIRMATIONS, [operation.confirmation])


def _save_citations(rows: Rows, operation: SaveCitations, _: Transaction) -> bytes:
    stored = rows.stored_entry(operation.entry)
    if stored is None:
        raise row_rules.missing("entry", operation.entry)
    before = rows.select(tables.CITATIONS_OF, [operation.entry])
    if {one.id for one in before} != set(operation.onto):
        raise Conflict(f"entry {operation.entry} has other citations by now", fix="read it again, then decide")
    removal.drop_citations(rows, [operation.entry])
    rows.insert(tables.CITATIONS, operation.citations)
    return stored.salt


def _save_checks(rows: Rows, operation: SaveChecks, _: Transaction) -> None:
    there = {one.id for one in rows.select(tables.CITATIONS_OF, row_rules.unique(c.entry for c in operation.checks))}
    for check in operation.checks:
        if check.citation in there:
            rows.save(tables.CITATION_CHECKS, check)


# Items


def _save_item(rows: Rows, operation: SaveItem, _: Transaction) -> bytes:
    """The item in its place keeps its time of creation and its salt, and loses its vectors."""
    vectors = _field_vectors(operation.vectors)
    before = rows.stored_item(operation.item.place)
    created_at = before.item.created_at if before else operation.item.created_at
    item = replace(operation.item, created_at=created_at)
    salt = before.salt if before else urandom(_SALT)
    stored = StoredItem(item, value_text(item.value), salt, operation.index)
    rows.save_item(stored)
    if vectors:
        rows.add_item_vectors(stored, vectors)
    return salt


def _field_vectors(vectors: Iterable[ItemVector]) -> list[FieldVector]:
    return [FieldVector(v.field, *_checked(Embedding(v.model, v.vector))) for v in vectors]


def _save_item_vectors(rows: Rows, operation: SaveItemVectors, _: Transaction) -> None:
    """Vectors of a value that has since changed or gone describe nothing here, and are let go."""
    vectors = _field_vectors(operation.vectors)
    found = rows.stored_item(operation.place)
    if found is not None and (found.text, found.index) == (value_text(operation.value), operation.index):
        known = rows.item_models(operation.place)
        rows.add_item_vectors(found, [vector for vector in vectors if vector.model not in known])


def _drop_item(rows: Rows, operation: DropItem, _: Transaction) -> bytes:
    found = rows.stored_item(operation.place)
    if found is None:
        raise row_rules.missing("item", operation.place.key)
    if operation.expired_by is not None and not found.item.expired(operation.expired_by):
        raise Conflict(f"item {operation.place.key} has not expired", fix="look again")
    rows.drop_item(operation.place)
    return found.salt


# Pages, documents, conversations, workspaces


def _save_named(rows: Rows, operation: SaveNamed, _: Transaction) -> None:
    named, before = (
        replace(operation.entry, version=operation.expect + 1),
        get(rows, tables.NAMED, operation.entry.name),
    )
    if named.damaged:
        raise Damaged(f"page {named.name}")
    row_rules.check_version("named entry", named.name, before.version if before else None, operation.expect)
    rows.save(tables.NAMED, named)
    rows.insert(tables.NAMED_VERSIONS, [named])


def _save_document(rows: Rows, operation: SaveDocument, _: Transaction) -> None:
    document = replace(operation.document, version=operation.expect + 1)
    before = get(rows, tables.DOCUMENTS, document.id)
    if document.damaged:
        raise Damaged(f"document {document.id}")
    row_rules.check_version("document", document.id, before.version if before else None, operation.expect)
    rows.save(tables.DOCUMENTS, document)
    rows.insert(tables.DOCUMENT_VERSIONS, [document])
    if before is not None:
        rows.delete(tables.DOCUMENT_SOURCES.one, document.id)
    if operation.source is not None and not document.removed:
        rows.insert(tables.DOCUMENT_SOURCES, [replace(operation.source, document=document.id)])
    gone = document.removed or not document.body
    _set_passages(rows, document, () if gone else operation.passages, new=before is None)


def _set_passages(rows: Rows, document: Document, passages: Sequence[Passage] | None, *, new: bool = False) -> None:
    """Replace the passages of a document; with None, note that it has still to be split."""
    if not new:
        rows.drop_texts(tables.PASSAGES_OF, [document.id])
        rows.delete(tables.UNSPLIT.one, document.id)
    if passages is None:
        rows.insert(tables.UNSPLIT, [Unsplit(document.id)])
        return
    numbered = [
        replace(passage, document=document.id, version=document.version, number=number)
        for number, passage in enumerate(passages)
    ]
    rows.add_texts(tables.PASSAGES, numbered)


def _save_passages(rows: Rows, operation: SavePassages, _: Transaction) -> None:
    """Passages of a text that has since changed or gone are let go."""
    document = get(rows, tables.DOCUMENTS, operation.document)
    if document is not None and not document.removed and document.version == operation.version:
        _set_passages(rows, document, operation.passages)


def _save_passage_embedding(rows: Rows, operation: SavePassageEmbedding, _: Transaction) -> None:
    vector = _checked(operation.embedding)
    found = get(rows, tables.PASSAGES, operation.document, operation.number)
    if found is not None and found.version == operation.version:
        rows.set_passage_vectors([PassageVector((found.document, found.number), *vector)])


def _save_document_source(rows: Rows, operation: SaveDocumentSource, _: Transaction) -> None:
    document = get(rows, tables.DOCUMENTS, operation.source.document)
    if document is None or document.removed:
        raise row_rules.missing("document", operation.source.document)
    rows.save(tables.DOCUMENT_SOURCES, operation.source)


def _save_watch(rows: Rows, operation: SaveWatch, _: Transaction) -> None:
    watch, before = (
        replace(operation.watch, version=operation.expect + 1),
        get(rows, tables.WATCHES, operation.watch.id),
    )
    row_rules.check_version("watch", watch.id, before.version if before else None, operation.expect)
    rows.save(tables.WATCHES, watch)


def _drop_watch(rows: Rows, operation: DropWatch, _: Transaction) -> None:
    before = get(rows, tables.WATCHES, operation.id)
    row_rules.check_version("watch", operation.id, before.version if before else None, operation.expect)
    rows.delete(tables.WATCHES.one, operation.id)


def _save_channel(rows: Rows, operation: SaveChannel, _: Transaction) -> None:
    channel, before = operation.channel, get(rows, tables.CHANNELS, operation.channel.id)
    named = rows.select(tables.CHANNELS_NAMED, channel.workspace, channel.name)
    if any(one.id != channel.id for one in named) or (before is not None and not operation.again):
        raise row_rules.unique_conflict("channel", channel.id)
    others = rows.select(tables.DEFAULT_CHANNELS, channel.workspace, True)
    if channel.is_default and any(one.id != channel.id for one in others):
        raise Conflict("there is a default channel already", fix="use that one")
    rows.save(tables.CHANNELS, channel)


def _save_conversation(rows: Rows, operation: SaveConversation, _: Transaction) -> None:
    new = operation.conversation
    before = get(rows, tables.CONVERSATIONS, new.id)
    if operation.expect is None:
        if before is not None or rows.count(tables.CONVERSATIONS_BY_REF, new.ref_code):
            raise row_rules.unique_conflict("conversation", new.id)
        if get(rows, tables.CHANNELS, new.channel) is None:
            raise row_rules.missing("channel", new.channel)
    elif before is None:
        raise row_rules.missing("conversation", new.id)
    elif before.status is not operation.expect:
        raise Conflict(f"conversation {new.id} is {before.status}", fix="read it again, then decide")
    else:
        row_rules.check_conversation(before, new)
    rows.save(tables.CONVERSATIONS, new)


def _close_scope(rows: Rows, operation: CloseScope, _: Transaction) -> None:
    if not operation.again and get(rows, tables.CLOSED_SCOPES, operation.closed.scope) is not None:
        raise Conflict(f"this scope of tier {operation.closed.scope.tier} has ended already", fix="read it again")
    rows.save(tables.CLOSED_SCOPES, operation.closed)


def _save_note(rows: Rows, operation: SaveNote, _: Transaction) -> None:
    note = operation.note
    _require_conversation(rows, note.conversation)
    if operation.onto != "anything":
        row_rules.check_note(operation, get(rows, tables.NOTES, note.conversation, note.key))
    rows.save(tables.NOTES, note)


def _drop_notes(rows: Rows, operation: DropNotes, _: Transaction) -> None:
    _require_conversation(rows, operation.conversation)
    dropped = rows.delete(tables.NOTES_OF, operation.conversation, operation.key)
    if not dropped and operation.key is not None:
        raise row_rules.missing("note", operation.key)


def _require_conversation(rows: Rows, id: str) -> None:
    if get(rows, tables.CONVERSATIONS, id) is None:
        raise row_rules.missing("conversation", id)


def _save_workspace(rows: Rows, operation: SaveWorkspace, _: Transaction) -> None:
    info = operation.info
    before = get(rows, tables.WORKSPACES, info.id)
    if before is None and operation.expect is not None:
        raise row_rules.missing("workspace", info.id)
    if before is not None and before.ready is not operation.expect:
        raise Conflict(f"workspace {info.id} is registered already", fix="read it again, then decide")
    if any(other.id != info.id for other in rows.select(tables.WORKSPACES_NAMED, info.name)):
        raise row_rules.unique_conflict("workspace", info.id)
    rows.save(tables.WORKSPACES, info)


# Transcripts and amendments


def _save_transcript(rows: Rows, operation: SaveTranscript, _: Transaction) -> None:
    transcript = replace(operation.transcript, version=operation.expect + 1)
    before = get(rows, tables.TRANSCRIPTS, transcript.id)
    row_rules.check_version("transcript", transcript.id, before.version if before else None, operation.expect)
    if (before is None or before.key != transcript.key) and rows.count(tables.TRANSCRIPTS_BY_KEY, transcript.key):
        raise row_rules.unique_conflict("transcript", transcript.id)
    rows.save(tables.TRANSCRIPTS, transcript)


def _keep_utterances(rows: Rows, operation: KeepUtterances, _: Transaction) -> None:
    if get(rows, tables.TRANSCRIPTS, operation.transcript) is None:
        raise row_rules.missing("transcript", operation.transcript)
    places = [utterance.place for utterance in operation.utterances]
    if operation.instead:
        rows.drop_texts(tables.UTTERANCES_AT, operation.transcript, places)
    kept = rows.select(tables.UTTERANCES_AT, operation.transcript, places)
    taken = {found.utterance.place for found in kept}
    for place in places:
        if place in taken:
            raise Conflict(f"message {place} of the transcript is there already", fix="read it again")
        taken.add(place)
    rows.add_texts(tables.UTTERANCES, [FoundUtterance(operation.transcript, one) for one in operation.utterances])


def _save_amendment(rows: Rows, operation: SaveAmendment, _: Transaction) -> None:
    amendment = replace(operation.amendment, version=operation.expect + 1)
    before = get(rows, tables.AMENDMENTS, amendment.id)
    row_rules.check_version("proposal", amendment.id, before.version if before else None, operation.expect)
    rows.save(tables.AMENDMENTS, amendment)


def _save_submission(rows: Rows, operation: SaveSubmission, _: Transaction) -> None:
    submission = replace(operation.submission, version=operation.expect + 1)
    before = get(rows, tables.SUBMISSIONS, submission.id)
    row_rules.check_version("submission", submission.id, before.version if before else None, operation.expect)
    if before is not None and before.wordless and not submission.wordless:
        raise Conflict(f"the words of submission {submission.id} were removed", fix="submit the change again")
    rows.save(tables.SUBMISSIONS, submission)
    if before is None:
        memories = row_rules.unique(submission.memories)
        rows.insert(tables.SUBMISSION_MEMORIES, [SubmissionMemory(submission.id, id) for id in memories])


def _empty_submissions(rows: Rows, operation: EmptySubmissions, _: Transaction) -> None:
    removal.empty_submissions(rows, operation.entries)


def _forget_thing(rows: Rows, operation: ForgetThing, _: Transaction) -> None:
    id = operation.name[0]
    match operation.kind:
        case "page":
            rows.delete(tables.VERSIONS_OF_NAMED_AMONG, [id])
            rows.delete(tables.NAMED_AMONG, [id])
        case "document":
            erasing.drop_document(rows, id)
        case "transcript":
            rows.drop_texts(tables.UTTERANCES_FROM, id, 0)
            rows.delete(tables.TRANSCRIPTS.one, id)
        case "utterance":
            rows.drop_texts(tables.UTTERANCES_AT, id, [int(operation.name[1])])
        case "confirmation":
            kept = [one for one in rows.select(tables.CONFIRMATIONS_OF, [id]) if one != operation.value]
            rows.delete(tables.CONFIRMATIONS_OF, [id])
            rows.insert(tables.CONFIRMATIONS, kept)
        case _:
            rows.delete(tables.AMENDMENTS.one, id)


# Telemetry, grants, answers


def _emit(rows: Rows, operation: Emit, _: Transaction) -> None:
    rows.insert(tables.TELEMETRY, [operation.point])


def _forget_telemetry(rows: Rows, operation: ForgetTelemetry, _: Transaction) -> None:
    rows.delete(tables.TELEMETRY_BEFORE, operation.before, operation.level)


def _forget_disclosures(rows: Rows, operation: ForgetDisclosures, _: Transaction) -> None:
    whose = operation.workspace
    rows.delete(tables.DISCLOSURES_BEFORE, operation.before, whose)
    over = rows.count(tables.OLDEST_DISCLOSURES, whose) - operation.most
    if over > 0:
        last = rows.select(tables.OLDEST_DISCLOSURES, whose, limit=over)[-1].at
        rows.delete(tables.DISCLOSURES_BEFORE, last + timedelta(microseconds=1), whose)


def _spend(rows: Rows, operation: Spend, _: Transaction) -> None:
    new = operation.spending
    before = get(rows, tables.SPENDING, new.day, new.model)
    if before is not None:
        tokens = (before.calls + new.calls, before.prompt + new.prompt, before.completion + new.completion)
        new = Spending(new.day, new.model, *tokens, before.cost + new.cost)
    rows.save(tables.SPENDING, new)


def _save_grant(rows: Rows, operation: SaveGrant, _: Transaction) -> None:
    grant = replace(operation.grant, version=operation.expect + 1)
    before = get(rows, tables.GRANTS, grant.id)
    row_rules.check_version("grant", grant.id, before.version if before else None, operation.expect)
    rows.save(tables.GRANTS, grant)


def _save_answer(rows: Rows, operation: SaveAnswer, _: Transaction) -> None:
    row_rules.check_answer(get(rows, tables.ANSWERS, operation.answer.key), operation.answer, operation.stale)
    rows.save(tables.ANSWERS, operation.answer)


def _drop_answer(rows: Rows, operation: DropAnswer, _: Transaction) -> None:
    rows.delete(tables.UNANSWERED, operation.key, 0)


def _forget_answers(rows: Rows, operation: ForgetAnswers, _: Transaction) -> None:
    rows.delete(tables.ANSWERS_BEFORE, operation.before)


def _record(rows: Rows, operation: Record, _: Transaction) -> None:
    """Its event is all that it leaves."""


# The change of each operation. A change returns a salt of its own for its event, if it has one.
_CHANGES: dict[type[Any], Callable[[Rows, Any, Transaction], bytes | None]] = {
    SaveEntry: _replace_entry,
    DropEntry: _drop_entry,
    CloseScope: _close_scope,
    SaveEmbedding: _save_embedding,
    SaveRivalry: _save_rivalry,
    DropRivals: _drop_rivals,
    SaveConfirmation: _save_confirmation,
    SaveCitations: _save_citations,
    SaveChecks: _save_checks,
    LinkAction: _link_action,
    SaveItem: _save_item,
    SaveItemVectors: _save_item_vectors,
    DropItem: _drop_item,
    SaveNamed: _save_named,
    SaveDocument: _save_document,
    SavePassages: _save_passages,
    SavePassageEmbedding: _save_passage_embedding,
    SaveDocumentSource: _save_document_source,
    SaveWatch: _save_watch,
    DropWatch: _drop_watch,
    SaveChannel: _save_channel,
    SaveConversation: _save_conversation,
    SaveNote: _save_note,
    DropNotes: _drop_notes,
    SaveWorkspace: _save_workspace,
    SaveTranscript: _save_transcript,
    KeepUtterances: _keep_utterances,
    SaveAmendment: _save_amendment,
    SaveSubmission: _save_submission,
    EmptySubmissions: _empty_submissions,
    ForgetThing: _forget_thing,
    Emit: _emit,
    ForgetTelemetry: _forget_telemetry,
    ForgetDisclosures: _forget_disclosures,
    Spend: _spend,
    SaveGrant: _save_grant,
    SaveAnswer: _save_answer,
    DropAnswer: _drop_answer,
    ForgetAnswers: _forget_answers,
    Record: _record,
    Enqueue: job_queue.enqueue,
    JournalStep: job_queue.journal,
    FinishJob: job_queue.finish,
    FailJob: job_queue.fail,
    PostponeJob: job_queue.postpone,
    ReviveJob: job_queue.revive,
    CancelJob: job_queue.cancel,
    ForgetJobs: job_queue.forget,
}
