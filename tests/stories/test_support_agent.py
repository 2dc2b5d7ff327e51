"""A support agent anchored on (tenant_id, customer_id): two tenants on every surface that never see each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from lukasa import Lukasa, Workspace
from lukasa.langgraph import LukasaStore
from lukasa.model.errors import InvalidScope, NotFound, Refused
from lukasa.service.sessions import session
from lukasa.service.sessions.distill import Turn
from tests.helpers import sessions
from tests.helpers.cli import Shell, support_spec
from tests.helpers.making import FixedClock
from tests.helpers.mcp import beside, called, piped, refused
from tests.helpers.mcp import session as connected
from tests.helpers.server import Answer, Running, running

pytestmark = pytest.mark.usefixtures("engine")

ACME = {"tenant_id": "acme", "customer_id": "7"}
EVIL = {"tenant_id": "evil", "customer_id": "7"}  # the same customer number, of another tenant
REFUND = "The customer wants refunds in francs"
OTHER = "The customer wants refunds in pesos"
DESK = "/v1/workspaces/desk"
TALK = (("user", "We decided to ship the pump to Bergen in March."), ("assistant", "Noted."))


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder="none", clock=clock, principal="ada") as opened:
        yield opened


@pytest.fixture
def desk(memory: Lukasa) -> Workspace:
    return memory.workspace("desk", spec=support_spec())


@pytest.fixture
def house(memory: Lukasa, desk: Workspace) -> Iterator[Running]:
    with running(memory) as up:
        yield up


def contents(world: Workspace, query: str = "refunds") -> list[str]:
    return [hit.content for hit in world.read(query)]


# Library


def test_the_owner_sees_all_and_a_tenant_its_own(desk: Workspace) -> None:
    """S4: a bound handle finds its own; the owner's unbound handle opens every entry by id."""
    acme, evil = desk.at(**ACME), desk.at(**EVIL)
    ids = [acme.put("customer", REFUND).id, evil.put("customer", OTHER).id]
    assert (contents(acme), contents(evil)) == ([REFUND], [OTHER])
    assert [desk.get(id).content for id in ids] == [REFUND, OTHER]
    assert [count.scope.value("tenant_id") for count in acme.census()] == ["acme"]
    with pytest.raises(NotFound):
        desk.acting(agent="helper").get(ids[0])  # an agent's handle sees a tenant only if it is bound to it


def test_texts_without_a_tier_go_to_the_narrowest(desk: Workspace) -> None:
    """S4: where nobody names a tier, no other customer reads the text."""
    assert desk.at(**ACME).ctx.default_tier() == "customer"
    assert desk.at(tenant_id="acme").ctx.default_tier() == "tenant"


def test_conversations_belong_to_their_tenant(desk: Workspace) -> None:
    """S4, M7: another tenant's conversation, its notes and its end are not there, by ref code or by id."""
    acme, evil = desk.at(**ACME), desk.at(**EVIL)
    talk = acme.start()
    acme.write_note(talk.id, "plan", "call back")
    assert evil.conversations(archived=True) == []
    for key in (talk.id, talk.ref_code):
        for call in (evil.conversation, evil.notes, evil.end, evil.archive, evil.clear_notes, evil.purge_plan):
            with pytest.raises(NotFound) as here:
                call(key)
            with pytest.raises(NotFound) as nowhere:
                call("x" * len(key))
            assert here.value.message.replace(key, "") == nowhere.value.message.replace("x" * len(key), "")
        with pytest.raises(NotFound):
            evil.at(conversation=key)
        with pytest.raises(NotFound):
            desk.at(**EVIL, conversation=key)
    assert dict(desk.at(conversation=talk.ref_code).ctx.tenancy) == ACME
    assert acme.read_note(talk.id, "plan").value == "call back"


