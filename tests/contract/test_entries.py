"""Entries: written whole, changed by version, never silently lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from lukasa.model.entry import Access, CanonicalLink, Category, Derivation, GateVerdict, SourceLink, Transition
from lukasa.model.errors import Conflict, InvalidInput, NotFound, Refused
from lukasa.model.selection import Selection
from lukasa.model.text import content_key
from lukasa.model.timestamps import micros
from lukasa.model.values import SHARED, Curator, Gate, Kind, Lifetime, Origin, State, Trust, Visibility
from lukasa.storage.operations import DropEntry, LinkAction, SaveDocument
from lukasa.storage.port import Store
from tests.helpers.stores import (
    MODEL,
    NOW,
    OPEN,
    ROOM,
    WORK,
    change,
    commit,
    document,
    entry,
    later,
    move,
    put,
    stored,
    unit,
)


def test_an_entry_is_read_back_as_it_was_written(store: Store) -> None:
    """M2: every field of an entry survives the store."""
    full = entry(
        "Ada plays the 'cello\n\tat 日本 \U0001f3bb",
        scope=ROOM,
        kind=Kind.PROCEDURAL,
        lifetime=Lifetime.SHORT_TERM,
        curator=Curator.IMPORT,
        source="a page",
        importance=0.1 + 0.2,
        origin=Origin("bo", "mcp", "stdio", Trust.UNTRUSTED),
        trust=Trust.UNTRUSTED,
        updated_at=later(1),
        confirmed_at=later(2),
        owner="agent-7",
        tags=("music", "日本", "music"),
        conversation="conv",
        category=Category("interests", 0.75, "v1"),
        gate=GateVerdict(Gate.HOLD, 0.5, "unsure"),
        merged_count=3,
        valid_at=later(-5),
        invalid_at=later(5),
        state=State.HELD,
        transition=Transition(later(3), "doubt", "ada"),
        superseded_by="other",
        derived_from=("a", "b"),
        links=(SourceLink("page", 2, "p. 4", 3), SourceLink("page", 1)),
        metadata={"n": 1, "deep": {"list": [1.5, None, "x"]}},
        meta=True,
    )
    commit(store, SaveDocument(document("page"), 0), put(full))
    assert stored(store, full) == full
    assert store.versions(full.id)[-1].entry == full


def test_what_an_entry_rests_on_is_rows(store: Store) -> None:
    """M9: links name a document that is there and pin its version; they, and sources, are found from both sides."""
    first = entry("the guide asks for two", links=(SourceLink("guide", 1),))
    second = entry("so two review", derived_from=(first.id, "elsewhere"))
    with pytest.raises(NotFound):
        commit(store, put(first))
    commit(store, SaveDocument(document("guide"), 0), put(first), put(second))
    assert store.links_to(["guide", "other"]) == [CanonicalLink(first.id, "guide", 1, "", 0)]
    assert store.derived_from([first.id]) == [Derivation(second.id, first.id)]
    commit(store, change(first, links=(SourceLink("guide", 1, "", 2),)), change(second, derived_from=(first.id,)))
    assert store.links_to(["guide"]) == [CanonicalLink(first.id, "guide", 1, "", 2)]
    assert store.derived_from(["elsewhere"]) == []
    assert stored(store, first).links == (SourceLink("guide", 1, "", 2),)
    assert [version.entry.derived_from for version in store.versions(second.id)] == [
        (first.id, "elsewhere"),
        (first.id,),
    ]
    assert store.withdrawn(limit=5) == []
    commit(store, move(stored(store, first), State.FORGOTTEN))
    assert store.withdrawn(limit=5) == [Derivation(second.id, first.id)]
    commit(store, DropEntry(first.id, 3, "gone"))
    assert (store.links_to(["guide"]), store.gone([first.id, second.id])) == ([], {first.id})
    assert store.withdrawn(limit=5) == [Derivation(second.id, first.id)]
    commit(store, move(stored(store, second), State.FORGOTTEN))
    assert store.withdrawn(limit=5) == []


def test_a_save_raises_the_version(store: Store) -> None:
    """M2: the store numbers versions, whatever the value says."""
    e = entry(version=41)
    commit(store, put(e))
    commit(store, change(stored(store, e), content="the cat left"))
    assert (stored(store, e).version, stored(store, e).content) == (2, "the cat left")


def test_a_stale_version_is_a_conflict(store: Store) -> None:
    """T03: a change based on an old version is refused and leaves nothing."""
    e = entry()
    commit(store, put(e))
    commit(store, change(stored(store, e), importance=0.9))
    with pytest.raises(Conflict):
        commit(store, change(e, importance=0.1))
    assert stored(store, e).importance == 0.9


def test_an_insert_of_a_known_id_is_a_conflict(store: Store) -> None:
    """M2: an id names one entry."""
    e = entry()
    commit(store, put(e))
    with pytest.raises(Conflict):
        commit(store, put(replace(e, content="other text")))


def test_a_change_of_nothing_is_not_found(store: Store) -> None:
    """M2: an entry that is not here cannot be changed or dropped."""
    with pytest.raises(NotFound):
        commit(store, change(entry(), content="x"))
    with pytest.raises(NotFound):
        commit(store, DropEntry("nobody", 0, "gone"))


@pytest.mark.parametrize("state", [State.ACTIVE, State.HELD])
def test_the_same_text_is_stored_once(store: Store, state: State) -> None:
    """W1: a second active or held entry of the same folded text, scope and owner is a conflict."""
    commit(store, put(entry("Ada likes tea.")))
    with pytest.raises(Conflict):
        commit(store, put(entry("ada LIKES tea", state=state)))


def test_the_same_text_may_live_elsewhere(store: Store) -> None:
    """M1, M4: other scopes, other owners and history are no twins."""
    first = entry("Ada likes tea.")
    commit(store, put(first), put(entry("Ada likes tea.", scope=ROOM)), put(entry("Ada likes tea.", owner="bot")))
    commit(store, move(stored(store, first), State.FORGOTTEN), put(entry("Ada likes tea.")))
    with pytest.raises(Conflict):
        commit(store, move(stored(store, first), State.ACTIVE))


def test_twin_finds_active_and_held_only(store: Store) -> None:
    """W1: a twin is found by scope, owner and key, until it becomes history."""
    e = entry("Ada likes tea.")
    key = content_key(e.content)
    commit(store, put(e))
    found = store.twin(WORK, SHARED, key)
    assert found is not None
    assert found.id == e.id
    assert store.twin(ROOM, SHARED, key) is None
    assert store.twin(WORK, "bot", key) is None
    commit(store, move(e, State.PRUNED))
    assert store.twin(WORK, SHARED, key) is None


@pytest.mark.parametrize(
    "change_to",
    [
        {"scope": ROOM},
        {"created_at": later(1)},
        {"origin": Origin("eve", "library", "local", Trust.AUTHOR)},
    ],
)
def test_where_an_entry_came_from_is_fixed(store: Store, change_to: dict[str, object]) -> None:
    """M1, T47: tier and scope, time of creation and origin are never rewritten."""
    e = entry()
    commit(store, put(e))
    with pytest.raises(Refused):
        commit(store, change(e, **change_to))
    assert stored(store, e) == e


def test_every_version_is_kept(store: Store) -> None:
    """M3: history holds each form with its action, cause, actor and time."""
    e = entry("one")
    commit(store, put(e))
    commit(store, change(e, content="two"))
    commit(store, move(stored(store, e), State.FORGOTTEN))
    history = store.versions(e.id)
    assert [(v.entry.version, v.entry.content, v.entry.state) for v in history] == [
        (1, "one", State.ACTIVE),
        (2, "two", State.ACTIVE),
        (3, "two", State.FORGOTTEN),
    ]
    first = history[0]
    assert (first.action, first.cause, first.actor, first.at) == ("entry.added", "said so", "ada@library", NOW)
    assert history[-1].entry == stored(store, e)
    assert store.versions("nobody") == []


def test_entries_come_in_the_order_asked(store: Store) -> None:
    """M2: unknown ids are absent, known ones keep the order of the question."""
    a, b = entry("a"), entry("b")
    commit(store, put(a), put(b))
    assert list(store.entries([b.id, "nobody", a.id, b.id])) == [b.id, a.id]
    assert store.entries([]) == {}


def test_values_read_are_nobody_elses(store: Store) -> None:
    """M2: changing a returned or given dictionary does not change what is stored."""
    given = {"k": [1]}
    e = entry(metadata=given)
    commit(store, put(e))
    given["k"].append(2)
    stored(store, e).metadata["k"].append(3)
    assert stored(store, e).metadata == {"k": [1]}


def test_find_pages_newest_first(store: Store) -> None:
    """M2: pages follow each other without gap or overlap, by time of creation, then of storing."""
    times = [3, 1, 2, 2, 5, 0]
    made = [entry(f"n{i}", created_at=later(t)) for i, t in enumerate(times)]
    commit(store, *(put(e) for e in made))
    expected = [made[i].id for i in (4, 0, 3, 2, 1, 5)]
    assert [e.id for e in store.find(OPEN)] == expected
    first = store.find(OPEN, limit=2)
    second = store.find(OPEN, limit=3, after=first[-1].id)
    third = store.find(OPEN, limit=3, after=second[-1].id)
    assert [e.id for e in (*first, *second, *third)] == expected
    assert store.find(OPEN, limit=0) == []
    with pytest.raises(NotFound):
        store.find(OPEN, after="nobody")


def test_find_keeps_to_its_selection(store: Store) -> None:
    """M1, M4: only the scopes, owners and visibilities asked for, each whole."""
    mine, room, bots = entry("mine"), entry("room", scope=ROOM), entry("bot's", owner="bot")
    held, past = entry("held", state=State.HELD), entry("past", state=State.ARCHIVED)
    commit(store, *(put(e) for e in (mine, room, bots, held, past)))

    def found(selection: Selection) -> set[str]:
        return {e.id for e in store.find(selection)}

    assert found(OPEN) == {mine.id}
    assert found(Selection((WORK, ROOM, WORK))) == {mine.id, room.id}
    assert found(Selection((WORK,), owners=("bot",))) == {bots.id}
    assert found(Selection((WORK,), owners=None)) == {mine.id, bots.id}
    assert found(Selection((WORK,), frozenset({Visibility.HELD, Visibility.HISTORY}))) == {held.id, past.id}
    assert found(Selection((WORK,), frozenset())) == set()
    assert found(Selection((), owners=None)) == set()


def test_touch_counts_each_retrieval(store: Store) -> None:
    """D1: a retrieval counts one for each entry, once, and returns the counts after it."""
    a, b = entry("a"), entry("b")
    commit(store, put(a), put(b))
    assert store.touch([a.id, b.id, a.id], NOW) == {a.id: Access(1, micros(NOW)), b.id: Access(1, micros(NOW))}
    assert store.touch([a.id, "nobody"], later(5)) == {a.id: Access(2, micros(later(5)))}
    assert store.access([a.id, b.id, "nobody"]) == {a.id: Access(2, micros(later(5))), b.id: Access(1, micros(NOW))}
    assert stored(store, a) == a


def test_a_dropped_entry_is_gone_and_its_id_with_it(store: Store) -> None:
    """M3, T23: a drop removes row, history and statistics, and the id is never used again."""
    e = entry("passing remark")
    commit(store, put(e, unit(1, 0, 0, 0)))
    store.touch([e.id], NOW)
    commit(store, DropEntry(e.id, 1, "scope ended"))
    assert store.entries([e.id]) == {}
    assert store.versions(e.id) == []
    assert store.access([e.id]) == {}
    assert store.keyword(OPEN, ["remark"], 10).rows == ()
    with pytest.raises(Conflict):
        commit(store, put(e))
    commit(store, put(entry("passing remark")))


def test_a_drop_needs_the_version(store: Store) -> None:
    """M3: what changed since it was read is not dropped."""
    e = entry()
    commit(store, put(e))
    with pytest.raises(Conflict):
        commit(store, DropEntry(e.id, 2, "gone"))
    assert stored(store, e) == e


def test_what_an_action_rests_on_stays(store: Store) -> None:
    """X1: a linked entry cannot be dropped, though it may change state; the links are known."""
    e, other = entry("a"), entry("b")
    commit(store, put(e), put(other))
    commit(store, LinkAction("act-1", "sent the mail", (e.id, e.id)), LinkAction("act-2", "again", (e.id,)))
    assert store.linked([e.id, other.id, "nobody"]) == {e.id: ("act-1", "act-2")}
    with pytest.raises(Refused):
        commit(store, DropEntry(e.id, 1, "gone"))
    commit(store, move(e, State.FORGOTTEN))
    with pytest.raises(NotFound):
        commit(store, LinkAction("act-3", "?", ("nobody",)))


def test_census_counts_by_scope_and_state(store: Store) -> None:
    """M3: the counts of every scope by state."""
    commit(store, put(entry("a")), put(entry("b")), put(entry("c", state=State.STALE)), put(entry("d", scope=ROOM)))
    counted = {c.scope: dict(c.states) for c in store.census()}
    assert counted == {WORK: {State.ACTIVE: 2, State.STALE: 1}, ROOM: {State.ACTIVE: 1}}


def test_arrivals_count_what_was_written_on_each_day(store: Store) -> None:
    """U5: growth by tier, a day being one of UTC; what was retired since still arrived then."""
    late = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    days = [late, late, late + timedelta(hours=1)]
    first, *_ = written = [entry(f"n{i}", created_at=day) for i, day in enumerate(days)]
    commit(store, *map(put, written), put(entry("elsewhere", scope=ROOM, created_at=late)))
    commit(store, move(first, State.FORGOTTEN))
    counted = [(a.day.isoformat(), a.tier, a.count) for a in store.arrivals()]
    assert counted == [("2026-03-01", ROOM.tier, 1), ("2026-03-01", WORK.tier, 2), ("2026-03-02", WORK.tier, 1)]


def test_lone_surrogates_are_refused(store: Store) -> None:
    """T37: text that UTF-8 cannot hold is the caller's mistake, and nothing is stored."""
    with pytest.raises(InvalidInput):
        commit(store, put(entry("broken \ud800")))
    assert store.head()[0] == 0


