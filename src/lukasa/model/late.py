"""Modules that are loaded, and patterns that are compiled, when they are first used.

A hook needs a tenth of what a workspace can do, and everybody waits for it. Whoever offers what few call imports it
for the type checker alone, and at run time names it here:

    if TYPE_CHECKING:
        from lukasa.service import scrubbing
    else:
        scrubbing = late("lukasa.service.admin.scrub")

The layers hold for these names as for imports; `tests/architecture` reads both.
"""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["late", "pattern"]


class _Late:
    """Stands in for a module, and asks it anew for each name: what was changed there is seen here."""

    __slots__ = ("__name__", "_module")

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._module: ModuleType | None = None  # once all of it is loaded

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = import_module(self.__name__)
        return getattr(self._module, name)

    def __repr__(self) -> str:
        return f"<late module {self.__name__!r}>"


def late(module: str) -> Any:
    return _Late(module)


class _Pattern:
    """Stands in for a compiled pattern; a method of it is looked up there once, and then kept."""

    def __init__(self, text: str, flags: int) -> None:
        self._written = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._written), name)
        setattr(self, name, found)
        return found


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile`, but later: for what takes long to compile, and few texts need."""
    made: Any = _Pattern(text, flags)
    return made  # type: ignore[no-any-return]
