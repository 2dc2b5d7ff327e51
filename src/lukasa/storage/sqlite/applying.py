"""One transaction: every operation in order, and a sealed event for each."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from typing import Any

import apsw

from lukasa.model.events import EventDraft, Stamp
from lukasa.storage import rules, sqlite
from lukasa.storage.operations import (
    CancelJob,
    DropAnswer,
    DropEntry,
    DropItem,
    DropNotes,
    Emit,
    Enqueue,
    FailJob,
    FinishJob,
    ForgetAnswers,
    ForgetJobs,
    ForgetTelemetry,
    JournalStep,
    KeepUtterances,
    LinkAction,
    Operation,
    PipelineOperation,
    PostponeJob,
    Record,
    ReviveJob,
    SaveAmendment,
    SaveAnswer,
    SaveChannel,
    SaveConversation,
    SaveDocument,
    SaveEmbedding,
    SaveEntry,
    SaveGrant,
    SaveItem,
    SaveItemVectors,
    SaveNamed,
    SaveNote,
    SaveTranscript,
    SaveWorkspace,
    Scrub,
    Spend,
    Transaction,
    describe,
)
from lukasa.storage.sqlite import records, sql, vector_blobs
from lukasa.storage.sqlite.entries import EntryWriter
from lukasa.storage.sqlite.numbers import Numbers
from lukasa.storage.sqlite.query import all_rows


def run(db: apsw.Connection, transaction: Transaction, secret: bytes) -> Numbers:
    """Inside an open write transaction; raises to have all of it undone. The answer is what rooms and models are
    numbered by, for when it is committed."""
    writer = EntryWriter(db, transaction, Numbers(db))
    log = _Log(db, transaction)
    for new, group in groupby(transaction.operations, _is_new):
        if new:
            saves = [operation for operation in group if isinstance(operation, SaveEntry)]
            log.add(map(describe, saves, writer.add(saves)))
        else:
            for operation in group:
                _change(db, writer, log, operation, secret)
    vector_blobs.add(db, writer.grown)
    log.close()
    return writer.numbers


def _is_new(operation: Operation) -> bool:
    return isinstance(operation, SaveEntry) and not operation.expect


def _change(db: apsw.Connection, writer: EntryWriter, log: _Log, given: Operation, secret: bytes) -> None:
    operation = sqlite.scrubbing.take(db, given) if isinstance(given, Scrub) else given
    salt = _run(db, writer, operation, writer.transaction.at) or secret
    log.add([describe(operation, salt)])
    if isinstance(operation, Scrub):
        sqlite.scrubbing.seal(db, operation, log.seq)


class _Log:
    """The end of the chain of events, as one transaction makes it longer."""

    def __init__(self, db: apsw.Connection, transaction: Transaction) -> None:
        self._db = db
        self._stamp = Stamp(transaction.at, transaction.actor)
        ((self.seq, self._digest),) = all_rows(db, sql.HEAD)
        self._first = self.seq

    def add(self, drafts: Iterable[EventDraft | None]) -> None:
        sealed = [self._sealed(draft) for draft in drafts if draft is not None]
        if sealed:
            self._db.executemany(sql.NEW_EVENT, sealed)

    def _sealed(self, draft: EventDraft) -> tuple[Any, ...]:
        detail, previous = rules.plain_text(draft.detail), self._digest
        self.seq += 1
        self._digest = self._stamp.digest(draft, detail, self.seq, previous)
        stamp = self._stamp
        return self.seq, stamp.at, *stamp.who, draft.action, draft.subject, detail, previous, self._digest

    def close(self) -> None:
        if self.seq > self._first:
            self._db.execute(sql.SET_HEAD, (self.seq, self._digest))


def _run(db: apsw.Connection, writer: EntryWriter, operation: Operation, at: datetime) -> bytes | None:
    """Apply one operation; the answer is a salt of its own, where it has one."""
    match operation:
        case SaveEntry():
            return writer.save(operation)
        case SaveItem():
            return sqlite.items.save(db, operation)
        case DropItem():
            return sqlite.items.drop(db, operation)
        case SaveItemVectors():
            sqlite.items.embed(db, operation)
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
            sqlite.grants.run(db, operation)
        case _:
            _background(db, operation, at)
    return None


def _background(db: apsw.Connection, operation: PipelineOperation, at: datetime) -> None:
    match operation:
        case Enqueue(draft):
            sqlite.jobs.enqueue(db, draft, at)
        case JournalStep():
            sqlite.jobs.journal(db, operation, at)
        case FinishJob():
            sqlite.jobs.finish(db, operation, at)
        case FailJob():
            sqlite.jobs.fail(db, operation, at)
        case PostponeJob():
            sqlite.jobs.postpone(db, operation, at)
        case ReviveJob():
            sqlite.jobs.revive(db, operation, at)
        case CancelJob():
            sqlite.jobs.cancel(db, operation, at)
        case ForgetJobs(before):
            sqlite.jobs.forget(db, before)
        case SaveTranscript():
            sqlite.transcripts.save(db, operation)
        case KeepUtterances():
            sqlite.transcripts.keep(db, operation)
        case SaveAmendment():
            sqlite.transcripts.save_amendment(db, operation)
        case Emit(point):
            sqlite.telemetry.emit(db, point)
        case ForgetTelemetry(before, level):
            sqlite.telemetry.forget(db, before, level)
        case Spend(spending):
            sqlite.telemetry.spend(db, spending)
