"""Searching: the same rows, counts and cosines as plain brute force, within the selection and nowhere else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lukasa.index import bm25
from lukasa.index.matches import KeywordMatches
from lukasa.model.candidate import candidate_of
from lukasa.model.entry import DISPOSITION, EXEMPT, Access, Category, Entry, Scope
from lukasa.model.errors import InvalidContent, InvalidInput
from lukasa.model.ids import new_id
from lukasa.model.selection import Filters, Selection
from lukasa.model.text import content_key
from lukasa.model.text import terms as terms_of
from lukasa.model.timestamps import micros
from lukasa.model.values import SHARED, Curator, Kind, Lifetime, State, Visibility
from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.operations import DropEntry, Embedding, SaveEmbedding, SaveEntry
from lukasa.storage.port import Store, index_terms
from lukasa.storage.postgres.postgres_store import PostgresStore
from lukasa.storage.sqlite import SqliteStore
from tests.helpers.stores import (
    MODEL,
    OPEN,
    OTHER_MODEL,
    ROOM,
    WORK,
    change,
    commit,
    entry,
    later,
    move,
    put,
    stored,
    unit,
    vector_of,
)

VOCABULARY = [
    "cat",
    "dog",
    "straße",
    "STRASSE",
    "naïve",
    "東京タワー",
    "日本",
    "ไทย",
    "don't",
    "multi-agent",
    "AND",
    "OR",
    "NOT",
    "NEAR",
    "title:cat",
    'say "cat"',
    "cat*",
    "^dog",
    "GB/s",
    "x" * 70,
    "é" * 40,
    "ﬁne",
    "ǅ",
    "12x7",
    "1xcat",
    "null\0byte",
    "🎻",
]
TEXTS = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6).map(" ".join)
ODD = st.text(max_size=8)
SCOPES = [WORK, ROOM, Scope("workspace", (("workspace", "w1 "),)), Scope("workspace", (("workspace", None),))]
ENTRIES = st.builds(
    lambda text, n, **rest: entry(f"{text} n{n}", **rest),
    TEXTS,
    st.integers(0, 10**9),
    scope=st.sampled_from(SCOPES),
    owner=st.sampled_from([SHARED, "bot", "Bot"]),
    state=st.sampled_from(list(State)),
    kind=st.sampled_from(list(Kind)),
    curator=st.sampled_from(list(Curator)),
    source=st.sampled_from(["user", "", "a\0b"]),
    tags=st.lists(st.sampled_from(["cat", "Cat", "日本", "a\0", '"', ""]), max_size=3).map(tuple),
    category=st.none() | st.sampled_from(["a", "b", "1"]).map(lambda name: Category(name, 0.5, "v1")),
    lifetime=st.sampled_from(list(Lifetime)),
    conversation=st.none() | st.sampled_from(["c1", "c2"]),
    importance=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    created_at=st.integers(0, 5).map(later),
)
FILTERS = st.builds(
    Filters,
    kinds=st.frozensets(st.sampled_from(list(Kind)), max_size=2),
    categories=st.frozensets(st.sampled_from(["a", "b", "1", "z"]), max_size=2),
    tags=st.frozensets(st.sampled_from(["cat", "日本", "a\0", "a", '"', ""]), max_size=2),
    sources=st.frozensets(st.sampled_from(["user", "a", "a\0b", ""]), max_size=2),
    curators=st.frozensets(st.sampled_from(list(Curator)), max_size=2),
    states=st.frozensets(st.sampled_from(list(State)), max_size=3),
    lifetimes=st.frozensets(st.sampled_from(list(Lifetime)), max_size=2),
    conversations=st.frozensets(st.sampled_from(["c1", "C2"]), max_size=2),
    min_importance=st.none() | st.sampled_from([0.0, 0.25, 0.3, 1.0]),
    since=st.none() | st.integers(0, 5).map(later),
    until=st.none() | st.integers(0, 6).map(later),
)
SELECTIONS = st.builds(
    Selection,
    scopes=st.lists(st.sampled_from(SCOPES), max_size=3).map(tuple),
    visibilities=st.frozensets(st.sampled_from(list(Visibility)), min_size=1),
    owners=st.none() | st.lists(st.sampled_from([SHARED, "bot", "BOT"]), max_size=2).map(tuple),
    filters=st.just(Filters()) | FILTERS,
)
QUESTIONS = st.lists(TEXTS.flatmap(lambda text: st.sampled_from(terms_of(text) or ["-"])) | ODD, max_size=6)

slowly = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


def comparable(found: KeywordMatches) -> tuple[object, ...]:
    return found.size, found.total_terms, found.frequencies, sorted((r.id, r.counts, r.length) for r in found.rows)


@slowly
@given(
    st.lists(ENTRIES, max_size=12, unique_by=lambda e: content_key(e.content)),
    st.lists(st.tuples(SELECTIONS, QUESTIONS), min_size=1, max_size=4),
)
def test_both_stores_find_the_same(
    tmp_path_factory: pytest.TempPathFactory, made: list[Entry], asked: list[tuple[Selection, list[str]]]
) -> None:
    """R2, T33, T54: keyword counts, pages, cosines and censuses equal brute force, whatever the words and filters."""
    folder: Path = tmp_path_factory.mktemp("store")
    oracle, real = MemoryStore(), SqliteStore(folder, role="workspace", create=True)
    for store in (oracle, real):
        commit(store, *(put(e, vector_of(e.content)) for e in made))
    for selection, terms in asked:
        assert comparable(real.keyword(selection, terms, 99)) == comparable(oracle.keyword(selection, terms, 99))
        assert real.find(selection) == oracle.find(selection)
        near = [s.nearest(selection, MODEL, vector_of("q"), 99) for s in (real, oracle)]
        assert {n.id for n in near[0]} == {n.id for n in near[1]}
        assert np.allclose([n.cosine for n in near[0]], [n.cosine for n in near[1]], atol=1e-6)
    assert {c.scope: c.states for c in real.census()} == {c.scope: c.states for c in oracle.census()}
    assert real.check() == []
    real.close()


@slowly
@given(made=st.lists(ENTRIES, min_size=1, max_size=8, unique_by=lambda e: content_key(e.content)), filters=FILTERS)
def test_filters_mean_what_admits_says(
    tmp_path_factory: pytest.TempPathFactory, made: list[Entry], filters: Filters
) -> None:
    """R3: a page holds exactly the entries of the selection that `Filters.admits` admits."""
    store = SqliteStore(tmp_path_factory.mktemp("store"), role="workspace", create=True)
    commit(store, *(put(e) for e in made))
    everything = Selection(tuple(SCOPES), frozenset(Visibility), None, filters)
    assert {e.id for e in store.find(everything)} == {e.id for e in made if filters.admits(e)}
    store.close()


@pytest.mark.parametrize("word", VOCABULARY)
def test_a_word_finds_its_own_entry(store: Store, word: str) -> None:
    """T54: any word, operator or quote is text and no syntax, and finds the entry that holds it."""
    e = entry(f"about {word} here")
    if "\0" in word and isinstance(store, PostgresStore):
        with pytest.raises(InvalidContent, match="NUL"):  # as every surface refuses it, before it comes to a store
            commit(store, put(e))
        return
    commit(store, put(e), put(entry("nothing else")))
    asked = terms_of(word)
    found = store.keyword(OPEN, asked, 10)
    counts = Counter(index_terms(e))
    expected = [(e.id, tuple(counts[t] for t in asked), counts.total())] if asked else []
    assert [(r.id, r.counts, r.length) for r in found.rows] == expected


@pytest.mark.parametrize("term", ["", " ", "CAT", "cat dog", "cat*", '"', "1xcat", "ca", "cát", "a" * 40_000, "\0"])
def test_a_term_is_compared_whole(store: Store, term: str) -> None:
    """T54: what is not exactly an index term matches nothing, and never raises."""
    commit(store, put(entry("cat")), put(entry("a" * 39_999)))
    found = store.keyword(OPEN, [term, "cat"], 10)
    assert found.frequencies == (0, 1)
    assert [r.counts for r in found.rows] == [(0, 1)]


def test_terms_longer_than_the_index_takes_are_told_apart(store: Store) -> None:
    """T54: two enormous words that differ only at their end are two words."""
    a, b = entry("w" * 50_000 + "a"), entry("w" * 50_000 + "b")
    commit(store, put(a), put(b))
    assert [r.id for r in store.keyword(OPEN, index_terms(a), 10).rows] == [a.id]


def test_a_term_asked_twice_counts_twice(store: Store) -> None:
    """R2: counts stand in the order asked, one for each term asked."""
    e = entry("cat cat dog")
    commit(store, put(e))
    found = store.keyword(OPEN, ["dog", "cat", "dog", "cow"], 10)
    assert found.frequencies == (1, 1, 1, 0)
    assert found.rows[0].counts == (1, 2, 1, 0)


def test_tags_are_found_too(store: Store) -> None:
    """R2: an entry is found by the words of its tags."""
    e = entry("plain", tags=("Green Tea",))
    commit(store, put(e))
    assert [r.id for r in store.keyword(OPEN, terms_of("tea"), 5).rows] == [e.id]


def test_filters_come_before_the_limit(store: Store) -> None:
    """R3: a limit counts admitted rows, by keyword as by vector."""
    wanted = entry("cat somewhere among many other words that make it rank last", source="here")
    commit(store, put(wanted, unit(-1, 0, 0, 0)))
    commit(store, *(put(entry(f"cat {i}"), unit(1, 0, 0, i)) for i in range(1, 30)))
    selection = Selection((WORK,), filters=Filters(sources=frozenset({"here"})))
    assert [r.id for r in store.keyword(selection, ["cat"], 1).rows] == [wanted.id]
    assert [n.id for n in store.nearest(selection, MODEL, unit(1, 0, 0, 0), 1)] == [wanted.id]


def test_the_best_rows_come_first(store: Store) -> None:
    """R2: a limit keeps the rows with rarer and more matches; among equals the newer."""
    commit(store, *(put(entry(f"cat n{i}")) for i in range(20)))
    best, twin_a, twin_b = entry("cat violin"), entry("dog xa"), entry("dog xb")
    commit(store, put(best), put(twin_a), put(twin_b))
    assert [r.id for r in store.keyword(OPEN, ["cat", "violin"], 1).rows] == [best.id]
    assert [r.id for r in store.keyword(OPEN, ["dog"], 2).rows] == [twin_b.id, twin_a.id]


def test_too_many_terms_are_bounded(store: Store) -> None:
    """R2: an enormous question is answered from its rarest terms, and counts all of them."""
    rare = entry("pin")
    commit(store, put(rare), *(put(entry(f"hay {i}")) for i in range(3)))
    words = [f"none{i}" for i in range(3000)]
    found = store.keyword(OPEN, [*words, "hay", "pin"], 10)
    assert found.frequencies[-2:] == (3, 1)
    assert len(found.rows) == 4


def test_scopes_do_not_leak_into_a_search(store: Store) -> None:
    """M1, M4, T07: sizes, frequencies, rows and cosines come from the rooms asked for alone."""
    mine = entry("cat")
    others = [
        entry("cat", scope=ROOM),
        entry("cat", owner="bot"),
        entry("cat", state=State.ARCHIVED),
        entry("cat", scope=Scope("workspace", (("workspace", "w1x"),))),
        entry("cat", scope=Scope("Workspace", (("workspace", "w1"),))),
    ]
    commit(store, *(put(e, unit(1, 0, 0, 0)) for e in (mine, *others)))
    found = store.keyword(OPEN, ["cat"], 10)
    assert (found.size, found.total_terms, found.frequencies) == (1, 1, (1,))
    assert [r.id for r in found.rows] == [mine.id]
    assert [n.id for n in store.nearest(OPEN, MODEL, unit(1, 0, 0, 0), 10)] == [mine.id]


def test_an_entry_moves_with_its_state(store: Store) -> None:
    """M3: words and vectors follow an entry into history and back; each room counts its own."""
    e = entry("cat")
    commit(store, put(e, unit(1, 0, 0, 0)), put(entry("dog"), unit(0, 1, 0, 0)))
    past = Selection((WORK,), frozenset({Visibility.HISTORY}))
    near = unit(1, 0, 0, 0)
    assert store.nearest(OPEN, MODEL, near, 1)[0].id == e.id
    commit(store, move(e, State.FORGOTTEN))
    assert store.keyword(OPEN, ["cat"], 5) == KeywordMatches(1, 1, (0,))
    assert [n.id for n in store.nearest(past, MODEL, near, 5)] == [e.id]
    assert e.id not in {n.id for n in store.nearest(OPEN, MODEL, near, 5)}
    commit(store, move(stored(store, e), State.ACTIVE))
    assert [r.id for r in store.keyword(OPEN, ["cat"], 5).rows] == [e.id]
    assert store.nearest(OPEN, MODEL, near, 1)[0].id == e.id
    assert store.nearest(past, MODEL, near, 5) == []


def test_a_change_of_owner_moves_the_entry(store: Store) -> None:
    """M4: an entry given to an agent leaves the shared room."""
    e = entry("cat")
    commit(store, put(e, unit(1, 0, 0, 0)))
    commit(store, change(e, owner="bot"))
    assert store.keyword(OPEN, ["cat"], 5).rows == ()
    assert [n.id for n in store.nearest(Selection((WORK,), owners=("bot",)), MODEL, unit(1, 0, 0, 0), 5)] == [e.id]


def test_a_line_is_found_among_many_long_texts_that_hold_its_words(store: Store) -> None:
    """R1: a long text holds any word sooner; where texts are long, what is found does not go by that."""
    replies = [entry("cat dog " + " ".join(f"word{n}x{m}" for m in range(60)) + " cat") for n in range(12)]
    line = entry("cat dog ate")
    commit(store, *(put(e) for e in [line, *replies]))
    assert store.keyword(OPEN, ["cat", "dog"], 3).candidates[0].id == line.id


@pytest.mark.parametrize(
    ("limit", "terms", "looked_at"), [(40, 25, 40), (40, 26, 200), (200, 26, 400), (500, 26, 500), (1, 2_000, 5)]
)
def test_how_many_are_looked_at_is_bounded(limit: int, terms: int, looked_at: int) -> None:
    """R1: five times what is wanted where texts are longer than a passage, at most 400, and never fewer than wanted."""
    assert bm25.cut_size(limit, 10, 10 * terms) == looked_at


def test_changed_text_is_found_by_its_new_words(store: Store) -> None:
    """T22: an old word no longer finds the entry, and no vector describes text that is gone."""
    e = entry("cat")
    commit(store, put(e, unit(1, 0, 0, 0)))
    commit(store, change(e, content="dog"))
    assert store.keyword(OPEN, ["cat", "dog"], 5).frequencies == (0, 1)
    assert store.nearest(OPEN, MODEL, unit(1, 0, 0, 0), 5) == []
    assert [(u.id, u.version, u.content) for u in store.unembedded(MODEL, 5)] == [(e.id, 2, "dog")]


def test_a_change_beside_the_text_keeps_the_vector(store: Store) -> None:
    """T22: only new text needs a new vector."""
    e = entry("cat")
    commit(store, put(e, unit(1, 0, 0, 0)))
    commit(store, change(e, importance=0.9, tags=("pet",)))
    assert list(store.vectors([e.id], MODEL)) == [e.id]


def test_new_text_with_its_vector_drops_other_models(store: Store) -> None:
    """T23: the vector given replaces, and those of other models go with the old text."""
    e = entry("cat")
    commit(store, put(e, unit(1, 0, 0, 0)), SaveEmbedding(e.id, 1, Embedding(OTHER_MODEL, unit(0, 1, 0, 0))))
    new = change(e, content="dog")
    commit(store, SaveEntry(new.entry, 1, "entry.updated", "x", embedding=Embedding(MODEL, unit(0, 0, 1, 0))))
    assert np.allclose(store.vectors([e.id], MODEL)[e.id], unit(0, 0, 1, 0))
    assert store.vectors([e.id], OTHER_MODEL) == {}


def test_a_late_vector_is_let_go(store: Store) -> None:
    """T23: a vector of old text, of the future or of a dropped entry is ignored; of the same text it is kept."""
    e = entry("cat")
    commit(store, put(e))
    commit(store, change(e, importance=0.7))
    commit(store, change(stored(store, e), content="dog"))
    commit(store, change(stored(store, e), importance=0.8))
    for version in (1, 2, 9):
        commit(store, SaveEmbedding(e.id, version, Embedding(MODEL, unit(1, 0, 0, 0))))
        assert store.vectors([e.id], MODEL) == {}
    commit(store, SaveEmbedding("nobody", 1, Embedding(MODEL, unit(1, 0, 0, 0))))
    commit(store, SaveEmbedding(e.id, 3, Embedding(MODEL, unit(1, 0, 0, 0))))
    assert list(store.vectors([e.id, "nobody"], MODEL)) == [e.id]


def test_models_are_never_mixed(store: Store) -> None:
    """R2: a search by one model sees its vectors alone, though two have the same name and size."""
    a, b = entry("a"), entry("b")
    commit(store, put(a, unit(1, 0, 0, 0)), put(b, unit(1, 0, 0, 0), OTHER_MODEL))
    assert [n.id for n in store.nearest(OPEN, MODEL, unit(1, 0, 0, 0), 9)] == [a.id]
    assert [n.id for n in store.nearest(OPEN, OTHER_MODEL, unit(1, 0, 0, 0), 9)] == [b.id]
    assert [u.id for u in store.unembedded(MODEL, 9)] == [b.id]
    assert store.vectors([b.id], MODEL) == {}


def test_vectors_come_back_as_given(store: Store) -> None:
    """R2: the stored numbers are the ones given, to the bit."""
    e, v = entry(), vector_of("anything")
    commit(store, put(e, v))
    assert store.vectors([e.id], MODEL)[e.id].tobytes() == v.astype("<f4").tobytes()


@pytest.mark.parametrize("numbers", [(1, 2, 3), (1, 2, 3, float("nan")), (1, 2, 3, float("inf"))])
def test_a_vector_must_fit_its_model(store: Store, numbers: tuple[float, ...]) -> None:
    """R2: wrong size or numbers that are none are refused with everything around them."""
    with pytest.raises(InvalidInput):
        commit(store, put(entry(), np.array(numbers, dtype=np.float32)))
    assert store.find(OPEN) == []


@pytest.mark.parametrize("kinds", [frozenset[Kind](), frozenset({Kind.SEMANTIC})])
def test_pages_of_a_time(store: Store, kinds: frozenset[Kind]) -> None:
    """R1: from page to page through what was recorded between two moments, the first of them included, newest first."""
    told = [entry(f"cat {n}", created_at=later(n)) for n in range(10)]
    commit(store, *map(put, told))
    then = replace(OPEN, filters=Filters(kinds=kinds, since=later(2), until=later(8)))
    pages: list[list[Entry]] = []
    while page := store.find(then, limit=4, after=pages[-1][-1].id if pages else None):
        pages.append(page)
    assert [[e.content for e in page] for page in pages] == [["cat 7", "cat 6", "cat 5", "cat 4"], ["cat 3", "cat 2"]]
    assert store.find(then, after=told[9].id) == store.find(then)
    assert store.find(then, after=told[2].id) == []


def test_a_selection_is_empty_until_something_is_in_its_rooms(store: Store) -> None:
    """R3: whoever is not there, held or forgotten elsewhere, or another's, makes no room less empty."""
    other = Selection((Scope("workspace", (("workspace", "w2"),)),))
    assert not store.size(OPEN)
    commit(store, put(e := entry("somebody")), put(entry("somebody else", owner="another agent")))
    assert store.size(OPEN) == 1
    assert store.size(replace(OPEN, owners=None)) == 2
    assert store.size(replace(OPEN, filters=Filters(tags=frozenset({"none such"})))) == 1
    assert not store.size(other)
    assert not store.size(replace(OPEN, owners=("an agent",)))
    commit(store, move(stored(store, e), State.FORGOTTEN))
    assert not store.size(OPEN)
    assert store.size(replace(OPEN, visibilities=frozenset({Visibility.HISTORY})))


