"""Background work as users see it: triggers that fire, jobs that can be looked at, retried and given up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.errors import InvalidInput, InvalidTransition, NotFound, Refused
from lukasa.model.job import JobDraft, JobState
from lukasa.model.telemetry import TelemetryQuery
from lukasa.model.values import Trust
from lukasa.service import jobs
from lukasa.service.call import CallContext
from lukasa.service.jobs.task import Task
from lukasa.service.jobs.worker import Trouble, Worker
from lukasa.spec.load import preset_text
from lukasa.spec.types import TriggerRules
from lukasa.storage.operations import Enqueue
from tests.fakes import FakeEmbedder
from tests.helpers.making import FixedClock

QUEUE_DEPTH = TriggerRules().queue_depth
IDLE = timedelta(minutes=TriggerRules().idle_minutes)
Work = Callable[[CallContext, Task], dict[str, Any]]


def noted(ctx: CallContext, task: Task) -> dict[str, Any]:
    return {"trigger": task.job.payload.get("trigger", "")}


def worker(world: Workspace, **handlers: Work) -> Worker:
    here = jobs.handlers.job_source(world.ctx, handlers)
    return Worker(lambda: [here], clock=world.ctx.clock)


def ask_for(world: Workspace, kind: str = "nothing", key: str = "k") -> None:
    world.ctx.apply(world.ctx.local, Enqueue(JobDraft(kind, key)))


# Triggers


def test_a_conversation_that_ends_asks_for_its_consolidation(memory: Lukasa) -> None:
    """O5: in the transaction of the end, once however often it is ended; a spec without the trigger asks for none."""
    world = memory.workspace("novel", preset="tiered")
    talk = world.start()
    world.end(talk.id)
    world.end(talk.id)
    (job,) = world.jobs()
    asked = {"trigger": "session_close", "conversation": talk.id}
    assert (job.kind, job.payload) == ("consolidate", asked)
    other = memory.workspace("other", preset="workspace")
    other.end(other.start().id)
    assert other.jobs() == []


def test_what_piles_up_is_consolidated(memory: Lukasa) -> None:
    """O5: queue depth; asked for once, and again when as much has come since."""
    world = memory.workspace("novel", preset="tiered")
    w = worker(world, consolidate=noted)

    def fill(tag: str, count: int) -> None:
        world.put_many("workspace", [f"Fact {n} of {tag} concerns castle number {n} of {tag}" for n in range(count)])

    fill("spring", QUEUE_DEPTH - 1)
    assert w.drain() == []
    fill("summer", 1)
    assert [run.result for run in w.drain()] == [{"trigger": "queue_depth"}]
    assert w.drain() == []
    fill("autumn", QUEUE_DEPTH)
    assert [run.result for run in w.drain()] == [{"trigger": "queue_depth"}]


def test_a_spec_says_how_much_piles_up(memory: Lukasa) -> None:
    """O5: with a depth of three it fires after the third."""
    text = preset_text("tiered").replace("[triggers]\n", "[triggers]\nqueue_depth = 3\n")
    world = memory.workspace("novel", spec=text)
    w = worker(world, consolidate=noted)
    world.put_many("workspace", ["The first castle lies in the north", "The second castle has no roof"])
    assert w.drain() == []
    world.put("workspace", "The third castle was never built")
    assert [run.result for run in w.drain()] == [{"trigger": "queue_depth"}]


def test_an_idle_memory_is_consolidated_once(memory: Lukasa, clock: FixedClock) -> None:
    """O5: when nothing has changed for a while; what consolidation itself changes does not call for another."""
    world = memory.workspace("novel", preset="tiered")
    world.put("workspace", "The villain is called Malachar")

    def consolidate(ctx: CallContext, task: Task) -> dict[str, Any]:
        found = ctx.local.events(action="entry.put")[0].subject
        Workspace(ctx).update(found, importance=0.9)
        return noted(ctx, task)

    w = worker(world, consolidate=consolidate)
    assert w.drain() == []
    clock.time += IDLE
    assert [run.result for run in w.drain()] == [{"trigger": "idle"}]
    clock.time += IDLE
    assert w.drain() == []
    world.put("workspace", "The heroine is called Ysolde")
    clock.time += IDLE
    assert [run.result for run in w.drain()] == [{"trigger": "idle"}]


def test_a_schedule_catches_up_once(memory: Lukasa, clock: FixedClock) -> None:
    """O5: after a month without a worker there is one daily run, not thirty, however many workers look."""
    world = memory.workspace("novel", preset="workspace")
    clock.time += timedelta(days=30)
    first, second = (worker(world, consolidate=noted) for _ in range(2))
    assert [run.result for run in (*first.drain(), *second.drain())] == [{"trigger": "schedule:daily"}]
    assert first.drain() == []
    clock.time += timedelta(days=1)
    assert len(second.drain()) == 1


def test_missing_vectors_come_by_themselves(tmp_path: Path, clock: FixedClock) -> None:
    """O8: fifty a run, one run in half an hour; without an embedder quietly nothing."""
    with Lukasa.open(tmp_path, embedder="none", clock=clock) as bare:
        world = bare.workspace("novel")
        texts = [f"Castle number {n} has a moat of its own colour {n}" for n in range(jobs.handlers.BATCH + 10)]
        world.put_many("workspace", texts)
        assert filled(bare) == []
    with Lukasa.open(tmp_path, embedder=FakeEmbedder(256), clock=clock) as memory:
        assert filled(memory) == [{"embedded": jobs.handlers.BATCH}]
        clock.time += timedelta(minutes=30)
        assert filled(memory) == [{"embedded": 10}]
        clock.time += timedelta(minutes=30)
        assert filled(memory) == []
        (told, _) = memory.workspace("novel").ctx.local.points(TelemetryQuery(action="backfill.completed"))
        assert told.metadata["embedded"] == 10


def filled(memory: Lukasa) -> list[Any]:
    """What backfills did among all that was due."""
    return [dict(run.result) for run in memory.worker(chat="none").drain() if run.job.kind == "backfill"]


def test_old_records_are_let_go(memory: Lukasa, clock: FixedClock) -> None:
    """T1: finished jobs and telemetry are kept for a while; a dead job waits for a person, however long."""
    world = memory.workspace("novel")
    ask_for(world, "works", "done")
    ask_for(world, "fails", "dead")

    def fails(ctx: CallContext, task: Task) -> dict[str, Any]:
        raise InvalidInput("never")

    for _ in range(5):
        worker(world, works=noted, fails=fails).drain()
        clock.time += timedelta(hours=1)
    clock.time += jobs.handlers.KEEP_TELEMETRY
    (run,) = worker(world, tidy=jobs.handlers.tidy).drain()
    assert run.job.kind == "tidy"
    assert {job.key: job.state for job in world.jobs() if job.kind != "tidy"} == {"dead": JobState.DEAD}
    told = {point.action for point in world.ctx.local.points(TelemetryQuery())}
    assert told == {"tidy.completed", "job.done"}


# Workers of an account


def test_a_worker_serves_every_workspace(memory: Lukasa, clock: FixedClock) -> None:
    """O2: also one that is made while it works."""
    novel, diary = memory.workspace("novel"), memory.workspace("diary")
    w = memory.worker(chat="none")
    for world in (novel, diary):
        ask_for(world, "tidy")
    assert {run.workspace for run in w.drain()} == {"novel", "diary"}
    ask_for(memory.workspace("later"), "tidy")
    assert [run.workspace for run in w.drain()] == ["later"]


def test_a_broken_workspace_is_told(tmp_path: Path) -> None:
    """T06: its file is gone; the worker says so and serves the others."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        broken = memory.folder(memory.workspace("broken"))
        ask_for(memory.workspace("novel"), "tidy")
    assert broken is not None
    (broken / "memory.db").unlink()
    told: list[Any] = []
    with Lukasa.open(tmp_path, embedder="none") as memory:
        runs = memory.worker(chat="none", tell=told.append).drain()
    assert [run.workspace for run in runs] == ["novel"]
    assert [(t.workspace, t.error.split(":")[0]) for t in told if isinstance(t, Trouble)] == [
        ("broken", "store-missing")
    ]


