"""MCP over HTTP, on a real server: the official client, many callers at once, and who they are (U3, X4, T08)."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.subscriptions import ResourceUpdated

from lukasa import Lukasa
from tests.helpers.making import FixedClock
from tests.helpers.mcp import EVERYTHING, called, reached, refused, wait
from tests.helpers.processes import TORTURE
from tests.helpers.server import Running, running

PLACES = 50
CALLS = 5000 if TORTURE else 1000
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.fixture
def house(tmp_path: Path, clock: FixedClock) -> Iterator[Running]:
    with Lukasa.open(tmp_path / "data", embedder="none", clock=clock, principal="ada") as memory:
        memory.workspace("novel")
        with running(memory) as up:
            yield up


def token(house: Running, *can: str, workspace: str = "novel", name: str = "claude") -> str:
    return house.memory.access.create(name, workspaces=[workspace], can=can or EVERYTHING).token


def address(house: Running) -> str:
    return f"http://127.0.0.1:{house.port}/mcp/"


@asynccontextmanager
async def visiting(house: Running, token: str, mode: str = "auto") -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http,
        Client(streamable_http_client(address(house), http_client=http), mode=mode) as client,
    ):
        yield client


def test_a_client_hears_of_changes_and_lists_all_if_it_asks(house: Running) -> None:
    """U3, X4: a stream of changes over HTTP ends with the grant; the address says that every tool shall be listed."""
    context = "lukasa://novel/context"
    secret = token(house)

    async def work() -> None:
        async with (
            visiting(house, secret) as client,
            client.listen(resource_subscriptions=[context]) as changes,
        ):
            house.memory.existing("novel").put("workspace", "The villain is called Malachar")
            assert await anext(changes) == ResourceUpdated(uri=context)
            house.memory.access.revoke("claude")
            with pytest.raises(StopAsyncIteration):
                await anext(changes)
        other = token(house, name="editor")
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {other}"}, timeout=60) as http,
            Client(streamable_http_client(f"{address(house)}?tools=all", http_client=http)) as client,
        ):
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert "memory_undo" in names
            assert "more" not in names

    wait(work)


def test_a_server_stops_though_a_client_listens(tmp_path: Path) -> None:
    """U3: an open stream of changes does not keep a server."""
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        memory.workspace("novel")

        async def work(house: Running) -> None:
            async with (
                visiting(house, token(house)) as client,
                client.listen(resource_subscriptions=["lukasa://novel/context"]) as changes,
            ):
                house.server.stop()
                with pytest.raises((StopAsyncIteration, SubscriptionLost)):
                    await anext(changes)

        with running(memory) as house:
            wait(lambda: work(house))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_life_of_a_memory(house: Running, mode: str) -> None:
    """U3, B11: remember, recall, correct, forget and look at a scrub, in the newest protocol and in the older ones."""

    async def work() -> None:
        async with visiting(house, token(house), mode) as client:
            stored = await called(client, "memory_put", content="The villain is called Malachar.")
            origin = stored["entry"]["origin"]
            assert origin == {"principal": "claude", "surface": "mcp", "transport": "http", "trust": "agent"}
            (hit,) = (await called(client, "memory_read", query="what is the villain called?"))["hits"]
            assert hit["entry"]["id"] == stored["id"]
            await called(client, "memory_update", id=stored["id"], content="The villain is called Morgana.")
            assert (await called(client, "memory_scrub_plan", mode="full", tier="workspace"))["lines"]
            assert "memory_scrub_execute" not in await reached(client)
            assert "only the owner" in await refused(client, "memory_scrub_execute")
            await called(client, "memory_forget", id=stored["id"])
            assert (await called(client, "memory_list"))["entries"] == []
            assert (await client.list_resources()).resources
            assert len((await client.list_prompts()).prompts) == 2

    wait(work)


def test_who_is_let_in(house: Running, clock: FixedClock) -> None:
    """X4, U3: only a live grant's token opens it, with every request anew; the page's own session does not."""
    access = house.memory.access
    brief = access.create("brief", workspaces=["novel"], expires=timedelta(seconds=1)).token
    ended = access.create("ended", workspaces=["novel"]).token
    access.revoke("ended")
    clock.time += timedelta(minutes=1)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    before = house.heads()
    strangers = [house.stranger(), house.owner(), house.holder("nonsense"), house.holder(brief), house.holder(ended)]
    for client in strangers:
        for path in ("/mcp", "/mcp/"):
            answer = client.post(path, body, accept="application/json, text/event-stream")
            assert (answer.status, answer.json["type"]) == (401, "unauthenticated"), answer
            assert client.get(path).status == 401
    holder = house.granted("read", name="fine")
    assert holder.post("/mcp/", body, accept="application/json, text/event-stream").status == 200
    for method in ("GET", "DELETE", "PUT"):
        refusal = holder.ask(method, "/mcp/")
        assert (refusal.status, refusal.headers["allow"]) == (405, "POST")
    assert holder.post("/mcp/", body, origin="https://elsewhere.example").status == 403
    assert holder.post("/mcp/", body, host="elsewhere.example").status == 421
    access.revoke("fine")
    assert holder.post("/mcp/", body).status == 401
    changed = {name for name, head in house.heads().items() if head != before[name]}
    assert changed == {"(account)"}  # the two grants, and nothing in a workspace


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b"[" * 5000])
def test_nonsense_is_refused(house: Running, body: bytes) -> None:
    """U3, W9: what is no request of the protocol gets an answer of the protocol, and no trace."""
    holder = house.granted("read")
    answer = holder.ask(
        "POST", "/mcp/", body, accept="application/json, text/event-stream", content_type="application/json"
    )
    assert 400 <= answer.status < 500
    assert b"Traceback" not in answer.body
    assert house.stranger().get("/health").status == 200


def test_equal_ids_do_not_mix(house: Running) -> None:
    """T08: two clients whose requests have the same numbers get their own answers."""
    for name in ("one", "two"):
        house.memory.workspace(name).put("workspace", f"The canary of this place is {name}-bird.")

    async def ask(name: str) -> None:
        async with visiting(house, token(house, workspace=name, name=name), "legacy") as client:
            for _ in range(10):
                hits = (await called(client, "memory_read", query="which canary?"))["hits"]
                assert [hit["entry"]["content"] for hit in hits] == [f"The canary of this place is {name}-bird."]

    async def work() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "one")
            group.start_soon(ask, "two")

    wait(work)


def request(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A call as it goes over the wire, always with the same number."""
    params = {"name": name, "arguments": arguments, "_meta": MODERN}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


