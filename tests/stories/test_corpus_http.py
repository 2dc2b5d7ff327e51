"""Looking things up over HTTP and MCP: files are sent by the owner, and a grant that may read searches and reads."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from mcp.client import Client as McpClient

from lukasa import Lukasa
from tests.helpers.cli import support_spec
from tests.helpers.documents import epub, page, pdf
from tests.helpers.mcp import beside, called, lent, reached, refused, session
from tests.helpers.server import Client, Running, running

CORPUS = "/v1/workspaces/novel/corpus"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Running]:
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        memory.workspace("novel")
        with running(memory) as house:
            yield house


def sent(client: Client, name: str, data: bytes, **more: Any) -> Any:
    body = {"name": name, "data": base64.b64encode(data).decode(), **more}
    return client.post(f"{CORPUS}/documents", body)


def test_what_the_owner_sends_a_reader_looks_up(house: Running) -> None:
    """K4, H3: PDF, EPUB and HTML are sent, found with their places, read on, listed in pages and removed."""
    owner, reader = house.owner(), house.granted("read", name="reader")
    manual = pdf([["The crane lifts forty tonnes."], ["The winch is oiled weekly."]], "Crane")
    added = sent(owner, "crane.pdf", manual, standing="binding", tags=["harbour"]).json
    assert (added["counts"], added["files"][0]["passages"]) == ({"added": 1}, 2)
    sent(owner, "tale.epub", epub({"a.xhtml": page("<h1>Storm</h1><p>The keeper rowed out.</p>")}, "Tale"))
    sent(owner, "gate.html", page("<h1>Gate</h1><p>The lantern burns green.</p>", "Gate").encode())
    assert sent(owner, "gate.html", page("<h1>Gate</h1><p>It burns red.</p>", "Gate").encode()).json["counts"] == {
        "changed": 1
    }
    found = reader.post(f"{CORPUS}/search", {"query": "how often is the winch oiled?", "tags": ["harbour"]}).json
    (hit,) = found["hits"]
    assert (hit["document"], hit["page"], hit["place"], hit["standing"]) == ("crane.pdf", 2, "p. 2", "binding")
    assert (hit["origin"], hit["version"], hit["link"]["locator"]) == ("upload", 1, f"#{hit['number']}")
    text = reader.get(f"{CORPUS}/text?{urlencode({'document': 'crane.pdf', 'limit': 30})}").json
    assert (text["text"], text["next"]) == ("The crane lifts forty tonnes.", 1)
    assert reader.get(f"{CORPUS}/text?document=crane.pdf&start=1").json["next"] is None
    first = reader.get(f"{CORPUS}/documents?limit=2")
    assert [one["id"] for one in first.json["documents"]] == ["crane.pdf", "gate.html"]
    assert 'rel="next"' in first.headers["link"]
    rest = reader.get(f"{CORPUS}/documents?limit=2&after={first.json['next']}").json
    assert [one["id"] for one in rest["documents"]] == ["tale.epub"]
    about = reader.get(f"{CORPUS}/about?document=gate.html").json
    assert ([one["version"] for one in about["versions"]], about["source"]) == ([1, 2], None)
    assert owner.get(f"{CORPUS}/about?document=gate.html").json["source"]["location"] == "upload:gate.html"
    assert owner.ask("DELETE", f"{CORPUS}/documents?document=gate.html").status == 200
    assert reader.get(f"{CORPUS}/text?document=gate.html").status == 404


def test_only_the_owner_adds(house: Running, tmp_path: Path) -> None:
    """K5, H3: no grant adds, removes or follows, whatever it can, and nothing is read of the machine for it."""
    (tmp_path / "own.md").write_text("# Own\n\nNobody's business.\n")
    everything = house.granted("read", "write", "forget", "review", "conversations", name="everything")
    before = house.heads()
    for answer in (
        everything.post(f"{CORPUS}/documents", {"location": str(tmp_path / "own.md")}),
        sent(everything, "a.md", b"# A\n\nText.\n"),
        everything.ask("DELETE", f"{CORPUS}/documents?document=a.md"),
        everything.post(f"{CORPUS}/watches", {"folder": str(tmp_path)}),
        everything.get(f"{CORPUS}/watches"),
    ):
        assert answer.status == 403, answer.body
    assert house.heads() == before


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"name": "a.md", "data": "not base64!"}, 422),
        ({"name": "a.md", "data": ""}, 422),
        ({"data": "YQ=="}, 422),
        ({"name": "a.md", "data": "YQ==", "location": "/tmp"}, 422),
        ({"name": "a\nb.md", "data": "YQ=="}, 422),
        ({"location": "/nowhere/at/all"}, 404),
    ],
)
def test_a_wrong_request_says_what_to_change(house: Running, body: dict[str, Any], status: int) -> None:
    """U4: a typed problem with a fix, and nothing is added."""
    answer = house.owner().post(f"{CORPUS}/documents", body)
    assert (answer.status, bool(answer.json["fix"])) == (status, True)
    assert house.memory.existing("novel").documents() == []


def test_an_agent_looks_up_by_mcp(house: Running) -> None:
    """K4, U3: the tools search and read; adding is no tool."""
    world = house.memory.existing("novel")
    world.add_upload("keeper.md", b"# The keeper\n\nInes rows out at night.\n\n## Her boat\n\nIt is blue.\n")

    async def work(client: McpClient) -> None:
        names = await reached(client)
        assert {name for name in names if name.startswith("corpus_")} >= {"corpus_search", "corpus_read"}
        assert not {"corpus_add", "corpus_remove", "corpus_watch"} & names
        (hit, *_) = (await called(client, "corpus_search", query="what colour is the boat?"))["hits"]
        assert hit["place"] == "The keeper › Her boat, line 7"
        read = await called(client, "corpus_read", document="keeper.md", section="her boat")
        assert (read["text"], read["next"]) == ("It is blue.", None)
        assert "it has:" in await refused(client, "corpus_read", document="keeper.md", section="his horse")
        assert "not offered" in await refused(client, "corpus_add", location="/etc/passwd")

    session(lambda: beside(house.memory, lent(house.memory, "read")), work)


def test_documents_are_shared_by_tenants_and_added_by_none(house: Running) -> None:
    """S4: a tenant's grant looks up what the workspace has; a handle bound to a tenant adds nothing."""
    desk = house.memory.workspace("desk", spec=support_spec())
    desk.add_upload("faq.md", b"# FAQ\n\nRefunds take two weeks.\n")
    corpus = CORPUS.replace("novel", "desk")
    for tenant in ("acme", "evil"):
        client = house.granted("read", name=tenant, workspaces=("desk",), scope={"tenant_id": tenant})
        assert len(client.post(f"{corpus}/search", {"query": "refunds"}).json["hits"]) == 1
    bound = house.owner().post(f"{corpus}/watches", {"folder": "/tmp"}, lukasa_scope="tenant_id=acme")
    assert (bound.status, "whole workspace" in bound.json["detail"]) == (403, True)