def test_a_budget_needs_a_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T06: a limit in money without a price would be no limit."""
    monkeypatch.setenv("LUKASA_BUDGET_COST", "1.50")
    monkeypatch.setenv("LUKASA_CHAT_MODEL", "gpt-x")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with Lukasa.open(tmp_path, embedder="none") as memory:
        with pytest.raises(InvalidInput, match="has no price") as refused:
            memory.worker(chat="openai:gpt-x")
        assert "LUKASA_PRICES=openai:gpt-x=" in refused.value.fix
        memory.worker(chat="none")
    monkeypatch.setenv("LUKASA_PRICES", "gpt-x=1/2")
    with Lukasa.open(tmp_path, embedder="none") as memory:
        assert memory.worker(chat="openai:gpt-x").name


def test_a_crew_has_a_size(memory: Lukasa) -> None:
    """O2: none or a thousand threads are refused with what to give."""
    assert len(memory.crew(3, chat="none").workers) == 3
    for count in (0, 33):
        with pytest.raises(InvalidInput):
            memory.crew(count)


# Looking at jobs


def test_a_dead_job_is_tried_again(world: Workspace, clock: FixedClock) -> None:
    """T06: visible with its error; retried by the author with all attempts before it, and the log says so."""
    faults: list[Exception] = [InvalidInput("not yet")] * 5

    def work(ctx: CallContext, task: Task) -> dict[str, Any]:
        if faults:
            raise faults.pop()
        return {"n": 1}

    ask_for(world, "work")
    w = worker(world, work=work)
    for _ in range(5):
        w.drain()
        clock.time += timedelta(hours=2)
    (dead,) = world.jobs(state="dead")
    assert (dead.attempts, dead.error) == (5, "invalid-input: not yet")
    assert world.retry_job(dead.id).state is JobState.QUEUED
    assert [run.result for run in w.drain()] == [{"n": 1}]
    (event,) = world.events(action="job.retried")
    assert (event.subject, event.detail["error"]) == (dead.id, "invalid-input: not yet")
    with pytest.raises(InvalidTransition):
        world.retry_job(dead.id)


def test_a_job_is_given_up(world: Workspace) -> None:
    """T06: it is not run, the log says why, and it may be taken up again."""
    ask_for(world)
    job = world.cancel_job("k", "wrong file")
    assert (job.state, job.error) == (JobState.CANCELLED, "wrong file")
    assert worker(world, nothing=noted).drain() == []
    assert [event.detail["cause"] for event in world.events(action="job.cancelled")] == ["wrong file"]
    with pytest.raises(InvalidTransition):
        world.cancel_job(job.id)
    world.retry_job(job.id)
    assert len(worker(world, nothing=noted).drain()) == 1


def test_a_jobs_journal_can_be_read(world: Workspace) -> None:
    """O2: what each step gave, in order."""

    def work(ctx: CallContext, task: Task) -> dict[str, Any]:
        for step in ("second", "first"):
            task.once(step, partial(dict, named=step))
        return {}

    ask_for(world, "work")
    worker(world, work=work).drain()
    assert list(world.job_steps("k").items()) == [("second", {"named": "second"}), ("first", {"named": "first"})]


def test_jobs_are_the_authors(world: Workspace) -> None:
    """B2: an agent neither sees nor steers background work, and a job of nowhere is not found."""
    ask_for(world)
    for handle in (world.acting(agent="scout"), world.acting(trust=Trust.UNTRUSTED)):
        for call in (handle.jobs, partial(handle.cancel_job, "k"), partial(handle.retry_job, "k")):
            with pytest.raises(Refused):
                call()
    with pytest.raises(NotFound):
        world.job("elsewhere")
    with pytest.raises(InvalidInput, match="state"):
        world.jobs(state="asleep")
