"""Every statement the store runs, as constant text. Values are bound, lists as JSON; nothing is ever spliced in."""

from __future__ import annotations

from typing import Any, NamedTuple

from lukasa.storage.codec import TextTable
from lukasa.storage.entry_codec import COLUMNS, RESTS
from lukasa.storage.tables import TELEMETRY

# Files and connections

SET_MAIN = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA journal_size_limit = 16777216",
    "PRAGMA cache_size = -16384",
    "PRAGMA temp_store = MEMORY",
)
SET_ACCESS = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA journal_size_limit = 4194304",
)
# A file that is not in place yet needs no safety of its own: it is synced whole before it is renamed.
SET_BUILD = ("PRAGMA synchronous = OFF", "PRAGMA journal_mode = MEMORY")
USE_WAL = "PRAGMA journal_mode = WAL"
APPLICATION_ID = "PRAGMA application_id"
USER_VERSION = "PRAGMA user_version"
PAGE_COUNT = "PRAGMA page_count"
PAGE_SIZE = "PRAGMA page_size"
BEGIN_WRITE = "BEGIN IMMEDIATE"
BEGIN_READ = "BEGIN"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
CHECKPOINT = "PRAGMA wal_checkpoint(TRUNCATE)"
WRITE_BACK = "PRAGMA wal_checkpoint(PASSIVE)"
APPLIED = "SELECT number, checksum FROM migrations ORDER BY number"
MIGRATED = "INSERT INTO migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)"
NEW_META = "INSERT INTO meta (one, role, secret, tokenizer, created_at) VALUES (1, ?, ?, ?, ?)"
ROLE = "SELECT role FROM meta"
LOOK = "SELECT 1 FROM meta"
META = "SELECT secret, tokenizer, EXISTS (SELECT 1 FROM unswept WHERE conversation = '') FROM meta"
SET_TOKENIZER = "UPDATE meta SET tokenizer = ?, rebuilt = rebuilt + 1"
# How far a snapshot has come, and what happened since.
LOG_POSITION = "SELECT (SELECT seq FROM head), (SELECT coalesce(max(rowid), 0) FROM entries), rebuilt FROM meta"
ROWS_SINCE = "SELECT id, rowid, partition_id, terms FROM entries WHERE rowid > ?"
# Subjects of all events but those that are about no entry, by their action and by the entries that exist.
SUBJECTS_SINCE = """
SELECT subject FROM events WHERE seq > ? AND (
    substr(action, 1, instr(action, '.') - 1) NOT IN (
        'note', 'channel', 'conversation', 'transcript', 'item', 'document', 'named', 'grant', 'amendment', 'watch'
    ) OR EXISTS (SELECT 1 FROM entries AS e WHERE e.id = events.subject)
)
"""
RECORDS_CHANGED_SINCE = """
SELECT EXISTS (
    SELECT 1 FROM events WHERE seq > ? AND substr(action, 1, instr(action, '.') - 1) IN ('named', 'scrub')
)
"""

ACCESS_SCHEMA = """
PRAGMA application_id = 1298035041;
PRAGMA user_version = 1;
CREATE TABLE access (id TEXT PRIMARY KEY, count INTEGER NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""

# Read statistics

DATA_VERSION = "PRAGMA data_version"
COUNT = """
INSERT INTO access (id, count, at) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?) WHERE true
ON CONFLICT (id) DO UPDATE SET count = count + excluded.count, at = max(at, excluded.at)
"""
ACCESS = "SELECT a.id, a.count, a.at FROM json_each(?) AS asked CROSS JOIN access AS a ON a.id = asked.value"
COUNTED = "SELECT id FROM access"
DROP_ACCESS = "DELETE FROM access WHERE id IN (SELECT value FROM json_each(?))"
PRESENT = "SELECT id FROM entries WHERE id IN (SELECT value FROM json_each(?))"

# Scopes and partitions

SCOPE_ID = "SELECT id FROM scopes WHERE tier = ? AND anchor = ?"
NEW_SCOPE = "INSERT INTO scopes (tier, anchor) VALUES (?, ?) RETURNING id"
PARTITION_ID = "SELECT id FROM partitions WHERE scope_id = ? AND visibility = ? AND owner = ?"
NEW_PARTITION = "INSERT INTO partitions (scope_id, visibility, owner) VALUES (?, ?, ?) RETURNING id"
_PARTITION = """
SELECT p.id, p.size, p.total_terms, p.removals
FROM scopes AS s JOIN partitions AS p ON p.scope_id = s.id
WHERE s.tier = ? AND s.anchor = ? AND p.visibility = ?
"""
PARTITION = _PARTITION + "AND p.owner = ?"
PARTITIONS_OF_ALL_OWNERS = _PARTITION
RESIZE = "UPDATE partitions SET size = size + ?, total_terms = total_terms + ? WHERE id = ?"
GROWN = "UPDATE partitions SET size = size + ?, total_terms = total_terms + ?, vectors = vectors + ? WHERE id = ?"
VECTORS_ADDED = "UPDATE partitions SET vectors = vectors + ? WHERE id = ?"
VECTORS_REMOVED = "UPDATE partitions SET vectors = vectors - ?, removals = removals + 1 WHERE id = ?"

# Entries

# An entry that rests on something has its links and sources in rows of their own.
_REST = f"""
CASE WHEN e.marks & {RESTS} THEN json_set(
    e.rest,
    '$.links', json((
        SELECT json_group_array(json_array(l.document, l.version, l.locator, l.checked) ORDER BY l.place)
        FROM canonical_links AS l WHERE l.entry = e.id
    )),
    '$.derived_from', json((
        SELECT json_group_array(d.source ORDER BY d.place) FROM derivations AS d WHERE d.entry = e.id
    ))
) ELSE e.rest END AS rest"""
# The text as bytes, and its hash behind all: what reads an entry compares them, whatever the bytes are.
_OTHERWISE = {"rest": _REST, "content": "CAST(e.content AS BLOB)", "tier": "s.tier", "anchor": "s.anchor"}
_OF_ENTRY = ", ".join([*(_OTHERWISE.get(name, f"e.{name}") for name in COLUMNS), "e.content_hash"])
_FROM_ENTRIES = "FROM entries AS e JOIN scopes AS s ON s.id = e.scope_id "
_ENTRY = f"SELECT {_OF_ENTRY} {_FROM_ENTRIES}"
_CARD = """
SELECT e.id, e.partition_id, e.kind, e.state, e.source, e.tags, e.category, e.conversation, e.importance,
    e.created_at, e.confirmed_at, e.valid_at, e.invalid_at, e.chars, e.marks, e.version,
    e.rest ->> '$.trust', e.rowid
