"""Gather the puts that an event loop starts at the same moment, and write them in one transaction.

`asyncio.gather(*(store.aput(…) for …))` would else cost a thread and a transaction for each put. No call waits for
another: the calls of one turn of the loop go together, and the next turn starts the next group.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

from lukasa.service.entries.store_items import PutItem
from lukasa.surfaces.offload import Wait, offload, wait_on

MOST = 10000  # calls in one transaction: a transaction keeps other writers waiting

Call = tuple[Sequence[PutItem], asyncio.Future[None]]
WritePuts = Callable[[Sequence[PutItem], Wait], None]


class Group:
    """The calls of one turn of an event loop, each with the future that it waits for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.calls: list[Call] = []
        self.started = False


class PutBatcher:
    """Write puts for one store. Threads may share it: each has a loop, and so a group, of its own."""

    def __init__(self, write: WritePuts) -> None:
        self._write = write
        self._here = threading.local()
        self._running: set[asyncio.Task[None]] = set()  # a loop holds its tasks by weak references only

    async def put(self, puts: Sequence[PutItem]) -> None:
        """Write these puts, together with those of other calls: all of them or none."""
        group = self._open_group(asyncio.get_running_loop())
        done: asyncio.Future[None] = group.loop.create_future()
        group.calls.append((puts, done))
        await done

    def _open_group(self, loop: asyncio.AbstractEventLoop) -> Group:
        group: Group | None = getattr(self._here, "group", None)
        if group is None or group.started or group.loop is not loop:
            group = self._here.group = Group(loop)
            loop.call_soon(self._start, group)
        return group

    def _start(self, group: Group) -> None:
        group.started = True
        task = group.loop.create_task(self._run(group))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, group: Group) -> None:
        for first in range(0, len(group.calls), MOST):
            await self._write_together(group.calls[first : first + MOST], group.loop)

    async def _write_together(self, calls: Sequence[Call], loop: asyncio.AbstractEventLoop) -> None:
        """Write calls in one transaction. If that fails, write each alone: only the calls at fault get an error."""
        waiting = [call for call in calls if not call[1].done()]
        fault = await self._attempt([put for puts, _ in waiting for put in puts], loop)
        for puts, done in waiting:
            own = fault if fault is None or len(waiting) == 1 else await self._attempt(puts, loop)
            if done.done():
                continue
            if own is None:
                done.set_result(None)
            else:
                done.set_exception(own)

    async def _attempt(self, puts: Sequence[PutItem], loop: asyncio.AbstractEventLoop) -> BaseException | None:
        written = offload(self._write, puts, wait_on(loop))
        [fault] = await asyncio.gather(written, return_exceptions=True)
        return fault
