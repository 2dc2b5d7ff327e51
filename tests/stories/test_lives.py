"""The end of a conversation, a session or another scope: its boundary keeps something, and the rest is gone."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from lukasa import Kind, Lukasa, State, Trust, Workspace
from lukasa.model.conversation import SUMMARY_TAG
from lukasa.model.errors import InvalidScope, InvalidTransition, NotFound, Refused
from lukasa.model.job import JobState
from lukasa.ports import Chat
from lukasa.service.jobs.handlers import run_next
from lukasa.service.sessions import session
from lukasa.service.sessions.distill import Turn
from lukasa.spec import preset_text
from tests.helpers.making import FixedClock
from tests.helpers.processes import Tripwire, finish, fork
from tests.helpers.upkeep import Consolidator, run

NOTES = [
    "The blue lantern was carried to the north attic",
    "Ines oiled the hinge of the cellar door",
    "A letter came from the harbour master about the mooring",
]
ANCHOR = {"org_id": "acme", "domain_id": "ops"}
KILLED = -signal.SIGKILL


@pytest.fixture
def ops(memory: Lukasa) -> Workspace:
    return memory.workspace("support", preset="anchored").at(**ANCHOR)


def talk(world: Workspace, notes: list[str] = NOTES, tier: str = "conversation") -> Workspace:
    here = world.at(conversation=world.start().id)
    for note in notes:
        here.put(tier, note)
    return here


def end(here: Workspace) -> None:
    here.end(here.ctx.keys["conversation"])


def work(world: Workspace, chat: Chat | None = None) -> None:
    """Run all jobs that are due, as a worker does."""
    while (done := run_next(world.ctx, chat=chat)) is not None:
        assert done.outcome == "done", done.error


def texts(world: Workspace, tier: str) -> str:
    return "\n".join(entry.content for entry in world.entries(tier))


# A story for each preset


def test_tiered_carries_a_conversation_into_its_channel(memory: Lukasa) -> None:
    """S0, S4, O5: the notes of a conversation become one entry of its channel, word for word; they are forgotten."""
    world = memory.workspace("novel", preset="tiered")
    here = talk(world)
    ids = [entry.id for entry in here.entries("conversation")]
    ended = here.end(here.ctx.keys["conversation"])
    assert (ended.carried, ended.dropped, ended.archived) == (3, 0, 0)
    (digest,) = here.entries("channel", source="consolidation")
    assert all(note in digest.content for note in NOTES)
    assert set(digest.derived_from) == set(ids)
    assert {(world.get(id).state, world.get(id).superseded_by) for id in ids} == {(State.FORGOTTEN, digest.id)}
    later = world.at(conversation=world.start().id)
    assert [hit.id for hit in later.read("who oiled the hinge?")] == [digest.id]


def test_anchored_compounds_an_interaction_into_its_session(ops: Workspace) -> None:
    """S4: what an interaction saw is one entry of the session, and its rows are gone."""
    here = talk(ops.at(session="s1"), tier="interaction")
    ids = [entry.id for entry in here.entries("interaction")]
    assert here.end(here.ctx.keys["conversation"]).carried == 3
    (digest,) = ops.at(session="s1").entries("session")
    assert all(note in digest.content for note in NOTES)
    for id in ids:
        with pytest.raises(NotFound):
            ops.get(id)
    assert ops.entries("persistent", source="consolidation") == []


def test_an_interaction_outside_a_session_goes_to_the_next_tier_that_is_known(ops: Workspace) -> None:
    """S4: a nullable session is left out; the next tier whose keys are known takes the entry."""
    here = talk(ops, tier="interaction")
    end(here)
    (digest,) = ops.entries("persistent", source="consolidation")
    assert all(note in digest.content for note in NOTES)


@pytest.mark.parametrize("preset", ["default", "workspace", "observer"])
def test_where_nothing_is_carried_the_summary_tells_what_was_kept(memory: Lukasa, preset: str) -> None:
    """S1, S3, L2: conversation memory is cleared; the channel's summary names what was remembered."""
    world = memory.workspace(preset, preset=preset)
    here = talk(world)
    here.put("workspace", "The villain is called Malachar")
    ended = here.end(here.ctx.keys["conversation"])
    assert (ended.carried, ended.dropped) == (0, 3)
    (summary,) = here.entries("channel")
    assert summary.tags == (SUMMARY_TAG,)
    assert "Malachar" in summary.content
    assert not any(note in texts(here, "channel") + texts(here, "workspace") for note in NOTES)


