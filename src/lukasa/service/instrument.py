"""Stages: what a verb reports of itself, made in one place.

A verb is a function of a room, or of something that has one. While it runs, the room carries its stage; what the room
commits gets a report into the same transaction, with what the transaction does counted by name. Verbs that a verb calls
are a part of it. What commits nothing, because it reads, finds nothing to do or is refused, touches no file either: its
report waits in the store for whatever is written next (`Store.report`).

A report has names and numbers, never a word of what is remembered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
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
    Scrub,
)
from lukasa.storage.port import Store

Called = TypeVar("Called", bound=Callable[..., Any])


class Stage:
    """A verb that is under way: since when, what it has counted so far, and whether it was told of."""

    __slots__ = ("about", "action", "began", "component", "reads", "refusal", "told")

    def __init__(self, component: str, action: str, *, reads: bool = False) -> None:
        self.component = component
        self.action = action
        self.reads = reads
        self.told = False
        self.refusal: LukasaError | None = None  # that was told of already
        self.about: dict[str, Any] = {}
        self.began = time.perf_counter()

    def report(self, teller: Teller, level: Level, **more: Any) -> TelemetryEvent:
        took = (time.perf_counter() - self.began) * 1000
        source, about = teller.origin.surface, {**self.about, **more} if more else self.about
        return TelemetryEvent(teller.now, level, source, self.component, self.action, level != "error", took, about)

    def with_it(self, teller: Teller, operations: Iterable[Operation]) -> tuple[Emit, ...]:
        """What is to be committed with operations: a report of them, unless they bring their own."""
        if self.reads or any(type(operation) is Emit for operation in operations):
            return ()
        return (Emit(self.report(teller, "info", **counts(operations))),)

    def refused(self, teller: Teller, error: LukasaError) -> Emit:
        """The report of a refusal that leaves something behind, to be committed with that."""
        self.refusal = error
        return Emit(self.report(teller, "error", error=error.code))

    def done(self, teller: Teller) -> None:
        if not self.told:
            teller.home.report(self.report(teller, "debug" if self.reads else "info"))

    def failed(self, teller: Teller, error: Exception) -> None:
        if self.refusal is not error:
            code = error.code if isinstance(error, LukasaError) else type(error).__name__
            teller.home.report(self.report(teller, "error", error=code))


class Teller(Protocol):
    """Who acts, when, and where that is reported: a room, or whoever manages grants."""

    @property
    def stage(self) -> Stage | None: ...
    @property
    def span(self) -> Span: ...
    @property
    def origin(self) -> Origin: ...
    @property
    def now(self) -> datetime: ...
    @property
    def home(self) -> Store: ...
    def staged(self, stage: Stage) -> Teller: ...


def verb(component: str, action: str, *, reads: bool = False) -> Callable[[Called], Called]:
    """Has each call of a function report itself. Its first argument is a teller, or has one, as its `room` alone."""

    def marked(function: Called) -> Called:
        @wraps(function)
        def called(subject: Any, /, *args: Any, **kwargs: Any) -> Any:
            teller: Teller = getattr(subject, "ctx", subject)
            if teller.stage is not None:
                return function(subject, *args, **kwargs)
            stage = Stage(component, action, reads=reads)
            with teller.span(f"{component}.{action}", {"lukasa.source": teller.origin.surface}):
                try:
                    answer = function(_entered(subject, teller, stage), *args, **kwargs)
                except Exception as error:
                    stage.failed(teller, error)
                    raise
            stage.done(teller)
            return answer

        return cast(Called, called)

    return marked


def _entered(subject: Any, teller: Teller, stage: Stage) -> Any:
    staged = teller.staged(stage)
    return staged if teller is subject else type(subject)(staged)


# What a transaction does, by name


def counts(operations: Iterable[Operation]) -> dict[str, int]:
    found: dict[str, int] = {}
    for operation in operations:
        for name in _names(operation):
            found[name] = found.get(name, 0) + 1
    return found


def _names(operation: Operation) -> Iterable[str]:
    match operation:
        case SaveEntry():
            return _saved(operation)
        case Record(draft):
            told = draft.detail.get("ledger", ()) if draft.action.startswith("entry.") else ()
            verdicts = [(verdict["step"], verdict["outcome"]) for verdict in told]
            return _judged(draft.action.removeprefix("entry.").replace(".", "_"), verdicts)
        case SaveAmendment(amendment):
            return (f"proposals_{amendment.state}",)
        case Scrub():
            return ("scrubbed",)
        case _:
            name = _PLAIN.get(type(operation))
            return () if name is None else (name,)


def _saved(save: SaveEntry) -> Iterator[str]:
    what = "stored" if save.action == "entry.put" else save.action.removeprefix("entry.")
    return _judged(what, [(verdict.step, verdict.outcome) for verdict in save.ledger])


def _judged(what: str, verdicts: list[tuple[str, str]]) -> Iterator[str]:
    """An outcome, the gate's verdict, and for what is kept back or out the step that did it."""
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
