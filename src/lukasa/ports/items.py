"""The part of the store port that keeps items: what changes them, and the questions that can be asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Protocol

from lukasa.model.frozen import dataclass
from lukasa.model.item import Item, ItemFilter, Place, whole_text
from lukasa.ports.embedder import EmbeddingModel, Vector


@dataclass(frozen=True, slots=True)
class ItemVector:
    """What one field of an item means. `field` is the path that the text was found by."""

    field: str
    model: EmbeddingModel
    vector: Vector


@dataclass(frozen=True, slots=True)
class ItemIndex:
    """What an item is to be found by, kept with it: each field with its text, None for the whole value.

    `by` is empty if the workspace's embedder makes the vectors, and otherwise says who does.
    """

    texts: tuple[tuple[str, str | None], ...] = ()
    by: str = ""


@dataclass(frozen=True, slots=True)
class SaveItem:
    """Insert an item, or replace the one in its place, which keeps its time of creation and loses its vectors."""

    item: Item
    vectors: tuple[ItemVector, ...] = ()
    index: ItemIndex = ItemIndex()


@dataclass(frozen=True, slots=True)
class SaveItemVectors:
    """Add vectors of a model to an item that has none of it; ignored if its value or its index has moved on."""

    place: Place
    value: dict[str, Any]
    index: ItemIndex
    vectors: tuple[ItemVector, ...]


@dataclass(frozen=True, slots=True)
class UnembeddedItem:
    place: Place
    value: dict[str, Any]
    index: ItemIndex

    @property
    def texts(self) -> list[tuple[str, str]]:
        whole = whole_text(self.value)
        return [(field, whole if text is None else text) for field, text in self.index.texts]


@dataclass(frozen=True, slots=True)
class DropItem:
    """Remove an item for good. With `expired_by`, only one that has expired by then; otherwise a Conflict."""

    place: Place
    cause: str
    expired_by: datetime | None = None


@dataclass(frozen=True, slots=True)
class ItemQuery:
    """All items of a namespace and of those below it that pass a filter; `alive_at` leaves expired ones out.

    With `near`, those with a vector of that model come first, by the best cosine of any of their fields.
    """

    prefix: tuple[str, ...]
    filter: ItemFilter = field(default_factory=ItemFilter)
    alive_at: datetime | None = None
    near: tuple[EmbeddingModel, Vector] | None = None

    def admits(self, item: Item) -> bool:
        return (self.alive_at is None or not item.expired(self.alive_at)) and self.filter.admits(item.value)


@dataclass(frozen=True, slots=True)
class FoundItem:
    """Higher scores are better; None is the answer to no question, or of an item that has nothing to compare."""

    item: Item
    score: float | None = None


class ItemStore(Protocol):
    def items(self, places: Iterable[Place]) -> dict[Place, Item]: ...
    def find_items(self, query: ItemQuery, *, limit: int | None = None, offset: int = 0) -> list[FoundItem]:
        """Best first where something is asked for, then the last changed first. Filters come before the limit."""
        ...

    def item_namespaces(
        self, prefix: tuple[str, ...] = (), *, alive_at: datetime | None = None
    ) -> list[tuple[str, ...]]:
        """The namespaces that hold an item, at or below a namespace, in order."""
        ...

    def expired_items(self, at: datetime, limit: int) -> list[Place]: ...
    def unembedded_items(self, model: EmbeddingModel, indexer: str, limit: int) -> list[UnembeddedItem]:
        """Items of an index without a vector of this model, oldest first."""
        ...

    def touch_items(self, places: Sequence[Place], at: datetime) -> None:
        """Start the time to live of these items anew. Changes no value, and so leaves no event."""
        ...
