-- Documents are split into passages, which are found by their words and by their meaning, apart from entries. A document
-- has a source if it was read from a file or an address, and watches say what is followed.
-- Derived, and made again from documents: passages, passage_vectors. Derived from passages: passage_postings.

-- Only of the present version of documents that are not removed.
CREATE TABLE passages (
    store uuid NOT NULL,
    rowid bigint NOT NULL DEFAULT nextval('places'),
    document text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    version bigint NOT NULL,
    headings text COLLATE "C" NOT NULL,
    page bigint,
    line bigint,
    tags text COLLATE "C" NOT NULL,
    text_hash text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, document, number),
    UNIQUE (store, rowid),
    FOREIGN KEY (store, document) REFERENCES documents (store, id)
);

CREATE TABLE passage_postings (
    store uuid NOT NULL,
    word text COLLATE "C" NOT NULL,
    passage bigint NOT NULL,
    times bigint NOT NULL,
    PRIMARY KEY (store, word, passage)
);

CREATE TABLE passage_vectors (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    passage bigint NOT NULL,
    model_id bigint NOT NULL,
    checksum text COLLATE "C" NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (store, passage, model_id),
    FOREIGN KEY (store, passage) REFERENCES passages (store, rowid) ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);

ALTER TABLE passage_vectors ALTER COLUMN embedding SET STORAGE EXTERNAL;

CREATE INDEX documents_listed ON documents (store, removed, collection, id);

-- Documents without passages yet.
CREATE TABLE unsplit (
    store uuid NOT NULL,
    document text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, document),
    FOREIGN KEY (store, document) REFERENCES documents (store, id)
);

CREATE TABLE document_sources (
    store uuid NOT NULL,
    document text COLLATE "C" NOT NULL,
    location text COLLATE "C" NOT NULL,
    media_type text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    read_at bigint NOT NULL,
    etag text COLLATE "C" NOT NULL,
    modified text COLLATE "C" NOT NULL,
    notes text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, document),
    FOREIGN KEY (store, document) REFERENCES documents (store, id)
);

CREATE INDEX document_sources_location ON document_sources (store, location, document);

CREATE TABLE watches (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    location text COLLATE "C" NOT NULL,
    collection text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    due_at bigint NOT NULL,
    checked_at bigint,
    etag text COLLATE "C" NOT NULL,
    modified text COLLATE "C" NOT NULL,
    failures bigint NOT NULL,
    error text COLLATE "C" NOT NULL,
    seen text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (store, id)
);

-- The owner of the schema splits documents of all stores below, and row-level security binds owners as well.
ALTER TABLE documents NO FORCE ROW LEVEL SECURITY;
INSERT INTO unsplit (store, document) SELECT store, id FROM documents WHERE removed = 0 AND body <> '';
ALTER TABLE documents FORCE ROW LEVEL SECURITY;

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'passages', 'passage_postings', 'passage_vectors', 'unsplit', 'document_sources', 'watches'
    ]
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY tenant ON %1$I USING (%2$s) WITH CHECK (%2$s)', name,
            'store = (SELECT lukasa.bound_store())'
        );
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO lukasa_app', name);
    END LOOP;
END $$;

-- No statistics of columns that hold words.
ALTER TABLE passages ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE passages ALTER COLUMN headings SET STATISTICS 0;
ALTER TABLE passages ALTER COLUMN tags SET STATISTICS 0;
ALTER TABLE passage_postings ALTER COLUMN word SET STATISTICS 0;
ALTER TABLE document_sources ALTER COLUMN notes SET STATISTICS 0;
ALTER TABLE watches ALTER COLUMN error SET STATISTICS 0;
ALTER TABLE watches ALTER COLUMN seen SET STATISTICS 0;

-- Rows that others refer to are removed behind those that refer to them.
CREATE OR REPLACE FUNCTION clear_store(wanted uuid) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = lukasa, pg_temp AS $$
DECLARE name text;
BEGIN
    PERFORM set_config('lukasa.store', wanted::text, true);
    PERFORM 1 FROM heads AS h WHERE h.store = wanted AND (h.moving <> '' OR h.seq = 0) FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this store is whole' USING ERRCODE = 'restrict_violation';
    END IF;
    DELETE FROM redactions WHERE store = wanted;
    DELETE FROM events WHERE store = wanted;
    DELETE FROM action_links WHERE store = wanted;
    DELETE FROM passage_vectors WHERE store = wanted;
    DELETE FROM passages WHERE store = wanted;
    DELETE FROM unsplit WHERE store = wanted;
    DELETE FROM document_sources WHERE store = wanted;
    FOR name IN SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'store'
        WHERE c.relnamespace = 'lukasa'::regnamespace AND c.relkind = 'r' AND c.relname <> 'heads'
    LOOP
        EXECUTE format('DELETE FROM %I WHERE store = $1', name) USING wanted;
    END LOOP;
    DELETE FROM heads WHERE store = wanted;
END $$;
