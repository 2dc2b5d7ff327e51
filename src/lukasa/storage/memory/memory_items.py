"""Items of the in-memory store, and the questions about them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.arrays import np
from lukasa.model.item import Item, ItemAddress, item_id, lifetime
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage.operations import ItemIndex
from lukasa.storage.port import FoundItem, ItemQuery, UnembeddedItem


class KeptItem(Struct, frozen=True):
    """An item with its vectors. Its value is kept as text, so that nobody else holds a reference to it."""

    text: str
    salt: bytes
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    ttl: float | None
    vectors: tuple[tuple[EmbeddingModel, Vector, str], ...]  # each with the field that it is of
    index: ItemIndex

    def at(self, place: ItemAddress) -> Item:
        times = (self.created_at, self.updated_at, self.expires_at)
        return Item(place, json.loads(self.text), *times, self.ttl, item_id(self.salt, place))


Items: TypeAlias = dict[ItemAddress, KeptItem]


def unembedded(items: Items, model: EmbeddingModel, indexer: str, limit: int) -> list[UnembeddedItem]:
    wanting = (
        UnembeddedItem(place, json.loads(kept.text), kept.index)
        for place, kept in items.items()
        if kept.index.texts and kept.index.by == indexer and model not in {of for of, *_ in kept.vectors}
    )
    return list(islice(wanting, limit))


def touched(items: Items, places: Iterable[ItemAddress], at: datetime) -> Items:
    span = {place: lifetime(items[place].ttl) for place in places if place in items}
    renewed = {place: replace(items[place], expires_at=at + left) for place, left in span.items() if left is not None}
    return items | renewed


def find(items: Items, query: ItemQuery, limit: int | None, offset: int) -> list[FoundItem]:
    depth = len(query.prefix)
    below = [place for place in items if place.namespace[:depth] == query.prefix]
    below.reverse()
    below.sort(key=lambda place: items[place].updated_at, reverse=True)
    scores = {place: _score(items[place], query) for place in below}
    below.sort(key=lambda place: (scores[place] is None, -(scores[place] or 0.0)))
    found = [FoundItem(items[place].at(place), scores[place]) for place in below]
    admitted = [f for f in found if query.admits(f.item)]
    return admitted[offset : None if limit is None else offset + limit]


def _score(kept: KeptItem, query: ItemQuery) -> float | None:
    if query.near is None:
        return None
    model, asked = query.near
    return max((_cosine(vector, asked) for of, vector, _ in kept.vectors if of == model), default=None)


def _cosine(a: Vector, b: Vector) -> float:
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return min(1.0, max(-1.0, float(np.dot(a, b)) / norms)) if norms else 0.0


def namespaces(items: Items, prefix: tuple[str, ...], alive_at: datetime | None) -> list[tuple[str, ...]]:
    held = {p.namespace for p, kept in items.items() if alive_at is None or not kept.at(p).expired(alive_at)}
    return sorted(namespace for namespace in held if namespace[: len(prefix)] == prefix)


def expired(items: Mapping[ItemAddress, KeptItem], at: datetime, limit: int) -> list[ItemAddress]:
    over = [(kept.expires_at, place) for place, kept in items.items() if kept.expires_at and kept.expires_at <= at]
    return [place for _, place in sorted(over, key=lambda pair: pair[0])[:limit]]
