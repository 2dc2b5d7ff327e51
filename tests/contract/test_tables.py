"""Plain tables are declared once; each store reads and writes them alike."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.errors import Conflict
from lukasa.model.transcript import Progress, Transcript
from lukasa.storage import tables
from lukasa.storage.backend import Rows, get
from lukasa.storage.codec import Dialect
from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.sqlite import SqliteStore
from lukasa.storage.sqlite.store_files import migrations
from tests.helpers.stores import NOW, later

POSTGRES = Dialect(mark="${number}", among="{column} = ANY({mark})", greatest="greatest", no_limit=None)


def amendment(id: str, state: AmendmentState = AmendmentState.PENDING) -> Amendment:
    return Amendment(id, "facts", f"change {id}", 0.5, ("s1", "s2"), NOW, NOW, state)


def transcript(id: str, progress: Progress = Progress.PENDING) -> Transcript:
    return Transcript(id, f"key {id}", "claude", "", NOW, NOW, progress=progress)


def test_every_declared_statement_fits_the_schema() -> None:
    """A column that is misspelt in a declaration would fail only when somebody asks."""
    db = apsw.Connection(":memory:")
    for migration in migrations():
        db.execute(migration.text).fetchall()
    made = Dialect()
    statements = [made.insert(table) for table in tables.tables()]
    statements += [made.save(table) for table in tables.tables() if table.key]
    for query in tables.queries():
        statements += [made.select(query), made.count(query), made.delete(query)]
    for statement in statements:
        values = max([int(number) for number in re.findall(r"\?(\d+)", statement)], default=0)
        db.execute(f"EXPLAIN {statement}", [None] * values).fetchall()


def test_another_dialect_makes_the_same_statements() -> None:
    """What PostgreSQL says otherwise is in four settings."""
    assert POSTGRES.select(tables.JOBS_TOUCHED_BEFORE).endswith(
        "FROM jobs WHERE state = ANY($1) AND updated_at < $2 LIMIT $3"
    )
    assert POSTGRES.delete(tables.NOTES_OF) == "DELETE FROM notes WHERE conversation = $1 AND ($2 IS NULL OR key = $2)"
    assert POSTGRES.count_by(tables.EVENTS_SINCE, "action") == (
        "SELECT action, count(*) FROM events WHERE at >= $1 GROUP BY action ORDER BY action"
    )
    assert "VALUES (greatest($1, 1 + coalesce((SELECT max(place) FROM points), 0)), $1," in POSTGRES.insert(
        tables.TELEMETRY
    )


def select_in_every_way(rows: Rows) -> None:
    rows.insert(tables.AMENDMENTS, [amendment("a"), amendment("b", AmendmentState.MERGED), amendment("c")])
    found = rows.select(tables.OLDEST_AMENDMENTS, None, None)
    assert found == [amendment("a"), amendment("b", AmendmentState.MERGED), amendment("c")]
    pending = rows.select(tables.OLDEST_AMENDMENTS, ["c", "b", "a"], {AmendmentState.PENDING})
    assert [one.id for one in pending] == ["a", "c"]
    assert [one.id for one in rows.select(tables.OLDEST_AMENDMENTS, (), None)] == []
    assert [one.id for one in rows.select(tables.OLDEST_AMENDMENTS, None, None, limit=2)] == ["a", "b"]
    assert rows.count(tables.OLDEST_AMENDMENTS, None, [AmendmentState.PENDING]) == 2
    assert rows.count_by(tables.OLDEST_AMENDMENTS, "state", None, None) == {"merged": 1, "pending": 2}
    assert rows.delete(tables.OLDEST_AMENDMENTS, ["a", "nobody"], None) == 1
    assert get(rows, tables.AMENDMENTS, "a") is None


def page_through(rows: Rows) -> None:
    for id in "abcd":
        rows.save(tables.TRANSCRIPTS, transcript(id, Progress.OBSERVED if id == "b" else Progress.PENDING))
    pages = tables.NEWEST_TRANSCRIPTS
    assert [one.id for one in rows.select(pages, None, limit=2)] == ["d", "c"]
    assert [one.id for one in rows.select(pages, None, limit=2, after="c")] == ["b", "a"]
    assert [one.id for one in rows.select(pages, Progress.PENDING, after="b")] == ["a"]
    assert rows.select(pages, None, after="nobody") == []


def save_again(rows: Rows) -> None:
    first = amendment("a")
    rows.save(tables.AMENDMENTS, first)
    rows.save(tables.AMENDMENTS, replace(first, change="another", created_at=later(9), updated_at=later(9)))
    assert get(rows, tables.AMENDMENTS, "a") == replace(first, change="another", updated_at=later(9))
    with pytest.raises((Conflict, apsw.ConstraintError)):
        rows.insert(tables.AMENDMENTS, [first])


@pytest.mark.parametrize("claim", [select_in_every_way, page_through, save_again])
@pytest.mark.parametrize("engine", ["memory", "sqlite"])
def test_rows_of_every_engine_are_alike(tmp_path: Path, engine: str, claim: object) -> None:
    """Conditions that are left open, lists, order, limits, pages, and columns that keep their first value."""
    assert callable(claim)
    if engine == "memory":
        with MemoryStore()._writing() as in_memory:
            claim(in_memory)
        return
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    with store._writing() as in_sqlite:
        claim(in_sqlite)
    store.close()
