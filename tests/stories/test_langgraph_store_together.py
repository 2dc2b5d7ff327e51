"""Many at once: calls, loops, threads, processes, cancellations; and text that would like to be SQL."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import IndexConfig, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from lukasa import Lukasa
from lukasa.langgraph import LukasaStore
from lukasa.model.errors import InvalidInput
from lukasa.service.inputs import is_one_line
from tests.helpers.langgraph import index
from tests.helpers.processes import TORTURE, finish, fork
from tests.unit.test_sqlite_statements import HOSTILE, Trace, inner, made_by_migrations, ours


def test_300_calls_at_once_lose_nothing(tmp_path: Path) -> None:
    """T08: on one loop, writes and reads mixed."""

    async def main(store: LukasaStore) -> None:
        async def one(i: int) -> None:
            await store.aput(("n", str(i % 7)), str(i), {"i": i})
            found = await store.aget(("n", str(i % 7)), str(i))
            assert found is not None
            assert found.value == {"i": i}

        await asyncio.gather(*(one(i) for i in range(300)))
        assert len(await store.asearch(("n",), limit=1000)) == 300

    with LukasaStore.open(tmp_path / "data", embedder="none") as store:
        asyncio.run(main(store))


def test_puts_started_together_share_a_transaction(tmp_path: Path) -> None:
    """B11: gathered puts and deletes are one batch: of several for a key the last counts, and each is in the log."""

    async def main() -> None:
        async with LukasaStore.open(tmp_path / "data", embedder="none") as store:
            await store.aput(("n",), "gone", {"i": -1})
            puts = [store.aput(("n",), str(i % 250), {"i": i}) for i in range(500)]
            await asyncio.gather(*puts, store.adelete(("n",), "gone"))
            found = await store.asearch(("n",), limit=1000)
            assert {item.key: item.value["i"] for item in found} == {str(i): 250 + i for i in range(250)}
            events = store.workspace.events(action="item.saved", limit=1000)
            assert len(events) == 251
            assert len({event.at for event in events}) == 2
            assert store.workspace.check() == []

    asyncio.run(main())


def test_one_wrong_put_fails_alone(tmp_path: Path) -> None:
    """B11: of calls that share a transaction, only the one at fault gets an error; the others are written."""

    async def refusing(texts: Sequence[str]) -> list[list[float]]:
        if any("refuse" in text for text in texts):
            raise ConnectionError("the model refused")
        return [[1.0, 0.0] for _ in texts]

    async def main() -> None:
        config: IndexConfig = {"dims": 2, "embed": refusing}
        async with LukasaStore.open(tmp_path / "data", embedder="none", index=config) as store:
            texts = ["one", "refuse me", "three"]
            puts = [store.aput(("n",), text, {"text": text}) for text in texts]
            bad = store.aput(("n",), "bad", {"text": {1, 2}})
            answers = await asyncio.gather(*puts, bad, return_exceptions=True)
            assert [type(answer) for answer in answers] == [type(None), ConnectionError, type(None), InvalidInput]
            assert sorted(item.key for item in await store.asearch(("n",))) == ["one", "three"]

    asyncio.run(main())


def test_a_cancelled_put_leaves_the_others(tmp_path: Path) -> None:
    """T08: of calls that share a transaction, some are cancelled before it begins; the others are written."""

    async def main() -> None:
        async with LukasaStore.open(tmp_path / "data", embedder="none") as store:
            tasks = [asyncio.create_task(store.aput(("n",), str(i), {"i": i})) for i in range(20)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            found = {int(item.key) for item in await store.asearch(("n",), limit=100)}
            assert found >= {i for i in range(20) if i % 2}

    asyncio.run(main())


def test_threads_and_loops_share_a_store(tmp_path: Path) -> None:
    """T08, T31: each thread with a loop of its own, one store for all."""
    with LukasaStore.open(tmp_path / "data", index=index(), embedder="none") as store:

        def work(n: int) -> None:
            asyncio.run(store.aput(("t",), f"async{n}", {"text": f"number {n}"}))
            store.put(("t",), f"sync{n}", {"text": f"number {n}"})

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(24)))
        assert len(store.search(("t",), query="number 7", limit=100)) == 48


def test_nobody_gets_anothers_answer(tmp_path: Path) -> None:
    """T08: many workspaces, a third of the calls cancelled; the rest get their own, and what was acknowledged stays."""
    dice = random.Random(8)
    rooms, calls = (50, 5000) if TORTURE else (8, 400)

    async def main(stores: list[LukasaStore]) -> None:
        async def one(i: int) -> int:
            store = stores[i % rooms]
            await store.aput(("c",), str(i), {"canary": i % rooms})
            found = await store.asearch(("c",), limit=1000)
            assert {item.value["canary"] for item in found} == {i % rooms}
            return i

        tasks = [asyncio.create_task(one(i)) for i in range(calls)]
        for task in tasks:
            if dice.random() < 0.05:
                await asyncio.sleep(0)
            if dice.random() < 0.3:
                task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        kept = [i for i in done if isinstance(i, int)]
        assert all(isinstance(i, int | asyncio.CancelledError) for i in done)
        assert 0 < len(kept) < calls
        for i in kept:
            assert await stores[i % rooms].aget(("c",), str(i)) is not None

    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        stores = [LukasaStore(memory.workspace(f"w{n}")) for n in range(rooms)]
        before = [dict(vars(store)) for store in stores]
        asyncio.run(main(stores))
        assert [dict(vars(store)) for store in stores] == before
        assert all(store.workspace.check() == [] for store in stores)


def test_a_cancelled_async_embedding_breaks_nothing(tmp_path: Path) -> None:
    """T08: a call cancelled while its function runs writes nothing, and the next one works."""
    started = asyncio.Event()

    async def stuck(texts: Any) -> list[list[float]]:
        if "stuck" in texts[0]:
            started.set()
            await asyncio.Event().wait()
        return [[1.0, 0.0] for _ in texts]

    async def main(store: LukasaStore) -> None:
        task = asyncio.create_task(store.aput(("a",), "k", {"text": "stuck"}))
        await started.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await store.aput(("a",), "next", {"text": "free"})
        assert [item.key for item in await store.asearch(("a",))] == ["next"]

    with LukasaStore.open(tmp_path / "data", index={"dims": 2, "embed": stuck}, embedder="none") as store:
        asyncio.run(main(store))


def test_two_processes_share_a_store(tmp_path: Path) -> None:
    """T31: both write, delete and sweep the same keys; each sees the other's, and nothing is lost or doubled."""
    data = tmp_path / "data"
    LukasaStore.open(data, embedder="none").close()

    def work(mine: str) -> None:
        with LukasaStore.open(data, embedder="none") as store:
            for i in range(40):
                store.batch([PutOp(("p", mine), str(i), {"i": i}), PutOp(("p", "both"), str(i), {"by": mine})])
                store.delete(("p", "both"), str(i))
                store.put(("p", "brief"), f"{mine}{i}", {"i": i}, ttl=0)
                store.sweep_ttl()

    assert [finish(child) for child in [fork(lambda: work("a")), fork(lambda: work("b"))]] == [0, 0]
    with LukasaStore.open(data, embedder="none") as store:
        store.sweep_ttl()
        assert store.list_namespaces() == [("p", "a"), ("p", "b")]
        assert len(store.search(("p",), limit=100)) == 80
        assert store.workspace.check() == []


