"""Run a statement to its end, bind values as statements take them, and translate the engine's errors.

apsw steps lazily, and a half-read statement holds its locks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import apsw

from lukasa.model import system
from lukasa.model.errors import (
    Conflict,
    LukasaError,
    Refused,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
)
from lukasa.model.selection import Filters
from lukasa.model.timestamps import micros_or_none
from lukasa.storage import seals
from lukasa.storage.sqlite import sql

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


def commitments(db: apsw.Connection, family: str, subjects: Iterable[str]) -> dict[tuple[str, int], str]:
    """What the log committed to about these subjects; see `seals.commitments`."""
    return seals.commitments(all_rows(db, sql.EVENTS_ABOUT, (json_list(set(subjects)),)), family)


_LISTS = ("kinds", "categories", "tags", "sources", "curators", "states", "lifetimes", "conversations")


def filter_bindings(filters: Filters) -> dict[str, Any]:
    """Values for the filter clause; None for a condition that is not asked."""
    lists = {name: getattr(filters, name) for name in _LISTS}
    bound: dict[str, Any] = {name: json_list(values) if values else None for name, values in lists.items()}
    times = {"since": micros_or_none(filters.since), "until": micros_or_none(filters.until)}
    least = {"min_importance": filters.min_importance, "min_trust": filters.min_trust}
    return bound | times | least | {"filed": filters.filed}


_LITTLE = 1 << 17  # bytes: less than SQLite's side files take
_UNIQUE = frozenset({apsw.SQLITE_CONSTRAINT_UNIQUE, apsw.SQLITE_CONSTRAINT_PRIMARYKEY, apsw.SQLITE_CONSTRAINT_ROWID})


class translated:
    """A context that turns errors of SQLite into Lukasa's.

    A class, because every read enters several of these, and a generator takes several times as long.
    """

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, apsw.Error):
            raise translate(error, self._path) from error
        if isinstance(error, UnicodeDecodeError):  # apsw meets bytes that are no text
            raise damaged(self._path, "a text in it cannot be read") from error


def translate(error: apsw.Error, path: Path) -> LukasaError:
    match error:
        case apsw.FullError():
            return full(path)
        case apsw.BusyError() | apsw.LockedError():
            return busy(path)
        case apsw.CorruptError() | apsw.NotADBError():
            return damaged(path, str(error))
        case apsw.ConstraintError():
            if getattr(error, "extendedresult", 0) in _UNIQUE:
                return Conflict(f"something with that key exists already: {error}", fix="read it again")
            return Refused(f"the database refuses it: {error}", fix="remove what depends on it first")
        case apsw.IOError() if _no_room(path):
            return full(path)
        case apsw.IOError():
            return StoreError(
                f"{path}: reading or writing failed: {error}", fix="check the disk, its quota and its permissions"
            )
        case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return StoreError(f"{path}: cannot be opened for writing: {error}", fix="check its permissions and owner")
        case apsw.TooBigError():
            return StoreError(f"{path}: a value is too large: {error}", fix="split it")
    return StoreError(f"{path}: {error}", fix="run `lukasa doctor`")


def _no_room(path: Path) -> bool:
    """Whether an I/O error means a full disk: SQLite's own files beside the database have no error for that."""
    try:
        return system.free_bytes(path.parent) < _LITTLE
    except OSError:
        return False


def busy(path: Path) -> StoreBusy:
    return StoreBusy(f"{path}: another process kept it locked", fix="stop that process or try again")


def full(path: Path) -> StoreFull:
    fix = "free some space and try again; what was stored before is kept, and can be read"
    return StoreFull(f"{path}: no space left on the disk", fix=fix)


def damaged(path: Path, why: str) -> StoreDamaged:
    return StoreDamaged(f"{path}: {why}", fix="run `lukasa doctor`; what it cannot mend, restore from a backup")
