"""What an operator does with the database: roles, backups, vector indexes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

from lukasa.index.matches import NeighbourQuery, NewText
from lukasa.model.errors import StoreError
from lukasa.model.ids import new_id
from lukasa.model.selection import Filters, Selection
from lukasa.model.values import Kind
from lukasa.storage.operations import DropEntry, SaveEntry
from lukasa.storage.postgres import vector_indexes
from lukasa.storage.postgres.database import Database
from lukasa.storage.postgres.postgres_store import PostgresStore
from tests.helpers.postgres import Postgres
from tests.helpers.stores import MODEL, OPEN, WORK, commit, entry, put
from tools.cluster import binary


def one_store(database: Database) -> PostgresStore:
    account = database.account("default")
    return database.store(account, account=account, role="account", create=True)


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    database = Database.open(database_url)
    opened = one_store(database)
    yield opened
    assert opened.check() == []
    opened.close()
    database.close()


def as_user(url: str, name: str) -> str:
    """The same database for a role that has a password of its own."""
    parts = psycopg.conninfo.conninfo_to_dict(url)
    return f"postgresql://{name}:pass@{parts['host']}:{parts['port']}/{parts['dbname']}"


@pytest.fixture
def roles(postgres: Postgres, database_url: str) -> Iterator[tuple[str, str]]:
    """Two login roles: one that owns the database, and one that is a member of the application's role alone."""
    owner, server = f"owner_{new_id()[-12:]}", f"server_{new_id()[-12:]}"
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    with psycopg.connect(database_url, autocommit=True) as admin:
        for role in (owner, server):
            admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'pass'".encode())
        admin.execute(f"ALTER DATABASE {name} OWNER TO {owner}".encode())
    yield as_user(database_url, owner), as_user(database_url, server)
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(f"REASSIGN OWNED BY {owner} TO CURRENT_USER".encode())
        for role in (owner, server):
            admin.execute(f"DROP OWNED BY {role}".encode())
            admin.execute(f"DROP ROLE {role}".encode())


