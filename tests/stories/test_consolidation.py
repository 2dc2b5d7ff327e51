"""Consolidation rewrites: sources give way to one entry, links remain, newer changes win, and all can be undone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lukasa import Entry, Kind, Lukasa, Memo, State, Trust, Workspace
from lukasa.model.errors import ChatUnavailable
from lukasa.model.job import JobState
from lukasa.model.telemetry import TelemetryQuery
from lukasa.service.jobs import queue
from lukasa.service.jobs.handlers import run_next
from tests.fakes import FakeEmbedder
from tests.helpers.making import FixedClock
from tests.helpers.processes import finish, fork
from tests.helpers.upkeep import Consolidator, run, same

NOTES = [
    "The blue lantern was carried to the north attic",
    "Ines oiled the hinge of the cellar door",
    "A letter came from the harbour master about the mooring",
]


@pytest.fixture
def embedded(tmp_path: Path, clock: FixedClock) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder=FakeEmbedder(256), clock=clock) as opened:
        yield opened


def notes(world: Workspace, texts: list[str] = NOTES) -> list[str]:
    return [written.id for written in world.put_many("workspace", [Memo(text, kind="episodic") for text in texts])]


def consolidated(world: Workspace) -> list[Entry]:
    return world.entries("workspace", source="consolidation")


def test_notes_of_a_past_day_become_one(world: Workspace, clock: FixedClock) -> None:
    """O5: one entry replaces them, word for word and with links to its sources, which are forgotten."""
    ids = notes(world)
    clock.time += timedelta(days=1)
    assert run(world, "consolidate").result == {"consolidated": 1}
    (entry,) = consolidated(world)
    assert all(text in entry.content for text in NOTES)
    assert (set(entry.derived_from), entry.kind) == (set(ids), Kind.EPISODIC)
    assert {(world.get(id).state, world.get(id).superseded_by) for id in ids} == {(State.FORGOTTEN, entry.id)}
    assert [hit.id for hit in world.read("who oiled the hinge?")] == [entry.id]
    assert world.ledger(entry.id)[-1].action == "entry.consolidated"


def test_one_step_undoes_a_consolidation(world: Workspace, clock: FixedClock) -> None:
    """O5, B3: undoing the new entry restores all that it was made from, exactly."""
    ids = notes(world)
    before = [same(world.get(id)) for id in ids]
    clock.time += timedelta(days=1)
    run(world, "consolidate")
    (entry,) = consolidated(world)
    done = world.undo(entry.id)
    assert set(done.ids) == {entry.id, *ids}
    assert [same(world.get(id)) for id in ids] == before
    assert world.get(entry.id).state is State.FORGOTTEN


def test_forgetting_the_result_does_not_bring_the_notes_back(world: Workspace, clock: FixedClock) -> None:
    """B3: whoever forgets what was made of notes does not want it again in other words."""
    ids = notes(world)
    clock.time += timedelta(days=1)
    run(world, "consolidate")
    (entry,) = consolidated(world)
    assert world.forget(entry.id).reopened == ()
    assert {world.get(id).state for id in ids} == {State.FORGOTTEN}


def test_what_is_under_way_is_left_alone(world: Workspace) -> None:
    """O5: today's notes and those of an open conversation are not history yet."""
    notes(world)
    talk = world.at(conversation=world.start().id)
    notes(talk, [f"{text}, says the log" for text in NOTES])
    assert run(world, "consolidate").result == {}


def test_trust_is_not_mixed(world: Workspace, clock: FixedClock) -> None:
    """B2: a note of lower trust is not compounded with others, whose trust it would lower."""
    notes(world)
    page = world.acting(principal="web", trust=Trust.UNTRUSTED)
    other = notes(page, ["A page claims that the mill stands empty"])[0]
    clock.time += timedelta(days=1)
    run(world, "consolidate")
    (entry,) = consolidated(world)
    assert (entry.trust, world.get(other).state) == (Trust.AUTHOR, State.ACTIVE)


