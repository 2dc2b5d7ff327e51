"""What any LangGraph store does, asked of Lukasa's, called both ways, and of LangGraph's own as the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from lukasa import Lukasa
from lukasa.langgraph import LukasaStore
from tests.helpers.langgraph import Face, index
from tests.helpers.making import FixedClock

Make = Callable[..., Face]


@pytest.fixture(params=["lukasa", "lukasa-async", "reference"])
def make(request: pytest.FixtureRequest, tmp_path: Path, clock: FixedClock) -> Iterator[Make]:
    """Makes stores of one kind; Lukasa's on a real file, without an embedder of its own."""
    with ExitStack() as opened:

        def made(**options: Any) -> Face:
            if request.param == "reference":
                return Face(InMemoryStore(**options))
            memory = opened.enter_context(Lukasa.open(tmp_path / "data", embedder="none", clock=clock))
            return Face(LukasaStore(memory.workspace(), **options), loops=request.param == "lukasa-async")

        yield made


@pytest.fixture
def store(make: Make) -> Face:
    return make()


@pytest.fixture
def indexed(make: Make) -> Face:
    return make(index=index())


# Keys and values


def test_it_is_a_base_store(store: Face) -> None:
    """LangGraph: a graph takes any BaseStore."""
    assert isinstance(store.store, BaseStore)


def test_put_and_get(store: Face) -> None:
    """LangGraph: what is put is got back, with its place and times that know their zone."""
    value = {"text": "é\0 'quoted'", "n": 1.5, "none": None, "list": [1, [True]], "deep": {"a": {}}, "": 10**100}
    assert store.put(("users", "ada"), "prefs", value) is None
    found = store.get(("users", "ada"), "prefs")
    assert (found.namespace, found.key, found.value) == (("users", "ada"), "prefs", value)
    assert found.created_at.utcoffset() is not None
    assert found.updated_at.utcoffset() is not None
    assert store.get(("users", "ada"), "nothing") is None
    assert store.get(("users",), "prefs") is None


def test_put_replaces_and_delete_removes(store: Face) -> None:
    """LangGraph: the last value counts, None deletes, and deleting what is not there is no error."""
    store.put(("a",), "k", {"v": 1})
    store.put(("a",), "k", {"w": 2})
    assert store.get(("a",), "k").value == {"w": 2}
    store.delete(("a",), "k")
    store.delete(("a",), "k")
    assert store.get(("a",), "k") is None
    store.put(("a",), "k", {"v": 3})
    store.batch([PutOp(("a",), "k", None)])
    assert store.get(("a",), "k") is None


def test_keys_are_made_text(store: Face) -> None:
    """LangGraph: a number as a key is its digits."""
    store.put(("a",), 7, {"v": 1})
    assert store.get(("a",), "7").value == store.get(("a",), 7).value == {"v": 1}


@pytest.mark.parametrize("namespace", [(), ("",), ("a", ""), ("a.b",), ("a", 1), ("langgraph", "x"), ("a\0",)])
def test_put_refuses_bad_namespaces(store: Face, namespace: Any) -> None:
    """LangGraph: empty ones, those with empty or dotted labels, non-strings, and LangGraph's own root."""
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "k", {"v": 1})


def test_batch_lets_langgraph_use_its_own_root(store: Face) -> None:
    """LangGraph: what the library itself keeps goes through `batch`."""
    store.batch([PutOp(("langgraph", "x"), "k", {"v": 1})])
    assert store.get(("langgraph", "x"), "k").value == {"v": 1}


# Batches


def test_a_batch_answers_in_order_from_before_its_writes(store: Face) -> None:
    """LangGraph: one result an operation, None for a put; reads see what was there before."""
    store.put(("a",), "old", {"v": 1})
    results = store.batch(
        [
            PutOp(("a",), "new", {"v": 2}),
            GetOp(("a",), "new"),
            SearchOp(("a",)),
            PutOp(("a",), "old", None),
            GetOp(("a",), "old"),
            ListNamespacesOp(match_conditions=()),
        ]
    )
    assert results[0] is results[1] is results[3] is None
    assert [item.key for item in results[2]] == ["old"]  # type: ignore[union-attr]
    assert results[4].value == {"v": 1}  # type: ignore[union-attr]
    assert results[5] == [("a",)]
    assert store.keys(("a",)) == ["new"]


def test_the_last_put_of_a_key_wins(store: Face) -> None:
    """LangGraph: within a batch, the last value for a key is the one."""
    store.batch([PutOp(("a",), "k", {"v": 1}), PutOp(("a",), "k", {"v": 2}), PutOp(("a",), "gone", {"v": 1})])
    store.batch([PutOp(("a",), "gone", {"v": 2}), PutOp(("a",), "gone", None)])
    assert store.get(("a",), "k").value == {"v": 2}
    assert store.get(("a",), "gone") is None
    assert store.batch([]) == []


# Search