def test_what_is_said_in_a_conversation_is_its_tenants(memory: Lukasa) -> None:
    """S4: also where the tier of conversations does not name the tenant, another tenant opens nothing of one."""
    text = support_spec().replace(
        '["workspace", "tenant_id", "customer_id", "conversation"]', '["workspace", "conversation"]'
    )
    desk = memory.workspace("desk", spec=text)
    acme = desk.at(**ACME)
    id = acme.at(conversation=acme.start().id).put("conversation", REFUND).id
    assert [handle.get(id).content for handle in (desk, acme)] == [REFUND, REFUND]
    with pytest.raises(NotFound):
        desk.at(**EVIL).get(id)


def test_what_is_the_whole_workspaces_needs_a_whole_handle(desk: Workspace) -> None:
    """S4: the log, the numbers, the jobs, and what every tenant reads are no matter of a handle of one tenant."""
    acme = desk.at(**ACME)
    for call in (
        lambda: acme.events(),
        lambda: acme.stats(),
        lambda: acme.reports(),
        lambda: acme.survey(),
        lambda: acme.jobs(),
        lambda: acme.edit_named("VOICE", "Loud."),
        lambda: acme.save_document("price list", "A pump costs 9 euro."),
        lambda: acme.create_channel("leaks"),
    ):
        with pytest.raises(Refused, match="whole workspace"):
            call()
    assert desk.save_document("price list", "A pump costs 9 euro.").version == 1


def test_items_of_a_langgraph_store_are_apart(desk: Workspace) -> None:
    """S4: two tenants use one namespace and one key, and neither reads, lists or deletes the other's value."""
    one, two = LukasaStore(desk.at(**ACME)), LukasaStore(desk.at(**EVIL))
    one.put(("users",), "7", {"word": "lantern"})
    two.put(("users",), "7", {"word": "ferry"})
    assert [store.get(("users",), "7").value["word"] for store in (one, two)] == ["lantern", "ferry"]  # type: ignore[union-attr]
    assert [(i.namespace, i.value["word"]) for i in one.search(("users",))] == [(("users",), "lantern")]
    assert one.list_namespaces() == [("users",)]
    two.delete(("users",), "7")
    assert one.get(("users",), "7") is not None
    assert two.get(("users",), "7") is None


# Observation


def observed(memory: Lukasa, world: Workspace, path: Path, **how: Any) -> None:
    world.observe(path, **how)
    memory.worker(kinds=("observe",)).drain()


def test_observation_stays_with_the_customer(memory: Lukasa, desk: Workspace, tmp_path: Path) -> None:
    """S4, O1: a session observed for one customer is found by that customer alone, also by its words."""
    acme, evil = desk.at(**ACME), desk.at(**EVIL)
    file = sessions.claude(tmp_path / "s.jsonl", TALK, noise=False)
    observed(memory, acme, file)
    assert [entry.content for entry in acme.entries("customer")] == [TALK[0][1]]
    (kept,) = acme.transcripts()
    for other in (evil, desk.at(tenant_id="acme", customer_id="8")):
        assert contents(other, "where was the pump shipped?") == []
        assert (other.transcripts(), other.search_transcripts("pump")) == ([], [])
        for key in (kept.id, kept.key, "claude-code:s-1"):
            with pytest.raises(NotFound):
                other.transcript(key)
    assert len(acme.search_transcripts("pump Bergen")) == 1
    assert acme.transcript("claude-code:s-1") == kept
    observed(memory, evil, file)  # the same session, handed in by another tenant, is kept again and apart
    assert [entry.content for entry in evil.entries("customer")] == [TALK[0][1]]
    assert [one.keys for one in desk.transcripts()] == [EVIL, ACME]


def test_a_customer_number_that_looks_like_a_card_stays_what_it_is(
    memory: Lukasa, desk: Workspace, tmp_path: Path
) -> None:
    """S4, O1: a job keeps the keys of whoever queued it to the letter, though payloads hold no secrets."""
    card = desk.at(tenant_id="acme", customer_id="4111111111111111")
    observed(memory, card, sessions.claude(tmp_path / "s.jsonl", TALK, noise=False))
    assert [entry.content for entry in card.entries("customer")] == [TALK[0][1]]


