"""What Lukasa's LangGraph store does beyond the reference: times, paths, expiry, its own embedder, the log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.config import get_store
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import GetOp, PutOp, SearchOp, TTLConfig
from langgraph.store.sqlite import SqliteStore

from lukasa import Lukasa, Workspace
from lukasa.langgraph import LukasaStore
from tests.fakes import FakeEmbedder
from tests.helpers.langgraph import DIMENSIONS, SYNONYMS, Face, aembed, embed, index
from tests.helpers.making import FixedClock
from tests.helpers.processes import until


@pytest.fixture
def ctx(tmp_path: Path, clock: FixedClock) -> Iterator[Workspace]:
    with Lukasa.open(tmp_path / "data", embedder="none", clock=clock) as memory:
        yield memory.workspace()


@pytest.fixture(params=["sync", "async"])
def store(request: pytest.FixtureRequest, ctx: Workspace) -> Face:
    return Face(LukasaStore(ctx), loops=request.param == "async")


def wait(clock: FixedClock, minutes: float) -> None:
    clock.time += timedelta(minutes=minutes)


# Times and order


def test_an_update_keeps_the_creation(store: Face, clock: FixedClock) -> None:
    """LangGraph: `created_at` is of the first put, `updated_at` of the last."""
    start = clock.time
    store.put(("a",), "k", {"v": 1})
    wait(clock, 5)
    store.put(("a",), "k", {"v": 2})
    found = store.get(("a",), "k")
    assert (found.created_at, found.updated_at) == (start, clock.time)


def test_the_last_changed_comes_first(store: Face, clock: FixedClock) -> None:
    """LangGraph: as its stores on disk do it."""
    for key in "abca":
        store.put(("n",), key, {"v": 1})
        wait(clock, 1)
    assert store.keys(("n",)) == ["a", "c", "b"]


def test_reading_leaves_no_trace(store: Face) -> None:
    """LangGraph: asking for what is not there does not make its namespace."""
    store.get(("ghost",), "k")
    store.search(("ghost",))
    assert store.list_namespaces() == []


# Filters

PATHS = [
    ({"a.b": 1}, "deep"),
    ({"a.b": {"$gte": 1}}, "deep"),
    ({"a.c.d": "x"}, "deep"),
    ({"a.b.c": 1}, ""),
    ({"x.y": 2}, "literal"),
    ({"größe": 3}, "literal"),
    ({"when": {"$gte": "2026-01-02"}}, "deep"),
    ({"when": {"$lt": "2026-01-02"}}, "literal"),
    ({"digits": {"$gt": 9}}, "deep"),
    ({"a": {"$gt": 1}}, ""),
    ({"when": {"$gt": 1}}, ""),
    ({"none": {"$gt": None}}, ""),
    ({"pair": {"$eq": (1, 2)}}, "deep"),
    ({"pair": (1, 2)}, "deep"),
]


@pytest.mark.parametrize(("asked", "expected"), PATHS, ids=lambda v: repr(v)[:40])
def test_dotted_paths_and_unlike_values(store: Face, asked: dict[str, Any], expected: str) -> None:
    """LangGraph: a dot leads into the value; text compares with text, and what cannot be compared does not match."""
    deep = {"a": {"b": 1, "c": {"d": "x"}}, "when": "2026-01-03", "digits": "10", "none": None, "pair": [1, 2]}
    store.put(("f",), "deep", deep)
    store.put(("f",), "literal", {"x.y": 2, "größe": 3, "when": "2026-01-01", "a": []})
    assert "".join(store.keys(("f",), filter=asked)) == expected


@pytest.mark.parametrize("key", ["", "a\n", "a b", "a'", 'a"', "$gt", "a[0]", "a;--", "a*", 1, None, "\0"])
def test_odd_filter_keys_are_an_error(store: Face, key: Any) -> None:
    """T11: said at once, whether or not there is anything to filter."""
    with pytest.raises(ValueError, match="filter key"):
        store.search(("empty",), filter={key: 1})


@pytest.mark.parametrize("page", [{"limit": -1}, {"offset": -1}, {"limit": 2**70}, {"limit": 1.5}, {"offset": None}])
def test_odd_pages_are_an_error(store: Face, page: dict[str, Any]) -> None:
    """T11: a limit that means nothing is not guessed at."""
    with pytest.raises(ValueError, match="unusable"):
        store.search((), **page)


@pytest.mark.parametrize("value", [{"x": {1}}, {1: "x"}, {"x": b"y"}, {"x": "\ud800"}, ["x"], "x"])
def test_what_is_not_json_is_an_error(store: Face, value: Any) -> None:
    """LangGraph: a value that would not come back as it went in is refused, and its batch with it."""
    with pytest.raises(ValueError, match=r"JSON|keys|surrogates|mapping"):
        store.batch([PutOp(("a",), "good", {"v": 1}), PutOp(("a",), "bad", value)])
    assert store.search(()) == []


# Expiry


def test_items_expire_and_are_swept(ctx: Workspace, clock: FixedClock) -> None:
    """LangGraph: a time to live in minutes, by default or for one put; a sweep says how many it removed."""
    store = LukasaStore(ctx, ttl={"default_ttl": 10, "refresh_on_read": False})
    store.put(("t",), "default", {"v": 1})
    store.put(("t",), "short", {"v": 1}, ttl=0.5)
    store.put(("t",), "ever", {"v": 1}, ttl=None)
    assert store.sweep_ttl() == 0
    wait(clock, 0.5)
    assert store.sweep_ttl() == 1
    wait(clock, 9.5)
    assert store.sweep_ttl() == 1
    assert [item.key for item in store.search(("t",))] == ["ever"]
    assert [e.detail for e in ctx.events(action="item.dropped")] == [{"cause": "expired"}] * 2


def test_expired_items_are_there_until_swept_unless_omitted(ctx: Workspace, clock: FixedClock) -> None:
    """LangGraph: `omit_expired` hides them from get, search and listings before a sweep."""
    plain = LukasaStore(ctx, ttl={"refresh_on_read": False})
    strict = LukasaStore(ctx, ttl={"omit_expired": True, "refresh_on_read": False})
    plain.put(("t",), "k", {"text": "word"}, ttl=1)
    wait(clock, 1)
    assert plain.get(("t",), "k") is not None
    assert plain.list_namespaces() == [("t",)]
    assert strict.get(("t",), "k") is None
    assert strict.search(("t",)) == strict.search(("t",), query="word") == strict.list_namespaces() == []


@pytest.mark.parametrize("read", ["get", "search"])
@pytest.mark.parametrize("how", ["sync", "async"])
def test_reading_renews_where_the_configuration_says_so(ctx: Workspace, clock: FixedClock, read: str, how: str) -> None:
    """LangGraph: with `refresh_on_read` a read starts the time anew; `refresh_ttl=False` does not."""
    store = Face(LukasaStore(ctx, ttl={"refresh_on_read": True}), loops=how == "async")
    store.put(("t",), "k", {"v": 1}, ttl=2)
    for refresh, left in ((None, True), (True, True), (False, False)):
        wait(clock, 1.5)
        if read == "get":
            store.get(("t",), "k", refresh_ttl=refresh)
        else:
            store.search(("t",), refresh_ttl=refresh)
        wait(clock, 1.5)
        assert store.store.sweep_ttl() == (0 if left else 1)  # type: ignore[attr-defined]
        wait(clock, -1.5)


@pytest.mark.parametrize("config", [None, {}, {"refresh_on_read": False}, {"refresh_on_read": True}], ids=repr)
@pytest.mark.parametrize("asked", [None, False, True], ids=repr)
def test_renewal_is_that_of_sqlite_store(
    ctx: Workspace, clock: FixedClock, tmp_path: Path, config: TTLConfig | None, asked: bool | None
) -> None:
    """LangGraph: both stores renew, or leave, the time of an item under the same configuration and call."""
    mine = LukasaStore(ctx, ttl=config)
    mine.put(("t",), "k", {"v": 1}, ttl=2)
    wait(clock, 1.5)
    mine.get(("t",), "k", refresh_ttl=asked)
    wait(clock, 1)
    renewed = mine.sweep_ttl() == 0
    with SqliteStore.from_conn_string(str(tmp_path / "theirs.db")) as theirs:
        theirs.ttl_config = config
        theirs.setup()
        theirs.put(("t",), "k", {"v": 1}, ttl=2)
        # The store's clock is the database's, so the test sets the time back instead of waiting.
        theirs.conn.execute("UPDATE store SET expires_at = '2000-01-01 00:00:00'")
        theirs.get(("t",), "k", refresh_ttl=asked)
        ((left,),) = theirs.conn.execute("SELECT expires_at FROM store").fetchall()
    assert renewed is (str(left) != "2000-01-01 00:00:00")


def test_putting_again_decides_the_time_anew(ctx: Workspace, clock: FixedClock) -> None:
    """LangGraph: a put without a time to live takes it away."""
    store = LukasaStore(ctx)
    store.put(("t",), "k", {"v": 1}, ttl=1)
    store.put(("t",), "k", {"v": 1})
    wait(clock, 9)
    assert store.sweep_ttl() == 0
    for bad in (-1, float("nan"), float("inf"), 10**100, "5", True):
        with pytest.raises(ValueError, match="time to live"):
            store.put(("t",), "bad", {"v": 1}, ttl=bad)  # type: ignore[arg-type]


def test_a_sweeper_sweeps_until_stopped(ctx: Workspace, clock: FixedClock) -> None:
    """LangGraph: started and stopped as its stores on disk are."""
    store = LukasaStore(ctx, ttl={"default_ttl": 1})
    store.put(("t",), "k", {"v": 1})
    wait(clock, 2)
    done = store.start_ttl_sweeper(0.0001)
    assert store.start_ttl_sweeper(0.0001) is done
    until(lambda: store.list_namespaces() == [])
    assert store.stop_ttl_sweeper(30)
    assert done.done()
    assert store.start_ttl_sweeper(100).cancel()
    assert store.stop_ttl_sweeper(30)
    store.close()


# Search by meaning


class Counting(Embeddings):
    """LangChain's own kind of embedding object."""

    model = "counting"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts)

    def embed_query(self, text: str) -> list[float]:
        return embed([text])[0]