def test_metadata_must_be_json(store: Store) -> None:
    """M2: what cannot be written as JSON is refused before anything is stored."""
    with pytest.raises(InvalidInput):
        commit(store, put(entry(metadata={"x": object()})))
    assert store.head()[0] == 0


def test_what_an_entry_replaced_is_found(store: Store) -> None:
    """B3: from a correction to what it superseded, in whatever state that is now."""
    old, older, other = entry("one"), entry("two"), entry("three")
    new = entry("four")
    commit(store, put(older), put(old), put(other), put(new))
    commit(store, change(stored(store, older), superseded_by=new.id, state=State.INVALIDATED))
    commit(store, change(stored(store, old), superseded_by=new.id, state=State.FORGOTTEN))
    assert [e.id for e in store.replaced_by(new.id)] == [older.id, old.id]
    assert store.replaced_by(other.id) == []
    commit(store, change(stored(store, old), superseded_by=None, state=State.ACTIVE))
    assert [e.id for e in store.replaced_by(new.id)] == [older.id]


@pytest.mark.parametrize("fault", ["known id", "id twice", "used id", "known text", "text twice", "vector"])
def test_one_fault_among_many_new_entries_undoes_them_all(store: Store, fault: str) -> None:
    """M3, T03: many entries in one transaction are refused for the same reasons as one, and none is left behind."""
    gone, known = entry("gone"), entry("known text")
    commit(store, put(gone), put(known))
    commit(store, DropEntry(gone.id, 1, "scope ended"))
    many = [put(entry(f"fact number {n}"), unit(1, n, 0, 0)) for n in range(5)]
    wrong = {
        "known id": put(replace(known, content="other")),
        "id twice": put(replace(many[1].entry, content="other")),
        "used id": put(replace(gone, content="other")),
        "known text": put(entry("Known text.")),
        "text twice": put(entry("Fact number 1")),
        "vector": put(entry("other"), unit(1, 0, 0)),
    }[fault]
    before = store.head()
    with pytest.raises(InvalidInput if fault == "vector" else Conflict):
        commit(store, *many[:3], wrong, *many[3:])
    assert store.head() == before
    assert store.entries(save.entry.id for save in many) == {}
    commit(store, *many)
    assert len(store.entries(save.entry.id for save in many)) == 5