def test_observation_goes_into_the_tier_it_is_told(memory: Lukasa, desk: Workspace, tmp_path: Path) -> None:
    """O1: with a tier, the facts go there; one that is not there is refused before anything is kept."""
    acme = desk.at(**ACME)
    file = sessions.claude(tmp_path / "s.jsonl", TALK, noise=False)
    with pytest.raises(InvalidScope):
        desk.at(tenant_id="acme").observe(file, tier="customer")
    assert desk.transcripts() == []
    observed(memory, acme, file, tier="tenant")
    assert [entry.content for entry in acme.entries("tenant")] == [TALK[0][1]]
    assert acme.entries("customer") == []


def test_a_finished_session_leaves_its_facts_with_the_customer(desk: Workspace) -> None:
    """S4, L1: what a conversation leaves goes to the customer whose it was, also if another handle ends it."""
    here = session.begin(desk.at(**ACME).acting(agent="helper"))
    session.record(here, Turn("user", TALK[0][1]))
    (done,) = session.resume_pending(desk)
    assert [written.entry.scope.value("customer_id") for written in done.facts if written.entry] == ["7"]
    assert contents(desk.at(**EVIL), "Bergen") == []


# Command line


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    opened = Shell(tmp_path / "cli", {"LUKASA_EMBEDDER": "none", "LUKASA_CHAT": "none", "LUKASA_WORKSPACE": "desk"})
    opened.run("workspace", "create", "desk", "--spec", "-", input=support_spec())
    return opened


def flags(keys: dict[str, str]) -> list[str]:
    return [word for key, value in keys.items() for word in ("--scope", f"{key}={value}")]


def test_the_command_line_keeps_tenants_apart(shell: Shell, tmp_path: Path) -> None:
    """S4: put, list, read, show, forget and observe, by options and by the environment."""
    id = shell.put(REFUND, *flags(ACME))
    assert [entry["content"] for entry in shell.json("list", *flags(ACME))["entries"]] == [REFUND]
    assert shell.json("list", *flags(EVIL))["entries"] == []
    assert shell.json("read", "refunds", *flags(EVIL))["hits"] == []
    for command in ("get", "forget", "undo", "restore"):
        error = shell.fails(command, id, *flags(EVIL), code=1)
        missing = shell.fails(command, id[:-4] + "0000", *flags(EVIL), code=1)
        assert error["message"].replace(id, "") == missing["message"].replace(id[:-4] + "0000", "")
    file = str(sessions.claude(tmp_path / "s.jsonl", TALK, noise=False))
    shell.env["LUKASA_SCOPE"] = "tenant_id=acme customer_id=7"
    assert shell.json("observe", file)["allowed"] == 1
    assert TALK[0][1] in [entry["content"] for entry in shell.json("list")["entries"]]
    assert shell.json("observe", file, "--tier", "tenant")["messages"] == 0  # it is this customer's already
    del shell.env["LUKASA_SCOPE"]
    assert shell.json("list", *flags(EVIL))["entries"] == []
    assert shell.json("transcripts", "list", *flags(EVIL))["transcripts"] == []
    shell.fails("observe", file, code=2)  # nobody says whose it is


def test_hooks_work_for_the_customer_of_their_scope(shell: Shell, tmp_path: Path) -> None:
    """S4, B8: a harness that is started for a customer is told of that customer alone, and leaves its facts there."""
    shell.put(REFUND, *flags(ACME))
    shell.put(OTHER, *flags(EVIL))
    file = str(sessions.claude(tmp_path / "s.jsonl", TALK, "s-1", noise=False))
    for keys, known, unknown in ((ACME, "francs", "pesos"), (EVIL, "pesos", "francs")):
        shell.env["LUKASA_SCOPE"] = " ".join(f"{key}={value}" for key, value in keys.items())
        event = {"session_id": "s-1", "cwd": str(tmp_path), "hook_event_name": "SessionStart", "source": "startup"}
        heard = shell.run("hook", "session-start", "--format", "text", input=json.dumps(event))
        assert known in heard
        assert unknown not in heard
    shell.env["LUKASA_SCOPE"] = "tenant_id=acme customer_id=7"
    event = {"session_id": "s-1", "cwd": str(tmp_path), "hook_event_name": "SessionEnd", "transcript_path": file}
    shell.run("hook", "session-end", input=json.dumps(event))
    del shell.env["LUKASA_SCOPE"]
    shell.run("worker", "--once")
    told = [entry["content"] for entry in shell.json("list", *flags(ACME))["entries"]]
    assert TALK[0][1] in told
    assert all(TALK[0][1] != entry["content"] for entry in shell.json("list", *flags(EVIL))["entries"])