def test_who_stands_beside_whom_does_not_depend_on_what_was_asked_before(store: Store) -> None:
    """R3: also of entries in another room than the one that was searched last."""
    other = Scope("workspace", (("workspace", "w2"),))
    mine = [entry(f"mine {n}") for n in range(3)]
    theirs = [entry(f"theirs {n}", scope=other) for n in range(3)]
    commit(store, *(put(e) for e in (*mine, *theirs)))
    with store.snapshot() as now:
        now.keyword(OPEN, ("mine",), 5)
        assert now.adjacent([theirs[0].id, mine[0].id], 1) == {
            theirs[0].id: {theirs[1].id: 1},
            mine[0].id: {mine[1].id: 1},
        }


def test_the_nearest_are_exact(store: Store) -> None:
    """R2: the best cosines, best first, equal a plain product with every vector, to four digits; newer first among
    equals."""
    made = [entry(f"e{i}") for i in range(60)]
    vectors = {e.id: vector_of(e.content) for e in made}
    twin = entry("same direction as e0")
    vectors[twin.id] = vectors[made[0].id]
    commit(store, *(put(e, vectors[e.id]) for e in (*made, twin)))
    query = vector_of("q")
    exact = sorted(((float(v @ query), id) for id, v in vectors.items()), reverse=True)
    found = store.nearest(OPEN, MODEL, query * 3, 20)
    assert np.allclose([n.cosine for n in found], [cosine for cosine, _ in exact[:20]], atol=5e-5)
    tied = store.nearest(OPEN, MODEL, vectors[twin.id], 2)
    assert [n.id for n in tied] == [twin.id, made[0].id]
    assert store.nearest(OPEN, MODEL, query, 0) == []