"""
CARDS = _CARD + "FROM entries AS e WHERE e.id IN (SELECT value FROM json_each(:ids))"
# Lists are walked along where every read asks for them: with IN, SQLite would put each in order first.
MATCHED = (
    _CARD
    + """
    , e.terms, e.term_count FROM json_each(?) AS asked CROSS JOIN entries AS e ON e.rowid = asked.value
"""
)
LENGTHS = """
SELECT e.rowid, e.term_count FROM json_each(?) AS asked CROSS JOIN entries AS e ON e.rowid = asked.value
"""
TRUSTS = """
SELECT e.rowid, e.rest ->> '$.trust' FROM json_each(?) AS asked CROSS JOIN entries AS e ON e.rowid = asked.value
"""
TEXTS = "SELECT id, CAST(content AS BLOB) FROM entries WHERE id IN (SELECT value FROM json_each(?))"
SCOPES = "SELECT p.id, s.tier, s.anchor FROM partitions AS p JOIN scopes AS s ON s.id = p.scope_id"
STAMPS = "SELECT id, version, rowid FROM entries WHERE id IN (SELECT value FROM json_each(?))"
ENTRIES = _ENTRY + "WHERE e.rowid IN (SELECT value FROM json_each(?))"
ENTRIES_IN_ORDER = ENTRIES + " ORDER BY e.created_at DESC, e.rowid DESC"
TWIN = (
    _ENTRY + "WHERE s.tier = ? AND s.anchor = ? AND e.owner = ? AND e.content_key = ? AND e.state IN ('active', 'held')"
)
REPLACED_BY = _ENTRY + "WHERE e.superseded_by = ? ORDER BY e.created_at, e.rowid"
STORED = f"""
SELECT {_OF_ENTRY}, e.rowid, e.partition_id, e.terms, e.term_count, e.content_hash, e.content_version, e.salt
{_FROM_ENTRIES} WHERE e.id = ?
"""
PLACES_OF = """
SELECT e.rowid, e.partition_id, e.term_count FROM json_each(?) AS asked CROSS JOIN entries AS e ON e.id = asked.value
"""
TWIN_ID = """
SELECT id FROM entries
WHERE scope_id = ? AND owner = ? AND content_key = ? AND state IN ('active', 'held') AND id <> ?
"""
# No number is given twice: the next one is above all that are there or ever were.
LAST_ROW_EVER = "SELECT max(entries, coalesce((SELECT max(rowid) FROM entries), 0)), fed FROM head"
# An id that was used before: by an entry that is there, or by one that is not any more.
USED = "SELECT id, 0 FROM entries WHERE id = ?1 UNION ALL SELECT id, 1 FROM retired WHERE id = ?1"
# A beginning is a range of the index on ids; an end is found by going through that index.
ENTRY_IDS = """
SELECT id FROM entries WHERE id >= ?1 AND id < ?1 || 'g'
UNION SELECT id FROM entries WHERE substr(id, -length(?1)) = ?1 ORDER BY id LIMIT ?2
"""
LAST_ROW = "SELECT coalesce(max(rowid), 0) FROM entries"
RETIRE = "INSERT INTO retired (id) VALUES (?)"
ENTRY_COLUMNS = """
rowid id partition_id scope_id owner state kind category source curator lifetime conversation importance created_at
updated_at confirmed_at valid_at invalid_at superseded_by version content_version term_count chars marks tags terms
content_hash content_key subject role salt content rest
""".split()
# Values by place: to look up each of so many by its name takes longer than to insert them.
NEW_ENTRY = f"INSERT INTO entries ({', '.join(ENTRY_COLUMNS)}) VALUES ({', '.join('?' * len(ENTRY_COLUMNS))})"
CHANGED_COLUMNS = [name for name in ENTRY_COLUMNS if name not in ("rowid", "id", "scope_id", "created_at", "salt")]
REPLACE_ENTRY = f"UPDATE entries SET {' = ?, '.join(CHANGED_COLUMNS)} = ? WHERE rowid = ?"
DROP_ENTRIES = "DELETE FROM entries WHERE rowid IN (SELECT value FROM json_each(?))"
NEW_VERSION = "INSERT INTO versions (entry, version, action, cause, actor, at, snapshot) VALUES (?, ?, ?, ?, ?, ?, ?)"
VERSIONS = """
SELECT CAST(v.snapshot AS BLOB), v.action, v.cause, v.actor, v.at, v.version, e.salt
FROM entries AS e JOIN versions AS v ON v.entry = e.rowid WHERE e.id = ? ORDER BY v.version
"""
LINKED = """
SELECT e.id, l.action FROM entries AS e JOIN action_links AS l ON l.entry = e.rowid
WHERE e.id IN (SELECT value FROM json_each(?)) ORDER BY l.place
"""
WITHDRAWN = """
SELECT d.entry, d.source FROM derivations AS d JOIN entries AS e ON e.id = d.entry
LEFT JOIN entries AS s ON s.id = d.source
WHERE e.state IN ('active', 'stale', 'held') AND (
    s.id IS NULL OR s.invalid_at IS NOT NULL
    OR s.state IN ('forgotten', 'superseded', 'archived', 'invalidated') AND s.superseded_by IS NOT d.entry
) ORDER BY d.place DESC LIMIT ?
"""
NEW_LINK = """
INSERT INTO action_links (action, entry) SELECT ?, rowid FROM entries WHERE id = ?
ON CONFLICT (entry, action) DO NOTHING
"""
DROP_LINKS = """
DELETE FROM action_links WHERE entry IN (
    SELECT e.rowid FROM json_each(?) AS asked CROSS JOIN entries AS e ON e.id = asked.value
) RETURNING action
"""
DROP_ACTIONS = """
DELETE FROM actions WHERE id IN (SELECT value FROM json_each(?))
AND NOT EXISTS (SELECT 1 FROM action_links AS l WHERE l.action = actions.id)
"""
SHARES = """
SELECT s.tier, e.state, e.kind, coalesce(e.category, ''), e.source, count(*), sum(e.created_at >= ?)
    , sum(coalesce(e.rest ->> '$.merged_count', 1) - 1)
