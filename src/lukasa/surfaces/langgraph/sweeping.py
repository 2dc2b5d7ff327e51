"""Removing expired items in the background, every few minutes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress

from lukasa.model.errors import LukasaError

_log = logging.getLogger("lukasa.langgraph")


class Sweeper:
    """One thread that sweeps until it is stopped."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._done: Future[None] = Future()

    def start(self, minutes: float) -> Future[None]:
        """The answer is done when the sweeper has stopped; cancelling it stops the sweeper."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._stop, self._done = threading.Event(), Future()
                self._done.add_done_callback(_on_cancel(self._stop))
                work = (minutes * 60.0, self._stop, self._done)
                self._thread = threading.Thread(target=self._run, args=work, name="lukasa-sweeper", daemon=True)
                self._thread.start()
            return self._done

    def stop(self, timeout: float | None = None) -> bool:
        """Whether it has stopped by then."""
        with self._lock:
            thread = self._thread
            self._stop.set()
        if thread is not None:
            thread.join(timeout)
        return thread is None or not thread.is_alive()

    def _run(self, seconds: float, stop: threading.Event, done: Future[None]) -> None:
        while not stop.wait(seconds):
            try:
                self._sweep()
            except LukasaError as error:
                # A busy or full disk passes; what has expired is still there for the next round.
                _log.warning("expired items were not removed: %s", error)
        with suppress(InvalidStateError):  # cancelled, which is how it may have been stopped
            done.set_result(None)


def _on_cancel(stop: threading.Event) -> Callable[[Future[None]], None]:
    def stopped(done: Future[None]) -> None:
        if done.cancelled():
            stop.set()

    return stopped
