"""A store on SQLite: `sqlite_store` has the class, `sqlite_rows` the rows of a transaction, `search` those of a search,
`store_files` the files, and `sql` every statement that no declared table makes."""

from typing import TYPE_CHECKING

from lukasa.model import submodules
from lukasa.storage.sqlite.sqlite_store import SqliteStore
from lukasa.storage.sqlite.store_files import Role

if TYPE_CHECKING:
    from lukasa.storage.sqlite import integrity, item_rows, text_rows, vector_blobs
else:
    __getattr__ = submodules(__name__, ("integrity", "item_rows", "text_rows", "vector_blobs"))

__all__ = ["Role", "SqliteStore", "integrity", "item_rows", "text_rows", "vector_blobs"]
