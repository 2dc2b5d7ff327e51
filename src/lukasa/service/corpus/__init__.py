"""The corpus: documents to look things up in, apart from memory, and the guard that keeps memory from copying them."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = [
    "adding",
    "canonical",
    "discovering",
    "documents",
    "feeds",
    "locations",
    "passages",
    "reading",
    "search",
    "submitting",
    "watching",
]

if TYPE_CHECKING:
    from lukasa.service.corpus import (
        adding,
        canonical,
        discovering,
        documents,
        feeds,
        locations,
        passages,
        reading,
        search,
        submitting,
        watching,
    )
else:
    __getattr__ = submodules(__name__, __all__)
