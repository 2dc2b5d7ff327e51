"""Gates on the way out: what a chat and a client from outside get, and what stays as it is (W6, S4)."""

from __future__ import annotations

import pytest

from lukasa import Lukasa, Trust, Workspace
from lukasa.model.echo import HEDGES
from lukasa.model.errors import InvalidInput
from lukasa.spec import check, preset_text
from tests.helpers.talk import agent

HEDGE = "An agent noted: "
NOTE = "The conformity gate checks every citation"
OUT = """
[[sanitization]]
boundary = "trust"
to = "chat"
transforms = ["hedge_by_provenance"]

[[sanitization]]
boundary = "tenant"
to = "external"
transforms = ["auth_scoped_subset", "strip_identifiers"]
"""
SPEC = preset_text("default").replace("sanitization = []\n", "") + OUT


@pytest.fixture
def desk(memory: Lukasa) -> Workspace:
    return memory.workspace("desk", spec=SPEC)


@pytest.fixture
def noted(desk: Workspace) -> str:
    """A note of an agent, which is not the author's."""
    return desk.acting(agent="scout").put("workspace", NOTE).id


def test_what_a_chat_reads_is_hedged_and_what_is_stored_is_not(desk: Workspace, noted: str) -> None:
    """S4 14: reads, contexts, single entries, lists and history that go to a chat say who claims it."""
    talk = desk.outbound("chat")
    recall = talk.read("conformity gate", count=False)
    assert [hit.content for hit in recall] == [HEDGE + NOTE]
    assert any("hedge_by_provenance changed 1" in note for note in recall.notes)
    assert HEDGE + NOTE in str(talk.context("conformity gate"))
    assert talk.get(noted).content == HEDGE + NOTE
    assert [entry.content for entry in talk.entries("workspace")] == [HEDGE + NOTE]
    assert [version.entry.content for version in talk.history(noted)] == [HEDGE + NOTE]
    assert [hit.content for hit in desk.read("conformity gate", count=False)] == [NOTE]
    assert desk.get(noted).content == NOTE


def test_the_authors_own_words_need_no_hedge(desk: Workspace) -> None:
    """S4 14: the hedge follows from the provenance, so the author's statement goes out as it is."""
    desk.put("workspace", NOTE)
    recall = desk.outbound("chat").read("conformity gate", count=False)
    assert ([hit.content for hit in recall], recall.notes[:0]) == ([NOTE], ())
    assert not any("changed" in note for note in recall.notes)


def test_why_tells_what_a_gate_changes(desk: Workspace, noted: str) -> None:
    """S4 14, R8: `why` names the transform, and how often it changed the text."""
    (verdict,) = [v for v in desk.outbound("chat").why("conformity gate", noted) if v.step == "outbound"]
    assert (verdict.outcome, verdict.data) == ("changed", {"hedge_by_provenance": 1})
    assert not [v for v in desk.why("conformity gate", noted) if v.step == "outbound"]


def test_the_agent_in_the_chat_gets_it_hedged(memory: Lukasa, desk: Workspace, noted: str) -> None:
    """S4 14: the chat's prompt, its tools and its answer hold the hedge; ending the chat stores nothing of it."""
    with agent(memory, desk) as talk:
        reply = talk.turn("What does the conformity gate check?").reply
        assert talk.context is not None
        assert HEDGE + NOTE in str(talk.context)
        talk.end()
    assert f"“{HEDGE}{NOTE}”" in reply
    stored = [entry.content for entry in desk.entries("workspace", everything=True)]
    assert NOTE in stored
    assert not any(text.startswith(HEDGE) for text in stored)


def test_a_chat_says_that_it_does_not_know(memory: Lukasa, desk: Workspace, noted: str) -> None:
    """S4 14: without anything that supports an answer, the answer is that nobody knows."""
    with agent(memory, desk) as talk:
        assert talk.turn("Who repairs the lighthouse?").reply.startswith("I don't know")


def test_a_client_from_outside_gets_a_subset(memory: Lukasa, desk: Workspace) -> None:
    """S4 14: by a grant, private parts and identifiers are left out; the owner still reads all of it."""
    text = "Refunds take a week [private]ask ada@acme.example first[/private]"
    id = desk.put("workspace", text).id
    hidden = desk.put("workspace", "Internal: the refund budget is empty").id
    issued = memory.access.create("shop", workspaces=["desk"])
    outside = memory.access.enter(memory.access.admit(issued.token, surface="http", transport="test"), "desk")
    assert outside.get(id).content == "Refunds take a week"
    assert outside.get(hidden).content == "[withheld]"
    assert "ada@acme" not in str(outside.context("refund"))
    assert "budget" not in str(outside.read("refund budget", count=False).hits)
    assert desk.get(id).content == text


def test_every_preset_for_tenants_has_the_gates(memory: Lukasa) -> None:
    """S4 14: `anchored` hedges what goes to a chat."""
    world = memory.workspace("tenants", preset="anchored").at(org_id="acme", domain_id="robots")
    world.acting(agent="scout").put("persistent", "Count the citations before promotion", kind="procedural")
    (hit,) = world.outbound("chat").read("citations", count=False, held=True)
    assert hit.content.startswith(HEDGE)


def test_unknown_surfaces_are_refused(desk: Workspace) -> None:
    """W9: a gate or a handle for a surface that does not exist is an error that lists the surfaces."""
    with pytest.raises(InvalidInput, match="chat, external"):
        desk.outbound("fax")
    (problem,) = check(SPEC.replace('to = "chat"', 'to = "fax"'))
    assert "chat" in problem.fix or "chat" in problem.message
    (both,) = check(SPEC.replace('to = "chat"', 'to = "chat"\ninto = "workspace"'))
    assert both.key.endswith(".to")


def test_passages_pass_the_gates_too(desk: Workspace) -> None:
    """S4 14, K4: a passage that goes to a client outside loses what is marked as internal, and identifiers."""
    desk.add_upload("faq.md", b"# FAQ\n\nRefunds take two weeks, says ada@example.org.\n\nInternal: ask Ines first.\n")
    inside, outside = desk, desk.outbound("external")
    assert "ask Ines first" in inside.search_corpus("refunds")[0].text
    for text in (outside.search_corpus("refunds")[0].text, outside.read_document("faq.md").text):
        assert text == "Refunds take two weeks, says [email]."
    assert desk.outbound("chat").search_corpus("refunds")[0].text.startswith(HEDGES[Trust.IMPORTED])
