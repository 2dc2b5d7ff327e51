"""Who reads a tier, as the spec's `[visibility]` declares it: other clients, agents, and subagents with their tools."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.errors import NotFound, Refused
from lukasa.ports import ToolCall
from lukasa.providers.chat.offline import OfflineChat
from lukasa.spec import preset_text
from lukasa.surfaces.api.toolbox import Toolbox
from lukasa.surfaces.langgraph.graph import Agent, Making
from lukasa.surfaces.langgraph.toolkit import memory_tools
from tests.helpers import sessions
from tests.helpers.talk import agent

WORD = "The word of the harbour is swordfish"


def declared(memory: Lukasa, tier: str, **readers: str) -> Workspace:
    """A workspace of the default preset in which one tier is for these readers."""
    text = preset_text("default")
    for key, value in readers.items():
        text, changed = re.subn(rf'(\[visibility\.{tier}\][^[]*?{key} = )"\w+"', rf'\1"{value}"', text, count=1)
        assert changed == 1
    return memory.workspace("novel", spec=text)


def client(memory: Lukasa, **how: Any) -> Workspace:
    issued = memory.access.create("claude", workspaces=["novel"], can=["read", "write", "forget"], **how)
    return memory.access.enter(memory.access.admit(issued.token, surface="http", transport="http"), "novel")


# Other clients


def test_a_closed_tier_is_not_there_for_grants(memory: Lukasa) -> None:
    """P3, X4: by search, list, context, id and write; a grant that names the tier opens it."""
    world = declared(memory, "workspace", external="closed")
    id = world.put("workspace", WORD).id
    shut = client(memory)
    assert [hit.id for hit in shut.read("swordfish")] == []
    assert "swordfish" not in str(shut.context("swordfish"))
    with pytest.raises(NotFound):
        shut.get(id)
    for call in (lambda: shut.entries("workspace"), lambda: shut.put("workspace", "A leak")):
        with pytest.raises(Refused):
            call()
    assert "VOICE" not in [page.name for page in shut.named()]
    assert client(memory, tiers=["workspace"]).get(id).content == WORD


def test_a_granted_tier_is_open_to_grants(memory: Lukasa) -> None:
    """P3, X4: where the account is declared as granted, a grant reads it without naming it."""
    world = declared(memory, "account", external="granted")
    id = world.put("account", WORD).id
    opened = client(memory)
    assert [hit.id for hit in opened.read("swordfish")] == [id]
    assert opened.get(id).id == id


@pytest.mark.parametrize("external", ["participants", "granted", "closed"])
def test_who_reads_conversations(memory: Lukasa, external: str) -> None:
    """P3, X4: for participants, a grant reads what it began or lists; granted, it reads all; closed, none."""
    world = declared(memory, "conversation", external=external)
    talk = world.start()
    id = world.at(conversation=talk.id).put("conversation", WORD).id
    guest = client(memory)
    mine = guest.start()
    if external == "granted":
        assert guest.get(id).content == WORD
        assert [hit.id for hit in guest.at(conversation=talk.ref_code).read("swordfish")] == [id]
    else:
        with pytest.raises(NotFound):
            guest.get(id)
        with pytest.raises(NotFound):
            guest.at(conversation=talk.ref_code)
    here = guest.at(conversation=mine.id)
    if external == "closed":
        with pytest.raises(Refused):
            here.put("conversation", "A word of mine")
    else:
        assert here.get(here.put("conversation", "A word of mine").id).content == "A word of mine"


# Agents


def test_agents_share_what_is_shared(memory: Lukasa) -> None:
    """M4: in a shared tier, two agents and the owner find what each of them wrote."""
    world = declared(memory, "workspace", agents="shared")
    id = world.acting(agent="one").put("workspace", WORD).id
    for reader in (world, world.acting(agent="one"), world.acting(agent="two")):
        assert [hit.id for hit in reader.read("swordfish")] == [id]
        assert reader.get(id).content == WORD


def test_entries_are_their_agents_alone(memory: Lukasa) -> None:
    """P3, M4: where the owner of an entry alone reads it, another agent finds it by no verb; the person finds all."""
    world = declared(memory, "workspace", agents="owner")
    one, two = world.acting(agent="one"), world.acting(agent="two")
    entry = one.put("workspace", WORD).entry
    assert entry is not None
    assert entry.owner == "one"
    assert [hit.id for hit in one.read("swordfish")] == [entry.id]
    assert ([*two.read("swordfish")], two.entries("workspace")) == ([], [])
    assert "swordfish" not in str(two.context("swordfish"))
    for call in (two.get, two.history, two.forget, two.ledger, two.related):
        with pytest.raises(NotFound):
            call(entry.id)
    assert [hit.id for hit in world.read("swordfish")] == [entry.id]
    assert "swordfish" in str(world.context("swordfish"))
    assert {verdict.outcome for verdict in world.why("swordfish", entry.id)} >= {"in", "returned"}
    said = world.put("workspace", "The owner says that the tide is high").id
    assert [hit.id for hit in two.read("tide")] == [said]


def test_what_an_agents_session_tells_is_that_agents(memory: Lukasa, tmp_path: Path) -> None:
    """P3, O1: where entries are their agent's alone, so are the facts of a session that the agent hands in."""
    world = declared(memory, "workspace", agents="owner")
    one, two = world.acting(agent="one"), world.acting(agent="two")
    one.observe(sessions.claude(tmp_path / "s.jsonl", [("user", "We decided to ship in March.")], noise=False))
    memory.worker(kinds=("observe",)).drain()
    assert [hit.content for hit in one.read("when do we ship?")] == ["We decided to ship in March."]
    assert [hit.content for hit in world.read("when do we ship?")] == ["We decided to ship in March."]
    assert list(two.read("when do we ship?")) == []


