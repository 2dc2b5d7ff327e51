"""Running a statement to its end, and values as statements take them. apsw steps lazily, and a half-read statement
holds its locks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import apsw

from lukasa.model.selection import Filters
from lukasa.model.timestamps import micros_or_none

Row = tuple[Any, ...]


def all_rows(db: apsw.Connection, statement: str, bindings: Any = ()) -> list[Row]:
    return db.execute(statement, bindings).fetchall()


def rows_of_each(db: apsw.Connection, statement: str, bindings: Iterable[Any]) -> list[Row]:
    """All rows for one set of values after the other, where equality finds each: a list to look into costs more."""
    return db.executemany(statement, bindings).fetchall()


def one_row(db: apsw.Connection, statement: str, bindings: Any = ()) -> Row | None:
    found = all_rows(db, statement, bindings)
    return found[0] if found else None


def one_value(db: apsw.Connection, statement: str, bindings: Any = ()) -> Any:
    """The first column of the first row; None if there is no row."""
    found = all_rows(db, statement, bindings)
    return found[0][0] if found else None


def stream(db: apsw.Connection, statement: str, bindings: Any = ()) -> Iterator[Row]:
    """Row by row, for what may not fit in memory; read it to the end."""
    return db.execute(statement, bindings)


def json_list(values: Iterable[Any]) -> str:
    return json.dumps(list(values))


_LISTS = ("kinds", "categories", "tags", "sources", "curators", "states", "lifetimes", "conversations")


def filter_bindings(filters: Filters) -> dict[str, Any]:
    """Values for the filter clause; None for a condition that is not asked."""
    lists = {name: getattr(filters, name) for name in _LISTS}
    bound: dict[str, Any] = {name: json_list(values) if values else None for name, values in lists.items()}
    times = {"since": micros_or_none(filters.since), "until": micros_or_none(filters.until)}
    return bound | times | {"min_importance": filters.min_importance, "filed": filters.filed}