def test_what_was_only_for_this_conversation_is_carried_nowhere(memory: Lukasa) -> None:
    """S3: a writer who asks for the conversation's lifetime wants it to end there, whatever the boundary carries."""
    world = memory.workspace("novel", preset="tiered")
    here = talk(world, NOTES[:1])
    here.put("conversation", "Today we discuss chapters 1 to 3", lifetime="conversation")
    end(here)
    assert NOTES[0] in texts(here, "channel")
    assert "chapters" not in texts(here, "channel")


def test_one_note_crosses_as_it_is(ops: Workspace) -> None:
    """S4: a single note needs no digest; it is carried with its words, its trust and its gates."""
    here = talk(ops.at(session="s1"), ["Ask ines@example.org about the cellar door"], tier="interaction")
    end(here)
    ops.at(session="s1").end_scope("session")
    (kept,) = ops.entries("persistent", source="user")
    assert kept.content == "Ask [mail] about the cellar door" or "example.org" not in kept.content
    assert kept.kind is Kind.EPISODIC


def test_owners_and_trusts_are_not_mixed(memory: Lukasa) -> None:
    """B2, M4: an agent's private notes and untrusted ones are carried apart from the author's."""
    world = memory.workspace("novel", preset="tiered")
    here = talk(world, NOTES[:2])
    agent = here.acting(agent="researcher")
    agent.put("conversation", "I looked into the archive already", owner="researcher")
    agent.put("conversation", "The archive closes at noon", owner="researcher")
    here.acting(principal="web", trust=Trust.UNTRUSTED).put("conversation", "A page claims the mill stands empty")
    end(here)
    found = {(e.owner, e.trust): e.content for e in agent.entries("channel") + here.entries("channel")}
    assert set(found) == {("shared", Trust.AUTHOR), ("researcher", Trust.AGENT), ("shared", Trust.UNTRUSTED)}
    assert "archive" in found["researcher", Trust.AGENT]
    assert "archive" not in found["shared", Trust.AUTHOR] + found["shared", Trust.UNTRUSTED]


def test_what_the_next_tier_knows_is_confirmed_there(memory: Lukasa) -> None:
    """S4: a note that says the same as an entry of the next tier adds a confirmation, not a copy."""
    world = memory.workspace("novel", preset="tiered")
    known = world.at(channel="general").put("channel", NOTES[1], kind="episodic").id
    here = talk(world)
    end(here)
    assert texts(here, "channel").count("hinge") == 1
    assert world.get(known).merged_count == 2
    assert [again.said for again in world.related(known).confirmations] == [NOTES[1]]


def test_an_action_keeps_what_it_rests_on(ops: Workspace) -> None:
    """X1: a row with action-linkage stays when its scope ends, forgotten in favour of what it went into."""
    here = talk(ops.at(session="s1"), tier="interaction")
    kept, gone, _ = (entry.id for entry in here.entries("interaction"))
    ops.link_action("deploy-7", [kept])
    end(here)
    (digest,) = ops.at(session="s1").entries("session")
    assert (ops.get(kept).state, ops.get(kept).superseded_by) == (State.FORGOTTEN, digest.id)
    assert digest.derived_from == (kept,)
    with pytest.raises(NotFound):
        ops.get(gone)


# The same summary from every end


