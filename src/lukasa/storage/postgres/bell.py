"""Wake workers when a store of the database queues a job: PostgreSQL's LISTEN, on a connection of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import psycopg

LONGEST = 30.0  # seconds that a worker may sleep while the bell listens: a job that is due later rings no bell
DEAF = 1.0  # and while it does not
_GLANCE = 0.25  # seconds until a worker that sleeps sees that it should stop
_RECONNECT = 1.0


class _Stop(Protocol):
    """The part of an event that a sleeping worker looks at."""

    def is_set(self) -> bool: ...


class JobBell:
    """Implements `lukasa.service.jobs.worker.Bell` for any number of workers of this process.

    A thread listens from the first sleep on. While it cannot, workers look for jobs as often as without a bell.
    `wanted` says whether a store is one of theirs: other accounts of the database ring the same bell.
    """

    def __init__(self, url: str, wanted: Callable[[str], bool] = lambda store: True) -> None:
        self._url = url
        self._wanted = wanted
        self._changed = threading.Condition()
        self._rings = 0
        self._rung: dict[str, int] = {}  # by store, the number of its last ring
        self._since = 0  # the ring with which the bell began to listen: what was before it is not known
        self._heard = threading.local()
        self._listening = False
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def longest(self) -> float:
        return LONGEST if self._listening else DEAF

    def wait(self, stop: _Stop, timeout: float) -> None:
        """Return when a job was queued since this thread last did, when `stop` is set, or after `timeout` seconds."""
        self._start()
        deadline = time.monotonic() + timeout
        with self._changed:
            while self._rings == getattr(self._heard, "rings", 0) and not stop.is_set():
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(min(left, _GLANCE))
            self._heard.rings = self._rings

    def rang(self, id: str) -> bool:
        """Say whether a store may have queued a job since this thread last asked about it."""
        asked: dict[str, int] = self._heard.__dict__.setdefault("asked", {})
        with self._changed:
            last = max(self._rung.get(id, 0), self._since)
            rang = not self._listening or asked.get(id, -1) < last
            asked[id] = last
        return rang

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(5)

    def _start(self) -> None:
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._listen, name="lukasa-bell", daemon=True)
                self._thread.start()

    def _listen(self) -> None:
        while not self._closed.is_set():
            try:
                with psycopg.connect(self._url, autocommit=True, connect_timeout=10, application_name="lukasa") as db:
                    self._hear(db)
            except psycopg.Error:
                self._listening = False
                self._closed.wait(_RECONNECT)

    def _hear(self, db: psycopg.Connection[Any]) -> None:
        db.execute("LISTEN lukasa_jobs")
        with self._changed:
            self._listening = True
            self._since = self._rings + 1
        self._ring()  # a job may have been queued before
        while not self._closed.is_set():
            for note in db.notifies(timeout=_GLANCE):
                if self._wanted(note.payload):
                    self._ring(note.payload)

    def _ring(self, store: str = "") -> None:
        with self._changed:
            self._rings += 1
            self._rung[store] = self._rings
            self._changed.notify_all()
