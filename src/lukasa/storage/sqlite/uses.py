"""How often entries were read, and when last: counted in the process, and written for many reads at once.

What waits is in every answer of this process. Others hear of it when it is written: once it is much or has waited long,
and when the store is closed or the process ends. A process that is killed takes what still waits with it: the
statistics of a few dozen reads at most, but nothing writes them while it reads nothing more.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from lukasa.model.candidate import Use
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.known import Handle, Known
from lukasa.storage.sqlite.query import all_rows, one_value

View: TypeAlias = "tuple[int, int]"  # a connection, and the number of the state that it sees
MANY = 256  # entries
LONG = 2.0  # seconds


class Uses:
    """Those of one process. The lock keeps a count from being looked for where it no longer or not yet is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, Use] = {}
        self._views: set[View] = set()
        self._since = 0.0

    def __bool__(self) -> bool:
        """Whether any wait to be written."""
        return bool(self._waiting)

    def of(self, db: Handle, ids: Iterable[str]) -> dict[str, Use]:
        """The uses of those that were read at all."""
        with self._lock:
            return self._of(db, list(ids))

    def _of(self, db: Handle, ids: Sequence[str]) -> dict[str, Use]:
        written, waiting = _written(db, ids), self._waiting
        found = {id: use for id in ids if (use := written[id]) is not None}
        found.update((id, _both(written[id], waiting[id])) for id in ids if id in waiting)
        return found

    def add(self, db: Handle, ids: Iterable[str], at: int, view: View) -> tuple[dict[str, Use], bool]:
        """Count one read of each, that are present in this view. The uses after it, and whether to write them now."""
        with self._lock:
            now = time.monotonic()
            if not self._waiting:
                self._since = now
            self._views.add(view)
            counted = list(ids)
            for id in counted:
                before = self._waiting.get(id)
                self._waiting[id] = Use(before.reads + 1 if before else 1, at)
            return self._of(db, counted), len(self._waiting) >= MANY or now - self._since > LONG

    def write(self, db: Handle, present: Callable[[Sequence[str]], Collection[str]], view: View | None = None) -> None:
        """Write what waits, of those that are still present; on failure it waits on. Where memory is still as it was
        when they were counted, that needs no looking."""
        with self._lock:
            ids = list(self._waiting)
            kept = sorted(ids if self._views == {view} else present(ids))
            counts = [(id, *self._waiting[id]) for id in kept]
            all_rows(db, sql.COUNT, (json.dumps(counts),))
            known = db.known.of("uses")
            known.update((id, _both(known[id], self._waiting[id])) for id in kept if id in known)
            self._waiting.clear()
            self._views.clear()

    def ids(self, db: Handle) -> list[str]:
        """All that are counted, written or not."""
        with self._lock:
            return [*self._waiting, *(id for (id,) in all_rows(db, sql.COUNTED))]

    def forget(self, db: Handle, ids: Sequence[str]) -> None:
        with self._lock:
            for id in ids:
                self._waiting.pop(id, None)
            all_rows(db, sql.DROP_ACCESS, (json.dumps(ids),))
            db.known = Known()


def _both(written: Use | None, more: Use) -> Use:
    return more if written is None else Use(written.reads + more.reads, max(written.at, more.at))


def _written(db: Handle, ids: Sequence[str]) -> dict[str, Use | None]:
    """What the file says, looked up once for as long as nobody else has written there."""
    db.known.at(one_value(db, sql.DATA_VERSION))
    answers: dict[str, Use | None] = db.known.of("uses")
    unknown = [id for id in ids if id not in answers]
    if unknown:
        answers.update(dict.fromkeys(unknown))
        answers.update((id, Use(count, at)) for id, count, at in all_rows(db, sql.ACCESS, (json.dumps(unknown),)))
    return answers