def test_a_dropped_vector_is_not_found(store: Store) -> None:
    """T23: a search after a drop does not see the entry, however warm its caches are."""
    made = [entry(f"e{i}") for i in range(4)]
    commit(store, *(put(e, vector_of(e.content)) for e in made))
    assert len(store.nearest(OPEN, MODEL, unit(1, 0, 0, 0), 9)) == 4
    commit(store, DropEntry(made[1].id, 1, "gone"), put(entry("e9"), vector_of("e9")))
    found = {n.id for n in store.nearest(OPEN, MODEL, unit(1, 0, 0, 0), 9)}
    assert made[1].id not in found
    assert len(found) == 4


def test_unembedded_leaves_history_out(store: Store) -> None:
    """R2: what waits for a vector is listed oldest first, up to a limit, without history."""
    made = [entry(f"e{i}", created_at=later(-i)) for i in range(4)]
    commit(store, *(put(e) for e in made), put(entry("past", state=State.PRUNED)))
    assert [u.id for u in store.unembedded(MODEL, 3)] == [e.id for e in made[:3]]


def test_an_empty_question_answers_sizes(store: Store) -> None:
    """R2: no terms, no rows; the collection's size is still known."""
    commit(store, put(entry("cat dog")))
    assert store.keyword(OPEN, [], 9) == KeywordMatches(1, 2, ())
    assert store.keyword(Selection(()), ["cat"], 9) == KeywordMatches(0, 0, (0,))