@pytest.mark.parametrize("function", [embed, aembed, Counting()], ids=["function", "async function", "Embeddings"])
@pytest.mark.parametrize("how", ["sync", "async", "sync in a loop"])
def test_any_kind_of_embedding(ctx: Workspace, function: Any, how: str) -> None:
    """LangGraph: functions, async functions and objects, called from anywhere."""
    store = LukasaStore(ctx, index=index(embed=function))
    ops = [PutOp(("d",), "car", {"text": "red car"}), PutOp(("d",), "dog", {"text": "a dog barks"})]

    async def in_a_loop() -> Any:
        store.batch(ops)
        return store.search(("d",), query="automobile", limit=1)

    if how == "sync in a loop":
        found = asyncio.run(in_a_loop())
    else:
        face = Face(store, loops=how == "async")
        face.batch(ops)
        found = face.search(("d",), query="automobile", limit=1)
    assert [item.key for item in found] == ["car"]


def test_an_async_function_runs_where_its_clients_live(ctx: Workspace) -> None:
    """LangGraph: on the loop of the call, since connections belong to a loop."""
    seen: list[object] = []

    async def here(texts: Sequence[str]) -> list[list[float]]:
        seen.append(asyncio.get_running_loop())
        return embed(texts)

    async def main() -> None:
        store = LukasaStore(ctx, index=index(embed=here))
        await store.aput(("d",), "k", {"text": "x"})
        await store.asearch(("d",), query="x")
        assert seen == [asyncio.get_running_loop()] * 2

    asyncio.run(main())


