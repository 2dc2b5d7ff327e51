"""Search as code over rows: keyword scoring, vector search, neighbour search and the read cache. No SQL is in here.

A backend gives the rows through the protocols of `index.rows`; it decides nothing about ranking.
"""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = ["ann", "neighbours", "vectors"]

if TYPE_CHECKING:
    from lukasa.index import ann, neighbours, vectors
else:
    __getattr__ = submodules(__name__, __all__)  # a process without vectors loads none of these
