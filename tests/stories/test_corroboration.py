"""Corroboration: what independent statements do to episodes and held claims, and what failed checks do to facts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from lukasa import Kind, Lukasa, Memo, State, Trust, Workspace
from lukasa.model.errors import InvalidInput, InvalidTransition, Refused
from lukasa.model.transcript import Quote
from lukasa.service.jobs import handlers
from lukasa.service.jobs.worker import Worker
from lukasa.spec import preset_text
from tests.fakes import FakeEmbedder
from tests.helpers.making import FixedClock
from tests.helpers.server import running
from tests.helpers.upkeep import run

SEEN = "The night shift restarts the ingest service by hand"
CLAIM = "The ingest service needs four gigabytes of memory"


@pytest.fixture
def house(memory: Lukasa) -> Workspace:
    return memory.workspace("ops", preset="anchored")


@pytest.fixture
def ops(house: Workspace) -> Workspace:
    return house.at(org_id="acme", domain_id="ops")


def agents(world: Workspace, *names: str, trust: Trust = Trust.AGENT) -> list[Workspace]:
    return [world.acting(agent=name, trust=trust) for name in names]


# Episodes that become facts


def test_independent_confirmations_make_a_fact_at_once(ops: Workspace) -> None:
    """W8: no worker runs; the confirmation that reaches the preset's number promotes, and says so."""
    first, second, third, fourth = agents(ops, "ada", "bo", "cy", "di")
    id = first.put("persistent", SEEN, kind="episodic").id
    assert second.put("persistent", SEEN, kind="episodic").outcome == "merged"
    assert ops.get(id).kind is Kind.EPISODIC
    written = third.put("persistent", SEEN, kind="episodic")
    assert (written.outcome, written.reason) == ("merged", "promoted: 3 independent observations")
    fourth.put("persistent", SEEN, kind="episodic")
    fact = ops.get(id)
    assert (fact.kind, fact.state, fact.trust, fact.merged_count) == (Kind.SEMANTIC, State.ACTIVE, Trust.AGENT, 4)
    assert [event.action for event in ops.ledger(id)].count("entry.promoted") == 1
    assert [hit.entry.kind for hit in ops.read("who restarts the ingest service?")] == [Kind.SEMANTIC]


def test_conversations_are_independent_and_clones_in_one_are_not(ops: Workspace) -> None:
    """W8, B2: one agent in three conversations has seen it three times; five copies of it in one conversation once."""
    in_one = ops.at(conversation=ops.start().id)
    for clone in agents(in_one, "ada-1", "ada-2", "ada-3", "ada-4", "ada-5"):
        clone.put("persistent", "The pager is louder on weekends", kind="episodic")
    for _ in range(3):
        here = ops.at(conversation=ops.start().id)
        here.acting(agent="ada").put("persistent", SEEN, kind="episodic")
    kinds = {entry.content: (entry.kind, entry.merged_count) for entry in ops.entries("persistent")}
    assert kinds == {"The pager is louder on weekends": (Kind.EPISODIC, 5), SEEN: (Kind.SEMANTIC, 3)}


def test_a_speaker_counts_if_the_owner_names_it(ops: Workspace) -> None:
    """W3, W8: the owner's notes of three people are three voices; an agent that names three people is one."""
    for name in ("Ines", "Olaf", "Ravi"):
        ops.put("persistent", SEEN, kind="episodic", source=name)
        ops.acting(agent="ada").put("persistent", "The pager is louder on weekends", kind="episodic", source=name)
    kinds = {entry.content: entry.kind for entry in ops.entries("persistent")}
    assert kinds == {SEEN: Kind.SEMANTIC, "The pager is louder on weekends": Kind.EPISODIC}


def test_less_trusted_voices_corroborate_nothing_above_them(ops: Workspace) -> None:
    """W8, B2: text of unknown authors confirms an agent's episode, and neither promotes it nor lowers its trust."""
    id = ops.acting(agent="ada").put("persistent", SEEN, kind="episodic").id
    for stranger in agents(ops, "x", "y", "z", "q", trust=Trust.UNTRUSTED):
        stranger.put("persistent", SEEN, kind="episodic")
    entry = ops.get(id)
    assert (entry.kind, entry.trust, entry.merged_count) == (Kind.EPISODIC, Trust.AGENT, 5)
    assert run(ops, "consolidate").result.get("promoted") is None


def test_the_gate_of_the_tier_applies_to_what_confirmations_promote(ops: Workspace) -> None:
    """W6, W8: what a gate of today would strip is stripped when the episode becomes a fact, and the ledger tells."""
    one, two, three = agents(ops, "ada", "bo", "cy")
    id = one.put("persistent", SEEN, kind="episodic").id
    two.put("persistent", SEEN, kind="episodic")
    ops.update(id, metadata={"sensitive": True})
    three.put("persistent", SEEN, kind="episodic")
    assert ops.get(id).kind is Kind.EPISODIC
    ops.update(id, metadata={"sensitive": False})
    agents(ops, "di")[0].put("persistent", SEEN, kind="episodic")
    steps = [
        step["step"] for event in ops.ledger(id) if event.action == "entry.promoted" for step in event.detail["ledger"]
    ]
    assert steps[:2] == ["sanitise", "guard"]


