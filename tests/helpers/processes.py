"""Child processes by fork: cheap enough to start hundreds, and killed without a word."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import apsw

TORTURE = bool(os.environ.get("LUKASA_TORTURE"))


def fork(work: Callable[[], object]) -> int:
    """Run `work` in a child; it exits 0, or 1 with its traceback on stderr."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    finally:
        if code:
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(code)


def finish(pid: int) -> int:
    """The exit code of a child; minus the signal if one ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill(pid: int) -> int:
    os.kill(pid, signal.SIGKILL)
    return finish(pid)


def until(ready: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, "it never became ready"
        time.sleep(0.001)


class Tripwire:
    """Ends the process at its k-th SQL statement from when it is armed: a power cut at a chosen place."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.armed = False

    def install(self) -> None:
        apsw.connection_hooks.append(self._watch)

    def _watch(self, db: apsw.Connection) -> None:
        db.trace_v2(apsw.SQLITE_TRACE_STMT, self._step)

    def _step(self, _: dict[str, Any]) -> None:
        if self.armed:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
