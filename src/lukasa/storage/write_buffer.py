"""The write buffer of telemetry: events of calls that change nothing, such as reads, wait for the next write.

If nothing is written, the store writes them together once there are many or they have waited long, when somebody asks
for telemetry, and when it is closed or the process ends. A killed process loses its buffer: at most `MANY` events, or
those of the last minute, unless the database was locked all that time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from lukasa.model.telemetry import TelemetryEvent

MANY = 1024  # events; a write makes every reader look at the database again
LONG = 60.0  # seconds
MOST = 4096  # events that are kept while the database is locked; the rest is counted
PRUNED_EACH = 16  # writes of the buffer between two prunings


class TelemetryBuffer:
    def __init__(self) -> None:
        self._events: list[TelemetryEvent] = []
        self._lock = threading.Lock()
        self._since = 0.0
        self._lost = 0
        self._times = 0

    def add(self, event: TelemetryEvent) -> bool:
        """Keep an event, and return whether the buffer should be written now."""
        with self._lock:
            now = time.monotonic()
            if not self._events:
                self._since = now
            if len(self._events) < MOST:
                self._events.append(event)
            else:
                self._lost += 1
            # A refused call writes nothing: it touches no file.
            return event.level != "error" and (len(self._events) % MANY == 0 or now - self._since > LONG)

    @contextmanager
    def taken(self) -> Iterator[list[TelemetryEvent]]:
        """Give all events to write; if that fails, they are in the buffer again."""
        if not self._events:  # as mostly: then there is nothing to lock for
            yield []
            return
        with self._lock:
            events, lost, self._events, self._lost = self._events, self._lost, [], 0
        try:
            yield _with_loss(events, lost)
        except BaseException:
            with self._lock:
                self._events, self._lost = events + self._events, self._lost + lost
            raise

    def prunes(self) -> bool:
        """Whether it is time to limit the debug events that were written altogether."""
        self._times += 1
        return self._times % PRUNED_EACH == 0


def _with_loss(events: list[TelemetryEvent], lost: int) -> list[TelemetryEvent]:
    """The events, and one that says how many did not fit into the buffer."""
    if not lost:
        return events
    last = events[-1]
    return [*events, replace(last, level="warn", component="telemetry", action="overflow", metadata={"lost": lost})]
