-- What entries cite outside of memory, as it was when somebody pinned it; and what the last check of each found.

PRAGMA user_version = 11;

CREATE TABLE citations (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    entry TEXT NOT NULL,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    name TEXT NOT NULL,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    hash TEXT NOT NULL,
    around TEXT NOT NULL,
    revision TEXT NOT NULL,
    project TEXT NOT NULL,
    made_by TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX citations_entry ON citations (entry, place);

CREATE TABLE citation_checks (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    citation TEXT NOT NULL UNIQUE,
    entry TEXT NOT NULL,
    verdict TEXT NOT NULL,
    path TEXT NOT NULL,
    line INTEGER NOT NULL,
    why TEXT NOT NULL,
    at INTEGER NOT NULL,
    verified_at INTEGER
) STRICT;

CREATE INDEX citation_checks_entry ON citation_checks (entry, place);
CREATE INDEX citation_checks_amiss ON citation_checks (at, place) WHERE verdict IN ('changed', 'gone');
