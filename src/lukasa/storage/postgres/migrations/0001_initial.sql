-- Every table has the store first: in its key, its indexes and its statements. A store is an account's or a workspace's.
-- Truth is in entries, versions, named, documents, channels, conversations, notes, actions, workspaces, items,
-- transcripts, utterances, amendments, jobs, job_steps, points, spending, grants, answers, events and redactions.
-- Derived, and rebuilt from truth: postings, partitions' counts, entries' terms, vectors, item_prefixes.

CREATE SEQUENCE places;

CREATE TABLE accounts (
    id uuid PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);

-- A store: what it is, the end of its log, and how far its numbers have come. Whoever writes to a store holds this row.
CREATE TABLE heads (
    store uuid PRIMARY KEY,
    account uuid NOT NULL,
    role text COLLATE "C" NOT NULL CHECK (role IN ('account', 'workspace')),
    secret bytea NOT NULL,
    tokenizer bigint NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    seq bigint NOT NULL DEFAULT 0,
    digest text COLLATE "C" NOT NULL DEFAULT repeat('0', 64),
    commits bigint NOT NULL DEFAULT 0,
    rebuilt bigint NOT NULL DEFAULT 0,
    entries bigint NOT NULL DEFAULT 0, -- the highest row number ever given
    scopes bigint NOT NULL DEFAULT 0, -- the highest number that a scope ever got
    partitions bigint NOT NULL DEFAULT 0, -- the highest number that a partition ever got
    fed bigint NOT NULL DEFAULT 0, -- rows up to this number have their words in postings
    moving text COLLATE "C" NOT NULL DEFAULT '' -- whose memory is being moved here; empty once it is whole
) WITH (fillfactor = 50);

CREATE INDEX heads_of_account ON heads (account);

-- How often access counts were written: apart from the head, because no reader may wait for a writer.
CREATE TABLE counters (
    store uuid PRIMARY KEY,
    written bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE scopes (
    store uuid NOT NULL,
    id bigint NOT NULL,
    tier text COLLATE "C" NOT NULL,
    anchor text COLLATE "C" NOT NULL,
    keys jsonb NOT NULL,
    PRIMARY KEY (store, id),
    UNIQUE (store, tier, anchor)
);

-- One scope, visibility and owner: the rows that are searched together. Words carry its number, and vectors are found by
-- it, so that a search can only ever touch the partitions it was given.

CREATE TABLE partitions (
    store uuid NOT NULL,
    id bigint NOT NULL,
    scope_id bigint NOT NULL,
    visibility text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    keys jsonb NOT NULL,
    size bigint NOT NULL DEFAULT 0,
    total_terms bigint NOT NULL DEFAULT 0,
    vectors bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (store, id),
    UNIQUE (store, scope_id, visibility, owner)
);

CREATE TABLE entries (
    store uuid NOT NULL,
    rowid bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    partition_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    category text COLLATE "C",
    source text COLLATE "C" NOT NULL,
    curator text COLLATE "C" NOT NULL,
    lifetime text COLLATE "C" NOT NULL,
    conversation text COLLATE "C",
    importance double precision NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    confirmed_at bigint NOT NULL,
    valid_at bigint,
    invalid_at bigint,
    superseded_by text COLLATE "C",
    version bigint NOT NULL,
    content_version bigint NOT NULL,
    term_count bigint NOT NULL,
    chars bigint NOT NULL,
    marks bigint NOT NULL,
    trust bigint NOT NULL,
    merged_count bigint NOT NULL,
    tags text COLLATE "C" NOT NULL,
    terms text COLLATE "C" NOT NULL,
    content_hash text COLLATE "C" NOT NULL,
    content_key text COLLATE "C" NOT NULL,
    subject bigint,
    role bigint,
    salt bytea NOT NULL,
    content text COLLATE "C" NOT NULL,
    rest text COLLATE "C" NOT NULL,
    keys jsonb NOT NULL,
    PRIMARY KEY (store, rowid),
    UNIQUE (store, id)
) WITH (fillfactor = 85);

CREATE UNIQUE INDEX entries_twin ON entries (store, scope_id, owner, content_key) WHERE state IN ('active', 'held');
CREATE INDEX entries_subject ON entries (store, partition_id, subject, rowid) WHERE subject IS NOT NULL;
CREATE INDEX entries_role ON entries (store, partition_id, role, rowid) WHERE role IS NOT NULL;
CREATE INDEX entries_of_kind ON entries (store, partition_id, kind, created_at, rowid);
CREATE INDEX entries_replaced ON entries (store, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX entries_of_conversation ON entries (store, conversation) WHERE lifetime = 'conversation';

CREATE TABLE retired (
    store uuid NOT NULL,
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, id)
);

CREATE TABLE versions (
    store uuid NOT NULL,
    entry bigint NOT NULL,
    version bigint NOT NULL,
    action text COLLATE "C" NOT NULL,
    cause text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    snapshot text COLLATE "C" NOT NULL,
    keys jsonb NOT NULL,
    PRIMARY KEY (store, entry, version),
    FOREIGN KEY (store, entry) REFERENCES entries (store, rowid) ON DELETE CASCADE
);

CREATE TABLE models (
    store uuid NOT NULL,
    id bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    dimensions bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, id),
    UNIQUE (store, name, dimensions, digest)
);