def test_every_end_leaves_the_summary_that_a_chat_leaves(memory: Lukasa) -> None:
    """L1: a session ended by the library's verb leaves the summary and the missed facts that Persist leaves."""
    summaries = []
    for name in ("by-chat", "by-verb"):
        world = memory.workspace(name)
        here = session.begin(world)
        session.record(here, Turn("user", "My name is Ines and I live in Porto."))
        session.record(here, Turn("user", "When does the ferry leave?"))
        here.put("workspace", "The villain is called Malachar")
        key = here.ctx.keys["conversation"]
        ref = here.conversation(key).ref_code
        found = session.persist(here).summary if name == "by-chat" else here.end(key).summary
        assert found is not None
        summaries.append(found.content.replace(ref, "REF"))
        assert world.at(channel="general").entries("channel", tags=[SUMMARY_TAG]) == [world.get(found.id)]
    assert summaries[0] == summaries[1]
    assert "Malachar" in summaries[0]
    assert "ferry" in summaries[0]


def test_ending_again_keeps_the_summary(memory: Lukasa) -> None:
    """L1: a second end knows less, because the messages are gone; it leaves the summary as it is."""
    world = memory.workspace("novel")
    here = session.begin(world)
    session.record(here, Turn("user", "When does the ferry leave?"))
    key = here.ctx.keys["conversation"]
    first, again = here.end(key).summary, here.end(key).summary
    assert first == again
    assert first is not None
    assert "ferry" in first.content


# Sessions and other scopes


def test_a_session_ends_with_all_that_is_in_it(ops: Workspace) -> None:
    """S4, P6: the open conversations of a session end first; then its entries go to the persistent tier."""
    inside = ops.at(session="s1")
    here = talk(inside, NOTES[:2], tier="interaction")
    inside.put("session", NOTES[2])
    (done,) = inside.end_scope("session_end")
    assert (done.tier, done.closed, len(done.conversations)) == ("session", True, 1)
    assert str(here.conversation(here.ctx.keys["conversation"]).status) == "idle"
    assert inside.entries("session") == []
    kept = texts(ops, "persistent")
    assert all(note in kept for note in NOTES)


def test_an_ended_session_takes_no_more_entries(ops: Workspace) -> None:
    """S4: a write into an ended scope, or into a scope inside it, is a typed error; another session goes on."""
    inside = ops.at(session="s1")
    here = inside.at(conversation=inside.start().id)
    inside.end_scope("session")
    for tier, place in (("session", inside), ("interaction", here)):
        with pytest.raises(InvalidTransition):
            place.put(tier, "One more thing about the mooring")
    with pytest.raises(InvalidTransition):
        inside.end_scope("session")
    assert ops.at(session="s2").put("session", "One more thing about the mooring").outcome == "stored"


def test_a_session_keeps_its_entries_until_it_ends(ops: Workspace, clock: FixedClock) -> None:
    """S4, L2: a session entry lives as long as its session, over conversations, and not a day longer."""
    inside = ops.at(session="s1")
    here = inside.at(conversation=inside.start().id)
    id = here.put("session", "The mooring of the harbour is booked").id
    end(here)
    assert inside.get(id).state is State.ACTIVE
    clock.time += timedelta(days=400)
    inside.end_scope("session")
    with pytest.raises(NotFound):
        ops.get(id)
    assert "mooring" in texts(ops, "persistent")


def test_scopes_that_cannot_be_ended(ops: Workspace) -> None:
    """P6, W9: escalation ends entry by entry; an unknown name, an unbound key and an untrusted caller are refused."""
    with pytest.raises(InvalidTransition):
        ops.end_scope("persistent")
    with pytest.raises(InvalidScope):
        ops.end_scope("galaxy")
    with pytest.raises(InvalidScope):
        ops.end_scope("session")
    with pytest.raises(Refused):
        ops.at(session="s1").acting(trust=Trust.UNTRUSTED).end_scope("session")