def test_the_whole_value_can_be_asked_for_in_one_call(ctx: Workspace) -> None:
    """LangGraph: `$` means the same in a call as in the configuration."""
    store = LukasaStore(ctx, index=index(fields=["nowhere"]))
    store.put(("d",), "k", {"a": "x"}, index=["$"])
    assert store.search(("d",), query='{"a": "x"}')[0].score == pytest.approx(1.0, abs=1e-4)


def test_wrong_dimensions_are_an_error_and_nothing_is_written(ctx: Workspace) -> None:
    """LangGraph: `dims` is checked, and a failing function leaves no item behind."""
    store = LukasaStore(ctx, index=index(dims=3))
    with pytest.raises(ValueError, match="3 numbers"):
        store.put(("d",), "k", {"text": "x"})

    def broken(texts: Sequence[str]) -> list[list[float]]:
        raise ConnectionError("no network")

    with pytest.raises(ConnectionError):
        LukasaStore(ctx, index=index(embed=broken)).put(("d",), "k", {"text": "x"})
    assert store.search(()) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"dims": 0},
        {"embed": None},
        {"fields": "text"},
        {"fields": [1]},
        {"text_fields": [1]},
        {"fields": ["a"], "text_fields": ["b"]},
        {"distance_type": "manhattan"},
        {"ann_index_config": "hnsw"},
        {"fieldz": ["text"]},
    ],
    ids=repr,
)
def test_a_wrong_index_is_an_error(ctx: Workspace, wrong: dict[str, Any]) -> None:
    """LangGraph: a setting that would be ignored is refused."""
    with pytest.raises(ValueError, match=r"dims|embedding function|fields|unknown|mapping"):
        LukasaStore(ctx, index=index(**wrong))
    with pytest.raises(ValueError, match="unknown ttl"):
        LukasaStore(ctx, ttl={"default": 5})  # type: ignore[arg-type]


