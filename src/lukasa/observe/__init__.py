"""Turning what was said into what is worth remembering. Pure: texts in, cleaned texts and observations out."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

if TYPE_CHECKING:
    from lukasa.observe import cleaning, observation, rules

__all__ = ["cleaning", "observation", "rules"]

__getattr__ = submodules(__name__, __all__)
