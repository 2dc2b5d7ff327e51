"""Export and import over HTTP: a download, a dry run of an upload, its acceptance; and only for the owner."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa
from lukasa.model.grant import OWNERS_ALONE, Capability
from lukasa.surfaces.http.authentication import MAX_BODY
from tests.helpers.server import Client, Running, running

EVERYTHING = tuple(c for c in Capability if c not in OWNERS_ALONE)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Running]:
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        memory.workspace("main").put("workspace", "The crane lifts forty tonnes")
        memory.workspace("other")
        with running(memory) as server:
            yield server


def upload(client: Client, data: bytes, query: str = "") -> Any:
    return client.ask("POST", f"/v1/import{query}", data, content_type="application/octet-stream")


def test_a_download_is_an_upload_elsewhere(house: Running, tmp_path: Path) -> None:
    """X1: what one server gives out, another takes in: shown first, then exactly that by its digest."""
    got = house.owner().get("/v1/workspaces/main/export")
    assert (got.status, got.headers["content-type"]) == (200, "application/gzip")
    assert got.headers["content-disposition"] == 'attachment; filename="lukasa-workspace.jsonl.gz"'
    records = [json.loads(line) for line in gzip.decompress(got.body).splitlines()]
    assert [r["content"] for r in records if r["record"] == "entries"] == ["The crane lifts forty tonnes"]
    with Lukasa.open(tmp_path / "there", embedder="none") as there, running(there) as server:
        owner = server.owner()
        planned = upload(owner, got.body)
        assert planned.status == 200
        assert (planned.json["stores"][0]["way"], planned.json["done"]) == ("whole", False)
        assert there.workspaces() == []
        assert upload(owner, got.body, "?confirm=" + "0" * 64).status == 409
        done = upload(owner, got.body, f"?confirm={planned.json['digest']}")
        assert (done.status, done.json["done"]) == (200, True)
        assert [e.content for e in there.existing("main").entries("workspace")] == ["The crane lifts forty tonnes"]
        again = server.owner().get("/v1/workspaces/main/export")
        assert gzip.decompress(again.body).splitlines()[1:] == gzip.decompress(got.body).splitlines()[1:]


def test_all_memory_is_one_download(house: Running) -> None:
    """X1: the account with all workspaces, and the account alone."""
    for query, stores in (("", 3), ("?what=account", 1)):
        got = house.owner().get(f"/v1/export{query}")
        kinds = [json.loads(line)["record"] for line in gzip.decompress(got.body).splitlines()]
        assert (got.status, kinds.count("store")) == (200, stores)
    assert house.owner().get("/v1/export?what=nothing").status == 422
    assert house.owner().get("/v1/workspaces/none/export").status == 404


@pytest.mark.parametrize("who", ["stranger", "reader", "everything"])
def test_nobody_else_takes_memory_out_or_in(house: Running, who: str) -> None:
    """X1, S2: no grant opens a file of everything, and none may bring one in; the body is not even read."""
    can = {"reader": ("read",), "everything": EVERYTHING}.get(who)
    caller = house.stranger() if can is None else house.granted(*can, name=who, workspaces=("main",))
    status = 401 if who == "stranger" else 403
    for path in ("/v1/export", "/v1/workspaces/main/export"):
        assert caller.get(path).status == status
    assert upload(caller, b"anything").status == status


def test_an_upload_may_be_large_and_must_be_an_export(house: Running) -> None:
    """X1: more than another request may send is taken, verified, and refused with the line that is wrong."""
    data = gzip.decompress(house.owner().get("/v1/export").body)
    assert upload(house.owner(), data.replace(b"forty", b"fifty")).json["type"].endswith("unreadable-export")
    answer = upload(house.owner(), b"x" * (MAX_BODY + 10))
    assert (answer.status, answer.json["type"].rpartition("/")[2]) == (422, "unreadable-export")
    assert upload(house.owner(), data, "?trust=emperor").status == 422


def test_a_change_from_the_page_needs_its_token(house: Running) -> None:
    """X1, S5: another site cannot make the owner's browser import a file."""
    owner = house.owner()
    bare = Client(owner.port, {name: value for name, value in owner.headers.items() if name != "x-csrf-token"})
    assert upload(bare, b"anything").status == 403


def test_workspaces_are_renamed_merged_and_removed(house: Running) -> None:
    """S1, B5: each with its plan first; after the removal the workspace is gone for everybody."""
    owner, at = house.owner(), "/v1/workspaces"
    assert owner.post(f"{at}/other/rename", {"name": "notes"}).json["name"] == "notes"
    shown = owner.post(f"{at}/main/merge/plan", {"into": "notes"}).json
    assert shown["stores"][0]["counts"]["entries"] == {"new": 1}
    assert owner.post(f"{at}/main/merge", {"into": "notes", "confirm": shown["digest"]}).json["done"]
    assert len(house.memory.existing("notes").entries("workspace")) == 1
    plan = owner.post(f"{at}/main/remove/plan").json
    assert owner.post(f"{at}/main/remove", {"confirm": "0" * 12}).status == 409
    assert owner.post(f"{at}/main/remove", {"confirm": plan["digest"][:12]}).json["swept"]
    assert owner.get(f"{at}/main/entries").status == 404
    assert [one["name"] for one in owner.get(at).json["workspaces"]] == ["notes"]
