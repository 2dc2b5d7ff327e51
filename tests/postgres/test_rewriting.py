"""After a scrub, the words are in no data file of the server, and at last not in its log of writes either."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from lukasa.model.ids import new_id
from lukasa.model.scrub import Extent, Mode, manifest_digest
from lukasa.model.transcript import Transcript, Utterance
from lukasa.storage.operations import KeepUtterances, SaveNamed, SaveTranscript, Scrub
from lukasa.storage.port import Store
from lukasa.storage.postgres import rewriting
from lukasa.storage.postgres.database import Database
from lukasa.storage.postgres.postgres_store import PostgresStore
from tests.helpers.postgres import Postgres, alone
from tests.helpers.stores import NOW, WORK, change, commit, entry, named, put, vector_of

EXTENT = Extent("w1", Mode.FULL, WORK, whole=True, copies=True)
WORDS = ("zanzibarquux", "timbuktuquux", "samarkandquux", "trebizondquux")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database.open(database_url)
    yield opened
    opened.close()


def made(database: Database) -> PostgresStore:
    return database.store(new_id(), account=new_id(), role="workspace", create=True)


def fill(store: Store) -> None:
    """Words in an entry, in its history, in a named entry and in a message."""
    first = entry(f"a lantern of {WORDS[0]}", tags=(WORDS[0],))
    commit(store, put(first, vector_of(first.content)), *(put(entry(f"{WORDS[0]} {n}")) for n in range(40)))
    commit(store, change(first, content=f"a lantern of {WORDS[1]}"))
    commit(store, SaveNamed(named(body=f"Speak of {WORDS[2]}."), 0))
    transcript = Transcript(new_id(), "session.jsonl", "messages", WORDS[3], NOW, NOW)
    commit(store, SaveTranscript(transcript, 0))
    commit(store, KeepUtterances(transcript.id, (Utterance("m1", "user", WORDS[3], 0),)))


def scrub(store: Store) -> None:
    commit(store, Scrub(EXTENT, manifest_digest(EXTENT, store.holdings(EXTENT)), {"operator": "ada"}))


def holders(server: Postgres) -> dict[str, set[str]]:
    """By word, the folders of the server's data that hold it in a file."""
    found: dict[str, set[str]] = {}
    for file in server.cluster.data.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            for word in WORDS:
                if word.encode() in data:
                    found.setdefault(word, set()).add(file.relative_to(server.cluster.data).parts[0])
    return found


def test_the_words_leave_the_files() -> None:
    """PostgreSQL, M3: after a scrub no data file holds them, statistics included; the log of writes until it is cut."""
    with alone(wal_recycle="off") as server, server.database() as url:
        database = Database.open(url)
        store = made(database)
        fill(store)
        server.run("CHECKPOINT")
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("ANALYZE")
            db.execute("CHECKPOINT")
            assert all({"base", "pg_wal"} <= holders(server)[word] for word in WORDS)
            scrub(store)
            assert store.purge_files()
            db.execute("CHECKPOINT")
            assert {folder for folders in holders(server).values() for folder in folders} == {"pg_wal"}
            db.execute("SELECT pg_switch_wal()")
            db.execute("CHECKPOINT")
            assert holders(server) == {}
        assert store.check() == []
        database.close()


def test_a_row_that_somebody_still_sees_is_not_called_gone(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL: with an older transaction open, the rewritten tables hold the rows; it is done on a later opening."""
    monkeypatch.setattr(rewriting, "_WAIT", 0.5)
    store = made(database)
    fill(store)
    with psycopg.connect(database_url) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        assert reader.execute("SELECT count(*) > 0 FROM lukasa.migrations").fetchone() == (True,)
        scrub(store)
        assert not store.purge_files()
        assert noted(database_url) == [store.id]
    monkeypatch.undo()
    database.store(store.id, account=new_id(), role="workspace")
    assert noted(database_url) == []


def noted(url: str) -> list[str]:
    """The stores that still have to clear their files."""
    with psycopg.connect(url) as db:
        return [str(id) for (id,) in db.execute("SELECT store FROM lukasa.unswept WHERE conversation = ''")]


def test_a_large_database_waits_for_its_operator(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL: no scrub locks a large database; once asked for, one rewriting is enough for all stores."""
    monkeypatch.setattr(rewriting, "LARGEST", 1)
    stores = [made(database), made(database)]
    for store in stores:
        fill(store)
        scrub(store)
        assert not store.purge_files()
    assert set(noted(database_url)) == {store.id for store in stores}
    assert stores[0].purge_files(large=True)
    assert noted(database_url) == []


def test_a_table_that_others_use_is_not_waited_for_long(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL: a scrub gives up when others hold a table, and its note stays."""
    monkeypatch.setattr(rewriting, "_WAIT", 0.05)
    store = made(database)
    fill(store)
    scrub(store)
    with psycopg.connect(database_url) as other:
        other.execute("LOCK TABLE lukasa.entries IN ACCESS SHARE MODE")
        assert not store.purge_files()
        assert noted(database_url) == [store.id]
    monkeypatch.undo()
    assert store.purge_files()


def test_another_scrub_meanwhile_is_noted_anew(database: Database, database_url: str) -> None:
    """PostgreSQL: a rewriting that began before a scrub does not count for it."""
    store = made(database)
    fill(store)
    scrub(store)
    with database.reading(store.id) as db:
        before = db.value("SELECT place FROM unswept WHERE store = %s")
    scrub(store)
    with psycopg.connect(database_url) as admin:
        admin.execute("DELETE FROM lukasa.unswept WHERE store = %s AND place <= %s", (store.id, before))
    assert noted(database_url) == [store.id]
    assert store.purge_files()


def test_who_owns_no_table_scrubs_and_rewrites_nothing(
    database: Database, database_url: str, postgres: Postgres
) -> None:
    """PostgreSQL: a server whose user is not the owner removes the rows; the owner's next opening clears the files."""
    store = made(database)
    fill(store)
    role = f"web_{new_id().replace('-', '')}"
    postgres.run(f"CREATE ROLE {role} LOGIN PASSWORD 'of-a-test'")
    postgres.run(f"GRANT lukasa_app TO {role}")
    parts = urlsplit(database_url)
    web = Database.open(parts._replace(netloc=f"{role}:of-a-test@{parts.hostname}:{parts.port}").geturl())
    try:
        used = web.store(store.id, account=new_id(), role="workspace")
        scrub(used)
        assert not used.purge_files()
        assert not used.purge_files(large=True)
        assert used.check() == []
        used.rebuild()
        assert used.find_utterances([WORDS[3]], 9) == []
        assert noted(database_url) == [store.id]
    finally:
        web.close()
        postgres.run(f"DROP ROLE {role}")
    assert database.store(store.id, account=new_id(), role="workspace").check() == []
    assert noted(database_url) == []
