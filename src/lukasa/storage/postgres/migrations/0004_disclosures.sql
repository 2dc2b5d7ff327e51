-- The disclosure ledger: one row for each text that went to an agent. Its items are packed into one text,
-- [id, version, tokens, …], because a row for each entry would take more than twice the space.
-- readable by: 3

CREATE TABLE disclosures (
    store uuid NOT NULL,
    place bigint NOT NULL DEFAULT nextval('places'),
    at bigint NOT NULL,
    principal text COLLATE "C" NOT NULL,
    surface text COLLATE "C" NOT NULL,
    transport text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    workspace text COLLATE "C" NOT NULL,
    verb text COLLATE "C" NOT NULL,
    tokens bigint NOT NULL,
    items text COLLATE "C" NOT NULL,
    PRIMARY KEY (store, place)
);

CREATE INDEX disclosures_at ON disclosures (store, at, place);

ALTER TABLE disclosures ENABLE ROW LEVEL SECURITY;
ALTER TABLE disclosures FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON disclosures
    USING (store = (SELECT lukasa.bound_store())) WITH CHECK (store = (SELECT lukasa.bound_store()));
GRANT SELECT, INSERT, UPDATE, DELETE ON disclosures TO lukasa_app;
