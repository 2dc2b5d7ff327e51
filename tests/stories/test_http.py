"""The HTTP API at work: versions, keys, pages of lists, sessions, the stream of events, many callers at once."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from lukasa import Lukasa
from lukasa.model.answer import Answer as Kept
from lukasa.model.job import JobDraft
from lukasa.ports import Vector
from lukasa.service.workspace import Workspace
from lukasa.storage.operations import Enqueue, SaveAnswer
from lukasa.surfaces.http.serving import working
from lukasa.surfaces.http.verb_routes import key_of
from tests.fakes import FakeEmbedder
from tests.helpers.making import FixedClock
from tests.helpers.server import PATIENCE, Client, Running, running

AT = "/v1/workspaces/novel"
ENTRIES = f"{AT}/entries"


@pytest.fixture(scope="module")
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, clock: FixedClock) -> Iterator[Running]:
    with Lukasa.open(tmp_path_factory.mktemp("http"), embedder="none", clock=clock) as memory:
        memory.workspace("novel")
        with running(memory) as house:
            yield house


@pytest.fixture(scope="module")
def client(house: Running) -> Client:
    return house.granted("read", "write", "forget", "conversations", "events", "jobs", "stats", "review")


# Versions


def test_a_lost_update_is_refused(client: Client) -> None:
    """U4, T03: of two who read the same version, the second is told, and what the first wrote stands."""
    made = client.post(ENTRIES, {"content": "The ferry leaves at nine"})
    path = f"{ENTRIES}/{made.json['id']}"
    assert made.headers["etag"] == client.get(path).headers["etag"] == '"1"'
    first = client.ask("PATCH", path, {"content": "The ferry leaves at ten"}, if_match='"1"')
    assert (first.status, first.headers["etag"]) == (200, '"2"')
    second = client.ask("PATCH", path, {"content": "The ferry leaves at noon"}, if_match='"1"')
    assert (second.status, second.json["version"], second.headers["etag"]) == (412, 2, '"2"')
    assert client.get(path).json["content"] == "The ferry leaves at ten"
    assert client.ask("PATCH", path, {"importance": 0.9}, if_match=second.headers["etag"]).status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 428), ({"if_match": "1"}, 422), ({"if_match": 'W/"1"'}, 422), ({"if_none_match": '"1"'}, 422)],
)
def test_a_change_says_what_it_changes(client: Client, headers: dict[str, str], status: int) -> None:
    """U4: no version, or something that is none, changes nothing."""
    path = f"{ENTRIES}/{client.post(ENTRIES, {'content': 'The mill is by the river'}).json['id']}"
    assert client.ask("PATCH", path, {"importance": 0.1}, **headers).status == status
    assert client.get(path).json["importance"] == 0.5


def test_a_page_is_written_by_version(house: Running) -> None:
    """U4, M8: the owner edits the version they read; a new page must be new."""
    owner = house.owner()
    page = f"{AT}/named/RIVERS"
    assert owner.ask("PUT", page, {"body": "The Thames."}).status == 428
    assert owner.ask("PUT", page, {"body": "The Thames."}, if_none_match="*").headers["etag"] == '"1"'
    assert owner.ask("PUT", page, {"body": "The Seine."}, if_none_match="*").status == 412
    assert owner.ask("PUT", page, {"body": "The Seine."}, if_match='"1"').json["version"] == 2
    assert owner.ask("PUT", page, {"body": "The Rhine."}, if_match='"1"').json["version"] == 2
    assert owner.get(page).json["body"] == "The Seine."


# Keys


def test_a_request_sent_twice_is_done_once(house: Running, client: Client) -> None:
    """U4: the same key and body get the same answer, and nothing happens again; another body is an error."""
    body = {"content": "The baker opens at six", "tags": ["bread"]}
    first = client.post(ENTRIES, body, idempotency_key="k-1")
    before = house.heads()
    again = client.post(ENTRIES, body, idempotency_key="k-1")
    assert (first.status, again.status, again.body) == (201, 201, first.body)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["etag"] == first.headers["etag"]
    other = client.post(ENTRIES, {"content": "The baker opens at seven"}, idempotency_key="k-1")
    assert (other.status, other.json["type"]) == (422, "key-reused")
    assert house.heads() == before
    assert client.post(ENTRIES, body, idempotency_key="k-2").json["outcome"] == "merged"


def test_a_key_belongs_to_whoever_sends_it(house: Running, client: Client) -> None:
    """U4, X4: another client's key of the same name is another key, and so is one of another path."""
    mine = client.post(ENTRIES, {"content": "The tanner lives upstream"}, idempotency_key="ours").json
    theirs = house.granted(name="other").post(ENTRIES, {"content": "The tanner has moved"}, idempotency_key="ours").json
    assert mine["id"] != theirs["id"]
    assert client.post(f"{ENTRIES}/{mine['id']}/undo", {}, idempotency_key="ours").status == 200