FROM entries AS e JOIN scopes AS s ON s.id = e.scope_id
GROUP BY s.tier, e.state, e.kind, e.category, e.source ORDER BY count(*) DESC, 1, 2, 3, 4, 5
"""
CENSUS = """
SELECT s.tier, s.anchor, e.state, count(*) FROM entries AS e JOIN scopes AS s ON s.id = e.scope_id
GROUP BY s.id, e.state ORDER BY s.id
"""
# By way of partitions, so that an index has all that is asked of entries.
ARRIVALS = """
SELECT date(e.created_at / 1000000, 'unixepoch') AS day, s.tier, count(*)
FROM entries AS e JOIN partitions AS p ON p.id = e.partition_id JOIN scopes AS s ON s.id = p.scope_id
GROUP BY day, s.tier ORDER BY day, s.tier
"""
MARK = "SELECT created_at, rowid FROM entries WHERE id = ?"

# A filter left empty is bound as NULL. The lists are uncorrelated, so SQLite reads each of them once.
_FILTERS = """
AND (:kinds IS NULL OR e.kind IN (SELECT value FROM json_each(:kinds)))
AND (:categories IS NULL OR e.category IN (SELECT value FROM json_each(:categories)))
AND (:sources IS NULL OR e.source IN (SELECT value FROM json_each(:sources)))
AND (:curators IS NULL OR e.curator IN (SELECT value FROM json_each(:curators)))
AND (:states IS NULL OR e.state IN (SELECT value FROM json_each(:states)))
AND (:lifetimes IS NULL OR e.lifetime IN (SELECT value FROM json_each(:lifetimes)))
AND (:conversations IS NULL OR e.conversation IN (SELECT value FROM json_each(:conversations)))
AND (:min_importance IS NULL OR e.importance >= :min_importance)
AND (:filed IS NULL OR (e.marks & 1) = :filed)
AND (:min_trust IS NULL OR e.rest ->> '$.trust' >= :min_trust)
AND (:since IS NULL OR e.created_at >= :since)
AND (:until IS NULL OR e.created_at < :until)
AND (:tags IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_each(:tags) AS asked WHERE asked.value NOT IN (SELECT value FROM json_each(e.tags))
))
"""
# Of one kind, for rules that always apply are few among all that is remembered. Within bounds of the index, whatever
# filters say: what was recorded at another time is not even looked at.
NEWEST_OF_KIND = (
    """
