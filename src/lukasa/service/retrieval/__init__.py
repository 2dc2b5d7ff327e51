"""Retrieval: read and context, and why an entry was found or not."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = ["disclosing", "explain", "find", "gather", "grounds", "read", "rewrite"]

if TYPE_CHECKING:
    from lukasa.service.retrieval import disclosing, explain, find, gather, grounds, read, rewrite
else:
    __getattr__ = submodules(__name__, __all__)
