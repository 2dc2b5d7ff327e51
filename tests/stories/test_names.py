"""Names are one line of plain characters, on every surface; what was named before that rule is still found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from lukasa import Lukasa
from lukasa.langgraph import LukasaStore
from lukasa.model.errors import InvalidInput
from lukasa.service.entries import filed_entries
from lukasa.service.workspace import Workspace
from tests.helpers.cli import Shell
from tests.helpers.mcp import beside, refused, session
from tests.helpers.server import running

BAD = ("two\nlines", "end\n", "car\rriage", "tab\tbed", "esc\x1b[2J", "del\x7f", "nel\x85", "line\u2028", "turn\u202ed")
GOOD = ("Zoë's notes", "日本語", "a\u200cb", "👩\u200d💻", "plain name", "x/y:z", "non\u00a0breaking")

NAMING: dict[str, Callable[[Lukasa, Workspace, str], object]] = {
    "workspace": lambda memory, world, name: memory.workspace(name),
    "channel": lambda memory, world, name: world.create_channel(name),
    "named entry": lambda memory, world, name: world.edit_named(name, "text"),
    "tag": lambda memory, world, name: world.put("workspace", "The archive has four floors", tags=[name]),
    "new tag": lambda memory, world, name: world.update(world.put("workspace", "It has a roof").id, tags=[name]),
    "source": lambda memory, world, name: world.put("workspace", "The archive has four floors", source=name),
    "owner": lambda memory, world, name: world.put("workspace", "The archive has four floors", owner=name),
    "agent": lambda memory, world, name: world.acting(agent=name),
    "principal": lambda memory, world, name: world.acting(principal=name),
    "document": lambda memory, world, name: world.save_document(name, "A guide"),
    "title": lambda memory, world, name: world.save_document("guide", "A guide", title=name),
    "action": lambda memory, world, name: world.link_action(name, []),
    "grant": lambda memory, world, name: memory.access.create(name, workspaces=["novel"]),
    "grant's agent": lambda memory, world, name: memory.access.create("one", workspaces=["novel"], agent=name),
    "note": lambda memory, world, name: world.write_note(world.start().id, name, "text"),
    "scope key": lambda memory, world, name: world.ctx.at(channel=name),
    "path": lambda memory, world, name: filed_entries.create(world.ctx, "workspace", f"{name}.md", "text"),
    "namespace": lambda memory, world, name: LukasaStore(world).put((name,), "key", {"text": "value"}),
    "item": lambda memory, world, name: LukasaStore(world).put(("a",), name, {"text": "value"}),
}


@pytest.mark.parametrize("what", NAMING)
def test_a_name_is_one_line(tmp_path: Path, what: str) -> None:
    """A line break, a control character or one that turns the direction of a line is refused, and nothing is kept."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("novel")
        for name in BAD:
            with pytest.raises(InvalidInput) as caught:
                NAMING[what](memory, world, name)
            assert caught.value.fix
        assert [info.name for info in memory.workspaces()] == ["novel"]
        kept = json.dumps([str(event.detail) for event in world.ctx.local.event_stream()])
        assert not any(name in kept for name in BAD)


@pytest.mark.parametrize(
    "what", ["workspace", "channel", "tag", "source", "agent", "grant", "note", "namespace", "item"]
)
def test_names_of_every_language_are_taken(tmp_path: Path, what: str) -> None:
    """Letters of any script, and the joiners that some scripts and emoji need, are no control characters."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("novel")
        for name in GOOD:
            NAMING[what](memory, world, name)


def test_the_surfaces_refuse_alike(tmp_path: Path) -> None:
    """The command line, HTTP and MCP answer a name of two lines with invalid input that says what to write."""
    shell = Shell(tmp_path)
    shell.run("workspace", "create", "novel")
    error = shell.fails("put", "The archive has four floors", "--tag", "two\nlines", code=2)
    assert error["code"] == "invalid-input"
    assert "on one line" in error["fix"]
    assert shell.fails("workspace", "create", "two\nlines", code=2)["code"] == "invalid-input"
    with Lukasa.open(tmp_path, embedder="none") as memory, running(memory) as server:
        client = server.granted("read", "write")
        body = {"content": "The archive has four floors", "tags": ["two\nlines"]}
        answer = client.post("/v1/workspaces/novel/entries", body)
        assert (answer.status, answer.json["type"]) == (422, "invalid-input")
        body = {"content": "The archive has four floors", "tags": ["two\nlines"]}
        said = session(lambda: beside(memory), lambda asking: refused(asking, "memory_put", **body))
        assert "on one line" in said


def test_what_was_named_before_is_still_found(tmp_path: Path) -> None:
    """A store with such names from before opens, lists, filters and clears them."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("novel")
        id = world.put("workspace", "The archive has four floors", tags=["plain"], source="guide").id
        talk = world.start().id
        world.write_note(talk, "plain", "text")
        place = memory.folder(world)
    assert place is not None
    db = apsw.Connection(str(place / "memory.db"))
    db.execute("UPDATE entries SET tags = json_array(?), source = ?", ("two\nlines", "a\nsource"))
    db.execute("UPDATE notes SET key = ?", ("two\nlines",))
    db.close()
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("novel")
        assert world.get(id).tags == ("two\nlines",)
        assert [hit.id for hit in world.read("archive", tags=["two\nlines"], source="a\nsource")] == [id]
        assert world.read_note(talk, "two\nlines").value == "text"
        assert world.clear_notes(talk, "two\nlines") == 1
        assert world.update(id, importance=0.9).id == id