SELECT e.created_at, e.rowid FROM entries AS e INDEXED BY entries_of_kind
WHERE e.partition_id = :partition AND e.kind = :kind
AND e.created_at >= :after AND (e.created_at, e.rowid) < (:before, :before_row)
"""
    + _FILTERS
    + "ORDER BY e.created_at DESC, e.rowid DESC LIMIT :limit"
)
CARDS_ADMITTED = CARDS + _FILTERS
ADMITTED = "SELECT e.rowid FROM entries AS e WHERE e.partition_id = :partition" + _FILTERS

# Keywords

INDEX_ROW = "INSERT INTO fts (rowid, terms) VALUES (?, ?)"
TIDY_INDEX = "INSERT INTO fts (fts) VALUES ('optimize')"
UNINDEX_ROW = "DELETE FROM fts WHERE rowid = ?"
PENDING = "SELECT rowid, partition_id, terms FROM entries WHERE rowid > (SELECT fed FROM head) ORDER BY rowid"
LAST_INDEXED = "SELECT fed FROM head"
SET_LAST_INDEXED = "UPDATE head SET fed = ? WHERE one = 1"
FREQUENCIES = """
SELECT f.term, f.doc FROM json_each(?) AS asked CROSS JOIN fts_frequencies AS f ON f.term = asked.value
"""
# All of them, also of a word that is not there.
POSTINGS = """
SELECT asked.value, (SELECT json_group_array(i.doc) FROM fts_instances AS i WHERE i.term = asked.value)
FROM json_each(?) AS asked
"""
NEWEST_POSTINGS = """
SELECT json_group_array(rowid) FROM (SELECT rowid FROM fts WHERE fts MATCH ? ORDER BY rowid DESC LIMIT ?)
"""
MATCHES_FILTERED = (
    "SELECT f.rowid FROM fts AS f JOIN entries AS e ON e.rowid = f.rowid WHERE f.fts MATCH :match"
    + _FILTERS
    + "ORDER BY f.rank, f.rowid DESC LIMIT :limit"
)

ROWS_ADMITTED = (
    "SELECT e.rowid FROM entries AS e WHERE e.rowid IN (SELECT value FROM json_each(:rows))"
    + _FILTERS
    + "ORDER BY e.rowid DESC"
)

# Entries that a new text may repeat or update

SAME_TEXT = """
SELECT e.content_key, e.rowid FROM scopes AS s CROSS JOIN entries AS e ON e.scope_id = s.id
WHERE s.tier = ? AND s.anchor = ? AND e.owner = ? AND e.content_key = ? AND e.state IN ('active', 'held')
"""
NEWEST_ROWS_OF = "SELECT rowid FROM fts WHERE fts MATCH ? ORDER BY rowid DESC LIMIT ?"
PENDING_IN = """
SELECT rowid, terms FROM entries NOT INDEXED WHERE rowid > (SELECT fed FROM head) AND partition_id = ? ORDER BY rowid
"""
TERMS_OF_ROW = "SELECT rowid, terms FROM entries WHERE rowid = ?"
OF_SUBJECT = "SELECT subject, rowid FROM entries WHERE partition_id = ? AND subject = ? ORDER BY rowid DESC LIMIT ?"
IN_ROLE = "SELECT role, rowid FROM entries WHERE partition_id = ? AND role = ? ORDER BY rowid DESC LIMIT ?"
NUMBERED_ENTRIES = f"SELECT {_OF_ENTRY}, e.rowid {_FROM_ENTRIES} WHERE e.rowid IN (SELECT value FROM json_each(?))"

# Neighbours, to be put in the order of writing by whoever asks: SQLite would sort whole rows. CROSS and NOT INDEXED
# keep the planner from starting at the wrong end and from walking through a whole room by its index.
BESIDE = (
    _CARD.replace("e.", "n.")
    + """
    , e.id FROM json_each(:numbers) AS asked CROSS JOIN entries AS e ON e.rowid = asked.value
CROSS JOIN entries AS n NOT INDEXED ON n.rowid BETWEEN e.rowid - :rows AND e.rowid + :rows
WHERE n.partition_id = e.partition_id AND n.conversation IS e.conversation
"""
)

# Vectors

MODEL_ID = "SELECT id FROM models WHERE name = ? AND dimensions = ? AND digest = ?"
NEW_MODEL = "INSERT INTO models (name, dimensions, digest) VALUES (?, ?, ?) RETURNING id"
NEW_VECTOR = """
INSERT INTO vectors (seq, entry, model_id, partition_id, checksum, vector) VALUES (
    1 + (SELECT max(vectors, coalesce((SELECT max(seq) FROM vectors), 0)) FROM head), ?, ?, ?, ?, ?
)
"""
TAKE_VECTORS = "DELETE FROM vectors WHERE entry = ? RETURNING seq, model_id, partition_id, checksum, vector"
TAKE_VECTOR = "DELETE FROM vectors WHERE entry = ? AND model_id = ? RETURNING seq, partition_id"
LAST_VECTOR = "SELECT coalesce(max(seq), 0) FROM vectors WHERE partition_id = ? AND model_id = ?"
VECTOR_SEQS = "SELECT seq FROM vectors WHERE partition_id = ? AND model_id = ? ORDER BY seq"
VECTORS_SINCE = """
SELECT seq, entry, vector FROM vectors WHERE partition_id = ? AND model_id = ? AND seq > ? ORDER BY seq LIMIT ?
"""
VECTORS_BY_SEQ = """
SELECT seq, entry, vector FROM vectors
WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq
"""
VECTORS = "SELECT entry, vector FROM vectors WHERE entry IN (SELECT value FROM json_each(?)) AND model_id = ?"
LOOSE = """
SELECT p.last, (SELECT count(*) FROM vectors WHERE partition_id = :partition AND model_id = :model AND seq > p.last)
FROM (SELECT coalesce(max(last), 0) AS last FROM packs WHERE partition_id = :partition AND model_id = :model) AS p
"""
VECTORS_UP_TO = """
SELECT seq, entry, vector FROM vectors WHERE partition_id = ? AND model_id = ? AND seq > ? AND seq <= ? ORDER BY seq
"""
NEW_PACK = """
INSERT INTO packs (partition_id, model_id, last, seqs, entries, scales, codes) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
PACKS = """
SELECT last, seqs, entries, scales, codes FROM packs
WHERE partition_id = ? AND model_id = ? AND last > ? ORDER BY last LIMIT ?
"""
PACK_HEADS = "SELECT id, last, seqs, entries, scales FROM packs WHERE partition_id = ? AND model_id = ? ORDER BY last"
PACK_OF = """
SELECT id, seqs, entries, scales, codes FROM packs
WHERE partition_id = ? AND model_id = ? AND last >= ? ORDER BY last LIMIT 1
"""
LAST_PACK = """
SELECT id, length(seqs) / 8 FROM packs WHERE partition_id = ? AND model_id = ? ORDER BY last DESC LIMIT 1
"""
PACK = "SELECT seqs, entries, scales, codes FROM packs WHERE id = ?"
GROWN_PACK = "UPDATE packs SET last = ?, seqs = ?, entries = ?, scales = ?, codes = ? WHERE id = ?"
SET_PACK = "UPDATE packs SET seqs = ?, entries = ?, scales = ?, codes = ? WHERE id = ?"
DROP_PACK = "DELETE FROM packs WHERE id = ?"
DROP_PACKS = "DELETE FROM packs"
PLACES = "SELECT DISTINCT partition_id, model_id FROM vectors"
PACKED_PLACES = "SELECT DISTINCT partition_id, model_id FROM packs"
UNEMBEDDED = """
SELECT e.id, e.version, CAST(e.content AS BLOB), e.content_hash FROM entries AS e
WHERE e.state IN ('active', 'stale', 'held')
    AND NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.entry = e.rowid AND v.model_id = ?)
ORDER BY e.rowid LIMIT ?
"""


