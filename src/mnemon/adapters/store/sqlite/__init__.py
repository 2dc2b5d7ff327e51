"""A store on SQLite: see `store` for the class, `opening` for the files, `sql` for every statement."""

from mnemon.adapters.store.sqlite.opening import Role
from mnemon.adapters.store.sqlite.store import SqliteStore

__all__ = ["Role", "SqliteStore"]