def test_what_failed_may_be_tried_again_under_its_key(client: Client) -> None:
    """U4: a refusal gives the key back, since nothing came of the request."""
    body = {"content": "The smith is called Odo", "supersedes": "00000000-0000-7000-8000-000000000000"}
    for _ in range(2):
        assert client.post(ENTRIES, body, idempotency_key="failing").status == 404
    assert client.post(ENTRIES, {"content": "The smith is called Odo"}, idempotency_key="failing").status == 201


def test_a_key_in_use_is_said_and_a_dead_one_taken_over(house: Running, client: Client, clock: FixedClock) -> None:
    """U4: while one request is under way its twin is asked to wait; if its process died, the twin goes on."""
    ctx = house.memory.existing("novel").ctx
    token = client.headers["authorization"].removeprefix("Bearer ")
    given = house.memory.access.admit(token, surface="http", transport="http")
    body = {"content": "The miller owes the crown two sacks"}
    asked = client.post(ENTRIES, body, idempotency_key="probe")
    digest = ctx.local.answer(key_of(given, "POST", ENTRIES, "probe"))
    assert digest is not None
    taken = Kept(key_of(given, "POST", ENTRIES, "stuck"), digest.request, clock.time)
    ctx.apply(ctx.local, SaveAnswer(taken))
    waits = client.post(ENTRIES, body, idempotency_key="stuck")
    assert (waits.status, waits.json["type"]) == (409, "in-progress")
    clock.time += timedelta(minutes=2)
    assert client.post(ENTRIES, body, idempotency_key="stuck").json["id"] == asked.json["id"]


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb"])
def test_a_key_is_short_and_printable(client: Client, key: str) -> None:
    """U4: what is kept for a key is found by it; it is not a place to keep things."""
    assert client.post(ENTRIES, {"content": "The well is dry"}, idempotency_key=key).status == 422


def test_a_grant_is_made_without_a_key(house: Running) -> None:
    """U4, T61: its answer holds a token, which is kept nowhere, so that it cannot be repeated."""
    owner = house.owner()
    body = {"name": "once", "workspaces": ["novel"], "can": ["read"]}
    assert owner.post("/v1/grants", body, idempotency_key="k").status == 422
    made = owner.post("/v1/grants", body)
    assert house.holder(made.json["token"]).get(ENTRIES).status == 200
    assert owner.ask("DELETE", f"/v1/grants/{made.json['grant']['id']}").json["revoked_at"] is not None
    assert house.holder(made.json["token"]).get(ENTRIES).status == 401


def test_answers_go_after_a_day(house: Running, client: Client, clock: FixedClock) -> None:
    """U4: what was answered yesterday is kept for nobody: it goes with the next tidying."""
    ctx = house.memory.existing("novel").ctx
    client.post(ENTRIES, {"content": "The ropewalk burned"}, idempotency_key="yesterday")
    token = client.headers["authorization"].removeprefix("Bearer ")
    key = key_of(house.memory.access.admit(token, surface="http", transport="http"), "POST", ENTRIES, "yesterday")
    assert ctx.local.answer(key) is not None
    clock.time += timedelta(days=1, seconds=1)
    ctx.apply(ctx.local, Enqueue(JobDraft("tidy", "tidy:test")))
    house.memory.worker(chat="none").drain()
    assert ctx.local.answer(key) is None


