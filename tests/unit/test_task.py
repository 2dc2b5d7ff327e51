"""A task: every step once, whatever happens in between; a model's answer is paid for once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from lukasa.model.errors import ChatMalformed, ChatUnavailable, InvalidInput, LostClaim
from lukasa.model.job import JobDraft
from lukasa.model.telemetry import TelemetryQuery
from lukasa.ports import Message, Reply, SystemClock, Tool, Usage
from lukasa.service.jobs.task import Task, ask, json_object
from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.operations import CancelJob, Enqueue
from tests.helpers.stores import ACTOR, commit, entry, put


@dataclass
class Scripted:
    """A model that says what it was given to say, in turn, and remembers what it was asked."""

    answers: list[str | Exception]
    name: str = "scripted"
    asked: list[Sequence[Message]] = field(default_factory=list)

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        self.asked.append(list(messages))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer, usage=Usage(10, 3))


def task(chat: Scripted | None = None) -> Task:
    store, clock = MemoryStore(), SystemClock()
    commit(store, Enqueue(JobDraft("observe", "k")))
    job = store.claim_job("w", now=clock.now(), lease_until=clock.now() + timedelta(minutes=1))
    assert job is not None
    return Task(job, store, clock, ACTOR, chat)


def count(data: Mapping[str, Any]) -> int:
    if not isinstance(data.get("n"), int):
        raise InvalidInput("n must be a number")
    return int(data["n"])


def test_a_step_is_computed_once() -> None:
    """O2: a second run of the handler gets what the first one kept."""
    t, made = task(), []
    for _ in range(2):
        assert t.once("s", lambda: made.append(1) or {"n": len(made)}) == {"n": 1}  # type: ignore[func-returns-value]
    assert Task(t.job, t.store, t.clock, ACTOR).output("s") == {"n": 1}


def test_an_effect_and_its_journal_are_one_commit() -> None:
    """T20, T24: once the job is lost, neither comes through."""
    t, e = task(), entry()
    commit(t.store, CancelJob(t.job.id, "x"))
    with pytest.raises(LostClaim):
        t.commit("s", 1, put(e))
    assert t.store.entries([e.id]) == {}


def test_an_answer_is_paid_for_once() -> None:
    """T20, T1: the answer is journaled with its cost and a report, and used from the journal afterwards."""
    chat = Scripted(['{"n": 4}'])
    t = task(chat)
    assert [ask(t, "s", "Count.", "xxxx", count) for _ in range(3)] == [4, 4, 4]
    assert len(chat.asked) == 1
    (spent,) = t.store.spent("2000-01-01")
    assert (spent.calls, spent.prompt, spent.completion) == (1, 10, 3)
    (point,) = t.store.points(TelemetryQuery(action="model.answered"))
    assert (point.component, point.metadata["step"], point.success) == ("observe", "s", True)


def test_a_bad_answer_is_sent_back_once() -> None:
    """O1: repaired once; still bad, it is an error and an error event, never an empty result."""
    chat = Scripted(["no idea", '{"n": 4}'])
    assert ask(task(chat), "s", "Count.", "xxxx", count) == 4
    assert "cannot be used: the answer is not a JSON object" in chat.asked[1][-1].content
    t = task(Scripted(['{"n": "four"}', '{"n": null}']))
    with pytest.raises(ChatMalformed, match="n must be a number"):
        ask(t, "s", "Count.", "xxxx", count)
    assert [p.metadata["error"] for p in t.store.points(TelemetryQuery(success=False))] == ["chat-malformed"]
    assert not t.journaled("s")


def test_an_unavailable_model_is_told() -> None:
    """T05: no answer is an error of the step, with its report."""
    t = task(Scripted([ChatUnavailable("too slow")]))
    with pytest.raises(ChatUnavailable):
        ask(t, "s", "Count.", "xxxx", count)
    assert [p.level for p in t.store.points(TelemetryQuery(action="model.failed"))] == ["error"]


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 1}',
        'Sure!\n```json\n{"n": 1}\n```\nAnything else?',
        '<think>maybe {"n": 2}?</think>{"n": 1}',
        'In {braces} of prose: {"n": 1} and {more',
    ],
)
def test_the_object_is_found_in_what_models_say(text: str) -> None:
    """T05: fences, thoughts and prose around it do not matter."""
    assert json_object(text) == {"n": 1}


@pytest.mark.parametrize("text", ["", "[]", '{"n": 1', "<html>", '{"n": 1, "n": 2}', '{"n": "\\ud800"}', '{"n": NaN}'])
def test_what_is_no_object_is_refused(text: str) -> None:
    """T05: empty, truncated, another shape, a key twice, text or numbers that cannot be kept."""
    with pytest.raises(InvalidInput):
        json_object(text)
