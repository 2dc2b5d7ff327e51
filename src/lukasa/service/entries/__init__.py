"""Entries: write, revise and undo them; pages, documents, files and items."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = ["files", "items", "pages", "put", "resolve", "revise", "undo"]

if TYPE_CHECKING:
    from lukasa.service.entries import files, items, pages, put, resolve, revise, undo
else:
    __getattr__ = submodules(__name__, __all__)
