-- Truth is in entries, versions, named, documents, channels, conversations, notes, actions, workspaces, items,
-- transcripts, utterances, amendments, jobs, job_steps, points, spending, grants, answers, events and redactions.
-- Derived, and rebuilt from truth: fts, partitions' counts, entries' terms, vectors, packs, item_prefixes, utterance_fts.

PRAGMA application_id = 1298035053;
PRAGMA user_version = 1;

CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at TEXT NOT NULL
) STRICT;

CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    role TEXT NOT NULL CHECK (role IN ('account', 'workspace')),
    secret BLOB NOT NULL,
    tokenizer INTEGER NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE scopes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tier TEXT NOT NULL,
    anchor TEXT NOT NULL,
    UNIQUE (tier, anchor)
) STRICT;

-- The room of an entry: scope, visibility, owner. Keyword terms carry its id and vectors are loaded by it,
-- so that a search can only ever touch the rooms it was given.
CREATE TABLE partitions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    visibility TEXT NOT NULL,
    owner TEXT NOT NULL,
    size INTEGER NOT NULL DEFAULT 0,
    total_terms INTEGER NOT NULL DEFAULT 0,
    vectors INTEGER NOT NULL DEFAULT 0,
    removals INTEGER NOT NULL DEFAULT 0,
    UNIQUE (scope_id, visibility, owner)
) STRICT;

