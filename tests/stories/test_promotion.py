"""Promotion and disposition: what rises, by which spec value, and what waits for a person."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from lukasa import Entry, Kind, Lukasa, Memo, State, Trust, Workspace
from lukasa.model.errors import InvalidInput, InvalidTransition, Refused
from lukasa.model.transcript import Quote
from lukasa.spec import preset_text
from tests.fakes import FakeEmbedder
from tests.helpers.making import FixedClock
from tests.helpers.upkeep import run, same

SEEN = "The night shift restarts the ingest service by hand"


@pytest.fixture
def ops(memory: Lukasa) -> Workspace:
    return memory.workspace("ops", preset="anchored").at(org_id="acme", domain_id="ops")


def test_enough_independent_observations_make_a_fact(ops: Workspace) -> None:
    """W8: an episode that three sessions bear out becomes semantic, through the gate; two are not enough."""
    often = _seen(ops, SEEN, "t1", "t2", "t3")
    rarely = _seen(ops, "The day shift forgets to rotate the paper log", "t1", "t2")
    assert run(ops, "consolidate").result == {"promoted": 1}
    assert (ops.get(often).kind, ops.get(rarely).kind) == (Kind.SEMANTIC, Kind.EPISODIC)
    event = ops.ledger(often)[-1]
    assert (event.action, "3 independent observations" in event.detail["cause"]) == ("entry.promoted", True)


def _seen(world: Workspace, text: str, *transcripts: str) -> str:
    evidence = [Quote(transcript, "m1", 0, 9) for transcript in transcripts]
    return world.put_many("persistent", [Memo(text, kind="episodic", evidence=evidence)])[0].id


def test_one_voice_many_times_is_one_observation(ops: Workspace) -> None:
    """W8, B2: repeating something does not corroborate it."""
    id = ops.put("persistent", SEEN, kind="episodic").id
    for _ in range(5):
        ops.put("persistent", SEEN, kind="episodic")
    assert ops.get(id).merged_count == 6
    assert run(ops, "consolidate").result == {}


def test_principals_corroborate_one_another(tmp_path: Path, clock: FixedClock) -> None:
    """W8: notes of three principals that say the same become one fact, trusted as the least of them; undo splits it."""
    with Lukasa.open(tmp_path, embedder=FakeEmbedder(256), clock=clock) as memory:
        ops = memory.workspace("ops", preset="anchored").at(org_id="acme", domain_id="ops")
        texts = [f"{SEEN}", f"{SEEN} now", f"Actually {SEEN[0].lower()}{SEEN[1:]}"]
        agents = [ops.acting(principal=f"agent-{n}", trust=Trust.AGENT) for n in range(3)]
        ids = _apart(agents, texts)
        before = [same(ops.get(id)) for id in ids]
        clock.time += timedelta(hours=1)
        job = run(ops, "consolidate")
        assert job.result == {"promoted": 1}
        facts = [e for e in ops.entries("persistent") if e.kind is Kind.SEMANTIC]
        assert [(e.trust, e.state) for e in facts] == [(Trust.AGENT, State.ACTIVE)]
        assert sorted(str(ops.get(id).state) for id in ids) == ["active", "superseded", "superseded"]
        memory.workspace("ops").undo(job.id)
        assert [same(ops.get(id)) for id in ids] == before


def _apart(worlds: list[Workspace], texts: list[str]) -> list[str]:
    """Entries that say the same and were not merged when written, as from stores that were apart."""
    written = [
        w.put("persistent", f"placeholder {n} nothing alike {n * 77}", kind="episodic") for n, w in enumerate(worlds)
    ]
    for done, text in zip(written, texts, strict=True):
        worlds[0].update(done.id, content=text)
    return [done.id for done in written]


def test_the_gate_applies_where_a_fact_is_made(ops: Workspace) -> None:
    """W6, W8: identifiers are stripped on the way into the persistent tier, and the ledger says so."""
    id = _seen(ops, "Mail from ines@example.org restarts the ingest service", "t1", "t2", "t3")
    run(ops, "consolidate")
    assert "ines@example.org" not in ops.get(id).content
    assert any(step.get("strip_identifiers") for e in ops.ledger(id) for step in e.detail["ledger"])


def test_a_fact_that_outlived_its_source_rises(memory: Lukasa) -> None:
    """W8: a fact rises once its document has moved on and it was confirmed against that, and not if it is gone."""
    world = memory.workspace("project")
    channel = world.at(channel="general")
    world.save_document("guide", "Version one of the guide.")
    world.save_document("gone", "A page that will vanish.")
    lasting = channel.put("channel", "The guide asks for two reviewers", kind="semantic", links=["guide"]).id
    orphan = channel.put("channel", "The page names a deadline in May", kind="semantic", links=["gone"]).id
    assert run(world, "consolidate").result == {}
    world.save_document("guide", "Version two of the guide.")
    world.save_document("gone", "Second version.")
    world.remove_document("gone")
    assert run(world, "consolidate").result == {}
    world.corroborate(lasting)
    world.corroborate(orphan)
    before = same(world.get(lasting))
    assert run(world, "consolidate").result == {"promoted": 1}
    (risen,) = world.entries("workspace")
    assert (risen.content, risen.derived_from, risen.trust) == (before.content, (lasting,), before.trust)
    assert (world.get(lasting).state, world.get(lasting).superseded_by) == (State.SUPERSEDED, risen.id)
    assert world.get(orphan).state is State.ACTIVE
    world.undo(risen.id)
    assert same(world.get(lasting)) == before


def test_nothing_promotes_procedures(memory: Lukasa) -> None:
    """W8: whatever a spec says, procedural memory is the durable form and stays where it is."""
    old = 'to = ""\nreason = "A tier is fixed'
    text = preset_text("tiered")
    assert old in text
    rule = 'to = "next"\nmin_access = 1\nmin_versions = 0\nmin_observations = 0\nreason = "A tier is fixed'
    world = memory.workspace("p", spec=text.replace(old, rule))
    channel = world.at(channel="general")
    habit = channel.put("channel", "Always run the linter before a commit", kind="procedural").id
    fact = channel.put("channel", "The linter is called ruff", kind="semantic").id
    for _ in range(3):
        channel.read("linter")
    run(world, "consolidate")
    assert (world.get(habit).state, world.get(fact).state) == (State.ACTIVE, State.SUPERSEDED)


# Disposition


@pytest.fixture
def faded(ops: Workspace, clock: FixedClock) -> Entry:
    id = ops.put("persistent", SEEN, kind="episodic").id
    assert ops.dispositions() == []
    clock.time += timedelta(days=60)
    return ops.get(id)


def test_what_has_faded_waits_and_is_not_lost(ops: Workspace, faded: Entry) -> None:
    """D3: below the threshold an entry is in the queue, and still found."""
    (waiting,) = ops.dispositions()
    assert (waiting.id, waiting.relevance < 0.1) == (faded.id, True)
    run(ops, "maintain")
    assert [hit.id for hit in ops.read("who restarts the ingest service?")] == [faded.id]


@pytest.mark.parametrize(
    ("how", "state", "kind"),
    [
        ("promote", State.ACTIVE, Kind.SEMANTIC),
        ("exempt", State.ACTIVE, Kind.EPISODIC),
        ("archive", State.ARCHIVED, Kind.EPISODIC),
    ],
)
def test_a_disposition_empties_the_queue(ops: Workspace, faded: Entry, how: str, state: State, kind: Kind) -> None:
    """D3: promoted, exempted or archived, each with its event; and it can be undone."""
    done = ops.dispose(faded.id, how, "looked at it")
    assert done.entry is not None
    assert (done.entry.state, done.entry.kind) == (state, kind)
    assert ops.dispositions() == []
    assert ops.ledger(faded.id)[-1].detail["cause"] == "looked at it"
    ops.undo(faded.id)
    assert [w.id for w in ops.dispositions()] == [faded.id]


def test_an_exempt_entry_does_not_fade(ops: Workspace, faded: Entry) -> None:
    """D3: its relevance is what it was when it was written."""
    ops.dispose(faded.id, "exempt")
    assert ops.standing(faded.id).decay == 1.0


def test_who_may_dispose_of_what(ops: Workspace, faded: Entry) -> None:
    """D3, W9: the author, of episodic memory under a forcing decay, in one of three ways."""
    with pytest.raises(Refused):
        ops.acting(agent="helper").dispose(faded.id, "archive")
    with pytest.raises(InvalidInput):
        ops.dispose(faded.id, "burn")
    with pytest.raises(InvalidTransition):
        ops.dispose(ops.put("persistent", "The ingest service is called Brook", kind="semantic").id, "archive")
