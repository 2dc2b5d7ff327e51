"""Items: values by namespace and key, found below a namespace, by filter and by vector."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lukasa.model.errors import Conflict, InvalidInput, NotFound
from lukasa.model.item import Item, ItemAddress, ItemFilter
from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.operations import DropItem, ItemIndex, ItemVector, SaveItem, SaveItemVectors
from lukasa.storage.port import ItemQuery, Store
from tests.helpers.stores import MODEL, NOW, OTHER_MODEL, commit, later, unit

ADA = ItemAddress(("users", "ada"), "prefs")


def item(place: ItemAddress = ADA, value: dict[str, Any] | None = None, **changes: Any) -> Item:
    return replace(Item(place, {"theme": "dark"} if value is None else value, NOW, NOW), **changes)


def at(*labels: str, key: str = "k") -> ItemAddress:
    return ItemAddress(labels, key)


def keys(store: Store, query: ItemQuery, **page: int) -> list[str]:
    return [found.item.place.key for found in store.find_items(query, **page)]


def expiring(place: ItemAddress, minutes: float) -> SaveItem:
    return SaveItem(item(place, expires_at=later(minutes * 60), ttl=minutes))


def test_an_item_comes_back_as_it_went_in(store: Store) -> None:
    """Items: any JSON value, in the order of its keys, with the times it was given."""
    value = {"z": 1, "a": [None, True, 1.5, "é\0", {"deep": []}], "": {}, "big": 10**100, "inf": float("inf")}
    commit(store, SaveItem(item(value=value, expires_at=later(60), ttl=1.0)))
    found = store.items([ADA])[ADA]
    assert replace(found, id="") == item(value=value, expires_at=later(60), ttl=1.0)
    assert list(found.value) == list(value)
    assert store.items([at("users", "ada"), ItemAddress(("users",), "prefs")]) == {}


def test_nobody_else_holds_a_stored_value(store: Store) -> None:
    """Items: changing what was given, or what was read, changes nothing that is stored."""
    value: dict[str, Any] = {"list": [1]}
    commit(store, SaveItem(item(value=value)))
    value["list"].append(2)
    store.items([ADA])[ADA].value["list"].append(3)
    assert store.items([ADA])[ADA].value == {"list": [1]}


def test_a_value_is_replaced_and_keeps_its_creation(store: Store) -> None:
    """Items: another value for a place is an update; its id in the log stays."""
    commit(store, SaveItem(item()))
    before = store.items([ADA])[ADA]
    commit(store, SaveItem(item(value={"theme": "light"}, created_at=later(9), updated_at=later(9))))
    assert store.items([ADA]) == {ADA: replace(before, value={"theme": "light"}, updated_at=later(9))}


def test_dropping_is_for_good(store: Store) -> None:
    """Items: a dropped item and its namespace are gone, and dropping what is not there is not found."""
    commit(store, SaveItem(item()), SaveItem(item(at("users", "bo"))))
    first = store.items([ADA])[ADA].id
    commit(store, DropItem(ADA, "deleted"))
    assert store.items([ADA]) == {}
    assert store.item_namespaces() == [("users", "bo")]
    with pytest.raises(NotFound):
        commit(store, DropItem(ADA, "deleted"))
    commit(store, SaveItem(item()))
    assert store.items([ADA])[ADA].id != first


def test_every_change_is_an_event_without_the_value(store: Store) -> None:
    """Items, T10: the log has each change under the item's id, and neither value nor namespace nor key."""
    commit(store, SaveItem(item()))
    id = store.items([ADA])[ADA].id
    commit(store, SaveItem(item(value={"theme": "light"})), DropItem(ADA, "deleted"))
    events = store.events(subject=id)
    assert [(e.action, sorted(e.detail)) for e in events] == [
        ("item.saved", ["commitment"]),
        ("item.saved", ["commitment"]),
        ("item.dropped", ["cause"]),
    ]
    assert events[0].detail != events[1].detail
    told = repr(events)
    assert not any(word in told for word in ("dark", "light", "users", "'ada', 'prefs'", "prefs"))


def test_a_transaction_with_a_bad_item_leaves_nothing(store: Store) -> None:
    """Items: what cannot be stored undoes the whole of it."""
    for bad in ({"x": {1, 2}}, {1: "x"}, {"x": "\ud800"}, {"x": object()}, ["not a mapping"]):
        with pytest.raises(InvalidInput):
            commit(store, SaveItem(item(at("a"))), SaveItem(item(at("b"), value=bad)))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        commit(store, SaveItem(item(at("a"))), SaveItem(item(at("\ud800"))))
    with pytest.raises(NotFound):
        commit(store, SaveItem(item(at("a"))), DropItem(at("b"), "deleted"))
    assert store.item_namespaces() == []
    assert store.head()[0] == 0


