"""The past: what other programs remember, brought into memory with its words, its time and where it comes from."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = ["importing", "statements"]

if TYPE_CHECKING:
    from lukasa.service.past import importing, statements
else:
    __getattr__ = submodules(__name__, __all__)
