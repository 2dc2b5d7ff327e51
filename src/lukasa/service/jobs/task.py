"""A job in the hands of a worker. Its steps are journaled: what one gave is kept before it is used, and never made
twice.

A handler is a function from a task to a result. It may be run again from the start at any time, after a failure or a
crash; every step that is in the journal is then answered from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lukasa.model.errors import LukasaError
from lukasa.model.events import Actor
from lukasa.model.job import Job
from lukasa.model.telemetry import Level, TelemetryEvent
from lukasa.ports import Chat, Clock, Span, Usage, no_span
from lukasa.storage.operations import Emit, JournalStep, Operation, Spend, Transaction
from lukasa.storage.port import Store

SOURCE = "worker"


class NotNow(Exception):
    """The work cannot be done before `until`, through no fault of its own: put it back without counting an attempt."""

    def __init__(self, until: datetime, reason: str) -> None:
        super().__init__(reason)
        self.until = until
        self.reason = reason


class Allowance:
    """Whether a model may be asked now. The worker's own says no while a breaker is open or the budget is spent."""

    def check(self, chat: Chat) -> None:
        """Raises NotNow if it may not."""

    def succeeded(self, chat: Chat) -> None:
        """Told after each answer."""

    def failed(self, chat: Chat, error: LukasaError) -> None:
        """Told after each call without a usable answer."""

    def blocked(self, chat: Chat) -> datetime | None:
        """Until when the model is left alone because it keeps failing, whoever asks."""
        return None

    def cost(self, chat: Chat, usage: Usage) -> float:
        """What that many tokens cost, where prices are known."""
        return 0.0


@dataclass(slots=True)
class Task:
    """One attempt at a job. `chat` is None where no language model is set: work is then done by rules."""

    job: Job
    store: Store
    clock: Clock
    actor: Actor
    chat: Chat | None = None
    allowance: Allowance = field(default_factory=Allowance)
    span: Span = no_span
    _journal: dict[str, Any] | None = None

    # Steps

    def journaled(self, step: str) -> bool:
        return step in self._steps()

    def output(self, step: str) -> Any:
        """What a journaled step gave."""
        return self._steps()[step]

    def once(self, step: str, compute: Callable[[], Any], *also: Operation) -> Any:
        """What the step gives: from the journal, or computed now and kept, with `also` in the same commit.

        Plain JSON, because that is what the journal holds. Nothing is held open while it is computed.
        """
        if self.journaled(step):
            return self.output(step)
        output = compute()
        self.commit(step, output, *also)
        return self.output(step)

    def commit(self, step: str, output: Any, *operations: Operation) -> None:
        """The effect of a step and its place in the journal, in one transaction. LostClaim if the job was taken."""
        self.store.apply(Transaction(self.actor, self.clock.now(), (*operations, self.entry(step, output))))
        self._journal = None

    def entry(self, step: str, output: Any) -> JournalStep:
        """The journal's line for a step, for whoever commits the effect themselves. Call `refresh` after it."""
        return JournalStep(self.job.id, self.job.claim, step, output)

    def refresh(self) -> None:
        self._journal = None

    def _steps(self) -> dict[str, Any]:
        if self._journal is None:
            self._journal = self.store.steps(self.job.id)
        return self._journal

    # Telling

    def point(
        self,
        action: str,
        *,
        success: bool = True,
        level: Level = "info",
        duration_ms: float = 0.0,
        metadata: Mapping[str, Any] | None = None,
    ) -> Emit:
        """A report of this job as an operation, to be committed with what it reports."""
        about = {"job": self.job.id, "attempt": self.job.attempts, **(metadata or {})}
        now = self.clock.now()
        return Emit(TelemetryEvent(now, level, SOURCE, self.job.kind, action, success, duration_ms, about))

    def tell(self, *points: Emit | Spend) -> None:
        """Reports that belong to no step: what failed, and what it cost."""
        self.store.apply(Transaction(self.actor, self.clock.now(), points))


Handler = Callable[[Task], dict[str, Any]]
