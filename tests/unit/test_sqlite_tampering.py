"""Somebody edits the file behind our back: it is seen, and derived state is made anew."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from lukasa.model.entry import Entry
from lukasa.model.values import State
from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.operations import DropEntry, Embedding, SaveEmbedding, Transaction
from lukasa.storage.port import Store
from lukasa.storage.sqlite import SqliteStore
from lukasa.storage.sqlite.store_files import MEMORY
from tests.helpers.stores import ACTOR, MODEL, NOW, OPEN, change, commit, entry, move, put, stored, vector_of

UNGUARDED = "DROP TRIGGER events_kept; DROP TRIGGER events_fixed; DROP TRIGGER versions_fixed; "
WORDS = "cat dog tea violin rain stone bread lamp".split()


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


@pytest.fixture
def store(tmp_path: Path, made: list[Entry]) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    fill(store, made)
    assert store.check() == []
    yield store
    store.close()


def tamper(folder: Path, statements: str, *values: object) -> None:
    db = apsw.Connection(str(folder / "store" / MEMORY))
    for _ in db.execute(statements, values):
        pass
    db.close()


EDITS = {
    "edited": "UPDATE events SET subject = 'nobody' WHERE seq = 5",
    "detail edited": "UPDATE events SET detail = replace(detail, 'said so', 'said no') WHERE seq = 5",
    "time edited": "UPDATE events SET at = replace(at, '2026', '2025') WHERE seq = 5",
    "deleted": "DELETE FROM events WHERE seq = 5",
    "first deleted": "DELETE FROM events WHERE seq = 1",
    "cut off": "DELETE FROM events WHERE seq > 50",
    "emptied": "DELETE FROM events",
    "swapped": "UPDATE events SET seq = -5 WHERE seq = 5; UPDATE events SET seq = 5 WHERE seq = 6; "
    "UPDATE events SET seq = 6 WHERE seq = -5",
    "forged": "INSERT INTO events SELECT 9999, at, principal, surface, transport, action, subject, detail, previous, "
    "digest FROM events WHERE seq = 5",
    "head moved": "UPDATE head SET seq = 5, digest = (SELECT digest FROM events WHERE seq = 5)",
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_changed_log_does_not_verify(tmp_path: Path, store: SqliteStore, edit: str) -> None:
    """X2, T59: edits, deletions, reordering, forgeries and a missing tail are all seen, and cannot be rebuilt away."""
    tamper(tmp_path, UNGUARDED + EDITS[edit])
    assert "chain" in {f.what for f in store.check()}
    store.rebuild()
    assert any(f.what == "chain" and not f.derived for f in store.check())


COPIED = {
    "text": "UPDATE entries SET content = content || '!' WHERE rowid = 20",
    "not json": "UPDATE entries SET rest = '{' WHERE rowid = 20",
}


@pytest.mark.parametrize("edit", COPIED)
def test_a_changed_row_gets_back_what_was_written(
    tmp_path: Path, store: SqliteStore, made: list[Entry], edit: str
) -> None:
    """T17: the history of an entry holds its text as well, and the log vouches for it: a rebuild puts that back."""
    tamper(tmp_path, COPIED[edit])
    assert [f.subject for f in store.check() if f.what == "content" and f.derived] == [made[19].id]
    assert store.entries([made[19].id]) == {}
    assert store.entries([made[19].id], damaged=True)[made[19].id].damaged
    store.rebuild()
    assert store.check() == []
    assert store.entries([made[19].id])[made[19].id] == made[19]


TRUTH = {
    "text and history": "UPDATE entries SET content = content || '!' WHERE rowid = 20; "
    "UPDATE versions SET snapshot = replace(snapshot, 'n19', 'n20') WHERE entry = 20",
    "text and hash": "UPDATE entries SET content = 'x', content_hash = "
    "'2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881' WHERE rowid = 20",
    "state": "UPDATE entries SET state = 'stale' WHERE rowid = 20",
    "trust": "UPDATE entries SET rest = replace(rest, '\"trust\":2', '\"trust\":3') WHERE rowid = 20",
    "history gone": "DELETE FROM versions WHERE entry = 12 AND version = 1",
    "history edited": "UPDATE versions SET snapshot = replace(snapshot, 'user', 'root') WHERE entry = 20",
    "row gone": "PRAGMA foreign_keys = OFF; DELETE FROM entries WHERE rowid = 20",
    "not json": "UPDATE entries SET rest = '{' WHERE rowid = 20; UPDATE versions SET snapshot = '[' WHERE entry = 20",
}


@pytest.mark.parametrize("edit", TRUTH)
def test_a_changed_row_is_seen(tmp_path: Path, store: SqliteStore, edit: str) -> None:
    """T17, T59: text, state, standing or history that is not what was written is found, as beyond repair."""
    tamper(tmp_path, UNGUARDED + TRUTH[edit])
    assert any(not f.derived for f in store.check())


DERIVED = {
    "index row gone": "DELETE FROM fts WHERE rowid = 20",
    "index row twice": "INSERT INTO fts (rowid, terms) VALUES (9999, '1xcat')",
    "index row other": "DELETE FROM fts WHERE rowid = 20; INSERT INTO fts (rowid, terms) VALUES (20, '1xcat')",
    "index emptied": "INSERT INTO fts (fts) VALUES ('delete-all')",
    "index data gone": "DELETE FROM fts_data WHERE id > 10",
    "index structure gone": "DELETE FROM fts_data WHERE id = 10",
    "index totals gone": "DELETE FROM fts_data WHERE id = 1",
    "index data other": "UPDATE fts_data SET block = randomblob(40) WHERE id > 10",
    "index lengths gone": "DELETE FROM fts_docsize WHERE id % 3 = 0",
    "index lengths other": "UPDATE fts_docsize SET sz = x'01' WHERE id = 20",
    "index table gone": "DROP TABLE fts_data",
    "index config gone": "DROP TABLE fts_config",
    "terms other": "UPDATE entries SET terms = 'cat', term_count = 1 WHERE rowid = 20",
    "key other": "UPDATE entries SET content_key = 'x' WHERE rowid = 20",
    "room other": "UPDATE entries SET partition_id = 2 WHERE rowid = 20",
    "room size": "UPDATE partitions SET size = size + 1, total_terms = 0",
    "vector gone": "DELETE FROM vectors WHERE entry = 20",
    "vector other": "UPDATE vectors SET vector = (SELECT vector FROM vectors WHERE entry = 21) WHERE entry = 20",
    "vector short": "UPDATE vectors SET vector = x'00000000' WHERE entry = 20",
    "vector room": "UPDATE vectors SET partition_id = 2 WHERE entry = 20",
    "vector swapped": "UPDATE vectors SET entry = -1 WHERE entry = 20; UPDATE vectors SET entry = 20 WHERE entry = 21; "
    "UPDATE vectors SET entry = 21 WHERE entry = -1",
    "vector orphan": "UPDATE vectors SET entry = 777 WHERE entry = 20",
}


@pytest.mark.parametrize("edit", DERIVED)
def test_derived_state_is_checked_and_made_anew(
    tmp_path: Path, store: SqliteStore, made: list[Entry], edit: str
) -> None:
    """T22: damage to index, partitions or vectors is found, repaired by a rebuild, and searches are right again."""
    tamper(tmp_path, DERIVED[edit])
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


def test_an_index_that_cannot_seek_is_found_out(tmp_path: Path, store: SqliteStore) -> None:
    """T22: SQLite's own check is content when the index has lost its way to its pages; ours is not."""
    commit(store, *(put(entry(f"{'long' * 20}{i} word{i} more{i}")) for i in range(300)))
    tamper(tmp_path, "DELETE FROM fts_idx")
    found = store.check()
    assert found
    assert all(f.derived for f in found)
    store.rebuild()
    assert store.check() == []