def test_a_namespace_holds_what_is_below_it(store: Store) -> None:
    """Items: a prefix is matched label by label; the last changed comes first."""
    places = [at("a", key="1"), at("a", "b", key="2"), at("a", "b", "c", key="3"), at("ab", key="4"), at("b", key="5")]
    commit(store, *(SaveItem(item(place)) for place in places))
    commit(store, SaveItem(item(places[0], updated_at=later(5))))
    assert keys(store, ItemQuery(())) == ["1", "5", "4", "3", "2"]
    assert keys(store, ItemQuery(("a",))) == ["1", "3", "2"]
    assert keys(store, ItemQuery(("a", "b"))) == ["3", "2"]
    assert keys(store, ItemQuery(("a", "c"))) == []
    assert keys(store, ItemQuery(()), limit=2, offset=1) == ["5", "4"]
    assert keys(store, ItemQuery(()), limit=0) == []
    assert store.item_namespaces(("a", "b")) == [("a", "b"), ("a", "b", "c")]
    assert store.item_namespaces() == [("a",), ("a", "b"), ("a", "b", "c"), ("ab",), ("b",)]


def test_filters_come_before_the_limit(store: Store) -> None:
    """Items: a page is filled from what passes the filter, however much does not."""
    commit(store, *(SaveItem(item(at("n", key=f"{i:03}"), value={"i": i, "odd": bool(i % 2)})) for i in range(450)))
    odd = ItemQuery(("n",), ItemFilter.of({"odd": True, "i": {"$lt": 100}}))
    assert keys(store, odd, limit=2) == ["099", "097"]
    assert keys(store, odd, limit=2, offset=48) == ["003", "001"]


def vectors(*given: Any) -> tuple[ItemVector, ...]:
    return tuple(ItemVector(f"f{i}", MODEL, unit(*numbers)) for i, numbers in enumerate(given))


def test_the_nearest_come_first_each_once(store: Store) -> None:
    """Items: by the best cosine of any field; what has no vector of the model follows without a score."""
    far, near, both, bare = (at("n", key=key) for key in ("far", "near", "both", "bare"))
    commit(
        store,
        SaveItem(item(far), vectors((0, 1, 0, 0))),
        SaveItem(item(near), vectors((1, 1, 0, 0))),
        SaveItem(item(both), vectors((0, 0, 1, 0), (1, 0, 0, 0))),
        SaveItem(item(bare), (ItemVector("f", OTHER_MODEL, unit(1, 0, 0, 0)),)),
        SaveItem(item(at("elsewhere")), vectors((1, 0, 0, 0))),
    )
    query = ItemQuery(("n",), near=(MODEL, unit(1, 0, 0, 0)))
    found = store.find_items(query)
    assert [f.item.place.key for f in found] == ["both", "near", "far", "bare"]
    assert [f.score and round(f.score, 3) for f in found] == [1.0, 0.707, 0.0, None]
    assert keys(store, query, limit=2, offset=1) == ["near", "far"]
    assert keys(store, replace(query, filter=ItemFilter.of({"theme": "light"}))) == []


def test_another_value_replaces_the_vectors(store: Store) -> None:
    """Items: vectors go with the value they were computed from."""
    commit(store, SaveItem(item(), vectors((1, 0, 0, 0), (0, 1, 0, 0))))
    commit(store, SaveItem(item(), vectors((0, 0, 1, 0))))
    query = ItemQuery((), near=(MODEL, unit(1, 0, 0, 0)))
    assert [f.score for f in store.find_items(query)] == [0.0]
    commit(store, SaveItem(item()))
    assert [f.score for f in store.find_items(query)] == [None]
    with pytest.raises(InvalidInput):
        commit(store, SaveItem(item(), (ItemVector("f", MODEL, unit(1, 0, 0)),)))


def test_expiry_is_seen_swept_and_renewed(store: Store) -> None:
    """Items: expired ones are left out on request, listed for sweeping, and renewed by a touch."""
    short, long, ever = at("s", key="short"), at("l", key="long"), at("e", key="ever")
    commit(store, expiring(short, 1), expiring(long, 2), SaveItem(item(ever)))
    now = later(60)
    assert keys(store, ItemQuery((), alive_at=now)) == ["ever", "long"]
    assert keys(store, ItemQuery(())) == ["ever", "long", "short"]
    assert store.item_namespaces(alive_at=now) == [("e",), ("l",)]
    assert store.expired_items(now, 9) == [short]
    assert store.expired_items(later(999), 1) == [short]
    store.touch_items([short, ever, at("nobody")], now)
    assert store.items([short])[short].expires_at == later(120)
    assert store.items([ever])[ever].expires_at is None
    assert store.expired_items(now, 9) == []