# Items

SPACE_ID = "SELECT id FROM item_spaces WHERE path = ?"
NEW_SPACE = "INSERT INTO item_spaces (path) VALUES (?) RETURNING id"
DROP_SPACE = "DELETE FROM item_spaces WHERE id = :space AND NOT EXISTS (SELECT 1 FROM items WHERE space = :space)"
NEW_PREFIXES = "INSERT INTO item_prefixes (prefix, space) SELECT value, ?2 FROM json_each(?1)"
SAVE_ITEM = """
INSERT INTO items (space, key, created_at, updated_at, expires_at, ttl, value_hash, salt, value, texts, indexer)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (space, key) DO UPDATE SET updated_at = excluded.updated_at, expires_at = excluded.expires_at,
    ttl = excluded.ttl, value_hash = excluded.value_hash, value = excluded.value, texts = excluded.texts,
    indexer = excluded.indexer
RETURNING rowid
"""
ITEM_PLACE = """
SELECT i.rowid, i.space FROM item_spaces AS s JOIN items AS i ON i.space = s.id
WHERE s.path = ? AND i.key = ?
"""
ITEM_MODELS = """
SELECT m.name, m.dimensions, m.digest FROM item_vectors AS v JOIN models AS m ON m.id = v.model_id WHERE v.item = ?
"""
UNEMBEDDED_ITEMS = """
SELECT s.path, i.key, CAST(i.value AS BLOB), i.value_hash, i.texts
FROM items AS i JOIN item_spaces AS s ON s.id = i.space
WHERE i.indexer = ? AND i.texts != '[]'
    AND NOT EXISTS (SELECT 1 FROM item_vectors AS v WHERE v.item = i.rowid AND v.model_id = ?)
ORDER BY i.rowid LIMIT ?
"""
DROP_ITEM = "DELETE FROM items WHERE rowid = ?"
NEW_ITEM_VECTOR = "INSERT INTO item_vectors (item, space, model_id, field, checksum, vector) VALUES (?, ?, ?, ?, ?, ?)"
TAKE_ITEM_VECTORS = "DELETE FROM item_vectors WHERE item = ? RETURNING seq"
ITEM_VECTORS_REMOVED = "UPDATE item_spaces SET removals = removals + 1 WHERE id = ?"
LAST_ITEM_VECTOR = "SELECT coalesce(max(seq), 0) FROM item_vectors WHERE space = ? AND model_id = ?"
ITEM_VECTOR_SEQS = "SELECT seq FROM item_vectors WHERE space = ? AND model_id = ? ORDER BY seq"
ITEM_VECTORS_SINCE = """
SELECT seq, item, vector FROM item_vectors WHERE space = ? AND model_id = ? AND seq > ? ORDER BY seq LIMIT ?
"""
ITEM_VECTORS_BY_SEQ = """
SELECT seq, item, vector FROM item_vectors WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq
"""
_ITEM = """
SELECT i.rowid, s.path, i.key, CAST(i.value AS BLOB), i.created_at, i.updated_at, i.expires_at, i.ttl, i.salt,
    i.value_hash
FROM items AS i JOIN item_spaces AS s ON s.id = i.space
"""
STORED_ITEM = (
    _ITEM.replace("    i.value_hash\n", "    i.value_hash, i.texts, i.indexer\n") + "WHERE s.path = ? AND i.key = ?"
)
ITEMS_BY_ROW = _ITEM + "WHERE i.rowid IN (SELECT value FROM json_each(?))"
ITEM_ROWS = """
SELECT i.rowid FROM item_prefixes AS p JOIN items AS i ON i.space = p.space
WHERE p.prefix = :prefix AND (:alive_at IS NULL OR i.expires_at IS NULL OR i.expires_at > :alive_at)
ORDER BY i.updated_at DESC, i.rowid DESC
"""
SPACES_BELOW = """
SELECT s.id, s.removals FROM item_prefixes AS p JOIN item_spaces AS s ON s.id = p.space WHERE p.prefix = ?
"""
SPACES = """
SELECT s.path FROM item_prefixes AS p JOIN item_spaces AS s ON s.id = p.space
WHERE p.prefix = :prefix AND (:alive_at IS NULL OR EXISTS (
    SELECT 1 FROM items AS i WHERE i.space = s.id AND (i.expires_at IS NULL OR i.expires_at > :alive_at)
))
"""
EXPIRED = """
SELECT s.path, i.key FROM items AS i JOIN item_spaces AS s ON s.id = i.space
WHERE i.expires_at <= ? ORDER BY i.expires_at LIMIT ?
"""
TOUCH_ITEM = """
UPDATE items SET expires_at = :at + CAST(round(ttl * 60000000) AS INTEGER)
WHERE ttl IS NOT NULL AND key = :key AND space = (SELECT id FROM item_spaces WHERE path = :path)
"""

