"""Grants of other clients, and the answers that are kept for their keys."""

from __future__ import annotations

import json

import apsw
from msgspec.structs import replace

from lukasa.model.answer import Answer
from lukasa.model.grant import Capability, Grant, Reach
from lukasa.model.timestamps import micros, micros_or_none, moment, moment_or_none
from lukasa.model.values import Trust
from lukasa.storage import rules
from lukasa.storage.operations import AccessOperation, DropAnswer, ForgetAnswers, SaveAnswer, SaveGrant
from lukasa.storage.sqlite.query import Row, all_rows, one_row, one_value
from lukasa.storage.sqlite.rows import json_list

_COLUMNS = """
id, name, principal, agent, workspaces, capabilities, tiers, channels, conversations, trust, created_at, digest,
expires_at, revoked_at, version
"""
_VERSION = "SELECT version FROM grants WHERE id = ?"
_SAVE = f"""
INSERT INTO grants ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, principal = excluded.principal, agent = excluded.agent,
    workspaces = excluded.workspaces, capabilities = excluded.capabilities, tiers = excluded.tiers,
    channels = excluded.channels, conversations = excluded.conversations, trust = excluded.trust,
    digest = excluded.digest, expires_at = excluded.expires_at, revoked_at = excluded.revoked_at,
    version = excluded.version
"""
_GRANTS = f"SELECT {_COLUMNS} FROM grants ORDER BY place"
_GRANT = f"SELECT {_COLUMNS} FROM grants WHERE id = ?"

_ANSWER = "SELECT key, request, at, status, body FROM answers WHERE key = ?"
_SAVE_ANSWER = """
INSERT INTO answers (key, request, at, status, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET at = excluded.at, status = excluded.status, body = excluded.body
"""
_DROP_ANSWER = "DELETE FROM answers WHERE key = ? AND status = 0"
_FORGET_ANSWERS = "DELETE FROM answers WHERE at < ?"


def run(db: apsw.Connection, operation: AccessOperation) -> None:
    match operation:
        case SaveGrant():
            _save(db, operation)
        case SaveAnswer(new, stale):
            rules.check_answer(answer(db, new.key), new, stale)
            db.execute(_SAVE_ANSWER, (new.key, new.request, micros(new.at), new.status, new.body))
        case DropAnswer(key):
            db.execute(_DROP_ANSWER, (key,))
        case ForgetAnswers(before):
            db.execute(_FORGET_ANSWERS, (micros(before),))


def _save(db: apsw.Connection, operation: SaveGrant) -> None:
    g = replace(operation.grant, version=operation.expect + 1)
    rules.check_version("grant", g.id, one_value(db, _VERSION, (g.id,)), operation.expect)
    may = (json_list(g.workspaces), json_list(str(c) for c in g.capabilities))
    reach = (json_list(g.reach.tiers), json_list(g.reach.channels), json_list(g.reach.conversations))
    ends = (micros_or_none(g.expires_at), micros_or_none(g.revoked_at))
    who = (g.id, g.name, g.principal, g.agent)
    db.execute(_SAVE, (*who, *may, *reach, int(g.trust), micros(g.created_at), g.digest, *ends, g.version))


def grants(db: apsw.Connection) -> list[Grant]:
    return [_grant(row) for row in all_rows(db, _GRANTS)]


def grant(db: apsw.Connection, id: str) -> Grant | None:
    row = one_row(db, _GRANT, (id,))
    return None if row is None else _grant(row)


def answer(db: apsw.Connection, key: str) -> Answer | None:
    row = one_row(db, _ANSWER, (key,))
    return None if row is None else Answer(row[0], row[1], moment(row[2]), row[3], row[4])


def _grant(row: Row) -> Grant:
    id, name, principal, agent, spaces, may, tiers, channels, talks, trust, made, digest, ends, revoked, version = row
    return Grant(
        id=id,
        name=name,
        principal=principal,
        agent=agent,
        workspaces=_texts(spaces),
        capabilities=tuple(Capability(c) for c in _texts(may)),
        reach=Reach(_texts(tiers), _texts(channels), _texts(talks)),
        trust=Trust(trust),
        created_at=moment(made),
        digest=digest,
        expires_at=moment_or_none(ends),
        revoked_at=moment_or_none(revoked),
        version=version,
    )


def _texts(value: str) -> tuple[str, ...]:
    return tuple(json.loads(value))
