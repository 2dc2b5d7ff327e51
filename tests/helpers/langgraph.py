"""LangGraph stores under test: one face for synchronous and asynchronous calls, and an embedding function."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from langgraph.store.base import BaseStore, IndexConfig, Op, Result

from tests.fakes import FakeEmbedder

DIMENSIONS = 256
SYNONYMS = {"automobile": "car", "puppy": "dog"}
_fake = FakeEmbedder(DIMENSIONS, synonyms=SYNONYMS)


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Similar words, similar vectors, as LangGraph wants a function to give them."""
    rows: list[list[float]] = _fake.embed_memories(texts).tolist()
    return rows


async def aembed(texts: Sequence[str]) -> list[list[float]]:
    await asyncio.sleep(0)
    return embed(texts)


def index(**changes: Any) -> IndexConfig:
    config: IndexConfig = {"dims": DIMENSIONS, "embed": embed, **changes}  # type: ignore[typeddict-item]
    return config


class Face:
    """A store as a test calls it. With `loops`, each call is an asynchronous one on a loop of its own."""

    def __init__(self, store: BaseStore, *, loops: bool = False) -> None:
        self.store = store
        self._loops = loops

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if self._loops:
            return asyncio.run(getattr(self.store, f"a{name}")(*args, **kwargs))
        return getattr(self.store, name)(*args, **kwargs)

    def put(self, *args: Any, **kwargs: Any) -> Any:
        return self._call("put", *args, **kwargs)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        return self._call("get", *args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        return self._call("delete", *args, **kwargs)

    def search(self, *args: Any, **kwargs: Any) -> Any:
        return self._call("search", *args, **kwargs)

    def list_namespaces(self, **kwargs: Any) -> Any:
        return self._call("list_namespaces", **kwargs)

    def batch(self, ops: Sequence[Op]) -> list[Result]:
        results: list[Result] = self._call("batch", ops)
        return results

    def keys(self, *args: Any, **kwargs: Any) -> list[str]:
        return [item.key for item in self.search(*args, **kwargs)]
