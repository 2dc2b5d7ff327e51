-- The disclosure ledger: one row for each text that went to an agent, numbered by its time like telemetry. Its items are
-- packed into one text, [id, version, tokens, …], because a row for each entry would take more than twice the space.

PRAGMA user_version = 12;

CREATE TABLE disclosures (
    place INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    principal TEXT NOT NULL,
    surface TEXT NOT NULL,
    transport TEXT NOT NULL,
    conversation TEXT NOT NULL,
    workspace TEXT NOT NULL,
    verb TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    items TEXT NOT NULL
) STRICT;
