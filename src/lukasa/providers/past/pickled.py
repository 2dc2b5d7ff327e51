"""Values from pickles, without running anything that they name.

Qdrant's local mode keeps its points as pickles. Python's own reader would call any function that such a file names.
This one follows only the instructions that put values together: whatever a pickle names becomes an inert value that
keeps what it is given, and every other instruction ends the reading.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

MOST_BYTES = 4 * 2**20
_PLAIN = frozenset(
    "BININT BININT1 BININT2 INT LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE "
    "SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8".split()
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_STORING = ("PUT", "BINPUT", "LONG_BINPUT")
_FETCHING = ("GET", "BINGET", "LONG_BINGET")


class _Inert:
    """Stands for anything that a pickle names; `state` is what it is given."""

    def __init__(self) -> None:
        self.state: Any = None


class _Machine:
    """The stack, the marks and the memo of a pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._steps: dict[str, Callable[[], None]] = {
            "PROTO": lambda: None,
            "FRAME": lambda: None,
            "MARK": lambda: self._marks.append(len(self.stack)),
            "POP": self._pop,
            "POP_MARK": self._since_mark_away,
            "DUP": lambda: self.stack.append(self.stack[-1]),
            "MEMOIZE": lambda: self._memo.__setitem__(len(self._memo), self.stack[-1]),
            "EMPTY_DICT": lambda: self.stack.append({}),
            "EMPTY_LIST": lambda: self.stack.append([]),
            "EMPTY_SET": lambda: self.stack.append([]),
            "EMPTY_TUPLE": lambda: self.stack.append(()),
            "TUPLE": lambda: self.stack.append(tuple(self._since_mark())),
            "TUPLE1": lambda: self._tuple(1),
            "TUPLE2": lambda: self._tuple(2),
            "TUPLE3": lambda: self._tuple(3),
            "LIST": lambda: self.stack.append(self._since_mark()),
            "FROZENSET": lambda: self.stack.append(self._since_mark()),
            "DICT": lambda: self.stack.append(_pairs(self._since_mark())),
            "APPEND": lambda: self._add([self.stack.pop()]),
            "APPENDS": lambda: self._add(self._since_mark()),
            "ADDITEMS": lambda: self._add(self._since_mark()),
            "SETITEM": lambda: self._set([self.stack.pop(-2), self.stack.pop()]),
            "SETITEMS": lambda: self._set(self._since_mark()),
            "GLOBAL": lambda: self.stack.append(_Inert()),
            "STACK_GLOBAL": lambda: self._made(2),
            "NEWOBJ": lambda: self._made(2),
            "NEWOBJ_EX": lambda: self._made(3),
            "REDUCE": lambda: self._made(2),
            "BUILD": self._build,
            "STOP": lambda: None,
        }

    def step(self, name: str, given: Any) -> None:
        if name in _PLAIN:
            self.stack.append(given)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _STORING:
            self._memo[int(given)] = self.stack[-1]
        elif name in _FETCHING:
            self.stack.append(self._memo[int(given)])
        else:
            self._steps[name]()

    def _pop(self) -> None:
        self.stack.pop()

    def _since_mark(self) -> list[Any]:
        at = self._marks.pop()
        found = self.stack[at:]
        del self.stack[at:]
        return found

    def _since_mark_away(self) -> None:
        self._since_mark()

    def _tuple(self, size: int) -> None:
        found = tuple(self.stack[-size:])
        del self.stack[-size:]
        self.stack.append(found)

    def _add(self, values: list[Any]) -> None:
        if isinstance(self.stack[-1], list):
            self.stack[-1].extend(values)

    def _set(self, values: list[Any]) -> None:
        if isinstance(self.stack[-1], dict):
            self.stack[-1].update(_pairs(values))

    def _made(self, size: int) -> None:
        """Put an inert value in place of a name, or of what a call would return."""
        del self.stack[-size:]
        self.stack.append(_Inert())

    def _build(self) -> None:
        state = self.stack.pop()
        if isinstance(self.stack[-1], _Inert):
            self.stack[-1].state = state


def _pairs(values: list[Any]) -> dict[Any, Any]:
    return {key: value for key, value in zip(values[::2], values[1::2], strict=False) if isinstance(key, str | int)}


def fields(data: bytes) -> dict[str, Any]:
    """Return the fields of a pickled object; none if the bytes are no such pickle."""
    if len(data) > MOST_BYTES:
        return {}
    machine = _Machine()
    try:
        for one, given, _ in pickletools.genops(data):
            machine.step(one.name, given)
        found = machine.stack[-1]
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, MemoryError, RecursionError):
        return {}
    state = found.state if isinstance(found, _Inert) else found
    if isinstance(state, tuple):
        state = next((one for one in state if isinstance(one, dict)), None)
    if isinstance(state, dict) and isinstance(state.get("__dict__"), dict):
        state = state["__dict__"]
    return state if isinstance(state, dict) else {}
