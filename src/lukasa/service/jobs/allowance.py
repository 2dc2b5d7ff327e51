"""The worker's allowance: a breaker for each model, and a budget for the day.

Breakers are the process's own. What was spent is read from the stores, so that the budget holds for all workers of an
account together; each may exceed it by the call it is making.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from lukasa.model.errors import ChatRefused, ChatUnavailable, LukasaError
from lukasa.model.telemetry import Spending
from lukasa.ports import Chat, Clock, Usage
from lukasa.service.jobs.budget import MILLION, Budget
from lukasa.service.jobs.task import Allowance, NotNow
from lukasa.service.jobs.worker import LONGEST_ASKED


class Guard(Allowance):
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
            raise NotNow(until, f"{chat.name} keeps failing, and is left alone until {until:%H:%M:%S} UTC")

    def succeeded(self, chat: Chat) -> None:
        with self._lock:
            self._breaker(chat).succeeded()

    def failed(self, chat: Chat, error: LukasaError) -> None:
        """An answer that cannot be used is still an answer: what is wrong with it is the job's own trouble."""
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
PROBE = timedelta(minutes=5)  # a probe that says nothing for so long has died with its worker


class Breaker:
    """Closed, it lets every call through. Open, none until its pause is over; then one, which decides.

    Not safe for threads by itself: whoever shares it takes a lock.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._pause = FIRST
        self.open_until: datetime | None = None  # None is closed
        self._probing: datetime | None = None

    def closed_again(self, now: datetime) -> datetime | None:
        """When a call may be made, if not now. Answering None in an open breaker's last moment starts the probe."""
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
        """`asked` is the pause that the provider asks for: it opens the breaker at once."""
        self._failures += 1
        if self._probing is not None:
            self._probing, self._pause = None, min(self._pause * 2, LONGEST)
            self.open_until = now + self._pause
        elif self._failures >= FAILURES and (self.open_until is None or self.open_until <= now):
            self.open_until = now + self._pause
        if asked is not None:
            self.open_until = max(self.open_until or now, now + asked)