# HTTP


def scope(keys: dict[str, str]) -> dict[str, str]:
    return {"lukasa_scope": "&".join(f"{key}={value}" for key, value in keys.items())}


def texts(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.body
    return [entry["content"] for entry in answer.json["entries"]]


def test_a_grant_of_a_tenant_reaches_that_tenant(house: Running, desk: Workspace) -> None:
    """S4, X4: a grant binds a key; a request narrows to a customer, and changes nothing."""
    ids = {t: desk.at(tenant_id=t, customer_id="7").put("customer", f"{t} likes tea").id for t in ("acme", "evil")}
    can = ("read", "write", "forget", "conversations")
    client = house.granted(*can, workspaces=("desk",), scope={"tenant_id": "acme"})
    assert texts(client.get(f"{DESK}/entries", **scope({"customer_id": "7"}))) == ["acme likes tea"]
    assert client.get(f"{DESK}/entries/{ids['acme']}").status == 200
    for method, place, body in (
        ("GET", "", None),
        ("GET", "/history", None),
        ("GET", "/standing", None),
        ("GET", "/ledger", None),
        ("POST", "/undo", {}),
        ("POST", "/restore", {}),
        ("POST", "/why", {"query": "tea"}),
        ("DELETE", "", None),
    ):
        here = client.ask(method, f"{DESK}/entries/{ids['evil']}{place}", body)
        nowhere = client.ask(method, f"{DESK}/entries/{ids['evil'][:-4]}0000{place}", body)
        assert (here.status, nowhere.status) == (404, 404)
        assert here.json["detail"].replace(ids["evil"], "") == nowhere.json["detail"].replace(
            ids["evil"][:-4] + "0000", ""
        )
    for wider in (EVIL, {"tenant_id": "evil"}, {"tenant_id": "ACME"}):
        assert client.get(f"{DESK}/entries", **scope(wider)).status == 404
    narrow = client.get(f"{DESK}/entries/{ids['acme']}", **scope({"customer_id": "8"}))
    assert narrow.status == 404
    put = client.post(f"{DESK}/entries", {"content": "acme likes cake"}, **scope({"customer_id": "7"}))
    assert put.json["entry"]["scope"] == {"tier": "customer", "workspace": desk.id, **ACME}


def test_a_grant_without_a_tenant_reaches_none(house: Running, desk: Workspace) -> None:
    """S4: a grant of the workspace that binds no tenant opens no tenant's entry, by id, by list or by asking for it."""
    id = desk.at(**ACME).put("customer", REFUND).id
    client = house.granted("read", workspaces=("desk",))
    assert client.get(f"{DESK}/entries/{id}").status == 404
    assert client.get(f"{DESK}/entries", **scope(ACME)).status == 404
    owner = house.owner()
    assert owner.get(f"{DESK}/entries/{id}").status == 200
    assert texts(owner.get(f"{DESK}/entries", **scope(ACME))) == [REFUND]


@pytest.mark.parametrize("header", ["acme", "tenant_id", "=x", "tenant_id=a&tenant_id=b", "tenant_id=", "colour=red"])
def test_a_wrong_scope_is_refused(house: Running, header: str) -> None:
    """S4: a header that binds nothing, twice, or an unknown key is refused, and says what to send."""
    answer = house.owner().get(f"{DESK}/entries", lukasa_scope=header)
    assert answer.status == 422
    assert answer.json["fix"]


def test_an_idempotency_key_counts_for_one_scope(house: Running, desk: Workspace) -> None:
    """S4: the stored answer of one customer is no answer for another."""
    client = house.granted("read", "write", workspaces=("desk",), scope={"tenant_id": "acme"})
    said = [
        client.post(f"{DESK}/entries", {"content": REFUND}, idempotency_key="k", **scope({"customer_id": customer}))
        for customer in ("7", "7", "8")
    ]
    assert [answer.status for answer in said] == [201, 201, 422]
    assert said[0].json["id"] == said[1].json["id"]


def test_a_grant_can_only_bind_what_is_a_tenant(memory: Lukasa, desk: Workspace) -> None:
    """S4: an unknown key, and a customer without its tenant, make no grant."""
    for keys in ({"colour": "red"}, {"customer_id": "7"}, {"workspace": "x"}, {"conversation": "x"}):
        with pytest.raises(InvalidScope):
            memory.access.create("client", workspaces=["desk"], scope=keys)
    memory.workspace("novel")
    with pytest.raises(InvalidScope):
        memory.access.create("client", workspaces=["novel"], scope={"tenant_id": "acme"})
    assert memory.access.grants() == []


def test_a_grant_says_what_it_binds(shell: Shell) -> None:
    """S4: `grant create --scope` binds, and `grant show` says so; without --can a grant only reads."""
    made = shell.json("grant", "create", "client", *flags(ACME))
    assert made["grant"]["reach"]["scope"] == ACME
    assert made["grant"]["capabilities"] == ["read"]
    assert "tenant_id=acme, customer_id=7" in shell.run("grant", "show", "client")


# MCP


def test_tools_work_under_a_scope(memory: Lukasa, desk: Workspace) -> None:
    """S4, U3: a client names the customer with each call, and never leaves its tenant."""
    foreign = desk.at(**EVIL).put("customer", OTHER).id
    can = ("read", "write", "forget")
    given = memory.access.lend(
        "helper", workspaces=["desk"], can=can, scope={"tenant_id": "acme"}, surface="mcp", transport="stdio"
    )

    async def work(client: Client) -> None:
        seven = {"scope": {"customer_id": "7"}}
        await called(client, "memory_put", content=REFUND, **seven)
        found = await called(client, "memory_read", query="refunds", **seven)
        assert [REFUND in hit["entry"]["content"] for hit in found["hits"]] == [True]
        assert (await called(client, "memory_read", query="refunds", scope={"customer_id": "8"}))["hits"] == []
        for tool in ("memory_get", "memory_forget", "memory_history", "memory_undo"):
            assert "no entry" in await refused(client, tool, id=foreign)
        for scope in (EVIL, {"tenant_id": "evil"}):
            assert "no tenant_id 'evil'" in await refused(client, "memory_read", query="refunds", scope=scope)
        assert "scope is not" in await refused(client, "memory_read", query="refunds", scope={"customer_id": 7})

    connected(lambda: beside(memory, given, "desk"), work)
    assert contents(desk.at(**ACME)) == [REFUND]
    assert contents(desk.at(**EVIL)) == [OTHER]


@pytest.mark.parametrize("role", ["agent", "owner"])
def test_a_server_for_one_customer(shell: Shell, role: str) -> None:
    """S4, U3: `lukasa mcp --scope` serves one customer, whoever the client acts as."""
    shell.put(OTHER, *flags(EVIL))

    async def work(client: Client) -> None:
        await called(client, "memory_put", content=REFUND)
        found = await called(client, "memory_read", query="refunds")
        assert [REFUND in hit["entry"]["content"] for hit in found["hits"]] == [True]
        assert "evil" in await refused(client, "memory_read", query="refunds", scope={"tenant_id": "evil"})

    connected(lambda: piped(shell, *flags(ACME), "--as", role), work)
    assert [entry["content"] for entry in shell.json("list", *flags(ACME))["entries"]] == [REFUND]
