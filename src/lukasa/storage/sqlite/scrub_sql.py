"""The statements of scrubbing. Constant text, as in `sql`; lists are bound as JSON."""

from __future__ import annotations

# What an extent holds

SCOPE = "SELECT id FROM scopes WHERE tier = ? AND anchor = ?"
SCOPES_OF_CONVERSATION = """
SELECT s.id FROM scopes AS s WHERE EXISTS (
    SELECT 1 FROM json_each(s.anchor) AS key WHERE key.value ->> 0 = 'conversation' AND key.value ->> 1 = ?
)
"""
ENTRIES = """
SELECT rowid, id, version FROM entries WHERE scope_id IN (SELECT value FROM json_each(:scopes))
OR (lifetime = 'conversation' AND conversation = :conversation)
ORDER BY rowid
"""
NAMED = "SELECT name, version FROM named WHERE tier = ?"
NOTES = "SELECT key, updated_at FROM notes WHERE conversation = ?"
TRANSCRIPTS = "SELECT id, version FROM transcripts"
AMENDMENTS = "SELECT id, version FROM amendments"
COUNT_VERSIONS = "SELECT count(*) FROM versions WHERE entry IN (SELECT value FROM json_each(?))"
COUNT_NAMED_VERSIONS = "SELECT count(*) FROM named_versions WHERE name IN (SELECT value FROM json_each(?))"
COUNT_VECTORS = "SELECT count(*) FROM vectors WHERE entry IN (SELECT value FROM json_each(?))"
COUNT_LINKED = "SELECT count(DISTINCT entry) FROM action_links WHERE entry IN (SELECT value FROM json_each(?))"
COUNT_UTTERANCES = "SELECT count(*) FROM utterances"
_OVER = "state IN ('done', 'dead', 'cancelled') OR (state = 'queued' AND id IN (SELECT job FROM job_steps))"
COUNT_OVER = f"SELECT count(*) FROM jobs WHERE {_OVER}"
COUNT_RUNNING = "SELECT count(*) FROM jobs WHERE state = 'running'"
_WORDY = "EXISTS (SELECT 1 FROM json_tree(points.metadata) AS t WHERE t.type = 'text' AND instr(t.value, ' '))"
COUNT_WORDY = f"SELECT count(*) FROM points WHERE {_WORDY}"

COUNT_ANSWERS = "SELECT count(*) FROM answers WHERE status <> 0"

# The events about it. A scrub's own event is never among them, and none is emptied twice.

_EVENT = "SELECT seq, at, principal, surface, transport, action, subject, detail, previous, digest FROM events "
_OPEN = "action <> 'scrub.executed' AND NOT (subject = '' AND detail = '{}')"
EVENTS = f"""
{_EVENT} WHERE {_OPEN} AND (
    subject IN (SELECT value FROM json_each(:ids))
    OR (subject IN (SELECT value FROM json_each(:names)) AND (action GLOB 'named.*' OR action GLOB 'curated.*'))
    OR (action IN ('note.written', 'note.cleared') AND subject = :conversation)
    OR (:purges AND subject = :conversation)
    OR (action IN ('entry.discarded', 'entry.refused') AND detail ->> '$.tier' = :tier)
    OR (action = 'action.linked' AND EXISTS (
        SELECT 1 FROM json_each(events.detail, '$.entries') AS e WHERE e.value IN (SELECT value FROM json_each(:ids))
    ))
)
ORDER BY seq
"""

# Removing it

DROP_LINKS = "DELETE FROM action_links WHERE entry IN (SELECT value FROM json_each(?)) RETURNING action"
DROP_ACTIONS = """
DELETE FROM actions WHERE id IN (SELECT value FROM json_each(?))
AND NOT EXISTS (SELECT 1 FROM action_links AS l WHERE l.action = actions.id)
"""
DROP_VECTORS = """
DELETE FROM vectors WHERE entry IN (SELECT value FROM json_each(?)) RETURNING partition_id, model_id, seq
"""
DROP_INDEXED = "DELETE FROM fts WHERE rowid = ?"
DROP_ENTRIES = "DELETE FROM entries WHERE rowid IN (SELECT value FROM json_each(?))"
RETIRE = "INSERT INTO retired (id) SELECT value FROM json_each(?)"
DROP_NAMED_VERSIONS = "DELETE FROM named_versions WHERE name IN (SELECT value FROM json_each(?))"
DROP_NAMED = "DELETE FROM named WHERE name IN (SELECT value FROM json_each(?))"
DROP_ANSWERS = "DELETE FROM answers WHERE status <> 0"
DROP_NOTES = "DELETE FROM notes WHERE conversation = ?"
EMPTY_UTTERANCE_INDEX = "INSERT INTO utterance_fts (utterance_fts) VALUES ('delete-all')"
DROP_UTTERANCES = "DELETE FROM utterances"
DROP_TRANSCRIPTS = "DELETE FROM transcripts"
DROP_AMENDMENTS = "DELETE FROM amendments"
DROP_JOBS = f"DELETE FROM jobs WHERE {_OVER}"
EMPTY_POINTS = f"UPDATE points SET metadata = '{{}}' WHERE {_WORDY}"

# Emptying events

NEW_REDACTION = "INSERT INTO redactions (first, last, scrub) VALUES (?, ?, ?)"
REDACT = "UPDATE events SET subject = '', detail = '{}' WHERE seq BETWEEN ? AND ?"

# Afterwards

NEW_UNSWEPT = "INSERT INTO unswept (conversation) VALUES (?) ON CONFLICT (conversation) DO NOTHING"
UNSWEPT = "SELECT conversation FROM unswept WHERE conversation <> '' ORDER BY conversation"
FILES_UNSWEPT = "SELECT 1 FROM unswept WHERE conversation = ''"
SWEPT = "DELETE FROM unswept WHERE conversation = ?"
OPTIMISE_UTTERANCES = "INSERT INTO utterance_fts (utterance_fts) VALUES ('optimize')"
TEMPORARY_FILES = "PRAGMA temp_store = FILE"
TEMPORARY_MEMORY = "PRAGMA temp_store = MEMORY"
VACUUM = "VACUUM"
