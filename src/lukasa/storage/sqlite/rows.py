"""Values as SQLite's statements take them: lists as JSON, words as the keyword index holds them, filters by name."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from lukasa.model.timestamps import micros_or_none
from lukasa.storage.entry_codec import EXEMPT, FILED, KINDS, SAID, STATES, anchor_text, entry_of, handle, scope_of
from lukasa.storage.port import Filters

__all__ = [
    "EXEMPT",
    "FILED",
    "KINDS",
    "SAID",
    "STATES",
    "anchor_text",
    "entry_of",
    "filter_bindings",
    "handle",
    "json_list",
    "scope_of",
    "token",
    "tokens",
]

_PLAIN_TERM = re.compile(r"[a-z0-9]{1,64}")
_PLAIN_TERMS = re.compile(r"[a-z0-9]{1,64}(?:\n[a-z0-9]{1,64})*")


def json_list(values: Iterable[Any]) -> str:
    return json.dumps(list(values))


def token(partition: int, term: str) -> str:
    """A term as the index holds it: one ASCII word that no tokenizer can split, fold or confuse with another's."""
    if _PLAIN_TERM.fullmatch(term):
        return f"{partition}x{term}"
    data = term.encode("utf-8")
    if len(data) <= 32:
        return f"{partition}y{data.hex()}"
    return f"{partition}z{hashlib.sha256(data).hexdigest()}"


def tokens(partition: int, terms: Sequence[str]) -> str:
    if _PLAIN_TERMS.fullmatch("\n".join(terms)):
        head = f"{partition}x"
        return head + f" {head}".join(terms)
    return " ".join([token(partition, term) for term in terms])


_LISTS = ("kinds", "categories", "tags", "sources", "curators", "states", "lifetimes", "conversations")


def filter_bindings(filters: Filters) -> dict[str, Any]:
    """Values for the filter clause; None for a condition that is not asked."""
    lists = {name: getattr(filters, name) for name in _LISTS}
    bound: dict[str, Any] = {name: json_list(values) if values else None for name, values in lists.items()}
    times = {"since": micros_or_none(filters.since), "until": micros_or_none(filters.until)}
    return bound | times | {"min_importance": filters.min_importance, "filed": filters.filed}
