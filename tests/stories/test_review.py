"""The review inbox: what waits is seen with its words, decided by a person, and recalled by nobody before."""

from __future__ import annotations

from pathlib import Path

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.amendment import AmendmentState
from lukasa.model.entry import GateVerdict
from lukasa.model.errors import InvalidTransition, NotFound, Refused
from lukasa.model.ids import new_id
from lukasa.model.transcript import Quote, Transcript, Utterance
from lukasa.model.values import Gate, State, Trust
from lukasa.service.entries.put import Memo
from lukasa.storage.operations import KeepUtterances, SaveTranscript
from tests.helpers.cli import Shell
from tests.helpers.curating import proposal, propose
from tests.helpers.making import FixedClock

DOUBT = GateVerdict(Gate.HOLD, 0.5, "may be of use")


def observed(world: Workspace, text: str, said: str) -> str:
    """A fact that an observer was not sure of, with the message that says it."""
    now = world.ctx.now
    transcript = Transcript(new_id(), new_id(), "plain", "t", now, now, kept=1)
    said_by = Utterance("m1", "user", said, 0, now)
    world.ctx.apply(world.ctx.local, SaveTranscript(transcript, 0), KeepUtterances(transcript.id, (said_by,)))
    at = said.index(text.split()[0])
    quote = Quote(transcript.id, "m1", at, len(said))
    return world.put_many("workspace", [Memo(text, gate=DOUBT, evidence=[quote])])[0].id


def test_what_waits_is_shown_with_its_words(world: Workspace) -> None:
    """B6, B4: held entries of every scope with why and the quote they came from, and proposals in review."""
    id = observed(world, "Ines owns the gateway", "well, Ines owns the gateway, I think")
    private = world.acting(agent="scribe").at(channel="general")
    hidden = private.put_many("channel", [Memo("Omar may leave in spring", gate=DOUBT, owner="scribe")])[0].id
    asked = propose(
        world, "Deploys go through the gate.", state=AmendmentState.REVIEW, reason="not sure", sources=(id,)
    )
    propose(world, "Triage has not seen this one yet")
    found = world.inbox()
    assert [(item.entry.id, item.why) for item in found.entries] == [(id, "may be of use"), (hidden, "may be of use")]
    assert [quote.text for quote in found.entries[0].quotes] == ["Ines owns the gateway, I think"]
    (waiting,) = found.proposals
    assert (waiting.amendment.id, waiting.why, [e.id for e in waiting.sources]) == (asked, "not sure", [id])
    assert [quote.role for quote in waiting.quotes] == ["user"]
    assert len(found) == 3


def test_pending_facts_are_never_recalled(world: Workspace) -> None:
    """B6: neither a held entry nor a proposal is in a read, a context or the page before it is approved."""
    id = observed(world, "Ines owns the gateway", "Ines owns the gateway")
    propose(world, "Omar owns the gateway", state=AmendmentState.REVIEW)
    assert [hit.id for hit in world.read("who owns the gateway?")] == []
    assert "owns the gateway" not in str(world.context("who owns the gateway?"))
    world.approve(id)
    assert [hit.id for hit in world.read("who owns the gateway?")] == [id]


def test_approving_puts_it_first(world: Workspace, clock: FixedClock) -> None:
    """B6: an approved entry is compared as a put is: a read shows it, with the other one under it."""
    old = world.acting(agent="scribe").put("workspace", "The owner of the gateway is Omar").id
    id = observed(world, "The owner of the gateway is Ines", "The owner of the gateway is Ines")
    decided = world.approve(id)
    assert (decided.outcome, decided.replaces) == ("accepted", ())
    (hit,) = world.read("who is the owner of the gateway?")
    assert (hit.id, [one.id for one in hit.earlier]) == (id, [old])


def test_editing_approves_in_other_words(world: Workspace) -> None:
    """B6: an edited entry or proposal says what the person wrote."""
    id = observed(world, "Ines owns the gateway", "Ines owns the gateway")
    assert world.approve(id, text="Ines owns the gateway and its alarms").entry.content.endswith("alarms")  # type: ignore[union-attr]
    assert world.get(id).state is State.ACTIVE
    asked = propose(world, "Deploys go through the gate.", state=AmendmentState.REVIEW)
    assert world.approve(asked, text="Deploys go through gate B.").outcome == "promoted"
    assert [d.text for d in world.curated.lines()] == ["Deploys go through gate B."]