-- A vector as it was given. The wide rows stay whole, so that a search of a partition need not put them together.

CREATE TABLE vectors (
    store uuid NOT NULL,
    entry bigint NOT NULL,
    model_id bigint NOT NULL,
    partition_id bigint NOT NULL,
    checksum text COLLATE "C" NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (store, entry, model_id),
    FOREIGN KEY (store, entry) REFERENCES entries (store, rowid) ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);

ALTER TABLE vectors ALTER COLUMN embedding SET STORAGE EXTERNAL;
CREATE INDEX vectors_of_partition ON vectors (store, partition_id, model_id);

-- The rows that hold a word, as little-endian four-byte numbers in blocks, each row as often as it holds the word. A word
-- is a term with the number of its partition. `holders` counts the different rows.

CREATE TABLE postings (
    store uuid NOT NULL,
    word text COLLATE "C" NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    holders bigint NOT NULL,
    rows bytea NOT NULL,
    PRIMARY KEY (store, word, first)
) WITH (fillfactor = 70);

ALTER TABLE postings ALTER COLUMN rows SET STORAGE MAIN;

CREATE TABLE utterance_postings (
    store uuid NOT NULL,
    word text COLLATE "C" NOT NULL,
    utterance bigint NOT NULL,
    times bigint NOT NULL,
    PRIMARY KEY (store, word, utterance)
);

-- How often an entry was read, and when last: in a narrow table, and written for many reads at once.

CREATE TABLE access (
    store uuid NOT NULL,
    id text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (store, id)
) WITH (fillfactor = 60);

CREATE TABLE named (
    store uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    tier text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    edited_at bigint NOT NULL,
    editor text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (store, name)
);

CREATE TABLE named_versions (
    store uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    tier text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    edited_at bigint NOT NULL,
    editor text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, name, version)
);

CREATE TABLE documents (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    id text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    collection text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    origin text COLLATE "C" NOT NULL,
    lifecycle text COLLATE "C" NOT NULL,
    weight double precision NOT NULL,
    standing text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    updated_at bigint NOT NULL,
    removed bigint NOT NULL,
    PRIMARY KEY (store, id),
    UNIQUE (store, place)
);

CREATE TABLE document_versions (
    store uuid NOT NULL,
    id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    title text COLLATE "C" NOT NULL,
    collection text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    origin text COLLATE "C" NOT NULL,
    lifecycle text COLLATE "C" NOT NULL,
    weight double precision NOT NULL,
    standing text COLLATE "C" NOT NULL,
    updated_at bigint NOT NULL,
    removed bigint NOT NULL,
    PRIMARY KEY (store, id, version)
);

CREATE TABLE channels (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    id text COLLATE "C" NOT NULL,
    workspace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    description text COLLATE "C" NOT NULL,
    is_default bigint NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (store, id),
    UNIQUE (store, workspace, name)
);

CREATE UNIQUE INDEX channels_default ON channels (store, workspace) WHERE is_default <> 0;

CREATE TABLE conversations (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    id text COLLATE "C" NOT NULL,
    ref_code text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    started_at bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    ended_at bigint,
    keys text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, id),
    UNIQUE (store, ref_code)
);

CREATE INDEX conversations_newest ON conversations (store, started_at, place);

CREATE TABLE notes (
    store uuid NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (store, conversation, key)
);

