"""Lukasa as a LangGraph store: `batch` translates operations into the service's verbs, and all else is sugar."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
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
from lukasa.model import item as model
from lukasa.model.errors import InvalidInput
from lukasa.model.item import ItemAddress, ItemFilter
from lukasa.ports import Embedder
from lukasa.service.entries import items
from lukasa.service.entries.items import ItemSearch, Pattern, PutItem
from lukasa.service.upkeep import backfill
from lukasa.service.workspace import Workspace
from lukasa.storage.port import FoundItem
from lukasa.surfaces.langgraph.embedding import WHOLE, Index, IndexEmbedder, checked_fields, texts_of
from lukasa.surfaces.langgraph.sweeping import Sweeper
from lukasa.surfaces.offload import Wait, offload, wait_apart, wait_on

_SWEEP_MINUTES = 5.0
_OWN_INDEX = "langgraph"  # whose vectors an item gets: those of a store's index, whichever its function
_TTL_SETTINGS = frozenset({"refresh_on_read", "omit_expired", "default_ttl", "sweep_interval_minutes"})


class LukasaStore(BaseStore):
    """A store in a workspace's database. Values are kept as they are given; every change is in the event log.

    With an `index`, its function makes the vectors. Without one the workspace's own embedder does, and without that
    a query is answered by the words it shares with the values. Safe to share between threads and event loops.
    """

    supports_ttl = True

    def __init__(self, workspace: Workspace, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None) -> None:
        unknown = set(ttl or {}) - _TTL_SETTINGS
        if unknown:
            raise InvalidInput(f"unknown ttl setting {sorted(unknown)[0]!r}", fix=f"use {', '.join(_TTL_SETTINGS)}")
        self.workspace = workspace
        self.ttl_config = ttl
        self._room = workspace.ctx
        self._index = Index.of(index) if index is not None else None
        self._fields = self._index.fields if self._index else WHOLE
        self._indexer = _OWN_INDEX if self._index else ""
        self._omit_expired = bool((ttl or {}).get("omit_expired", False))
        self._sweeper = Sweeper(self.sweep_ttl)
        self._memory: Lukasa | None = None

    @classmethod
    def open(
        cls,
        data: str | Path | None = None,
        workspace: str = DEFAULT_WORKSPACE,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        embedder: Embedder | str | None = None,
    ) -> LukasaStore:
        """Open memory in a folder and a workspace of it; `close` closes both. The arguments are `Lukasa.open`'s."""
        memory = Lukasa.open(data, embedder=embedder, surface="langgraph")
        try:
            store = cls(memory.workspace(workspace), index=index, ttl=ttl)
        except BaseException:
            memory.close()
            raise
        store._memory = memory
        return store

    def close(self) -> None:
        """Stop sweeping, and close what `open` opened. A workspace that was given is left open."""
        self._sweeper.stop()
        if self._memory is not None:
            self._memory.close()

    def __enter__(self) -> LukasaStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Operations

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answers in the order of the operations. Reads see the state before the batch's own writes."""
        return self._run(list(ops), wait_apart)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, in a thread. A call that is cancelled may still be carried out, but never by half."""
        return await offload(self._run, list(ops), wait_on(asyncio.get_running_loop()))

    def _run(self, ops: Sequence[Op], wait: Wait) -> list[Result]:
        embedder: Embedder | None = IndexEmbedder(self._index, wait) if self._index else self._room.embedder
        puts = [self._put(op) for op in ops if isinstance(op, PutOp)]
        results = [self._answer(op, embedder) for op in ops]
        if puts:
            items.write(self._room, puts, embedder)
        return results

    def _put(self, op: PutOp) -> PutItem:
        place = ItemAddress(op.namespace, op.key)
        if op.value is None:
            return PutItem(place, None)
        model.value_text(op.value)
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
        found = items.read(self._room, [place], omit_expired=self._omit_expired).get(place)
        if found is None:
            return None
        if op.refresh_ttl:
            items.renew(self._room, [found])
        return Item(**_fields_of(found))

    def _search(self, op: SearchOp, embedder: Embedder | None) -> list[SearchItem]:
        asked = ItemSearch(
            op.namespace_prefix, op.query, ItemFilter.of(op.filter), op.limit, op.offset, self._omit_expired
        )
        found = items.search(self._room, asked, embedder)
        if op.refresh_ttl:
            items.renew(self._room, [each.item for each in found])
        return [_hit(each) for each in found]

    def _list(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        patterns = [Pattern(condition.match_type, condition.path) for condition in op.match_conditions or ()]
        return items.namespaces(
            self._room,
            patterns,
            max_depth=op.max_depth,
            limit=op.limit,
            offset=op.offset,
            omit_expired=self._omit_expired,
        )

    def backfill(self, limit: int = 1000) -> int:
        """Make the vectors that are missing, as after a change of the index's function; returns how many items got any.

        Items without an index of their own get theirs by `Workspace.backfill` and `lukasa embed` as well.
        """
        embedder: Embedder | None = IndexEmbedder(self._index, wait_apart) if self._index else self._room.embedder
        return 0 if embedder is None else backfill.items(self._room, embedder, limit, indexer=self._indexer)

    # Expiry

    def sweep_ttl(self) -> int:
        """Remove what has expired; the answer is how many items that were."""
        return items.sweep(self._room)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep every few minutes in a thread. Cancel the answer, or call `stop_ttl_sweeper`, to end it."""
        configured = (self.ttl_config or {}).get("sweep_interval_minutes")
        return self._sweeper.start(float(sweep_interval_minutes or configured or _SWEEP_MINUTES))

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        return self._sweeper.stop(timeout)


def _fields_of(item: model.Item) -> dict[str, Any]:
    return {
        "namespace": item.place.namespace,
        "key": item.place.key,
        "value": item.value,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }


def _hit(found: FoundItem) -> SearchItem:
    return SearchItem(**_fields_of(found.item), score=found.score)
