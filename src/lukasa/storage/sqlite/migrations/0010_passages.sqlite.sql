-- Documents are split into passages, which are found by their words and by their meaning, apart from entries. A document
-- has a source if it was read from a file or an address, and watches say what is followed.
-- Derived, and made again from documents: passages, passage_vectors. Derived from passages: passage_fts.

PRAGMA user_version = 10;

-- Only of the present version of documents that are not removed.
CREATE TABLE passages (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT,
    document TEXT NOT NULL REFERENCES documents (id),
    number INTEGER NOT NULL,
    version INTEGER NOT NULL,
    headings TEXT NOT NULL,
    page INTEGER,
    line INTEGER,
    tags TEXT NOT NULL,
    text_hash TEXT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (document, number)
) STRICT;

CREATE VIRTUAL TABLE passage_fts USING fts5 (terms, content='', contentless_delete=1, tokenize='ascii');
CREATE VIRTUAL TABLE passage_fts_frequencies USING fts5vocab (passage_fts, 'row');
CREATE VIRTUAL TABLE passage_fts_instances USING fts5vocab (passage_fts, 'instance');
CREATE VIRTUAL TABLE utterance_fts_frequencies USING fts5vocab (utterance_fts, 'row');
CREATE VIRTUAL TABLE utterance_fts_instances USING fts5vocab (utterance_fts, 'instance');

CREATE TABLE passage_vectors (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    passage INTEGER NOT NULL REFERENCES passages (rowid),
    model_id INTEGER NOT NULL REFERENCES models (id),
    checksum TEXT NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (passage, model_id)
) STRICT;

CREATE INDEX passage_vectors_of_model ON passage_vectors (model_id, seq);

-- How often vectors of passages were removed: vectors in memory are compared again then.
ALTER TABLE head ADD COLUMN passages_removed INTEGER NOT NULL DEFAULT 0;

CREATE INDEX documents_listed ON documents (removed, collection, id);

-- Documents without passages yet.
CREATE TABLE unsplit (document TEXT PRIMARY KEY REFERENCES documents (id)) STRICT, WITHOUT ROWID;

INSERT INTO unsplit (document) SELECT id FROM documents WHERE removed = 0 AND body <> '';

CREATE TABLE document_sources (
    document TEXT PRIMARY KEY REFERENCES documents (id),
    location TEXT NOT NULL,
    media_type TEXT NOT NULL,
    digest TEXT NOT NULL,
    read_at INTEGER NOT NULL,
    etag TEXT NOT NULL,
    modified TEXT NOT NULL,
    notes TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX document_sources_location ON document_sources (location, document);

CREATE TABLE watches (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    location TEXT NOT NULL,
    collection TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    checked_at INTEGER,
    etag TEXT NOT NULL,
    modified TEXT NOT NULL,
    failures INTEGER NOT NULL,
    error TEXT NOT NULL,
    seen TEXT NOT NULL,
    version INTEGER NOT NULL
) STRICT;
