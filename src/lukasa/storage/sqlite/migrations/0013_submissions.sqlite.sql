-- Changes that are submitted to documents, and the memories that each rests on.

PRAGMA user_version = 13;

CREATE TABLE submissions (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    document TEXT NOT NULL,
    title TEXT NOT NULL,
    collection TEXT NOT NULL,
    base INTEGER NOT NULL,
    how TEXT NOT NULL,
    place_in_text TEXT NOT NULL,
    text TEXT NOT NULL,
    memories TEXT NOT NULL,
    derivable TEXT NOT NULL,
    principal TEXT NOT NULL,
    surface TEXT NOT NULL,
    transport TEXT NOT NULL,
    trust INTEGER NOT NULL,
    note TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    keys TEXT NOT NULL,
    state TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    edited INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    retired TEXT NOT NULL,
    version INTEGER NOT NULL
) STRICT;

CREATE INDEX submissions_document ON submissions (document, place);
CREATE INDEX submissions_open ON submissions (state, place);

CREATE TABLE submission_memories (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    submission TEXT NOT NULL,
    entry TEXT NOT NULL,
    UNIQUE (submission, entry)
) STRICT;

CREATE INDEX submission_memories_entry ON submission_memories (entry, place);
