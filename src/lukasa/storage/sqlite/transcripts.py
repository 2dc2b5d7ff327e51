"""Transcripts, their messages, and amendments: writes and reads."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence

import apsw
from msgspec.structs import replace

from lukasa.index import bm25
from lukasa.index.postings import token, tokens
from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.errors import Conflict
from lukasa.model.text import content_hash, terms
from lukasa.model.timestamps import micros, micros_or_none, moment, moment_or_none
from lukasa.model.transcript import Progress, Transcript, Utterance
from lukasa.storage import rules
from lukasa.storage.operations import KeepUtterances, SaveAmendment, SaveTranscript
from lukasa.storage.port import Said
from lukasa.storage.sqlite import pipeline_sql as sql
from lukasa.storage.sqlite.query import Row, all_rows, one_row, one_value
from lukasa.storage.sqlite.rows import json_list

_ROOM = 0  # the index of messages has one room


def save(db: apsw.Connection, operation: SaveTranscript) -> None:
    t = replace(operation.transcript, version=operation.expect + 1)
    rules.check_version("transcript", t.id, one_value(db, sql.TRANSCRIPT_VERSION, (t.id,)), operation.expect)
    times = (micros(t.updated_at), micros_or_none(t.started_at))
    state = (str(t.progress), t.kept, t.observed, t.how, t.detail, t.version)
    if operation.expect:
        db.execute(sql.SET_TRANSCRIPT, (t.title, *times, *state, t.id))
        return
    try:
        db.execute(sql.NEW_TRANSCRIPT, (t.id, t.key, t.format, t.title, micros(t.created_at), *times, *state))
    except apsw.ConstraintError:
        raise rules.unique_conflict("transcript", t.id) from None


def keep(db: apsw.Connection, operation: KeepUtterances) -> None:
    if one_value(db, sql.TRANSCRIPT_VERSION, (operation.transcript,)) is None:
        raise rules.missing("transcript", operation.transcript)
    for u in operation.utterances:
        row = (operation.transcript, u.place, u.id, u.role, micros_or_none(u.at), content_hash(u.text), u.text)
        try:
            ((rowid,),) = all_rows(db, sql.NEW_UTTERANCE, row)
        except apsw.ConstraintError:
            raise Conflict(f"message {u.place} of the transcript is there already", fix="read it again") from None
        db.execute(sql.FEED_UTTERANCE, (rowid, tokens(_ROOM, terms(u.text))))


def transcripts(db: apsw.Connection, progress: Progress | None, limit: int, after: str | None) -> list[Transcript]:
    bindings = {"progress": None if progress is None else str(progress), "limit": limit, "after": after}
    return [_transcript(row) for row in all_rows(db, sql.TRANSCRIPTS, bindings)]


def transcript(db: apsw.Connection, id_or_key: str) -> Transcript | None:
    row = one_row(db, sql.TRANSCRIPT, {"id": id_or_key})
    return None if row is None else _transcript(row)


def _transcript(row: Row) -> Transcript:
    id, key, format, title, new, last, started, progress, kept, observed, how, detail, version = row
    times = (moment(new), moment(last), moment_or_none(started))
    return Transcript(id, key, format, title, *times, Progress(progress), kept, observed, how, detail, version)


def utterances(db: apsw.Connection, transcript: str, start: int, limit: int | None) -> list[Utterance]:
    rows = all_rows(db, sql.UTTERANCES, (transcript, start, -1 if limit is None else limit))
    return [_utterance(row) for row in rows]


def utterance(db: apsw.Connection, transcript: str, message: str) -> Utterance | None:
    row = one_row(db, sql.UTTERANCE, (transcript, message))
    return None if row is None else _utterance(row)


def find(db: apsw.Connection, asked: Sequence[str], limit: int) -> list[Said]:
    used = rules.unique(asked)[: bm25.MAX_TERMS]
    if not used:
        return []
    match = " OR ".join(f'"{token(_ROOM, term)}"' for term in used)
    rows = [one_row(db, sql.SAID, (rowid,)) for (rowid,) in all_rows(db, sql.FIND_UTTERANCES, (match, limit))]
    return [Said(row[0], _utterance(row[1:])) for row in rows if row is not None]


def _utterance(row: Row) -> Utterance:
    id, role, text, place, at = row
    return Utterance(id, role, text, place, moment_or_none(at))


def rebuild(db: apsw.Connection) -> None:
    db.execute(sql.EMPTY_UTTERANCE_INDEX)
    for rowid, _, _, _, text in all_rows(db, sql.ALL_UTTERANCES):
        db.execute(sql.FEED_UTTERANCE, (rowid, tokens(_ROOM, terms(text))))


def save_amendment(db: apsw.Connection, operation: SaveAmendment) -> None:
    a = replace(operation.amendment, version=operation.expect + 1)
    rules.check_version("proposal", a.id, one_value(db, sql.AMENDMENT_VERSION, (a.id,)), operation.expect)
    times = (micros(a.created_at), micros(a.updated_at))
    text = (a.id, a.section, a.change, float(a.confidence), json.dumps(a.sources))
    db.execute(sql.SAVE_AMENDMENT, (*text, *times, str(a.state), a.decided_by, a.reason, a.line, a.version))


def amendments(
    db: apsw.Connection, ids: Iterable[str] | None, states: Collection[AmendmentState] | None, limit: int
) -> list[Amendment]:
    bindings = {
        "ids": None if ids is None else json_list(ids),
        "states": None if states is None else json_list(str(state) for state in states),
        "limit": limit,
    }
    return [_amendment(row) for row in all_rows(db, sql.AMENDMENTS, bindings)]


def _amendment(row: Row) -> Amendment:
    id, section, change, confidence, sources, new, last, state, decided_by, reason, line, version = row
    text = (id, section, change, confidence, tuple(json.loads(sources)), moment(new), moment(last))
    return Amendment(*text, AmendmentState(state), decided_by, reason, line, version)
