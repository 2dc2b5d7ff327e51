"""Access counts: how often entries were read, and when last. They are written for many reads at once.

Counts in the write buffer are part of every answer of this process. Other processes see them once they are written:
when there are many, when they have waited long, and when the store is closed or the process ends. A killed process
loses its buffer: the counts of a few dozen reads at most, but a process that reads nothing more writes none either.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol, TypeAlias

from lukasa.model.entry import Access

View: TypeAlias = "tuple[int, int]"  # a connection, and the number of the snapshot that it reads
Count: TypeAlias = "tuple[str, int, int]"  # id, how often, and when last in microseconds
MANY = 256  # entries
LONG = 2.0  # seconds


class CountRows(Protocol):
    """The table of access counts, as a backend asks it."""

    def cached(self) -> dict[str, Access | None]:
        """Answers that hold until somebody else writes there."""
        ...

    def counts(self, ids: Sequence[str]) -> Iterable[Count]: ...
    def add(self, counts: Sequence[Count]) -> None: ...
    def drop(self, ids: Sequence[str]) -> None: ...
    def ids(self) -> list[str]:
        """All entries with a count."""
        ...


class AccessCounts:
    """The access counts of one process. The lock makes moving counts from the buffer to the table one step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buffer: dict[str, Access] = {}
        self._views: set[View] = set()
        self._since = 0.0

    def __bool__(self) -> bool:
        """Whether the buffer holds any."""
        return bool(self._buffer)

    def of(self, rows: CountRows, ids: Iterable[str]) -> dict[str, Access]:
        """The counts of the entries that were read at all."""
        with self._lock:
            return self._of(rows, list(ids))

    def _of(self, rows: CountRows, ids: Sequence[str]) -> dict[str, Access]:
        written, buffer = _written(rows, ids), self._buffer
        found = {id: use for id in ids if (use := written[id]) is not None}
        found.update((id, _both(written[id], buffer[id])) for id in ids if id in buffer)
        return found

    def add(self, rows: CountRows, ids: Iterable[str], at: int, view: View) -> tuple[dict[str, Access], bool]:
        """Count one read of each entry, all present in this view. Return the counts, and whether to write now."""
        with self._lock:
            now = time.monotonic()
            if not self._buffer:
                self._since = now
            self._views.add(view)
            counted = list(ids)
            for id in counted:
                before = self._buffer.get(id)
                self._buffer[id] = Access(before.count + 1 if before else 1, at)
            return self._of(rows, counted), len(self._buffer) >= MANY or now - self._since > LONG

    def write(
        self, rows: CountRows, present: Callable[[Sequence[str]], Collection[str]], view: View | None = None
    ) -> None:
        """Write the buffer, but for entries that were removed since. If it fails, the buffer stays.

        If the snapshot is still the one in which they were counted, nothing was removed.
        """
        with self._lock:
            ids = list(self._buffer)
            kept = sorted(ids if self._views == {view} else present(ids))
            counts = [(id, self._buffer[id].count, self._buffer[id].micros) for id in kept]
            rows.add(counts)
            cached = rows.cached()
            cached.update((id, _both(cached[id], self._buffer[id])) for id in kept if id in cached)
            self._buffer.clear()
            self._views.clear()

    def ids(self, rows: CountRows) -> list[str]:
        """All entries with a count, written or not."""
        with self._lock:
            return [*self._buffer, *rows.ids()]

    def waiting(self) -> list[str]:
        """The entries with counts in the buffer."""
        with self._lock:
            return list(self._buffer)

    def leave_out(self, ids: Iterable[str]) -> None:
        """Drop counts of removed entries from the buffer."""
        with self._lock:
            for id in ids:
                self._buffer.pop(id, None)

    def forget(self, rows: CountRows, ids: Sequence[str]) -> None:
        with self._lock:
            for id in ids:
                self._buffer.pop(id, None)
            rows.drop(ids)
            rows.cached().clear()


def _both(written: Access | None, more: Access) -> Access:
    return more if written is None else Access(written.count + more.count, max(written.micros, more.micros))


def _written(rows: CountRows, ids: Sequence[str]) -> dict[str, Access | None]:
    """The counts of the table, cached until somebody else writes there."""
    answers = rows.cached()
    unknown = [id for id in ids if id not in answers]
    if unknown:
        answers.update(dict.fromkeys(unknown))
        answers.update((id, Access(count, at)) for id, count, at in rows.counts(unknown))
    return answers