# Texts that are found by their words


class TextIndex(NamedTuple):
    """The statements on a table of texts and its keyword index."""

    size: str
    lengths: str
    by_row: str
    all: str
    drop: str
    feed: str
    unfeed: str
    frequencies: str
    postings: str
    indexed: str
    empty: str
    optimise: str


def text_index(table: TextTable[Any]) -> TextIndex:
    """Return the statements of a declared table, whose index has the name of its rows."""
    name, index, columns = table.name, f"{table.row}_fts", ", ".join(table.columns)
    among = "rowid IN (SELECT value FROM json_each(?))"
    return TextIndex(
        size=f"SELECT count(*) FROM {name}",
        lengths=f"SELECT rowid, length(text) FROM {name} WHERE {among}",
        by_row=f"SELECT rowid, {columns} FROM {name} WHERE {among}",
        all=f"SELECT rowid, {columns} FROM {name} ORDER BY rowid",
        drop=f"DELETE FROM {name} WHERE {among}",
        feed=f"INSERT INTO {index} (rowid, terms) VALUES (?, ?)",
        unfeed=f"DELETE FROM {index} WHERE rowid = ?",
        frequencies=f"SELECT f.term, f.doc FROM json_each(?) AS asked"
        f" CROSS JOIN {index}_frequencies AS f ON f.term = asked.value",
        postings=f"SELECT asked.value, (SELECT json_group_array(i.doc) FROM {index}_instances AS i"
        " WHERE i.term = asked.value) FROM json_each(?) AS asked",
        indexed=f"SELECT id, sz FROM {index}_docsize ORDER BY id",
        empty=f"INSERT INTO {index} ({index}) VALUES ('delete-all')",
        optimise=f"INSERT INTO {index} ({index}) VALUES ('optimize')",
    )


ALL_UTTERANCES = "SELECT rowid, transcript, id, text_hash, CAST(text AS BLOB) FROM utterances ORDER BY rowid"

# Passages

# A filter left empty is bound as NULL.
_OF_DOCUMENTS = """
IN (
    SELECT d.id FROM documents AS d WHERE d.removed = 0
    AND (:collections IS NULL OR d.collection IN (SELECT value FROM json_each(:collections)))
    AND (:documents IS NULL OR d.id IN (SELECT value FROM json_each(:documents)))
) AND (:tags IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_each(:tags) AS asked WHERE asked.value NOT IN (SELECT value FROM json_each(p.tags))
))
"""
# With the plus, SQLite looks at these rows and not at all passages of the documents.
PASSAGES_ADMITTED = f"""
SELECT p.rowid FROM passages AS p WHERE p.rowid IN (SELECT value FROM json_each(:rows)) AND +p.document {_OF_DOCUMENTS}
"""
ADMITTED_PASSAGES = f"SELECT p.rowid FROM passages AS p WHERE p.document {_OF_DOCUMENTS}"
PASSAGE_PLACE = "SELECT rowid, text_hash FROM passages WHERE document = ? AND number = ?"
NEW_PASSAGE_VECTOR = "INSERT INTO passage_vectors (passage, model_id, checksum, vector) VALUES (?, ?, ?, ?)"
TAKE_PASSAGE_VECTORS = "DELETE FROM passage_vectors WHERE passage IN (SELECT value FROM json_each(?)) RETURNING seq"
TAKE_PASSAGE_VECTOR = "DELETE FROM passage_vectors WHERE passage = ? AND model_id = ? RETURNING seq"
PASSAGE_VECTORS_REMOVED = "UPDATE head SET passages_removed = passages_removed + 1"
PASSAGE_REMOVALS = "SELECT passages_removed FROM head"
PASSAGE_VECTOR_COUNT = "SELECT count(*) FROM passage_vectors WHERE model_id = ?"
# All passages are one partition, of the number 0.
_OF_PASSAGES = "FROM passage_vectors WHERE ?1 = 0 AND model_id = ?2"
LAST_PASSAGE_VECTOR = f"SELECT coalesce(max(seq), 0) {_OF_PASSAGES}"
PASSAGE_VECTOR_SEQS = f"SELECT seq {_OF_PASSAGES} ORDER BY seq"
PASSAGE_VECTORS_SINCE = f"SELECT seq, passage, vector {_OF_PASSAGES} AND seq > ?3 ORDER BY seq LIMIT ?4"
PASSAGE_VECTORS_BY_SEQ = """
SELECT seq, passage, vector FROM passage_vectors WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq
"""
UNEMBEDDED_PASSAGES = """
SELECT p.rowid FROM passages AS p
WHERE NOT EXISTS (SELECT 1 FROM passage_vectors AS v WHERE v.passage = p.rowid AND v.model_id = ?)
ORDER BY p.rowid LIMIT ?
"""
ALL_PASSAGES = """
SELECT p.document, p.number, p.version, p.text_hash, CAST(p.text AS BLOB), d.version, d.removed
FROM passages AS p LEFT JOIN documents AS d ON d.id = p.document ORDER BY p.document, p.number
"""
ALL_PASSAGE_VECTORS = """
SELECT v.seq, p.document, v.vector, v.checksum, m.dimensions, p.text_hash, 1
FROM passage_vectors AS v LEFT JOIN models AS m ON m.id = v.model_id LEFT JOIN passages AS p ON p.rowid = v.passage
ORDER BY v.seq
"""
DROP_PASSAGE_VECTOR = "DELETE FROM passage_vectors WHERE seq = ?"

