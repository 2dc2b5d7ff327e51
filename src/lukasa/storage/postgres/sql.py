"""Every statement the store runs, as constant text, apart from those that declared tables make.

Values are bound, and the store's id is the first of them. Nothing is spliced in, but for a UUID and numbers of this
program in the statements on vector indexes, whose predicates PostgreSQL only recognises as constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from lukasa.storage.codec import TextTable
from lukasa.storage.entry_codec import COLUMNS, RESTS
from lukasa.storage.tables import TELEMETRY

# Connections, schema, stores

SETTINGS = (
    "SET jit = off",
    "SET statement_timeout = '120s'",
    "SET lock_timeout = '30s'",
    "SET idle_in_transaction_session_timeout = '300s'",
    "SET plan_cache_mode = force_generic_plan",  # planning for each value took a fifth of a read's time
    "SET hnsw.ef_search = 200",
    "SET hnsw.iterative_scan = strict_order",
    "SET ROLE lukasa_app",
)
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
PLAN_BY_VALUES = "SET LOCAL plan_cache_mode = force_custom_plan"
EXTENSION_SCHEMA = """
SELECT n.nspname FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
"""
PREPARE_SCHEMA = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    """
    DO $$ BEGIN
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'lukasa_app') THEN
            CREATE ROLE lukasa_app NOLOGIN NOINHERIT;
        END IF;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- another database of this server made it just now
    END $$
    """,
    """
    DO $$ BEGIN
        IF NOT pg_has_role(current_user, 'lukasa_app', 'SET') THEN
            GRANT lukasa_app TO CURRENT_USER WITH SET TRUE;
        END IF;
    END $$
    """,
    "CREATE SCHEMA lukasa",
    """
    CREATE TABLE lukasa.migrations (
        number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, readable_by integer NOT NULL,
        applied_at text NOT NULL
    )
    """,
)
APPLIED = "SELECT number, checksum, readable_by FROM lukasa.migrations ORDER BY number"
MIGRATED = "INSERT INTO migrations (number, name, checksum, readable_by, applied_at) VALUES (%s, %s, %s, %s, %s)"
ACCOUNT_NAMED = "SELECT account_named(%s)::text"
ENTER = "SELECT * FROM enter(%s, %s)"
BIND = "SELECT set_config('lukasa.store', %s, true), set_config('lukasa.keys', %s, true)"
ENTER_TO_WRITE = "SELECT * FROM enter_to_write(%s, %s)"
NEW_STORE = """
INSERT INTO heads (store, account, role, secret, tokenizer, created_at) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (store) DO NOTHING
"""
META = """
SELECT role, secret, tokenizer, moving,
    EXISTS (SELECT 1 FROM unswept AS u WHERE u.store = h.store AND conversation = '')
