"""Ending sessions and conversations on every surface: the same consolidation, the same summary, the same refusal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp.client import Client

from lukasa import Lukasa, Workspace
from lukasa.model.conversation import SUMMARY_TAG
from tests.helpers.cli import Shell
from tests.helpers.making import FixedClock
from tests.helpers.mcp import beside, called, refused
from tests.helpers.mcp import session as connected
from tests.helpers.server import Running, running

pytestmark = pytest.mark.usefixtures("engine")

PLACE = {"org_id": "acme", "domain_id": "ops"}
INSIDE = {**PLACE, "session": "s1"}
NOTE = "The mooring of the harbour is booked"
DESK = "/v1/workspaces/desk"


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder="none", clock=clock, principal="ada") as opened:
        yield opened


@pytest.fixture
def desk(memory: Lukasa) -> Workspace:
    return memory.workspace("desk", preset="anchored")


@pytest.fixture
def house(memory: Lukasa, desk: Workspace) -> Iterator[Running]:
    with running(memory) as up:
        yield up


def kept(desk: Workspace) -> list[str]:
    return [entry.content for entry in desk.at(**PLACE).entries("persistent")]


def test_the_command_line_ends_a_session(tmp_path: Path) -> None:
    """S4, U2: `scope end` carries the session's entries on, and later writes are refused with exit code 1."""
    shell = Shell(tmp_path / "data", {"LUKASA_EMBEDDER": "none", "LUKASA_WORKSPACE": "desk"})
    shell.run("workspace", "create", "desk", "--preset", "anchored")
    inside = [word for key, value in INSIDE.items() for word in ("--scope", f"{key}={value}")]
    shell.put(NOTE, "--tier", "session", *inside)
    (ended,) = shell.json("scope", "end", "session_end", *inside)["ended"]
    assert (ended["tier"], ended["closed"], ended["carried"]) == ("session", True, 1)
    assert [e["content"] for e in shell.json("list", "--tier", "persistent", *inside)["entries"]] == [NOTE]
    assert shell.fails("put", NOTE, "--tier", "session", *inside, code=1)["code"] == "invalid-transition"
    assert shell.fails("scope", "end", "galaxy", *inside, code=2)["code"] == "invalid-scope"


def test_http_ends_a_session(house: Running, desk: Workspace) -> None:
    """S4, U4: a grant that may lead conversations ends the session of its own tenant, and no other's."""
    header = {"lukasa_scope": "&".join(f"{key}={value}" for key, value in INSIDE.items())}
    can = ("read", "write", "conversations")
    client = house.granted(*can, workspaces=("desk",), scope=PLACE, name="operator")
    client.post(f"{DESK}/entries", {"content": NOTE, "tier": "session"}, lukasa_scope="session=s1")
    other = house.granted("conversations", workspaces=("desk",), scope={"org_id": "evil", "domain_id": "ops"})
    assert other.post(f"{DESK}/scopes/session/end", {}, **header).status == 404
    assert desk.at(**INSIDE).entries("session") != []
    answer = client.post(f"{DESK}/scopes/session/end", {}, lukasa_scope="session=s1")
    assert answer.status == 200, answer.body
    (ended,) = answer.json["ended"]
    assert (ended["carried"], ended["scope"]["session"]) == (1, "s1")
    assert kept(desk) == [NOTE]
    late = client.post(f"{DESK}/entries", {"content": NOTE, "tier": "session"}, lukasa_scope="session=s1")
    assert late.status == 409
    reader = house.granted("read", workspaces=("desk",), scope=PLACE, name="reader")
    assert reader.post(f"{DESK}/scopes/session/end", {}, lukasa_scope="session=s2").status == 403


def test_mcp_ends_a_session(memory: Lukasa, desk: Workspace) -> None:
    """S4, U3: the tool `scope_end` does the same."""
    given = memory.access.lend(
        "helper", workspaces=["desk"], can=("read", "write", "conversations"), scope=PLACE, surface="mcp", transport="t"
    )

    async def work(client: Client) -> None:
        here = {"scope": {"session": "s1"}}
        await called(client, "memory_put", content=NOTE, tier="session", **here)
        (ended,) = (await called(client, "scope_end", name="session", **here))["ended"]
        assert (ended["closed"], ended["carried"]) == (True, 1)
        assert "has ended" in await refused(client, "memory_put", content=NOTE, tier="session", **here)

    connected(lambda: beside(memory, given, "desk"), work)
    assert kept(desk) == [NOTE]


def test_every_surface_leaves_a_summary(memory: Lukasa, house: Running) -> None:
    """L1: a conversation that is ended over HTTP or MCP carries what was remembered into its channel, as a chat's."""
    world = memory.workspace("novel")
    client = house.granted("read", "write", "conversations", workspaces=("novel",))
    place = "/v1/workspaces/novel"
    talk = client.post(f"{place}/conversations", {}).json
    client.post(f"{place}/entries", {"content": "The villain is called Malachar", "conversation": talk["id"]})
    answer = client.post(f"{place}/conversations/{talk['id']}/end", {})
    assert (answer.status, answer.json["summary"]) == (200, None)  # this client does not see the channel
    mine = house.owner().post(f"{place}/conversations", {}).json
    house.owner().post(f"{place}/entries", {"content": "The mill grinds rye", "conversation": mine["id"]})
    ended = house.owner().post(f"{place}/conversations/{mine['id']}/end", {})
    assert "rye" in ended.json["summary"]["content"]
    can = ("read", "write", "conversations")
    given = memory.access.lend("helper", workspaces=["novel"], can=can, surface="mcp", transport="t")

    async def work(connected_client: Client) -> None:
        id = (await called(connected_client, "conversation_start"))["id"]
        await called(connected_client, "memory_put", content="The ship is called Vey", conversation=id)
        await called(connected_client, "conversation_end", id=id)

    connected(lambda: beside(memory, given, "novel"), work)
    summaries = world.at(channel="general").entries("channel", tags=[SUMMARY_TAG])
    told = "\n".join(entry.content for entry in summaries)
    assert len(summaries) == 3
    assert all(word in told for word in ("Malachar", "Vey", "rye"))