def test_a_run_is_taken_up_where_it_stopped(world: Workspace, clock: FixedClock) -> None:
    """O5: a run that dies between two groups leaves a coherent tier; the next attempt does the rest, once."""
    first = notes(world)
    clock.time += timedelta(days=1)
    second = notes(world, [f"{text} again, in the snow" for text in NOTES])
    clock.time += timedelta(days=1)
    job = queue.ask(world.ctx, "consolidate")
    chat = Consolidator(say=_dies_at(2))
    run_next(world.ctx, chat=chat)
    assert {world.get(id).state for id in first} == {State.FORGOTTEN}
    assert {world.get(id).state for id in second} == {State.ACTIVE}
    clock.time += timedelta(hours=1)
    done = queue.work(world.ctx, job, chat=chat)
    assert (done.state, done.result) == (JobState.DONE, {"consolidated": 2})
    assert len(consolidated(world)) == 2


def _dies_at(call: int):  # type: ignore[no-untyped-def]
    seen: list[int] = []

    def say(given: list[dict[str, object]]) -> str:
        seen.append(1)
        if len(seen) == call:
            raise ChatUnavailable("the line is dead")
        return "; ".join(str(note["text"]) for note in given)

    return say


def test_a_model_joins_related_facts(embedded: Lukasa) -> None:
    """O5: facts about one thing become one statement; what the model leaves out of its sources stays."""
    world = embedded.workspace("house")
    facts = [
        "The blue lantern of the north attic burns lamp oil",
        "The blue lantern of the north attic burns lamp oil since the storm broke its glass",
    ]
    ids = [w.id for w in world.put_many("workspace", [Memo(fact, kind="semantic") for fact in facts])]
    other = world.put("workspace", "Ines prefers tea at noon", kind="semantic").id
    chat = Consolidator(say=lambda given: "The blue lantern of the north attic burns lamp oil since the storm")
    assert run(world, "consolidate", chat=chat).result == {"consolidated": 1}
    (entry,) = consolidated(world)
    assert set(entry.derived_from) == set(ids)
    assert entry.trust is Trust.AGENT  # in a model's words, no more than a model
    assert world.get(other).state is State.ACTIVE


def test_what_a_model_invents_is_not_stored(world: Workspace, clock: FixedClock) -> None:
    """O5, T1: names and numbers that no source has are refused; the notes stay, and it is told why."""
    ids = notes(world)
    clock.time += timedelta(days=1)
    chat = Consolidator(say=lambda given: "The lantern was sold to Malachar for 40 crowns")
    assert run(world, "consolidate", chat=chat).result == {"dropped": 1}
    assert {world.get(id).state for id in ids} == {State.ACTIVE}
    (event,) = world.ctx.local.events(action="decision.dropped")
    assert "malachar" in event.detail["cause"]
    assert len(world.ctx.local.points(TelemetryQuery(action="decision.dropped"))) == 1


@pytest.mark.parametrize(
    ("sources", "text", "cause"),
    [
        (
            ["The cellar door of the mill squeaks", "The cellar door of the mill squeaks in winter"],
            "The cellar door of the mill squeaks in winter and must be replaced",
            "words that none of its sources has",
        ),
        (
            ["The cellar door of the mill is not locked", "The cellar door of the mill is not locked at night"],
            "The cellar door of the mill is locked at night",
            "denies nothing",
        ),
    ],
)
def test_a_rewrite_says_only_what_its_sources_say(embedded: Lukasa, sources: list[str], text: str, cause: str) -> None:
    """O5: words without support, or a lost negation: the rewrite is dropped with the reason, and its sources stay."""
    world = embedded.workspace("mill")
    ids = [w.id for w in world.put_many("workspace", [Memo(source, kind="semantic") for source in sources])]
    assert run(world, "consolidate", chat=Consolidator(say=lambda given: text)).result == {"dropped": 1}
    assert {world.get(id).state for id in ids} == {State.ACTIVE}
    (event,) = world.ctx.local.events(action="decision.dropped")
    assert cause in event.detail["cause"]


