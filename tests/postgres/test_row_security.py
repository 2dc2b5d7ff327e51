"""Row-level security is a second belt: it holds without any condition of Lukasa's own, in every table there is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import conninfo, errors, sql

from lukasa.model.entry import Entry
from lukasa.model.errors import LukasaError
from lukasa.model.ids import new_id
from lukasa.model.item import ItemAddress
from lukasa.model.selection import Selection
from lukasa.model.telemetry import TelemetryQuery
from lukasa.model.values import State, Visibility
from lukasa.storage.port import ItemQuery
from lukasa.storage.postgres import sql as statements
from lukasa.storage.postgres import vector_indexes
from lukasa.storage.postgres.database import Database
from lukasa.storage.postgres.execute import Handle
from lukasa.storage.postgres.postgres_store import PostgresStore
from tests.helpers.full_store import fill, tenant_scope
from tests.helpers.postgres import Postgres
from tests.helpers.stores import MODEL, NOW, WORK, commit, entry, move, put, vector_of

Connection = psycopg.Connection[Any]
EVERYTHING = Selection((WORK, tenant_scope("acme"), tenant_scope("evil")), frozenset(Visibility), None)


@dataclass
class Two:
    """A database with two stores, both with rows in every table, and a login that has the application's role alone."""

    url: str
    login: str
    database: Database
    a: PostgresStore
    b: PostgresStore
    of_a: dict[str, Entry]
    of_b: dict[str, Entry]
    tables: list[str]

    @contextmanager
    def bound(self, store: str | None, keys: str = "") -> Iterator[Connection]:
        """Give a connection of the application, in a transaction that is bound to a store, and undone at the end."""
        with psycopg.connect(self.login, options="-c search_path=lukasa,public") as connection:
            if store is not None:
                connection.execute("SELECT enter(%s::uuid, %s)", (store, keys))
            yield connection
            connection.rollback()


@pytest.fixture(scope="module")
def two(postgres: Postgres) -> Iterator[Two]:
    with postgres.database() as url, pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_indexes, "LARGE", 1)
        opened = Database.open(url)
        a, b = (opened.store(new_id(), account=new_id(), role="workspace", create=True) for _ in range(2))
        of_a, of_b = fill(a, "mill"), fill(b, "forge")
        for store in (a, b):
            assert store.index_vectors() > 0
            store.part()
        login = f"app_{new_id().replace('-', '')}"
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(
                sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'app' IN ROLE lukasa_app INHERIT").format(sql.Identifier(login))
            )
            tables = [name for (name,) in admin.execute(TENANTS)]
        yield Two(url, conninfo.make_conninfo(url, user=login, password="app"), opened, a, b, of_a, of_b, tables)
        assert a.check() == b.check() == []
        opened.close()
    postgres.run(f"DROP ROLE {login}")


TENANTS = """
SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'store'
WHERE c.relnamespace = 'lukasa'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1
"""


def ask(connection: Connection, statement: str, table: str, *values: Any) -> psycopg.Cursor[Any]:
    return connection.execute(sql.SQL(statement).format(sql.Identifier("lukasa", table)), values)


def rows(connection: Connection, table: str, store: str) -> int:
    found = ask(connection, "SELECT count(*) FROM {} WHERE store = %s::uuid", table, store).fetchone()
    return int(found[0]) if found else 0


