"""Keeping a lease alive while the work goes on. A process that stands still renews nothing, and loses its job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

from lukasa.model.errors import StoreError


class Heartbeat:
    """Calls `renew` every so many seconds from a thread of its own, until the work ends or the claim is lost."""

    def __init__(self, renew: Callable[[], bool], every: float) -> None:
        self._renew = renew
        self._every = every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lukasa-lease", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(self._every):
            try:
                if not self._renew():
                    return  # somebody else has the job now; the next write of this one will be refused
            except StoreError:
                continue  # the file is busy or full; there is a beat or two before the lease runs out