CREATE TABLE actions (
    store uuid NOT NULL,
    id text COLLATE "C" NOT NULL,
    description text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (store, id)
);

CREATE TABLE action_links (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    action text COLLATE "C" NOT NULL,
    entry bigint NOT NULL,
    PRIMARY KEY (store, entry, action),
    FOREIGN KEY (store, action) REFERENCES actions (store, id),
    FOREIGN KEY (store, entry) REFERENCES entries (store, rowid)
);

CREATE INDEX action_links_action ON action_links (store, action);

CREATE TABLE workspaces (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    preset text COLLATE "C" NOT NULL,
    spec_toml text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    ready bigint NOT NULL,
    PRIMARY KEY (store, id),
    UNIQUE (store, name)
);

-- A namespace of items, spelt as a JSON array. It goes with its last item.

CREATE TABLE item_spaces (
    store uuid NOT NULL,
    id bigint NOT NULL,
    path text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, id),
    UNIQUE (store, path)
);

-- Every beginning of every namespace, itself and the empty one included: what is below a namespace is found by equality.

CREATE TABLE item_prefixes (
    store uuid NOT NULL,
    prefix text COLLATE "C" NOT NULL,
    space bigint NOT NULL,
    PRIMARY KEY (store, prefix, space),
    FOREIGN KEY (store, space) REFERENCES item_spaces (store, id) ON DELETE CASCADE
);

CREATE INDEX item_prefixes_space ON item_prefixes (store, space);

CREATE TABLE items (
    store uuid NOT NULL,
    rowid bigint NOT NULL,
    space bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    expires_at bigint,
    ttl double precision,
    value_hash text COLLATE "C" NOT NULL,
    salt bytea NOT NULL,
    value text COLLATE "C" NOT NULL,
    texts text COLLATE "C" NOT NULL,
    indexer text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, rowid),
    UNIQUE (store, space, key)
);

CREATE INDEX items_newest ON items (store, space, updated_at, rowid);
CREATE INDEX items_expiring ON items (store, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE item_vectors (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    item bigint NOT NULL,
    space bigint NOT NULL,
    model_id bigint NOT NULL,
    field text COLLATE "C" NOT NULL,
    checksum text COLLATE "C" NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (store, item, model_id, field),
    FOREIGN KEY (store, item) REFERENCES items (store, rowid) ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);

ALTER TABLE item_vectors ALTER COLUMN embedding SET STORAGE EXTERNAL;
CREATE INDEX item_vectors_of_space ON item_vectors (store, space, model_id);

-- Work that must not be lost. The claim rises each time somebody takes the job: older holders can write no more.

CREATE TABLE jobs (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    payload text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    attempts bigint NOT NULL,
    max_attempts bigint NOT NULL,
    claim bigint NOT NULL,
    run_after bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    lease_until bigint,
    worker text COLLATE "C" NOT NULL,
    error text COLLATE "C" NOT NULL,
    result text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, id),
    UNIQUE (store, key)
) WITH (fillfactor = 70);

CREATE INDEX jobs_due ON jobs (store, state, run_after, place);
CREATE INDEX jobs_touched ON jobs (store, updated_at, place);

CREATE TABLE job_steps (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    job text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    claim bigint NOT NULL,
    at bigint NOT NULL,
    output text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, job, name),
    FOREIGN KEY (store, job) REFERENCES jobs (store, id) ON DELETE CASCADE
);

CREATE TABLE transcripts (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    format text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    started_at bigint,
    progress text COLLATE "C" NOT NULL,
    kept bigint NOT NULL,
    observed bigint NOT NULL,
    how text COLLATE "C" NOT NULL,
    detail text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    keys text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, id),
    UNIQUE (store, key)
);

CREATE TABLE utterances (
    store uuid NOT NULL,
    rowid bigint NOT NULL DEFAULT nextval('places'),
    transcript text COLLATE "C" NOT NULL,
    place bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL,
    at bigint,
    text_hash text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, transcript, place)
);

CREATE UNIQUE INDEX utterances_row ON utterances (store, rowid);
CREATE INDEX utterances_id ON utterances (store, transcript, id);

CREATE TABLE amendments (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    id text COLLATE "C" NOT NULL,
    section text COLLATE "C" NOT NULL,
    change text COLLATE "C" NOT NULL,
    confidence double precision NOT NULL,
    sources text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    decided_by text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    line text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (store, id)
);

