"""numpy, loaded when the first of its names is used.

numpy takes longer to import than the rest of the engine, and memory without vectors never needs it. Code that computes
imports `np` from here and uses it as usual; code that only annotates imports numpy under TYPE_CHECKING.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _Numpy:
        """A proxy for the module: it looks each name up once and keeps it."""

        def __getattr__(self, name: str) -> Any:
            found = getattr(import_module("numpy"), name)
            setattr(self, name, found)
            return found

    np = _Numpy()


def at_hand() -> bool:
    """Whether numpy is already loaded: for a sum that numpy does faster, but that is not worth loading it."""
    return "numpy" in sys.modules


__all__ = ["at_hand", "np"]
