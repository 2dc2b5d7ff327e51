"""Several workers in threads of one process, and how they stop: finish the job in hand, or put it back in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial

from lukasa.pipeline.worker import Worker

GRACE = 8.0  # seconds; whoever stops us usually kills after ten
_GLANCE = 0.05


class Crew:
    def __init__(self, workers: Sequence[Worker]) -> None:
        self.workers = tuple(workers)

    def serve(self, stop: threading.Event, hurry: threading.Event, *, grace: float = GRACE) -> bool:
        """Work until `stop` is set, then let each worker finish its job, for `grace` seconds or until `hurry` is set.

        Whether all of them did. A job that was not finished is put back, and what its thread still tries to write for
        it is refused; the thread itself ends with the process.
        """
        threads = [
            threading.Thread(target=partial(w.run, stop), name="lukasa-worker", daemon=True) for w in self.workers
        ]
        for thread in threads:
            thread.start()
        stop.wait()
        ends = time.monotonic() + grace
        while any(t.is_alive() for t in threads) and time.monotonic() < ends and not hurry.wait(_GLANCE):
            pass
        at_work = [worker for worker, thread in zip(self.workers, threads, strict=True) if thread.is_alive()]
        for worker in at_work:
            worker.release()
        return not at_work