# Input


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b'{"content": "x", "content": "y"}', 400),
        (b'{"content": NaN}', 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b"[]", 422),
        (b'"text"', 422),
        (b"{}", 422),
        (b'{"content": 5}', 422),
        (b'{"content": ""}', 422),
        (b'{"content": "\\ud800"}', 422),
        (b'{"content": "x", "importance": 7}', 422),
        (b'{"content": "x", "tier": "attic"}', 422),
        (b'{"content": "x", "kind": "gossip"}', 422),
        (b'{"content": "x", "colour": "red"}', 422),
    ],
)
def test_a_wrong_body_is_explained(house: Running, client: Client, body: bytes, status: int) -> None:
    """U4: a problem that says what to change, without what was sent; nothing is written."""
    before = house.heads()
    answer = client.ask("POST", ENTRIES, body)
    assert answer.status == status, answer.body
    assert answer.json["fix"]
    assert house.heads() == before


def test_lists_come_in_pages(client: Client) -> None:
    """U4: limit and after; the next page is in the answer and in the Link header, and the last has none."""
    for number in range(5):
        client.post(f"{ENTRIES}", {"content": f"Ship {number} of the fleet carries salt", "tags": ["fleet"]})
    seen: list[str] = []
    path = f"{ENTRIES}?limit=2&kind=semantic"
    while path:
        page = client.get(path)
        assert page.status == 200
        seen += [entry["id"] for entry in page.json["entries"]]
        link = page.headers.get("link", "")
        assert ("after" in link) is (page.json["next"] is not None)
        path = link.partition(">")[0].removeprefix("<")
    whole = client.get(f"{ENTRIES}?limit=500&kind=semantic").json["entries"]
    assert seen == [entry["id"] for entry in whole]
    assert len(seen) == len(set(seen)) >= 5
    found = client.get(f"{ENTRIES}?q=salt+ships&limit=3").json["entries"]
    assert len(found) == 3
    assert client.get(f"{ENTRIES}?limit=2&limit=3").status == 422


def test_events_come_in_pages_and_by_action(client: Client) -> None:
    """U4, X2: the log in order, without gaps between pages."""
    first = client.get(f"{AT}/events?limit=3").json
    then = client.get(f"{AT}/events?limit=3&after={first['next']}").json
    assert [event["seq"] for event in (*first["events"], *then["events"])] == [1, 2, 3, 4, 5, 6]
    only = client.get(f"{AT}/events?action=channel.created").json["events"]
    assert {event["action"] for event in only} == {"channel.created"}


def test_a_conversation_over_http(client: Client) -> None:
    """U4, M7: begin, note, remember, end: what lived only there is gone with it."""
    talk = client.post(f"{AT}/conversations", {}).json["ref_code"]
    assert client.ask("PUT", f"{AT}/conversations/{talk}/notes/sum", {"value": 41}).json["value"] == 41
    assert client.get(f"{AT}/conversations/{talk}/notes/sum").json["value"] == 41
    said = {"content": "We are counting sacks", "tier": "conversation", "conversation": talk}
    assert client.post(ENTRIES, said).json["outcome"] == "stored"
    read = client.post(f"{AT}/read", {"query": "what are we counting?", "conversation": talk}).json
    assert [hit["entry"]["content"] for hit in read["hits"]][:1] == ["We are counting sacks"]
    assert client.post(f"{AT}/conversations/{talk}/end").json["dropped"] == 1
    assert client.post(f"{AT}/conversations/{talk}/end").status == 200
    assert client.post(ENTRIES, said).status == 409


