"""A past by HTTP: the owner sends a file, sees the dry run, and accepts it."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from lukasa import Lukasa
from tests.helpers.pasts import MADE
from tests.helpers.server import Running, running


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Running]:
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        memory.workspace("novel")
        with running(memory) as made:
            yield made


@pytest.mark.parametrize("name", ["chatgpt", "mcp_memory", "mem0_export", "langgraph_store", "letta"])
def test_a_file_that_is_sent_is_imported_once(name: str, house: Running, tmp_path: Path) -> None:
    """B10: a dry run writes nothing; the import brings everything, with the name of the file; a second one nothing."""
    past, owner = MADE[name](tmp_path), house.owner()
    sent = {"name": f"../{past.path.name}", "data": b64encode(past.path.read_bytes()).decode()}
    planned = owner.post("/v1/workspaces/novel/past", {**sent, "dry_run": True}).json
    assert (planned["format"], planned["memories"]) == (past.format, {"new": past.memories})
    assert house.memory.existing("novel").entries("workspace", everything=True) == []
    done = owner.post("/v1/workspaces/novel/past", sent)
    assert done.status == 200
    assert done.json["memories"] == {"stored": past.memories}
    assert owner.post("/v1/workspaces/novel/past", sent).json["memories"] == {"known": past.memories}
    found = house.memory.existing("novel").entries("workspace", everything=True)
    entry = next(one for one in found if one.content == past.holds)
    assert entry.metadata["imported"]["file"].startswith(past.path.name)


def test_only_the_owner_sends_a_past(house: Running) -> None:
    """A client with every grant cannot import in the owner's name, and nonsense is a typed error."""
    sent = {"name": "memory.jsonl", "data": b64encode(b"nonsense").decode()}
    assert house.granted("read", "write").post("/v1/workspaces/novel/past", sent).status == 403
    wrong = house.owner().post("/v1/workspaces/novel/past", sent)
    assert wrong.status == 422
    assert "unreadable-past" in wrong.json["type"]
    assert "memory.jsonl" in wrong.json["detail"]
    assert house.owner().post("/v1/workspaces/novel/past", {**sent, "data": "§"}).status == 422


def test_a_file_as_it_is_tells_how_far_its_import_is(house: Running, tmp_path: Path) -> None:
    """B10: also one that is too large for JSON; a dry run first, then lines of progress, then what came in."""
    path = tmp_path / "memory.jsonl"
    path.write_text(
        "".join(
            json.dumps(
                {"type": "entity", "name": f"Ship {n}", "entityType": "boat", "observations": [f"has {n} masts"]}
            )
            + "\n"
            for n in range(90)
        )
    )
    owner, url = house.owner(), "/v1/workspaces/novel/past/file?name=../memory.jsonl"
    sent = path.read_bytes()
    planned = owner.ask("POST", f"{url}&dry_run=true", sent).json
    assert (planned["format"], planned["path"], planned["dry_run"]) == ("mcp-memory", "memory.jsonl", True)
    assert house.memory.existing("novel").entries("workspace", everything=True) == []
    lines = [json.loads(line) for line in owner.ask("POST", url, sent).body.splitlines()]
    assert [line["through"] for line in lines[:-1]][:2] == [20, 40]
    assert lines[-1]["done"]["memories"]["stored"] == planned["memories"]["new"]
    again = owner.ask("POST", url, sent).body.splitlines()[-1]
    assert "stored" not in json.loads(again)["done"]["memories"]
    assert house.granted("read", "write").ask("POST", url, sent).status == 403
    assert owner.ask("POST", url, b"nonsense").status == 422
    assert owner.ask("POST", "/v1/workspaces/nowhere/past/file?name=a", sent).status == 404