def test_neighbours_come_by_the_order_of_writing(store: Store) -> None:
    """R1: before and after, counted in steps, as far as asked."""
    rows = [entry(f"turn number {n}", conversation="c") for n in range(5)]
    commit(store, *(put(row) for row in rows))
    ids = [row.id for row in rows]
    assert store.adjacent([ids[2]], 2) == {ids[2]: {ids[0]: -2, ids[1]: -1, ids[3]: 1, ids[4]: 2}}
    assert store.adjacent([ids[0], new_id()], 1) == {ids[0]: {ids[1]: 1}}
    assert store.adjacent([], 2) == {}


def test_neighbours_are_of_one_room_and_one_conversation(store: Store) -> None:
    """R1, M4: another scope, owner, state or conversation in between is stepped over, and never answered."""
    first, last = entry("first turn", conversation="c"), entry("last turn", conversation="c")
    between = [
        entry("another scope", conversation="c", scope=Scope("workspace", (("workspace", "elsewhere"),))),
        entry("another owner", conversation="c", owner="researcher"),
        entry("another conversation", conversation="d"),
        entry("no conversation"),
    ]
    gone = entry("forgotten", conversation="c")
    commit(store, put(first), *(put(row) for row in between), put(gone), put(last))
    commit(store, move(stored(store, gone), State.FORGOTTEN))
    assert store.adjacent([first.id], 2) == {first.id: {last.id: 1}}
    assert store.adjacent([between[3].id], 2) == {}


