"""Turning what was said into what is worth remembering. Pure: texts in, cleaned texts and observations out."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = ["cleaning", "observation", "rules"]

if TYPE_CHECKING:
    from lukasa.observe import cleaning, observation, rules
else:
    __getattr__ = submodules(__name__, __all__)