@pytest.mark.parametrize("distance", ["cosine", "l2", "inner_product"])
@pytest.mark.parametrize("fields", ["title", ["title"]], ids=repr)
def test_settings_of_langgraphs_other_stores_are_taken(ctx: Workspace, distance: str, fields: Any) -> None:
    """LangGraph: what SqliteStore and PostgresStore take. A score is higher for a better hit, whichever is named."""
    ann = {"kind": "hnsw", "vector_type": "halfvec"}
    store = LukasaStore(ctx, index=index(text_fields=fields, distance_type=distance, ann_index_config=ann))
    store.put(("d",), "car", {"title": "red car", "note": "a dog barks"})
    store.put(("d",), "dog", {"title": "a dog barks", "note": "red car"})
    found = store.search(("d",), query="automobile red")
    assert [item.key for item in found] == ["car", "dog"]
    assert found[0].score is not None
    assert found[1].score is not None
    assert found[0].score > found[1].score


def test_without_an_index_lukasas_own_embedder_serves(tmp_path: Path) -> None:
    """LangGraph, B1: and where it fails, values are kept and found by their words."""
    own = FakeEmbedder(DIMENSIONS, synonyms=SYNONYMS)
    with LukasaStore.open(tmp_path / "data", embedder=own) as store:
        store.put(("d",), "car", {"text": "red car"})
        store.put(("d",), "dog", {"text": "a dog barks"}, index=["text"])
        assert store.search(("d",), query="puppy", limit=1)[0].key == "dog"
        own.fail = True
        store.put(("d",), "cat", {"text": "a cat purrs"})
        found = store.search(("d",), query="which cat purrs?")
        assert [(item.key, item.score) for item in found] == [("cat", 1.0), ("dog", None), ("car", None)]


def test_words_are_the_last_resort(store: Face) -> None:
    """LangGraph, B1: without any embedder the share of the query's words is the score, the rarer ones first."""
    store.put(("d",), "both", {"text": "a red car", "tags": ["fast"]})
    store.put(("d",), "one", {"deep": {"text": "a red dog"}})
    store.put(("d",), "none", {"n": 1})
    found = store.search(("d",), query="fast red cars")
    assert [item.key for item in found] == ["both", "one", "none"]
    assert found[0].score == pytest.approx(1.0)
    assert 0 < found[1].score < 0.5
    assert found[2].score is None


# A store among the rest of memory


def test_items_are_kept_as_given_and_logged(ctx: Workspace) -> None:
    """LangGraph: nothing is judged, merged or mixed with memories; every change is an event, and the store is sound."""
    store = LukasaStore(ctx)
    for key in ("one", "two"):
        store.put(("a",), key, {"text": "The sky is blue"})
    store.put(("a",), "one", {"text": ""})
    store.delete(("a",), "two")
    assert store.search(("a",))[0].value == {"text": ""}
    assert len(ctx.events(action="item.saved")) == 3
    assert len(ctx.events(action="item.dropped")) == 1
    assert ctx.read("sky").hits == ()
    assert ctx.check() == []


def test_workspaces_are_apart(tmp_path: Path) -> None:
    """T07: the same namespace in another workspace is another one."""
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        one, two = LukasaStore(memory.workspace("one")), LukasaStore(memory.workspace("two"))
        one.put(("a",), "k", {"v": 1})
        assert two.get(("a",), "k") is None
        assert two.batch([GetOp(("a",), "k"), SearchOp(())]) == [None, []]


def test_it_lasts(tmp_path: Path) -> None:
    """LangGraph: opened by folder and name, closed, and opened again."""
    with LukasaStore.open(tmp_path / "data", "shop", embedder="none") as store:
        store.put(("a",), "k", {"v": 1})
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        again = LukasaStore(memory.existing("shop"))
        assert again.search(("a",))[0].value == {"v": 1}
        again.close()
        assert again.get(("a",), "k") is not None


class State(TypedDict):
    user: str
    greeting: str


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_graph_uses_it(ctx: Workspace, how: str) -> None:
    """LangGraph: compiled into a graph, its nodes remember across threads."""

    def greet(state: State) -> dict[str, str]:
        store = get_store()
        seen = store.get(("users",), state["user"])
        store.put(("users",), state["user"], {"visits": (seen.value["visits"] if seen else 0) + 1})
        return {"greeting": "welcome back" if seen else "hello"}

    builder = StateGraph(State)
    builder.add_node("greet", greet)
    builder.add_edge(START, "greet")
    builder.add_edge("greet", END)
    graph = builder.compile(store=LukasaStore(ctx))

    def visit(user: str) -> str:
        given: Any = {"user": user, "greeting": ""}
        answer = graph.invoke(given) if how == "sync" else asyncio.run(graph.ainvoke(given))
        return str(answer["greeting"])

    assert [visit("ada"), visit("bo"), visit("ada")] == ["hello", "hello", "welcome back"]
