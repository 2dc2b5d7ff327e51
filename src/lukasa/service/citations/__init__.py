"""Citations: pin what an entry cites, check it before use, and tell what no longer holds."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = ["checking", "citing", "verifying"]

if TYPE_CHECKING:
    from lukasa.service.citations import checking, citing, verifying
else:
    __getattr__ = submodules(__name__, __all__)
