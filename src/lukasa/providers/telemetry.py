"""Spans for OpenTelemetry, where a program has it: one for each job, each question to a model, and each verb.

Without the package there are none, and without an SDK that the program has set up they go nowhere: nothing leaves the
machine unless somebody has arranged for it. What a failure said is not in a span, because it might quote a memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from importlib import import_module
from typing import Any

from lukasa.ports import Span


def opentelemetry_spans() -> Span | None:
    try:
        trace = import_module("opentelemetry.trace")
    except ImportError:
        return None
    tracer = trace.get_tracer("lukasa")
    quiet = {"record_exception": False, "set_status_on_exception": False}

    @contextmanager
    def span(name: str, about: Mapping[str, Any]) -> Iterator[None]:
        with tracer.start_as_current_span(name, attributes=dict(about), **quiet) as current:
            try:
                yield
            except Exception as error:
                current.set_status(trace.StatusCode.ERROR, type(error).__name__)
                raise

    return span


def spans_of_verbs(name: str, about: Mapping[str, Any]) -> AbstractContextManager[None]:
    """A span if the program has loaded OpenTelemetry already: a hook must not wait for it, and has nobody to tell."""
    spans = _spans() if "opentelemetry.trace" in sys.modules else None
    return spans(name, about) if spans is not None else nullcontext()


@lru_cache(maxsize=1)
def _spans() -> Span | None:
    return opentelemetry_spans()
