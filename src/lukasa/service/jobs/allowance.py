"""Limits for background work: a circuit breaker for each model, and a budget for the day.

Each process has its own breakers. Spending is read from the stores, so the budget holds for all workers of an account
together; each worker may exceed it by the one call that it is making.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from lukasa.model.errors import ChatRefused, ChatUnavailable, LukasaError
from lukasa.model.telemetry import Spending
from lukasa.ports import Chat, Clock, Usage
from lukasa.service.jobs.budget import MILLION, Budget

LONGEST_ASKED = 86_400.0  # seconds; if a provider asks for a longer pause, call it again after a day


class NotNow(Exception):
    """Signal that a job cannot run before `until`: the worker puts it back and counts no attempt."""

    def __init__(self, until: datetime, reason: str) -> None:
        super().__init__(reason)
        self.until = until
        self.reason = reason


class Allowance:
    """Say whether a model may be called now. This base class always allows it; a worker uses `ModelGuard`."""

    def check(self, chat: Chat) -> None:
        """Raise NotNow if the model may not be called now."""

    def succeeded(self, chat: Chat) -> None:
        """Note that the model answered."""

    def failed(self, chat: Chat, error: LukasaError) -> None:
        """Note a call that gave no usable answer."""

    def blocked(self, chat: Chat) -> datetime | None:
        """Return until when no job may call the model because it keeps failing; None if it may be called."""
        return None

    def cost(self, chat: Chat, usage: Usage) -> float:
        """Return the cost of that many tokens; 0 if the model has no price."""
        return 0.0


class ModelGuard(Allowance):
    """An allowance that refuses while a breaker is open or the day's budget is spent."""

    def __init__(self, clock: Clock, budget: Budget, spent: Callable[[str], Sequence[Spending]]) -> None:
        self._clock = clock
        self._budget = budget
        self._spent = spent
        self._breakers: dict[str, Breaker] = {}
        self._lock = threading.Lock()

    def check(self, chat: Chat) -> None:
        now = self._clock.now()
        if self._budget.tokens is not None or self._budget.cost is not None:
            reason = self._budget.exceeded(self._spent(f"{now:%Y-%m-%d}"))
            if reason:
                raise NotNow(_tomorrow(now), reason)
        with self._lock:
            until = self._breaker(chat).closed_again(now)
        if until is not None:
            raise NotNow(until, f"{chat.name} keeps failing; no job calls it before {until:%H:%M:%S} UTC")

    def succeeded(self, chat: Chat) -> None:
        with self._lock:
            self._breaker(chat).succeeded()

    def failed(self, chat: Chat, error: LukasaError) -> None:
        """Count an outage or a refusal. An unusable answer is the job's own failure: the model did answer."""
        if not isinstance(error, ChatUnavailable | ChatRefused):
            return self.succeeded(chat)
        seconds = error.retry_after if isinstance(error, ChatUnavailable) else None
        asked = None if seconds is None else timedelta(seconds=min(seconds, LONGEST_ASKED))
        with self._lock:
            self._breaker(chat).failed(self._clock.now(), asked)
        return None

    def blocked(self, chat: Chat) -> datetime | None:
        with self._lock:
            return self._breaker(chat).open_until

    def cost(self, chat: Chat, usage: Usage) -> float:
        price = self._budget.price(chat.name)
        if price is None:
            return 0.0
        return (usage.prompt * price.prompt + usage.completion * price.completion) / MILLION

    def _breaker(self, chat: Chat) -> Breaker:
        return self._breakers.setdefault(chat.name, Breaker())


def _tomorrow(now: datetime) -> datetime:
    return (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)


FAILURES = 5  # in a row
FIRST = timedelta(seconds=30)
LONGEST = timedelta(minutes=15)
PROBE = timedelta(minutes=5)  # a probe without an outcome for so long died with its worker


class Breaker:
    """A circuit breaker. Closed, it lets every call through; open, it lets none through until its pause is over.

    Then one call goes through as a probe: its outcome closes the breaker or opens it again. A breaker has no lock of
    its own; callers that share one must lock.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._pause = FIRST
        self.open_until: datetime | None = None  # None is closed
        self._probing: datetime | None = None

    def closed_again(self, now: datetime) -> datetime | None:
        """Return when a call may be made, or None for now. After an open breaker's pause, None starts the probe."""
        if self.open_until is None:
            return None
        if now < self.open_until:
            return self.open_until
        if self._probing is not None and now < self._probing + PROBE:
            return now + FIRST
        self._probing = now
        return None

    def succeeded(self) -> None:
        self._failures, self._pause, self.open_until, self._probing = 0, FIRST, None, None

    def failed(self, now: datetime, asked: timedelta | None = None) -> None:
        """Count a failure. `asked` is the pause that the provider asked for; it opens the breaker at once."""
        self._failures += 1
        if self._probing is not None:
            self._probing, self._pause = None, min(self._pause * 2, LONGEST)
            self.open_until = now + self._pause
        elif self._failures >= FAILURES and (self.open_until is None or self.open_until <= now):
            self.open_until = now + self._pause
        if asked is not None:
            self.open_until = max(self.open_until or now, now + asked)
