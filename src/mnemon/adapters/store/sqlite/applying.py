"""One transaction: every operation in order, and a sealed event for each."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import apsw

from mnemon.adapters.store import rules
from mnemon.adapters.store.sqlite import grants, items, jobs, records, scrubbing, sql, telemetry, transcripts
from mnemon.adapters.store.sqlite.entries import EntryWriter
from mnemon.adapters.store.sqlite.query import all_rows
from mnemon.model.events import EventDraft, canonical_json, seal
from mnemon.ports.access import DropAnswer, ForgetAnswers, SaveAnswer, SaveGrant
from mnemon.ports.items import DropItem, SaveItem, SaveItemVectors
from mnemon.ports.pipeline import (
    CancelJob,
    Emit,
    Enqueue,
    FailJob,
    FinishJob,
    ForgetJobs,
    ForgetPoints,
    JournalStep,
    KeepUtterances,
    PipelineOperation,
    PostponeJob,
    ReviveJob,
    SaveAmendment,
    SaveTranscript,
    Spend,
)
from mnemon.ports.scrub import Scrub
from mnemon.ports.store import (
    DropEntry,
    DropNotes,
    LinkAction,
    Operation,
    Record,
    SaveChannel,
    SaveConversation,
    SaveDocument,
    SaveEmbedding,
    SaveEntry,
    SaveNamed,
    SaveNote,
    SaveWorkspace,
    Transaction,
    describe,
)


def run(db: apsw.Connection, transaction: Transaction, secret: bytes) -> None:
    """Inside an open write transaction; raises to have all of it undone."""
    writer = EntryWriter(db, transaction)
    seq, digest = head = _head(db)
    for given in transaction.operations:
        operation = scrubbing.take(db, given) if isinstance(given, Scrub) else given
        salt = _run(db, writer, operation, transaction.at) or secret
        draft = describe(operation, salt)
        if draft is not None:
            seq, digest = _append(db, transaction, draft, seq + 1, digest)
        if isinstance(operation, Scrub):
            scrubbing.seal(db, operation, seq)
            writer.ids.clear()
    if (seq, digest) != head:
        db.execute(sql.SET_HEAD, (seq, digest))


def _head(db: apsw.Connection) -> tuple[int, str]:
    seq, digest = all_rows(db, sql.HEAD)[0]
    return seq, digest


def _append(
    db: apsw.Connection, transaction: Transaction, draft: EventDraft, seq: int, previous: str
) -> tuple[int, str]:
    # Sealed as it will be read back: a tuple is a list then, and a number as a key is text.
    plain = replace(draft, detail=rules.plain_json(draft.detail))
    event = seal(plain, seq=seq, at=transaction.at, actor=transaction.actor, previous=previous)
    actor = event.actor
    who = (actor.principal, actor.surface, actor.transport)
    what = (event.action, event.subject, canonical_json(event.detail))
    db.execute(sql.NEW_EVENT, (seq, event.at.isoformat(), *who, *what, previous, event.digest))
    return seq, event.digest


def _run(db: apsw.Connection, writer: EntryWriter, operation: Operation, at: datetime) -> bytes | None:
    """Apply one operation; the answer is a salt of its own, where it has one."""
    match operation:
        case SaveEntry():
            return writer.save(operation)
        case SaveItem():
            return items.save(db, operation)
        case DropItem():
            return items.drop(db, operation)
        case SaveItemVectors():
            items.embed(db, operation)
        case DropEntry():
            writer.drop(operation)
        case SaveEmbedding():
            writer.embed(operation)
        case LinkAction():
            writer.link(operation)
        case SaveNamed():
            records.save_named(db, operation)
        case SaveDocument():
            records.save_document(db, operation)
        case SaveChannel():
            records.save_channel(db, operation)
        case SaveConversation():
            records.save_conversation(db, operation)
        case SaveNote():
            records.save_note(db, operation)
        case DropNotes():
            records.drop_notes(db, operation)
        case SaveWorkspace():
            records.save_workspace(db, operation)
        case Record() | Scrub():
            pass
        case SaveGrant() | SaveAnswer() | DropAnswer() | ForgetAnswers():
            grants.run(db, operation)
        case _:
            _background(db, operation, at)
    return None


def _background(db: apsw.Connection, operation: PipelineOperation, at: datetime) -> None:
    match operation:
        case Enqueue(draft):
            jobs.enqueue(db, draft, at)
        case JournalStep():
            jobs.journal(db, operation, at)
        case FinishJob():
            jobs.finish(db, operation, at)
        case FailJob():
            jobs.fail(db, operation, at)
        case PostponeJob():
            jobs.postpone(db, operation, at)
        case ReviveJob():
            jobs.revive(db, operation, at)
        case CancelJob():
            jobs.cancel(db, operation, at)
        case ForgetJobs(before):
            jobs.forget(db, before)
        case SaveTranscript():
            transcripts.save(db, operation)
        case KeepUtterances():
            transcripts.keep(db, operation)
        case SaveAmendment():
            transcripts.save_amendment(db, operation)
        case Emit(point):
            telemetry.emit(db, point)
        case ForgetPoints(before):
            telemetry.forget(db, before)
        case Spend(spending):
            telemetry.spend(db, spending)