# Telemetry

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
    f"SELECT {', '.join([f'p.{name}' for name in TELEMETRY.columns])}"
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
_WORDY = "EXISTS (SELECT 1 FROM json_tree(points.metadata) AS t WHERE t.type = 'text' AND instr(t.value, ' '))"
COUNT_WORDY = f"SELECT count(*) FROM points WHERE {_WORDY}"
EMPTY_WORDY = f"UPDATE points SET metadata = '{{}}' WHERE {_WORDY}"

# Scrubbing

SCOPES_OF_CONVERSATION = """
SELECT s.id FROM scopes AS s WHERE EXISTS (
    SELECT 1 FROM json_each(s.anchor) AS key WHERE key.value ->> 0 = 'conversation' AND key.value ->> 1 = ?
)
"""
ENTRIES_WITHIN = """
SELECT id, version FROM entries WHERE scope_id IN (SELECT value FROM json_each(:scopes))
OR (lifetime = 'conversation' AND conversation = :conversation)
ORDER BY rowid
"""
TRACES = """
WITH asked AS (SELECT e.rowid AS entry FROM json_each(?) AS a CROSS JOIN entries AS e ON e.id = a.value)
SELECT (SELECT count(*) FROM versions WHERE entry IN asked), (SELECT count(*) FROM vectors WHERE entry IN asked),
    (SELECT count(DISTINCT entry) FROM action_links WHERE entry IN asked)
"""
DROP_VECTORS = """
DELETE FROM vectors WHERE entry IN (SELECT value FROM json_each(?)) RETURNING partition_id, model_id, seq
"""
NEW_REDACTION = "INSERT INTO redactions (first, last, scrub) VALUES (?, ?, ?)"
REDACT = "UPDATE events SET subject = '', detail = '{}' WHERE seq BETWEEN ? AND ?"
FILES_PURGED = "DELETE FROM unswept WHERE conversation = ''"
TEMPORARY_FILES = "PRAGMA temp_store = FILE"
TEMPORARY_MEMORY = "PRAGMA temp_store = MEMORY"
VACUUM = "VACUUM"

# Log

EVENTS_ABOUT = """
SELECT e.action, e.subject, e.detail FROM json_each(?) AS asked CROSS JOIN events AS e ON e.subject = asked.value
"""
HEAD = "SELECT seq, digest FROM head"
DIGEST_OF = "SELECT digest FROM events WHERE seq = ?"
SET_HEAD = "UPDATE head SET seq = ?, digest = ?"

# Checking and rebuilding

