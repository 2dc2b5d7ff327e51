"""What a new text may repeat or contradict: asked for many at once, answered for each."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lukasa.index.matches import Neighbour, NeighbourQuery, NewText
from lukasa.model.errors import InvalidInput
from lukasa.model.values import State
from lukasa.ports import Vector
from lukasa.storage.port import Store
from tests.helpers.stores import MODEL, OTHER_MODEL, ROOM, WORK, change, commit, entry, move, put, stored, unit

HERE = NeighbourQuery(WORK, "shared", MODEL, 0.8, 12)


def ids(found: list[Neighbour]) -> list[str]:
    return [near.entry.id for near in found]


def ask(store: Store, text: str, vector: Vector | None = None) -> list[Neighbour]:
    (found,) = store.neighbours(HERE, [NewText(text, vector)])
    return found


def test_nothing_is_near_in_an_empty_store(store: Store) -> None:
    assert store.neighbours(HERE, [NewText("Ada lives in Rome", unit(1, 0, 0, 0))] * 2) == [[], []]


def test_the_twin_comes_first(store: Store) -> None:
    """W3: the same text, active or held, before anything that is merely close."""
    close, twin = entry("Ada lives in Rome now"), entry("Ada lives in Rome", state=State.HELD)
    commit(store, put(close, unit(1, 0, 0, 0)), put(twin, unit(0, 1, 0, 0)))
    assert ids(ask(store, "ada lives in  Rome.", unit(1, 0, 0, 0))) == [twin.id, close.id]


def test_vectors_count_from_the_floor(store: Store) -> None:
    """W3: the closest first, and none below the floor; other models and entries without a vector do not count."""
    same, close, far = entry("one thing"), entry("another thing"), entry("a third thing")
    commit(store, put(close, unit(1, 0.5, 0, 0)), put(same, unit(2, 0, 0, 0)), put(far, unit(1, 2, 0, 0)))
    commit(store, put(entry("not embedded")), put(entry("other model"), unit(1, 0, 0, 0), OTHER_MODEL))
    found = ask(store, "something else", unit(1, 0, 0, 0))
    assert ids(found) == [same.id, close.id]
    assert [round(near.cosine or 0, 4) for near in found] == [1.0, 0.8944]


def test_who_holds_every_word_is_near_whatever_the_vectors_say(store: Store) -> None:
    """W3: only what holds all that a text says may say the same; fillers and common words count for nothing. How near
    it is by vector is told, the nearest first."""
    long, short = entry("Ada bought a house in Lisbon last spring"), entry("Ada bought the house")
    tagged, other = entry("Ada bought it", tags=("house",)), entry("Ada sold a house in Lisbon")
    commit(store, put(long, unit(1, 2, 0, 0)), put(short, unit(1, 1, 0, 0)), put(other, unit(1, 0, 0, 0)))
    commit(store, put(tagged, unit(0, 1, 0, 0)), put(entry("Ada bought a house boat"), unit(1, 0, 0, 0), OTHER_MODEL))
    here = replace(HERE, floor=None)
    (found,) = store.neighbours(here, [NewText("Actually Ada bought a house now", unit(1, 0, 0, 0))])
    cosines = {near.entry.id: round(near.cosine, 4) for near in found if near.cosine is not None}
    assert list(cosines.items()) == [(short.id, 0.7071), (long.id, 0.4472), (tagged.id, 0.0)]
    (found,) = store.neighbours(here, [NewText("Ada bought a house in Lisbon", unit(1, 0, 0, 0))])
    assert [near.entry.id for near in found if near.cosine is not None] == [long.id]
    (found,) = store.neighbours(here, [NewText("really now", unit(1, 0, 0, 0))])
    assert found == []


def test_of_a_crowd_that_holds_every_word_the_newest_are_near(store: Store) -> None:
    """W3: no word makes a write look at more than the limit."""
    many = [entry(f"The tide is high on day {n}") for n in range(50)]
    commit(store, *(put(e, unit(1, n, 0, 0)) for n, e in enumerate(many)))
    (found,) = store.neighbours(replace(HERE, floor=None), [NewText("A high tide on a day", unit(1, 0, 0, 0))])
    assert {near.entry.id for near in found if near.cosine is not None} == {e.id for e in many[-12:]}


@pytest.mark.parametrize("count", [3, 40])
def test_a_batch_is_answered_as_one_after_the_other(store: Store, count: int) -> None:
    """W9: few or many, and with or without vectors among them."""
    commit(store, *(put(entry(f"Member{n} lives in town {n}"), unit(1, n / 9, n % 5, 1)) for n in range(60)))
    asked = [NewText(f"Member{n} lives elsewhere", unit(1, n / 9, n % 5, 1.1) if n % 3 else None) for n in range(count)]
    together = store.neighbours(HERE, asked)
    apart = [store.neighbours(HERE, [one])[0] for one in asked]
    assert [ids(found) for found in together] == [ids(found) for found in apart]
    assert all(together)


def test_words_find_what_speaks_of_the_same(store: Store) -> None:
    """W4: the same subject in other words, and the same role given to another; the newest first."""
    rome, paris, tea = entry("Ada lives in Rome"), entry("Ada moved to Paris"), entry("Ada likes tea")
    villain = entry("Malachar is the villain")
    commit(store, put(rome), put(paris), put(tea), put(villain))
    assert ids(ask(store, "Ada does not live in Rome")) == [paris.id, rome.id]
    assert ids(ask(store, "Ada doesn't like tea")) == [tea.id]
    assert ids(ask(store, "Vexis is the villain")) == [villain.id]
    assert ask(store, "Bob has a boat") == []


def test_a_crowd_is_cut_to_its_newest(store: Store) -> None:
    """W4: no subject makes a write look at more than the limit."""
    many = [entry(f"It is day {n}") for n in range(30)]
    commit(store, *map(put, many))
    assert ids(ask(store, "It is night")) == [e.id for e in reversed(many)][:12]


def test_only_the_same_room_is_looked_at(store: Store) -> None:
    """M1, M4: other scopes, other owners, files and history are not near, however close they are."""
    old = entry("Ada lives in Oslo")
    elsewhere = [entry("Ada lives in Rome", scope=ROOM), entry("Ada lives in Rome", owner="bot")]
    files = [entry("Ada lives in Rome", path="ada.md")]
    commit(store, put(old), *(put(e, unit(1, 0, 0, 0)) for e in elsewhere), *map(put, files))
    commit(store, move(stored(store, old), State.FORGOTTEN))
    assert ask(store, "Ada lives in Paris", unit(1, 0, 0, 0)) == []


def test_a_changed_text_is_found_by_what_it_says_now(store: Store) -> None:
    e = entry("Ada lives in Rome")
    commit(store, put(e))
    commit(store, change(stored(store, e), content="Bob lives in Rome"))
    assert ask(store, "Ada lives in Paris") == []
    (near,) = ask(store, "Bob lives in Paris")
    assert (near.entry, near.cosine) == (stored(store, e), None)


def test_lone_surrogates_are_refused(store: Store) -> None:
    """T37: text that UTF-8 cannot hold is the caller's mistake."""
    commit(store, put(entry()))
    with pytest.raises(InvalidInput):
        ask(store, "broken \ud800")
