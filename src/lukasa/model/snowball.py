"""The English stemmer alone. Its package's index would load thirty languages whenever one of them is asked for.

This module gives the package's folder as its own, so that its parts can be loaded from here one by one; whoever uses
snowballstemmer beside us finds it untouched.
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
    """A stemmer of one's own: it holds its word in itself, so threads must not share one. Making one is cheap."""
    made: Stemmer = import_module(f"{__name__}.english_stemmer").EnglishStemmer()
    return made