def test_a_scope_that_is_left_can_be_used_again(memory: Lukasa, clock: FixedClock) -> None:
    """P6: a boundary of the type `scope` consolidates what was left, and closes nothing."""
    world = memory.workspace("novel").at(channel="general")
    ids = [world.put("channel", note, kind="episodic", importance=0.3).id for note in NOTES]
    clock.time += timedelta(days=30)
    (left,) = world.end_scope("channel_change")
    assert not left.closed
    work(world)
    (digest,) = world.entries("channel", source="consolidation")
    assert set(digest.derived_from) == set(ids)
    assert world.put("channel", "The harbour freezes in January").outcome == "stored"


# Without loss and without repetition


NEVER, ASKED = 10_000, 0


def _end_cut_short(folder: Path, ref: str, place: int) -> None:
    wire = Tripwire(place)
    wire.install()
    with Lukasa.open(folder, embedder="none") as memory:
        world = memory.workspace("novel")
        wire.armed = True
        world.end(ref)


@pytest.mark.parametrize("place", [*range(1, 60, 4), NEVER])
def test_killed_while_it_ends(tmp_path: Path, place: int) -> None:
    """T01, O5: killed at any statement of the end, every note is there once: in the conversation, or in the channel."""
    folder = tmp_path / "data"
    with Lukasa.open(folder, embedder="none") as memory:
        here = talk(memory.workspace("novel", preset="tiered"))
        ref = here.ctx.keys["conversation"]
    assert finish(fork(partial(_end_cut_short, folder, ref, place))) == (0 if place == NEVER else KILLED)
    with Lukasa.open(folder, embedder="none") as memory:
        world = memory.workspace("novel")
        here = world.at(conversation=ref)
        ended = str(world.conversation(ref).status) == "idle"
        assert len(here.entries("conversation")) == (0 if ended else 3)
        assert len(here.entries("channel", source="consolidation")) == ended
        world.end(ref)
        (digest,) = here.entries("channel", source="consolidation")
        assert all(digest.content.count(note) == 1 for note in NOTES)
        assert world.ctx.local.check() == []


def _rewrite_cut_short(folder: Path, place: int) -> None:
    def say(notes: list[dict[str, object]]) -> str:
        if place == ASKED:
            os.kill(os.getpid(), signal.SIGKILL)
        return "; ".join(str(note["text"]) for note in notes)

    wire = Tripwire(place)
    wire.install()
    with Lukasa.open(folder, embedder="none") as memory:
        world = memory.workspace("novel")
        wire.armed = place != ASKED
        work(world, Consolidator(say=say))


@pytest.mark.parametrize("place", [ASKED, *range(10, 100, 15)])
def test_killed_while_a_model_rewrites(tmp_path: Path, place: int) -> None:
    """T20, O5: the digest is there before the model is asked; a killed worker's job is done by the next one, once."""
    folder, clock = tmp_path / "data", FixedClock()
    with Lukasa.open(folder, embedder="none", clock=clock) as memory:
        here = talk(memory.workspace("novel", preset="tiered"))
        ref = here.ctx.keys["conversation"]
        end(here)
    assert finish(fork(partial(_rewrite_cut_short, folder, place))) in (KILLED, 0)
    with Lukasa.open(folder, embedder="none") as memory:
        world = memory.workspace("novel")
        (digest,) = world.at(conversation=ref).entries("channel", source="consolidation")
        assert all(digest.content.count(note) == 1 for note in NOTES)
    clock.time += timedelta(days=3650)
    with Lukasa.open(folder, embedder="none", clock=clock) as memory:
        world = memory.workspace("novel")
        work(world, Consolidator())
        (job,) = [job for job in world.ctx.local.jobs(kind="consolidate") if "session_close" in job.key]
        assert (job.state, job.result.get("rewritten")) == (JobState.DONE, 1)
        (digest,) = world.at(conversation=ref).entries("channel", source="consolidation")
        assert "; ".join(NOTES) in digest.content
        assert (digest.version, digest.trust) == (2, Trust.AGENT)
        world.undo(job.id)
        assert world.get(digest.id).trust is Trust.AUTHOR


