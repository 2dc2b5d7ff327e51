-- What entries cite outside of memory, as it was when somebody pinned it; and what the last check of each found.

CREATE TABLE citations (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    id text COLLATE "C" NOT NULL,
    entry text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    first_line bigint NOT NULL,
    last_line bigint NOT NULL,
    hash text COLLATE "C" NOT NULL,
    around text COLLATE "C" NOT NULL,
    revision text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    made_by text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (store, id)
);

CREATE INDEX citations_entry ON citations (store, entry, place);
CREATE INDEX citations_place ON citations (store, place);

CREATE TABLE citation_checks (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    citation text COLLATE "C" NOT NULL,
    entry text COLLATE "C" NOT NULL,
    verdict text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    line bigint NOT NULL,
    why text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    verified_at bigint,
    PRIMARY KEY (store, citation)
);

CREATE INDEX citation_checks_entry ON citation_checks (store, entry, place);
CREATE INDEX citation_checks_amiss ON citation_checks (store, at, place) WHERE verdict IN ('changed', 'gone');

-- As all tables of a store: its rows alone, and no statistics of columns that hold words.
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['citations', 'citation_checks'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING (store = (SELECT lukasa.bound_store()))'
            ' WITH CHECK (store = (SELECT lukasa.bound_store()))', name
        );
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO lukasa_app', name);
    END LOOP;
END $$;

ALTER TABLE citations ALTER COLUMN target SET STATISTICS 0, ALTER COLUMN name SET STATISTICS 0;
ALTER TABLE citation_checks ALTER COLUMN path SET STATISTICS 0, ALTER COLUMN why SET STATISTICS 0;