def test_search_looks_below_a_namespace(store: Face) -> None:
    """LangGraph: by whole labels, case and all; the empty prefix is everything."""
    for namespace in (("a",), ("a", "b"), ("ab",), ("A",), ("a_b",), ("a%",)):
        store.put(namespace, "/".join(namespace), {"v": 1})
    assert sorted(store.keys(("a",))) == ["a", "a/b"]
    assert store.keys(("a", "b")) == ["a/b"]
    for literal in ("a_", "%", "a%", "*", "?", "[a]", "+", "_"):
        assert store.keys((literal,)) == (["a%"] if literal == "a%" else [])
    assert len(store.search(())) == 6


def test_search_pages_by_ten(store: Face) -> None:
    """LangGraph: ten by default; limit and offset cut the same order into pages."""
    store.batch([PutOp(("n",), str(i), {"i": i}) for i in range(25)])
    assert len(store.search(("n",))) == 10
    whole = store.keys(("n",), limit=100)
    assert len(whole) == 25
    assert store.keys(("n",), limit=9, offset=20) == whole[20:]
    assert store.search(("n",), offset=25) == []
    assert store.search(("n",), limit=0) == []


FILTERS = [
    ({"kind": "tea"}, "ab"),
    ({"kind": {"$eq": "tea"}}, "ab"),
    ({"kind": {"$ne": "tea"}}, "cd"),
    ({"n": {"$gt": 1}}, "bc"),
    ({"n": {"$gte": 2}}, "bc"),
    ({"n": {"$lt": 3}}, "abd"),
    ({"n": {"$lte": 2, "$gt": 0}}, "ab"),
    ({"kind": "tea", "n": {"$lt": 2}}, "a"),
    ({"flag": True}, "a"),
    ({"flag": False}, "b"),
    ({"none": None}, "abcd"),
    ({"kind": None}, "d"),
    ({"list": [1, "x"]}, "c"),
    ({"list": [1]}, ""),
    ({"deep": {"a": 1}}, "c"),
    ({"deep": {"a": {"$gt": 0}, "b": {"c": 2}}}, "c"),
    ({"deep": {"$eq": {"a": 1}}}, ""),
    ({"n": {"$gt": float("inf")}}, ""),
    ({"n": {"$gt": float("-inf")}}, "abcd"),
    ({"n": float("nan")}, ""),
    ({"n": {"$lt": 10**100}}, "abcd"),
    ({"n": 10**100}, ""),
    ({"missing": "x"}, ""),
    ({}, "abcd"),
    (None, "abcd"),
]


@pytest.mark.parametrize(("asked", "expected"), FILTERS, ids=lambda v: repr(v)[:40])
def test_filters(store: Face, asked: Any, expected: str) -> None:
    """LangGraph: equality on any JSON value, six operators, all conditions at once."""
    values: dict[str, dict[str, Any]] = {
        "a": {"kind": "tea", "n": 1, "flag": True},
        "b": {"kind": "tea", "n": 2, "flag": False},
        "c": {"kind": "ale", "n": 3.5, "list": [1, "x"], "deep": {"a": 1, "b": {"c": 2, "d": 3}}},
        "d": {"kind": None, "n": 0},
    }
    store.batch([PutOp(("f",), key, value) for key, value in values.items()])
    assert "".join(sorted(store.keys(("f",), filter=asked))) == expected


def test_an_unknown_operator_is_an_error(store: Face) -> None:
    """LangGraph: not an empty answer."""
    store.put(("f",), "k", {"n": 1})
    with pytest.raises(ValueError, match="operator"):
        store.search(("f",), filter={"n": {"$like": "1"}})


def test_without_a_query_there_is_no_score(indexed: Face) -> None:
    """LangGraph: and an empty query is none."""
    indexed.put(("d",), "k", {"text": "a dog"})
    for query in (None, ""):
        assert [item.score for item in indexed.search(("d",), query=query)] == [None]


# Search by meaning


def test_a_query_ranks_by_meaning(indexed: Face) -> None:
    """LangGraph: the best first; a score is higher for the better."""
    indexed.put(("d",), "dog", {"text": "the dog barks"})
    indexed.put(("d",), "car", {"text": "the car is red"})
    indexed.put(("e",), "far", {"text": "red automobile"})
    found = indexed.search(("d",), query="red automobile")
    assert [item.key for item in found] == ["car", "dog"]
    assert found[0].score > found[1].score
    assert indexed.keys((), query="red automobile", limit=1) == ["far"]
    assert indexed.keys(("d",), query="red automobile", offset=1, limit=5) == ["dog"]


def test_an_item_is_one_hit(make: Make) -> None:
    """LangGraph: however many of its fields match, with the score of the best."""
    store = make(index=index(fields=["title", "parts[*].text"]))
    parts = [{"text": "a red car"}, {"text": "a red automobile indeed"}]
    store.put(("d",), "k", {"title": "red car", "parts": parts})
    (found,) = store.search(("d",), query="red car")
    assert found.score == pytest.approx(1.0, abs=1e-4)


def test_filters_come_before_the_limit(indexed: Face) -> None:
    """LangGraph: a filter does not eat into the page."""
    indexed.batch([PutOp(("d",), f"near{i}", {"text": f"red car {i}", "ok": False}) for i in range(12)])
    indexed.put(("d",), "far", {"text": "a dog barks", "ok": True})
    assert indexed.keys(("d",), query="red car", filter={"ok": True}, limit=1) == ["far"]


