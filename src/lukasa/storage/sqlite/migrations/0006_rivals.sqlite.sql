-- Entries that concern the same thing, and statements that repeat an entry.

PRAGMA user_version = 6;

CREATE TABLE rivals (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    entry TEXT NOT NULL,
    other TEXT NOT NULL,
    relation TEXT NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL,
    decided_by TEXT NOT NULL,
    UNIQUE (entry, other)
) STRICT;

CREATE INDEX rivals_other ON rivals (other);
CREATE INDEX rivals_open ON rivals (relation, decided_by, place);

CREATE TABLE confirmations (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    entry TEXT NOT NULL,
    at INTEGER NOT NULL,
    principal TEXT NOT NULL,
    speaker TEXT NOT NULL,
    conversation TEXT NOT NULL,
    said TEXT NOT NULL,
    quotes TEXT NOT NULL
) STRICT;

CREATE INDEX confirmations_entry ON confirmations (entry, place);
