"""What entries rest on: documents that change and vanish, sources that are withdrawn, and the rows that this keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lukasa import Kind, Lukasa, State, Workspace
from lukasa.model.errors import NotFound
from lukasa.model.values import Retention
from lukasa.read.context import parse
from lukasa.spec import preset_text
from lukasa.surfaces.langgraph.toolkit import memory_tools
from tests.helpers.cli import Shell
from tests.helpers.mcp import beside, called, lent, session
from tests.helpers.server import running
from tests.helpers.upkeep import run

GUIDE, FACT = "Two people review each change.", "Changes need two reviewers"


@pytest.fixture
def house(memory: Lukasa) -> Workspace:
    world = memory.workspace("ops", preset="anchored")
    world.save_document("guide", GUIDE, title="Guide", origin="board", weight=0.7, standing="binding")
    return world


@pytest.fixture
def ops(house: Workspace) -> Workspace:
    return house.at(org_id="acme", domain_id="ops")


# Documents


def test_a_document_that_vanishes_archives_what_rests_on_it(house: Workspace, ops: Workspace) -> None:
    """S4: the fact is archived with the reason, and what it had replaced holds again; other facts stay."""
    old = ops.put("persistent", "Changes need one reviewer", kind="semantic").id
    fact = ops.put("persistent", FACT, kind="semantic", links=["guide"], supersedes=old).id
    other = ops.put("persistent", "The pager is on the second floor", kind="semantic").id
    assert ops.get(old).state is State.INVALIDATED
    house.remove_document("guide")
    gone = ops.get(fact)
    assert (gone.state, gone.invalid_at is not None) == (State.ARCHIVED, True)
    assert gone.transition is not None
    assert gone.transition.cause == "document guide, on which it rests, is gone"
    assert (ops.get(old).state, ops.get(other).state) == (State.ACTIVE, State.ACTIVE)
    assert ops.ledger(old)[-1].action == "entry.reopened"
    assert ops.read("how many reviewers do changes need?")[0].id == old


def test_a_surviving_document_keeps_the_fact(house: Workspace, ops: Workspace) -> None:
    """S4: an entry with another source that is still there is flagged, and stays."""
    house.save_document("charter", "The charter asks for review by two.")
    fact = ops.put("persistent", FACT, kind="semantic", links=["guide", "charter"]).id
    house.remove_document("guide")
    found = ops.grounds(fact)
    assert ops.get(fact).state is State.ACTIVE
    assert [(one.source, one.status) for one in found.provenance] == [("guide", "vanished"), ("charter", "current")]
    assert found.awaits_check


def test_a_document_that_changes_asks_for_a_check(house: Workspace, ops: Workspace) -> None:
    """S4: the pinned version moved: the fact waits in the inbox; a check clears that, against this version alone."""
    fact = ops.put("persistent", FACT, kind="semantic", links=["guide"]).id
    assert ops.inbox().doubtful == ()
    house.save_document("guide", "Two people review each change, in writing.")
    (waiting,) = ops.inbox().doubtful
    assert (waiting.entry.id, waiting.why.endswith("document guide has changed")) == (fact, True)
    ops.acting(agent="ada").corroborate(fact, reason="read the guide again")
    assert (ops.inbox().doubtful, ops.grounds(fact).awaits_check) == ((), False)
    (link,) = ops.get(fact).links
    assert (link.version, link.checked) == (1, 2)
    house.save_document("guide", "Three people review each change.")
    assert ops.grounds(fact).awaits_check
    done = ops.corroborate(fact, "failed", "the guide says three")
    assert (done.outcome, ops.get(fact).state) == ("archived", State.ARCHIVED)


def test_stating_a_fact_again_from_the_new_version_checks_it(house: Workspace, ops: Workspace) -> None:
    """S4: the same statement, linked to the document as it is now, is a check against it."""
    fact = ops.put("persistent", FACT, kind="semantic", links=["guide"]).id
    house.save_document("guide", "Two people review each change, in writing.")
    assert ops.put("persistent", FACT, kind="semantic", links=["guide"]).outcome == "merged"
    assert not ops.grounds(fact).awaits_check


@pytest.mark.parametrize(
    ("rule", "outcome"), [("archive", State.ARCHIVED), ("keep", State.ACTIVE), ("recheck", State.ACTIVE)]
)
def test_the_spec_says_what_a_change_does(memory: Lukasa, rule: str, outcome: State) -> None:
    """S4: `source_changed` archives, asks for a check, or does nothing."""
    wanted = f'[behaviour.lifecycle.semantic]\nsource_changed = "{rule}"\n'
    text = preset_text("default").replace("[behaviour.lifecycle.semantic]\n", wanted)
    world = memory.workspace("w", spec=text)
    world.save_document("guide", GUIDE)
    fact = world.put("workspace", FACT, kind="semantic", links=["guide"]).id
    world.save_document("guide", "Three people review each change.")
    assert world.get(fact).state is outcome
    if outcome is State.ACTIVE:
        assert world.corroborate(fact, "failed").outcome == ("archived" if rule == "recheck" else "doubted")


@pytest.mark.parametrize(
    ("rule", "state"), [("archive", State.ARCHIVED), ("keep", State.ACTIVE), ("recheck", State.ACTIVE)]
)
def test_the_spec_says_what_a_loss_does(memory: Lukasa, rule: str, state: State) -> None:
    """S4: `source_vanished` archives at once, waits for a check of which one failure archives, or does nothing more."""
    text = preset_text("default").replace('source_vanished = "recheck"', f'source_vanished = "{rule}"')
    text = text.replace('source_vanished = "archive"\nreason', "reason") if rule == "archive" else text
    world = memory.workspace("w", spec=text)
    world.save_document("guide", GUIDE)
    fact = world.put("workspace", FACT, kind="semantic", links=["guide"]).id
    world.remove_document("guide")
    assert world.get(fact).state is state
    assert [one.entry.id for one in world.inbox().doubtful] == ([fact] if rule == "recheck" else [])
    if state is State.ACTIVE:
        assert world.corroborate(fact, "failed").outcome == ("archived" if rule == "recheck" else "doubted")


def test_the_spec_says_how_often_a_lasting_fact_recurs(memory: Lukasa) -> None:
    """S4: with `min_recurrence` = 3 one check after a new version is not enough; a second one is."""
    rule = '\n[behaviour.promotion.semantic]\nmin_recurrence = 3\nreason = "Twice is chance."\n'
    world = memory.workspace("w", spec=preset_text("default") + rule)
    world.save_document("guide", GUIDE)
    fact = world.put("workspace", FACT, kind="semantic", links=["guide"]).id
    world.save_document("guide", "Two people review each change, in writing.")
    world.corroborate(fact)
    run(world, "consolidate")
    assert not world.get(fact).meta
    world.corroborate(fact)
    run(world, "consolidate")
    assert world.get(fact).meta


def test_a_fact_becomes_meta_semantic(house: Workspace, ops: Workspace) -> None:
    """S4: it outlived a version of its document, which is there, and was confirmed since; then versions ask no more."""
    fact = ops.put("persistent", FACT, kind="semantic", links=["guide"]).id
    assert run(ops, "consolidate").result == {}
    house.save_document("guide", "Two people review each change, in writing.")
    assert run(ops, "consolidate").result == {}
    ops.corroborate(fact, reason="the guide still says two")
    assert run(ops, "consolidate").result == {"promoted": 1}
    entry = ops.get(fact)
    assert (entry.kind, entry.meta, entry.state) == (Kind.SEMANTIC, True, State.ACTIVE)
    cause = ops.ledger(fact)[-1].detail["cause"]
    assert cause == "promoted: it held through 2 versions of what it refers to, stated or confirmed 2 times"
    house.save_document("guide", "Two people review each change, on paper.")
    assert not ops.grounds(fact).awaits_check
    assert ops.grounds(fact).provenance[0].status == "changed"
    assert run(ops, "consolidate").result == {}
    ops.undo(fact)
    assert (ops.get(fact).meta, ops.grounds(fact).awaits_check) == (False, True)


# Sources that are withdrawn


def conclude(world: Workspace, tier: str = "workspace") -> tuple[str, str]:
    ground = world.put(tier, "The mill has a wheel of oak", kind="semantic").id
    return ground, world.put(tier, "The mill cannot run in a drought", kind="semantic", derived_from=[ground]).id


def test_what_rests_on_something_forgotten_says_so(world: Workspace) -> None:
    """B21: in get, hits, context and the inbox; restoring the source clears it everywhere."""
    ground, conclusion = conclude(world)
    assert world.grounds(conclusion).withdrawn == ()
    world.forget(ground, "it was a mistake")
    why = "was forgotten: it was a mistake"
    assert [(one.source, one.reason) for one in world.grounds(conclusion).withdrawn] == [(ground, why)]
    (hit,) = world.read("can the mill run in a drought?")
    assert [one.reason for one in hit.withdrawn] == [why]
    told = f"rests on something that was withdrawn: {ground} {why}"
    text = str(world.context("can the mill run in a drought?"))
    assert told in text
    assert [item.doubts for part in parse(text).recalled for item in part.items] == [(told,)]
    assert [one.entry.id for one in world.inbox().doubtful] == [conclusion]
    world.restore(ground)
    assert (world.grounds(conclusion).withdrawn, world.inbox().doubtful) == ((), ())
    assert "withdrawn" not in str(world.context("can the mill run in a drought?"))


@pytest.mark.parametrize("how", ["replaced", "archived", "ended", "scrubbed", "two steps away"])
def test_every_way_of_closing_flags_what_was_derived(world: Workspace, how: str) -> None:
    """B21: forgotten, replaced, failed its checks, ended in time, removed for good; also through another conclusion."""
    ground, conclusion = conclude(world)
    if how == "replaced":
        new = world.put("workspace", "The mill has a wheel of iron", kind="semantic", supersedes=ground).id
        expected = f"was replaced by {new}"
    elif how == "archived":
        for _ in range(3):
            world.corroborate(ground, "failed", "nobody saw it")
        expected = "no longer holds: nobody saw it; 3 checks in a row failed"
    elif how == "ended":
        end = "The mill has a wheel of ash"
        world.put("workspace", end, kind="semantic", supersedes=ground, valid_at="2027-01-01")
        assert world.grounds(conclusion).withdrawn == ()
        world.ctx.clock.time = world.ctx.clock.time.replace(year=2027, month=2)  # type: ignore[attr-defined]
        expected = "no longer holds: its validity has ended"
    elif how == "scrubbed":
        channel = world.at(channel="general")
        ground = channel.put("channel", "The mill has a wheel of oak", kind="semantic").id
        conclusion = world.put("workspace", "The wheel is hard to replace", derived_from=[ground]).id
        channel.scrub_execute("channel", confirm=channel.scrub_plan("channel").digest)
        expected = "was removed for good"
    else:
        last = world.put("workspace", "So flour is dear in dry years", kind="semantic", derived_from=[conclusion]).id
        world.forget(ground, "wrong")
        ground, conclusion, expected = conclusion, last, f"rests on {ground}, which was forgotten: wrong"
    assert [(one.source, one.reason) for one in world.grounds(conclusion).withdrawn] == [(ground, expected)]
    assert conclusion in [one.entry.id for one in world.inbox().doubtful]


def test_what_lives_on_in_other_words_is_not_withdrawn(memory: Lukasa) -> None:
    """B21: consolidation, promotion and restatement retire a source, and take nothing back."""
    world = memory.workspace("ops", preset="tiered")
    ground, conclusion = conclude(world)
    agent = world.acting(agent="ada").put("workspace", "The harbour faces east", kind="semantic").id
    second = world.put("workspace", "The harbour is calm in a west wind", derived_from=[agent]).id
    assert world.put("workspace", "The harbour faces east", kind="semantic").outcome == "replaced"
    assert world.grounds(second).withdrawn == ()
    talk = world.at(conversation=world.start().id)
    for n in range(4):
        talk.put("conversation", f"Draft {n} of the opening was read aloud", kind="episodic")
    talk.end(talk.ctx.keys["conversation"])
    run(world, "consolidate")
    assert [one.entry.id for one in world.inbox().doubtful] == []
    assert world.grounds(conclusion).withdrawn == ()
    assert ground


def test_the_owner_may_say_that_it_holds_all_the_same(world: Workspace) -> None:
    """B21: approving it in the inbox takes the withdrawn source off; rejecting forgets it."""
    ground, conclusion = conclude(world)
    other = world.put("workspace", "The mill was bought for its wheel", derived_from=[ground]).id
    world.forget(ground)
    assert {one.entry.id for one in world.inbox().doubtful} == {conclusion, other}
    assert world.approve(conclusion).outcome == "confirmed"
    assert world.reject(other).outcome == "forgotten"
    assert world.inbox().doubtful == ()
    assert (world.get(conclusion).derived_from, world.history(conclusion)[0].entry.derived_from) == ((), (ground,))


# Retention


def test_retention_follows_from_what_rests_on_what(house: Workspace, ops: Workspace, memory: Lukasa) -> None:
    """S4: active, referenced, orphaned, tombstoned, each with its reason; what rests on a row comes first."""
    plain = ops.put("persistent", "The pager is on the second floor").id
    source = ops.put("persistent", "The pager is loud", kind="episodic").id
    derived = ops.put("persistent", "The night shift wakes up", kind="semantic", derived_from=[source]).id
    acted = ops.put("persistent", "The second floor is closed", kind="semantic").id
    ops.link_action("move-3", [acted])
    episode = ops.put("persistent", "The guide was read aloud", kind="episodic", links=["guide"]).id
    house.remove_document("guide")
    kept = {id: (str(ops.grounds(id).retention), ops.grounds(id).because) for id in (plain, source, acted, episode)}
    assert kept == {
        plain: ("active", "its scope and its sources are there"),
        source: ("referenced", f"an entry rests on it: {derived}"),
        acted: ("referenced", "an action rests on it: move-3"),
        episode: ("orphaned", "every document that it links to is gone"),
    }
    ops.forget(derived)
    assert ops.grounds(source).retention is Retention.ACTIVE


def test_an_entry_of_an_ended_conversation_is_orphaned(world: Workspace) -> None:
    """S4: what an action rests on stays when its conversation ends; and it says why."""
    talk = world.start()
    here = world.at(conversation=talk.id)
    kept = here.put("conversation", "The reader liked the second ending", kind="episodic").id
    lost = here.put("conversation", "The reader yawned", kind="episodic").id
    world.link_action("publish", [kept])
    world.end(talk.id)
    assert world.grounds(kept).retention is Retention.REFERENCED
    assert world.grounds(lost).retention is Retention.TOMBSTONED
    with pytest.raises(NotFound, match="tombstoned"):
        world.get(lost)
    with pytest.raises(NotFound, match="no entry"):
        world.acting(agent="ada").get(lost)


def test_what_an_ended_session_leaves_is_orphaned(ops: Workspace) -> None:
    """S4: a row that stays when its session ends says that its scope is gone, unless something rests on it."""
    here = ops.at(session="s1")
    left = here.put("session", "The lift was stuck on three", kind="semantic").id
    acted = here.put("session", "The pager was silent all night", kind="semantic").id
    here.link_action("report-2", [acted])
    assert here.grounds(left).retention is Retention.ACTIVE
    here.end_scope("session")
    assert here.grounds(acted).retention is Retention.REFERENCED
    found = here.grounds(left)
    assert (found.retention, found.because) == (Retention.ORPHANED, "its session has ended")


# Surfaces


def test_the_command_line_shows_and_checks(tmp_path: Path) -> None:
    """M9, S4: `get` and `list` show axes, withdrawn sources and retention; `corroborate` records a check."""
    shell = Shell(tmp_path)
    shell.run("document", "add", "guide", "-", "--origin", "board", "--standing", "binding", input=GUIDE)
    fact = shell.json("put", FACT, "--link", "guide")["id"]
    derived = shell.json("put", "Small teams are slow", "--derived-from", fact)["id"]
    shell.run("document", "add", "guide", "-", "--origin", "council", "--standing", "binding", input="Three review.")
    shown = shell.run("get", fact)
    assert "guide · changed · council · current · weight 1 · binding" in shown
    assert f"referenced: an entry rests on it: {derived}" in shown
    assert "a document has moved on" in shown
    assert "referenced" in shell.run("list")
    assert "in doubt" in shell.run("review", "list")
    done = shell.json("corroborate", fact, "--failed", "--reason", "it says three")
    assert (done["outcome"], done["state"]) == ("archived", "archived")
    found = shell.json("get", derived)["grounds"]
    assert found["withdrawn"][0]["reason"] == "no longer holds: it says three; its sources have changed"
    assert "rests on something that was withdrawn" in shell.run("read", "which teams are slow?")
    assert shell.json("list")["entries"][0]["retention"] == "orphaned"
    assert shell.json("corroborate", derived)["outcome"] == "confirmed"


def test_http_and_mcp_show_and_check(memory: Lukasa) -> None:
    """M9: the same over HTTP and MCP; a check that fails needs the capability to forget."""
    world = memory.workspace("novel")
    world.save_document("guide", GUIDE, origin="board", weight=0.7, standing="binding")
    fact = world.put("workspace", FACT, kind="semantic", links=["guide"]).id
    world.forget(world.put("workspace", "Reviewers are scarce", kind="semantic").id)
    world.save_document("guide", "Three people review each change.", origin="council", weight=0.9, standing="draft")
    with running(memory) as server:
        writer, keeper = server.granted("read", "write", name="w"), server.granted("read", "write", "forget", name="k")
        path = f"/v1/workspaces/novel/entries/{fact}"
        grounds = writer.get(path).json["grounds"]
        axes = {name: grounds["provenance"][0][name] for name in ("status", "origin", "weight", "standing")}
        assert axes == {"status": "changed", "origin": "council", "weight": 0.9, "standing": "draft"}
        assert (grounds["awaits_check"], grounds["retention"]) == (True, "active")
        listed = writer.get("/v1/workspaces/novel/entries").json["entries"]
        assert [one["grounds"]["retention"] for one in listed] == ["active"]
        assert writer.post(f"{path}/corroborate", {"outcome": "failed"}).status == 403
        assert writer.post(f"{path}/corroborate").json["outcome"] == "confirmed"
        assert keeper.post(f"{path}/corroborate", {"outcome": "failed"}).json["outcome"] == "doubted"

    async def ask(client: Any) -> Any:
        hits = (await called(client, "memory_read", query="how many reviewers do changes need?"))["hits"]
        return hits, (await called(client, "memory_corroborate", id=fact))["outcome"]

    hits, outcome = session(lambda: beside(memory, lent(memory, "read", "write")), ask)
    assert (hits[0]["provenance"][0]["standing"], outcome) == ("draft", "confirmed")


def test_chat_shows_the_axes_of_a_source(world: Workspace) -> None:
    """M9, S0: what the agent of a chat reads carries the present state of the document, never a copy."""
    world.save_document("guide", GUIDE, origin="board", weight=0.7, standing="binding")
    fact = world.put("workspace", FACT, kind="semantic", links=["guide"]).id
    derived = world.put("workspace", "Reviewers of changes are scarce", derived_from=[fact]).id
    world.forget(fact)
    world.restore(fact)
    world.save_document("guide", GUIDE, origin="council", weight=0.7, standing="draft")
    here = world.at(conversation=world.start().id)
    tools = {tool.name: tool for tool in memory_tools(here)}
    hits = {h["id"]: h for h in json.loads(tools["memory_read"].invoke({"query": "reviewers of changes"}))["hits"]}
    (source,) = hits[fact]["sources"]
    assert (source["status"], source["origin"], source["standing"]) == ("changed", "council", "draft")
    assert "sources" not in hits[derived]
    world.forget(fact, "no longer so")
    again = json.loads(tools["memory_read"].invoke({"query": "who is scarce among reviewers?"}))["hits"]
    assert [h["doubts"] for h in again if h["id"] == derived] == [
        [f"rests on {fact}, which was forgotten: no longer so"]
    ]
