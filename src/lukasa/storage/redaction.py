"""Take secrets out of what a store is about to write. Every commit of every engine passes here.

The steps before it redact what they store as well, so that callers see what is stored. This is the last line: a title,
a job's payload, the reason of a change, a journal step or a telemetry event holds no secret, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from lukasa.model.corpus import Passage
from lukasa.model.entry import SENSITIVE, Entry
from lukasa.model.events import EventDraft
from lukasa.model.secrets import holds_secret, redact, redact_all
from lukasa.model.values import Curator
from lukasa.storage.operations import (
    CancelJob,
    DropEntry,
    DropItem,
    Emit,
    Enqueue,
    FailJob,
    FinishJob,
    JournalStep,
    KeepUtterances,
    LinkAction,
    Operation,
    PostponeJob,
    Record,
    SaveAmendment,
    SaveChannel,
    SaveCitations,
    SaveConfirmation,
    SaveDocument,
    SaveDocumentSource,
    SaveEntry,
    SaveNote,
    SavePassages,
    SaveRivalry,
    SaveSubmission,
    SaveTranscript,
    SaveWatch,
)


def redacted(operation: Operation) -> Operation:
    """Return an operation without secrets; itself if it holds none.

    Pages, items and the documents that the owner wrote are left alone: they are the owner's own text, and the value of
    an item belongs to the program that wrote it, which must read back the same. A document that was read from a file
    or an address is redacted, and so are the passages of every document, which is what searches return.
    """
    clean = _CLEAN.get(type(operation))
    return operation if clean is None else clean(operation)


def _entry(save: SaveEntry) -> SaveEntry:
    entry, cause = _kept(save.entry), redact(save.cause)[0]
    return save if entry is save.entry and cause == save.cause else replace(save, entry=entry, cause=cause)


def _kept(entry: Entry) -> Entry:
    """Return an entry as it may be kept: the owner's own words marked as sensitive, all others redacted.

    The key in the metadata is a decision, and stands: the owner may also have said that the entry holds no secret.
    """
    about = {name: new for name in ("gate", "transition") if (new := redact_all(old := getattr(entry, name))) != old}
    if about:
        entry = replace(entry, **about)
    if SENSITIVE in entry.metadata or not _holds_secret(entry):
        return entry
    if entry.curator is Curator.AUTHOR and not entry.evidence:
        return replace(entry, metadata={**entry.metadata, SENSITIVE: True})
    content, tags = redact(entry.content)[0], redact_all(entry.tags)
    return replace(entry, content=content, tags=tags, metadata=redact_all(entry.metadata))


def _holds_secret(entry: Entry) -> bool:
    rest = bool(entry.tags or entry.metadata) and holds_secret([*entry.tags, entry.metadata])
    return rest or holds_secret(entry.content)


def _record(record: Record) -> Record:
    draft = record.draft
    detail = redact_all(draft.detail) if type(draft.detail) is dict else draft.detail
    return record if detail == draft.detail else Record(EventDraft(draft.action, draft.subject, detail))


def _document(save: SaveDocument) -> SaveDocument:
    document = save.document
    if not document.body or (not holds_secret(document.body) and not holds_secret(document.title)):
        return save
    if save.source is not None:
        save = replace(save, document=replace(document, **_clean_parts(document, "title", "body")))
    return replace(save, passages=None if save.passages is None else _clean_passages(save.passages))


def _clean_passages(passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
    return tuple(replace(one, **_clean_parts(one, "text", "headings", "tags")) for one in passages)


def _clean_parts(owner: Any, *names: str) -> dict[str, Any]:
    return {name: redact_all(getattr(owner, name)) for name in names}


def _fields(*names: str, of: str = "") -> Callable[[Any], Any]:
    """Return a function that redacts some fields of an operation, or `of` a part of it.

    Ids and keys stay, since others refer to them.
    """

    def clean(operation: Any) -> Any:
        owner = getattr(operation, of) if of else operation
        changes = {name: new for name in names if (new := redact_all(old := getattr(owner, name))) != old}
        if not changes:
            return operation
        changed = replace(owner, **changes)
        return replace(operation, **{of: changed}) if of else changed

    return clean


def _enqueue(enqueue: Enqueue) -> Enqueue:
    """Redact a job's payload but for its scope keys: another value would be another tenant."""
    clean: Enqueue = _fields("payload", of="draft")(enqueue)
    keys = enqueue.draft.payload.get("keys")
    if clean is enqueue or not isinstance(keys, dict):
        return clean
    return replace(clean, draft=replace(clean.draft, payload={**clean.draft.payload, "keys": keys}))


def _citations(save: SaveCitations) -> SaveCitations:
    """Redact what citations name; hashes and commits look like secrets and are none."""
    clean = tuple(
        one
        if (target := redact(one.target)[0]) == one.target and redact(one.name)[0] == one.name
        else replace(one, target=target, name=redact(one.name)[0])
        for one in save.citations
    )
    return save if clean == save.citations else replace(save, citations=clean)


def _submission(save: SaveSubmission) -> SaveSubmission:
    submission = save.submission
    change = replace(submission.change, **_clean_parts(submission.change, "text", "place"))
    about = _clean_parts(submission, "title", "note", "reason")
    return replace(save, submission=replace(submission, change=change, **about))


_CLEAN: dict[type, Callable[[Any], Any]] = {
    SaveEntry: _entry,
    Record: _record,
    CancelJob: _fields("reason"),
    DropEntry: _fields("cause", "exempt"),
    DropItem: _fields("cause"),
    Emit: _fields("metadata", of="point"),
    Enqueue: _enqueue,
    FailJob: _fields("error"),
    FinishJob: _fields("result"),
    JournalStep: _fields("output"),
    KeepUtterances: _fields("utterances"),
    LinkAction: _fields("action", "description"),
    PostponeJob: _fields("reason"),
    SaveAmendment: _fields("change", "reason", "line", of="amendment"),
    SaveDocument: _document,
    SavePassages: lambda save: replace(save, passages=_clean_passages(save.passages)),
    SaveDocumentSource: _fields("notes", of="source"),
    SaveWatch: _fields("error", of="watch"),
    SaveChannel: _fields("name", "description", of="channel"),
    SaveCitations: _citations,
    SaveConfirmation: _fields("said", of="confirmation"),
    SaveNote: _fields("value", of="note"),
    SaveRivalry: _fields("reason", of="rivalry"),
    SaveSubmission: _submission,
    SaveTranscript: _fields("title", "detail", of="transcript"),
}
