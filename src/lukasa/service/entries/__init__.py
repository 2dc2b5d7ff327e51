"""Entries: write, revise and undo them; pages, documents, files and items."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = ["categorise", "corroborate", "filed_entries", "pages", "put", "resolve", "revise", "store_items", "undo"]

if TYPE_CHECKING:
    from lukasa.service.entries import (
        categorise,
        corroborate,
        filed_entries,
        pages,
        put,
        resolve,
        revise,
        store_items,
        undo,
    )
else:
    __getattr__ = submodules(__name__, __all__)