def test_rejecting_can_be_taken_back(world: Workspace) -> None:
    """B6: a rejected entry is forgotten with its cause, and restored it waits again; a proposal can be approved yet."""
    id = observed(world, "Ines owns the gateway", "Ines owns the gateway")
    decided = world.reject(id, "she has left")
    assert (decided.outcome, world.get(id).state) == ("forgotten", State.FORGOTTEN)
    assert world.history(id)[-1].cause == "she has left"
    assert len(world.inbox()) == 0
    world.acting(agent="scribe").restore(id)
    assert world.get(id).state is State.HELD  # bringing it back does not let it in
    asked = propose(world, "Deploys go through the gate.", state=AmendmentState.REVIEW)
    world.reject(asked, "not so")
    assert (proposal(world, asked).state, proposal(world, asked).reason) == (AmendmentState.REJECTED, "not so")
    assert world.approve(asked).outcome == "promoted"


def test_every_decision_has_its_event(world: Workspace) -> None:
    """B6, X2: who decided and why is in the log."""
    a, b = (propose(world, f"Gate {n} is open on weekdays.", state=AmendmentState.REVIEW) for n in "AB")
    world.approve(a, reason="I saw it")
    world.reject(b, "I did not")
    told = {e.subject: (e.action, e.detail["reason"]) for e in world.events(limit=1000) if e.subject in (a, b)}
    assert told == {a: ("amendment.promoted", "I saw it"), b: ("amendment.rejected", "I did not")}
    assert world.verify() == []


def test_only_the_author_decides(world: Workspace) -> None:
    """B6: agents and less trusted handles are refused, and nothing changes."""
    id = observed(world, "Ines owns the gateway", "Ines owns the gateway")
    asked = propose(world, "Deploys go through the gate.", state=AmendmentState.REVIEW)
    for other in (world.acting(agent="scribe"), world.acting(trust=Trust.IMPORTED)):
        for call in (other.inbox, lambda o=other: o.approve(id), lambda o=other: o.reject(asked)):
            with pytest.raises(Refused):
                call()
    assert len(world.inbox()) == 2


def test_what_does_not_wait_is_told(world: Workspace) -> None:
    """B6: unknown ids, entries that are not held, proposals that are decided."""
    with pytest.raises(NotFound):
        world.approve(new_id())
    active = world.put("workspace", "The gateway listens on port 80").id
    with pytest.raises(InvalidTransition):
        world.reject(active)
    asked = propose(world, "Deploys go through the gate.", state=AmendmentState.REVIEW)
    world.approve(asked)
    with pytest.raises(InvalidTransition, match="promoted already"):
        world.reject(asked)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    found = Shell(tmp_path / "data")
    found.run("workspace", "list")
    return found


def test_the_verbs(shell: Shell) -> None:
    """B6, U2: list, approve, edit, reject, on the command line and as JSON."""
    assert "Nothing to review" in shell.run("review")
    with Lukasa.open(shell.data, embedder="none") as memory:
        world = memory.workspace()
        first = observed(world, "Ines owns the gateway", "I said: Ines owns the gateway")
        second = observed(world, "Omar owns the archive", "Omar owns the archive")
        asked = propose(world, "Deploys go through the gate.", state=AmendmentState.REVIEW, reason="no model is set")
    told = shell.run("review")
    assert "“Ines owns the gateway”" in told
    assert "no model is set" in told
    assert len(shell.json("review", "list")["entries"]) == 2
    assert shell.json("review", "approve", first)["outcome"] == "accepted"
    assert (
        shell.json("review", "edit", asked, "--text", "-", input="Deploys go through gate B.")["outcome"] == "promoted"
    )
    assert "holds it again" in shell.run("review", "reject", second, "--reason", "not so")
    assert shell.fails("review", "reject", second, code=1)["code"] == "invalid-transition"
    assert "Nothing to review" in shell.run("review", "list")


def test_one_by_one(shell: Shell) -> None:
    """B6: approve, edit, reject, skip, quit, as asked on a terminal."""
    with Lukasa.open(shell.data, embedder="none") as memory:
        world = memory.workspace()
        ids = [propose(world, f"Gate {n} is open on weekdays.", state=AmendmentState.REVIEW) for n in "ABCDE"]
    told = shell.run("review", "ask", input="a\ne\nGate B is shut.\nr\nno\ns\nq\n")
    assert "3 decided, 2 left." in told
    with Lukasa.open(shell.data, embedder="none") as memory:
        world = memory.workspace()
        assert [str(proposal(world, id).state) for id in ids] == [
            "promoted",
            "promoted",
            "rejected",
            "review",
            "review",
        ]
        assert "Gate B is shut." in world.curated.text
