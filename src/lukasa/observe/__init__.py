"""Find what is worth remembering in a session. Pure: texts in, cleaned texts and observations out."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = ["noise", "observation", "rules"]

if TYPE_CHECKING:
    from lukasa.observe import noise, observation, rules
else:
    __getattr__ = submodules(__name__, __all__)