def test_random_damage_to_the_index_is_found(tmp_path: Path, store: SqliteStore) -> None:
    """T22: any one row of the index or the vectors removed at random is seen, every time."""
    dice = random.Random(3)
    for _ in range(25):
        rowid = dice.randrange(16, 61)  # rows that are not history, which is not embedded anew
        if dice.random() < 0.5:
            tamper(tmp_path, "DELETE FROM fts WHERE rowid = ?", rowid)
        else:
            tamper(tmp_path, "UPDATE vectors SET vector = zeroblob(16) WHERE entry = ?", rowid)
        assert store.check()
        store.rebuild()
        assert store.check() == []
        for waiting in store.unembedded(MODEL, 999):
            commit(store, SaveEmbedding(waiting.id, waiting.version, Embedding(MODEL, vector_of(waiting.content))))


def test_flipped_bytes_never_pass_for_memory(tmp_path: Path, made: list[Entry]) -> None:
    """T17: one byte of a stored text changed in the file is found or refused, never returned as sound."""
    folder = tmp_path / "store"
    store = SqliteStore(folder, role="workspace", create=True)
    commit(store, put(made[0]), put(entry("zanzibar is an island")))
    store.close()
    file = folder / MEMORY
    whole = file.read_bytes()
    places = [i for i in range(len(whole)) if whole.startswith(b"zanzibar is an island", i)]
    assert places
    for place in places:
        data = bytearray(whole)
        data[place + 3] ^= 1
        file.write_bytes(data)
        reopened = SqliteStore(folder, role="workspace", create=False)
        assert reopened.check()
        reopened.close()


def test_a_changed_tokenizer_rebuilds_the_index(tmp_path: Path, store: SqliteStore) -> None:
    """T15: what another version of the tokenizer computed from texts is computed anew on opening."""
    asked = entry("Where did you buy the telescope?")
    commit(store, put(asked))
    tamper(tmp_path, "UPDATE meta SET tokenizer = 0; INSERT INTO fts (fts) VALUES ('delete-all')")
    tamper(tmp_path, "UPDATE entries SET marks = 0")
    again = SqliteStore(tmp_path / "store", role="workspace", create=False)
    assert again.check() == []
    assert again.candidates([asked.id])[asked.id].said
    assert again.keyword(OPEN, ["cat"], 99).rows
    again.close()


def test_ids_and_rows_are_never_reused(tmp_path: Path) -> None:
    """T23: after dropping the newest row, the next gets a row number and a vector number of its own."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    first, second = entry("a"), entry("b")
    commit(store, put(first, vector_of("a")))
    commit(store, DropEntry(first.id, 1, "x"), put(second, vector_of("b")))
    assert [n.id for n in store.nearest(OPEN, MODEL, vector_of("b"), 9)] == [second.id]
    with store._connections.reading() as db:
        assert db.execute("SELECT rowid FROM entries").get == 2
        assert db.execute("SELECT seq FROM vectors").get == 2
    assert stored(store, second) == second
    store.close()