@pytest.mark.parametrize("agents", ["participants", "shared"])
def test_a_conversation_is_for_its_agents(memory: Lukasa, agents: str) -> None:
    """P3, M4: an agent that takes no part finds no entry of a conversation by its id, unless the tier is shared."""
    world = declared(memory, "conversation", agents=agents)
    one, two = world.acting(agent="one"), world.acting(agent="two")
    talk = one.start()
    id = one.at(conversation=talk.id).put("conversation", WORD).id
    assert one.get(id).content == WORD
    assert two.at(conversation=talk.id).get(id).content == WORD
    elsewhere = two.at(conversation=two.start().id)
    for stranger in (two, elsewhere):
        if agents == "shared":
            assert stranger.get(id).content == WORD
        else:
            for call in (stranger.get, stranger.history, stranger.forget):
                with pytest.raises(NotFound):
                    call(id)
    assert world.get(id).content == WORD


# Subagents


def ask(box: Toolbox, tool: str, **arguments: Any) -> Any:
    return json.loads(box.call(ToolCall("1", tool, arguments)).text)


def test_the_tiers_of_a_subagent_bound_its_tools(memory: Lukasa, world: Workspace) -> None:
    """S0, L3: what is outside a subagent's tiers it cannot read, put, correct or forget, and no page of it is there."""
    kept = {tier: world.put(tier, f"The {tier} says swordfish").id for tier in ("workspace", "account")}
    box = Toolbox(world.acting(agent="sub").limited("workspace"))
    put = next(tool for tool in box.tools if tool.name == "memory_put")
    assert put.parameters["properties"]["tier"]["enum"] == ["workspace"]
    assert [hit["id"] for hit in ask(box, "memory_read", query="swordfish")["hits"]] == [kept["workspace"]]
    assert ask(box, "memory_read", query="swordfish", tier="account")["error"]["code"] == "refused"
    assert ask(box, "memory_put", content="The account is mine", tier="account")["error"]["code"] == "refused"
    for tool, more in (("memory_update", {"content": "The account says eel"}), ("memory_forget", {})):
        assert ask(box, tool, id=kept["account"], **more)["error"]["code"] == "not-found"
        assert "error" not in ask(box, tool, id=kept["workspace"], **more)
    assert world.get(kept["account"]).content == "The account says swordfish"
    assert "SOUL" not in [page.name for page in box.world.named()]
    with pytest.raises(Refused):
        box.world.limited("account")
    assert len(memory_tools(box.world)) == len(box.tools)


def test_an_agent_of_some_tiers_keeps_to_them(memory: Lukasa, world: Workspace) -> None:
    """S0, L3: `Making(tiers=…)` bounds the context, every tool, and what the end of the session writes."""
    world.put("account", "The account says swordfish")
    with agent(memory, world, name="sub", tiers=["conversation", "workspace"]) as talk:
        talk.turn("What does the account say?")
        assert "swordfish" not in str(talk.context)
        refused = ask(Toolbox(talk.world), "memory_put", content="The account is mine", tier="account")
        assert refused["error"]["code"] == "refused"
        talk.turn("Remember everywhere, in every workspace: the boat is called Petrel.")
        done = talk.end()
    assert done.conversation.status == "idle"
    assert [entry.content for entry in world.entries("account")] == ["The account says swordfish"]


def test_an_agent_of_one_conversation_ends_without_a_trace(memory: Lukasa, world: Workspace) -> None:
    """S0, L1: a subagent without a lasting tier ends its session; what it may not store is named."""

    made = Making(OfflineChat(), tiers=["conversation"])
    with Agent(world.acting(agent="sub"), made, threads=memory.threads(world)) as talk:
        talk.turn("We decided to ship in March.")
        done = talk.end()
    assert (done.facts, done.summary) == ((), None)
    assert {refused.code for refused in done.refused} == {"refused"}
    assert world.entries("workspace") == []
