-- What machines that sync tell each other: revisions of things, and notes of this machine about them.

CREATE TABLE revisions (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    digest text COLLATE "C" NOT NULL,
    workspace text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    thing text COLLATE "C" NOT NULL,
    parents text COLLATE "C" NOT NULL,
    body text COLLATE "C",
    at bigint NOT NULL,
    machine text COLLATE "C" NOT NULL,
    salt text COLLATE "C" NOT NULL,
    spot text COLLATE "C" NOT NULL,
    about text COLLATE "C" NOT NULL,
    twin text COLLATE "C" NOT NULL,
    stage text COLLATE "C" NOT NULL,
    told bigint NOT NULL,
    erasure text COLLATE "C" NOT NULL,
    member text COLLATE "C" NOT NULL,
    trust bigint NOT NULL,
    PRIMARY KEY (store, digest)
);

CREATE INDEX revisions_thing ON revisions (store, thing, place);
CREATE INDEX revisions_spot ON revisions (store, spot, place);
CREATE INDEX revisions_about ON revisions (store, about, place);
CREATE INDEX revisions_twin ON revisions (store, twin, place);
CREATE INDEX revisions_stage ON revisions (store, stage, place);
CREATE INDEX revisions_told ON revisions (store, told, place);
CREATE INDEX revisions_erasure ON revisions (store, erasure, place);

CREATE TABLE sync_notes (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    name text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, name)
);

-- As all tables of a store: its rows alone, and no statistics of columns that hold words.
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['revisions', 'sync_notes'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING (store = (SELECT lukasa.bound_store()))'
            ' WITH CHECK (store = (SELECT lukasa.bound_store()))', name
        );
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO lukasa_app', name);
    END LOOP;
END $$;

ALTER TABLE revisions ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE sync_notes ALTER COLUMN value SET STATISTICS 0;