FROM heads AS h WHERE h.store = %s
"""
SET_HEAD = """
UPDATE heads AS h SET seq = v.seq, digest = v.digest, entries = v.entries, fed = v.fed, commits = h.commits + 1
FROM (SELECT %s::uuid AS store, %s AS seq, %s AS digest, %s AS entries, %s AS fed) AS v WHERE h.store = v.store
"""
SET_TOKENIZER = """
UPDATE heads AS h SET rebuilt = h.rebuilt + 1, tokenizer = v.tokenizer
FROM (SELECT %s::uuid AS store, %s AS tokenizer) AS v WHERE h.store = v.store
"""
# Moving

MOVING = "SELECT moving FROM heads WHERE store = %s"
SET_MOVING = "UPDATE heads SET moving = %s WHERE store = %s"
NEW_MARKED_STORE = """
INSERT INTO heads (store, account, role, secret, tokenizer, created_at, moving) VALUES (%s, %s, %s, %s, %s, %s, %s)
"""
BEGIN_HOLD = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL idle_in_transaction_session_timeout = 0"
LOCK_HEAD = "SELECT seq, digest FROM heads WHERE store = %s FOR UPDATE"
CLEAR_STORE = "SELECT clear_store(%s)"
DROP_ACCOUNT = "DELETE FROM accounts WHERE id = %s"
ORIGIN = "SELECT role, secret, tokenizer, created_at, seq, digest, entries FROM heads WHERE store = %s"
DIGEST_OF = "SELECT digest FROM events WHERE store = %s AND seq = %s"
EMPTY_ACCESS = "DELETE FROM access WHERE store = %s"
KEYS_OF_SCOPES = "SELECT id, keys::text FROM scopes WHERE store = %s AND id = ANY(%s)"
KEYS_OF_ROWS = "SELECT rowid, keys::text FROM entries WHERE store = %s AND rowid = ANY(%s)"
VECTOR_INDEXES = "SELECT name FROM vector_indexes WHERE store = %s"
TAKE_VECTOR = """
INSERT INTO vectors (store, entry, model_id, partition_id, checksum, embedding) VALUES (%s, %s, %s, %s, %s, %b)
"""
TAKE_ITEM = """
INSERT INTO items (
    store, rowid, space, key, created_at, updated_at, expires_at, ttl, value_hash, salt, value, texts, indexer
) VALUES (%s, nextval('places'), %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
TAKE_PASSAGE_VECTOR = """
INSERT INTO passage_vectors (store, passage, model_id, checksum, embedding)
SELECT p.store, p.rowid, v.model_id, v.checksum, v.embedding FROM (
    SELECT %s::uuid AS store, %s AS model_id, %s::text AS checksum, %b::vector AS embedding,
        %s::text AS document, %s AS number
) AS v JOIN passages AS p ON p.store = v.store AND p.document = v.document AND p.number = v.number
"""
TAKE_ITEM_VECTOR = """
INSERT INTO item_vectors (store, item, space, model_id, field, checksum, embedding)
SELECT i.store, i.rowid, i.space, v.model_id, v.field, v.checksum, v.embedding FROM (
    SELECT %s::uuid AS store, %s AS model_id, %s::text AS field, %s::text AS checksum, %b::vector AS embedding,
        %s AS space, %s::text AS key
) AS v JOIN items AS i ON i.store = v.store AND i.space = v.space AND i.key = v.key
"""
NOTIFY = "SELECT pg_notify('lukasa_jobs', %s)"

# What happened since a snapshot

ROWS_SINCE = "SELECT id, rowid, partition_id, terms FROM entries WHERE store = %s AND rowid > %s"
# Subjects of all events but those that are about no entry, by their action and by the entries that exist.
SUBJECTS_SINCE = """
SELECT v.subject FROM events AS v WHERE v.store = %s AND v.seq > %s AND (
    split_part(v.action, '.', 1) NOT IN (
        'note', 'channel', 'conversation', 'transcript', 'item', 'document', 'named', 'grant', 'amendment', 'watch'
    ) OR EXISTS (SELECT 1 FROM entries AS e WHERE e.store = v.store AND e.id = v.subject)
)
"""
# Along the key, whatever the planner makes of the condition: it is asked for the last few events.
RECORDS_CHANGED_SINCE = """
SELECT coalesce(bool_or(split_part(v.action, '.', 1) IN ('named', 'scrub')), false)
FROM (SELECT action FROM events WHERE store = %s AND seq > %s ORDER BY seq LIMIT %s) AS v
"""

# Read statistics

ACCESS = "SELECT id, count, at FROM access WHERE store = %s AND id = ANY(%s)"
ADD_ACCESS = """
INSERT INTO access (store, id, count, at) SELECT %s, * FROM unnest(%s::text[], %s::bigint[], %s::bigint[])
ON CONFLICT (store, id) DO UPDATE SET count = access.count + excluded.count, at = greatest(access.at, excluded.at)
"""
ACCESS_WRITTEN = """
INSERT INTO counters (store, written) VALUES (%s, 1)
ON CONFLICT (store) DO UPDATE SET written = counters.written + 1
"""
DROP_ACCESS = "DELETE FROM access WHERE store = %s AND id = ANY(%s)"
COUNTED = "SELECT id FROM access WHERE store = %s"
PRESENT = "SELECT id FROM entries WHERE store = %s AND id = ANY(%s)"

# Scopes, partitions, models

SCOPE_ID = "SELECT id FROM scopes WHERE store = %s AND tier = %s AND anchor = %s"
_NEXT = "(SELECT 1 + coalesce(max(id), 0) FROM {0} AS o WHERE o.store = v.store)"
# Scopes and partitions are numbered by the head: a transaction that scope keys bind does not see all of them.
NEW_SCOPE = """
WITH v AS (
    UPDATE heads AS h SET scopes = h.scopes + 1
    FROM (SELECT %s::uuid AS store, %s::text AS tier, %s::text AS anchor, %s::jsonb AS keys) AS v
    WHERE h.store = v.store RETURNING h.store, h.scopes, v.tier, v.anchor, v.keys
) INSERT INTO scopes (store, id, tier, anchor, keys) SELECT * FROM v RETURNING id
"""
PARTITION_ID = "SELECT id FROM partitions WHERE store = %s AND scope_id = %s AND visibility = %s AND owner = %s"
NEW_PARTITION = """
WITH v AS (
    UPDATE heads AS h SET partitions = h.partitions + 1
    FROM (SELECT %s::uuid AS store, %s AS scope_id, %s::text AS visibility, %s::text AS owner, %s::jsonb AS keys) AS v
    WHERE h.store = v.store RETURNING h.store, h.partitions, v.scope_id, v.visibility, v.owner, v.keys
) INSERT INTO partitions (store, id, scope_id, visibility, owner, keys) SELECT * FROM v RETURNING id
"""
MODEL_ID = "SELECT id FROM models WHERE store = %s AND name = %s AND dimensions = %s AND digest = %s"
NEW_MODEL = f"""
INSERT INTO models (store, id, name, dimensions, digest)
SELECT v.store, {_NEXT.format("models")}, v.name, v.dimensions, v.digest
FROM (SELECT %s::uuid AS store, %s::text AS name, %s AS dimensions, %s::text AS digest) AS v RETURNING id
"""
PARTITIONS = """
SELECT p.id, p.size, p.total_terms,
    (SELECT count(*) FROM vector_indexes AS i WHERE i.store = p.store AND i.partition_id = p.id)
FROM (SELECT %s::uuid AS store) AS v
CROSS JOIN unnest(%s::text[], %s::text[]) WITH ORDINALITY AS asked (tier, anchor, place)
JOIN scopes AS s ON s.store = v.store AND s.tier = asked.tier AND s.anchor = asked.anchor
JOIN partitions AS p ON p.store = v.store AND p.scope_id = s.id AND p.visibility = ANY(%s)
"""
PARTITIONS_OF_OWNERS = (
    PARTITIONS.replace("SELECT %s::uuid AS store", "SELECT %s::uuid AS store, %s::text[] AS owners")
    + "WHERE p.owner = ANY(v.owners) ORDER BY asked.place, p.visibility, array_position(v.owners, p.owner)"
)
PARTITIONS_OF_ALL = PARTITIONS + "ORDER BY asked.place, p.visibility, p.owner"
GROW = """
UPDATE partitions AS p
SET size = p.size + v.size, total_terms = p.total_terms + v.terms, vectors = p.vectors + v.vectors
FROM (SELECT %s::uuid AS store, %s AS id, %s AS size, %s AS terms, %s AS vectors) AS v
WHERE p.store = v.store AND p.id = v.id
"""
SCOPES = """
SELECT p.id, s.tier, s.anchor FROM partitions AS p JOIN scopes AS s ON s.store = p.store AND s.id = p.scope_id
WHERE p.store = %s AND p.id = ANY(%s)
"""

# Entries

# An entry that rests on something has its links and sources in rows of their own; its other fields are never empty.
_REST = f"""
CASE WHEN e.marks & {RESTS} = 0 THEN e.rest ELSE left(e.rest, -1) || ',"links":' || coalesce((
    SELECT json_agg(json_build_array(l.document, l.version, l.locator, l.checked) ORDER BY l.place)::text
    FROM canonical_links AS l WHERE l.store = e.store AND l.entry = e.id
), '[]') || ',"derived_from":' || coalesce((
    SELECT json_agg(d.source ORDER BY d.place)::text FROM derivations AS d WHERE d.store = e.store AND d.entry = e.id
), '[]') || '}}' END AS rest"""
# The text as bytes, and its hash behind all: what reads an entry compares them.
_OTHERWISE = {"rest": _REST, "content": "convert_to(e.content, 'UTF8')", "tier": "s.tier", "anchor": "s.anchor"}
_OF_ENTRY = ", ".join([*(_OTHERWISE.get(name, f"e.{name}") for name in COLUMNS), "e.content_hash"])
_FROM_ENTRIES = "FROM entries AS e JOIN scopes AS s ON s.store = e.store AND s.id = e.scope_id WHERE e.store = %s "
_ENTRY = f"SELECT {_OF_ENTRY} {_FROM_ENTRIES}"
ENTRIES = _ENTRY + "AND e.rowid = ANY(%s)"
ENTRIES_IN_ORDER = ENTRIES + " ORDER BY e.created_at DESC, e.rowid DESC"
NUMBERED_ENTRIES = f"SELECT {_OF_ENTRY}, e.rowid {_FROM_ENTRIES} AND e.rowid = ANY(%s)"
TWIN = (
    _ENTRY
    + "AND s.tier = %s AND s.anchor = %s AND e.owner = %s AND e.content_key = %s AND e.state IN ('active', 'held')"
)
REPLACED_BY = _ENTRY + "AND e.superseded_by = %s ORDER BY e.created_at, e.rowid"
STORED = f"""
SELECT {_OF_ENTRY}, e.rowid, e.partition_id, e.terms, e.term_count, e.content_hash, e.content_version, e.salt
{_FROM_ENTRIES} AND e.id = %s
"""
_CARD = """
SELECT e.id, e.partition_id, e.kind, e.state, e.source, e.tags, e.category, e.conversation, e.importance,
    e.created_at, e.confirmed_at, e.valid_at, e.invalid_at, e.chars, e.marks, e.version, e.trust, e.rowid
"""
CARDS = _CARD + "FROM entries AS e WHERE e.store = %s AND e.id = ANY(%s)"
MATCHED = _CARD + ", e.terms, e.term_count FROM entries AS e WHERE e.store = %s AND e.rowid = ANY(%s)"
LENGTHS = "SELECT rowid, term_count FROM entries WHERE store = %s AND rowid = ANY(%s)"
TRUSTS = "SELECT rowid, trust FROM entries WHERE store = %s AND rowid = ANY(%s)"
TEXTS = "SELECT id, content FROM entries WHERE store = %s AND id = ANY(%s)"
STAMPS = "SELECT id, version, rowid FROM entries WHERE store = %s AND id = ANY(%s)"
TERMS_OF_ROWS = "SELECT rowid, terms FROM entries WHERE store = %s AND rowid = ANY(%s)"
PLACES_OF = "SELECT rowid, partition_id, term_count, terms FROM entries WHERE store = %s AND id = ANY(%s)"
TWIN_ID = """
SELECT id FROM entries
WHERE store = %s AND scope_id = %s AND owner = %s AND content_key = %s AND state IN ('active', 'held') AND id <> %s
"""
USED = """
SELECT e.id, 0 FROM (SELECT %s::uuid AS store, %s::text[] AS ids) AS v JOIN entries AS e
    ON e.store = v.store AND e.id = ANY(v.ids)
UNION ALL SELECT r.id, 1 FROM (SELECT %s::uuid AS store, %s::text[] AS ids) AS v JOIN retired AS r
    ON r.store = v.store AND r.id = ANY(v.ids)
"""
RETIRE = "INSERT INTO retired (store, id) SELECT %s, unnest(%s::text[])"
ENTRY_COLUMNS = """
rowid id partition_id scope_id owner state kind category source curator lifetime conversation importance created_at
updated_at confirmed_at valid_at invalid_at superseded_by version content_version term_count chars marks trust
merged_count tags terms content_hash content_key subject role salt content rest keys
""".split()
NEW_ENTRY = f"INSERT INTO entries (store, {', '.join(ENTRY_COLUMNS)}) VALUES (%s{', %s' * len(ENTRY_COLUMNS)})"
CHANGED_COLUMNS = [
    name for name in ENTRY_COLUMNS if name not in ("rowid", "id", "scope_id", "created_at", "salt", "keys")
]
_TYPED = {
    **dict.fromkeys(("importance",), "float8"),
    **dict.fromkeys(
        """scope_id partition_id updated_at confirmed_at valid_at invalid_at version content_version term_count chars
        marks trust merged_count subject role""".split(),
        "bigint",
    ),
}


def _update_entry(columns: Sequence[str]) -> str:
    """Return the statement that sets these columns of a row; its values are the row's number and theirs."""
    values = ", ".join(f"%s::{_TYPED.get(name, 'text')} AS {name}" for name in columns)
    return f"""
    UPDATE entries AS e SET {", ".join(f"{name} = v.{name}" for name in columns)}
    FROM (SELECT %s::uuid AS store, %s AS rowid, {values}) AS v WHERE e.store = v.store AND e.rowid = v.rowid
    """


REPLACE_ENTRY = _update_entry(CHANGED_COLUMNS)
DROP_ENTRIES = "DELETE FROM entries WHERE store = %s AND rowid = ANY(%s)"
NEW_VERSION = """
INSERT INTO versions (store, entry, version, action, cause, actor, at, snapshot, keys)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
VERSIONS = """
SELECT convert_to(v.snapshot, 'UTF8'), v.action, v.cause, v.actor, v.at, v.version, e.salt
FROM entries AS e JOIN versions AS v ON v.store = e.store AND v.entry = e.rowid
WHERE e.store = %s AND e.id = %s ORDER BY v.version
"""
ENTRY_IDS = """
SELECT e.id FROM entries AS e WHERE e.store = %s AND (starts_with(e.id, %s) OR right(e.id, length(%s)) = %s)
ORDER BY e.id LIMIT %s
"""
LINKED = """
SELECT e.id, l.action FROM entries AS e JOIN action_links AS l ON l.store = e.store AND l.entry = e.rowid
WHERE e.store = %s AND e.id = ANY(%s) ORDER BY l.place
"""
WITHDRAWN = """
SELECT d.entry, d.source FROM derivations AS d JOIN entries AS e ON e.store = d.store AND e.id = d.entry
LEFT JOIN entries AS s ON s.store = d.store AND s.id = d.source
WHERE d.store = %s AND e.state IN ('active', 'stale', 'held') AND (
    s.id IS NULL OR s.invalid_at IS NOT NULL
    OR s.state IN ('forgotten', 'superseded', 'archived', 'invalidated')
        AND s.superseded_by IS DISTINCT FROM d.entry
) ORDER BY d.place DESC LIMIT %s
"""
NEW_LINKS = """
INSERT INTO action_links (store, action, entry)
SELECT v.store, v.action, e.rowid FROM (SELECT %s::uuid AS store, %s::text AS action) AS v
CROSS JOIN unnest(%s::text[]) WITH ORDINALITY AS asked (id, place)
JOIN entries AS e ON e.store = v.store AND e.id = asked.id ORDER BY asked.place
ON CONFLICT (store, entry, action) DO NOTHING
"""
DROP_LINKS = """
DELETE FROM action_links AS l USING entries AS e
WHERE l.store = %s AND e.store = l.store AND e.rowid = l.entry AND e.id = ANY(%s) RETURNING l.action
"""
DROP_ACTIONS = """
DELETE FROM actions AS a WHERE a.store = %s AND a.id = ANY(%s)
AND NOT EXISTS (SELECT 1 FROM action_links AS l WHERE l.store = a.store AND l.action = a.id)
"""
SHARES = """
SELECT s.tier, e.state, e.kind, coalesce(e.category, ''), e.source, count(*)
    , count(*) FILTER (WHERE e.created_at >= v.since), sum(e.merged_count - 1)::bigint
FROM (SELECT %s::uuid AS store, %s AS since) AS v JOIN entries AS e ON e.store = v.store
JOIN scopes AS s ON s.store = e.store AND s.id = e.scope_id
GROUP BY s.tier, e.state, e.kind, e.category, e.source ORDER BY count(*) DESC, 1, 2, 3, 4, 5
"""
CENSUS = """
SELECT s.tier, s.anchor, e.state, count(*) FROM entries AS e JOIN scopes AS s ON s.store = e.store AND s.id = e.scope_id
WHERE e.store = %s GROUP BY s.id, s.tier, s.anchor, e.state ORDER BY s.id, e.state
"""
ARRIVALS = """
SELECT to_char(to_timestamp(e.created_at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, s.tier, count(*)
FROM entries AS e JOIN scopes AS s ON s.store = e.store AND s.id = e.scope_id
WHERE e.store = %s GROUP BY day, s.tier ORDER BY day, s.tier
"""
MARK = "SELECT created_at, rowid FROM entries WHERE store = %s AND id = %s"

# Conditions of filters, by name; only those that are asked are in a statement.
FILTERS = {
    "kinds": "e.kind = ANY(%s)",
    "categories": "e.category = ANY(%s)",
    "sources": "e.source = ANY(%s)",
    "curators": "e.curator = ANY(%s)",
    "states": "e.state = ANY(%s)",
    "lifetimes": "e.lifetime = ANY(%s)",
    "conversations": "e.conversation = ANY(%s)",
    "tags": "e.tags::jsonb @> to_jsonb(%s::text[])",
    "since": "e.created_at >= %s",
    "until": "e.created_at < %s",
    "min_importance": "e.importance >= %s",
    "min_trust": "e.trust >= %s",
    "filed": "(e.marks & 1) = %s",
}
NEWEST_OF_KIND = """
SELECT e.created_at, e.rowid FROM entries AS e
WHERE e.store = %s AND e.partition_id = %s AND e.kind = %s
AND e.created_at >= %s AND (e.created_at, e.rowid) < (%s, %s)
"""
NEWEST_FIRST = " ORDER BY e.created_at DESC, e.rowid DESC LIMIT %s"
ROWS_ADMITTED = "SELECT e.rowid FROM entries AS e WHERE e.store = %s AND e.rowid = ANY(%s)"
ADMITTED = "SELECT e.rowid FROM entries AS e WHERE e.store = %s AND e.partition_id = %s"

# Keywords

PENDING = "SELECT rowid, partition_id, terms FROM entries WHERE store = %s AND rowid > %s ORDER BY rowid"
PENDING_IN = """
SELECT rowid, terms FROM entries WHERE store = %s AND rowid > %s AND partition_id = %s ORDER BY rowid
"""
FREQUENCIES = """
SELECT word, sum(holders)::bigint FROM postings WHERE store = %s AND word = ANY(%s) GROUP BY word
"""
POSTINGS = "SELECT word, rows FROM postings WHERE store = %s AND word = ANY(%s) ORDER BY word, first"
NEWEST_BLOCKS = """
SELECT rows FROM (
    SELECT last, rows, sum(holders) OVER (ORDER BY last DESC, first DESC) - holders AS before
    FROM postings WHERE store = %s AND word = %s
) AS b WHERE before < %s ORDER BY last DESC
"""
# Add rows to the last block of each word, if it has space, and else a block behind it.
GROW_BLOCKS = """
WITH new AS (
    SELECT * FROM (SELECT %s::uuid AS store) AS v
    CROSS JOIN unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[])
        AS n (word, first, last, holders, rows)
), grown AS (
    UPDATE postings AS p SET rows = p.rows || new.rows, holders = p.holders + new.holders, last = new.last
    FROM new JOIN LATERAL (
        SELECT o.first FROM postings AS o WHERE o.store = new.store AND o.word = new.word ORDER BY o.first DESC LIMIT 1
    ) AS newest ON true
    WHERE p.store = new.store AND p.word = new.word AND p.first = newest.first AND p.last < new.first
        AND p.holders + new.holders <= %s
    RETURNING p.word
)
INSERT INTO postings (store, word, first, last, holders, rows)
SELECT new.store, new.word, new.first, new.last, new.holders, new.rows FROM new
WHERE NOT EXISTS (SELECT 1 FROM grown WHERE grown.word = new.word)
ON CONFLICT (store, word, first) DO UPDATE SET rows = postings.rows || excluded.rows,
    last = greatest(postings.last, excluded.last), holders = postings.holders + excluded.holders
"""
BLOCKS_WITH = """
SELECT asked.word, p.first, p.rows FROM (SELECT %s::uuid AS store, %s AS number) AS v
CROSS JOIN unnest(%s::text[]) AS asked (word) JOIN postings AS p
    ON p.store = v.store AND p.word = asked.word AND p.first <= v.number AND p.last >= v.number
"""
SET_BLOCK = """
UPDATE postings AS p SET holders = v.holders, rows = v.rows
FROM (SELECT %s::uuid AS store, %s::text AS word, %s AS first, %s AS holders, %s::bytea AS rows) AS v
WHERE p.store = v.store AND p.word = v.word AND p.first = v.first
"""
DROP_BLOCK = "DELETE FROM postings WHERE store = %s AND word = %s AND first = %s"
EMPTY_POSTINGS = "DELETE FROM postings WHERE store = %s"
ALL_POSTINGS = "SELECT word, first, last, holders, rows FROM postings WHERE store = %s ORDER BY word, first"

# Entries that a new text may repeat or update

SAME_TEXT = """
SELECT e.content_key, e.rowid FROM scopes AS s JOIN entries AS e ON e.store = s.store AND e.scope_id = s.id
WHERE s.store = %s AND s.tier = %s AND s.anchor = %s AND e.owner = %s AND e.content_key = ANY(%s)
    AND e.state IN ('active', 'held')
"""
_OF_WORDS = """
SELECT asked.key, near.rowid
FROM (SELECT %s::uuid AS store, %s AS partition_id, %s AS most) AS v CROSS JOIN unnest(%s::bigint[]) AS asked (key)
CROSS JOIN LATERAL (
    SELECT e.rowid FROM entries AS e
    WHERE e.store = v.store AND e.partition_id = v.partition_id AND e.{0} = asked.key ORDER BY e.rowid DESC LIMIT v.most
) AS near ORDER BY asked.key, near.rowid DESC
"""
OF_SUBJECT = _OF_WORDS.format("subject")
IN_ROLE = _OF_WORDS.format("role")
BESIDE = _CARD + "FROM entries AS e WHERE e.store = %s AND e.rowid = ANY(%s)"

# Vectors

PUT_VECTOR = """
INSERT INTO vectors (store, entry, model_id, partition_id, checksum, embedding) VALUES (%s, %s, %s, %s, %s, %b)
ON CONFLICT (store, entry, model_id) DO UPDATE SET partition_id = excluded.partition_id, checksum = excluded.checksum,
    embedding = excluded.embedding
"""
HAS_VECTOR = "SELECT 1 FROM vectors WHERE store = %s AND entry = %s AND model_id = %s"
DROP_VECTORS_OF = "DELETE FROM vectors WHERE store = %s AND entry = %s RETURNING partition_id"
MOVE_VECTORS = """
UPDATE vectors AS x SET partition_id = v.partition_id
FROM (SELECT %s::uuid AS store, %s AS entry, %s AS partition_id) AS v WHERE x.store = v.store AND x.entry = v.entry
"""
COUNT_VECTORS = """
SELECT partition_id, count(*) FROM vectors WHERE store = %s AND entry = ANY(%s) GROUP BY partition_id
"""
VECTORS = "SELECT entry, embedding FROM vectors WHERE store = %s AND entry = ANY(%s) AND model_id = %s"
_NEAREST = """
SELECT x.entry, x.embedding <=> v.asked AS distance FROM (SELECT %s::uuid AS store, %b::vector AS asked) AS v
JOIN vectors AS x ON x.store = v.store {join} WHERE x.partition_id = ANY(%s) AND x.model_id = %s
"""
NEAREST = _NEAREST.format(join="")
NEAREST_ADMITTED = _NEAREST.format(join="JOIN entries AS e ON e.store = x.store AND e.rowid = x.entry")
NEAREST_FIRST = " ORDER BY distance, x.entry DESC LIMIT %s"
NEAREST_OF = """
SELECT x.entry, x.embedding <=> v.asked AS distance FROM (SELECT %s::uuid AS store, %b::vector AS asked) AS v
JOIN vectors AS x ON x.store = v.store WHERE x.entry = ANY(%s) AND x.model_id = %s
ORDER BY distance, x.entry DESC LIMIT %s
"""


def nearest_by_index(store: str, partition: int, model: int, dimensions: int, limit: int, *, filtered: bool) -> str:
    """Return the statement that the index of one partition answers. All that is spliced in is a UUID and numbers.

    Without the limit, a plan would be made for a tenth of all rows.
    """
    where = f"x.store = '{UUID(store)}' AND x.partition_id = {int(partition)} AND x.model_id = {int(model)}"
    far = f"x.embedding::vector({int(dimensions)}) <=> v.asked::vector({int(dimensions)})"
    join = "JOIN entries AS e ON e.store = x.store AND e.rowid = x.entry" if filtered else ""
    return f"""
    SELECT x.entry, {far} AS distance FROM vectors AS x {join}
    CROSS JOIN (SELECT %s::uuid AS store, %b::vector AS asked) AS v
    WHERE {where} {{filters}} ORDER BY {far} LIMIT {int(limit)}
    """


COMMITTED = "UPDATE heads SET commits = commits + 1 WHERE store = %s"
VECTORS_IN = "SELECT entry, embedding FROM vectors WHERE store = %s AND partition_id = %s AND model_id = %s"
INDEXED_PARTITIONS = """
SELECT partition_id FROM vector_indexes WHERE store = %s AND partition_id = ANY(%s) AND model_id = %s AND ready <> 0
"""
UNINDEXED_PARTITIONS = """
SELECT p.id, m.id, m.dimensions FROM (SELECT %s::uuid AS store, %s AS large, %s AS most) AS v
JOIN partitions AS p ON p.store = v.store AND p.vectors >= v.large
JOIN models AS m ON m.store = v.store AND m.dimensions <= v.most
WHERE NOT EXISTS (
    SELECT 1 FROM vector_indexes AS i WHERE i.store = v.store AND i.partition_id = p.id AND i.model_id = m.id
) AND v.large <= (
    SELECT count(*) FROM vectors AS x WHERE x.store = v.store AND x.partition_id = p.id AND x.model_id = m.id
) ORDER BY p.id, m.id
"""
SMALL_INDEXED_PARTITIONS = """
SELECT i.partition_id, i.model_id FROM (SELECT %s::uuid AS store, %s AS small) AS v
JOIN vector_indexes AS i ON i.store = v.store
JOIN partitions AS p ON p.store = v.store AND p.id = i.partition_id WHERE p.vectors < v.small
"""
TRY_TO_BUILD = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
DONE_BUILDING = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"
NEW_VECTOR_INDEX = """
INSERT INTO vector_indexes (store, partition_id, model_id, dimensions, name, ready) VALUES (%s, %s, %s, %s, %s, 1)
ON CONFLICT (store, partition_id, model_id) DO NOTHING
"""
DROP_VECTOR_INDEX = "DELETE FROM vector_indexes WHERE store = %s AND partition_id = %s AND model_id = %s"


def vector_index(name: str, store: str, partition: int, model: int, dimensions: int) -> str:
    """Return the statement that makes the index of one partition; see `nearest_by_index`."""
    return f"""
    CREATE INDEX CONCURRENTLY "{name}" ON lukasa.vectors
    USING hnsw ((embedding::vector({int(dimensions)})) vector_cosine_ops)
    WHERE store = '{UUID(store)}' AND partition_id = {int(partition)} AND model_id = {int(model)}
    """


UNEMBEDDED = """
SELECT e.id, e.version, convert_to(e.content, 'UTF8'), e.content_hash FROM entries AS e
WHERE e.store = %s AND e.state IN ('active', 'stale', 'held')
    AND NOT EXISTS (SELECT 1 FROM vectors AS x WHERE x.store = e.store AND x.entry = e.rowid AND x.model_id = %s)
ORDER BY e.rowid LIMIT %s
"""

# Items

SPACE_ID = "SELECT id FROM item_spaces WHERE store = %s AND path = %s"
NEW_SPACE = f"""
INSERT INTO item_spaces (store, id, path) SELECT v.store, {_NEXT.format("item_spaces")}, v.path
FROM (SELECT %s::uuid AS store, %s::text AS path) AS v RETURNING id
"""
NEW_PREFIXES = "INSERT INTO item_prefixes (store, prefix, space) SELECT %s, unnest(%s::text[]), %s::bigint"
DROP_SPACE = """
DELETE FROM item_spaces AS s WHERE s.store = %s AND s.id = %s
AND NOT EXISTS (SELECT 1 FROM items AS i WHERE i.store = s.store AND i.space = s.id)
"""
SAVE_ITEM = """
INSERT INTO items (
    store, rowid, space, key, created_at, updated_at, expires_at, ttl, value_hash, salt, value, texts, indexer
) VALUES (%s, nextval('places'), %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (store, space, key) DO UPDATE SET updated_at = excluded.updated_at, expires_at = excluded.expires_at,
    ttl = excluded.ttl, value_hash = excluded.value_hash, value = excluded.value, texts = excluded.texts,
    indexer = excluded.indexer
RETURNING rowid
"""
ITEM_PLACE = """
SELECT i.rowid, i.space FROM item_spaces AS s JOIN items AS i ON i.store = s.store AND i.space = s.id
WHERE s.store = %s AND s.path = %s AND i.key = %s
"""
ITEM_MODELS = """
SELECT m.name, m.dimensions, m.digest FROM item_vectors AS x
JOIN models AS m ON m.store = x.store AND m.id = x.model_id WHERE x.store = %s AND x.item = %s
"""
UNEMBEDDED_ITEMS = """
SELECT s.path, i.key, convert_to(i.value, 'UTF8'), i.value_hash, i.texts
FROM items AS i JOIN item_spaces AS s ON s.store = i.store AND s.id = i.space
WHERE i.store = %s AND i.indexer = %s AND i.texts <> '[]'
    AND NOT EXISTS (SELECT 1 FROM item_vectors AS x WHERE x.store = i.store AND x.item = i.rowid AND x.model_id = %s)
ORDER BY i.rowid LIMIT %s
"""
DROP_ITEM = "DELETE FROM items WHERE store = %s AND rowid = %s"
NEW_ITEM_VECTOR = """
INSERT INTO item_vectors (store, item, space, model_id, field, checksum, embedding) VALUES (%s, %s, %s, %s, %s, %s, %b)
"""
DROP_ITEM_VECTORS = "DELETE FROM item_vectors WHERE store = %s AND item = %s"
_ITEM = """
SELECT i.rowid, s.path, i.key, convert_to(i.value, 'UTF8'), i.created_at, i.updated_at, i.expires_at, i.ttl, i.salt,
    i.value_hash {more}
FROM items AS i JOIN item_spaces AS s ON s.store = i.store AND s.id = i.space WHERE i.store = %s
"""
STORED_ITEM = _ITEM.format(more=", i.texts, i.indexer") + "AND s.path = %s AND i.key = %s"
ITEMS_BY_ROW = _ITEM.format(more="") + "AND i.rowid = ANY(%s)"
ITEM_ROWS = """
SELECT i.rowid FROM item_prefixes AS p JOIN items AS i ON i.store = p.store AND i.space = p.space
WHERE p.store = %s AND p.prefix = %s AND (%s::bigint IS NULL OR i.expires_at IS NULL OR i.expires_at > %s)
ORDER BY i.updated_at DESC, i.rowid DESC
"""
ITEM_SCORES = """
SELECT x.item, min(x.embedding <=> v.asked) FROM (SELECT %s::uuid AS store, %b::vector AS asked) AS v
JOIN item_prefixes AS p ON p.store = v.store JOIN item_vectors AS x ON x.store = p.store AND x.space = p.space
WHERE p.prefix = %s AND x.model_id = %s GROUP BY x.item
"""
SPACES = """
SELECT s.path FROM item_prefixes AS p JOIN item_spaces AS s ON s.store = p.store AND s.id = p.space
WHERE p.store = %s AND p.prefix = %s AND (%s::bigint IS NULL OR EXISTS (
    SELECT 1 FROM items AS i
    WHERE i.store = s.store AND i.space = s.id AND (i.expires_at IS NULL OR i.expires_at > %s)
))
"""
EXPIRED = """
SELECT s.path, i.key FROM items AS i JOIN item_spaces AS s ON s.store = i.store AND s.id = i.space
WHERE i.store = %s AND i.expires_at <= %s ORDER BY i.expires_at, i.rowid LIMIT %s
"""
TOUCH_ITEM = """
UPDATE items AS i SET expires_at = v.at + round(i.ttl * 60000000)::bigint
FROM (SELECT %s::uuid AS store, %s AS at, %s::text AS path, %s::text AS key) AS v
JOIN item_spaces AS s ON s.store = v.store AND s.path = v.path
WHERE i.store = v.store AND i.space = s.id AND i.key = v.key AND i.ttl IS NOT NULL
"""

# Texts that are found by their words


class TextIndex(NamedTuple):
    """The statements on a table of texts and its keyword index."""

    size: str
    lengths: str
    by_row: str
    all: str
    insert: str
    drop: str
    feed: str
    unfeed: str
    frequencies: str
    postings: str
    indexed: str
    empty: str


def text_index(table: TextTable[Any]) -> TextIndex:
    """Return the statements of a declared table, whose index has the name of its rows."""
    name, row, index, columns = table.name, table.row, f"{table.row}_postings", ", ".join(table.columns)
    return TextIndex(
        size=f"SELECT count(*) FROM {name} WHERE store = %s",
        lengths=f"SELECT rowid, length(text)::bigint FROM {name} WHERE store = %s AND rowid = ANY(%s)",
        by_row=f"SELECT rowid, {columns} FROM {name} WHERE store = %s AND rowid = ANY(%s)",
        all=f"SELECT rowid, {columns} FROM {name} WHERE store = %s ORDER BY rowid",
        insert=f"INSERT INTO {name} (store, {columns}, rowid) VALUES (%s{', %s' * (len(table.columns) + 1)})",
        drop=f"DELETE FROM {name} WHERE store = %s AND rowid = ANY(%s)",
        feed=f"INSERT INTO {index} (store, {row}, word, times) SELECT %s, *"
        " FROM unnest(%s::bigint[], %s::text[], %s::bigint[])",
        unfeed=f"DELETE FROM {index} AS p USING (SELECT %s::uuid AS store, w.* FROM"
        " unnest(%s::bigint[], %s::text[]) AS w (number, word)) AS v"
        f" WHERE p.store = v.store AND p.word = v.word AND p.{row} = v.number",
        frequencies=f"SELECT word, count(*) FROM {index} WHERE store = %s AND word = ANY(%s) GROUP BY word",
        postings=f"SELECT p.word, string_agg(int8send(p.{row}), '' ORDER BY p.{row}) FROM {index} AS p"
        " CROSS JOIN generate_series(1, p.times) WHERE p.store = %s AND p.word = ANY(%s) GROUP BY p.word",
        indexed=f"SELECT {row}, word, times FROM {index} WHERE store = %s ORDER BY {row}, word",
        empty=f"DELETE FROM {index} WHERE store = %s",
    )


NEW_NUMBERS = "SELECT nextval('places') FROM (SELECT %s::uuid AS store) AS v, generate_series(1, %s)"
ALL_UTTERANCES = """
SELECT rowid, transcript, id, text_hash, convert_to(text, 'UTF8') FROM utterances WHERE store = %s ORDER BY rowid
"""

# Passages

# Lists that are left empty are bound as NULL.
_OF_DOCUMENTS = """
SELECT p.rowid FROM (
    SELECT %s::uuid AS store, %s::text[] AS collections, %s::text[] AS documents, %s::jsonb AS tags
) AS v JOIN documents AS d ON d.store = v.store AND d.removed = 0
    AND (v.collections IS NULL OR d.collection = ANY(v.collections))
    AND (v.documents IS NULL OR d.id = ANY(v.documents))
JOIN passages AS p ON p.store = d.store AND p.document = d.id AND (v.tags IS NULL OR p.tags::jsonb @> v.tags)
"""
PASSAGES_ADMITTED = _OF_DOCUMENTS + "WHERE p.rowid = ANY(%s)"
_NEAREST_PASSAGES = """
SELECT x.passage, x.embedding <=> v.asked AS far
FROM (SELECT %s::uuid AS store, %b::vector AS asked, %s AS model) AS v
JOIN passage_vectors AS x ON x.store = v.store AND x.model_id = v.model
"""
NEAREST_PASSAGES = _NEAREST_PASSAGES + "ORDER BY far, x.passage DESC LIMIT %s"
NEAREST_OF_PASSAGES = _NEAREST_PASSAGES + f"WHERE x.passage IN ({_OF_DOCUMENTS}) ORDER BY far, x.passage DESC LIMIT %s"
PASSAGE_PLACE = "SELECT rowid, text_hash FROM passages WHERE store = %s AND document = %s AND number = %s"
SET_PASSAGE_VECTOR = """
INSERT INTO passage_vectors (store, passage, model_id, checksum, embedding) VALUES (%s, %s, %s, %s, %b)
ON CONFLICT (store, passage, model_id) DO UPDATE SET checksum = excluded.checksum, embedding = excluded.embedding
"""
UNEMBEDDED_PASSAGES = """
SELECT p.rowid FROM passages AS p WHERE p.store = %s AND NOT EXISTS (
    SELECT 1 FROM passage_vectors AS x WHERE x.store = p.store AND x.passage = p.rowid AND x.model_id = %s
) ORDER BY p.rowid LIMIT %s
"""
ALL_PASSAGES = """
SELECT p.document, p.number, p.version, p.text_hash, convert_to(p.text, 'UTF8'), d.version, d.removed
FROM passages AS p LEFT JOIN documents AS d ON d.store = p.store AND d.id = p.document
WHERE p.store = %s ORDER BY p.document, p.number
"""
ALL_PASSAGE_VECTORS = """
SELECT x.place, p.document, x.embedding, x.checksum, m.dimensions, p.text_hash, true
FROM passage_vectors AS x LEFT JOIN models AS m ON m.store = x.store AND m.id = x.model_id
LEFT JOIN passages AS p ON p.store = x.store AND p.rowid = x.passage WHERE x.store = %s ORDER BY x.place
"""
DROP_PASSAGE_VECTOR = "DELETE FROM passage_vectors WHERE store = %s AND place = %s"

# Telemetry

PRUNE_POINTS = """
DELETE FROM points AS p USING (
    SELECT o.store, o.place FROM points AS o WHERE o.store = %s AND o.level = 'debug'
    ORDER BY o.place DESC LIMIT 1 OFFSET %s
) AS last WHERE p.store = last.store AND p.level = 'debug' AND p.place <= last.place
"""
_POINTS = """
FROM points AS p WHERE p.store = %(store)s
AND (%(since)s::bigint IS NULL OR p.at >= %(since)s::bigint) AND (%(until)s::bigint IS NULL OR p.at < %(until)s::bigint)
AND (%(component)s::text IS NULL OR p.component = %(component)s::text)
AND (%(action)s::text IS NULL OR p.action = %(action)s::text)
AND (%(level)s::text IS NULL OR p.level = %(level)s::text)
AND (%(success)s::bigint IS NULL OR p.success = %(success)s::bigint)
"""
POINTS = (
    f"SELECT {', '.join([f'p.{name}' for name in TELEMETRY.columns])}"
    + _POINTS
    + "ORDER BY p.at DESC, p.place DESC LIMIT %(limit)s"
)
TALLY = (
    "SELECT p.component, p.action, count(*), count(*) FILTER (WHERE p.success = 0), avg(p.duration_ms),"
    " max(p.duration_ms)" + _POINTS + "GROUP BY p.component, p.action ORDER BY p.component, p.action"
)
_DAY = "to_char(to_timestamp(p.at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
TALLY_DAYS = (
    f"SELECT {_DAY} AS day, count(*), count(*) FILTER (WHERE p.success = 0)" + _POINTS + "GROUP BY day ORDER BY day"
)
TALLY_SUMS = (
    "SELECT p.component, p.action, m.key, sum((m.value::text)::float8)"
    + _POINTS.replace("FROM points AS p", "FROM points AS p CROSS JOIN json_each(p.metadata::json) AS m")
    + "AND json_typeof(m.value) = 'number' GROUP BY p.component, p.action, m.key ORDER BY m.key"
)
# Canonical JSON has no space of its own: what has one may hold words.
MAYBE_WORDY = "SELECT place, metadata FROM points WHERE store = %s AND strpos(metadata, ' ') > 0"
EMPTY_POINTS = "UPDATE points SET metadata = '{}' WHERE store = %s AND place = ANY(%s)"

# Scrubbing

SCOPES_OF_CONVERSATION = """
SELECT s.id FROM scopes AS s WHERE s.store = %s AND EXISTS (
    SELECT 1 FROM json_array_elements(s.anchor::json) AS key WHERE key ->> 0 = 'conversation' AND key ->> 1 = %s
)
"""
ENTRIES_WITHIN = """
SELECT id, version FROM entries
WHERE store = %s AND (scope_id = ANY(%s) OR (lifetime = 'conversation' AND conversation = %s)) ORDER BY rowid
"""
TRACES = """
WITH asked AS (
    SELECT e.store, e.rowid AS entry FROM (SELECT %s::uuid AS store, %s::text[] AS ids) AS v
    JOIN entries AS e ON e.store = v.store AND e.id = ANY(v.ids)
)
SELECT (SELECT count(*) FROM versions AS o JOIN asked AS a ON o.store = a.store AND o.entry = a.entry),
    (SELECT count(*) FROM vectors AS o JOIN asked AS a ON o.store = a.store AND o.entry = a.entry),
    (SELECT count(DISTINCT o.entry) FROM action_links AS o JOIN asked AS a ON o.store = a.store AND o.entry = a.entry)
"""
NEW_REDACTION = "INSERT INTO redactions (store, first, last, scrub) VALUES (%s, %s, %s, %s)"
REDACT = "UPDATE events SET subject = '', detail = '{}' WHERE store = %s AND seq BETWEEN %s AND %s"
FILES_UNSWEPT = "SELECT place FROM unswept WHERE store = %s AND conversation = ''"
FILES_PURGED = "DELETE FROM unswept WHERE store = %s AND conversation = '' AND place <= %s"
# Tables that held words of what was scrubbed.
# A scrub or an erasure takes words out of any table but these: they hold numbers, ids and what an operator named.
NEVER_SCRUBBED = frozenset(
    """accounts migrations heads counters access grants models spending watches workspaces vector_indexes unswept
    redactions retired partitions""".split()
)
MAY_REWRITE = f"""
SELECT bool_and(pg_has_role(relowner, 'USAGE')), sum(pg_total_relation_size(oid)) FROM pg_class
WHERE relnamespace = 'lukasa'::regnamespace AND relkind = 'r'
AND relname NOT IN ({", ".join(f"'{table}'" for table in sorted(NEVER_SCRUBBED))})
"""
EVERY_TABLE = """
SELECT relname::text FROM pg_class WHERE relnamespace = 'lukasa'::regnamespace AND relkind = 'r' ORDER BY relname
"""
# Without a table that never had a row: it and its indexes have no page but the first.
FILLED_TABLES = """
SELECT relname::text FROM pg_class AS c WHERE relnamespace = 'lukasa'::regnamespace AND relkind = 'r' AND (
    pg_relation_size(c.oid) > 0
    OR pg_indexes_size(c.oid) > 8192 * (SELECT count(*) FROM pg_index WHERE indrelid = c.oid)
)
ORDER BY relname
"""
# These hold no texts of a store, only numbers and ids.
WORDLESS = frozenset({"accounts", "vectors", "passage_vectors", "item_vectors", "migrations", "heads"})
LOCK_REWRITING = "SELECT pg_advisory_lock(hashtextextended('lukasa rewrites its tables', 0))"
UNLOCK_REWRITING = "SELECT pg_advisory_unlock(hashtextextended('lukasa rewrites its tables', 0))"
ALL_UNSWEPT = "SELECT store, place FROM lukasa.unswept WHERE conversation = ''"
SWEPT = "DELETE FROM lukasa.unswept WHERE store = %s AND conversation = '' AND place <= %s"

# Log

IN_THE_LOG = "SELECT EXISTS (SELECT 1 FROM events WHERE store = %s AND seq = %s AND digest = %s)"
EVENTS_ABOUT = "SELECT action, subject, detail FROM events WHERE store = %s AND subject = ANY(%s)"

# Checking and rebuilding

ALL_ENTRIES = f"""
SELECT {_OF_ENTRY},
    e.rowid, e.partition_id, e.chars, e.marks, e.term_count, e.terms, e.content_hash, e.content_key, e.subject,
    e.role, e.salt, p.scope_id = e.scope_id AND p.owner = e.owner, p.visibility
FROM entries AS e LEFT JOIN scopes AS s ON s.store = e.store AND s.id = e.scope_id
LEFT JOIN partitions AS p ON p.store = e.store AND p.id = e.partition_id WHERE e.store = %s ORDER BY e.rowid
"""
VERSIONS_OF_ROWS = """
SELECT entry, version, convert_to(snapshot, 'UTF8') FROM versions WHERE store = %s AND entry = ANY(%s)
ORDER BY entry, version
"""
# Entries that the log vouches for, and that are neither there nor removed by an operation.
LOST_ENTRIES = """
SELECT DISTINCT v.subject FROM events AS v
WHERE v.store = %s AND left(v.action, 6) = 'entry.' AND strpos(v.detail, '"commitment":') > 0
    AND NOT EXISTS (SELECT 1 FROM entries AS e WHERE e.store = v.store AND e.id = v.subject)
    AND NOT EXISTS (SELECT 1 FROM retired AS r WHERE r.store = v.store AND r.id = v.subject)
"""
ITEM_EVENTS = """
SELECT action, subject, detail FROM events
WHERE store = %s AND action IN ('item.saved', 'item.dropped') ORDER BY seq
"""
PARTITION_COUNTS = """
SELECT p.id, p.size, p.total_terms, p.vectors,
    (SELECT count(*) FROM entries AS e WHERE e.store = p.store AND e.partition_id = p.id),
    (SELECT coalesce(sum(term_count), 0)::bigint FROM entries AS e WHERE e.store = p.store AND e.partition_id = p.id),
    (SELECT count(*) FROM vectors AS x WHERE x.store = p.store AND x.partition_id = p.id)
FROM partitions AS p WHERE p.store = %s
"""
RECOUNT = """
UPDATE partitions AS p SET
    size = (SELECT count(*) FROM entries AS e WHERE e.store = p.store AND e.partition_id = p.id),
    total_terms = (
        SELECT coalesce(sum(term_count), 0) FROM entries AS e WHERE e.store = p.store AND e.partition_id = p.id
    ),
    vectors = (SELECT count(*) FROM vectors AS x WHERE x.store = p.store AND x.partition_id = p.id)
WHERE p.store = %s
"""
ALL_VECTORS = """
SELECT x.entry, e.id, x.embedding, x.checksum, m.dimensions, e.content_hash, x.partition_id = e.partition_id, x.model_id
FROM vectors AS x LEFT JOIN models AS m ON m.store = x.store AND m.id = x.model_id
LEFT JOIN entries AS e ON e.store = x.store AND e.rowid = x.entry WHERE x.store = %s ORDER BY x.entry, x.model_id
"""
DROP_VECTOR = "DELETE FROM vectors WHERE store = %s AND entry = %s AND model_id = %s"
ALL_ITEMS = """
SELECT s.path, i.key, convert_to(i.value, 'UTF8'), i.value_hash, i.salt
FROM items AS i LEFT JOIN item_spaces AS s ON s.store = i.store AND s.id = i.space WHERE i.store = %s ORDER BY i.rowid
"""
ALL_SPACES = """
SELECT s.id, s.path, coalesce((
    SELECT json_agg(p.prefix)::text FROM item_prefixes AS p WHERE p.store = s.store AND p.space = s.id
), '[]') FROM item_spaces AS s WHERE s.store = %s ORDER BY s.id
"""
ALL_ITEM_VECTORS = """
SELECT x.place, i.key, x.embedding, x.checksum, m.dimensions, i.value_hash, x.space = i.space
FROM item_vectors AS x LEFT JOIN models AS m ON m.store = x.store AND m.id = x.model_id
LEFT JOIN items AS i ON i.store = x.store AND i.rowid = x.item WHERE x.store = %s ORDER BY x.place
"""
DROP_ITEM_VECTOR = "DELETE FROM item_vectors WHERE store = %s AND place = %s"
EMPTY_PREFIXES = "DELETE FROM item_prefixes WHERE store = %s"
REINDEX_ENTRY = _update_entry("partition_id terms term_count content_key subject role chars marks".split())
# What follows from the entry; its partition is put right with the index.
MENDED_COLUMNS = ["scope_id", *(name for name in CHANGED_COLUMNS if name not in ("partition_id", "content_version"))]
MEND_ENTRY = _update_entry(MENDED_COLUMNS)
LAST_ROW = "SELECT max(rowid) FROM entries WHERE store = %s"
WORDS_OF_ROWS = """
SELECT rowid, partition_id, terms FROM entries WHERE store = %s AND rowid BETWEEN %s AND %s ORDER BY rowid
"""
IDS_OF_ROWS = "SELECT rowid, id FROM entries WHERE store = %s AND rowid = ANY(%s)"
# For each foreign key of the schema, the statement that counts what points at nothing.
REFERENCES = """
SELECT child.relname, parent.relname, format(
    'SELECT count(*) FROM lukasa.%%I AS c WHERE c.store = %%%%s'
        ' AND NOT EXISTS (SELECT 1 FROM lukasa.%%I AS p WHERE %%s)',
    child.relname, parent.relname, (
        SELECT string_agg(format('p.%%I = c.%%I', there.attname, here.attname), ' AND ')
        FROM unnest(k.conkey, k.confkey) AS n (here, there)
        JOIN pg_attribute AS here ON here.attrelid = k.conrelid AND here.attnum = n.here
        JOIN pg_attribute AS there ON there.attrelid = k.confrelid AND there.attnum = n.there
    )
) FROM pg_constraint AS k JOIN pg_class AS child ON child.oid = k.conrelid
JOIN pg_class AS parent ON parent.oid = k.confrelid
WHERE %s::uuid IS NOT NULL AND k.contype = 'f' AND k.connamespace = 'lukasa'::regnamespace ORDER BY 1, 2
"""
SCOPE_KEYS = "SELECT id, tier, anchor, keys FROM scopes WHERE store = %s ORDER BY id"
BIND_SCOPE = """
UPDATE scopes AS s SET keys = v.keys FROM (SELECT %s::uuid AS store, %s AS id, %s::jsonb AS keys) AS v
WHERE s.store = v.store AND s.id = v.id
"""
# Rows that are bound to other keys than their scope. A version is never changed, not even in its keys.
KEYS_ASTRAY = """
WITH s AS (SELECT * FROM scopes WHERE store = %s)
SELECT 'partition', p.id::text, true FROM s JOIN partitions AS p ON p.store = s.store AND p.scope_id = s.id
WHERE p.keys <> s.keys
UNION ALL SELECT 'partition', e.id, true FROM s JOIN entries AS e ON e.store = s.store AND e.scope_id = s.id
WHERE e.keys <> s.keys
UNION ALL SELECT 'versions', e.id, false FROM s JOIN entries AS e ON e.store = s.store AND e.scope_id = s.id
JOIN versions AS o ON o.store = e.store AND o.entry = e.rowid WHERE o.keys <> s.keys AND o.keys <> e.keys
"""
BIND_AGAIN = (
    """
    UPDATE partitions AS p SET keys = s.keys FROM scopes AS s
    WHERE s.store = %s AND p.store = s.store AND p.scope_id = s.id AND p.keys <> s.keys
    """,
    """
    UPDATE entries AS e SET keys = s.keys FROM scopes AS s
    WHERE s.store = %s AND e.store = s.store AND e.scope_id = s.id AND e.keys <> s.keys
    """,
)
# Columns that filters compare, against the fields of the entry that they repeat.
_ASTRAY = """
CASE WHEN e.rest IS JSON OBJECT THEN (e.trust::text, e.merged_count::text)
    IS DISTINCT FROM (e.rest::jsonb ->> 'trust', e.rest::jsonb ->> 'merged_count') ELSE false END
"""
COLUMNS_ASTRAY = f"SELECT e.id FROM entries AS e WHERE e.store = %s AND {_ASTRAY} ORDER BY e.rowid"
SET_COLUMNS = f"""
UPDATE entries AS e
SET trust = (e.rest::jsonb ->> 'trust')::bigint, merged_count = (e.rest::jsonb ->> 'merged_count')::bigint
WHERE e.store = %s AND {_ASTRAY}
"""
# Indexes that searches ask for, and that the database does not have, or has not finished.
LOST_VECTOR_INDEXES = """
SELECT v.partition_id, v.model_id, v.name FROM vector_indexes AS v
WHERE v.store = %s AND v.ready <> 0 AND NOT EXISTS (
    SELECT 1 FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
    WHERE c.relname = v.name AND i.indrelid = 'lukasa.vectors'::regclass AND i.indisvalid AND i.indisready
) ORDER BY v.partition_id, v.model_id
"""
