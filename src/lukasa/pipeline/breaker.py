"""A circuit breaker: a model that fails again and again is left alone for a while, longer each time."""

from __future__ import annotations

from datetime import datetime, timedelta

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
