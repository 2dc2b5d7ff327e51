"""Errors of SQLite as errors of Lukasa."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import apsw

from lukasa.model.errors import (
    Conflict,
    LukasaError,
    Refused,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
)

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
        case apsw.IOError():
            return StoreError(
                f"{path}: reading or writing failed: {error}", fix="check the disk, its quota and its permissions"
            )
        case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return StoreError(f"{path}: cannot be opened for writing: {error}", fix="check its permissions and owner")
        case apsw.TooBigError():
            return StoreError(f"{path}: a value is too large: {error}", fix="split it")
    return StoreError(f"{path}: {error}", fix="run `lukasa doctor`")


def busy(path: Path) -> StoreBusy:
    return StoreBusy(f"{path}: another process kept it locked", fix="stop that process or try again")


def full(path: Path) -> StoreFull:
    return StoreFull(f"{path}: no space left", fix="free some space and try again; what was stored before is kept")


def damaged(path: Path, why: str) -> StoreDamaged:
    return StoreDamaged(f"{path}: {why}", fix="restore it from a backup; it was not changed")
