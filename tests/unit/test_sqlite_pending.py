"""Words go into the index for several rows at a time, and are found before they are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lukasa.index.matches import NeighbourQuery, NewText
from lukasa.model.selection import Filters
from lukasa.model.values import Kind, State
from lukasa.ports import Vector
from lukasa.storage.operations import DropEntry
from lukasa.storage.sqlite import SqliteStore, sql
from lukasa.storage.sqlite.entries import INDEX_STEP, LONG_ROW
from lukasa.storage.sqlite.execute import all_rows, one_value
from tests.helpers.earlier import first_schema
from tests.helpers.stores import MODEL, OPEN, WORK, change, commit, entry, move, put, stored, unit

EAST: Vector = unit(1, 0, 0, 0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    yield store
    store.close()


def indexed(store: SqliteStore) -> list[int]:
    """The rows whose words are in the index."""
    with store._connections.reading() as db:
        return [row for (row,) in all_rows(db, "SELECT id FROM fts_docsize ORDER BY id")]


def found(store: SqliteStore, word: str, filters: Filters | None = None) -> list[str]:
    asked = replace(OPEN, filters=filters) if filters else OPEN
    matches = store.keyword(asked, (word,), 99)
    assert matches.frequencies == (len(store.keyword(OPEN, (word,), 99).ids),)
    return matches.ids


def test_rows_are_fed_together(store: SqliteStore) -> None:
    """W1: who puts one text after the other touches the index once for several of them; a batch feeds itself."""
    for n in range(INDEX_STEP - 1):
        commit(store, put(entry(f"lantern {n}")))
    assert indexed(store) == []
    commit(store, put(entry("one more")))
    assert indexed(store) == list(range(1, INDEX_STEP + 1))
    commit(store, put(entry("after that")))
    commit(store, *(put(entry(f"harbour {n}")) for n in range(INDEX_STEP)))
    assert indexed(store) == list(range(1, 2 * INDEX_STEP + 2))
    assert store.check() == []


def test_a_long_text_does_not_wait(store: SqliteStore) -> None:
    """R1: a read looks at every word that waits, so these are few; and what waited before goes with it."""
    commit(store, put(entry("short")))
    commit(store, put(entry(" ".join(f"word{n}" for n in range(LONG_ROW)))))
    assert indexed(store) == []
    commit(store, put(entry(" ".join(f"word{n}" for n in range(LONG_ROW + 1)))))
    assert indexed(store) == [1, 2, 3]


def test_what_is_not_fed_is_found_all_the_same(store: SqliteStore, tmp_path: Path) -> None:
    """R1: by this process and by another, with filters and without, beside what is in the index, each row once."""
    fed = [entry(f"lantern {n}") for n in range(INDEX_STEP)]
    commit(store, *map(put, fed))
    rule, fact = entry("lantern, lantern, when it is dark", kind=Kind.PROCEDURAL), entry("a lantern hangs there")
    commit(store, put(rule))
    commit(store, put(fact))
    other = SqliteStore(tmp_path / "store", role="workspace", create=False)
    for asked in (store, other):
        assert set(found(asked, "lantern")) == {e.id for e in (*fed, rule, fact)}
        assert found(asked, "dark") == [rule.id]
        assert found(asked, "lantern", Filters(kinds=frozenset({Kind.PROCEDURAL}))) == [rule.id]
        rows = {row.id: row.counts for row in asked.keyword(OPEN, ("lantern",), 99).rows}
        assert rows[rule.id] == (2,)
        assert rows[fact.id] == rows[fed[0].id] == (1,)
    other.close()


def test_what_is_not_fed_can_be_changed_moved_and_dropped(store: SqliteStore) -> None:
    """R1: the index hears of a row's words as they are when they are fed."""
    changed, moved, gone = (entry(f"{name} harbour") for name in ("changed", "moved", "gone"))
    commit(store, put(changed), put(moved), put(gone))
    commit(store, change(stored(store, changed), content="changed meadow"))
    commit(store, move(stored(store, moved), State.HELD))
    commit(store, DropEntry(gone.id, 1, "gone"))
    assert indexed(store) == []
    for times in range(2):
        assert found(store, "harbour") == []
        assert found(store, "meadow") == [changed.id]
        assert store.check() == []
        commit(store, *(put(entry(f"filler {times} {n}")) for n in range(INDEX_STEP)))
    commit(store, change(stored(store, changed), content="changed river"))
    assert (found(store, "meadow"), found(store, "river")) == ([], [changed.id])
    assert store.check() == []


def test_a_repetition_of_what_is_not_fed_is_found(store: SqliteStore) -> None:
    """W3: two who say the same right after each other."""
    said = entry("The ferry leaves from the northern pier")
    commit(store, put(said, EAST))
    (near,) = store.neighbours(
        NeighbourQuery(WORK, "shared", MODEL, None, 9), [NewText("The ferry leaves from a pier", EAST)]
    )
    assert [(n.entry.id, n.cosine) for n in near] == [(said.id, 1.0)]


def test_an_index_made_anew_holds_all(store: SqliteStore) -> None:
    """B12: rows that were not fed are fed by a rebuild, and a row in the index that should not be there is found."""
    commit(store, put(entry("lantern")), put(entry("harbour")))
    with store._connections.writing() as db:
        db.execute(sql.INDEX_ROW, (2, "1xharbour"))
    assert {finding.what for finding in store.check()} == {"index"}
    store.rebuild()
    assert indexed(store) == [1, 2]
    assert store.check() == []


def test_no_number_is_given_twice(store: SqliteStore) -> None:
    """T22: neither to an entry nor to a vector, though the last ones are gone."""
    first, last = entry("first"), entry("last")
    commit(store, put(first, EAST))
    for n in range(3):
        commit(store, put(last, EAST))
        with store._connections.reading() as db:
            assert one_value(db, "SELECT max(rowid) FROM entries") == n + 2
            assert one_value(db, "SELECT max(seq) FROM vectors") == n + 2
        commit(store, DropEntry(last.id, 1, "gone"))
        last = entry("last")
    assert store.check() == []


def test_a_store_of_before_is_taken_up_where_it_was(tmp_path: Path) -> None:
    """T15: numbers go on after the highest that ever was, all that is there is in the index, and reports keep their
    order and are found by their time."""
    store = SqliteStore(first_schema(tmp_path / "store"), role="workspace", create=False)
    with store._connections.reading() as db:
        assert "AUTOINCREMENT" not in str(
            all_rows(db, "SELECT sql FROM sqlite_schema WHERE name IN ('entries', 'vectors')")
        )
        places = all_rows(db, "SELECT place, at, action FROM points ORDER BY place")
    assert [action for *_, action in places] == ["step5", "step3", "step3", "step9"]
    assert all(place >= at for place, at, _ in places)
    new = entry("a second lantern")
    commit(store, put(new, EAST))
    with store._connections.reading() as db:
        assert one_value(db, "SELECT max(rowid) FROM entries") == 72
        assert one_value(db, "SELECT max(seq) FROM vectors") == 71
    assert len(found(store, "lantern")) == 2
    assert store.check() == []
    store.close()
