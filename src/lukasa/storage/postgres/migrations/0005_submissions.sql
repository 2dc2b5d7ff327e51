-- Changes that are submitted to documents, and the memories that each rests on.

CREATE TABLE submissions (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    id text COLLATE "C" NOT NULL,
    document text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    collection text COLLATE "C" NOT NULL,
    base bigint NOT NULL,
    how text COLLATE "C" NOT NULL,
    place_in_text text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    memories text COLLATE "C" NOT NULL,
    derivable text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    surface text COLLATE "C" NOT NULL,
    transport text COLLATE "C" NOT NULL,
    trust bigint NOT NULL,
    note text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    keys text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    decided_by text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    edited bigint NOT NULL,
    accepted bigint NOT NULL,
    retired text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (store, id)
);

CREATE INDEX submissions_document ON submissions (store, document, place);
CREATE INDEX submissions_open ON submissions (store, state, place);

CREATE TABLE submission_memories (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    submission text COLLATE "C" NOT NULL,
    entry text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, submission, entry)
);

CREATE INDEX submission_memories_entry ON submission_memories (store, entry, place);

-- As all tables of a store: its rows alone, and no statistics of columns that hold words.
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['submissions', 'submission_memories'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING (store = (SELECT lukasa.bound_store()))'
            ' WITH CHECK (store = (SELECT lukasa.bound_store()))', name
        );
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO lukasa_app', name);
    END LOOP;
END $$;

ALTER TABLE submissions
    ALTER COLUMN title SET STATISTICS 0, ALTER COLUMN place_in_text SET STATISTICS 0,
    ALTER COLUMN text SET STATISTICS 0, ALTER COLUMN note SET STATISTICS 0, ALTER COLUMN reason SET STATISTICS 0;
