"""LangGraph's index configuration as an embedder, and the texts of a value that the index names."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain_core.embeddings import Embeddings
from langgraph.store.base import ensure_embeddings, get_text_at_path
from msgspec import Struct

from lukasa.model.arrays import np
from lukasa.model.errors import InvalidInput
from lukasa.ports import EmbeddingModel, Vector
from lukasa.surfaces.offload import Wait

WHOLE = ("$",)


# What LangGraph's SQLite and PostgreSQL stores take as well: a program may change its store and keep its configuration.
_SETTINGS = ("dims", "embed", "fields", "text_fields", "distance_type", "ann_index_config")
_DISTANCES = ("cosine", "l2", "inner_product")


class Index(Struct, frozen=True):
    """A checked index configuration. Unlike the dictionary, it refuses unknown keys.

    `text_fields` is another name of `fields`. `distance_type` and `ann_index_config` change nothing: Lukasa compares by
    cosine, which orders vectors of length one as the other two do, and chooses its index by the size of memory.
    """

    model: EmbeddingModel
    fields: tuple[str, ...]
    embeddings: Embeddings
    is_async: bool

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Index:
        unknown = set(config) - set(_SETTINGS)
        if unknown:
            raise InvalidInput(f"unknown index setting {sorted(unknown)[0]!r}", fix=f"use {', '.join(_SETTINGS)}")
        dims, embed = config.get("dims"), config.get("embed")
        if not isinstance(dims, int) or dims < 1:
            raise InvalidInput(f"dims is {dims!r}, not a positive integer", fix="give the dimensions of the embedding")
        if embed is None:
            raise InvalidInput("the index has no embedding function", fix="give it as `embed`")
        if config.get("distance_type", "cosine") not in _DISTANCES:
            raise InvalidInput("unknown distance_type", fix=f"use one of {', '.join(_DISTANCES)}, or leave it out")
        if not isinstance(config.get("ann_index_config", {}), Mapping):
            raise InvalidInput("ann_index_config must be a mapping", fix="leave it out: Lukasa chooses its index")
        return cls(EmbeddingModel(_name(embed), dims, ""), _fields(config), ensure_embeddings(embed), _is_async(embed))


def _fields(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return `fields`, or `text_fields`, which may be one path."""
    given = [config[name] for name in ("fields", "text_fields") if config.get(name) is not None]
    listed = [checked_fields([one] if isinstance(one, str) and "fields" not in config else one) for one in given]
    if len(set(listed)) > 1:
        raise InvalidInput("fields and text_fields differ", fix="give one of them")
    return listed[0] if listed else WHOLE


def checked_fields(fields: Any) -> tuple[str, ...]:
    if not isinstance(fields, list | tuple) or not all(isinstance(path, str) for path in fields):
        raise InvalidInput("fields must be a list of paths", fix='write them as ["title", "body.text"]')
    return tuple(fields)


def _name(embed: Any) -> str:
    """Return the name of the embedding model. Vectors of models with different names are never compared."""
    if isinstance(embed, str):
        return f"langgraph:{embed}"
    if isinstance(embed, Embeddings):
        return f"langgraph:{type(embed).__qualname__}:{getattr(embed, 'model', '')}"
    return f"langgraph:{getattr(embed, '__qualname__', type(embed).__qualname__)}"


def _is_async(embed: Any) -> bool:
    return inspect.iscoroutinefunction(embed) or inspect.iscoroutinefunction(getattr(embed, "__call__", None))  # noqa: B004


class IndexEmbedder(Struct, frozen=True):
    """Implement `lukasa.ports.Embedder` for one call, which knows how to wait for an async function."""

    index: Index
    wait: Wait

    @property
    def model(self) -> EmbeddingModel:
        return self.index.model

    def embed_memories(self, texts: Sequence[str]) -> Vector:
        embed = self.index.embeddings
        if self.index.is_async:
            rows = self.wait(_finished(embed.aembed_documents, list(texts)))
        else:
            rows = embed.embed_documents(list(texts))
        return self._checked(rows, len(texts))

    def embed_query(self, text: str) -> Vector:
        embed = self.index.embeddings
        row = self.wait(_finished(embed.aembed_query, text)) if self.index.is_async else embed.embed_query(text)
        vector: Vector = self._checked([row], 1)[0]
        return vector

    def _checked(self, rows: Any, count: int) -> Vector:
        if len(rows) != count or any(len(row) != self.model.dimensions for row in rows):
            raise InvalidInput(
                f"the embedding function must give {count} vectors of {self.model.dimensions} numbers",
                fix="set dims to the dimensions of the function's vectors",
            )
        vectors = np.asarray(rows, dtype=np.float32)
        if not np.isfinite(vectors).all():
            raise InvalidInput("the embedding function gave a vector that is not finite", fix="check its input")
        return vectors


async def _finished(function: Callable[[Any], Awaitable[Any]], argument: Any) -> Any:
    return await function(argument)


def texts_of(value: Mapping[str, Any], fields: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return each text at a path, under a name of its own."""
    named: dict[str, str] = {}
    for path in fields:
        found = get_text_at_path(value, path)
        for index, text in enumerate(found):
            named[f"{path}.{index}" if len(found) > 1 else path] = text
    return tuple(named.items())
