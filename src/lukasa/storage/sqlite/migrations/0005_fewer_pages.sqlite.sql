-- Each page that a write touches is written twice and summed up, which is a good part of what a single put costs.

PRAGMA user_version = 5;

-- AUTOINCREMENT keeps a number from being given twice, and writes a page for that each time. Now what goes leaves its
-- number behind: the highest of those that were given and are gone.
ALTER TABLE head ADD COLUMN entries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE head ADD COLUMN vectors INTEGER NOT NULL DEFAULT 0;
UPDATE head SET
    entries = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'entries'), 0),
    vectors = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'vectors'), 0);
DELETE FROM sqlite_sequence WHERE name IN ('entries', 'vectors', 'points');

-- Rows are the same with and without it, so none has to be copied.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'INTEGER PRIMARY KEY AUTOINCREMENT', 'INTEGER PRIMARY KEY')
WHERE type = 'table' AND name IN ('entries', 'vectors');
PRAGMA writable_schema = RESET;

CREATE TRIGGER entries_numbered AFTER DELETE ON entries
BEGIN UPDATE head SET entries = max(entries, OLD.rowid) WHERE one = 1; END;

CREATE TRIGGER vectors_numbered AFTER DELETE ON vectors
BEGIN UPDATE head SET vectors = max(vectors, OLD.seq) WHERE one = 1; END;

-- Rows up to this number have their words in the index. Those after it, a few, are fed to it together.
ALTER TABLE head ADD COLUMN fed INTEGER NOT NULL DEFAULT 0;
UPDATE head SET fed = coalesce((SELECT max(rowid) FROM entries), 0);

-- The newest of each kind are the newest of all: one index is enough.
DROP INDEX entries_newest;

-- Reports are numbered by their time in microseconds, or the next free number if that is taken or past: what was
-- reported since a time has a number from there on, and the index on times is not needed.
CREATE TABLE reports (
    place INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    level TEXT NOT NULL,
    source TEXT NOT NULL,
    component TEXT NOT NULL,
    action TEXT NOT NULL,
    success INTEGER NOT NULL,
    duration_ms REAL NOT NULL,
    metadata TEXT NOT NULL
) STRICT;

INSERT INTO reports
SELECT max(at - number) OVER (ORDER BY number) + number, at, level, source, component, action, success, duration_ms, metadata
FROM (SELECT row_number() OVER (ORDER BY place) AS number, * FROM points);

DROP TABLE points;
ALTER TABLE reports RENAME TO points;