def test_neighbours_are_looked_for_nearby(store: Store) -> None:
    """R1: the work is bounded: what is far away in the order of writing is no neighbour."""
    first, last = entry("first turn", conversation="c"), entry("last turn", conversation="c")
    commit(store, put(first), *(put(entry(f"note {n}")) for n in range(20)), put(last))
    assert store.adjacent([first.id, last.id], 2) == {}


def test_a_word_that_is_everywhere_is_bounded_and_counted_rightly(store: Store) -> None:
    """R1, R10: of a word that thousands of entries hold, the newest are looked at; how often each holds it is exact."""
    many = bm25.POSTING_BUDGET + 40
    commit(store, *(put(entry(f"harbour {'harbour ' * (n % 3)}{n}")) for n in range(many)))
    found = store.keyword(OPEN, ("harbour",), 20)
    assert found.frequencies == (many,)
    assert len(found.rows) == 20
    texts = store.texts([row.id for row in found.rows])
    assert [row.counts for row in found.rows] == [(texts[row.id].count("harbour"),) for row in found.rows]


def test_a_card_says_of_an_entry_what_ranking_asks(store: Store) -> None:
    """R2, D1: cards follow from entries, for those that are there and that a filter admits; so do texts and uses."""
    made = [
        entry("plain"),
        entry("  \n ", path="notes/blank.md"),
        entry("kept", metadata={DISPOSITION: EXEMPT}, tags=("b", "a"), category=Category("tools", 0.5, "1")),
        entry("said", kind=Kind.EPISODIC, conversation="c", scope=ROOM, valid_at=later(-5), invalid_at=later(5)),
        entry("Where did you buy it?"),
        entry("Where did you sell it?", path="notes/sold.md"),
    ]
    commit(store, *map(put, made))
    commit(store, move(stored(store, made[0]), State.STALE))
    ids = [e.id for e in made]
    found = store.entries(ids)
    assert store.candidates([*ids, new_id()]) == {id: candidate_of(e) for id, e in found.items()}
    assert list(store.candidates(ids, Filters(kinds=frozenset({Kind.EPISODIC})))) == [made[3].id]
    assert store.candidates(ids, Filters(filed=True)) == {made[n].id: candidate_of(found[made[n].id]) for n in (1, 5)}
    assert [id for id, candidate in store.candidates(ids).items() if candidate.said] == [made[3].id, made[4].id]
    assert store.texts([*ids, new_id()]) == {e.id: e.content for e in made}
    store.touch(ids[:2], later(9))
    store.touch(ids[:1], later(10))
    assert store.access(ids) == {ids[0]: Access(2, micros(later(10))), ids[1]: Access(1, micros(later(9)))}


