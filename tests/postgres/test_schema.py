"""The schema: one process makes it while others wait, two versions share it, and a step that fails leaves nothing."""

from __future__ import annotations

from functools import partial

import psycopg
import pytest
from psycopg import conninfo, errors

from lukasa.model.errors import StoreError, StoreNewer
from lukasa.model.ids import new_id
from lukasa.storage.postgres.database import Database, Migration, migrations
from lukasa.storage.postgres.postgres_store import PostgresStore
from tests.helpers.postgres import Postgres, alone
from tests.helpers.processes import finish, fork
from tests.helpers.stores import OPEN, commit, entry, put

NEXT = migrations()[-1].number + 1


def write(url: str, account: str) -> None:
    """What each of several processes does: open the database, make a store of its own, and write to it."""
    database = Database.open(url)
    store = database.store(new_id(), account=account, role="workspace", create=True)
    commit(store, put(entry("first")))
    assert store.check() == []
    database.close()


def applied(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [number for (number,) in connection.execute("SELECT number FROM lukasa.migrations ORDER BY number")]


@pytest.mark.parametrize("processes", [2, 6])
def test_processes_that_open_an_empty_database_at_once_make_one_schema(database_url: str, processes: int) -> None:
    """X3: one of them migrates, the others wait for it, and all of them work."""
    account = new_id()
    children = [fork(partial(write, database_url, account)) for _ in range(processes)]
    assert [finish(pid) for pid in children] == [0] * processes
    assert applied(database_url) == [migration.number for migration in migrations()]
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM lukasa.heads").fetchone() == (processes,)


def newer(readable_by: int, text: str = "ALTER TABLE entries ADD COLUMN mood text") -> tuple[Migration, ...]:
    """The migrations of the next version."""
    return (*migrations(), Migration(NEXT, "mood", readable_by, text))


def opened(url: str, id: str, known: tuple[Migration, ...] | None = None) -> tuple[Database, PostgresStore]:
    database = Database.open(url, known=known)
    return database, database.store(id, account=new_id(), role="workspace", create=True)


def test_two_versions_work_on_one_database(database_url: str) -> None:
    """X3: the next version adds a column that this one can work without: both write and read meanwhile, and this one
    can be started anew."""
    id = new_id()
    old, of_old = opened(database_url, id)
    commit(of_old, put(entry("by the old one")))
    new, of_new = opened(database_url, id, newer(NEXT - 1))
    commit(of_new, put(entry("by the new one")))
    commit(of_old, put(entry("by the old one, later")))
    again, of_again = opened(database_url, id)
    commit(of_again, put(entry("by the old one, started anew")))
    assert applied(database_url)[-1] == NEXT
    for store in (of_old, of_new, of_again):
        assert len(store.find(OPEN)) == 4
        assert store.check() == []
    for database in (old, new, again):
        database.close()


def test_a_schema_that_this_version_cannot_read_is_refused(database_url: str) -> None:
    """X3: a newer schema that does not say otherwise is not touched, and the error says to upgrade."""
    new, store = opened(database_url, new_id(), newer(NEXT))
    commit(store, put(entry("by the new one")))
    with pytest.raises(StoreNewer) as refused:
        Database.open(database_url)
    assert "upgrade Lukasa" in refused.value.fix
    assert [one.content for one in store.find(OPEN)] == ["by the new one"]
    new.close()


def test_a_step_that_fails_leaves_nothing(database_url: str) -> None:
    """X3: a migration that fails half way is undone whole; the version before goes on, and a mended one succeeds."""
    id = new_id()
    old, store = opened(database_url, id)
    broken = "ALTER TABLE entries ADD COLUMN mood text; CREATE TABLE moods (n int); SELECT 1 / 0"
    with pytest.raises(StoreError):
        Database.open(database_url, known=newer(NEXT, broken))
    assert applied(database_url)[-1] == NEXT - 1
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT to_regclass('lukasa.moods')").fetchone() == (None,)
        with pytest.raises(errors.UndefinedColumn):
            connection.execute("SELECT mood FROM lukasa.entries")
    commit(store, put(entry("goes on")))
    old.close()
    new, _ = opened(database_url, id, newer(NEXT))
    assert applied(database_url)[-1] == NEXT
    new.close()


def test_a_first_step_that_fails_leaves_an_empty_database(database_url: str) -> None:
    """X3: the very first migration is one transaction too: afterwards there is no schema, and it can be tried again."""
    (first, *_) = migrations()
    with pytest.raises(StoreError):
        Database.open(database_url, known=(first._replace(text=f"{first.text}; SELECT 1 / 0"),))
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT to_regnamespace('lukasa')").fetchone() == (None,)
    Database.open(database_url).close()


def test_another_migration_under_the_same_number_is_refused(database_url: str) -> None:
    """X3: a database of a build that differs in a step is not written to."""
    Database.open(database_url).close()
    (first, *rest) = migrations()
    with pytest.raises(StoreError, match="is not the one of this version"):
        Database.open(database_url, known=(first._replace(text=f"{first.text}\n"), *rest))


def test_a_user_who_may_not_set_up_is_told_what_to_ask_for(postgres: Postgres, database_url: str) -> None:
    """X3: a login without rights gets a sentence that names what an administrator must run; nothing is left behind."""
    name = f"guest_{new_id().replace('-', '')}"
    postgres.run(f"CREATE ROLE {name} LOGIN PASSWORD 'guest'")
    try:
        with pytest.raises(StoreError) as refused:
            Database.open(conninfo_url(database_url, name, "guest"))
        assert "CREATE EXTENSION vector" in refused.value.fix
        with psycopg.connect(database_url) as connection:
            assert connection.execute("SELECT to_regnamespace('lukasa')").fetchone() == (None,)
    finally:
        postgres.run(f"DROP ROLE {name}")


def conninfo_url(url: str, user: str, password: str) -> str:
    parts = conninfo.conninfo_to_dict(url)
    return f"postgresql://{user}:{password}@{parts['host']}:{parts['port']}/{parts['dbname']}"


def test_a_server_without_pgvector_says_what_to_install() -> None:
    """X3: the error names the extension and what to do, and nothing of a schema is left behind."""
    with alone(extension_control_path="/nowhere") as server:
        url = server.cluster.url()
        with pytest.raises(StoreError) as refused:
            Database.open(url)
        assert "vector" in refused.value.message
        assert "install pgvector" in refused.value.fix
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT to_regnamespace('lukasa')").fetchone() == (None,)
