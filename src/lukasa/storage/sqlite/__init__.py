"""A store on SQLite: see `store` for the class, `opening` for the files, `sql` for every statement."""

from typing import TYPE_CHECKING

from lukasa.model import submodules
from lukasa.storage.sqlite.opening import Role
from lukasa.storage.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from lukasa.storage.sqlite import check, item_rows
else:
    __getattr__ = submodules(__name__, ("check", "item_rows"))

__all__ = ["Role", "SqliteStore", "check", "item_rows"]