INTEGRITY = "PRAGMA integrity_check"
FOREIGN_KEYS = "PRAGMA foreign_key_check"
ALL_ENTRIES = f"""
SELECT {_OF_ENTRY},
    e.rowid, e.partition_id, e.chars, e.marks, e.term_count, e.terms, e.content_hash, e.content_key, e.subject,
    e.role, e.salt,
    p.scope_id = e.scope_id AND p.owner = e.owner, p.visibility
FROM entries AS e LEFT JOIN scopes AS s ON s.id = e.scope_id LEFT JOIN partitions AS p ON p.id = e.partition_id
ORDER BY e.rowid
"""
VERSIONS_OF_ROWS = """
SELECT entry, version, CAST(snapshot AS BLOB) FROM versions WHERE entry IN (SELECT value FROM json_each(?))
ORDER BY entry, version
"""
# Entries that the log vouches for, and that are neither there nor removed by an operation.
LOST_ENTRIES = """
SELECT DISTINCT v.subject FROM events AS v
WHERE substr(v.action, 1, 6) = 'entry.' AND instr(v.detail, '"commitment":') > 0
    AND NOT EXISTS (SELECT 1 FROM entries AS e WHERE e.id = v.subject)
    AND NOT EXISTS (SELECT 1 FROM retired AS r WHERE r.id = v.subject)
"""
ITEM_EVENTS = """
SELECT action, subject, detail FROM events WHERE action IN ('item.saved', 'item.dropped') ORDER BY seq
"""
INDEXED = "SELECT doc, term, count(*) FROM fts_instances GROUP BY doc, term ORDER BY doc"
INDEX_LENGTHS = "SELECT id, sz FROM fts_docsize"
INDEX_TOTALS = "SELECT block FROM fts_data WHERE id = 1"
PARTITION_COUNTS = """
SELECT p.id, p.size, p.total_terms, p.vectors,
    (SELECT count(*) FROM entries AS e WHERE e.partition_id = p.id),
    (SELECT coalesce(sum(term_count), 0) FROM entries AS e WHERE e.partition_id = p.id),
    (SELECT count(*) FROM vectors AS v WHERE v.partition_id = p.id)
FROM partitions AS p
"""
RECOUNT = """
UPDATE partitions SET removals = removals + 1,
    size = (SELECT count(*) FROM entries AS e WHERE e.partition_id = partitions.id),
    total_terms = (SELECT coalesce(sum(term_count), 0) FROM entries AS e WHERE e.partition_id = partitions.id),
    vectors = (SELECT count(*) FROM vectors AS v WHERE v.partition_id = partitions.id)
"""
ALL_VECTORS = """
SELECT v.seq, e.id, v.vector, v.checksum, m.dimensions, e.content_hash, v.partition_id = e.partition_id
FROM vectors AS v LEFT JOIN models AS m ON m.id = v.model_id LEFT JOIN entries AS e ON e.rowid = v.entry
ORDER BY v.seq
"""
DROP_VECTOR = "DELETE FROM vectors WHERE seq = ?"
ALL_ITEMS = """
SELECT s.path, i.key, CAST(i.value AS BLOB), i.value_hash, i.salt
FROM items AS i LEFT JOIN item_spaces AS s ON s.id = i.space ORDER BY i.rowid
"""
ALL_SPACES = """
SELECT s.id, s.path, (SELECT json_group_array(p.prefix) FROM item_prefixes AS p WHERE p.space = s.id)
FROM item_spaces AS s ORDER BY s.id
"""
ALL_ITEM_VECTORS = """
SELECT v.seq, i.key, v.vector, v.checksum, m.dimensions, i.value_hash, v.space = i.space
FROM item_vectors AS v LEFT JOIN models AS m ON m.id = v.model_id LEFT JOIN items AS i ON i.rowid = v.item
ORDER BY v.seq
"""
DROP_ITEM_VECTOR = "DELETE FROM item_vectors WHERE seq = ?"
ITEM_VECTORS_REMOVED_SOMEWHERE = "UPDATE item_spaces SET removals = removals + 1"
EMPTY_PREFIXES = "DELETE FROM item_prefixes"
REINDEX_ENTRY = """
UPDATE entries SET partition_id = ?2, terms = ?3, term_count = ?4, content_key = ?5, subject = ?6, role = ?7,
    chars = ?8, marks = ?9
WHERE rowid = ?1
"""
# What follows from the entry alone; its place is put right with the index.
MENDED_COLUMNS = [name for name in CHANGED_COLUMNS if name not in ("partition_id", "content_version")]
MEND_ENTRY = f"""
UPDATE entries SET {", ".join(f"{name} = ?{number}" for number, name in enumerate(MENDED_COLUMNS, 2))} WHERE rowid = ?1
"""
EMPTY_INDEX = "INSERT INTO fts (fts) VALUES ('delete-all')"

# DROP TABLE of a virtual table needs its shadow tables to be there; a vandalised index may lack any of them.
REMAKE_INDEX = (
    "DROP TABLE IF EXISTS fts_data",
    "DROP TABLE IF EXISTS fts_idx",
    "DROP TABLE IF EXISTS fts_docsize",
    "DROP TABLE IF EXISTS fts_config",
    "CREATE TABLE fts_data (id INTEGER PRIMARY KEY, block BLOB)",
    "CREATE TABLE fts_idx (segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID",
    "CREATE TABLE fts_docsize (id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER)",
    "CREATE TABLE fts_config (k PRIMARY KEY, v) WITHOUT ROWID",
    "INSERT INTO fts_config VALUES ('version', 4)",
    "DROP TABLE fts",
    "CREATE VIRTUAL TABLE fts USING fts5 (terms, content='', contentless_delete=1, tokenize='ascii')",
)

# Moving

ORIGIN = "SELECT secret, tokenizer, created_at FROM meta"
SET_ORIGIN = "UPDATE meta SET secret = ?, tokenizer = ?, created_at = ?"
SET_LAST_ENTRY = "UPDATE head SET entries = max(entries, ?)"
EMPTY_ACCESS = "DELETE FROM access"
TAKE_NAMED_PASSAGE_VECTOR = """
INSERT INTO passage_vectors (passage, model_id, checksum, vector)
SELECT p.rowid, ?3, ?4, ?5 FROM passages AS p WHERE p.document = ?1 AND p.number = ?2
"""
NEW_NAMED_ITEM_VECTOR = """
INSERT INTO item_vectors (item, space, model_id, field, checksum, vector)
SELECT i.rowid, i.space, ?3, ?4, ?5, ?6 FROM items AS i WHERE i.space = ?1 AND i.key = ?2
"""