CREATE INDEX amendments_state ON amendments (store, state, place);

CREATE TABLE points (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    at bigint NOT NULL,
    level text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    component text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    success bigint NOT NULL,
    duration_ms double precision NOT NULL,
    metadata text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, place)
);

CREATE INDEX points_at ON points (store, at, place);

CREATE TABLE spending (
    store uuid NOT NULL,
    day text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    calls bigint NOT NULL,
    prompt bigint NOT NULL,
    completion bigint NOT NULL,
    cost double precision NOT NULL,
    PRIMARY KEY (store, day, model)
);

CREATE TABLE grants (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    workspaces text COLLATE "C" NOT NULL,
    capabilities text COLLATE "C" NOT NULL,
    tiers text COLLATE "C" NOT NULL,
    channels text COLLATE "C" NOT NULL,
    conversations text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    trust bigint NOT NULL,
    created_at bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    version bigint NOT NULL,
    PRIMARY KEY (store, id)
);

CREATE TABLE answers (
    store uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    request text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    status bigint NOT NULL,
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, key)
);

CREATE TABLE rivals (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    entry text COLLATE "C" NOT NULL,
    other text COLLATE "C" NOT NULL,
    relation text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    decided_by text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, entry, other)
);

CREATE INDEX rivals_other ON rivals (store, other);
CREATE INDEX rivals_open ON rivals (store, relation, decided_by, place);

CREATE TABLE confirmations (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    entry text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    principal text COLLATE "C" NOT NULL,
    speaker text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    said text COLLATE "C" NOT NULL,
    quotes text COLLATE "C" NOT NULL,
    trust bigint NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, place)
);

CREATE INDEX confirmations_entry ON confirmations (store, entry, place);

CREATE TABLE canonical_links (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    entry text COLLATE "C" NOT NULL,
    document text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    locator text COLLATE "C" NOT NULL,
    checked bigint NOT NULL,
    PRIMARY KEY (store, place),
    FOREIGN KEY (store, entry) REFERENCES entries (store, id) ON DELETE CASCADE
);

CREATE INDEX canonical_links_entry ON canonical_links (store, entry, place);
CREATE INDEX canonical_links_document ON canonical_links (store, document, place);

CREATE TABLE derivations (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    entry text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, place),
    FOREIGN KEY (store, entry) REFERENCES entries (store, id) ON DELETE CASCADE
);

CREATE INDEX derivations_entry ON derivations (store, entry, place);
CREATE INDEX derivations_source ON derivations (store, source, place);

CREATE TABLE closed_scopes (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    scope text COLLATE "C" NOT NULL,
    event text COLLATE "C" NOT NULL,
    closed_at bigint NOT NULL,
    PRIMARY KEY (store, scope)
);

-- What a scrub has still to clear away outside its transaction: a conversation of a chat, or the tables (''). Each scrub
-- notes the tables anew, so that a rewriting which began before it does not count for it.

CREATE TABLE unswept (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    conversation text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, conversation)
);

CREATE TABLE events (
    store uuid NOT NULL,
    seq bigint NOT NULL,
    at text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    surface text COLLATE "C" NOT NULL,
    transport text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    detail text COLLATE "C" NOT NULL,
    previous text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, seq)
);

CREATE INDEX events_subject ON events (store, subject, seq);

-- What scrubs have emptied, by ranges. A row stands for a scrub's own event, which comes after all that it names.

CREATE TABLE redactions (
    store uuid NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    scrub bigint NOT NULL,
    PRIMARY KEY (store, first),
    CHECK (last >= first),
    CHECK (scrub > last),
    FOREIGN KEY (store, scrub) REFERENCES events (store, seq)
);

-- Large partitions that have a vector index of their own: pgvector's HNSW over this partition and model alone.

CREATE TABLE vector_indexes (
    store uuid NOT NULL,
    partition_id bigint NOT NULL,
    model_id bigint NOT NULL,
    dimensions bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    ready bigint NOT NULL,
    PRIMARY KEY (store, partition_id, model_id)
);
-- Tenants. The application says in each transaction which store it works for, and which scope keys bind it. The second
-- belt: with a wrong or a missing statement of its own, it still sees that store alone.

CREATE FUNCTION bound_store() RETURNS uuid LANGUAGE sql STABLE AS
$$ SELECT nullif(current_setting('lukasa.store', true), '')::uuid $$;

