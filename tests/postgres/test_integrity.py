"""Somebody edits the database behind our back: it is seen, nothing altered is shown, and derived state is made anew."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from lukasa.model.entry import Entry
from lukasa.model.errors import Damaged, StoreDamaged
from lukasa.model.ids import new_id
from lukasa.model.item import Item, ItemAddress
from lukasa.model.selection import Filters, Selection
from lukasa.model.values import State
from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.operations import (
    Embedding,
    SaveDocument,
    SaveEmbedding,
    SaveItem,
    SaveNamed,
    Transaction,
)
from lukasa.storage.port import Store
from lukasa.storage.postgres import integrity
from lukasa.storage.postgres.database import Database
from lukasa.storage.postgres.postgres_store import PostgresStore
from tests.helpers.cli import Shell
from tests.helpers.postgres import Postgres
from tests.helpers.stores import (
    ACTOR,
    MODEL,
    NOW,
    OPEN,
    WORK,
    change,
    commit,
    document,
    entry,
    move,
    named,
    put,
    stored,
    vector_of,
)

WORDS = "cat dog tea violin rain stone bread lamp".split()
Tamper = Callable[[str], None]


@pytest.fixture
def made() -> list[Entry]:
    dice = random.Random(7)
    return [entry(f"{' '.join(dice.choices(WORDS, k=6))} n{i}") for i in range(60)]


def fill(store: Store, made: list[Entry]) -> None:
    commit(store, *(put(e, vector_of(e.content)) for e in made))
    changed = [(e, e.content + " changed") for e in made[10:15]]
    commit(
        store,
        *(move(e, State.FORGOTTEN) for e in made[:10]),
        *(change(e, content=text) for e, text in changed),
        *(SaveEmbedding(e.id, 2, Embedding(MODEL, vector_of(text))) for e, text in changed),
    )


@pytest.fixture(scope="module")
def url(postgres: Postgres) -> Iterator[str]:
    """One database for all these tests, each of which has a store of its own in it."""
    with postgres.database() as url:
        yield url


@pytest.fixture(scope="module")
def database(url: str) -> Iterator[Database]:
    opened = Database.open(url)
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database, made: list[Entry]) -> Iterator[PostgresStore]:
    store = database.store(new_id(), account=new_id(), role="workspace", create=True)
    fill(store, made)
    assert store.check() == []
    yield store
    store.close()


@pytest.fixture
def tamper(url: str, store: PostgresStore) -> Tamper:
    """Run statements as the superuser, with no trigger and no foreign key in the way; %(s)s is the store."""

    def run(statements: str) -> None:
        with psycopg.connect(url, cursor_factory=psycopg.ClientCursor) as db:
            db.execute("SET search_path = lukasa, public")
            db.execute("SET session_replication_role = replica")
            db.execute(statements.encode(), {"s": store.id})

    return run


EDITS = {
    "edited": "UPDATE events SET subject = 'nobody' WHERE store = %(s)s AND seq = 5",
    "detail edited": "UPDATE events SET detail = replace(detail, 'said so', 'said no') WHERE store = %(s)s AND seq = 5",
    "time edited": "UPDATE events SET at = replace(at, '2026', '2025') WHERE store = %(s)s AND seq = 5",
    "deleted": "DELETE FROM events WHERE store = %(s)s AND seq = 5",
    "first deleted": "DELETE FROM events WHERE store = %(s)s AND seq = 1",
    "cut off": "DELETE FROM events WHERE store = %(s)s AND seq > 50",
    "emptied": "DELETE FROM events WHERE store = %(s)s",
    "swapped": "UPDATE events SET seq = -5 WHERE store = %(s)s AND seq = 5; "
    "UPDATE events SET seq = 5 WHERE store = %(s)s AND seq = 6; "
    "UPDATE events SET seq = 6 WHERE store = %(s)s AND seq = -5",
    "forged": "INSERT INTO events SELECT store, 9999, at, principal, surface, transport, action, subject, detail, "
    "previous, digest FROM events WHERE store = %(s)s AND seq = 5",
    "head moved": "UPDATE heads SET seq = 5, digest = (SELECT digest FROM events WHERE store = %(s)s AND seq = 5) "
    "WHERE store = %(s)s",
    "not json": "UPDATE events SET detail = '{' WHERE store = %(s)s AND seq = 5",
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_changed_log_does_not_verify(store: PostgresStore, tamper: Tamper, edit: str) -> None:
    """PostgreSQL, X2, T59: edits, deletions, reordering, forgeries and a missing tail are seen, and never rebuilt."""
    tamper(EDITS[edit])
    assert "chain" in {f.what for f in store.check()}
    store.rebuild()
    assert any(f.what == "chain" and not f.derived for f in store.check())


COPIED = {
    "text": "UPDATE entries SET content = content || '!' WHERE store = %(s)s AND rowid = 20",
    "not json": "UPDATE entries SET rest = '{' WHERE store = %(s)s AND rowid = 20",
}


@pytest.mark.parametrize("edit", COPIED)
def test_a_changed_row_gets_back_what_was_written(
    store: PostgresStore, made: list[Entry], tamper: Tamper, edit: str
) -> None:
    """PostgreSQL, T17: nothing shows the altered row, and a rebuild puts back what its history holds."""
    tamper(COPIED[edit])
    assert [f.subject for f in store.check() if f.what == "content" and f.derived] == [made[19].id]
    reopened = again(store)
    assert reopened.entries([made[19].id]) == {}
    assert reopened.entries([made[19].id], damaged=True)[made[19].id].damaged
    assert made[19].id not in [one.id for one in reopened.find(OPEN, limit=999)]
    assert [one.id for one in reopened.find(OPEN, limit=999, damaged=True) if one.damaged] == [made[19].id]
    store.rebuild()
    assert store.check() == []
    assert stored(store, made[19]) == made[19]


def item(place: ItemAddress) -> Item:
    return Item(place, {"text": "four floors"}, NOW, NOW)


def again(store: PostgresStore) -> PostgresStore:
    """Open the store as another process would, with nothing in memory."""
    return Database.open(store._database._url).store(store.id, account=new_id(), role="workspace")


TRUTH = {
    "text and history": "UPDATE entries SET content = content || '!' WHERE store = %(s)s AND rowid = 20; "
    "UPDATE versions SET snapshot = replace(snapshot, 'n19', 'n20') WHERE store = %(s)s AND entry = 20",
    "text and hash": "UPDATE entries SET content = 'x', content_hash = "
    "'2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881' WHERE store = %(s)s AND rowid = 20",
    "state": "UPDATE entries SET state = 'stale' WHERE store = %(s)s AND rowid = 20",
    "trust": "UPDATE entries SET rest = replace(rest, '\"trust\":2', '\"trust\":3') WHERE store = %(s)s AND rowid = 20",
    "history gone": "DELETE FROM versions WHERE store = %(s)s AND entry = 12 AND version = 1",
    "history edited": "UPDATE versions SET snapshot = replace(snapshot, 'user', 'root') "
    "WHERE store = %(s)s AND entry = 20",
    "history of another tenant": 'UPDATE versions SET keys = \'{"tenant":"other"}\' WHERE store = %(s)s AND entry = 20',
    "row gone": "DELETE FROM entries WHERE store = %(s)s AND rowid = 20",
    "row and history gone": "DELETE FROM entries WHERE store = %(s)s AND rowid = 20; "
    "DELETE FROM versions WHERE store = %(s)s AND entry = 20",
    "not json": "UPDATE entries SET rest = '{' WHERE store = %(s)s AND rowid = 20; "
    "UPDATE versions SET snapshot = '[' WHERE store = %(s)s AND entry = 20",
}


@pytest.mark.parametrize("edit", TRUTH)
def test_a_changed_row_is_seen(store: PostgresStore, made: list[Entry], tamper: Tamper, edit: str) -> None:
    """PostgreSQL, T17, T59: text, standing or history that nobody wrote is found, as beyond repair."""
    tamper(TRUTH[edit])
    assert any(not f.derived for f in store.check())
    store.rebuild()
    assert any(not f.derived for f in store.check())


DERIVED = {
    "index block gone": "DELETE FROM postings WHERE ctid = (SELECT min(ctid) FROM postings WHERE store = %(s)s)",
    "index row twice": "UPDATE postings SET rows = rows || substr(rows, 1, 4) WHERE store = %(s)s AND word = '1xcat'",
    "index row strange": "UPDATE postings SET rows = rows || '\\x0f270000', last = 9999, holders = holders + 1 "
    "WHERE store = %(s)s AND word = '1xcat'",
    "index row far away": "UPDATE postings SET rows = rows || '\\xffffff7f', last = 2147483647, holders = holders + 1 "
    "WHERE store = %(s)s AND word = '1xcat'",
    "index word other": "UPDATE postings SET word = '1xlion' WHERE store = %(s)s AND word = '1xcat'",
    "index counts other": "UPDATE postings SET holders = 1 WHERE store = %(s)s AND word = '1xcat'",
    "index range other": "UPDATE postings SET last = 12 WHERE store = %(s)s AND word = '1xcat'",
    "index block empty": "UPDATE postings SET rows = '' WHERE store = %(s)s AND word = '1xcat'",
    "index block cut": "UPDATE postings SET rows = substr(rows, 1, 5) WHERE store = %(s)s AND word = '1xcat'",
    "index emptied": "DELETE FROM postings WHERE store = %(s)s",
    "head forgot what is indexed": "UPDATE heads SET fed = 3 WHERE store = %(s)s",
    "head forgot rows": "UPDATE heads SET entries = 3, fed = 3 WHERE store = %(s)s",
    "terms other": "UPDATE entries SET terms = 'cat', term_count = 1 WHERE store = %(s)s AND rowid = 20",
    "key other": "UPDATE entries SET content_key = 'x' WHERE store = %(s)s AND rowid = 20",
    "room other": "UPDATE entries SET partition_id = 2 WHERE store = %(s)s AND rowid = 20",
    "scope gone": "DELETE FROM scopes WHERE store = %(s)s",
    "partition gone": "DELETE FROM partitions WHERE store = %(s)s AND id = 1",
    "room size": "UPDATE partitions SET size = size + 1, total_terms = 0 WHERE store = %(s)s",
    "vector gone": "DELETE FROM vectors WHERE store = %(s)s AND entry = 20",
    "vector other": "UPDATE vectors SET embedding = (SELECT embedding FROM vectors WHERE store = %(s)s AND entry = 21) "
    "WHERE store = %(s)s AND entry = 20",
    "vector short": "UPDATE vectors SET embedding = '[0]' WHERE store = %(s)s AND entry = 20",
    "vector room": "UPDATE vectors SET partition_id = 2 WHERE store = %(s)s AND entry = 20",
    "vector swapped": "UPDATE vectors SET entry = -1 WHERE store = %(s)s AND entry = 20; "
    "UPDATE vectors SET entry = 20 WHERE store = %(s)s AND entry = 21; "
    "UPDATE vectors SET entry = 21 WHERE store = %(s)s AND entry = -1",
    "vector orphan": "UPDATE vectors SET entry = 777 WHERE store = %(s)s AND entry = 20",
    "trust to filter by": "UPDATE entries SET trust = 3 WHERE store = %(s)s AND rowid = 20",
    "merges to count": "UPDATE entries SET merged_count = 9 WHERE store = %(s)s AND rowid = 20",
    "scope of another tenant": 'UPDATE scopes SET keys = \'{"tenant":"other"}\' WHERE store = %(s)s',
    "partition of another tenant": 'UPDATE partitions SET keys = \'{"tenant":"other"}\' WHERE store = %(s)s',
    "row of another tenant": 'UPDATE entries SET keys = \'{"tenant":"other"}\' WHERE store = %(s)s AND rowid = 20',
    "vector index that is not there": "INSERT INTO vector_indexes VALUES (%(s)s, 1, 1, 4, 'nowhere', 1)",
}


@pytest.mark.parametrize("edit", DERIVED)
def test_derived_state_is_checked_and_made_anew(
    store: PostgresStore, made: list[Entry], tamper: Tamper, edit: str
) -> None:
    """PostgreSQL, T22: damage to index, partitions or vectors is found, repaired, and searches are right again."""
    tamper(DERIVED[edit])
    found = store.check()
    assert found
    assert all(f.derived for f in found), found
    store.rebuild()
    assert store.check() == []
    for waiting in store.unembedded(MODEL, 999):
        vector = Embedding(MODEL, vector_of(waiting.content))
        store.apply(Transaction(ACTOR, NOW, (SaveEmbedding(waiting.id, waiting.version, vector),)))
    oracle = MemoryStore()
    fill(oracle, made)
    for word in WORDS:
        rows = [sorted((r.id, r.counts) for r in s.keyword(OPEN, [word], 999).rows) for s in (store, oracle)]
        assert rows[0] == rows[1]
        near = [[n.id for n in s.nearest(OPEN, MODEL, vector_of(word), 999)] for s in (store, oracle)]
        assert near[0] == near[1]
    assert store.check() == []


def test_random_damage_to_the_index_is_found(store: PostgresStore, tamper: Tamper) -> None:
    """PostgreSQL, T22: any one word of a row or any vector altered at random is seen, every time."""
    dice = random.Random(3)
    for _ in range(12):
        row = dice.randrange(16, 61)  # rows that are not history, which is not embedded anew
        if dice.random() < 0.5:
            nth = f"(SELECT ctid FROM postings WHERE store = %(s)s ORDER BY word, first OFFSET {row} LIMIT 1)"
            tamper(
                f"WITH n AS (SELECT {nth} AS at) UPDATE postings SET rows = substr(rows, 5), "
                "holders = length(rows) / 4 - 1 FROM n WHERE postings.ctid = n.at"
            )
        else:
            tamper(f"UPDATE vectors SET embedding = '[0,0,0,0]' WHERE store = %(s)s AND entry = {row}")
        assert store.check()
        store.rebuild()
        assert store.check() == []
        for waiting in store.unembedded(MODEL, 999):
            commit(store, SaveEmbedding(waiting.id, waiting.version, Embedding(MODEL, vector_of(waiting.content))))


def test_words_are_compared_in_passes_over_ranges_of_rows(
    store: PostgresStore, tamper: Tamper, made: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL: memory is bounded by a range of rows, and every range is compared, the last one to its end."""
    monkeypatch.setattr(integrity, "WINDOW", 7)
    assert store.check() == []
    tamper("UPDATE postings SET rows = substr(rows, 1, 4), last = first, holders = 1 WHERE store = %(s)s AND last > 40")
    found = {f.subject for f in store.check() if f.detail == "the keyword index does not match the row"}
    tamper("DELETE FROM postings WHERE store = %(s)s")
    emptied = {f.subject for f in store.check() if f.detail == "the keyword index does not match the row"}
    assert found < emptied == {e.id for e in made[: len(emptied)]}


