"""Metrics: what this process has done since it began, in the text format of Prometheus.

Every label has a fixed set of values: a route, a verb, a state, a class of error. It is never an id, the name of a
workspace or a text, because each value of a label is a series that the monitoring keeps, and may be read by others.
"""

from __future__ import annotations

import platform
import threading
import time
import weakref
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lukasa.model.errors import LukasaError, StoreError
from lukasa.model.job import JobState
from lukasa.ports import Note, ignore_note

if TYPE_CHECKING:
    from lukasa.service.jobs.worker import Run, Trouble

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds; a last bucket holds the rest
Labels = tuple[str, ...]


class Numbers:
    """A number for each combination of labels: a counter, which only grows, or a gauge."""

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self.name = name
        self.about = about
        self.kind = "counter" if name.endswith("_total") else "gauge"
        self._labels = labels
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}
        self._lock = threading.Lock()

    def add(self, *labels: str, by: float = 1.0) -> None:
        with self._lock:
            self._values[labels] = self._values.get(labels, 0.0) + by

    def set(self, value: float, *labels: str) -> None:
        with self._lock:
            self._values[labels] = value

    def samples(self) -> Iterator[str]:
        with self._lock:
            found = sorted(self._values.items())
        for labels, value in found:
            yield _sample(self.name, zip(self._labels, labels, strict=True), value)


class Histogram:
    """Durations for each combination of labels, counted in buckets."""

    kind = "histogram"

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self.name = name
        self.about = about
        self._labels = labels
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        self._lock = threading.Lock()

    def observe(self, seconds: float, *labels: str) -> None:
        with self._lock:
            counts = self._counts.setdefault(labels, [0] * (len(BOUNDS) + 1))
            counts[bisect_left(BOUNDS, seconds)] += 1
            self._sums[labels] = self._sums.get(labels, 0.0) + seconds

    def samples(self) -> Iterator[str]:
        with self._lock:
            found = [(labels, tuple(counts), self._sums[labels]) for labels, counts in sorted(self._counts.items())]
        for labels, counts, total in found:
            named, so_far = list(zip(self._labels, labels, strict=True)), 0
            for bound, count in zip((*map(_number, BOUNDS), "+Inf"), counts, strict=True):
                so_far += count
                yield _sample(f"{self.name}_bucket", [*named, ("le", bound)], so_far)
            yield _sample(f"{self.name}_sum", named, total)
            yield _sample(f"{self.name}_count", named, so_far)


class Metrics:
    """The metrics of one process. Any thread may count."""

    def __init__(self, version: str) -> None:
        self.requests = Numbers("lukasa_http_requests_total", "Answered HTTP requests.", "route", "method", "status")
        self.request_seconds = Histogram(
            "lukasa_http_request_duration_seconds", "Time to answer HTTP requests.", "route", "method"
        )
        self.in_progress = Numbers("lukasa_http_requests_in_progress", "HTTP requests in progress.")
        self.operations = Numbers(
            "lukasa_memory_operations_total", "Memory operations; outcome is ok or an error.", "operation", "outcome"
        )
        self.operation_seconds = Histogram(
            "lukasa_memory_operation_duration_seconds", "Time of memory operations.", "operation"
        )
        self.runs = Numbers("lukasa_job_runs_total", "Runs of jobs by the worker of this process.", "kind", "outcome")
        self.run_seconds = Histogram("lukasa_job_run_duration_seconds", "Time of runs of jobs.", "kind")
        self.troubles = Numbers(
            "lukasa_worker_troubles_total", "Times that an error kept the worker from a workspace for a while."
        )
        self.store_errors = Numbers("lukasa_store_errors_total", "Errors of the database, by class.", "error")
        self._jobs = Numbers("lukasa_jobs", "Jobs of all workspaces, by state.", "state")
        self._build = Numbers("lukasa_build_info", "The version of Lukasa and of Python.", "version", "python")
        self._build.set(1, version, platform.python_version())
        self._began = Numbers("process_start_time_seconds", "When the metrics began, in seconds since 1970.")
        self._began.set(time.time())
        self._counted: weakref.WeakSet[StoreError] = weakref.WeakSet()

    @contextmanager
    def span(self, name: str, about: Mapping[str, Any]) -> Iterator[Note]:
        """Count and time a verb. It has the form of a span, so that it goes where verbs open theirs."""
        began, outcome = time.perf_counter(), "unexpected"
        try:
            yield ignore_note
            outcome = "ok"
        except Exception as error:
            if isinstance(error, LukasaError):
                outcome = error.code
            self.failed(error)
            raise
        finally:
            self.operations.add(name, outcome)
            self.operation_seconds.observe(time.perf_counter() - began, name)

    def failed(self, error: BaseException) -> None:
        """Count an error of the database, once however many layers report it."""
        if isinstance(error, StoreError) and error not in self._counted:
            self._counted.add(error)
            self.store_errors.add(error.code)

    def worked(self, what: Run | Trouble) -> None:
        """Count what the worker of this process tells: a run of a job, or a trouble."""
        job = getattr(what, "job", None)
        if job is None:
            self.troubles.add()
            return
        self.runs.add(job.kind, getattr(what, "outcome", ""))
        self.run_seconds.observe(getattr(what, "duration_ms", 0.0) / 1000, job.kind)

    def text(self, jobs: Mapping[JobState, int] | None) -> str:
        """Return all metrics as text. Without `jobs`, because the store did not tell, their numbers are left out."""
        families: Sequence[Numbers | Histogram] = (
            self._build,
            self._began,
            self.requests,
            self.request_seconds,
            self.in_progress,
            self.operations,
            self.operation_seconds,
            *(() if jobs is None else (self._counts_of(jobs),)),
            self.runs,
            self.run_seconds,
            self.troubles,
            self.store_errors,
        )
        return "".join(f"{line}\n" for family in families for line in _family(family))

    def _counts_of(self, jobs: Mapping[JobState, int]) -> Numbers:
        for state in JobState:
            self._jobs.set(jobs.get(state, 0), str(state))
        return self._jobs


def _family(family: Numbers | Histogram) -> Iterator[str]:
    yield f"# HELP {family.name} {_escaped(family.about)}"
    yield f"# TYPE {family.name} {family.kind}"
    yield from family.samples()


def _sample(name: str, labels: Any, value: float) -> str:
    told = ",".join(f'{label}="{_escaped(text, quoted=True)}"' for label, text in labels)
    return f"{name}{{{told}}} {_number(value)}" if told else f"{name} {_number(value)}"


def _escaped(text: str, *, quoted: bool = False) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
    return escaped.replace('"', '\\"') if quoted else escaped


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
