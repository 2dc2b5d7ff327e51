"""A store on SQLite: see `store` for the class, `opening` for the files, `sql` for every statement."""

from lukasa.adapters.store.sqlite.opening import Role
from lukasa.adapters.store.sqlite.store import SqliteStore

__all__ = ["Role", "SqliteStore"]
