"""The statements of background work: jobs, transcripts, amendments, telemetry. Constant text, as in `sql`."""

from __future__ import annotations

# Jobs

_JOB_COLUMNS = """
id, kind, key, payload, state, attempts, max_attempts, claim, run_after, created_at, updated_at, lease_until, worker,
error, result
"""
_JOB = f"SELECT {_JOB_COLUMNS} FROM jobs "
NEW_JOB = """
INSERT INTO jobs (
    id, kind, key, payload, state, attempts, max_attempts, claim, run_after, created_at, updated_at, lease_until,
    worker, error, result
) VALUES (?, ?, ?, ?, 'queued', 0, ?, 0, ?, ?, ?, NULL, '', '', '{}')
ON CONFLICT (key) DO NOTHING
"""
# Deaths are told first: a lease that ran out on the last attempt is nobody's to take up again.
BURY_JOBS = """
UPDATE jobs SET state = 'dead', updated_at = :now, lease_until = NULL,
    error = 'its worker stopped without a word on attempt ' || attempts || ' of ' || max_attempts
WHERE state = 'running' AND lease_until <= :now AND attempts >= max_attempts
RETURNING id, kind, attempts, error
"""
CLAIM_JOB = f"""
UPDATE jobs SET state = 'running', claim = claim + 1, attempts = attempts + 1, worker = :worker,
    lease_until = :lease_until, updated_at = :now
WHERE id = (
    SELECT id FROM jobs
    WHERE (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
    AND ((state = 'queued' AND run_after <= :now) OR (state = 'running' AND lease_until <= :now))
    ORDER BY run_after, place LIMIT 1
)
RETURNING {_JOB_COLUMNS}
"""
RENEW_LEASE = """
UPDATE jobs SET lease_until = :lease_until WHERE id = :id AND claim = :claim AND state = 'running' RETURNING 1
"""
HOLDS_CLAIM = "SELECT 1 FROM jobs WHERE id = ? AND claim = ? AND state = 'running'"
JOB_STATE = "SELECT state FROM jobs WHERE id = ?"
JOURNAL = "INSERT INTO job_steps (job, name, claim, at, output) VALUES (?, ?, ?, ?, ?)"
HAS_STEP = "SELECT 1 FROM job_steps WHERE job = ? AND name = ?"
STEPS = "SELECT name, output FROM job_steps WHERE job = ? ORDER BY place"
FINISH_JOB = "UPDATE jobs SET state = 'done', updated_at = ?, lease_until = NULL, error = '', result = ? WHERE id = ?"
FAIL_JOB = """
UPDATE jobs SET updated_at = :now, lease_until = NULL, error = :error,
    state = CASE WHEN :run_after IS NULL OR attempts >= max_attempts THEN 'dead' ELSE 'queued' END,
    run_after = coalesce(:run_after, run_after)
WHERE id = :id
"""
POSTPONE_JOB = """
UPDATE jobs SET state = 'queued', attempts = attempts - 1, run_after = ?, updated_at = ?, lease_until = NULL,
    error = ? WHERE id = ?
"""
REVIVE_JOB = """
UPDATE jobs SET state = 'queued', attempts = 0, run_after = ?, updated_at = ?, lease_until = NULL WHERE id = ?
"""
CANCEL_JOB = """
UPDATE jobs SET state = 'cancelled', claim = claim + 1, updated_at = ?, lease_until = NULL, error = ? WHERE id = ?
"""
FORGET_JOBS = "DELETE FROM jobs WHERE state IN ('done', 'cancelled') AND updated_at < ?"
JOBS = (
    _JOB
    + """
WHERE (:states IS NULL OR state IN (SELECT value FROM json_each(:states))) AND (:kind IS NULL OR kind = :kind)
ORDER BY updated_at DESC, place DESC LIMIT :limit
"""
)
JOB = _JOB + "WHERE id = :id OR key = :id ORDER BY id = :id DESC LIMIT 1"
QUEUE_DEPTH = "SELECT state, count(*) FROM jobs GROUP BY state"
NEXT_RUN = """
SELECT min(at) FROM (
    SELECT min(run_after) AS at FROM jobs
    WHERE state = 'queued' AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
    UNION ALL SELECT min(lease_until) FROM jobs
    WHERE state = 'running' AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
)
"""

# Transcripts

_TRANSCRIPT = """
SELECT id, key, format, title, created_at, updated_at, started_at, progress, kept, observed, how, detail, version
FROM transcripts
"""
TRANSCRIPT_VERSION = "SELECT version FROM transcripts WHERE id = ?"
NEW_TRANSCRIPT = """
INSERT INTO transcripts (
    id, key, format, title, created_at, updated_at, started_at, progress, kept, observed, how, detail, version
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
SET_TRANSCRIPT = """
UPDATE transcripts SET title = ?, updated_at = ?, started_at = ?, progress = ?, kept = ?, observed = ?, how = ?,
    detail = ?, version = ? WHERE id = ?