def test_pages_documents_and_items_are_never_shown_altered(store: PostgresStore, tamper: Tamper) -> None:
    """PostgreSQL, T17: an altered page or document is marked, and mended from its versions; such an item is refused."""
    place = ItemAddress(("notes",), "a")
    commit(
        store,
        SaveNamed(named(body="Speak plainly."), 0),
        SaveDocument(document("guide", "Two people review."), 0),
        SaveItem(item(place)),
    )
    tamper(
        "UPDATE named SET body = 'Shout.' WHERE store = %(s)s;"
        "UPDATE documents SET body = 'Nobody reviews.' WHERE store = %(s)s;"
        "UPDATE items SET value = replace(value, 'four', 'five') WHERE store = %(s)s"
    )
    found = store.check()
    assert {(f.what, f.derived) for f in found if f.subject in ("VOICE", "guide")} == {("content", True)}
    assert [f for f in found if not f.derived and f.what == "content"]
    reopened = again(store)
    assert all(page.damaged for page in reopened.named())
    assert all(page.damaged for page in reopened.documents(["guide"]).values())
    with pytest.raises(Damaged):
        reopened.items([place])
    store.rebuild()
    assert [page.body for page in again(store).named()] == ["Speak plainly."]
    assert again(store).documents(["guide"])["guide"].body == "Two people review."
    assert {f.derived for f in store.check()} == {False}