def test_an_owner_needs_no_superuser_and_a_server_no_owner(database_url: str, roles: tuple[str, str]) -> None:
    """A sentence says what is missing; with it, the owner makes the schema, and a server that owns nothing works."""
    owner, server = roles
    with pytest.raises(StoreError, match=r"permission denied to create extension.*CREATE EXTENSION vector"):
        Database.open(owner)
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute("CREATE EXTENSION vector")
        admin.execute(
            "DO $$ BEGIN CREATE ROLE lukasa_app; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        )
        name = psycopg.conninfo.conninfo_to_dict(owner)["user"]
        admin.execute(f"GRANT lukasa_app TO {name}".encode())
    first = Database.open(owner)
    remembered = entry("the owner made the tables")
    commit(one_store(first), put(remembered))
    first.close()
    with pytest.raises(StoreError, match="GRANT lukasa_app"):
        Database.open(server)
    with psycopg.connect(database_url, autocommit=True) as admin:
        name = psycopg.conninfo.conninfo_to_dict(server)["user"]
        admin.execute(f"GRANT lukasa_app TO {name}".encode())
    second = Database.open(server)
    its = one_store(second)
    commit(its, put(entry("a server writes")))
    assert its.texts([remembered.id]) == {remembered.id: "the owner made the tables"}
    assert not its.purge_files(), "it may not rewrite tables, and says so"
    second.close()


def test_a_dump_that_is_restored_holds_everything(postgres: Postgres, database_url: str) -> None:
    """pg_dump of a database in use gives a memory whose texts, log and indexes are whole."""
    database = Database.open(database_url)
    store = one_store(database)
    lantern = entry("the lantern is green")
    commit(store, put(lantern, np.array([1, 0, 0, 0])), *(put(entry(f"note {n}")) for n in range(40)))
    head = store.head()
    dump = subprocess.run([binary("pg_dump"), "-Fc", "-d", database_url], capture_output=True, check=True).stdout
    with postgres.database() as empty:
        command = [str(binary("pg_restore")), "--exit-on-error", "-d", empty]
        subprocess.run(command, input=dump, capture_output=True, check=True)
        again = Database.open(empty)
        restored = one_store(again)
        assert restored.head() == head
        assert restored.check() == []
        assert restored.keyword(OPEN, ["lantern"], 5).ids == [lantern.id]
        assert [match.id for match in restored.nearest(OPEN, MODEL, np.array([1, 0, 0, 0], dtype=np.float32), 1)] == [
            lantern.id
        ]
        commit(restored, put(entry("and it goes on")))
        again.close()
    database.close()


def embedded(count: int) -> list[SaveEntry]:
    """Entries with vectors all around; every tenth is procedural."""
    around = np.random.default_rng(5).standard_normal((count, MODEL.dimensions)).astype(np.float32)
    kinds = [Kind.PROCEDURAL if n % 10 == 0 else Kind.SEMANTIC for n in range(count)]
    return [
        put(entry(f"text {n}", kind=kind), vector) for n, (kind, vector) in enumerate(zip(kinds, around, strict=True))
    ]


def test_a_large_partition_gets_an_index_of_its_own_and_loses_it(
    store: PostgresStore, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index finds what comparing every vector finds, also new rows and with filters; a small partition has none."""
    monkeypatch.setattr(vector_indexes, "LARGE", 200)
    monkeypatch.setattr(vector_indexes, "SMALL", 100)
    saves = embedded(300)
    commit(store, *saves[:250])
    assert store.vector_index_due()
    assert store.index_vectors() == 1
    assert not store.vector_index_due()
    commit(store, *saves[250:])
    asked = np.array([0.3, -1.0, 0.2, 0.5], dtype=np.float32)
    exact = [match.id for match in store.nearest(OPEN, MODEL, asked, 10, exact=True)]
    assert [match.id for match in store.nearest(OPEN, MODEL, asked, 10)] == exact
    with psycopg.connect(database_url) as db:
        assert vector_index(db).startswith("vectors_"), "there is one"
    some = Selection(OPEN.scopes, filters=Filters(kinds=frozenset({Kind.PROCEDURAL})))
    of_kind = [match.id for match in store.nearest(some, MODEL, asked, 5, exact=True)]
    assert [match.id for match in store.nearest(some, MODEL, asked, 5)] == of_kind
    commit(store, *(DropEntry(save.entry.id, 1, "gone") for save in saves[:220]))
    assert store.vector_index_due()
    assert store.index_vectors() == 1
    left = [match.id for match in store.nearest(OPEN, MODEL, asked, 10)]
    assert left == [match.id for match in store.nearest(OPEN, MODEL, asked, 10, exact=True)]
    with psycopg.connect(database_url) as db:
        assert vector_index(db) == "", "nothing is left of it"


def vector_index(db: psycopg.Connection[Any]) -> str:
    """The name of the vector index; empty if there is none."""
    own = "SELECT indexname FROM pg_indexes WHERE schemaname = 'lukasa' AND indexname ~ '^vectors_[0-9a-f]{32}'"
    found = db.execute(own).fetchone()
    return found[0] if found else ""


def test_an_index_that_a_crash_left_half_made_is_made_again(
    store: PostgresStore, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An invalid index of that name is replaced, not trusted."""
    monkeypatch.setattr(vector_indexes, "LARGE", 50)
    commit(store, *embedded(60))
    name = vector_indexes.index_name(store.id, 1, 1)
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute(f'CREATE INDEX "{name}" ON lukasa.vectors (entry) WHERE false'.encode())
        db.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", (f"lukasa.{name}",))
    assert store.index_vectors() == 1
    with psycopg.connect(database_url) as db:
        made = db.execute(
            "SELECT indisvalid, pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid = %s::regclass",
            (f"lukasa.{name}",),
        ).fetchone()
    assert made is not None
    assert made[0]
    assert "hnsw" in made[1]


def test_a_batch_is_compared_as_single_texts_are(store: PostgresStore) -> None:
    """The vectors that a batch brings into the process give the neighbours that the database gives."""
    commit(store, *embedded(120))
    query = NeighbourQuery(WORK, "shared", MODEL, 0.5, 5)
    new = [NewText(f"new {n}", np.random.default_rng(n).standard_normal(4).astype(np.float32)) for n in range(9)]
    together = store.neighbours(query, new)
    alone = [store.neighbours(query, [one])[0] for one in new]
    assert [[(n.entry.id, round(n.cosine or 0, 5)) for n in those] for those in together] == [
        [(n.entry.id, round(n.cosine or 0, 5)) for n in those] for those in alone
    ]
    assert any(together)


def test_embeddings_stay_what_they_were(store: PostgresStore) -> None:
    """Vectors come back to the bit, whatever pgvector computes with."""
    vector = np.array([1e-20, -3.4e38, 0.1, -0.0], dtype=np.float32)
    saved = entry("odd numbers")
    commit(store, put(saved, vector))
    assert store.vectors([saved.id], MODEL)[saved.id].tobytes() == vector.tobytes()