def test_answers_are_as_the_document_says(house: Running, client: Client) -> None:
    """U4: what a client gets validates against the schema that the server published."""
    document = client.get("/openapi.json").json
    client.post(ENTRIES, {"content": "The abbot keeps bees", "kind": "semantic", "tags": ["bees"]})
    asked = {
        "memory_read": client.post(f"{AT}/read", {"query": "who keeps bees?"}),
        "memory_list": client.get(f"{ENTRIES}?limit=3"),
        "memory_context": client.post(f"{AT}/context", {"query": "bees"}),
        "event_list": client.get(f"{AT}/events?limit=5"),
        "workspace_stats": client.get(f"{AT}/stats"),
        "review_list": client.get(f"{AT}/review"),
        "channel_list": client.get(f"{AT}/channels"),
        "named_list": client.get(f"{AT}/named"),
        "workspace_overview": house.owner().get(f"{AT}/overview"),
    }
    schemas = {
        operation["operationId"]: operation["responses"]["200"]["content"]["application/json"]["schema"]
        for path in document["paths"].values()
        for operation in path.values()
        if "200" in operation["responses"]
    }
    for name, answer in asked.items():
        assert answer.status == 200, (name, answer.body)
        Draft202012Validator({**schemas[name], "components": document["components"]}).validate(answer.json)
    problem = {"$ref": "#/components/schemas/Problem", "components": document["components"]}
    Draft202012Validator(problem).validate(client.get(f"{ENTRIES}/x").json)


# The page's session


def test_a_code_opens_a_session_once(house: Running) -> None:
    """T02, T61: a used, wrong or old code opens nothing, and the cookie cannot be read or sent by other pages."""
    code = house.server.link().partition("#enter=")[2]
    entered = house.stranger().post("/session", {"code": code})
    assert entered.status == 201
    cookie = entered.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    for spent in (code, "", "x" * 32):
        assert house.stranger().post("/session", {"code": spent}).status == 401
    assert code.encode() not in entered.body


def test_a_code_does_not_last(house: Running, clock: FixedClock) -> None:
    """T61: a link that lay about for an hour opens nothing."""
    code = house.server.link().partition("#enter=")[2]
    clock.time += timedelta(hours=1)
    assert house.stranger().post("/session", {"code": code}).status == 401


def test_a_change_from_the_page_needs_its_token(house: Running) -> None:
    """T02: the cookie alone reads; without the page's own token, or with another's, it changes nothing."""
    owner, other = house.owner(), house.owner()
    before = house.heads()
    alone = Client(house.port, {"cookie": owner.headers["cookie"]})
    assert alone.get(ENTRIES).status == 200
    wrong = Client(house.port, {**alone.headers, "x-csrf-token": other.headers["x-csrf-token"]})
    for caller in (alone, wrong):
        assert caller.post(ENTRIES, {"content": "The page said so"}).status == 403
        assert caller.ask("DELETE", "/session").status == 403
    assert house.heads() == before
    assert alone.get("/session").json["csrf"] == owner.headers["x-csrf-token"]


def test_a_session_ends(house: Running, clock: FixedClock) -> None:
    """T61: when it is ended, and by itself; other sessions go on."""
    owner, other = house.owner(), house.owner()
    assert owner.ask("DELETE", "/session").status == 204
    assert owner.get(ENTRIES).status == 401
    assert other.get(ENTRIES).status == 200
    clock.time += timedelta(days=7)
    assert other.get(ENTRIES).status == 401


def test_events_are_told_as_they_happen(house: Running) -> None:
    """U4, U5: the owner's page follows the log, from where it left off; ending the session ends the stream."""
    owner = house.owner()
    head = house.heads()["novel"][0]
    lines = [f"GET {AT}/events/stream HTTP/1.1", f"Host: 127.0.0.1:{house.port}", f"Cookie: {owner.headers['cookie']}"]
    with socket.create_connection(("127.0.0.1", house.port), timeout=PATIENCE) as wire:
        wire.sendall("\r\n".join([*lines, f"Last-Event-ID: {head - 1}", "Connection: close", "", ""]).encode())
        reply = wire.makefile("rb")
        made = owner.post(ENTRIES, {"content": "The bell rings at five"}).json
        told: list[dict[str, object]] = []
        while len(told) < 2:
            line = reply.readline()
            if line.startswith(b"data: "):
                told.append(json.loads(line.removeprefix(b"data: ")))
        assert [event["seq"] for event in told] == [head, head + 1]
        assert (told[1]["subject"], told[1]["action"]) == (made["id"], "entry.put")
        owner.ask("DELETE", "/session")
        assert reply.read().endswith(b"0\r\n\r\n")