def test_a_filter_over_a_damaged_row_says_damaged(store: PostgresStore, tamper: Tamper) -> None:
    """PostgreSQL: a filter that meets tags which are no JSON names the damage and the doctor, not the caller's text."""
    tamper("UPDATE entries SET tags = '{' WHERE store = %(s)s AND rowid = 20")
    with pytest.raises(StoreDamaged, match="lukasa doctor"):
        store.find(Selection((WORK,), filters=Filters(tags=frozenset({"a"}))), limit=999)
    store.rebuild()
    assert store.check() == []


def test_a_lost_item_is_missed(store: PostgresStore, tamper: Tamper) -> None:
    """PostgreSQL: an item that was removed behind our back is missed, because the log knows it."""
    commit(store, SaveItem(item(ItemAddress(("notes",), "a"))))
    tamper("DELETE FROM items WHERE store = %(s)s")
    assert [f.detail for f in store.check() if f.what == "content"] == ["the log knows an item that is gone"]


def test_a_step_that_cannot_be_read_does_not_stop_the_others(store: PostgresStore, tamper: Tamper, url: str) -> None:
    """PostgreSQL: an error of the engine in one step is a finding, and the steps after it still run."""
    tamper("UPDATE partitions SET size = size + 1 WHERE store = %(s)s")
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("ALTER TABLE lukasa.grants RENAME TO gone")
        try:
            found = {(f.what, f.detail[:14]) for f in store.check()}
        finally:
            db.execute("ALTER TABLE lukasa.gone RENAME TO grants")
    assert ("grants", "cannot be read") in found
    assert "partition" in {what for what, _ in found}
    assert "chain" not in {what for what, _ in found}


