"""Reports of what changes nothing, such as reads and refusals: they wait in the process for what is written next.

If nothing is, they are written together once there are many or they have waited long, when somebody asks for reports,
and when the store is closed or the process ends. A process that is killed takes those that still wait with it: at most
`MANY`, or those of the last minute, unless the database was locked all that time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from lukasa.model.telemetry import TelemetryEvent

MANY = 1024  # writing them makes every reader look at the database anew
LONG = 60.0  # seconds
MOST = 4096  # that are kept while the database is locked; what is beyond is counted
PRUNED_EACH = 16  # times that many were written


class Waiting:
    def __init__(self) -> None:
        self._points: list[TelemetryEvent] = []
        self._lock = threading.Lock()
        self._since = 0.0
        self._lost = 0
        self._times = 0

    def add(self, point: TelemetryEvent) -> bool:
        """Whether they should be written now."""
        with self._lock:
            now = time.monotonic()
            if not self._points:
                self._since = now
            if len(self._points) < MOST:
                self._points.append(point)
            else:
                self._lost += 1
            # Never by whoever was refused: that touches no file.
            return point.level != "error" and (len(self._points) % MANY == 0 or now - self._since > LONG)

    @contextmanager
    def taken(self) -> Iterator[list[TelemetryEvent]]:
        """All that wait, for whoever writes them; on failure they wait again."""
        if not self._points:  # as mostly: then there is nothing to lock for
            yield []
            return
        with self._lock:
            points, lost, self._points, self._lost = self._points, self._lost, [], 0
        try:
            yield _telling(points, lost)
        except BaseException:
            with self._lock:
                self._points, self._lost = points + self._points, self._lost + lost
            raise

    def prunes(self) -> bool:
        """Whether it is time to look at how many have been written altogether."""
        self._times += 1
        return self._times % PRUNED_EACH == 0


def _telling(points: list[TelemetryEvent], lost: int) -> list[TelemetryEvent]:
    """Nothing is dropped without a word: the last of those that were kept says how many were not."""
    if not lost:
        return points
    last = points[-1]
    return [*points, replace(last, level="warn", component="telemetry", action="overflow", metadata={"lost": lost})]
