"""Entries: write, revise and undo them; pages, documents, files and items."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

if TYPE_CHECKING:
    from lukasa.service.entries import files, items, pages, put, resolve, revise, undo

__all__ = ["files", "items", "pages", "put", "resolve", "revise", "undo"]

__getattr__ = submodules(__name__, __all__)
