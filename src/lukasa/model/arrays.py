"""numpy, loaded when the first of its names is used.

It takes longer to import than the rest of the engine, and memory without vectors never needs it. Whoever computes
imports `np` from here and writes on as usual; whoever only annotates imports numpy for the type checker alone.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _Numpy:
        """Stands in for the module; a name is looked up there once, and then kept."""

        def __getattr__(self, name: str) -> Any:
            found = getattr(import_module("numpy"), name)
            setattr(self, name, found)
            return found

    np = _Numpy()


def at_hand() -> bool:
    """Whether numpy is loaded already: for a sum that it would do sooner, but that does not warrant loading it."""
    return "numpy" in sys.modules


__all__ = ["at_hand", "np"]