FIXED = {
    "events edited": "UPDATE lukasa.events SET subject = 'x'",
    "events emptied": "UPDATE lukasa.events SET subject = '', detail = '{}'",
    "events deleted": "DELETE FROM lukasa.events",
    "events truncated": "TRUNCATE lukasa.events CASCADE",
    "versions edited": "UPDATE lukasa.versions SET snapshot = '[]'",
    "versions truncated": "TRUNCATE lukasa.versions",
    "redactions edited": "UPDATE lukasa.redactions SET last = first",
    "redactions deleted": "DELETE FROM lukasa.redactions",
    "redactions truncated": "TRUNCATE lukasa.redactions",
    "redactions forged": "INSERT INTO lukasa.redactions SELECT store, 1, 2, seq FROM lukasa.events LIMIT 1",
}


@pytest.mark.parametrize("role", ["owner", "lukasa_app"])
@pytest.mark.parametrize("statement", FIXED)
def test_the_database_itself_keeps_what_is_written(store: PostgresStore, url: str, statement: str, role: str) -> None:
    """PostgreSQL: neither the application's role nor the owner can alter the log, the history or the redactions."""
    with psycopg.connect(url) as db:
        with_a_scrub(db, store.id)
        if role != "owner":
            db.execute("SET ROLE lukasa_app")
        with pytest.raises((errors.RestrictViolation, errors.InsufficientPrivilege)):
            db.execute(FIXED[statement].encode())
        db.rollback()


