"""The write buffer: telemetry of calls that change nothing, and disclosures, wait for a transaction that takes them.

The next write of the process takes them along. Telemetry waits long: until there is much of it, somebody asks for it,
or the store is closed or the process ends. A disclosure is a record of what left memory, so it waits less: the first
one after a pause asks to be written at once, and those that follow closely are written together, `SOON` seconds later
if nothing else is written before. A killed process loses its buffer: telemetry events of the last minute, and the
disclosures of the last `SOON` seconds, at most `FEW`, unless the database was locked all that time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakMethod

from msgspec.structs import replace

from lukasa.model.disclosure import Disclosure
from lukasa.model.telemetry import TelemetryEvent
from lukasa.storage import tables
from lukasa.storage.codec import Table

MANY = 1024  # events; a write makes every reader look at the database again
LONG = 60.0  # seconds
MOST = 4096  # events that are kept while the database is locked; the rest is counted
PRUNED_EACH = 16  # writes of the buffer between two prunings
FEW = 256  # disclosures
SOON = 2.0  # seconds between two writes of disclosures
TRIES = 30  # how often in a row disclosures are written later, if the database is locked each time
Waiting = Sequence[tuple[Table[Any], Sequence[Any]]]  # rows by table


class WriteBuffer:
    def __init__(self) -> None:
        self._events: list[TelemetryEvent] = []
        self._disclosures: list[Disclosure] = []
        self._lock = threading.Lock()
        self._since = 0.0
        self._lost = 0
        self._times = 0
        self._disclosed = -SOON  # when disclosures were last written
        self._timer: threading.Timer | None = None

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

    def disclose(self, given: Disclosure) -> bool:
        """Keep a disclosure, and return whether the buffer should be written now. None is ever left out."""
        with self._lock:
            self._disclosures.append(given)
            return len(self._disclosures) % FEW == 0 or time.monotonic() - self._disclosed > SOON

    def later(self, write: WeakMethod[Callable[[], None]], tries: int = TRIES) -> None:
        """Write the disclosures that wait in a while, if nothing else does: a process may read no more for hours."""
        with self._lock:
            if self._timer is None or not self._timer.is_alive():  # after a fork, the child's timer is not alive
                self._timer = threading.Timer(SOON, self._write_later, (write, tries))
                self._timer.daemon = True
                self._timer.start()

    def _write_later(self, write: WeakMethod[Callable[[], None]], tries: int) -> None:
        run = write()
        if run is None or not self._disclosures:
            return
        run()
        self._timer = None
        if self._disclosures and tries:
            self.later(write, tries - 1)

    @property
    def discloses(self) -> bool:
        """Whether it holds disclosures, which a process that ends waits longer for than for telemetry."""
        return bool(self._disclosures)

    @contextmanager
    def taken(self) -> Iterator[Waiting]:
        """Give all rows to write; if that fails, they are in the buffer again."""
        if not self._events and not self._disclosures:  # as mostly: then there is nothing to lock for
            yield ()
            return
        with self._lock:
            events, lost, self._events, self._lost = self._events, self._lost, [], 0
            disclosures, self._disclosures = self._disclosures, []
        try:
            waiting = ((tables.TELEMETRY, _with_loss(events, lost)), (tables.DISCLOSURES, disclosures))
            yield tuple((table, rows) for table, rows in waiting if rows)
        except BaseException:
            with self._lock:
                self._events, self._lost = events + self._events, self._lost + lost
                self._disclosures = disclosures + self._disclosures
            raise
        if disclosures:
            self._disclosed = time.monotonic()

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