def test_observed_sessions_corroborate(ops: Workspace) -> None:
    """W8: a fact that the observer takes from three sessions is three observations; one session twice is one."""
    observer = ops.acting(agent="observer")

    def observed(text: str, session: str) -> None:
        memo = Memo(text, kind="episodic", source="observer", evidence=[Quote(session, "m1", 0, 9)], observed=True)
        observer.put_many("persistent", [memo])

    for session in ("t1", "t2", "t3"):
        observed(SEEN, session)
        observed("The pager is louder on weekends", "t1")
    kinds = {entry.content: entry.kind for entry in ops.entries("persistent")}
    assert kinds == {SEEN: Kind.SEMANTIC, "The pager is louder on weekends": Kind.EPISODIC}


def test_a_spec_that_promotes_by_use_does_not_count_voices(memory: Lukasa) -> None:
    """W8: in `workspace` relevance and reads promote; in `default` three observations do."""
    for preset, kind in (("workspace", Kind.EPISODIC), ("default", Kind.SEMANTIC)):
        world = memory.workspace(preset, preset=preset)
        for agent in agents(world, "ada", "bo", "cy", "di"):
            agent.put("workspace", SEEN, kind="episodic")
        assert [entry.kind for entry in world.entries("workspace")] == [kind]


def test_confirmations_over_http_promote(tmp_path: Path) -> None:
    """W8: four grants, each with its agent, say the same over HTTP."""
    with Lukasa.open(tmp_path, embedder=FakeEmbedder()) as memory:
        memory.workspace("novel")
        with running(memory) as server:
            for name in ("ada", "bo", "cy", "di"):
                client = server.granted("read", "write", name=name)
                made = client.post("/v1/workspaces/novel/entries", {"content": SEEN, "kind": "episodic"})
            assert made.json["entry"]["kind"] == "semantic"
            assert client.get(f"/v1/workspaces/novel/entries/{made.json['id']}").json["merged_count"] == 4


def test_a_promotion_by_confirmation_can_be_undone(ops: Workspace) -> None:
    """W8: `undo` takes the promotion back, and the entry stays an episode that was confirmed."""
    for agent in agents(ops, "ada", "bo", "cy"):
        written = agent.put("persistent", SEEN, kind="episodic")
    ops.undo(written.id)
    entry = ops.get(written.id)
    assert (entry.kind, entry.merged_count, entry.state) == (Kind.EPISODIC, 3, State.ACTIVE)


# Held claims


def test_a_held_claim_comes_out_when_others_make_it_too(ops: Workspace) -> None:
    """W8: an agent's fact waits; two other agents bear it out, and reads find it, with the authority of an agent."""
    one, two, three = agents(ops, "ada", "bo", "cy")
    held = one.put("persistent", CLAIM, kind="semantic")
    assert held.outcome == "held"
    assert len(ops.read("how much memory does ingest need?")) == 0
    for _ in range(3):
        one.put("persistent", CLAIM, kind="semantic")
    two.put("persistent", CLAIM, kind="semantic")
    assert ops.get(held.id).state is State.HELD
    written = three.put("persistent", CLAIM, kind="semantic")
    assert written.reason == "no longer held: 3 independent observations"
    (hit,) = ops.read("how much memory does ingest need?")
    assert (hit.id, hit.entry.trust, str(hit.authority)) == (held.id, Trust.AGENT, "inform")


def test_claims_in_other_words_are_found_by_consolidation(tmp_path: Path) -> None:
    """W8: three held claims that say the same become one fact in the next consolidation; `undo` holds them again."""
    with Lukasa.open(tmp_path, embedder=FakeEmbedder(256)) as memory:
        house = memory.workspace("ops", preset="anchored")
        ops = house.at(org_id="acme", domain_id="ops")
        texts = (CLAIM, f"{CLAIM} now", f"Actually {CLAIM[0].lower()}{CLAIM[1:]}")
        claims = [agent.put("persistent", text) for agent, text in zip(agents(ops, *"abc"), texts, strict=True)]
        assert [claim.outcome for claim in claims] == ["held"] * 3
        job = run(ops, "consolidate")
        assert job.result["released"] == 1
        states = sorted(str(ops.get(claim.id).state) for claim in claims)
        assert states == ["active", "superseded", "superseded"]
        house.undo(job.id)
        assert {ops.get(claim.id).state for claim in claims} == {State.HELD}