def test_a_model_never_sees_entries_of_two_trusts_together(embedded: Lukasa) -> None:
    """O5, T1: it could take its words from an entry that it does not name as a source."""
    world = embedded.workspace("mill")
    texts = ["The wheel of the mill turns in spring", "The wheel of the mill turns in spring and autumn"]
    world.put_many("workspace", [Memo(text, kind="semantic") for text in texts])
    stranger = world.acting(trust=Trust.UNTRUSTED)
    stranger.put("workspace", "The wheel of the mill turns in spring and autumn and by night", kind="semantic")
    shown: list[list[str]] = []

    def say(notes: list[dict[str, Any]]) -> str:
        shown.append(sorted(note["text"] for note in notes))
        return texts[1]

    run(world, "consolidate", chat=Consolidator(say=say))
    assert shown == [sorted(texts)]
    assert [entry.trust for entry in consolidated(world)] == [Trust.AGENT]


def test_a_slow_model_never_clobbers(embedded: Lukasa, clock: FixedClock, tmp_path: Path) -> None:
    """T04: what others change while a model thinks stands; its decision is applied whole by version, or dropped."""
    world = embedded.workspace("house")
    groups = [notes(world, [f"Day {day}: {text}" for text in NOTES]) for day in _days(clock, 4)]
    gate = threading.Event()
    chat = Consolidator(gate=gate)
    job = queue.ask(world.ctx, "consolidate")
    worker = threading.Thread(target=run_next, args=(world.ctx,), kwargs={"chat": chat})
    worker.start()
    assert chat.asked.wait(60)

    edited, deleted, pinned, untouched = groups
    threads = [threading.Thread(target=_meddle, args=(world, edited, n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    child = fork(lambda: _elsewhere(tmp_path / "data", deleted, pinned))
    assert finish(child) == 0
    added = [e.id for e in world.entries("workspace", limit=1000) if "meddling" in e.tags]
    edits = {id: world.get(id) for id in [*edited, *deleted, *pinned]}
    gate.set()
    worker.join(60)
    assert not worker.is_alive()

    assert {id: world.get(id) for id in edits} == edits  # no newer change was lost, and what was deleted stays so
    assert {world.get(id).state for id in deleted} == {State.FORGOTTEN}
    assert all(world.get(id).state is State.ACTIVE for id in added)
    result = world.ctx.local.job(job.id)
    assert result is not None
    assert (result.state, result.result) == (JobState.DONE, {"consolidated": 1, "dropped": 3})
    dropped = world.ctx.local.events(action="decision.dropped")
    assert len(dropped) == 3
    assert all(event.detail["cause"] for event in dropped)
    (entry,) = consolidated(world)
    assert set(entry.derived_from) == set(untouched)
    for id in untouched:  # every removal in the background has its event, and one undo
        assert world.ledger(id)[-1].action == "entry.forgotten"
    world.undo(entry.id)
    assert {world.get(id).state for id in untouched} == {State.ACTIVE}


def _days(clock: FixedClock, count: int) -> Iterator[int]:
    for day in range(count):
        yield day
        clock.time += timedelta(days=1)


def _meddle(world: Workspace, ids: list[str], number: int) -> None:
    """Fifty changes by one thread: half of them new entries, half edits of what the model is thinking about."""
    for n in range(25):
        text = f"Thread {number} saw goose {n} on pond {number * 100 + n}"
        world.put("workspace", text, kind="episodic", tags=["meddling"])
        world.update(ids[n % len(ids)], importance=round(0.1 + n / 100 + number / 10, 3))


def _elsewhere(data: Path, deleted: list[str], pinned: list[str]) -> None:
    """Another process deletes some of them and pins others."""
    with Lukasa.open(data, embedder=FakeEmbedder(256)) as memory:
        world = memory.workspace("house")
        for id in deleted:
            world.forget(id, "not wanted")
        for id in pinned:
            world.update(id, importance=1.0, tags=["pinned"])
