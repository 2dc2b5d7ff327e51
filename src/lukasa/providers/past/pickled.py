"""Pickles of a known kind, read without running anything that they name.

Qdrant's local mode keeps its points as pickles. A pickle may name any function and call it; here each name becomes an
inert value that only keeps what it is given, and the few instructions that may reserve memory are refused.
"""

from __future__ import annotations

import pickle
import pickletools
from io import BytesIO
from typing import Any

MOST_BYTES = 4 * 2**20
_REFUSED = frozenset({"BYTEARRAY8", "NEXT_BUFFER", "READONLY_BUFFER", "PERSID", "BINPERSID", "EXT1", "EXT2", "EXT4"})


class Inert:
    """Stands for anything that a pickle names: it does nothing, and keeps what it is made with."""

    def __new__(cls, *args: Any, **named: Any) -> Inert:
        made = super().__new__(cls)
        made.__dict__["given"] = (args, named)
        return made

    def __init__(self, *args: Any, **named: Any) -> None: ...

    def __call__(self, *args: Any, **named: Any) -> Inert:
        return Inert(*args, **named)

    def __setstate__(self, state: Any) -> None:
        self.__dict__["state"] = state

    def __setitem__(self, key: Any, value: Any) -> None: ...
    def append(self, value: Any) -> None: ...
    def extend(self, values: Any) -> None: ...
    def __hash__(self) -> int:
        return id(self)


class _Reader(pickle._Unpickler):
    """The one written in Python: its memo grows with what is put into it, not with the number of a place."""

    def find_class(self, module: str, name: str) -> Any:
        return Inert


def fields(data: bytes) -> dict[str, Any]:
    """Return the fields of a pickled object; none if the bytes are no such pickle."""
    if len(data) > MOST_BYTES:
        return {}
    try:
        if any(one.name in _REFUSED for one, _, _ in pickletools.genops(data)):
            return {}
        found = _Reader(BytesIO(data)).load()
    except Exception:  # noqa: BLE001 - a pickle can fail in any way, and none of them concerns anybody else
        return {}
    state = found.__dict__.get("state") if isinstance(found, Inert) else found
    if isinstance(state, tuple):
        state = next((one for one in state if isinstance(one, dict)), None)
    if isinstance(state, dict) and isinstance(state.get("__dict__"), dict):
        state = state["__dict__"]
    return state if isinstance(state, dict) else {}
