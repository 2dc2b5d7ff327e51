"""Spans for OpenTelemetry: one for each job and each question, and none of a memory's words in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from lukasa import Lukasa
from lukasa.model.errors import InvalidInput
from lukasa.providers.spans import opentelemetry_spans
from lukasa.service.jobs.task import Task
from tests.helpers.work import Bench, later

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


def test_a_verb_is_a_span(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    """T1: where the program has OpenTelemetry loaded, reads and writes show too, and none of their words."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("novel")
        world.put("workspace", "The villain is called Malachar")
        world.read("Malachar")
        with pytest.raises(InvalidInput):
            world.put("workspace", "")
    put, read, refused = exporter.get_finished_spans()
    assert (put.name, read.name, refused.name) == ("memory.put", "memory.read", "memory.put")
    assert dict(put.attributes or {}) == {"lukasa.source": "library"}
    assert (refused.status.status_code, refused.status.description) == (StatusCode.ERROR, "InvalidContent")
    assert "Malachar" not in put.to_json() + read.to_json()
