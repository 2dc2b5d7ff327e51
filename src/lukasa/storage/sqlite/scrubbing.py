"""Removing for good: what an extent holds, taking all of it, and emptying the events about it."""

from __future__ import annotations

from typing import NamedTuple

import apsw
from msgspec.structs import replace

from lukasa.model.events import Event, redaction
from lukasa.model.scrub import Extent, Holdings, Versioned, manifest_digest
from lukasa.storage import rules
from lukasa.storage.operations import Scrub
from lukasa.storage.sqlite import scrub_sql as sql
from lukasa.storage.sqlite import sql as statements
from lukasa.storage.sqlite import vector_blobs
from lukasa.storage.sqlite.query import all_rows, one_value
from lukasa.storage.sqlite.rows import anchor_text, event_of, json_list


class _Found(NamedTuple):
    """What is there, with the numbers of its rows."""

    holdings: Holdings
    rows: list[int]
    events: list[Event]


def holdings(db: apsw.Connection, extent: Extent) -> Holdings:
    return _look(db, extent).holdings


def _look(db: apsw.Connection, extent: Extent) -> _Found:
    entries = all_rows(db, sql.ENTRIES, _place(db, extent))
    rows = [row for row, _, _ in entries]
    listed = Holdings(
        entries=tuple((id, version) for _, id, version in entries),
        named=_pairs(db, sql.NAMED, extent.named) if extent.named is not None else (),
        notes=_pairs(db, sql.NOTES, extent.conversation) if extent.conversation is not None else (),
        transcripts=_pairs(db, sql.TRANSCRIPTS) if extent.copies else (),
        amendments=_pairs(db, sql.AMENDMENTS) if extent.copies else (),
    )
    events = _events(db, extent, listed)
    names = json_list(name for name, _ in listed.named)
    counts = {
        "versions": one_value(db, sql.COUNT_VERSIONS, (json_list(rows),)),
        "named_versions": one_value(db, sql.COUNT_NAMED_VERSIONS, (names,)),
        "vectors": one_value(db, sql.COUNT_VECTORS, (json_list(rows),)),
        "linked": one_value(db, sql.COUNT_LINKED, (json_list(rows),)),
        "answers": one_value(db, sql.COUNT_ANSWERS),
        "events": len(events),
    }
    if extent.copies:
        of_all = {"utterances": sql.COUNT_UTTERANCES, "jobs": sql.COUNT_OVER, "points": sql.COUNT_WORDY}
        counts |= {name: one_value(db, statement) for name, statement in of_all.items()}
        counts["running"] = one_value(db, sql.COUNT_RUNNING)
    return _Found(replace(listed, counts=counts), rows, events)


def _place(db: apsw.Connection, extent: Extent) -> dict[str, str | None]:
    if extent.scope is not None:
        found = all_rows(db, sql.SCOPE, (extent.scope.tier, anchor_text(extent.scope)))
    else:
        found = all_rows(db, sql.SCOPES_OF_CONVERSATION, (extent.conversation,))
    return {
        "scopes": json_list(id for (id,) in found),
        "conversation": extent.conversation if extent.purges else None,
    }


def _pairs(db: apsw.Connection, statement: str, *bindings: str) -> Versioned:
    return tuple((id, version) for id, version in all_rows(db, statement, bindings))


def _events(db: apsw.Connection, extent: Extent, held: Holdings) -> list[Event]:
    bindings = {
        "ids": json_list(id for id, _ in (*held.entries, *held.transcripts, *held.amendments)),
        "names": json_list(name for name, _ in held.named),
        "conversation": extent.conversation,
        "purges": extent.purges,
        "tier": extent.scope.tier if extent.scope is not None and extent.whole else None,
    }
    return [event_of(row) for row in all_rows(db, sql.EVENTS, bindings)]


# Inside a write transaction


def take(db: apsw.Connection, operation: Scrub) -> Scrub:
    """Remove everything, if it is what was expected; the answer says which events are to be emptied."""
    extent, found = operation.extent, _look(db, operation.extent)
    rules.check_manifest(manifest_digest(extent, found.holdings), operation.expect)
    _take_entries(db, found)
    names = json_list(name for name, _ in found.holdings.named)
    db.execute(sql.DROP_NAMED_VERSIONS, (names,))
    db.execute(sql.DROP_NAMED, (names,))
    db.execute(sql.DROP_ANSWERS)
    if extent.conversation is not None:
        db.execute(sql.DROP_NOTES, (extent.conversation,))
    if extent.copies:
        rules.check_idle(found.holdings.counts["running"])
        for statement in (sql.EMPTY_UTTERANCE_INDEX, sql.DROP_UTTERANCES, sql.DROP_TRANSCRIPTS):
            db.execute(statement)
        for statement in (sql.DROP_AMENDMENTS, sql.DROP_JOBS, sql.EMPTY_POINTS):
            db.execute(statement)
    return replace(operation, redacted=redaction(found.events))


def _take_entries(db: apsw.Connection, found: _Found) -> None:
    rows = json_list(found.rows)
    actions = [action for (action,) in all_rows(db, sql.DROP_LINKS, (rows,))]
    db.execute(sql.DROP_ACTIONS, (json_list(actions),))
    for gone in all_rows(db, sql.DROP_VECTORS, (rows,)):
        vector_blobs.remove(db, *gone)
    for row in found.rows:
        db.execute(sql.DROP_INDEXED, (row,))
    db.execute(sql.DROP_ENTRIES, (rows,))
    db.execute(sql.RETIRE, (json_list(id for id, _ in found.holdings.entries),))
    db.execute(statements.RECOUNT)


def seal(db: apsw.Connection, operation: Scrub, seq: int) -> None:
    """Empty the events that the scrub's own event, which is number `seq`, vouches for; and note what is left to do."""
    for first, last in operation.redacted.ranges:
        db.execute(sql.NEW_REDACTION, (first, last, seq))
        db.execute(sql.REDACT, (first, last))
    db.execute(sql.NEW_UNSWEPT, ("",))
    if operation.extent.purges:
        db.execute(sql.NEW_UNSWEPT, (operation.extent.conversation,))