def with_a_scrub(db: psycopg.Connection[object], store: str) -> None:
    """In a transaction that is bound to a store: a scrub that redacted the first event."""
    db.execute(
        "INSERT INTO lukasa.events SELECT store, 900, at, principal, surface, transport, 'scrub.executed', subject, "
        "detail, previous, digest FROM lukasa.events WHERE store = %s AND seq = 5",
        (store,),
    )
    db.execute("INSERT INTO lukasa.redactions VALUES (%s, 1, 1, 900)", (store,))
    db.execute("SELECT set_config('lukasa.store', %s, true)", (store,))


def test_a_table_of_that_name_does_not_stand_in_for_the_log(store: PostgresStore, url: str) -> None:
    """PostgreSQL: a temporary table `events` with a scrub in it does not let anybody redact what no scrub took."""
    with psycopg.connect(url) as db:
        db.execute("CREATE TEMP TABLE events AS SELECT * FROM lukasa.events WHERE false")
        db.execute("GRANT ALL ON events TO lukasa_app")
        db.execute("SELECT set_config('lukasa.store', %s, true)", (store.id,))
        db.execute("SET ROLE lukasa_app")
        db.execute("INSERT INTO events (store, seq, action) VALUES (%s, 3, 'scrub.executed')", (store.id,))
        with pytest.raises(errors.RestrictViolation):
            db.execute("INSERT INTO lukasa.redactions VALUES (%s, 1, 2, 3)", (store.id,))
        db.rollback()