def test_a_snapshot_is_one_moment(store: Store) -> None:
    """R2, T22: what another thread commits meanwhile is not in it, and is seen right after it."""
    e = entry("before")
    commit(store, put(e))
    writer = Thread(target=lambda: commit(store, change(stored(store, e), content="after, and longer")))
    with store.snapshot() as then:
        seen = (then.candidates([e.id]), then.entries([e.id]))
        writer.start()
        assert (then.candidates([e.id]), then.entries([e.id])) == seen
        with store.snapshot() as same:
            assert same.texts([e.id]) == {e.id: "before"}
    writer.join()
    assert store.texts([e.id]) == {e.id: "after, and longer"}
    assert store.candidates([e.id])[e.id].chars == len("after, and longer")


def test_directions_have_length_one(store: Store) -> None:
    """R4: what hits are compared with each other by, whether or not their room is at hand from a search."""
    a, b, c = entry("a"), entry("b"), entry("c")
    commit(store, put(a, 3 * unit(1, 1, 0, 0)), put(b, unit(0, 0, 2, 0)), put(c))
    asked = [b.id, a.id, c.id, "nobody"]
    with store.snapshot() as now:
        cold = now.unit_vectors(asked, MODEL)
        now.nearest(OPEN, MODEL, unit(1, 0, 0, 0), 9)
        warm = now.unit_vectors(asked, MODEL)
    for found in (cold, warm):
        assert set(found) == {a.id, b.id}
        assert np.allclose(found[a.id], unit(1, 1, 0, 0))
        assert np.allclose(found[b.id], unit(0, 0, 1, 0))
    assert store.unit_vectors([a.id], OTHER_MODEL) == {}