VALUE = {
    "a": {"b": "nested text", "c": "other"},
    "list": ["first entry", "middle one", "last word"],
    "docs": [{"b": "inside zero"}, {"b": "inside one"}],
    "n": 7,
}
PATHS = [
    ("a.b", ["nested text"]),
    ("list[0]", ["first entry"]),
    ("list[-1]", ["last word"]),
    ("list[*]", ["first entry", "middle one", "last word"]),
    ("docs[*].b", ["inside zero", "inside one"]),
    ("docs[1].b", ["inside one"]),
    ("a.{b,c}", ["nested text", "other"]),
    ("n", ["7"]),
]


@pytest.mark.parametrize(("path", "texts"), PATHS)
@pytest.mark.parametrize("where", ["config", "call"])
def test_fields_by_path(make: Make, path: str, texts: list[str], where: str) -> None:
    """LangGraph: a path leads to texts, each with a vector of its own, in the configuration or for one call."""
    store = make(index=index(fields=[path] if where == "config" else ["nowhere"]))
    store.put(("d",), "k", VALUE, index=[path] if where == "call" else None)
    for text in texts:
        assert store.search(("d",), query=text)[0].score == pytest.approx(1.0, abs=1e-4)


def test_the_whole_value_by_default(indexed: Face) -> None:
    """LangGraph: `$` is the value as JSON."""
    indexed.put(("d",), "k", {"b": 1, "a": "x"})
    assert indexed.search(("d",), query='{"a": "x", "b": 1}')[0].score == pytest.approx(1.0, abs=1e-4)


def test_index_false_keeps_an_item_out_of_the_ranking(indexed: Face) -> None:
    """LangGraph: it is still got and found, without a score and after the others."""
    indexed.put(("d",), "hidden", {"text": "red car"}, index=False)
    indexed.put(("d",), "shown", {"text": "a dog barks"})
    assert [(i.key, i.score is None) for i in indexed.search(("d",), query="red car")] == [
        ("shown", False),
        ("hidden", True),
    ]
    assert indexed.get(("d",), "hidden") is not None
    assert sorted(indexed.keys(("d",))) == ["hidden", "shown"]


def test_putting_again_replaces_the_vectors(indexed: Face) -> None:
    """LangGraph: an item is found by its present value."""
    indexed.put(("d",), "k", {"text": "red car"})
    indexed.put(("d",), "k", {"text": "a dog barks"})
    indexed.put(("d",), "other", {"text": "red wine"})
    assert indexed.keys(("d",), query='{"text": "red car"}')[0] == "other"


# Namespaces

SPACES = [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "b", "f"), ("a", "c", "f"), ("b", "a")]
LISTS: list[tuple[dict[str, Any], list[tuple[str, ...]]]] = [
    ({}, SPACES),
    ({"prefix": ("a", "b")}, SPACES[:4]),
    ({"prefix": ("a", "b"), "max_depth": 3}, [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]),
    ({"suffix": ("f",)}, [("a", "b", "f"), ("a", "c", "f")]),
    ({"prefix": ("a", "*", "f")}, [("a", "b", "f"), ("a", "c", "f")]),
    ({"prefix": ("*", "c")}, [("a", "c", "f")]),
    ({"suffix": ("d", "*")}, [("a", "b", "d", "e"), ("a", "b", "d", "i")]),
    ({"prefix": ("a",), "suffix": ("b", "f")}, [("a", "b", "f")]),
    ({"prefix": ("a", "b", "c", "x")}, []),
    ({"max_depth": 1}, [("a",), ("b",)]),
    ({"limit": 2, "offset": 1}, SPACES[1:3]),
    ({"max_depth": 2, "limit": 1, "offset": 1}, [("a", "c")]),
]


@pytest.mark.parametrize(("asked", "expected"), LISTS, ids=lambda v: repr(v)[:50])
def test_list_namespaces(store: Face, asked: dict[str, Any], expected: list[tuple[str, ...]]) -> None:
    """LangGraph: by how they begin and end, with `*` for any label; cut off, each once, in order, paged."""
    store.batch([PutOp(space, "k", {"v": 1}) for space in reversed(SPACES)])
    assert store.list_namespaces(**asked) == expected


def test_an_unknown_match_is_an_error(store: Face) -> None:
    """LangGraph: there are prefixes and suffixes."""
    store.put(("a",), "k", {"v": 1})
    with pytest.raises(ValueError, match="match type"):
        store.batch([ListNamespacesOp(match_conditions=(MatchCondition("infix", ("a",)),))])  # type: ignore[arg-type]


def test_an_unknown_operation_is_an_error(store: Face) -> None:
    """LangGraph: and nothing of its batch is done."""
    with pytest.raises(ValueError, match="operation"):
        store.batch([PutOp(("a",), "k", {"v": 1}), "get"])  # type: ignore[list-item]
    assert store.get(("a",), "k") is None
