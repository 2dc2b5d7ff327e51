"""Find what is worth remembering in a session. Pure: texts in, cleaned texts and observations out."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = ["classifier", "noise", "observation", "rules"]

if TYPE_CHECKING:
    from lukasa.observe import classifier, noise, observation, rules
else:
    __getattr__ = submodules(__name__, __all__)
