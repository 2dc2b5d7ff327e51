"""Instruments: time a verb, count what it commits, and report it as one telemetry event.

A verb is a function of a `CallContext`, or of an object that has one as `ctx`. While a verb runs, a context variable
holds its instrument. `CallContext.apply` adds the telemetry event to the verb's transaction, with the operations of
that transaction counted by name. A verb called by another verb of the same workspace belongs to it and reports nothing
of its own; a verb in another thread or of another workspace reports for itself.

A verb that commits nothing (it reads, finds nothing to do, or is refused) opens no transaction for its event either:
the store keeps the event and writes it with the next transaction (`Store.report`).

A telemetry event holds names and numbers, never a remembered text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from datetime import datetime
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

from lukasa.model.errors import LukasaError
from lukasa.model.telemetry import Level, TelemetryEvent
from lukasa.model.values import Origin
from lukasa.ports import Span
from lukasa.storage.operations import (
    DropEntry,
    DropItem,
    DropNotes,
    Emit,
    Enqueue,
    LinkAction,
    Operation,
    Record,
    SaveAmendment,
    SaveDocument,
    SaveEmbedding,
    SaveEntry,
    SaveItem,
    SaveItemVectors,
    SaveNamed,
    SaveNote,
    SaveSubmission,
    Scrub,
)
from lukasa.storage.port import Store

Called = TypeVar("Called", bound=Callable[..., Any])


class Reporter(Protocol):
    """The actor, the time and the store of the telemetry events: a call context, or access control."""

    @property
    def span(self) -> Span: ...
    @property
    def origin(self) -> Origin: ...
    @property
    def now(self) -> datetime: ...
    @property
    def home(self) -> Store: ...


class Instrument:
    """The measurements of one running verb: when it began, its counts so far, and whether it was reported."""

    __slots__ = ("about", "action", "began", "component", "reads", "refusal", "reported", "reporter")

    def __init__(self, reporter: Reporter, component: str, action: str, *, reads: bool = False) -> None:
        self.reporter = reporter
        self.component = component
        self.action = action
        self.reads = reads
        self.reported = False
        self.refusal: LukasaError | None = None  # an error that was reported already
        self.about: dict[str, Any] = {}
        self.began = time.perf_counter()

    def event(self, level: Level, **more: Any) -> TelemetryEvent:
        """Return the telemetry event of this call, with its duration up to now."""
        took = (time.perf_counter() - self.began) * 1000
        now, source = self.reporter.now, self.reporter.origin.surface
        about = {**self.about, **more} if more else self.about
        return TelemetryEvent(now, level, source, self.component, self.action, level != "error", took, about)

    def events_for(self, operations: Iterable[Operation]) -> tuple[Emit, ...]:
        """Return the event to commit with operations; none for a read, or if the operations bring their own."""
        if self.reads or any(type(operation) is Emit for operation in operations):
            return ()
        return (Emit(self.event("info", **counts(operations))),)

    def committed(self) -> None:
        """Note that a transaction took the event along; a read is still to be reported."""
        self.reported = self.reported or not self.reads

    def refused(self, error: LukasaError) -> Emit:
        """Return the event of a refusal, to commit with the record that the refusal leaves."""
        self.refusal = error
        return Emit(self.event("error", error=error.code))

    def done(self) -> None:
        """Report a call that committed nothing, or a read."""
        if not self.reported:
            self.reporter.home.report(self.event("debug" if self.reads else "info"))

    def failed(self, error: Exception) -> None:
        """Report a call that raised an error."""
        if self.refusal is not error:
            code = error.code if isinstance(error, LukasaError) else type(error).__name__
            self.reporter.home.report(self.event("error", error=code))


_RUNNING: ContextVar[Instrument | None] = ContextVar("lukasa_instrument", default=None)


def running(reporter: Reporter) -> Instrument | None:
    """Return the instrument of the verb that this thread runs for the reporter's store, if it runs one."""
    found = _RUNNING.get()
    return found if found is not None and found.reporter.home is reporter.home else None


def verb(component: str, action: str, *, reads: bool = False) -> Callable[[Called], Called]:
    """Make every call of a function report itself. Its first argument is a reporter, or has one as `ctx`."""

    def instrumented(function: Called) -> Called:
        @wraps(function)
        def call(subject: Any, /, *args: Any, **kwargs: Any) -> Any:
            reporter: Reporter = getattr(subject, "ctx", subject)
            if running(reporter) is not None:
                return function(subject, *args, **kwargs)
            instrument = Instrument(reporter, component, action, reads=reads)
            outer = _RUNNING.set(instrument)
            try:
                with reporter.span(f"{component}.{action}", {"lukasa.source": reporter.origin.surface}) as note:
                    answer = function(subject, *args, **kwargs)
                    note(instrument.about)
            except Exception as error:
                instrument.failed(error)
                raise
            finally:
                _RUNNING.reset(outer)
            instrument.done()
            return answer

        return cast(Called, call)

    return instrumented


# Counts of a transaction, by name


def counts(operations: Iterable[Operation]) -> dict[str, int]:
    """Count what operations do: stored, held, merged, notes, jobs …"""
    found: dict[str, int] = {}
    for operation in operations:
        for name in _names(operation):
            found[name] = found.get(name, 0) + 1
    return found


def _names(operation: Operation) -> Iterable[str]:
    match operation:
        case SaveEntry():
            what = "stored" if operation.action == "entry.put" else operation.action.removeprefix("entry.")
            return _judged(what, [(verdict.step, verdict.outcome) for verdict in operation.ledger])
        case Record(draft):
            told = draft.detail.get("ledger", ()) if draft.action.startswith("entry.") else ()
            verdicts = [(verdict["step"], verdict["outcome"]) for verdict in told]
            return _judged(draft.action.removeprefix("entry.").replace(".", "_"), verdicts)
        case SaveAmendment(amendment):
            return (f"proposals_{amendment.state}",)
        case SaveSubmission(submission):
            return (f"submissions_{submission.state}",)
        case Scrub():
            return ("scrubbed",)
        case _:
            name = _PLAIN.get(type(operation))
            return () if name is None else (name,)


def _judged(what: str, verdicts: list[tuple[str, str]]) -> Iterator[str]:
    """Name the outcome, the gate's verdict, and for a held or discarded text the step that decided it."""
    yield what
    yield from (f"gate_{outcome}" for step, outcome in verdicts if step == "gate")
    if what in _KEPT_BACK and verdicts:
        deciding = [step for step, outcome in verdicts if outcome == _KEPT_BACK[what]] or [verdicts[-1][0]]
        yield f"{what}_by_{deciding[-1]}"


_KEPT_BACK = {"held": "hold", "discarded": "discard"}
_PLAIN: dict[type, str] = {
    DropEntry: "dropped",
    SaveEmbedding: "vectors",
    SaveNamed: "pages",
    SaveDocument: "documents",
    SaveNote: "notes",
    DropNotes: "notes_cleared",
    LinkAction: "links",
    SaveItem: "items",
    SaveItemVectors: "vectors",
    DropItem: "items_dropped",
    Enqueue: "jobs",
}
