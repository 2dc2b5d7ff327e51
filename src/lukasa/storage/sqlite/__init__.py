"""A store on SQLite: see `store` for the class, `opening` for the files, `sql` for every statement."""

from lukasa.storage.sqlite.opening import Role
from lukasa.storage.sqlite.store import SqliteStore

__all__ = ["Role", "SqliteStore"]