def test_only_what_has_expired_is_dropped_as_such(store: Store) -> None:
    """Items: a sweep that comes too late for a renewed item is a conflict."""
    commit(store, expiring(ADA, 1))
    for by in (later(59), NOW):
        with pytest.raises(Conflict):
            commit(store, DropItem(ADA, "expired", expired_by=by))
    commit(store, DropItem(ADA, "expired", expired_by=later(60)))
    assert store.items([ADA]) == {}
    commit(store, SaveItem(item()))
    with pytest.raises(Conflict):
        commit(store, DropItem(ADA, "expired", expired_by=later(10**6)))


LABELS = st.lists(st.sampled_from(["a", "A", "*", "%", "_", "a%", "?", "[", '","', "\\", '"', ".", "", "é", "\n"]))


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(spaces=st.lists(LABELS.map(tuple), max_size=8), prefix=LABELS.map(tuple))
def test_namespaces_never_mix(store: Store, spaces: list[tuple[str, ...]], prefix: tuple[str, ...]) -> None:
    """Items, T11: whatever labels are called, a prefix finds exactly what begins with its labels."""
    model = MemoryStore()
    for known in store.item_namespaces():
        commit(store, DropItem(ItemAddress(known, "k"), "deleted"))
    for space in dict.fromkeys(spaces):
        commit(store, SaveItem(item(ItemAddress(space, "k"))))
        commit(model, SaveItem(item(ItemAddress(space, "k"))))
    expected = sorted({space for space in spaces if space[: len(prefix)] == prefix})
    assert store.item_namespaces(prefix) == model.item_namespaces(prefix) == expected
    assert sorted(found.item.place.namespace for found in store.find_items(ItemQuery(prefix))) == expected


WHOLE = ItemIndex((("$", None),))


NEAR = (0.0, 0.0, 1.0, 0.0)


def test_items_that_lack_a_vector_are_known(store: Store) -> None:
    """O8: items with something to be found by and no vector of the model, the oldest first, by whose index they are."""
    titles = ItemIndex((("title", "A walk"), ("body", None)), "langgraph:embed")
    commit(store, SaveItem(item(at("a")), (), WHOLE), SaveItem(item(at("b")), vectors(NEAR), WHOLE))
    commit(store, SaveItem(item(at("c"))), SaveItem(item(at("d")), (), titles))
    assert [(each.place, each.index) for each in store.unembedded_items(MODEL, "", 9)] == [(at("a"), WHOLE)]
    assert [each.place for each in store.unembedded_items(OTHER_MODEL, "", 9)] == [at("a"), at("b")]
    assert [each.place for each in store.unembedded_items(OTHER_MODEL, "", 1)] == [at("a")]
    (other,) = store.unembedded_items(MODEL, "langgraph:embed", 9)
    assert (other.place, other.texts) == (at("d"), [("title", "A walk"), ("body", '{"theme": "dark"}')])


def test_vectors_can_come_later(store: Store) -> None:
    """O8: an item that gets its vectors after it was written is found by them, and its change is no event."""
    commit(store, SaveItem(item(), (), WHOLE))
    (missing,) = store.unembedded_items(MODEL, "", 9)
    before = store.head()
    for _ in range(2):  # whoever comes second has nothing to add
        commit(store, SaveItemVectors(missing.place, missing.value, missing.index, vectors(NEAR)))
    assert (store.unembedded_items(MODEL, "", 9), store.head()) == ([], before)
    (found,) = store.find_items(ItemQuery((), near=(MODEL, unit(*NEAR))))
    assert found.score == pytest.approx(1.0)
    assert store.check() == []


@pytest.mark.parametrize(
    "newer",
    [
        SaveItem(item(value={"theme": "light"}), (), WHOLE),
        SaveItem(item(), (), ItemIndex((("theme", "dark"),))),
        SaveItem(item(), (), ItemIndex(WHOLE.texts, "langgraph:embed")),
        DropItem(ADA, "deleted"),
    ],
    ids=["value", "fields", "index", "gone"],
)
def test_vectors_of_what_has_moved_on_are_let_go(store: Store, newer: SaveItem | DropItem) -> None:
    """O8: a value, or what it is to be found by, that changed while the model worked keeps no vector of before."""
    commit(store, SaveItem(item(), (), WHOLE))
    (missing,) = store.unembedded_items(MODEL, "", 9)
    commit(store, newer)
    commit(store, SaveItemVectors(missing.place, missing.value, missing.index, vectors(NEAR)))
    assert [found.score for found in store.find_items(ItemQuery((), near=(MODEL, unit(*NEAR))))] in ([None], [])