def test_a_model_leaves_nothing_out(memory: Lukasa) -> None:
    """O5: a note that the model does not use stays in the digest, word for word."""
    world = memory.workspace("novel", preset="tiered")
    here = talk(world)
    end(here)

    class Lazy(Consolidator):
        def reply(self, messages, tools=(), *, timeout=60.0, on_text=None):  # type: ignore[no-untyped-def]
            answer = super().reply(messages, tools, timeout=timeout, on_text=on_text)
            return type(answer)(answer.text.replace("[1, 2, 3]", "[1, 2]"), usage=answer.usage)

    chat = Lazy(say=lambda notes: "; ".join(str(note["text"]) for note in notes[:2]))
    work(world, chat)
    (digest,) = here.entries("channel", source="consolidation")
    assert "; ".join(NOTES[:2]) in digest.content
    assert f"- {NOTES[2]}" in digest.content


# The audit posture, and what a spec lifts of it


def exempting(*rules: str) -> str:
    listed = ", ".join(f'{{ rule = "{rule}", reason = "A trial without audit." }}' for rule in rules)
    text = preset_text("anchored").replace("exemptions = []", f"exemptions = [{listed}]")
    return text + '\n[behaviour.lifecycle.persistent]\npolicy = "drop"\nreason = "A trial: nothing stays."\n'


@pytest.mark.parametrize("rules", [(), ("keep-persistent",)])
def test_an_exemption_lets_a_lasting_tier_drop(memory: Lukasa, rules: tuple[str, ...]) -> None:
    """X1, P4: a persistent row is archived at the end; with `keep-persistent` exempted it goes, with the reason."""
    world = memory.workspace("trial", spec=exempting(*rules)).at(**ANCHOR)
    here = world.at(conversation=world.start().id)
    id = here.put("persistent", "For now we call the city Veyra", kind="episodic", lifetime="conversation").id
    end(here)
    if not rules:
        assert world.get(id).state is State.ARCHIVED
        return
    with pytest.raises(NotFound):
        world.get(id)
    (event,) = world.ctx.local.events(action="entry.dropped")
    assert (event.subject, event.detail["exempt"]) == (id, {"keep-persistent": "A trial without audit."})


@pytest.mark.parametrize("rules", [(), ("keep-action-linked",)])
def test_an_exemption_lets_a_linked_row_go(memory: Lukasa, rules: tuple[str, ...]) -> None:
    """X1, P4: a row that an action rests on stays; only with `keep-action-linked` exempted it goes with its scope."""
    world = memory.workspace("trial", spec=exempting(*rules)).at(**ANCHOR)
    here = world.at(conversation=world.start().id)
    id = here.put("interaction", "The user approved the deletion", lifetime="conversation").id
    world.link_action("deploy-7", [id])
    end(here)
    if not rules:
        assert world.get(id).state is State.ARCHIVED
        return
    with pytest.raises(NotFound):
        world.get(id)
    (event,) = world.ctx.local.events(action="entry.dropped")
    assert event.detail["exempt"] == {"keep-action-linked": "A trial without audit."}
    assert world.ctx.local.check() == []


@pytest.mark.parametrize("rules", [("keep-persistent",), ("soft-supersession", "keep-persistent")])
def test_an_exemption_lets_upkeep_remove(memory: Lukasa, clock: FixedClock, rules: tuple[str, ...]) -> None:
    """X1, P4: what upkeep prunes keeps its row; with `soft-supersession` exempted the row goes."""
    listed = ", ".join(f'{{ rule = "{rule}", reason = "A trial without audit." }}' for rule in rules)
    text = preset_text("workspace").replace("exemptions = []", f"exemptions = [{listed}]")
    world = memory.workspace("trial", spec=text)
    id = world.put("workspace", "The kettle boiled twice", importance=0.05, lifetime="short_term").id
    clock.time += timedelta(days=60)
    run(world, "consolidate")
    if "soft-supersession" not in rules:
        assert world.get(id).state is State.PRUNED
        return
    with pytest.raises(NotFound):
        world.get(id)
    (event,) = world.ctx.local.events(action="entry.dropped")
    assert set(event.detail["exempt"]) == set(rules)
