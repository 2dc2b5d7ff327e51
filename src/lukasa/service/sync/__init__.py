"""Sync: what this machine has to tell of its memory, and what others told, merged into it."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = ["replica"]

if TYPE_CHECKING:
    from lukasa.service.sync import replica
else:
    __getattr__ = submodules(__name__, __all__)
