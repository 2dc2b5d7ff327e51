-- What an entry rests on becomes rows of their own: canonical documents with the version that is pinned, and entries
-- that it was concluded from. A repetition says how trusted it was, and whether it confirmed the entry.

PRAGMA user_version = 7;

CREATE TABLE canonical_links (
    place INTEGER PRIMARY KEY,
    entry TEXT NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    document TEXT NOT NULL REFERENCES documents (id),
    version INTEGER NOT NULL,
    locator TEXT NOT NULL,
    checked INTEGER NOT NULL
) STRICT;

CREATE INDEX canonical_links_entry ON canonical_links (entry, place);
CREATE INDEX canonical_links_document ON canonical_links (document, place);

-- The source may be in another store, or gone: that is what the row is there to tell.
CREATE TABLE derivations (
    place INTEGER PRIMARY KEY,
    entry TEXT NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    source TEXT NOT NULL
) STRICT;

CREATE INDEX derivations_entry ON derivations (entry, place);
CREATE INDEX derivations_source ON derivations (source, place);

INSERT INTO canonical_links (entry, document, version, locator, checked)
SELECT e.id, l.value ->> 0, l.value ->> 1, l.value ->> 2, 0
FROM entries AS e, json_each(e.rest, '$.links') AS l
WHERE l.value ->> 0 IN (SELECT id FROM documents) ORDER BY e.rowid, l.key;

INSERT INTO derivations (entry, source)
SELECT e.id, d.value FROM entries AS e, json_each(e.rest, '$.derived_from') AS d ORDER BY e.rowid, d.key;

-- A bit of its own says which rows have any, so that a read of the others looks nowhere else.
UPDATE entries SET marks = marks | 8, rest = json_remove(rest, '$.links', '$.derived_from')
WHERE json_type(rest, '$.links') IS NOT NULL OR json_type(rest, '$.derived_from') IS NOT NULL;

-- Nobody noted how trusted earlier repetitions were: they count as the least.
ALTER TABLE confirmations ADD COLUMN trust INTEGER NOT NULL DEFAULT 0;
ALTER TABLE confirmations ADD COLUMN outcome TEXT NOT NULL DEFAULT 'confirmed';
