"""Texts of the in-memory store as their index would have them: the questions of `index.texts` over all values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from lukasa.index.postings import Postings
from lukasa.model.corpus import Passage, PassageFilters
from lukasa.model.text import terms as words
from lukasa.storage.codec import TextTable

Value = TypeVar("Value")


def admits(filters: PassageFilters, passage: Passage, collection: str) -> bool:
    """Whether a passage of a document of this collection passes filters."""
    return (
        (not filters.collections or collection in filters.collections)
        and (not filters.documents or passage.document in filters.documents)
        and set(filters.tags) <= set(passage.tags)
    )


class TextRows(Generic[Value]):
    """Implements `index.texts.TextRows` over the values of a table, in their order."""

    def __init__(
        self, table: TextTable[Value], values: Sequence[Value], admits: Callable[[Value], bool] = lambda value: True
    ) -> None:
        self.values, self._admits = values, admits
        self._text = table.positions["text"]
        self._encode: Callable[[Value], tuple[Any, ...]] = table.encode
        self._counts = [Counter(words(table.text(value))) for value in values]

    @property
    def all(self) -> range:
        return range(len(self.values))

    def size(self) -> int:
        return len(self.values)

    def frequencies(self, terms: Sequence[str]) -> Iterable[tuple[str, int]]:
        return [(term, sum(term in counts for counts in self._counts)) for term in terms]

    def postings(self, terms: Sequence[str]) -> Iterable[tuple[str, Postings]]:
        return [
            (term, Postings([row for row, counts in enumerate(self._counts) for _ in range(counts[term])]))
            for term in terms
        ]

    def lengths(self, rows: Sequence[int]) -> Mapping[int, int]:
        return {row: len(self._encode(self.values[row])[self._text]) for row in rows}

    def admitted(self, rows: Sequence[int]) -> Collection[int]:
        return [row for row in rows if self._admits(self.values[row])]