CREATE FUNCTION bound_keys() RETURNS jsonb LANGUAGE sql STABLE AS
$$ SELECT nullif(current_setting('lukasa.keys', true), '')::jsonb $$;

-- The subselects are evaluated once for each statement, not for each row.
DO $$
DECLARE name text; anchored boolean; belongs text;
BEGIN
    FOR name IN SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = 'lukasa'::regnamespace AND c.relkind = 'r'
        AND c.relname NOT IN ('accounts', 'migrations')
    LOOP
        belongs := 'store = (SELECT lukasa.bound_store())';
        SELECT count(*) > 0 INTO anchored FROM pg_attribute AS a
        WHERE a.attrelid = ('lukasa.' || name)::regclass AND a.attname = 'keys' AND a.atttypid = 'jsonb'::regtype;
        IF anchored THEN
            -- A row of another value of a bound key is not there; a row without that key is.
            belongs := belongs || ' AND ((SELECT lukasa.bound_keys()) IS NULL OR keys = ''{}'''
                || ' OR keys || (SELECT lukasa.bound_keys()) = (SELECT lukasa.bound_keys()) || keys)';
        END IF;
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I USING (%s) WITH CHECK (%s)', name, belongs, belongs);
    END LOOP;
END $$;

ALTER TABLE accounts ENABLE ROW LEVEL SECURITY;

-- Tables are rewritten for all stores at once, by their owner.
CREATE POLICY owner ON unswept TO CURRENT_USER USING (true);

-- The statistics of a column are a copy of some of its values, in a table of the engine that no scrub reaches. So there
-- are none of columns that hold words.
DO $$
DECLARE held record;
BEGIN
    FOR held IN SELECT c.relname AS table_name, a.attname AS column_name
        FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relnamespace = 'lukasa'::regnamespace AND c.relkind = 'r' AND a.atttypid = 'text'::regtype
        AND a.attname IN (
            'body', 'cause', 'change', 'content', 'detail', 'error', 'how', 'line', 'metadata', 'output', 'payload',
            'quotes', 'reason', 'rest', 'result', 'said', 'snapshot', 'tags', 'terms', 'text', 'texts', 'title',
            'value', 'word'
        )
    LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET STATISTICS 0', held.table_name, held.column_name);
    END LOOP;
END $$;

