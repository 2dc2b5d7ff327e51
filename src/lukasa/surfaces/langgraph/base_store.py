"""Lukasa as a LangGraph store: `batch` translates operations into calls of the service; the rest builds on it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from lukasa.app import DEFAULT_WORKSPACE, Lukasa
from lukasa.model import item
from lukasa.model.errors import InvalidInput, LukasaError
from lukasa.model.item import ItemAddress, ItemFilter, value_text
from lukasa.ports import Embedder
from lukasa.service.entries import store_items
from lukasa.service.entries.store_items import ItemSearch, Pattern, PutItem
from lukasa.service.upkeep import backfill
from lukasa.service.workspace import Workspace
from lukasa.storage.port import FoundItem
from lukasa.surfaces.langgraph.batching import PutBatcher
from lukasa.surfaces.langgraph.embedding import WHOLE, Index, IndexEmbedder, checked_fields, texts_of
from lukasa.surfaces.offload import Wait, offload, wait_apart, wait_on

_SWEEP_MINUTES = 5.0
_OWN_INDEX = "langgraph"  # the mark of vectors that a store's own index function made
_TTL_SETTINGS = frozenset({"refresh_on_read", "omit_expired", "default_ttl", "sweep_interval_minutes"})


class LukasaStore(BaseStore):
    """A store in the database of a workspace. It keeps values as given, and logs every change as an event.

    With an `index`, its function makes the vectors; without one, the embedder of the workspace does. Without any
    embedder a query finds the values that share its words. Threads and event loops may share a store.
    """

    supports_ttl = True

    def __init__(self, workspace: Workspace, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None) -> None:
        unknown = set(ttl or {}) - _TTL_SETTINGS
        if unknown:
            raise InvalidInput(f"unknown ttl setting {sorted(unknown)[0]!r}", fix=f"use {', '.join(_TTL_SETTINGS)}")
        self.workspace = workspace
        self.ttl_config = ttl
        self._ctx = workspace.ctx
        self._index = Index.of(index) if index is not None else None
        self._fields = self._index.fields if self._index else WHOLE
        self._indexer = _OWN_INDEX if self._index else ""
        self._omit_expired = bool((ttl or {}).get("omit_expired", False))
        self._renews = bool((ttl or {}).get("refresh_on_read", False))
        self._batcher = PutBatcher(self._write)
        self._sweeper = Sweeper(self.sweep_ttl)
        self._memory: Lukasa | None = None

    @classmethod
    def open(
        cls,
        data: str | Path | None = None,
        workspace: str = DEFAULT_WORKSPACE,
        *,
        database: str | None = None,
        account: str | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        embedder: Embedder | str | None = None,
    ) -> LukasaStore:
        """Open memory in a folder or a database, and a workspace of it; `close` closes both.

        The arguments are `Lukasa.open`'s.
        """
        memory = Lukasa.open(data, database=database, account=account, embedder=embedder, surface="langgraph")
        try:
            store = cls(memory.workspace(workspace), index=index, ttl=ttl)
        except BaseException:
            memory.close()
            raise
        store._memory = memory
        return store

    def close(self) -> None:
        """Stop the sweeper, and close what `open` opened. A workspace from the constructor stays open."""
        self._sweeper.stop()
        if self._memory is not None:
            self._memory.close()

    def __enter__(self) -> LukasaStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> LukasaStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await offload(self.close)

    # Operations

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Return the answers in the order of the operations. Reads see the state before the batch's own writes."""
        return self._run(list(ops), wait_apart)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same as `batch`, in a thread. A cancelled call may still be carried out, but never by half.

        Calls that only put, as `aput` does, and that the loop starts at the same moment, share one transaction.
        """
        asked = list(ops)
        if asked and all(isinstance(op, PutOp) for op in asked):
            await self._batcher.put([self._put(op) for op in asked if isinstance(op, PutOp)])
            return [None] * len(asked)
        return await offload(self._run, asked, wait_on(asyncio.get_running_loop()))

    def _run(self, ops: Sequence[Op], wait: Wait) -> list[Result]:
        embedder = self._embedder(wait)
        puts = [self._put(op) for op in ops if isinstance(op, PutOp)]
        results = [self._answer(op, embedder) for op in ops]
        if puts:
            store_items.write(self._ctx, puts, embedder)
        return results

    def _write(self, puts: Sequence[PutItem], wait: Wait) -> None:
        store_items.write(self._ctx, puts, self._embedder(wait))

    def _embedder(self, wait: Wait) -> Embedder | None:
        return IndexEmbedder(self._index, wait) if self._index else self._ctx.embedder

    def _put(self, op: PutOp) -> PutItem:
        place = ItemAddress(op.namespace, op.key)
        if op.value is None:
            return PutItem(place, None)
        value_text(op.value)
        fields = () if op.index is False else self._fields if op.index is None else checked_fields(op.index)
        return PutItem(place, op.value, op.ttl, texts_of(op.value, fields), self._indexer)

    def _answer(self, op: Op, embedder: Embedder | None) -> Result:
        match op:
            case PutOp():
                return None
            case GetOp():
                return self._get(op)
            case SearchOp():
                return self._search(op, embedder)
            case ListNamespacesOp():
                return self._list(op)
        raise InvalidInput(f"unknown operation {type(op).__name__}", fix="use Get, Put, Search or ListNamespaces")

    def _get(self, op: GetOp) -> Item | None:
        place = ItemAddress(op.namespace, op.key)
        found = store_items.read(self._ctx, [place], omit_expired=self._omit_expired).get(place)
        if found is None:
            return None
        if self._renews and op.refresh_ttl:
            store_items.renew(self._ctx, [found])
        return Item(**_fields_of(found))

    def _search(self, op: SearchOp, embedder: Embedder | None) -> list[SearchItem]:
        asked = ItemSearch(
            op.namespace_prefix, op.query, ItemFilter.of(op.filter), op.limit, op.offset, self._omit_expired
        )
        found = store_items.search(self._ctx, asked, embedder)
        if self._renews and op.refresh_ttl:
            store_items.renew(self._ctx, [each.item for each in found])
        return [_hit(each) for each in found]

    def _list(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        patterns = [Pattern(condition.match_type, condition.path) for condition in op.match_conditions or ()]
        return store_items.namespaces(
            self._ctx,
            patterns,
            max_depth=op.max_depth,
            limit=op.limit,
            offset=op.offset,
            omit_expired=self._omit_expired,
        )

    def backfill(self, limit: int = 1000) -> int:
        """Make missing vectors, as after a change of the index's function; return the number of items that got one.

        `Workspace.backfill` and `lukasa embed` do it too, for stores without an index of their own.
        """
        embedder = self._embedder(wait_apart)
        return 0 if embedder is None else backfill.items(self._ctx, embedder, limit, indexer=self._indexer)

    # Expiry

    def sweep_ttl(self) -> int:
        """Remove expired items, and return their number."""
        return store_items.sweep(self._ctx)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep every few minutes in a thread. Cancel the returned future, or call `stop_ttl_sweeper`, to end it."""
        configured = (self.ttl_config or {}).get("sweep_interval_minutes")
        return self._sweeper.start(float(sweep_interval_minutes or configured or _SWEEP_MINUTES))

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        return self._sweeper.stop(timeout)


