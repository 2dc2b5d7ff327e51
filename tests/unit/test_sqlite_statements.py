"""The statements that reach SQLite are a closed set, whatever text is put in."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lukasa.index.postings import token
from lukasa.model.conversation import Note
from lukasa.model.entry import Category, Document, Scope
from lukasa.model.errors import Conflict, NotFound
from lukasa.model.ids import new_id
from lukasa.model.selection import Filters, Selection
from lukasa.model.values import Kind, Visibility
from lukasa.ports import EmbeddingModel
from lukasa.storage import tables
from lukasa.storage.operations import (
    DropNotes,
    LinkAction,
    Operation,
    SaveChannel,
    SaveConversation,
    SaveDocument,
    SaveNamed,
    SaveNote,
)
from lukasa.storage.sqlite import SqliteStore, sql
from lukasa.storage.sqlite.sqlite_rows import COUNT, COUNT_BY, DELETE, INSERT, SAVE, SELECT
from lukasa.storage.sqlite.store_files import migrations
from tests.helpers.processes import TORTURE
from tests.helpers.stores import NOW, OPEN, channel, commit, conversation, entry, later, named, put, unit

HOSTILE = ["'", '"', "';--", "a\n", "%_", "*", "{}", "\0", "x'00'", "AND", ":name", "?1", "[", "$.a", "日本", "\u2028"]
TEXT = st.text(max_size=6) | st.sampled_from(HOSTILE)


class Trace:
    """Statement texts as SQLite sees them, parameters unexpanded; its own inner statements apart."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def watch(self, db: apsw.Connection) -> None:
        db.trace_v2(apsw.SQLITE_TRACE_STMT, self._note)

    def _note(self, event: dict[str, Any]) -> None:
        self.seen.add(str(event["sql"]).strip().rstrip(";"))


def ours() -> set[str]:
    """Every constant text of the module that holds statements, and every statement of a declared table or query."""
    found: set[str] = set()
    for value in vars(sql).values():
        texts = value if isinstance(value, tuple) else (value,)
        found |= {text.strip() for text in texts if isinstance(text, str)}
    for table in tables.tables():
        found |= {INSERT(table), SAVE(table), SELECT(table.one), DELETE(table.one)}
    for query in tables.queries():
        found |= {SELECT(query), COUNT(query), DELETE(query)}
        found |= {COUNT_BY(query, column) for column in query.table.columns}
    for texts_of in (tables.UTTERANCES, tables.PASSAGES):
        found |= set(sql.text_index(texts_of))
    return found


_COUNT = count()


def inner(statement: str) -> bool:
    """What SQLite runs for itself: triggers, and the keyword index on its own tables."""
    return statement.startswith("--") or "'main'." in statement


