"""The fault matrix of providers, against the observer, over the real wire: nothing said is lost, nothing is doubled."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.job import JobState
from lukasa.model.telemetry import TelemetryQuery
from lukasa.model.transcript import Progress
from lukasa.ports import Chat, Message, Reply, Tool
from lukasa.providers.chat import open_chat
from lukasa.service.jobs import handlers
from lukasa.service.jobs.worker import Run
from lukasa.service.sessions import observe
from tests.helpers import chat_server, sessions
from tests.helpers.chat_server import Asked, ChatServer, Fault, Said
from tests.helpers.making import FixedClock

TALK = (
    ("user", "The ferry database runs on db-7 port 5432."),
    ("assistant", "Good to know."),
    ("user", "Marta is our designer."),
)
ANSWER = json.dumps(
    {
        "segments": [
            {
                "topic": "ferry",
                "narrative": "They spoke of the ferry.",
                "facts": [
                    {
                        "text": text,
                        "priority": "medium",
                        "gate": "allow",
                        "confidence": 0.9,
                        "category": "operations",
                        "message": place,
                        "quote": text,
                    }
                    for place, text in (("0", TALK[0][1]), ("2", TALK[2][1]))
                ],
            }
        ]
    }
)


def observer(asked: Asked) -> Reply:
    """A model that observes well."""
    assert "JSON" in asked.system
    return Reply(ANSWER)


class Hurried:
    """A chat that waits half a second at most, so that a test of faults need not wait. Who is to be heard has more."""

    def __init__(self, inner: Chat) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        return self._inner.name

    def reply(
        self,
        messages: list[Message],
        tools: tuple[Tool, ...] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        return self._inner.reply(messages, tools, timeout=min(timeout, 0.5), on_text=on_text)


def says(text: str) -> Fault:
    """The provider answers in good order, and the model says this."""
    return Fault(alter=lambda said: Said(text))


def wraps(change: Callable[[str], str]) -> Fault:
    return Fault(alter=lambda said: Said(change(said.text)))


def ends(reason: str, text: str = "") -> Fault:
    """The model says this, or what it meant to say, and the provider says that the answer is not whole."""
    return Fault(alter=lambda said: Said(text or said.text, finish=reason))


# What keeps the model from being heard for as long as it lasts.
FATAL: dict[str, Fault] = {
    "timeout": chat_server.hold(),
    "drip": chat_server.drip(),
    "reset": chat_server.reset(),
    "429 with Retry-After": chat_server.status(429, retry_after="3600"),
    "500": chat_server.status(500),
    "529": chat_server.status(529),
    "200 and nothing": chat_server.empty(),
    "200 and HTML": chat_server.html(),
    "an empty text": says(""),
    "only a thought": chat_server.unfinished_think(),
    "truncated body": chat_server.truncated(),
    "truncated JSON": wraps(lambda text: text[: len(text) // 2]),
    "wrong types on the wire": chat_server.wrong_types(),
    "wrong types in the answer": says('{"segments": {"facts": "many"}}'),
    "no facts, in prose": says("There are no facts in this conversation."),
    "another object": says('{"facts": []}'),
    "all facts malformed": says('{"segments": [{"topic": "x", "narrative": "y", "facts": [{"text": 7}]}]}'),
    "duplicate keys in the answer": wraps(lambda text: text.replace('"topic":', '"topic": "a", "topic":', 1)),
    "lone surrogates": wraps(lambda text: text.replace("ferry", "\\ud83d", 1)),
    "five megabytes": chat_server.huge(),
    "nothing found, cut at the limit": ends("length", '{"segments": []}'),
    "nothing found, filtered": ends("content_filter", '{"segments": []}'),
    "a whole object, cut at the limit": ends("length"),
    "a refusal in words": ends("refusal", "I cannot help with that."),
    "NaN": wraps(lambda text: text.replace("0.9", "NaN")),
}
# What is untidy, and can be read.
UNTIDY: dict[str, Fault] = {
    "a thought before it": chat_server.think(),
    "a fence": wraps(lambda text: f"```json\n{text}\n```"),
    "braces in prose": wraps(lambda text: f"Sure {{as asked}}, here it is: {text} I hope {{that}} helps."),
    "usage twice": chat_server.duplicate_keys(),
    "a surrogate that the wire mends": wraps(lambda text: text.replace("ferry", "\ud83d", 1)),
}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(observer) as opened:
        yield opened
        opened.release.set()
    # A call that ran out of time closes its connection by itself: not in the middle of another test.
    for thread in threading.enumerate():
        if thread.name == "lukasa-chat":
            thread.join(10.0)


@pytest.fixture
def world(tmp_path: Path, clock: FixedClock) -> Iterator[Workspace]:
    with Lukasa.open(tmp_path / "data", embedder="none", clock=clock) as memory:
        yield memory.workspace("harbour")


def model(server: ChatServer) -> Any:
    found = open_chat("openai:fake", server.env)
    assert found is not None
    return found


def attempt(world: Workspace, chat: Any) -> Run:
    run = handlers.run_next(world.ctx, chat=chat, handlers={"observe": observe.observe})
    assert run is not None
    return run


def later(clock: FixedClock) -> None:
    clock.time = clock.time.replace(year=clock.time.year + 1)


@pytest.mark.parametrize("fault", FATAL)
def test_a_fault_loses_nothing(
    world: Workspace, server: ChatServer, clock: FixedClock, tmp_path: Path, fault: str
) -> None:
    """T05, O1: the words are there and findable, the status says why, and after healing all is done, once."""
    server.always(FATAL[fault])
    path = sessions.claude(tmp_path / "s.jsonl", TALK)
    key = world.observe(path).transcript.key
    run = attempt(world, Hurried(model(server)))
    assert run.outcome == "failed"
    now = world.transcript(key)
    assert (now.progress, now.observed, now.kept) == (Progress.PENDING, 0, 3)
    assert now.detail.startswith("chat-")
    assert len(world.search_transcripts("ferry")) == 1
    assert world.entries("workspace", everything=True) == []
    failed = world.ctx.local.points(TelemetryQuery(action="observe.failed"))
    assert len(failed) == 1
    assert not world.ctx.local.points(TelemetryQuery(action="observe.completed"))

    server.always(None)
    server.release.set()
    later(clock)
    assert attempt(world, model(server)).outcome == "done"
    assert {e.content for e in world.entries("workspace", everything=True)} == {TALK[0][1], TALK[2][1]}
    now = world.transcript(key)
    assert (now.progress, now.observed, now.detail) == (Progress.OBSERVED, 3, "")
    assert world.observe(path).new == 0
    assert all(entry.merged_count == 1 for entry in world.entries("workspace"))


@pytest.mark.parametrize("fault", UNTIDY)
def test_an_untidy_answer_is_read(world: Workspace, server: ChatServer, tmp_path: Path, fault: str) -> None:
    """T05: at the first try."""
    server.plan(UNTIDY[fault])
    world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
    assert attempt(world, model(server)).outcome == "done"
    assert len(world.entries("workspace")) == 2
    assert len(server.asked) == 1


def test_an_answer_that_is_repaired_counts_once(world: Workspace, server: ChatServer, tmp_path: Path) -> None:
    """T05, T20: asked again with what was wrong, then stored once."""
    server.plan(says("no JSON at all"))
    world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
    assert attempt(world, model(server)).outcome == "done"
    assert len(server.asked) == 2
    assert len(world.entries("workspace")) == 2


def test_a_provider_that_stays_down_is_told_and_rules_remain(
    world: Workspace, server: ChatServer, clock: FixedClock, tmp_path: Path
) -> None:
    """T05, T06: the attempts are bounded, the transcript is failed with its reason, and a person may use the rules."""
    server.always(chat_server.status(500))
    key = world.observe(sessions.claude(tmp_path / "s.jsonl", TALK)).transcript.key
    outcomes = []
    for _ in range(5):
        outcomes.append(attempt(world, Hurried(model(server))).outcome)
        later(clock)
    assert outcomes == ["failed", "failed", "failed", "failed", "dead"]
    now = world.transcript(key)
    assert now.progress is Progress.FAILED
    assert now.detail.startswith("chat-unavailable")
    assert world.ctx.local.queue_depth().get(JobState.DEAD) == 1
    world.observe_by_rules(key)
    assert attempt(world, model(server)).outcome == "done"
    now = world.transcript(key)
    assert (now.progress, now.how) == (Progress.OBSERVED, "rules")
    assert len(world.entries("workspace")) == 2
