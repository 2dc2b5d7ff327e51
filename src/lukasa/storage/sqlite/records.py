"""Standing content, conversations, notes and the workspace registry: their writes and their reads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import apsw
from msgspec.structs import replace

from lukasa.index.cache import Answers
from lukasa.model.conversation import Channel, Conversation, Note, Status, WorkspaceInfo
from lukasa.model.entry import Document, NamedEntry
from lukasa.model.errors import Conflict
from lukasa.model.timestamps import micros, micros_or_none, moment, moment_or_none
from lukasa.storage import rules
from lukasa.storage.operations import (
    DropNotes,
    SaveChannel,
    SaveConversation,
    SaveDocument,
    SaveNamed,
    SaveNote,
    SaveWorkspace,
)
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.query import all_rows, one_row, one_value
from lukasa.storage.sqlite.rows import json_list
from lukasa.storage.sqlite.search import Handle, SqliteSearchRows

_WORTH_KEEPING = 1 << 20  # characters of all bodies of a kind, up to which they stay in memory


def save_named(db: apsw.Connection, operation: SaveNamed) -> None:
    named = replace(operation.entry, version=operation.expect + 1)
    rules.check_version("named entry", named.name, one_value(db, sql.NAMED_VERSION, (named.name,)), operation.expect)
    row = (named.name, named.tier, named.body, micros(named.edited_at), named.editor, named.version)
    db.execute(sql.SAVE_NAMED, row)
    db.execute(sql.NEW_NAMED_VERSION, row)


def save_document(db: apsw.Connection, operation: SaveDocument) -> None:
    d = replace(operation.document, version=operation.expect + 1)
    rules.check_version("document", d.id, one_value(db, sql.DOCUMENT_VERSION, (d.id,)), operation.expect)
    text = (d.id, d.title, d.body, d.origin, d.lifecycle)
    row = (*text, float(d.weight), d.standing, d.version, micros(d.updated_at), d.collection, int(d.removed))
    db.execute(sql.SAVE_DOCUMENT, row)
    db.execute(sql.NEW_DOCUMENT_VERSION, row)


def save_channel(db: apsw.Connection, operation: SaveChannel) -> None:
    c = operation.channel
    row = (c.id, c.workspace, c.name, c.description, int(c.is_default), micros(c.created_at))
    try:
        db.execute(sql.NEW_CHANNEL, row)
    except apsw.ConstraintError:
        raise rules.unique_conflict("channel", c.id) from None


def save_conversation(db: apsw.Connection, operation: SaveConversation) -> None:
    new = operation.conversation
    if operation.expect is None:
        _start(db, new)
        return
    row = one_row(db, sql.CONVERSATION_BY_ID, (new.id,))
    if row is None:
        raise rules.missing("conversation", new.id)
    before = _conversation(row)
    if before.status is not operation.expect:
        raise Conflict(f"conversation {new.id} is {before.status}", fix="read it again and decide anew")
    rules.check_conversation(before, new)
    db.execute(sql.UPDATE_CONVERSATION, (str(new.status), micros_or_none(new.ended_at), new.id))


def _start(db: apsw.Connection, new: Conversation) -> None:
    if one_value(db, sql.CONVERSATION_TAKEN, (new.id, new.ref_code)):
        raise rules.unique_conflict("conversation", new.id)
    if not one_value(db, sql.HAS_CHANNEL, (new.channel,)):
        raise rules.missing("channel", new.channel)
    times = (micros(new.started_at), str(new.status), micros_or_none(new.ended_at))
    db.execute(sql.NEW_CONVERSATION, (new.id, new.ref_code, new.channel, *times))


def save_note(db: apsw.Connection, operation: SaveNote) -> None:
    n = operation.note
    _require_conversation(db, n.conversation)
    if operation.onto != "anything":
        rules.check_note(operation, next((note for note in notes(db, n.conversation) if note.key == n.key), None))
    value = json.dumps(rules.plain_json(n.value))
    db.execute(sql.SAVE_NOTE, (n.conversation, n.key, value, micros(n.created_at), micros(n.updated_at)))


def drop_notes(db: apsw.Connection, operation: DropNotes) -> None:
    _require_conversation(db, operation.conversation)
    bindings = {"conversation": operation.conversation, "key": operation.key}
    if not all_rows(db, sql.DROP_NOTES, bindings) and operation.key is not None:
        raise rules.missing("note", operation.key)


def _require_conversation(db: apsw.Connection, id: str) -> None:
    if one_row(db, sql.CONVERSATION_BY_ID, (id,)) is None:
        raise rules.missing("conversation", id)


def save_workspace(db: apsw.Connection, operation: SaveWorkspace) -> None:
    w = operation.info
    ready = one_value(db, sql.WORKSPACE_READY, (w.id,))
    if ready is None and operation.expect is not None:
        raise rules.missing("workspace", w.id)
    if ready is not None and bool(ready) is not operation.expect:
        raise Conflict(f"workspace {w.id} is registered already", fix="read it again and decide anew")
    try:
        db.execute(sql.SAVE_WORKSPACE, (w.id, w.name, w.preset, w.spec_toml, micros(w.created_at), int(w.ready)))
    except apsw.ConstraintError:
        raise rules.unique_conflict("workspace", w.id) from None


# Reads


def _cached(db: apsw.Connection) -> Answers:
    """Named entries and documents, which every put is compared with. In a write transaction nothing is cached."""
    if not isinstance(db, Handle) or (db.in_transaction and not db.reads):
        return {}
    return db.cache.records(SqliteSearchRows(db))


def named(db: apsw.Connection, name: str | None) -> list[NamedEntry]:
    told = _cached(db) if name is None else {}
    found: list[NamedEntry] | None = told.get("named")
    if found is None:
        found = [_named(row) for row in all_rows(db, sql.NAMED, {"name": name})]
        if sum([len(one.body) for one in found]) <= _WORTH_KEEPING:
            told["named"] = found
    return list(found)


def named_versions(db: apsw.Connection, name: str) -> list[NamedEntry]:
    return [_named(row) for row in all_rows(db, sql.NAMED_VERSIONS, (name,))]


def _named(row: tuple[Any, ...]) -> NamedEntry:
    name, tier, body, edited_at, editor, version = row
    return NamedEntry(name, tier, body, moment(edited_at), editor, version)


def documents(db: apsw.Connection, ids: Iterable[str] | None) -> dict[str, Document]:
    told = _cached(db) if ids is None else {}
    found: dict[str, Document] | None = told.get("documents")
    if found is None:
        bindings = {"ids": None if ids is None else json_list(ids)}
        found = {row[0]: _document(row) for row in all_rows(db, sql.DOCUMENTS, bindings)}
        if sum([len(one.body) for one in found.values()]) <= _WORTH_KEEPING:
            told["documents"] = found
    return dict(found)


def _document(row: tuple[Any, ...]) -> Document:
    id, title, body, origin, lifecycle, weight, standing, version, updated_at, collection, removed = row
    axes = (origin, lifecycle, weight, standing)
    return Document(id, title, body, *axes, version, moment(updated_at), collection, bool(removed))


def channels(db: apsw.Connection) -> list[Channel]:
    rows = all_rows(db, sql.CHANNELS)
    return [Channel(id, room, name, about, bool(first), moment(at)) for id, room, name, about, first, at in rows]


def conversations(db: apsw.Connection, archived: bool, channel: str | None) -> list[Conversation]:
    bindings = {"archived": int(archived), "channel": channel}
    return [_conversation(row) for row in all_rows(db, sql.CONVERSATIONS, bindings)]


def conversation(db: apsw.Connection, id_or_ref: str) -> Conversation | None:
    row = one_row(db, sql.CONVERSATION, {"id": id_or_ref})
    return None if row is None else _conversation(row)


def _conversation(row: tuple[Any, ...]) -> Conversation:
    id, ref_code, channel, started_at, status, ended_at = row
    return Conversation(id, ref_code, channel, moment(started_at), Status(status), moment_or_none(ended_at))


def notes(db: apsw.Connection, conversation: str) -> list[Note]:
    rows = all_rows(db, sql.NOTES, (conversation,))
    return [Note(place, key, json.loads(value), moment(new), moment(last)) for place, key, value, new, last in rows]


def workspaces(db: apsw.Connection) -> list[WorkspaceInfo]:
    rows = all_rows(db, sql.WORKSPACES)
    return [WorkspaceInfo(id, name, how, toml, moment(at), bool(ready)) for id, name, how, toml, at, ready in rows]