# Many at once


def test_fifty_writes_at_once_are_fifty_entries(house: Running, client: Client) -> None:
    """U4, T03: nothing is lost and nothing is stored twice."""
    with ThreadPoolExecutor(50) as pool:
        made = list(pool.map(lambda n: client.post(ENTRIES, {"content": f"Barrel {n} holds oil"}), range(50)))
    assert {answer.status for answer in made} == {201}
    ids = {answer.json["id"] for answer in made}
    assert len(ids) == 50
    world: Workspace = house.memory.existing("novel")
    assert {world.get(id).content for id in ids} == {f"Barrel {n} holds oil" for n in range(50)}


def test_one_key_sent_by_many_at_once_is_one_write(house: Running, client: Client) -> None:
    """U4: of twins that arrive together one is done; the others get its answer, or are asked to wait."""
    before = house.heads()["novel"][0]
    with ThreadPoolExecutor(16) as pool:
        body = {"content": "The toll is two pence"}
        made = list(pool.map(lambda n: client.post(ENTRIES, body, idempotency_key="many"), range(16)))
    assert {answer.status for answer in made} <= {201, 409}
    assert len({answer.body for answer in made if answer.status == 201}) == 1
    assert house.heads()["novel"][0] == before + 1


def test_five_hundred_requests_get_their_own_answers(house: Running) -> None:
    """U4, T08: 32 at a time, of eight clients with a workspace each; no error, and nobody's answer but one's own."""
    clients = {}
    for n in range(8):
        house.memory.workspace(f"town{n}").put("workspace", f"The keeper of the gate is canary{n}")
        clients[n] = house.granted(workspaces=(f"town{n}",), name=f"guard{n}")

    def ask(number: int) -> tuple[int, int, bytes]:
        n = number % 8
        answer = clients[n].post(f"/v1/workspaces/town{n}/read", {"query": "who is the keeper of the gate?"})
        return n, answer.status, answer.body

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(ask, range(500)))
    for n, status, body in answers:
        assert status == 200
        assert [m for m in range(8) if f"canary{m}".encode() in body] == [n]


class SlowEmbedder(FakeEmbedder):
    """A model that takes as long to load as the test wants it to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.loaded = threading.Event(), threading.Event()

    def embed_query(self, text: str) -> Vector:
        self.asked.set()
        assert self.loaded.wait(PATIENCE)
        return super().embed_query(text)


def test_it_answers_before_the_model_is_loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """U4: health, the page and a list do not wait for the embedding model, which is loaded beside them."""
    embedder = SlowEmbedder()
    with Lukasa.open(tmp_path_factory.mktemp("warm"), embedder=embedder) as memory:
        memory.workspace("novel")
        said: list[str] = []
        with running(memory) as house, working(memory, house.server, said.append):
            assert embedder.asked.wait(PATIENCE)
            assert house.stranger().get("/health").json["status"] == "ok"
            assert house.stranger().get("/").status == 200
            assert house.granted().get(ENTRIES).status == 200
            embedder.loaded.set()
        assert said == []


def test_an_empty_workspace_was_not_written(tmp_path: Path) -> None:
    """U4: the page opens on the workspace that was written last, and not on an empty one, as `main` of a new server."""
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        memory.workspace("ferries").put("workspace", "Deploys go through harbour-2")
        memory.workspace("main")
        with running(memory) as house:
            listed = house.owner().get("/v1/workspaces?times=true").json["workspaces"]
        assert {one["name"]: one["written_at"] is not None for one in listed} == {"ferries": True, "main": False}
