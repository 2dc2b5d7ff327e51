-- Scopes that have ended: they take no more entries.

PRAGMA user_version = 9;

CREATE TABLE closed_scopes (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL UNIQUE,
    event TEXT NOT NULL,
    closed_at INTEGER NOT NULL
) STRICT;