-- Narrow columns first: a filter then need not read past the text.
CREATE TABLE entries (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    kind TEXT NOT NULL,
    category TEXT,
    source TEXT NOT NULL,
    curator TEXT NOT NULL,
    lifetime TEXT NOT NULL,
    conversation TEXT,
    importance REAL NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    confirmed_at INTEGER NOT NULL,
    valid_at INTEGER,
    invalid_at INTEGER,
    superseded_by TEXT,
    version INTEGER NOT NULL,
    content_version INTEGER NOT NULL,
    term_count INTEGER NOT NULL,
    chars INTEGER NOT NULL, -- of the text; 0 if it is blank
    marks INTEGER NOT NULL, -- 1: a file, 2: exempt from fading
    tags TEXT NOT NULL,
    terms TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    content_key TEXT NOT NULL,
    subject INTEGER, -- hashes of what it is about and of the role it gives: by these, what contradicts it is found
    role INTEGER,
    salt BLOB NOT NULL,
    content TEXT NOT NULL,
    rest TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX entries_twin ON entries (scope_id, owner, content_key) WHERE state IN ('active', 'held');
CREATE INDEX entries_subject ON entries (partition_id, subject) WHERE subject IS NOT NULL;
CREATE INDEX entries_role ON entries (partition_id, role) WHERE role IS NOT NULL;
CREATE INDEX entries_newest ON entries (partition_id, created_at, rowid);
CREATE INDEX entries_of_kind ON entries (partition_id, kind, created_at, rowid);
CREATE INDEX entries_replaced ON entries (superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE retired (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE TABLE versions (
    entry INTEGER NOT NULL REFERENCES entries (rowid) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    action TEXT NOT NULL,
    cause TEXT NOT NULL,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    PRIMARY KEY (entry, version)
) STRICT;

CREATE TRIGGER versions_fixed BEFORE UPDATE ON versions
BEGIN SELECT RAISE(ABORT, 'versions are never rewritten'); END;

CREATE TABLE models (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    digest TEXT NOT NULL,
    UNIQUE (name, dimensions, digest)
) STRICT;

-- A vector row is never changed, only removed and added: its seq stands for exactly these bytes of this entry.
CREATE TABLE vectors (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    entry INTEGER NOT NULL REFERENCES entries (rowid) ON DELETE CASCADE,
    model_id INTEGER NOT NULL REFERENCES models (id),
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    checksum TEXT NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (entry, model_id)
) STRICT;

CREATE INDEX vectors_by_partition ON vectors (partition_id, model_id, seq);

-- Many vectors of a place in one row, a byte for each number: up to the `last` of them, all that are there now.
CREATE TABLE packs (
    id INTEGER PRIMARY KEY,
    partition_id INTEGER NOT NULL REFERENCES partitions (id),
    model_id INTEGER NOT NULL REFERENCES models (id),
    last INTEGER NOT NULL, -- the seq of its last vector when it was made
    seqs BLOB NOT NULL,
    entries BLOB NOT NULL,
    scales BLOB NOT NULL,
    codes BLOB NOT NULL,
    UNIQUE (partition_id, model_id, last)
) STRICT;

CREATE VIRTUAL TABLE fts USING fts5 (terms, content='', contentless_delete=1, tokenize='ascii');
CREATE VIRTUAL TABLE fts_frequencies USING fts5vocab (fts, 'row');
CREATE VIRTUAL TABLE fts_instances USING fts5vocab (fts, 'instance');

CREATE TABLE named (
    name TEXT PRIMARY KEY,
    tier TEXT NOT NULL,
    body TEXT NOT NULL,
    edited_at INTEGER NOT NULL,
    editor TEXT NOT NULL,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE named_versions (
    name TEXT NOT NULL REFERENCES named (name),
    version INTEGER NOT NULL,
    tier TEXT NOT NULL,
    body TEXT NOT NULL,
    edited_at INTEGER NOT NULL,
    editor TEXT NOT NULL,
    PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE documents (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    collection TEXT NOT NULL,
    body TEXT NOT NULL,
    origin TEXT NOT NULL,
    lifecycle TEXT NOT NULL,
    weight REAL NOT NULL,
    standing TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    removed INTEGER NOT NULL
) STRICT;

CREATE TABLE document_versions (
    id TEXT NOT NULL REFERENCES documents (id),
    version INTEGER NOT NULL,
    title TEXT NOT NULL,
    collection TEXT NOT NULL,
    body TEXT NOT NULL,
    origin TEXT NOT NULL,
    lifecycle TEXT NOT NULL,
    weight REAL NOT NULL,
    standing TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    PRIMARY KEY (id, version)
) STRICT;

CREATE TABLE channels (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    is_default INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (workspace, name)
) STRICT;

CREATE UNIQUE INDEX channels_default ON channels (workspace) WHERE is_default;

CREATE TABLE conversations (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    ref_code TEXT NOT NULL UNIQUE,
    channel TEXT NOT NULL REFERENCES channels (id),
    started_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    ended_at INTEGER
) STRICT;

CREATE INDEX conversations_channel ON conversations (channel, started_at);

CREATE TABLE notes (
    conversation TEXT NOT NULL REFERENCES conversations (id),
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (conversation, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE actions (
    id TEXT PRIMARY KEY,
    description TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE action_links (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    action TEXT NOT NULL REFERENCES actions (id),
    entry INTEGER NOT NULL REFERENCES entries (rowid) ON DELETE RESTRICT,
    UNIQUE (entry, action)
) STRICT;

CREATE INDEX action_links_action ON action_links (action);

CREATE TABLE workspaces (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    preset TEXT NOT NULL,
    spec_toml TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ready INTEGER NOT NULL
) STRICT;

-- A namespace of items, spelt as a JSON array. It goes with its last item.
CREATE TABLE item_spaces (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    removals INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Every beginning of every namespace, itself and the empty one included: below a namespace is then a matter of
-- equality, and a search touches nothing but what is below it.
CREATE TABLE item_prefixes (
    prefix TEXT NOT NULL,
    space INTEGER NOT NULL REFERENCES item_spaces (id) ON DELETE CASCADE,
    PRIMARY KEY (prefix, space)
) STRICT, WITHOUT ROWID;

CREATE INDEX item_prefixes_space ON item_prefixes (space);

-- What an item is to be found by is kept, so that its vectors can also be made later: pairs of a field and its text, null
-- for the whole value; and who makes them, empty for the workspace's own embedder.
CREATE TABLE items (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT,
    space INTEGER NOT NULL REFERENCES item_spaces (id),
    key TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    ttl REAL,
    value_hash TEXT NOT NULL,
    salt BLOB NOT NULL,
    value TEXT NOT NULL,
    texts TEXT NOT NULL DEFAULT '[]',
    indexer TEXT NOT NULL DEFAULT '',
    UNIQUE (space, key)
) STRICT;

CREATE INDEX items_newest ON items (space, updated_at, rowid, expires_at);
CREATE INDEX items_expiring ON items (expires_at) WHERE expires_at IS NOT NULL;

-- As with vectors, a row is never changed: removals of its namespace and the last seq say whether a copy is current.
CREATE TABLE item_vectors (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    item INTEGER NOT NULL REFERENCES items (rowid) ON DELETE CASCADE,
    space INTEGER NOT NULL REFERENCES item_spaces (id),
    model_id INTEGER NOT NULL REFERENCES models (id),
    field TEXT NOT NULL,
    checksum TEXT NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (item, model_id, field)
) STRICT;

CREATE INDEX item_vectors_by_space ON item_vectors (space, model_id, seq);

-- Work that must not be lost. The claim rises each time somebody takes the job: older holders can write no more.
CREATE TABLE jobs (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    key TEXT NOT NULL UNIQUE,
    payload TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    claim INTEGER NOT NULL,
    run_after INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    lease_until INTEGER,
    worker TEXT NOT NULL,
    error TEXT NOT NULL,
    result TEXT NOT NULL
) STRICT;

CREATE INDEX jobs_due ON jobs (state, run_after, place);
CREATE INDEX jobs_touched ON jobs (updated_at, place);

CREATE TABLE job_steps (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    claim INTEGER NOT NULL,
    at INTEGER NOT NULL,
    output TEXT NOT NULL,
    UNIQUE (job, name)
) STRICT;

CREATE TABLE transcripts (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL UNIQUE,
    format TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    started_at INTEGER,
    progress TEXT NOT NULL,
    kept INTEGER NOT NULL,
    observed INTEGER NOT NULL,
    how TEXT NOT NULL,
    detail TEXT NOT NULL,
    version INTEGER NOT NULL
) STRICT;

CREATE TABLE utterances (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT,
    transcript TEXT NOT NULL REFERENCES transcripts (id),
    place INTEGER NOT NULL,
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    at INTEGER,
    text_hash TEXT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (transcript, place)
) STRICT;

CREATE INDEX utterances_id ON utterances (transcript, id);

CREATE VIRTUAL TABLE utterance_fts USING fts5 (terms, content='', contentless_delete=1, tokenize='ascii');

CREATE TABLE amendments (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    section TEXT NOT NULL,
    change TEXT NOT NULL,
    confidence REAL NOT NULL,
    sources TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    line TEXT NOT NULL,
    version INTEGER NOT NULL
) STRICT;

CREATE INDEX amendments_state ON amendments (state, place);

CREATE TABLE points (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    level TEXT NOT NULL,
    source TEXT NOT NULL,
    component TEXT NOT NULL,
    action TEXT NOT NULL,
    success INTEGER NOT NULL,
    duration_ms REAL NOT NULL,
    metadata TEXT NOT NULL
) STRICT;

CREATE INDEX points_at ON points (at, place);

CREATE TABLE spending (
    day TEXT NOT NULL,
    model TEXT NOT NULL,
    calls INTEGER NOT NULL,
    prompt INTEGER NOT NULL,
    completion INTEGER NOT NULL,
    cost REAL NOT NULL,
    PRIMARY KEY (day, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE grants (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent TEXT NOT NULL,
    workspaces TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    tiers TEXT NOT NULL,
    channels TEXT NOT NULL,
    conversations TEXT NOT NULL,
    trust INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    digest TEXT NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    version INTEGER NOT NULL
) STRICT;

CREATE TABLE answers (
    key TEXT PRIMARY KEY,
    request TEXT NOT NULL,
    at INTEGER NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    principal TEXT NOT NULL,
    surface TEXT NOT NULL,
    transport TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    previous TEXT NOT NULL,
    digest TEXT NOT NULL
) STRICT;

CREATE INDEX events_subject ON events (subject, seq);
CREATE INDEX events_action ON events (action, seq);

CREATE TRIGGER events_kept BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;

-- What scrubs have emptied, by ranges. A row stands for a scrub's own event, which comes after all that it names.
CREATE TABLE redactions (
    first INTEGER PRIMARY KEY,
    last INTEGER NOT NULL CHECK (last >= first),
    scrub INTEGER NOT NULL REFERENCES events (seq) CHECK (scrub > last)
) STRICT;

CREATE TRIGGER redactions_by_scrubs BEFORE INSERT ON redactions
WHEN NOT EXISTS (SELECT 1 FROM events WHERE seq = NEW.scrub AND action = 'scrub.executed')
BEGIN SELECT RAISE(ABORT, 'only a scrub redacts'); END;

CREATE TRIGGER redactions_kept BEFORE DELETE ON redactions
BEGIN SELECT RAISE(ABORT, 'redactions are kept'); END;

CREATE TRIGGER redactions_fixed BEFORE UPDATE ON redactions
BEGIN SELECT RAISE(ABORT, 'redactions are kept'); END;

-- The one change an event may see: emptied by a scrub that is in the log. A scrub's own event sees none.
CREATE TRIGGER events_fixed BEFORE UPDATE ON events
WHEN NOT (
    NEW.subject = '' AND NEW.detail = '{}' AND OLD.action <> 'scrub.executed'
    AND NEW.seq = OLD.seq AND NEW.at = OLD.at AND NEW.principal = OLD.principal AND NEW.surface = OLD.surface
    AND NEW.transport = OLD.transport AND NEW.action = OLD.action AND NEW.previous = OLD.previous
    AND NEW.digest = OLD.digest
    AND OLD.seq <= (SELECT last FROM redactions WHERE first <= OLD.seq ORDER BY first DESC LIMIT 1)
) IS TRUE
BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;

-- What a scrub has still to clear away outside its transaction: a conversation of a chat, or the files ('').
CREATE TABLE unswept (conversation TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- What a cut-off tail would leave behind: the log alone cannot show that its end is missing.
CREATE TABLE head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL,
    digest TEXT NOT NULL
) STRICT;

INSERT INTO head VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');
