"""The event log, and the one transaction that a change and its record share."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest
from msgspec.structs import replace

from lukasa.model.conversation import Note
from lukasa.model.errors import Conflict, LukasaError
from lukasa.model.events import GENESIS, EventDraft, chain_faults
from lukasa.model.values import State
from lukasa.storage.operations import (
    DropEntry,
    DropNotes,
    Embedding,
    LinkAction,
    Operation,
    Record,
    SaveChannel,
    SaveConversation,
    SaveEmbedding,
    SaveEntry,
    SaveNamed,
    SaveNote,
    Transaction,
    Verdict,
)
from lukasa.storage.port import Store
from tests.helpers.stores import (
    ACTOR,
    MODEL,
    NOW,
    OPEN,
    channel,
    commit,
    conversation,
    entry,
    later,
    move,
    named,
    put,
    stored,
    unit,
)


def test_every_change_leaves_an_event(store: Store) -> None:
    """X2: one event an operation, in order, named and sealed."""
    e, room = entry(), channel()
    c = conversation(room)
    commit(store, put(e), SaveNamed(named(), 0), SaveChannel(room), SaveConversation(c, None))
    commit(store, SaveNote(Note(c.id, "k", 1, NOW, NOW)), DropNotes(c.id), LinkAction("a", "did", (e.id,)))
    commit(store, move(e, State.FORGOTTEN), Record(EventDraft("write.refused", "-", {"why": "x"})))
    actions = [event.action for event in store.events()]
    assert actions == [
        "entry.added",
        "named.created",
        "channel.created",
        "conversation.started",
        "note.written",
        "note.cleared",
        "action.linked",
        "entry.forgotten",
        "write.refused",
    ]
    assert [event.seq for event in store.events()] == list(range(1, 10))
    assert chain_faults(store.event_stream(), head=store.head()) == []


def test_a_vector_is_no_event(store: Store) -> None:
    """X2: derived data is not a change of memory."""
    e = entry()
    commit(store, put(e))
    commit(store, SaveEmbedding(e.id, 1, Embedding(MODEL, unit(1, 0, 0, 0))))
    assert store.head()[0] == 1


def test_an_empty_log_has_a_head(store: Store) -> None:
    """X2: the chain starts at its genesis."""
    assert store.head() == (0, GENESIS)
    assert store.events() == []


def test_the_log_never_holds_content(store: Store) -> None:
    """X2, T59: an event holds a commitment that differs between entries of the same text."""
    commit(store, put(entry("secret word")), put(entry("secret word", owner="bot")))
    first, second = store.events()
    assert "secret" not in repr(first)
    assert first.detail["commitment"] != second.detail["commitment"]
    assert len(store.secret()) == 32


def test_events_are_asked_by_place_subject_and_action(store: Store) -> None:
    """X2: the log can be paged and filtered."""
    a, b = entry("a"), entry("b")
    commit(store, put(a), put(b), move(a, State.STALE), move(b, State.STALE))
    assert [e.seq for e in store.events(after=1, limit=2)] == [2, 3]
    assert [e.seq for e in store.events(subject=a.id)] == [1, 3]
    assert [e.seq for e in store.events(action="entry.stale")] == [3, 4]
    assert [e.seq for e in store.events(subject=a.id, action="entry.stale", after=3)] == []


def test_times_of_other_zones_still_verify(store: Store) -> None:
    """X2: a digest covers the time as it was written, and reads back the same."""
    at = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
    store.apply(
        Transaction(ACTOR, at, (put(entry()), Record(EventDraft("note", "-", {"n": (1, 2), "m": {2: 1, 10: 1}}))))
    )
    assert chain_faults(store.event_stream(), head=store.head()) == []
    assert store.events()[0].at.isoformat() == at.isoformat()


def test_the_ledger_is_in_the_event(store: Store) -> None:
    """X2: why a write was made is recorded with it."""
    verdict = Verdict("gate", "allow", "plain statement", {"score": 0.5})
    commit(store, SaveEntry(entry(), 0, "entry.added", "said", ledger=(verdict,)))
    assert store.events()[0].detail["ledger"] == [verdict.plain()]


def test_details_verify_as_they_are_read_back(store: Store) -> None:
    """T24: numbers as keys and tuples are text and lists in a file; the seal is of what will be read."""
    detail = {"by": {10: "ten", 9: ("a", "b")}, "of": [{2: 1}]}
    commit(store, Record(EventDraft("note.made", "x", detail)))
    (event,) = store.events()
    assert event.detail == {"by": {"10": "ten", "9": ["a", "b"]}, "of": [{"2": 1}]}
    assert chain_faults([event]) == []


@pytest.mark.parametrize("kind", ["stale", "twin", "missing note"])
def test_a_batch_that_fails_leaves_nothing(store: Store, kind: str) -> None:
    """T01: if the last operation fails, no row, index, vector, record or event of the others is there."""
    old, room = entry("old"), channel("old room")
    c = conversation(room)
    commit(store, put(old, unit(1, 0, 0, 0)), SaveChannel(room), SaveConversation(c, None))
    before = (store.head(), store.find(OPEN), store.keyword(OPEN, ["old", "new"], 9), store.channels(), store.named())
    last: dict[str, Operation] = {
        "stale": move(entry("x", id=old.id, version=9), State.STALE),
        "twin": put(entry("new")),
        "missing note": DropNotes(c.id, "k"),
    }
    batch: tuple[Operation, ...] = (
        put(entry("new"), unit(0, 1, 0, 0)),
        move(old, State.FORGOTTEN),
        SaveChannel(channel("new")),
        SaveNamed(named(), 0),
        Record(EventDraft("x", "y", {})),
        last[kind],
    )
    with pytest.raises(LukasaError):
        commit(store, *batch)
    after = (store.head(), store.find(OPEN), store.keyword(OPEN, ["old", "new"], 9), store.channels(), store.named())
    assert after == before
    assert [n.id for n in store.nearest(OPEN, MODEL, unit(0, 1, 0, 0), 9)] == [old.id]


def test_operations_see_the_ones_before_them(store: Store) -> None:
    """T01: a batch is a sequence: an entry made in it can be changed, linked or dropped in it."""
    e, f = entry("a"), entry("b")
    commit(store, put(e), move(e, State.STALE), put(f), DropEntry(f.id, 1, "never mind"))
    assert [event.action for event in store.events()] == [
        "entry.added",
        "entry.stale",
        "entry.added",
        "entry.dropped",
    ]
    with pytest.raises(Conflict):
        commit(store, put(f))


def test_what_there_is_and_what_happened_is_counted(store: Store) -> None:
    """T2: entries by tier, state, kind, category and source; events by action; both since a time."""
    old = entry("one", created_at=later(-60), source="user")
    commit(store, put(old), put(entry("two", source="user")), put(entry("three", source="page")))
    commit(store, move(stored(store, old), State.FORGOTTEN))
    shares = [(s.state, s.source, s.count, s.added) for s in store.shares(later(-1))]
    assert shares == [
        (State.ACTIVE, "page", 1, 1),
        (State.ACTIVE, "user", 1, 1),
        (State.FORGOTTEN, "user", 1, 0),
    ]
    assert [s.merged for s in store.shares(later(-1))] == [0, 0, 0]
    again = stored(store, old)
    commit(
        store, SaveEntry(replace(again, merged_count=4, version=again.version + 1), again.version, "entry.merged", "")
    )
    assert [s.merged for s in store.shares(later(-1)) if s.state is State.FORGOTTEN] == [3]
    assert store.event_counts(later(-1)) == {"entry.merged": 1, "entry.added": 3, "entry.forgotten": 1}
    assert store.event_counts(later(1)) == {}


def test_subjects_are_found_by_their_beginning(store: Store) -> None:
    """An id is found by its beginning, each once whatever happened to it, and no more than asked for."""
    ids = [
        f"{time}-7bc7-aded-00000000000{number}"
        for number, time in enumerate(("01a1f5ee-a1ec",) * 2 + ("02a1f5ee-0000",))
    ]
    for id in ids:
        commit(store, *[Record(EventDraft("job.queued", id, {})) for _ in range(3)])
    assert store.subjects("01a1f5ee", 9) == ids[:2]
    assert store.subjects("01a1f5ee", 1) == ids[:1]
    assert store.subjects(ids[1], 9) == [ids[1]]
    assert store.subjects("03", 9) == []
