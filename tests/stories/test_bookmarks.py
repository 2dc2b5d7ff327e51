"""Bookmarks: names for positions of the event log, and what can be done with them (S0)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from lukasa import Lukasa, Trust, Workspace
from lukasa.model.errors import InvalidInput, LukasaError, NotFound, Refused
from tests.helpers.cli import Shell
from tests.helpers.making import FixedClock
from tests.helpers.mcp import beside, wait
from tests.helpers.server import running

BEFORE, AFTER = "The launch is on March 11", "The launch is on March 12"


@pytest.fixture
def marked(world: Workspace, clock: FixedClock) -> Workspace:
    """A workspace in which a fact was replaced after the bookmark `agreed`."""
    first = world.put("workspace", BEFORE).id
    clock.time += timedelta(hours=1)
    world.bookmark("agreed", "what the team agreed on")
    clock.time += timedelta(hours=1)
    world.put("workspace", AFTER, supersedes=first)
    return world


def test_memory_is_read_as_of_a_bookmark(marked: Workspace) -> None:
    """S0: a read as of the position answers as memory stood there; without it, as it stands now."""
    assert [hit.content for hit in marked.read("when is the launch", as_of="agreed")] == [BEFORE]
    assert [hit.content for hit in marked.read("when is the launch")] == [AFTER]


def test_the_log_is_read_from_a_bookmark_on(marked: Workspace) -> None:
    """S0: what changed since the position, and nothing before it, so that each change can be undone."""
    actions = {event.action for event in marked.events(since="agreed")}
    assert {"entry.put", "entry.invalidated"} & actions
    assert "log.bookmarked" not in actions
    (mark,) = marked.bookmarks()
    assert all(event.seq > mark.seq for event in marked.events(since="agreed"))
    assert BEFORE in str(marked.read("launch", as_of="agreed")[0].content)


def test_a_bookmark_is_an_event_of_its_own(marked: Workspace) -> None:
    """S0, X2: it has a number and a time in the chain, which still verifies."""
    (mark,) = marked.bookmarks()
    (event,) = marked.events(action="log.bookmarked")
    assert (event.subject, event.seq, event.at) == ("agreed", mark.seq, mark.at)
    assert mark.note == "what the team agreed on"
    assert marked.verify() == []


def test_a_name_is_given_once(marked: Workspace) -> None:
    """S0: a position never moves under its name."""
    with pytest.raises(InvalidInput, match="already"):
        marked.bookmark("agreed")
    assert len(marked.bookmarks()) == 1


@pytest.mark.parametrize("name", ["", "2026-11-15", "two words", "ä", "x" * 61, "../x", "a\nb"])
def test_a_name_that_no_bookmark_can_have(world: Workspace, name: str) -> None:
    """W9: a typed error with a way out; a time can never be taken for a name."""
    with pytest.raises(InvalidInput) as raised:
        world.bookmark(name)
    assert raised.value.fix
    assert world.bookmarks() == []


def test_a_position_that_nobody_named(world: Workspace) -> None:
    """W9: the error says where the names are."""
    for ask in (lambda: world.read("x", as_of="nowhere"), lambda: world.events(since="nowhere")):
        with pytest.raises(NotFound, match="bookmarks"):
            ask()


def test_untrusted_callers_name_nothing(world: Workspace) -> None:
    """X4: text that was merely read cannot mark the log."""
    with pytest.raises(Refused):
        world.acting(trust=Trust.UNTRUSTED).bookmark("mine")


def test_a_tenant_names_nothing_for_others(memory: Lukasa) -> None:
    """P6: positions are about the whole workspace, so a handle bound to one tenant neither makes nor lists them."""
    bound = memory.workspace("tenants", preset="anchored").at(org_id="acme", domain_id="robots")
    for ask in (lambda: bound.bookmark("mine"), bound.bookmarks):
        with pytest.raises(LukasaError):
            ask()


def test_a_scrub_leaves_bookmarks(marked: Workspace) -> None:
    """S0, H2: emptying a tier does not take the positions away, and the chain verifies."""
    plan = marked.scrub_plan("workspace", mode="full")
    marked.scrub_execute("workspace", mode="full", confirm=plan.digest)
    assert [mark.name for mark in marked.bookmarks()] == ["agreed"]
    assert marked.verify() == []


def test_on_the_command_line(tmp_path: Path) -> None:
    """S0: mark, list, read as of the mark, and list the changes since."""
    shell = Shell(tmp_path / "data")
    first = shell.put(BEFORE)
    made = shell.json("events", "bookmark", "agreed", "--note", "before the call")
    shell.put(AFTER, "--supersedes", first)
    assert shell.json("events", "bookmarks")["bookmarks"] == [made]
    assert "agreed" in shell.run("events", "bookmarks")
    since = shell.json("events", "list", "--since", "agreed")["events"]
    assert since
    assert all(event["seq"] > made["seq"] for event in since)
    assert BEFORE in shell.run("read", "launch", "--as-of", "agreed")
    assert BEFORE not in shell.run("read", "launch")
    assert shell.fails("events", "list", "--since", "nowhere", code=1)["code"] == "not-found"


def test_over_http(memory: Lukasa, world: Workspace, clock: FixedClock) -> None:
    """S0: the same over HTTP; only with the capability for the log."""
    first = world.put("workspace", BEFORE).id
    clock.time += timedelta(hours=1)
    at = "/v1/workspaces/novel"
    with running(memory) as house:
        owner, reader = house.owner(), house.granted("read", name="reader")
        assert reader.post(f"{at}/bookmarks", {"name": "agreed"}).status == 403
        made = owner.post(f"{at}/bookmarks", {"name": "agreed"}).json
        clock.time += timedelta(hours=1)
        world.put("workspace", AFTER, supersedes=first)
        assert owner.get(f"{at}/bookmarks").json["bookmarks"] == [made]
        assert [e["seq"] > made["seq"] for e in owner.get(f"{at}/events?bookmark=agreed").json["events"]]
        found = reader.post(f"{at}/read", {"query": "when is the launch", "as_of": "agreed"}).json
        assert [hit["entry"]["content"] for hit in found["hits"]] == [BEFORE]


def test_over_mcp(memory: Lukasa, world: Workspace, clock: FixedClock) -> None:
    """S0: an agent marks the log, and reads memory as of the mark."""
    first = world.put("workspace", BEFORE).id
    clock.time += timedelta(hours=1)

    async def talk() -> None:
        async with beside(memory) as client:
            made = await client.call_tool("bookmark_create", {"name": "agreed", "detail": True})
            assert made.structured_content is not None
            listed = await client.call_tool("bookmark_list", {"detail": True})
            assert listed.structured_content == {"bookmarks": [made.structured_content]}
            clock.time += timedelta(hours=1)
            world.put("workspace", AFTER, supersedes=first)
            read = await client.call_tool(
                "memory_read", {"query": "when is the launch", "as_of": "agreed", "detail": True}
            )
            assert BEFORE in str(read.structured_content)
            assert AFTER not in str(read.structured_content)

    wait(talk)
