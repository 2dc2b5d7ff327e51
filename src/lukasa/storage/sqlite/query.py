"""Running a statement to its end: apsw steps lazily, and a half-read statement holds its locks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apsw

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