def test_every_table_has_rows_of_both(two: Two) -> None:
    """X3: a table that real use does not fill would prove nothing here; a new table has to be filled first."""
    with psycopg.connect(two.url) as admin:
        empty = [t for t in two.tables for store in (two.a, two.b) if not rows(admin, t, store.id)]
        others = {name for (name,) in admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'lukasa'")}
    assert empty == []
    assert others - set(two.tables) == {"accounts", "migrations"}  # rows of no store; see the last tests


def test_without_a_condition_no_row_of_another_store_is_seen(two: Two) -> None:
    """X3: `SELECT *` in every table shows the bound store alone, and to a session bound to none it shows nothing."""
    for table in two.tables:
        with two.bound(two.a.id) as mine, two.bound(None) as nobody, psycopg.connect(two.url) as admin:
            seen = {str(store) for (store,) in ask(mine, "SELECT store FROM {}", table)}
            assert seen == {two.a.id}, table
            assert len(ask(mine, "SELECT * FROM {}", table).fetchall()) == rows(admin, table, two.a.id), table
            assert ask(nobody, "SELECT * FROM {}", table).fetchall() == [], table


def test_without_a_condition_no_row_of_another_store_is_changed(two: Two) -> None:
    """X3: in every table, UPDATE and DELETE of all rows reach those of the bound store, and none of the other's."""
    for table in two.tables:
        for statement in ("UPDATE {} SET store = store", "DELETE FROM {}"):
            with two.bound(two.a.id) as mine:
                try:
                    changed = ask(mine, statement, table).rowcount
                except (errors.InsufficientPrivilege, errors.RestrictViolation, errors.ForeignKeyViolation):
                    continue  # not even its own: see the next statement for the other's
                with psycopg.connect(two.url) as admin:
                    assert changed == rows(admin, table, two.a.id), (table, statement)
        for statement in (
            "UPDATE {} SET store = store WHERE store = %s::uuid",
            "DELETE FROM {} WHERE store = %s::uuid",
        ):
            with two.bound(two.a.id) as mine:
                try:
                    assert ask(mine, statement, table, two.b.id).rowcount == 0, (table, statement)
                except errors.InsufficientPrivilege:
                    continue
        with two.bound(None) as nobody:
            try:
                assert ask(nobody, "UPDATE {} SET store = store", table).rowcount == 0, table
            except errors.InsufficientPrivilege:
                continue


def test_nothing_is_written_for_another_store(two: Two) -> None:
    """X3: in every table, a row with another store's id is refused, whether it is new or moved there."""
    copied = "INSERT INTO {0} SELECT (jsonb_populate_record(t, jsonb_build_object('store', %s::text))).* FROM {0} AS t"
    for table in two.tables:
        for statement in (copied, "UPDATE {0} SET store = %s::uuid"):
            with two.bound(two.a.id) as mine:
                with pytest.raises((errors.InsufficientPrivilege, errors.RestrictViolation)) as refused:
                    ask(mine, statement, table, two.b.id)
                if statement is copied and table != "redactions":  # there, a trigger refuses it before
                    assert "row-level security" in str(refused.value), table


def test_the_owner_of_the_tables_is_bound_too(two: Two) -> None:
    """X3: row-level security is forced: a role that owns the tables, and is no superuser, sees no other store."""
    with psycopg.connect(two.url) as admin:
        admin.execute("CREATE ROLE owning NOLOGIN")
        admin.execute("GRANT USAGE, CREATE ON SCHEMA lukasa TO owning")
        admin.execute("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lukasa TO owning")
        for table in two.tables:
            ask(admin, "ALTER TABLE {} OWNER TO owning", table)
        admin.execute("SET ROLE owning")
        for table in two.tables:
            assert ask(admin, "SELECT * FROM {}", table).fetchall() == [], table
        admin.execute("SELECT set_config('lukasa.store', %s, true)", (two.a.id,))
        for table in two.tables:
            assert {str(row[0]) for row in ask(admin, "SELECT store FROM {}", table)} == {two.a.id}, table
        admin.rollback()


FORBIDDEN = {
    "another role": "SET ROLE postgres",
    "another session": "SET SESSION AUTHORIZATION postgres",
    "no triggers": "SET session_replication_role = replica",
    "a policy": "CREATE POLICY open ON lukasa.entries USING (true)",
    "another policy": "ALTER POLICY tenant ON lukasa.entries USING (true)",
    "no policy": "DROP POLICY tenant ON lukasa.entries",
    "no row security": "ALTER TABLE lukasa.entries DISABLE ROW LEVEL SECURITY",
    "not forced": "ALTER TABLE lukasa.entries NO FORCE ROW LEVEL SECURITY",
    "a trigger less": "ALTER TABLE lukasa.events DISABLE TRIGGER events_kept",
    "a trigger more": "CREATE TRIGGER t BEFORE INSERT ON lukasa.entries FOR EACH ROW EXECUTE FUNCTION lukasa.refuse()",
    "another function": "CREATE OR REPLACE FUNCTION lukasa.bound_store() RETURNS uuid LANGUAGE sql AS 'SELECT NULL'",
    "a table": "CREATE TABLE lukasa.mine (n int)",
    "no table": "DROP TABLE lukasa.entries",
    "all rows": "TRUNCATE lukasa.entries CASCADE",
    "another owner": "ALTER TABLE lukasa.entries OWNER TO lukasa_app",
    "accounts": "SELECT * FROM lukasa.accounts",
    "an account": "INSERT INTO lukasa.accounts VALUES (gen_random_uuid(), 'x')",
    "a migration": "INSERT INTO lukasa.migrations VALUES (99, 'x', 'x', 99, 'x')",
    "a lesser log": "DELETE FROM lukasa.events",
    "another role's right": "GRANT lukasa_app TO CURRENT_USER WITH ADMIN OPTION",
    "a role": "CREATE ROLE mine SUPERUSER",
    "more of itself": "ALTER ROLE lukasa_app BYPASSRLS",
    "files of the server": "COPY lukasa.entries TO '/tmp/entries'",
    "programs of the server": "COPY lukasa.entries TO PROGRAM 'cat'",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_the_application_may_not(two: Two, what: str) -> None:
    """X3: a login with the application's role cannot get round the policies, the triggers or the table of accounts."""
    with two.bound(two.a.id) as mine, pytest.raises((errors.InsufficientPrivilege, errors.InvalidGrantOperation)):
        mine.execute(FORBIDDEN[what].encode())


def test_the_application_asks_for_no_more_rows(two: Two) -> None:
    """X3: with row security switched off for a session, PostgreSQL refuses its statements instead of showing all."""
    with two.bound(two.a.id) as mine:
        mine.execute("SET row_security = off")
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            mine.execute("SELECT * FROM lukasa.entries")


def test_the_application_is_nobody_else(two: Two) -> None:
    """X3: its role is no superuser, bypasses nothing, owns nothing, may log in nowhere and is a member of no role."""
    with psycopg.connect(two.url) as admin:
        told = admin.execute(
            "SELECT rolsuper, rolbypassrls, rolcanlogin, rolcreaterole, rolcreatedb, rolreplication FROM pg_roles "
            "WHERE rolname = 'lukasa_app'"
        ).fetchall()
        owned = admin.execute("SELECT count(*) FROM pg_class WHERE relowner = 'lukasa_app'::regrole").fetchone()
        member = admin.execute("SELECT count(*) FROM pg_auth_members WHERE member = 'lukasa_app'::regrole").fetchone()
        definers = admin.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'lukasa'::regnamespace AND prosecdef"
        )
        assert sorted(name for (name,) in definers) == ["account_named", "clear_store"]  # the latter: unfinished moves
    assert (told, owned, member) == ([(False,) * 6], (0,), (0,))


def test_the_policy_is_on_every_table(two: Two) -> None:
    """X3: enabled and forced on each table with a store; a table with scope keys compares these too."""
    with psycopg.connect(two.url) as admin:
        found = admin.execute(
            "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity, p.cmd, p.qual = p.with_check, "
            "p.qual LIKE '%%bound_keys%%' FROM pg_class AS c JOIN pg_policies AS p ON p.tablename = c.relname "
            "AND p.schemaname = 'lukasa' WHERE c.relnamespace = 'lukasa'::regnamespace ORDER BY 1"
        ).fetchall()
    anchored = {"scopes", "partitions", "entries", "versions"}
    expected = [(table, True, "ALL", True, table in anchored) for table in two.tables]
    assert [one for one in found if one[3]] == expected
    # Who owns the tables rewrites those that held what was scrubbed, and asks for which stores there are some.
    assert [one[0] for one in found if not one[3]] == ["unswept"]


# The application without its own conditions

OWN = re.compile(r"(?<![a-z])(?:\w+\.)?store = %s(?:::uuid)?")


def reads(store: PostgresStore, mine: dict[str, Entry], theirs: dict[str, Entry]) -> list[Any]:
    """What a store answers to questions of every kind, for its own and for another's ids, words and places."""
    ids = [one.id for one in (*mine.values(), *theirs.values())]
    places = [ItemAddress(("users", word), "prefs") for word in ("mill", "forge")]
    return [
        sorted(store.entries(ids)),
        sorted(store.texts(ids).values()),
        sorted(store.candidates(ids)),
        [one.content for one in store.find(EVERYTHING)],
        [row.id for row in store.keyword(EVERYTHING, ["mill", "forge", "grinds"], 50).rows],
        [match.candidate.id for match in store.nearest(EVERYTHING, MODEL, vector_of("x"), 50, exact=True)],
        [match.candidate.id for match in store.nearest(EVERYTHING, MODEL, vector_of("x"), 50)],
        [len(store.versions(id)) for id in ids],
        sorted(store.vectors(ids, MODEL)),
        sorted(store.access(ids)),
        sorted(store.linked(ids)),
        store.rivals(ids),
        store.confirmations(ids),
        store.gone(ids),
        [(str(one.scope), dict(one.states)) for one in store.census()],
        store.arrivals(),
        store.shares(NOW),
        store.withdrawn(limit=9),
        [page.body for page in store.named()],
        store.list_documents(),
        store.collections(),
        store.find_passages(["keel", "crane"], 9),
        store.document_sources(["style"]),
        store.watches(),
        [one.name for one in store.channels()],
        [one.id for one in store.conversations(archived=True)],
        [one.name for one in store.workspaces()],
        [found.item.value for found in store.find_items(ItemQuery(()))],
        store.item_namespaces(),
        [place in store.items(places) for place in places],
        [one.id for one in store.jobs()],
        [store.steps(one.id) for one in store.jobs()],
        [one.title for one in store.transcripts()],
        [found.utterance.text for found in store.find_utterances(["deploy"], 9)],
        [one.change for one in store.amendments()],
        [one.name for one in store.grants()],
        [store.answer(word) is not None for word in ("mill", "forge")],
        store.spent("2000-01-01"),
        len(store.points(TelemetryQuery())),
        [(event.seq, event.action, event.subject) for event in store.events()],
        store.head(),
        store.check(),
    ]


def unconditioned(call: Callable[..., Any]) -> Callable[..., Any]:
    def asked(self: Handle, statement: str, *values: Any) -> Any:
        return call(self, OWN.sub("%s::uuid IS NOT NULL", statement), *values)

    return asked


@contextmanager
def without_conditions() -> Iterator[None]:
    """Take the store's id out of the conditions of every statement; only row-level security is left."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("all", "run"):
            patch.setattr(Handle, name, unconditioned(getattr(Handle, name)))
        yield


def test_without_its_own_conditions_a_store_answers_the_same(two: Two) -> None:
    """X3: a double whose statements name no store still sees its own alone, whatever it is asked."""
    told = [reads(two.a, two.of_a, two.of_b), reads(two.b, two.of_b, two.of_a)]
    with without_conditions():
        fresh = Database.open(two.url)  # with no answers from before
        a, b = (fresh.store(one.id, account=new_id(), role="workspace") for one in (two.a, two.b))
        assert [reads(a, two.of_a, two.of_b), reads(b, two.of_b, two.of_a)] == told
        fresh.close()


def test_the_double_would_see_others_without_row_security(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: as a superuser, whom no policy binds, the same double shows rows of the other store."""
    told = reads(two.a, two.of_a, two.of_b)
    monkeypatch.setattr(statements, "SETTINGS", [one for one in statements.SETTINGS if "SET ROLE" not in one])
    fresh = Database.open(two.url)
    store = PostgresStore(fresh, two.a.id, "workspace")
    with without_conditions():
        seen = reads(store, two.of_a, two.of_b)
    fresh.close()
    different = [number for number, (one, two_) in enumerate(zip(told, seen, strict=True)) if one != two_]
    assert len(different) > len(told) // 2


# Scope keys


def test_a_store_within_keys_shows_no_row_of_another_value(two: Two) -> None:
    """S4: bound to one organisation, no table with scope keys shows a row of another; rows of no organisation stay."""
    for table in ("scopes", "partitions", "entries", "versions"):
        with two.bound(two.a.id, '{"org_id":"acme"}') as bound, two.bound(two.a.id) as whole:
            seen = {row[0].get("org_id") for row in ask(bound, "SELECT keys FROM {}", table)}
            there = {row[0].get("org_id") for row in ask(whole, "SELECT keys FROM {}", table)}
            assert (seen, there) == ({None, "acme"}, {None, "acme", "evil"}), table
            if table != "versions":  # which nobody may update
                changed = ask(bound, "UPDATE {} SET store = store WHERE keys ->> 'org_id' = 'evil'", table)
                assert changed.rowcount == 0, table


def test_a_store_within_keys_finds_nothing_of_another_value(two: Two) -> None:
    """S4: whichever way it is asked, by id, word, vector or list; and it writes nothing there."""
    acme, evil = two.a.within({"org_id": "acme"}), two.of_a["evil"]
    assert two.a.within({}) is acme.within({}) is two.a
    everywhere = reads(acme, two.of_a, two.of_b)
    told = reads(two.a, two.of_a, two.of_b)
    assert evil.id in str(told[:14])
    assert evil.id not in str(everywhere[:14])
    assert evil.content not in str(everywhere[:-2])
    assert acme.entries([two.of_a["acme"].id, two.of_a["new"].id]).keys() == {two.of_a["acme"].id, two.of_a["new"].id}
    assert acme.twin(evil.scope, evil.owner, "x") is None
    assert acme.size(Selection((evil.scope,))) == 0
    assert acme.check() == []  # of the whole store
    for write in (put(entry("for them", scope=evil.scope)), move(evil, State.FORGOTTEN)):
        with pytest.raises(LukasaError):
            commit(acme, write)
    assert two.a.entries([evil.id])[evil.id].state == State.ACTIVE