-- Begin to work for a store: bind the transaction to it, and return its head. To write, hold the head until the end.
CREATE FUNCTION enter(wanted uuid, keys text) RETURNS TABLE (
    seq bigint, digest text, commits bigint, rebuilt bigint, entries bigint, fed bigint, written bigint, xid text
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM set_config('lukasa.store', wanted::text, true), set_config('lukasa.keys', keys, true);
    RETURN QUERY SELECT h.seq, h.digest, h.commits, h.rebuilt, h.entries, h.fed, coalesce(c.written, 0), ''
        FROM heads AS h LEFT JOIN counters AS c ON c.store = h.store WHERE h.store = wanted;
END $$;

CREATE FUNCTION enter_to_write(wanted uuid, keys text) RETURNS TABLE (
    seq bigint, digest text, commits bigint, rebuilt bigint, entries bigint, fed bigint, written bigint, xid text
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM set_config('lukasa.store', wanted::text, true), set_config('lukasa.keys', keys, true);
    RETURN QUERY SELECT h.seq, h.digest, h.commits, h.rebuilt, h.entries, h.fed, 0::bigint, pg_current_xact_id()::text
        FROM heads AS h WHERE h.store = wanted FOR NO KEY UPDATE;
END $$;

-- The account of a name, registered on first use. It runs as its owner, because no store is bound yet.
CREATE FUNCTION account_named(wanted text) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = lukasa, pg_temp AS $$
DECLARE found uuid;
BEGIN
    SELECT a.id INTO found FROM accounts AS a WHERE a.name = wanted;
    IF found IS NULL THEN
        INSERT INTO accounts (id, name) VALUES (gen_random_uuid(), wanted) ON CONFLICT (name) DO NOTHING;
        SELECT a.id INTO found FROM accounts AS a WHERE a.name = wanted;
    END IF;
    RETURN found;
END $$;

-- What is never rewritten. Triggers name the schema: a temporary table of somebody's must not stand in for the log.

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation'; END $$;

-- A log is kept, but for one that a move has not brought over whole.
CREATE FUNCTION only_unfinished() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM lukasa.heads AS h WHERE h.store = OLD.store AND h.moving <> '') THEN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN OLD;
END $$;

-- The application may end a move, and never say of whole memory that it is none: only an owner of the schema may.
CREATE FUNCTION only_finished() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.moving = '' AND NEW.moving <> '' AND NOT pg_has_role(
        current_user, (SELECT c.relowner FROM pg_class AS c WHERE c.oid = TG_RELID), 'MEMBER'
    ) THEN
        RAISE EXCEPTION 'this store is whole' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER heads_whole BEFORE UPDATE OF moving ON heads FOR EACH ROW EXECUTE FUNCTION only_finished();

CREATE TRIGGER events_never_emptied BEFORE TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER versions_never_emptied BEFORE TRUNCATE ON versions FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER redactions_never_emptied BEFORE TRUNCATE ON redactions FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER versions_fixed BEFORE UPDATE ON versions FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER events_kept BEFORE DELETE ON events FOR EACH ROW EXECUTE FUNCTION only_unfinished();
CREATE TRIGGER redactions_kept BEFORE DELETE ON redactions FOR EACH ROW EXECUTE FUNCTION only_unfinished();
CREATE TRIGGER redactions_fixed BEFORE UPDATE ON redactions FOR EACH ROW EXECUTE FUNCTION refuse();

-- The one change an event may see: emptied by a scrub that is in the log. A scrub's own event sees none.
CREATE FUNCTION only_emptied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (
        NEW.subject = '' AND NEW.detail = '{}' AND OLD.action <> 'scrub.executed' AND NEW.store = OLD.store
        AND NEW.seq = OLD.seq AND NEW.at = OLD.at AND NEW.principal = OLD.principal AND NEW.surface = OLD.surface
        AND NEW.transport = OLD.transport AND NEW.action = OLD.action AND NEW.previous = OLD.previous
        AND NEW.digest = OLD.digest AND OLD.seq <= (
            SELECT r.last FROM lukasa.redactions AS r WHERE r.store = OLD.store AND r.first <= OLD.seq
            ORDER BY r.first DESC LIMIT 1
        )
    ) IS NOT TRUE THEN
        RAISE EXCEPTION 'events is append-only' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER events_fixed BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION only_emptied();

CREATE FUNCTION note_anew() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM lukasa.unswept AS u WHERE u.store = NEW.store AND u.conversation = NEW.conversation;
    RETURN NEW;
END $$;

CREATE TRIGGER unswept_anew BEFORE INSERT ON unswept FOR EACH ROW EXECUTE FUNCTION note_anew();

CREATE FUNCTION only_by_scrubs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM lukasa.events AS e WHERE e.store = NEW.store AND e.seq = NEW.scrub AND e.action = 'scrub.executed'
    ) THEN
        RAISE EXCEPTION 'only a scrub redacts' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER redactions_by_scrubs BEFORE INSERT ON redactions FOR EACH ROW EXECUTE FUNCTION only_by_scrubs();

-- Remove a store that a move has not brought over whole, or of which nothing was ever kept. It runs as its owner, because
-- the application's role may remove no event.
CREATE FUNCTION clear_store(wanted uuid) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
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
    FOR name IN SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'store'
        WHERE c.relnamespace = 'lukasa'::regnamespace AND c.relkind = 'r' AND c.relname <> 'heads'
    LOOP
        EXECUTE format('DELETE FROM %I WHERE store = $1', name) USING wanted;
    END LOOP;
    DELETE FROM heads WHERE store = wanted;
END $$;

-- The application's role owns nothing and bypasses nothing.
GRANT USAGE ON SCHEMA lukasa TO lukasa_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lukasa TO lukasa_app;
REVOKE ALL ON accounts, migrations FROM lukasa_app;
GRANT SELECT ON migrations TO lukasa_app;
REVOKE DELETE ON events, redactions, heads FROM lukasa_app;
REVOKE UPDATE ON versions, redactions FROM lukasa_app;
GRANT USAGE ON SEQUENCE places TO lukasa_app;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA lukasa FROM PUBLIC;
GRANT EXECUTE ON FUNCTION bound_store(), bound_keys(), enter(uuid, text), enter_to_write(uuid, text), account_named(text),
    clear_store(uuid) TO lukasa_app;