LABEL = st.text(min_size=1, max_size=4) | st.sampled_from(HOSTILE)


def test_text_never_becomes_a_statement(tmp_path: Path) -> None:
    """T11: whatever labels, keys, filters and queries are, the statements are ours, and odd ones a ValueError."""
    trace = Trace()
    apsw.connection_hooks.append(trace.watch)
    try:
        with LukasaStore.open(tmp_path / "data", index=index(), embedder="none") as store:

            @settings(max_examples=5000 if TORTURE else 80, deadline=None, suppress_health_check=list(HealthCheck))
            @given(st.lists(LABEL, max_size=3), LABEL, LABEL, LABEL | st.floats() | st.integers() | st.none(), LABEL)
            def drive(labels: list[str], key: str, field: str, value: Any, operator: str) -> None:
                use_everything(store, tuple(labels), key, field, value, operator)

            drive()
            assert store.workspace.check() == []
    finally:
        apsw.connection_hooks.remove(trace.watch)
    allowed = ours() | made_by_migrations()
    assert {s for s in trace.seen if s not in allowed and not inner(s)} == set()


def use_everything(
    store: LukasaStore, namespace: tuple[str, ...], key: str, field: str, value: Any, operator: str
) -> None:
    """Put, find, list and delete. An item is found under its own namespace and under no other."""
    if not all(map(is_one_line, (*namespace, key))):
        with pytest.raises(InvalidInput):
            store.batch([PutOp(namespace, key, {"text": operator})])
        return
    stranger = (*namespace, "!")
    store.batch([PutOp(namespace, key, {field: value, "text": operator})])
    patterns = (MatchCondition("prefix", namespace), MatchCondition("suffix", (*namespace, "*")))
    asked: list[Any] = [SearchOp(namespace, {"text": operator}, limit=1000), SearchOp(stranger)]
    mine, other, listed = store.batch([*asked, ListNamespacesOp(patterns)])
    assert (namespace, key) in [(item.namespace, item.key) for item in mine]  # type: ignore[union-attr]
    assert other == []
    assert namespace not in listed  # type: ignore[operator]
    for filter in ({field: value}, {field: {f"${operator}": value}}, {"text": {"$gt": value}}):
        try:
            store.batch([SearchOp(namespace, filter, query=operator)])
        except ValueError:
            continue
    store.batch([PutOp(namespace, key, None)])
    assert store.batch([SearchOp(namespace)]) == [[]]