"""
TRANSCRIPTS = (
    _TRANSCRIPT
    + """
WHERE (:progress IS NULL OR progress = :progress)
AND (:after IS NULL OR place < (SELECT place FROM transcripts WHERE id = :after))
ORDER BY place DESC LIMIT :limit
"""
)
TRANSCRIPT = _TRANSCRIPT + "WHERE id = :id OR key = :id ORDER BY id = :id DESC LIMIT 1"
NEW_UTTERANCE = """
INSERT INTO utterances (transcript, place, id, role, at, text_hash, text) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING rowid
"""
_UTTERANCE = "SELECT id, role, text, place, at FROM utterances "
UTTERANCES = _UTTERANCE + "WHERE transcript = ? AND place >= ? ORDER BY place LIMIT ?"
UTTERANCE = _UTTERANCE + "WHERE transcript = ? AND id = ? ORDER BY place LIMIT 1"
SAID = "SELECT transcript, id, role, text, place, at FROM utterances WHERE rowid = ?"
FEED_UTTERANCE = "INSERT INTO utterance_fts (rowid, terms) VALUES (?, ?)"
FIND_UTTERANCES = "SELECT rowid FROM utterance_fts WHERE utterance_fts MATCH ? ORDER BY rank, rowid DESC LIMIT ?"
ALL_UTTERANCES = "SELECT rowid, transcript, id, text_hash, text FROM utterances ORDER BY rowid"
INDEXED_UTTERANCES = "SELECT id FROM utterance_fts_docsize ORDER BY id"
EMPTY_UTTERANCE_INDEX = "INSERT INTO utterance_fts (utterance_fts) VALUES ('delete-all')"
CHECK_UTTERANCE_INDEX = "INSERT INTO utterance_fts (utterance_fts, rank) VALUES ('integrity-check', 0)"

# Amendments

AMENDMENT_VERSION = "SELECT version FROM amendments WHERE id = ?"
SAVE_AMENDMENT = """
INSERT INTO amendments (
    id, section, change, confidence, sources, created_at, updated_at, state, decided_by, reason, line, version
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET section = excluded.section, change = excluded.change,
    confidence = excluded.confidence, sources = excluded.sources, updated_at = excluded.updated_at,
    state = excluded.state, decided_by = excluded.decided_by, reason = excluded.reason, line = excluded.line,
    version = excluded.version
"""
AMENDMENTS = """
SELECT id, section, change, confidence, sources, created_at, updated_at, state, decided_by, reason, line, version
FROM amendments
WHERE (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))
AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
ORDER BY place LIMIT :limit
"""

# Telemetry

NEW_POINT = """
INSERT INTO points (place, at, level, source, component, action, success, duration_ms, metadata)
VALUES (max(?1, 1 + coalesce((SELECT max(place) FROM points), 0)), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
"""
FORGET_POINTS = "DELETE FROM points WHERE at < :before AND (:level IS NULL OR level = :level)"
PRUNE_POINTS = """
DELETE FROM points WHERE level = 'debug' AND place <= (
    SELECT place FROM points WHERE level = 'debug' ORDER BY place DESC LIMIT 1 OFFSET ?
)
"""
_POINTS = """
FROM points AS p
WHERE p.place >= coalesce(:since, 0) AND (:since IS NULL OR p.at >= :since) AND (:until IS NULL OR p.at < :until)
AND (:component IS NULL OR p.component = :component) AND (:action IS NULL OR p.action = :action)
AND (:level IS NULL OR p.level = :level) AND (:success IS NULL OR p.success = :success)
"""
POINTS = (
    "SELECT p.at, p.level, p.source, p.component, p.action, p.success, p.duration_ms, p.metadata"
    + _POINTS
    + "ORDER BY p.at DESC, p.place DESC LIMIT :limit"
)
TALLY = (
    "SELECT p.component, p.action, count(*), sum(p.success = 0), avg(p.duration_ms), max(p.duration_ms)"
    + _POINTS
    + "GROUP BY p.component, p.action ORDER BY p.component, p.action"
)
TALLY_DAYS = (
    "SELECT date(p.at / 1000000, 'unixepoch') AS day, count(*), sum(p.success = 0)"
    + _POINTS
    + "GROUP BY day ORDER BY day"
)
TALLY_SUMS = (
    "SELECT p.component, p.action, m.key, sum(m.value)"
    + _POINTS.replace("FROM points AS p", "FROM points AS p, json_each(p.metadata) AS m")
    + "AND m.type IN ('integer', 'real') GROUP BY p.component, p.action, m.key ORDER BY m.key"
)
SPEND = """
INSERT INTO spending (day, model, calls, prompt, completion, cost) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (day, model) DO UPDATE SET calls = calls + excluded.calls, prompt = prompt + excluded.prompt,
    completion = completion + excluded.completion, cost = cost + excluded.cost
"""
SPENT = "SELECT day, model, calls, prompt, completion, cost FROM spending WHERE day >= ? ORDER BY day, model"
