"""Hooks of a coding agent: memory for a session that starts, a prompt, a failed tool, and a session that ends."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

if TYPE_CHECKING:
    from lukasa.surfaces.hooks import passages

__all__ = ["passages"]

__getattr__ = submodules(__name__, __all__)
