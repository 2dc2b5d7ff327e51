"""Spans for OpenTelemetry: one for each job and each question, and none of a memory's words in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import lukasa
from lukasa import Lukasa
from lukasa.model.errors import InvalidInput
from lukasa.providers.spans import OPERATIONS, opentelemetry_spans
from lukasa.service.jobs.task import Task
from tests.helpers.work import Bench, later

# The operations on memory in OpenTelemetry's semantic conventions for generative AI.
CONVENTIONS = {
    "create_memory",
    "create_memory_store",
    "delete_memory",
    "delete_memory_store",
    "search_memory",
    "update_memory",
    "upsert_memory",
}
EXPORTER = InMemorySpanExporter()
PROVIDER = TracerProvider()
PROVIDER.add_span_processor(SimpleSpanProcessor(EXPORTER))
trace.set_tracer_provider(PROVIDER)  # once a process, as a program does


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    EXPORTER.clear()
    return EXPORTER


def run(folder: Path, passing: Any = lambda point, task: None) -> None:
    span = opentelemetry_spans()
    assert span is not None
    bench = Bench(folder)
    bench.ask_for("a")
    bench.worker(later(0), passing, span=span).drain()


def test_a_job_and_its_question_are_spans(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    """T1: the question inside the job, each with what it was about."""
    run(tmp_path / "bench")
    question, job = exporter.get_finished_spans()
    assert (question.name, job.name) == ("model.answer", "job.work")
    assert question.parent is not None
    assert job.context is not None
    assert question.parent.span_id == job.context.span_id
    assert dict(question.attributes or {}) == {"lukasa.model": "fake:counting", "lukasa.step": "ask"}
    assert (job.attributes or {})["lukasa.attempt"] == 1


def test_a_failure_is_marked_and_not_quoted(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    """T1: the span says that it failed and what kind of error it was; what the error said stays here."""

    def passing(point: str, task: Task) -> None:
        if point == "stored":
            raise InvalidInput("Malachar is no number")

    run(tmp_path / "bench", passing)
    _, job = exporter.get_finished_spans()
    assert (job.status.status_code, job.status.description) == (StatusCode.ERROR, "InvalidInput")
    assert "Malachar" not in job.to_json()


def test_a_memory_operation_is_named_by_the_conventions(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    """T1: tools for generative AI find Lukasa's operations and stores under the names that every memory has."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("novel")
        id = world.put("workspace", "The villain is called Malachar").id
        world.read("Malachar")
        world.context("Malachar")
        world.update(id, importance=0.9)
        world.forget(id)
    spans = exporter.get_finished_spans()
    about = [dict(span.attributes or {}) for span in spans]
    assert [(span.name, one["lukasa.verb"]) for span, one in zip(spans, about, strict=True)] == [
        ("create_memory_store", "store.create"),
        ("upsert_memory", "memory.put"),
        ("search_memory", "memory.read"),
        ("search_memory", "memory.context"),
        ("update_memory", "memory.update"),
        ("delete_memory", "memory.forget"),
    ]
    assert all(one["gen_ai.operation.name"] == span.name for span, one in zip(spans, about, strict=True))
    assert {one["gen_ai.memory.store.id"] for one in about} == {world.id}
    assert (about[2]["gen_ai.memory.record.count"], about[3]["gen_ai.memory.record.count"]) == (1, 1)
    assert "Malachar" not in "".join(span.to_json() for span in spans)
    assert "novel" not in "".join(span.to_json() for span in spans)


def test_an_operation_that_fails_says_the_class_of_its_error(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    """T1: the status and `error.type` of the conventions have the class, and the text is nowhere."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("novel")
        with pytest.raises(InvalidInput):
            world.put("workspace", "Malachar\0")
    _, refused = exporter.get_finished_spans()
    assert (refused.name, (refused.attributes or {})["error.type"]) == ("upsert_memory", "InvalidContent")
    assert (refused.status.status_code, refused.status.description) == (StatusCode.ERROR, "InvalidContent")
    assert "Malachar" not in refused.to_json()


def test_every_operation_belongs_to_a_verb() -> None:
    """T1: the table of operations names verbs that there are, and operations of the conventions."""
    source = "".join(path.read_text("utf-8") for path in Path(lukasa.__file__).parent.rglob("*.py"))
    verbs = {f"{component}.{action}" for component, action in re.findall(r'@verb\("([\w-]+)", "([\w-]+)"', source)}
    named = {f"{component}.{action}": of for component, actions in OPERATIONS.items() for action, of in actions.items()}
    assert set(named) <= verbs | {"store.create"}
    assert set(named.values()) <= CONVENTIONS
