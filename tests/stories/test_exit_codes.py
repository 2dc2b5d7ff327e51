"""A command that ran a job tells by its exit code whether the job did its work; the reason is on stderr and in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lukasa.ports import Reply
from tests.helpers import chat_server, sessions
from tests.helpers.chat_server import ChatServer
from tests.helpers.cli import Shell

TALK = (("user", "The harbour crane lifts forty tonnes."), ("assistant", "I see."))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data", {"LUKASA_EMBEDDER": "none", "LUKASA_CHAT": "none"})


@pytest.fixture
def down(shell: Shell) -> Iterator[ChatServer]:
    """A model that refuses every question."""
    with ChatServer(lambda asked: Reply('{"proposals": []}')) as opened:
        shell.env |= {**opened.env, "LUKASA_CHAT": "openai:fake"}
        opened.always(chat_server.status(401))
        yield opened


def test_a_reflection_that_failed(shell: Shell, down: ChatServer) -> None:
    """O3: exit code 1, the reason on stderr and in the answer; when the model is back, nothing was lost."""
    shell.put("The harbour crane lifts forty tonnes")
    told = shell.call("reflect")
    assert told.exit_code == 1
    assert "error: reflect: chat-refused" in told.stderr
    assert shell.json("reflect", code=1)["errors"][0].startswith("reflect: ")
    down.always(None)
    done = shell.json("reflect")
    assert (done["observations"], done["errors"]) == (1, [])


def test_rules_help_at_once_after_a_failure(shell: Shell, down: ChatServer) -> None:
    """O3: a reflection that failed does not block the next one, although its job waits for another attempt."""
    shell.put("The harbour crane lifts forty tonnes")
    assert shell.call("reflect").exit_code == 1
    assert shell.json("reflect", "--rules")["observations"] == 1


def test_a_triage_that_failed(shell: Shell, down: ChatServer) -> None:
    """O4: reflection by a model that then refuses to judge is a failure too."""
    shell.put("The harbour crane lifts forty tonnes")
    change = {"section": "operations", "change": "The crane lifts forty tonnes", "confidence": 0.6, "sources": [1]}
    proposed = json.dumps({"proposals": [change]})
    down.model = lambda asked: Reply(proposed if "Observations:" in asked.said else "no idea")
    down.always(None)
    told = shell.call("reflect")
    assert told.exit_code == 1
    assert "error: triage: " in told.stderr


def test_an_observation_that_failed(shell: Shell, down: ChatServer, tmp_path: Path) -> None:
    """O1: also when the command is given again while the job waits; with --queue-only nothing has failed yet."""
    file = str(sessions.claude(tmp_path / "s.jsonl", TALK, "abc"))
    told = shell.call("observe", file)
    assert told.exit_code == 1
    assert "error: chat-refused" in told.stderr
    again = shell.json("observe", file, code=1)
    assert "chat-refused" in again["failed"][0]
    other = str(sessions.claude(tmp_path / "t.jsonl", TALK, "other"))
    assert shell.json("observe", "--queue-only", other)["failed"] == []


def test_a_consolidation_that_failed(shell: Shell, down: ChatServer) -> None:
    """O5: consolidate asks the model, gets no answer, and says so."""
    shell.run("workspace", "create", "w", "--preset", "observer")
    for text in (
        "The crane lifts forty tonnes",
        "The crane of the harbour lifts forty tonnes",
        "Forty tonnes lifts the crane",
    ):
        shell.run("-w", "w", "put", text, "--kind", "semantic")
    told = shell.call("-w", "w", "consolidate")
    if not down.asked:
        pytest.fail("the model was not asked, so this shows nothing")
    assert told.exit_code == 1
    assert "error: consolidate: chat-refused" in told.stderr
    assert shell.json("-w", "w", "maintain")["job"]["state"] == "done"


def test_a_pass_of_the_worker_with_a_failed_job(shell: Shell, down: ChatServer, tmp_path: Path) -> None:
    """O2: `worker --once` in a timer tells the timer."""
    shell.run("observe", "--queue-only", str(sessions.claude(tmp_path / "s.jsonl", TALK, "abc")))
    told = shell.call("worker", "--once")
    assert told.exit_code == 1
    assert "error: main: observe: chat-refused" in told.stderr
