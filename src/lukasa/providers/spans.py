"""OpenTelemetry spans, if the package is installed: one for each job, each question to a model, and each verb.

Without the package there are none. Without an SDK that the program has set up, the spans are sent nowhere. A span holds
no text, no question and no error message, because a message might quote a memory.

A verb that the semantic conventions for generative AI have an operation for is named as they name it, so that tools
show it beside other memories; `gen_ai.memory.store.id` is the id of the workspace.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from importlib import import_module
from typing import Any

from lukasa.ports import Note, Span, ignore_note

# Operations of the conventions. Who puts does not choose whether an entry is created, confirmed or replaced: an upsert.
OPERATIONS: dict[str, dict[str, str]] = {
    "document": {"remove": "delete_memory", "save": "upsert_memory"},
    "file": {
        "copy": "create_memory",
        "create": "create_memory",
        "remove": "delete_memory",
        "rename": "update_memory",
        "rewrite": "update_memory",
    },
    "item": {"sweep": "delete_memory", "write": "upsert_memory"},
    "memory": {
        "accept": "update_memory",
        "context": "search_memory",
        "corroborate": "update_memory",
        "forget": "delete_memory",
        "put": "upsert_memory",
        "read": "search_memory",
        "restore": "update_memory",
        "update": "update_memory",
    },
    "page": {"edit": "upsert_memory"},
    "scrub": {"execute": "delete_memory"},
    "store": {"create": "create_memory_store"},
}


def opentelemetry_spans() -> Span | None:
    """Return a function that opens a span; None if OpenTelemetry is not installed."""
    try:
        trace = import_module("opentelemetry.trace")
    except ImportError:
        return None
    tracer = trace.get_tracer("lukasa")
    quiet = {"record_exception": False, "set_status_on_exception": False}

    @contextmanager
    def span(name: str, about: Mapping[str, Any]) -> Iterator[Note]:
        with tracer.start_as_current_span(name, attributes=dict(about), **quiet) as current:

            def note(more: Mapping[str, Any]) -> None:
                if "hits" in more:
                    current.set_attribute("gen_ai.memory.record.count", more["hits"])

            try:
                yield note
            except Exception as error:
                current.set_attribute("error.type", type(error).__name__)
                current.set_status(trace.StatusCode.ERROR, type(error).__name__)
                raise

    return span


def spans_of_verbs(name: str, about: Mapping[str, Any]) -> AbstractContextManager[Note]:
    """Open a span if the program has already loaded OpenTelemetry; a hook must not wait for its import."""
    spans = _spans() if "opentelemetry.trace" in sys.modules else None
    if spans is None:
        return nullcontext(ignore_note)
    component, _, action = name.partition(".")
    operation = OPERATIONS.get(component, {}).get(action)
    return spans(name, about) if operation is None else spans(operation, _as_operation(operation, name, about))


def _as_operation(operation: str, name: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of a verb by the names of the conventions."""
    known = {"gen_ai.operation.name": operation, "lukasa.verb": name, **about}
    if "lukasa.workspace" in known:
        known["gen_ai.memory.store.id"] = known.pop("lukasa.workspace")
    return known


@lru_cache(maxsize=1)
def _spans() -> Span | None:
    return opentelemetry_spans()