def _fields_of(kept: item.Item) -> dict[str, Any]:
    return {
        "namespace": kept.place.namespace,
        "key": kept.place.key,
        "value": kept.value,
        "created_at": kept.created_at,
        "updated_at": kept.updated_at,
    }


def _hit(found: FoundItem) -> SearchItem:
    return SearchItem(**_fields_of(found.item), score=found.score)


# Removing expired items in the background

_log = logging.getLogger("lukasa.langgraph")


class Sweeper:
    """A thread that sweeps until somebody stops it."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._done: Future[None] = Future()

    def start(self, minutes: float) -> Future[None]:
        """Start the thread. The future is done when the sweeper has stopped; cancelling it stops the sweeper."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._stop, self._done = threading.Event(), Future()
                self._done.add_done_callback(_on_cancel(self._stop))
                work = (minutes * 60.0, self._stop, self._done)
                self._thread = threading.Thread(target=self._run, args=work, name="lukasa-sweeper", daemon=True)
                self._thread.start()
            return self._done

    def stop(self, timeout: float | None = None) -> bool:
        """Stop the thread, and return whether it ended within the timeout."""
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
                # The disk may be busy or full for a while; the next round finds the same items.
                _log.warning("could not remove expired items: %s", error)
        with suppress(InvalidStateError):  # somebody cancelled the future to stop the sweeper
            done.set_result(None)


def _on_cancel(stop: threading.Event) -> Callable[[Future[None]], None]:
    def stopped(done: Future[None]) -> None:
        if done.cancelled():
            stop.set()

    return stopped
