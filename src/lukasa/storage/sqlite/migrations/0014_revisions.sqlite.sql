-- What machines that sync tell each other: revisions of things, and notes of this machine about them.

PRAGMA user_version = 14;

CREATE TABLE revisions (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    digest TEXT NOT NULL UNIQUE,
    workspace TEXT NOT NULL,
    kind TEXT NOT NULL,
    thing TEXT NOT NULL,
    parents TEXT NOT NULL,
    body TEXT,
    at INTEGER NOT NULL,
    machine TEXT NOT NULL,
    salt TEXT NOT NULL,
    spot TEXT NOT NULL,
    about TEXT NOT NULL,
    twin TEXT NOT NULL,
    stage TEXT NOT NULL,
    told INTEGER NOT NULL,
    erasure TEXT NOT NULL,
    member TEXT NOT NULL,
    trust INTEGER NOT NULL
) STRICT;

CREATE INDEX revisions_thing ON revisions (thing, place);
CREATE INDEX revisions_spot ON revisions (spot, place);
CREATE INDEX revisions_about ON revisions (about, place);
CREATE INDEX revisions_twin ON revisions (twin, place);
CREATE INDEX revisions_stage ON revisions (stage, place);
CREATE INDEX revisions_told ON revisions (told, place);
CREATE INDEX revisions_erasure ON revisions (erasure, place);

CREATE TABLE sync_notes (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
