"""The revisions of a store as rows: kept by a sync, and emptied in the transaction that removes what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from lukasa.model.erasure import Words
from lukasa.model.errors import Conflict
from lukasa.model.sync import Erasure, KeptRevision, SyncNote
from lukasa.storage import tables
from lukasa.storage.backend import Rows
from lukasa.storage.operations import KeepRevisions

CAPTURED = "captured"  # the note that says up to which event the changes made here are in revisions
LOCAL = "local:"  # begins the notes that say what somebody decided here alone about an entry


def keep(rows: Rows, operation: KeepRevisions, begun: int, now: int) -> None:
    """Keep revisions and notes. `begun` and `now` are the numbers of the last events before and after the others."""
    if operation.read is not None and operation.read != begun:
        raise Conflict("memory has changed since it was read", fix="read it again, then decide")
    for revision in operation.revisions:
        rows.save(tables.REVISIONS, revision)
    for digest in operation.drop:
        rows.delete(tables.REVISIONS.one, digest)
    for note in operation.notes:
        rows.save(tables.SYNC_NOTES, note)
    for name in operation.forget:
        rows.delete(tables.SYNC_NOTES.one, name)
    if operation.read is not None:
        rows.save(tables.SYNC_NOTES, SyncNote(CAPTURED, {"event": now}))


def erase_shown(rows: Rows, spots: Sequence[str]) -> None:
    """Empty the revisions of the things that are shown in these places, and of all that hangs on them."""
    _erase(rows, rows.select(tables.REVISIONS_BY["spot"], spots))
    erase_about(rows, spots)
    for spot in spots:
        rows.delete(tables.SYNC_NOTES.one, f"{LOCAL}{spot}")


def erase_about(rows: Rows, ids: Sequence[str]) -> None:
    """Empty the revisions of what hangs on an entry or a conversation."""
    _erase(rows, rows.select(tables.REVISIONS_BY["about"], ids))


def erase_kinds(rows: Rows, kinds: Sequence[str]) -> None:
    """Empty the revisions of all things of some kinds."""
    _erase(rows, rows.select(tables.REVISIONS_BY["kind"], kinds))


def erase_words(rows: Rows, words: Words) -> None:
    """Empty the revisions that hold some words."""
    _erase(rows, (one for one in rows.select(tables.ALL_REVISIONS) if words.found_in(one.revision.body)))


def _erase(rows: Rows, found: Iterable[KeptRevision]) -> None:
    """Empty revisions. One that says what was erased has no words, and stays."""
    for one in found:
        body = one.revision.body
        if body is not None and "erased" not in body:
            empty = replace(one.revision, body=None)
            rows.save(tables.REVISIONS, replace(one, revision=empty, twin="", erasure=Erasure.FRESH))
