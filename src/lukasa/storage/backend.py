"""The part of a store that a backend writes: the rows of one transaction.

`commit`, `job_queue`, `removal` and `reads` decide everything else (versions, uniqueness, events, order) over these few
methods, so that every engine decides alike. A backend's transaction implements `Rows`; inside it nobody else writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from lukasa.model.entry import Entry
from lukasa.model.item import Item, ItemAddress
from lukasa.model.scrub import Extent, Versioned
from lukasa.ports import EmbeddingModel
from lukasa.storage.codec import Query, Table, TextTable
from lukasa.storage.operations import ItemIndex
from lukasa.storage.tables import SealedEvent

Value = TypeVar("Value")


class ModelVector(NamedTuple):
    """A vector that was checked: the bytes of little-endian float32 numbers."""

    model: EmbeddingModel
    vector: bytes


class EntryVersion(NamedTuple):
    """An entry to store: the row, the version that it adds to its history, and its vector, if it comes with one.

    `content_version` is the version in which its text was last changed; `salt` is of the commitments in its events.
    """

    entry: Entry
    content_version: int
    salt: bytes
    action: str
    cause: str
    actor: str
    at: datetime
    vector: ModelVector | None


class StoredEntry(NamedTuple):
    """An entry as it is stored now. `row` is whatever the engine wants to be given back with it."""

    entry: Entry
    content_version: int
    salt: bytes
    row: Any = None


class StoredItem(Struct, frozen=True):
    """An item as it is stored, with its value as canonical text. A damaged one has an empty value."""

    item: Item
    text: str
    salt: bytes
    index: ItemIndex
    damaged: bool = False


class FieldVector(NamedTuple):
    """A checked vector of one field of an item."""

    field: str
    model: EmbeddingModel
    vector: bytes


class PassageVector(NamedTuple):
    """A checked vector of a passage, which its document and its number name."""

    passage: tuple[str, int]
    model: EmbeddingModel
    vector: bytes


class Traces(NamedTuple):
    """How many versions and vectors some entries have, and how many of the entries an action rests on."""

    versions: int
    vectors: int
    linked: int


class Rows(Protocol):
    """The rows that one transaction sees and changes."""

    # Plain tables, declared in `tables`
    def select(
        self,
        query: Query[Value],
        *values: Any,
        limit: int | None = None,
        after: str | None = None,
        hold: bool = False,
        only: Callable[[Sequence[Any]], bool] | None = None,
    ) -> list[Value]:
        """The values of a query in its order; a paged one begins behind the key `after`.

        Rows of which `only` says no are left out before they are decoded: a search through all rows is fast by that.
        With `hold`, rows that another transaction holds are left out, and the others are held until this one ends. An
        engine with one writer at a time has nothing to do for it.
        """
        ...

    def count(self, query: Query[Any], *values: Any) -> int: ...
    def count_by(self, query: Query[Any], column: str, *values: Any) -> dict[Any, int]:
        """How many rows of a query have each value of a column."""
        ...

    def insert(self, table: Table[Value], values: Sequence[Value]) -> None: ...
    def save(self, table: Table[Value], value: Value) -> None:
        """Insert a value, or replace all but the fixed columns of the row with its key."""
        ...

    def delete(self, query: Query[Any], *values: Any) -> int:
        """Remove the rows of a query, and return how many there were."""
        ...

    # The event log
    def head(self) -> tuple[int, str]:
        """The number and the digest of the last event; number 0 and `GENESIS` if there is none."""
        ...

    def append_events(self, events: Sequence[SealedEvent]) -> None:
        """Add events at the end of the log; the last of them is its head from now on."""
        ...

    def redact_events(self, ranges: Sequence[tuple[int, int]], scrub: int) -> None:
        """Empty the subject and the detail of events in ranges of numbers, on behalf of the event `scrub`."""
        ...

    # Entries, with their versions, keyword index and vectors
    def used_ids(self, ids: Sequence[str]) -> dict[str, bool]:
        """The ids that were ever used, each with whether its entry is gone."""
        ...

    def entry_ids(self, part: str, limit: int) -> list[str]:
        """The ids of entries that begin or end with this text, at most `limit` of them."""
        ...

    def stored_entry(self, id: str) -> StoredEntry | None: ...
    def add_entries(self, new: Sequence[EntryVersion]) -> None:
        """Insert entries of unused ids. Raise `row_rules.twin_conflict` for one whose twin is active or held."""
        ...

    def replace_entry(self, before: StoredEntry, new: EntryVersion) -> None:
        """Replace an entry by its next version. Its vectors stay if its `content_version` does, and go otherwise.

        Raise `row_rules.twin_conflict` if another entry is its twin.
        """
        ...

    def drop_entries(self, ids: Collection[str], *, retire: bool = True) -> None:
        """Remove entries with their versions, vectors and index rows; their ids count as used for ever.

        Without `retire` they do not, because the caller adds them again in the same transaction.
        """
        ...

    def set_vector(self, stored: StoredEntry, vector: ModelVector) -> None:
        """Store a vector of an entry in place of the one of the same model."""
        ...

    def link_entries(self, action: str, ids: Sequence[str]) -> None:
        """Note that an action, which is in its table, rests on these entries; a link that is there stays."""
        ...

    def linked_entries(self, ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        """By entry, the actions that rest on it, the oldest link first; entries without any are absent."""
        ...

    def unlink_entries(self, ids: Collection[str]) -> None:
        """Remove the links of these entries, and the actions that rest on nothing then."""
        ...

    def entries_within(self, extent: Extent) -> Versioned:
        """The ids and versions of the entries that a scrub reaches, in the order of writing."""
        ...

    def entry_traces(self, ids: Collection[str]) -> Traces: ...

    # Items, with their vectors
    def stored_item(self, place: ItemAddress) -> StoredItem | None: ...
    def save_item(self, stored: StoredItem) -> None:
        """Insert an item or replace the one in its place, without its vectors."""
        ...

    def item_models(self, place: ItemAddress) -> set[EmbeddingModel]:
        """The models that an item has vectors of."""
        ...

    def add_item_vectors(self, stored: StoredItem, vectors: Sequence[FieldVector]) -> None: ...
    def drop_item(self, place: ItemAddress) -> None: ...

    # Texts that are found by their words: messages and passages, each with a keyword index
    def add_texts(self, table: TextTable[Value], values: Sequence[Value]) -> None:
        """Insert values, and index their words."""
        ...

    def drop_texts(self, query: Query[Any], *values: Any) -> int:
        """Remove the rows of a query with their index rows and vectors, and return how many there were."""
        ...

    def set_passage_vectors(self, vectors: Sequence[PassageVector]) -> None:
        """Store vectors of passages that are there, each in place of the one of its model."""
        ...

    # Telemetry
    def count_wordy_telemetry(self) -> int:
        """How many telemetry events hold words in their metadata: a text with a space in it."""
        ...

    def empty_wordy_telemetry(self) -> None:
        """Empty the metadata of those."""
        ...


def get(rows: Rows, table: Table[Value], *key: Any) -> Value | None:
    """The value of a table with that key."""
    found = rows.select(table.one, *key, limit=1)
    return found[0] if found else None