def test_numbers_of_rows_are_never_used_again(store: Store) -> None:
    """T23: what comes after a dropped entry finds nothing of it, vectors and index terms included."""
    first, last = entry("first thing"), entry("last thing")
    commit(store, put(first, unit(1, 0, 0, 0)), put(last, unit(0, 1, 0, 0)))
    commit(store, DropEntry(last.id, 1, "scope ended"))
    new = entry("newest remark")
    commit(store, put(new))
    assert [row.id for row in store.keyword(OPEN, ["thing"], 10).rows] == [first.id]
    assert [n.id for n in store.nearest(OPEN, MODEL, unit(0, 1, 0, 0), 10)] == [first.id]


def test_ids_are_found_by_a_beginning_or_an_end(store: Store) -> None:
    """C2, U3: of the entries that are there, whatever their state; at most as many as asked for."""
    for end in ("aaaa", "bbbb"):
        commit(store, put(replace(entry(f"entry {end}"), id=f"0198a7de-0000-7000-8000-00000000{end}")))
    both = store.entry_ids("0198a7de", limit=9)
    assert [id[-4:] for id in both] == ["aaaa", "bbbb"]
    assert store.entry_ids("0198a7de", limit=1) == both[:1]
    assert (store.entry_ids("0000aaaa", limit=9), store.entry_ids(both[1], limit=9)) == (both[:1], both[1:])
    assert store.entry_ids("7000", limit=9) == []
    commit(store, DropEntry(both[0], 1, "gone"))
    assert store.entry_ids("aaaa", limit=9) == []