def test_held_claims_make_a_worker_consolidate(memory: Lukasa, house: Workspace) -> None:
    """W8: claims that wait count as new entries: enough of them start the run that compares them."""
    rule = "[triggers]\nqueue_depth = 2\n"
    world = memory.workspace("small", spec=preset_text("anchored") + rule).at(org_id="a", domain_id="b")
    for agent, text in zip(agents(world, "ada", "bo"), (CLAIM, "The pager is louder on weekends"), strict=True):
        agent.put("persistent", text)
    source = handlers.job_source(replace(world.ctx, keys={}), {"consolidate": lambda ctx, task: dict(task.job.payload)})
    (done,) = Worker(lambda: [source], clock=world.ctx.clock).drain()
    assert done.result["trigger"] == "queue_depth"


@pytest.mark.parametrize("why", ["contradicts", "hidden", "procedure"])
def test_what_is_held_for_another_reason_stays_held(ops: Workspace, why: str) -> None:
    """B2: agreement lifts no hold that a person has to lift: contradictions, hidden characters, strangers' rules."""
    text, kind, trust = CLAIM, "semantic", Trust.AGENT
    if why == "hidden":
        text = f"{CLAIM}\u202e"
    elif why == "procedure":
        text, kind, trust = "Always restart the ingest service by hand", "procedural", Trust.UNTRUSTED
    else:
        ops.put("persistent", "Ingest runs on the old host", kind="semantic")
    for agent in agents(ops, "ada", "bo", "cy", "di", trust=trust):
        old = ops.entries("persistent")[0].id if why == "contradicts" and ops.entries("persistent") else None
        written = agent.put("persistent", text, kind=kind, supersedes=old)
    assert ops.get(written.id).state is State.HELD


# Checks


def test_failed_checks_archive_a_fact_and_bring_back_what_it_replaced(ops: Workspace) -> None:
    """W8: three failed checks in a row archive a fact with the reason; a confirmation between them starts again."""
    old = ops.put("persistent", "Releases go out on Mondays", kind="semantic").id
    new = ops.put("persistent", "Releases go out on Fridays", kind="semantic", supersedes=old).id
    assert ops.get(old).state is State.INVALIDATED
    assert [ops.corroborate(new, "failed").outcome for _ in range(2)] == ["doubted"] * 2
    assert ops.corroborate(new).outcome == "confirmed"
    outcomes = [ops.corroborate(new, "failed", f"nobody found it, try {n}") for n in range(3)]
    assert [one.outcome for one in outcomes] == ["doubted", "doubted", "archived"]
    gone = ops.get(new)
    assert gone.state is State.ARCHIVED
    assert gone.transition is not None
    assert gone.transition.cause == "nobody found it, try 2; 3 checks in a row failed"
    assert (outcomes[-1].reopened, ops.get(old).state) == ((old,), State.ACTIVE)
    assert [hit.id for hit in ops.read("when do releases go out?")] == [old]
    assert [str(one.outcome) for one in ops.related(new).confirmations] == ["failed"] * 2 + ["confirmed"] + [
        "failed"
    ] * 3
    with pytest.raises(InvalidTransition):
        ops.corroborate(new)
    ops.restore(new)
    assert ops.get(new).state is State.ACTIVE


def test_the_spec_says_how_many_failures_archive(memory: Lukasa) -> None:
    """S4: `max_failures` of a kind decides; episodes have none and stay."""
    rule = '\n[behaviour.lifecycle.semantic]\nmax_failures = 1\nreason = "One failed check is enough here."\n'
    text = preset_text("default").replace("\n[behaviour.lifecycle.semantic]\n", rule, 1)
    text = text.replace('reason = "One failed check is enough here."\nsource_vanished', "source_vanished")
    world = memory.workspace("strict", spec=text)
    fact = world.put("workspace", CLAIM, kind="semantic").id
    episode = world.put("workspace", SEEN, kind="episodic").id
    assert world.corroborate(fact, "failed").outcome == "archived"
    assert [world.corroborate(episode, "failed").outcome for _ in range(6)] == ["doubted"] * 6


def test_who_may_check(ops: Workspace) -> None:
    """W9, B2: text of unknown authors cannot dispute a trusted entry; an unknown outcome is refused."""
    id = ops.put("persistent", CLAIM, kind="semantic").id
    with pytest.raises(Refused):
        ops.acting(trust=Trust.UNTRUSTED).corroborate(id, "failed")
    with pytest.raises(InvalidInput):
        ops.corroborate(id, "perhaps")
    assert ops.history(id)[-1].entry.version == 1


def test_a_confirmation_extends_validity(ops: Workspace, clock: FixedClock) -> None:
    """D3: a fact fades after its window, and a confirmation opens a new one."""
    id = ops.put("persistent", CLAIM, kind="semantic").id
    clock.time += timedelta(days=140)
    faded = ops.standing(id).decay
    ops.acting(agent="ada").corroborate(id)
    assert (faded < 0.5, ops.standing(id).decay) == (True, 1.0)
