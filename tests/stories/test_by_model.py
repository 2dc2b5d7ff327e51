"""What a language model adds to writing and reading: never waited for by a write, and never relied on by a read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, State, Trust, Workspace
from lukasa.model.errors import ChatUnavailable
from lukasa.model.job import JobState
from lukasa.model.telemetry import TelemetryQuery
from lukasa.ports import Message, Reply, Tool, Usage
from lukasa.service.jobs.handlers import run_next
from lukasa.spec import preset_text
from tests.helpers.making import FixedClock

OLD, NEW = "Ines keeps the boat at the north pier", "Ines keeps the boat at the mill dock"


@dataclass
class Model:
    """Says what it was given to say, and remembers what it was asked and how long it was given."""

    answer: dict[str, Any] | Exception = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None
    name: str = "fake"

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        self.asked.append(messages[-1].content)
        self.timeouts.append(timeout)
        self.meanwhile()
        if isinstance(self.answer, Exception):
            raise self.answer
        return Reply(json.dumps(self.answer), usage=Usage(7, 2))


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def world(tmp_path: Path, clock: FixedClock, model: Model) -> Iterator[Workspace]:
    with Lukasa.open(tmp_path / "data", embedder="none", clock=clock, chat=model) as memory:
        yield memory.workspace("novel")


def ruled(decision: str) -> dict[str, Any]:
    return {"decisions": [{"number": 1, "decision": decision, "reason": "the boat was moved"}]}


def stated(world: Workspace) -> tuple[str, str]:
    old = world.put("workspace", OLD, kind="semantic").id
    return old, world.put("workspace", NEW, kind="semantic").id


def test_a_write_asks_for_a_second_look_and_does_not_wait(world: Workspace, model: Model) -> None:
    """W4: where rules leave doubt, a job is committed with the write; the model is not asked by it."""
    old, new = stated(world)
    (job,) = world.jobs(kind="resolve")
    assert (job.state, job.key, model.asked) == (JobState.QUEUED, f"resolve:{new}:1", [])
    assert world.get(old).state is State.ACTIVE


def test_no_job_without_doubt_or_model(world: Workspace, tmp_path: Path) -> None:
    """W4: unlike statements and episodes raise no question, and without a model nobody is asked."""
    world.put("workspace", OLD, kind="semantic")
    world.put("workspace", "The mill was sold in May", kind="semantic")
    world.put("workspace", "Ines rowed the boat to the north pier", kind="episodic")
    assert world.jobs(kind="resolve") == []
    with Lukasa.open(tmp_path / "bare", embedder="none") as memory:
        bare = memory.workspace()
        stated(bare)
        assert bare.jobs(kind="resolve") == []


@pytest.mark.parametrize(
    ("decision", "states"),
    [
        ("add", (State.ACTIVE, State.ACTIVE)),
        ("update", (State.INVALIDATED, State.ACTIVE)),
        ("delete", (State.INVALIDATED, State.ACTIVE)),
        ("noop", (State.ACTIVE, State.SUPERSEDED)),
    ],
)
def test_a_model_decides(world: Workspace, model: Model, decision: str, states: tuple[State, State]) -> None:
    """W4: ADD, UPDATE, DELETE or NOOP, each recorded with its reason, and undone in one step."""
    old, new = stated(world)
    model.answer = ruled(decision)
    run_next(world.ctx, chat=model)
    assert (world.get(old).state, world.get(new).state) == states
    changed = old if states[0] is not State.ACTIVE else new
    if decision != "add":
        assert "the boat was moved (decided by fake)" in world.ledger(changed)[-1].detail["cause"]
        world.undo(world.jobs(kind="resolve")[0].id)
    assert {world.get(old).state, world.get(new).state} == {State.ACTIVE}


def test_what_is_less_trusted_is_held(world: Workspace, model: Model) -> None:
    """W4, B2: a model cannot let an agent's statement overrule the author's: it waits for a person."""
    old = world.put("workspace", OLD, kind="semantic").id
    new = world.acting(agent="helper").put("workspace", NEW, kind="semantic").id
    model.answer = ruled("update")
    run_next(world.ctx, chat=model)
    assert (world.get(old).state, world.get(new).state) == (State.ACTIVE, State.HELD)


def test_a_newer_edit_wins_over_the_decision(world: Workspace, model: Model) -> None:
    """T04, W4: what was edited while the model was asked stands; the decision is dropped with its reason."""
    old, _ = stated(world)
    model.answer = ruled("update")
    model.meanwhile = lambda: world.update(old, importance=0.9)
    run_next(world.ctx, chat=model)
    assert (world.get(old).state, world.get(old).importance) == (State.ACTIVE, 0.9)
    assert "changed while" in world.ctx.local.events(action="decision.dropped")[0].detail["cause"]


# Reading


def test_a_question_is_rewritten(world: Workspace, model: Model) -> None:
    """R5: within two seconds a model puts it into better words; the answer says which were used, and what it cost."""
    id = world.put("workspace", OLD).id
    model.answer = {"query": "boat pier"}
    found = world.read("hey, so where was it that she leaves her vessel again?", profile="balanced")
    assert (found.asked, [hit.id for hit in found]) == ("boat pier", [id])
    assert "asked as: boat pier" in found.notes
    assert model.timeouts == [2.0]
    assert [(s.calls, s.prompt) for s in world.ctx.local.spent("2000-01-01")] == [(1, 7)]
    assert len(world.ctx.local.points(TelemetryQuery(component="rewrite"))) == 1


@pytest.mark.parametrize("answer", [ChatUnavailable("too slow"), {}, {"query": ""}, {"query": 7}, {"query": "x" * 900}])
def test_without_a_usable_answer_the_question_stands(world: Workspace, model: Model, answer: Any) -> None:
    """R5: a failure costs the rewriting, never the read."""
    id = world.put("workspace", OLD).id
    model.answer = answer
    found = world.read("where is the boat of Ines kept?", profile="balanced")
    assert (found.asked, [hit.id for hit in found]) == (found.query, [id])


def test_a_lean_read_asks_nobody(world: Workspace, model: Model) -> None:
    """R5: `lean` does without, and so do single words, untrusted handles and those who say so."""
    world.put("workspace", OLD)
    world.read("where is the boat of Ines kept?", profile="lean")
    world.read("boat", profile="balanced")
    world.read("where is the boat of Ines kept?", profile="balanced", rewrite=False)
    world.acting(principal="web", trust=Trust.UNTRUSTED).read("where is the boat of Ines kept?", profile="balanced")
    assert model.asked == []


@pytest.mark.parametrize(
    ("answer", "first"),
    [({"order": [2, 1]}, 1), ({"order": [9, "x", True]}, 0), (ChatUnavailable("too slow"), 0)],
)
def test_a_spec_may_have_hits_reranked(
    tmp_path: Path, clock: FixedClock, model: Model, answer: Any, first: int
) -> None:
    """R10: the last stage, if the spec asks for it; nothing is added or lost, and on a failure the order stays."""
    spec = preset_text("default").replace('rerank = "none"', 'rerank = "model"')
    with Lukasa.open(tmp_path, embedder="none", clock=clock, chat=model) as memory:
        world = memory.workspace("novel", spec=spec)
        world.put("workspace", "Ines keeps the boat at the north pier", importance=0.9)
        world.put("workspace", "The boat race begins in May", importance=0.1)
        plain = [hit.id for hit in world.read("boat of Ines", profile="lean")]
        model.answer = answer
        ranked = [hit.id for hit in world.read("boat of Ines", profile="lean")]
        assert sorted(ranked) == sorted(plain)
        assert ranked[0] == plain[first]


def test_a_model_that_orders_hits_sees_what_was_asked_for(tmp_path: Path, clock: FixedClock, model: Model) -> None:
    """R10: of a long hit, the place where the question's words stand, and not how it begins."""
    spec = preset_text("default").replace('rerank = "none"', 'rerank = "model"')
    with Lukasa.open(tmp_path, embedder="none", clock=clock, chat=model) as memory:
        world = memory.workspace("novel", spec=spec)
        world.put("workspace", f"{'It rained again. ' * 200}Ines keeps the boat at the north pier.")
        world.put("workspace", "The boat race begins in May")
        model.answer = {"order": [1, 2]}
        world.read("boat of Ines", profile="lean")
    asked = str(model.asked[-1])
    assert "Ines keeps the boat at the north pier." in asked
    assert asked.count("It rained again.") < 30
