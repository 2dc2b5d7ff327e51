"""The one way from an event loop into the synchronous core, and back for functions that need the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def offload(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in a thread. Cancelling the caller does not interrupt it: what it writes is written whole."""
    return await asyncio.to_thread(function, *args, **kwargs)


class Wait(Protocol):
    """Runs a coroutine to its end from synchronous code."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> T: ...


def wait_apart(coroutine: Coroutine[Any, Any, T], /) -> T:
    """On a loop of its own, in a thread of its own: the caller's thread may be running a loop already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def wait_on(loop: asyncio.AbstractEventLoop) -> Wait:
    """On the loop that the call came from, where its clients live. Only for threads that the loop waits for."""

    def wait(coroutine: Coroutine[Any, Any, T], /) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    return wait
