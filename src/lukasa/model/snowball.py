"""Load the English stemmer alone: importing its package would load thirty languages.

This module uses the package's folder as its own path, so that its parts can be imported one by one. Other users of
snowballstemmer in the same process are not affected.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

_package = find_spec("snowballstemmer")
__path__ = list(_package.submodule_search_locations or ()) if _package else []


class Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...


def english() -> Stemmer:
    """Make a stemmer. It keeps the word as state, so threads must not share one. Making one is cheap."""
    made: Stemmer = import_module(f"{__name__}.english_stemmer").EnglishStemmer()
    return made