@pytest.fixture
def shell(tmp_path: Path, database_url: str) -> Shell:
    env = {"LUKASA_DATABASE": database_url, "LUKASA_EMBEDDER": "none", "LUKASA_CHAT": "none"}
    return Shell(tmp_path / "data", env)


def alter(url: str, statement: str) -> None:
    with psycopg.connect(url) as db:
        db.execute("SET session_replication_role = replica")
        assert db.execute(statement.encode()).rowcount > 0


def test_doctor_finds_and_repairs_it(shell: Shell, database_url: str) -> None:
    """PostgreSQL, T17: the command line says damaged, reads leave it out and say so, and the repair puts it back."""
    id, other = (shell.json("put", text)["entry"]["id"] for text in ("The archive has four floors", "It opens at nine"))
    assert shell.call("doctor").exit_code == 0
    alter(database_url, f"UPDATE lukasa.entries SET content = replace(content, 'four', 'five') WHERE id = '{id}'")
    assert shell.fails("get", id, code=1)["code"] == "damaged"
    found = shell.json("read", "archive floors")
    assert "lukasa doctor" in " ".join(found["notes"])
    assert "five" not in shell.run("context", "archive floors") + shell.run("list") + shell.run("read", "archive")
    assert "nine" in shell.run("get", other)
    assert shell.call("doctor").exit_code == 3
    assert shell.call("doctor", "--repair").exit_code == 0
    assert "four floors" in shell.run("get", id)
    assert shell.call("doctor").exit_code == 0


def test_doctor_says_what_cannot_be_repaired(shell: Shell, database_url: str) -> None:
    """PostgreSQL, T17: if row and history are altered, no repair makes the store sound, and neither text is shown."""
    id = shell.json("put", "The archive has four floors")["entry"]["id"]
    alter(database_url, f"UPDATE lukasa.entries SET content = replace(content, 'four', 'five') WHERE id = '{id}'")
    alter(database_url, "UPDATE lukasa.versions SET snapshot = replace(snapshot, 'four', 'five')")
    assert shell.call("doctor", "--repair").exit_code == 3
    assert shell.fails("get", id, code=1)["code"] == "damaged"
    assert "five" not in shell.call("history", id).output + shell.run("list")