def test_text_never_becomes_a_statement(tmp_path: Path) -> None:
    """T11: whatever text is put in anywhere, the statements are those of `sql` and of the migrations, no more."""
    trace = Trace()
    apsw.connection_hooks.append(trace.watch)
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)

    @settings(max_examples=5000 if TORTURE else 60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def drive(data: st.DataObject) -> None:
        use_everything(store, data)

    drive()
    store.close()
    apsw.connection_hooks.remove(trace.watch)
    allowed = ours() | made_by_migrations()
    assert {s for s in trace.seen if s not in allowed and not inner(s)} == set()


def use_everything(store: SqliteStore, data: st.DataObject) -> None:
    """Every operation and question, with scope values, owners, tags, ids, names and terms drawn at random."""

    def text() -> str:
        return data.draw(TEXT)

    def own() -> str:
        """A beginning that no other text has. An id would not do: beside drawn text it may look like a secret."""
        return f"number {next(_COUNT)} "

    scope = Scope(text(), ((text(), text()), (text(), None)))
    e = entry(
        own() + text(),
        scope=scope,
        owner=text(),
        tags=(text(), text()),
        category=Category(text(), 0.5, text()),
        source=text(),
        conversation=text(),
        superseded_by=text(),
    )
    room = channel(own() + text(), workspace=text(), description=text())
    talk = conversation(room, new_id() + text())
    model = EmbeddingModel(text(), 4, text())
    batch: list[Operation] = [
        put(e, unit(1, 0, 0, 0), model),
        SaveNamed(named(text() + new_id(), text()), 0),
        SaveDocument(Document(text() + new_id(), text(), text(), text(), text(), 1.0, text(), 1, NOW), 0),
        SaveChannel(room),
        SaveConversation(talk, None),
        SaveNote(Note(talk.id, text(), {text(): text()}, NOW, NOW)),
        LinkAction(own() + text(), text(), (e.id,)),
    ]
    commit(store, *batch)
    filters = Filters(
        tags=frozenset(e.tags[:1]),
        categories=frozenset({e.category.name if e.category else ""}),
        sources=frozenset({e.source}),
    )
    selection = Selection((scope,), frozenset(Visibility), (e.owner,), filters)
    assert e.id in {found.id for found in store.find(selection, limit=9999)}
    store.keyword(selection, [text(), text(), *e.content.split()], 5)
    assert e.id in {n.id for n in store.nearest(selection, model, unit(1, 0, 0, 0), 9999)}
    stranger = Selection((Scope(scope.tier, ((text() + "!", text()),)),), owners=None)
    assert e.id not in {found.id for found in store.find(stranger)}
    for probe in (text(), e.id):
        store.entries([probe])
        store.versions(probe)
        store.named(probe)
        store.documents([probe])
        store.conversation(probe)
        store.notes(probe)
        store.events(subject=probe, action=text())
        store.twin(scope, probe, probe)
    store.touch([e.id, text()], NOW)
    for refused in (DropNotes(talk.id, text() + new_id()), DropNotes(new_id())):
        with pytest.raises((NotFound, Conflict)):
            commit(store, refused)


def made_by_migrations() -> set[str]:
    """The statements of the migration files, as SQLite splits them."""
    db = apsw.Connection(":memory:")
    found = Trace()
    found.watch(db)
    for text in (sql.ACCESS_SCHEMA, *(m.text for m in migrations())):
        for _ in db.execute(text):
            pass
    db.close()
    return found.seen


@given(st.lists(st.tuples(st.integers(1, 10**6), st.text(max_size=50)), min_size=2, max_size=2, unique=True))
def test_a_token_is_one_word_of_one_partition(pairs: list[tuple[int, str]]) -> None:
    """T07, T54: two terms, or one in two partitions, never share a token; a token is plain ASCII."""
    first, second = (token(partition, term) for partition, term in pairs)
    assert first != second
    assert first.isascii()
    assert first.isalnum()
    assert first == first.lower()
    assert len(first) < 100


@pytest.mark.parametrize(
    ("statement", "plan"),
    [
        (
            sql.NEWEST_OF_KIND,
            "SEARCH e USING INDEX entries_of_kind (partition_id=? AND kind=? AND created_at>? AND created_at<?)",
        ),
        (sql.POINTS, "SEARCH p USING INTEGER PRIMARY KEY (rowid>?)"),
        (sql.TALLY_DAYS, "SEARCH p USING INTEGER PRIMARY KEY (rowid>?)"),
    ],
)
def test_what_was_recorded_at_another_time_is_not_looked_at(tmp_path: Path, statement: str, plan: str) -> None:
    """R1, T2: a question about a day costs no more where a million entries came after it, or before it."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    names = {name.lstrip(":"): None for name in re.findall(r":\w+", statement)}
    with store._connections.asking() as db:
        (first, *_) = db.execute(f"EXPLAIN QUERY PLAN {statement}", names).fetchall()
    assert first[-1] == plan
    store.close()


@pytest.mark.parametrize("kinds", [frozenset[Kind](), frozenset({Kind.SEMANTIC})])
def test_a_time_costs_what_was_recorded_then(tmp_path: Path, kinds: frozenset[Kind]) -> None:
    """R1: what came before or after it takes SQLite no step."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    commit(store, *(put(entry(f"cat {n}", created_at=later(n))) for n in range(500)))

    def steps(first: int, last: int) -> int:
        counted = count()
        then = replace(OPEN, filters=Filters(kinds=kinds, since=later(first), until=later(last)))
        with store._connections.asking() as db:
            db.set_progress_handler(lambda: next(counted) < 0, 1)
            assert len(store.find(then)) == 10
            db.set_progress_handler(None)
        return next(counted)

    taken = steps(0, 10), steps(245, 255), steps(490, 500)
    assert max(taken) < 1.3 * min(taken)  # to walk past the others would take three times as many
    store.close()


def test_bound_values_are_no_reason_to_plan_anew(tmp_path: Path) -> None:
    """W1, R1: otherwise every statement with a LIMIT is planned again whenever a value is bound to it, which takes
    longer than to answer it."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    with store._connections.asking() as memory, store._connections.counting() as counts:
        assert memory.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
        assert counts.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
    store.close()
