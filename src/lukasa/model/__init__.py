"""Frozen values that every package shares, and one tree of errors."""

from collections.abc import Callable, Collection
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__all__ = ["intents", "requests", "secret_forms", "submodules"]


def submodules(package: str, names: Collection[str]) -> Callable[[str], ModuleType]:
    """Return a `__getattr__` for a package that imports each named module when it is first used.

    A hook calls three or four verbs of a workspace, and a person waits for it. So a package that holds modules for
    many verbs loads none of them itself: callers write `entries.undo.undo(…)`, and the first call imports `undo`.
    """

    def load(name: str) -> ModuleType:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return load


if TYPE_CHECKING:
    from lukasa.model import intents, requests, secret_forms
else:
    __getattr__ = submodules(__name__, ("intents", "requests", "secret_forms"))
