"""What is known of one state of a database, at the next: kept where nothing can have changed, and else asked again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from lukasa.index import bm25, cache
from lukasa.index.matches import KeywordMatches
from lukasa.model.entry import Entry, Scope
from lukasa.model.events import EventDraft
from lukasa.model.selection import Selection
from lukasa.model.values import State, Visibility
from lukasa.storage.operations import DropEntry, Embedding, Record, SaveEmbedding
from lukasa.storage.sqlite import SqliteStore, sql
from tests.helpers.earlier import first_schema
from tests.helpers.stores import MODEL, OPEN, WORK, change, commit, entry, move, put, stored, vector_of

WORDS = ("lantern", "harbour", "kite", "weather", "ökonomie", "bread")
ELSEWHERE = Scope("workspace", (("workspace", "elsewhere"),))
ROOMS = (OPEN, Selection((ELSEWHERE,)), Selection((WORK,), frozenset({Visibility.HELD})))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    yield store
    store.close()


@pytest.fixture
def other(tmp_path: Path, store: SqliteStore) -> Iterator[SqliteStore]:
    """As another process would have it open."""
    other = SqliteStore(tmp_path / "store", role="workspace", create=False)
    yield other
    other.close()


def statements(store: SqliteStore, work: Callable[[], object]) -> list[str]:
    """What is run of it while something is asked."""
    run: list[dict[str, Any]] = []
    with store._connections.reading() as db:
        db.trace_v2(apsw.SQLITE_TRACE_STMT, run.append)
        try:
            work()
        finally:
            db.trace_v2(0, None)
    return [event["sql"] for event in run]


def told(matches: KeywordMatches) -> object:
    return matches.size, matches.total_terms, matches.frequencies, list(matches.candidates), matches.rows


def answers(store: SqliteStore, alive: list[Entry]) -> object:
    ids = [e.id for e in alive]
    found = [told(store.keyword(room, WORDS, 50)) for room in ROOMS]
    return found, store.candidates(ids), store.texts(ids), store.adjacent(ids[:5], 2)


@pytest.mark.parametrize("budget", [2500, 6])
def test_a_store_that_follows_answers_as_one_that_begins(
    tmp_path: Path, store: SqliteStore, other: SqliteStore, monkeypatch: pytest.MonkeyPatch, budget: int
) -> None:
    """T22: after additions, alone and in batches, changes, moves, drops and vectors, by this process or another; and
    of words that become too common to look at all their rows."""
    monkeypatch.setattr(bm25, "POSTING_BUDGET", budget)
    dice = random.Random(11)
    alive: list[Entry] = []

    def said() -> Entry:
        content = " ".join(dice.choices(WORDS, k=dice.randint(1, 5))) + f" {len(alive)}-{dice.random()}"
        return entry(content, scope=dice.choice((WORK, WORK, ELSEWHERE)), state=dice.choice((State.ACTIVE, State.HELD)))

    for step in range(160):
        writer = dice.choice((store, other))
        choice = dice.random()
        if choice < 0.6 or not alive:
            new = [said() for _ in range(dice.choice((1, 1, 1, 4)))]
            commit(writer, *(put(e, vector_of(e.content)) for e in new))
            alive += new
        elif choice < 0.7:
            now = stored(writer, dice.choice(alive))
            commit(writer, change(now, content=f"{dice.choice(WORDS)} {step}", importance=dice.random()))
        elif choice < 0.8:
            now = stored(writer, dice.choice(alive))
            commit(writer, move(now, State.HELD if now.state is State.ACTIVE else State.ACTIVE))
        elif choice < 0.9:
            gone = alive.pop(dice.randrange(len(alive)))
            commit(writer, DropEntry(gone.id, stored(writer, gone).version, "x"))
        else:
            now = stored(writer, dice.choice(alive))
            commit(writer, SaveEmbedding(now.id, now.version, Embedding(MODEL, vector_of(str(step)))))
        if dice.random() < 0.7:
            fresh = SqliteStore(tmp_path / "store", role="workspace", create=False)
            assert answers(store, alive) == answers(fresh, alive)
            fresh.close()


def test_what_comes_is_added_to_what_is_known(store: SqliteStore, other: SqliteStore) -> None:
    """R8: a read after a put looks up the newcomer, and of what was known nothing again."""
    commit(store, *(put(entry(f"lantern {n}")) for n in range(5)))
    assert len(store.keyword(OPEN, ("lantern",), 9).ids) == 5
    new = entry("a lantern, a lantern in the harbour")
    for writer, e in ((store, new), (other, entry("the sixth lantern"))):
        commit(writer, put(e))
        run = statements(store, lambda: store.keyword(OPEN, ("lantern",), 9))
        assert sql.ROWS_SINCE in run
        assert not {sql.POSTINGS, sql.FREQUENCIES} & set(run)
        assert run.count(sql.MATCHED) == 1  # of the newcomer
    found = store.keyword(OPEN, ("lantern",), 9)
    assert (found.size, found.frequencies) == (7, (7,))
    assert {row.id: row.counts for row in found.rows}[new.id] == (2,)


def forgetting(store: SqliteStore, old: Entry) -> dict[str, Callable[[], object]]:
    return {
        "changed": lambda: commit(store, change(stored(store, old), content="no light at all")),
        "moved": lambda: commit(store, move(stored(store, old), State.HELD)),
        "dropped": lambda: commit(store, DropEntry(old.id, 1, "gone")),
        "changed beside a newcomer": lambda: commit(
            store, put(entry("a new lantern")), change(stored(store, old), content="no light at all")
        ),
        "many events": lambda: commit(store, *(put(entry(f"{n}")) for n in range(cache._MOST_EVENTS + 1))),
        "rebuilt": store.rebuild,
        "changed under another name": lambda: commit(
            store, replace(change(stored(store, old), content="no light at all"), action="note.written")
        ),
    }


@pytest.mark.parametrize(
    "what",
    [
        "changed",
        "moved",
        "dropped",
        "changed beside a newcomer",
        "changed under another name",
        "many events",
        "rebuilt",
    ],
)
def test_what_may_have_changed_is_asked_again(store: SqliteStore, other: SqliteStore, what: str) -> None:
    """T22: whatever happens to an entry that was there, or to the index, by another process."""
    old = entry("an old lantern")
    commit(store, put(old), put(entry("a second lantern")))
    store.keyword(OPEN, ("lantern",), 9)
    forgetting(other, old)[what]()
    assert sql.POSTINGS in statements(store, lambda: store.keyword(OPEN, ("lantern",), 9))


def test_what_is_no_entry_changes_nothing_that_is_known(store: SqliteStore) -> None:
    """R8: a conversation that begins or a report that is written leaves entries as they are."""
    commit(store, put(entry("a lantern")))
    store.keyword(OPEN, ("lantern",), 9)
    commit(store, Record(EventDraft("conversation.started", "c", {})))
    run = statements(store, lambda: store.keyword(OPEN, ("lantern",), 9))
    assert not {sql.POSTINGS, sql.MATCHED} & set(run)
    commit(store, Record(EventDraft("somebody.did", "something", {})))
    assert sql.POSTINGS in statements(store, lambda: store.keyword(OPEN, ("lantern",), 9))


def test_a_store_of_the_first_schema_is_followed_once_it_is_opened(tmp_path: Path) -> None:
    """T15: what an earlier version wrote is upgraded, and read as before."""
    now = SqliteStore(first_schema(tmp_path / "store"), role="workspace", create=False)
    assert len(now.keyword(OPEN, ("lantern",), 9).ids) == 1
    commit(now, put(entry("a second lantern")))
    assert sql.POSTINGS not in statements(now, lambda: now.keyword(OPEN, ("lantern",), 9))
    assert len(now.keyword(OPEN, ("lantern",), 9).ids) == 2
    now.rebuild()
    assert now.check() == []
    now.close()
