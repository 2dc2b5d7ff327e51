"""Calls from an event loop into the synchronous core, and back to the loop for functions that need it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def offload(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in a thread. Cancelling the caller does not interrupt it, so it never writes by half."""
    return await asyncio.to_thread(function, *args, **kwargs)


class Wait(Protocol):
    """A function that runs a coroutine to its end from synchronous code."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> T: ...


def wait_apart(coroutine: Coroutine[Any, Any, T], /) -> T:
    """Run a coroutine on a new loop in a new thread: the caller's thread may run a loop already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def wait_on(loop: asyncio.AbstractEventLoop) -> Wait:
    """Return a function that runs coroutines on the caller's loop. Only for threads that this loop waits for."""

    def wait(coroutine: Coroutine[Any, Any, T], /) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    return wait