def canary(place: int) -> str:
    return f"The canary of this place is called bird{place:03}x."


async def one_call(http: httpx2.AsyncClient, url: str, secret: str, place: int, n: int) -> None:
    """One call of one client. Every second one writes."""
    body = (
        request("memory_put", {"content": f"Ship {n} of place {place} is called S{n}y.", "detail": True})
        if n % 2
        else None
    )
    name = "memory_put" if body else "memory_read"
    headers = {
        "authorization": f"Bearer {secret}",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
    }
    asked = request(name, {"query": "which canary?", "limit": 1, "detail": True})
    answer = await http.post(url, json=body or asked, headers=headers)
    assert answer.status_code == 200, answer.text
    reply = answer.json()
    assert reply["id"] == 7
    told = reply["result"]["structuredContent"]
    if body:
        assert told["entry"]["content"] == body["params"]["arguments"]["content"]
    else:
        assert [hit["entry"]["content"] for hit in told["hits"]] == [canary(place)]


def attributes(house: Running) -> dict[str, list[str]]:
    """What the objects that all requests share hold."""
    shared = (house.memory.access, house.server, house.server.parts, *house.server.parts.lifespans)
    return {str(n): sorted(f"{k}={id(v)}" for k, v in vars_of(one)) for n, one in enumerate(shared)}


def vars_of(value: Any) -> list[tuple[str, Any]]:
    owner = getattr(value, "__self__", value)
    names = getattr(owner, "__dict__", None) or dict.fromkeys(getattr(owner, "__slots__", ()), 0)
    return [(name, getattr(owner, name)) for name in names]


def test_many_callers_at_once_and_some_who_leave(house: Running) -> None:
    """T08, U3: fifty workspaces on one server, a thousand calls with the same number, three in ten cancelled.

    Nobody ever gets what is another's, nothing of a request stays behind, and the server goes on.
    """
    secrets = []
    for place in range(PLACES):
        house.memory.workspace(f"place{place}").put("workspace", canary(place))
        secrets.append(token(house, "read", "write", workspace=f"place{place}", name=f"agent{place}"))
    dice = random.Random(8)
    leaving = set(dice.sample(range(1, CALLS), CALLS * 3 // 10))
    under_way: dict[int, asyncio.Task[None]] = {}
    done: list[int] = []

    async def guarded(http: httpx2.AsyncClient, n: int, gate: asyncio.Semaphore) -> None:
        async with gate:
            task = asyncio.current_task()
            if n in leaving and task is not None:
                under_way[n] = task
            await one_call(http, address(house), secrets[n % PLACES], n % PLACES, n // PLACES)
        under_way.pop(n, None)
        done.append(n)
        if under_way:  # whoever finishes sends one away that is somewhere in the middle
            under_way.pop(dice.choice(list(under_way))).cancel()

    async def work() -> int:
        limits = httpx2.Limits(max_connections=64)
        async with httpx2.AsyncClient(timeout=120, limits=limits) as http:
            gate = asyncio.Semaphore(64)
            await guarded(http, 0, gate)  # the package is loaded by now
            kept = attributes(house)
            tasks = [asyncio.create_task(guarded(http, n, gate)) for n in range(1, CALLS)]
            results = await asyncio.gather(*tasks, return_exceptions=True)
            for result in results:
                assert result is None or isinstance(result, asyncio.CancelledError), result
            assert attributes(house) == kept
            await guarded(http, PLACES + 1, gate)
        return sum(isinstance(result, asyncio.CancelledError) for result in results)

    cancelled = wait(work)
    assert CALLS // 10 < cancelled <= CALLS * 3 // 10
    for place in range(PLACES):
        world = house.memory.existing(f"place{place}")
        found = {entry.content for entry in world.entries("workspace", limit=500)} - {canary(place)}
        assert all(f"of place {place} is" in content for content in found)
        wrote = [n // PLACES for n in done if n % PLACES == place and (n // PLACES) % 2]
        assert {f"Ship {n} of place {place} is called S{n}y." for n in wrote} <= found
    assert json.loads(house.stranger().get("/health").body)["status"] == "ok"
