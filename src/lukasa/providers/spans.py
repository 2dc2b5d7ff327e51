"""OpenTelemetry spans, if the package is installed: one for each job, each question to a model, and each verb.

Without the package there are none. Without an SDK that the program has set up, the spans are sent nowhere. A span holds
no error message, because a message might quote a memory.
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
    """Return a function that opens a span; None if OpenTelemetry is not installed."""
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
    """Open a span if the program has already loaded OpenTelemetry; a hook must not wait for its import."""
    spans = _spans() if "opentelemetry.trace" in sys.modules else None
    return spans(name, about) if spans is not None else nullcontext()


@lru_cache(maxsize=1)
def _spans() -> Span | None:
    return opentelemetry_spans()
