"""Find the files and symbols that a sentence names: `src/auth.py`, `src/auth.py:42`, `lukasa.app.Settings`.

Names alone say nothing: whoever asks looks which of them the project at hand has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

MOST = 8  # names of one text
LONGEST = 8000  # characters of a text that are looked through
_LINES = r"(?::(\d{1,7})(?:-(\d{1,7}))?|#L(\d{1,7})(?:-L?(\d{1,7}))?|::([A-Za-z_][\w.]*))?"
# A path has a folder, or its name an ending. What follows "://" is an address.
_PATH = re.compile(
    rf"(?<![\w/@:~$%\\.-])(/?(?:[\w@+.-]+/)+[\w@+.-]*[\w+-]|[\w@+-][\w@+.-]*\.[A-Za-z][\w+-]{{0,9}})"
    rf"{_LINES}(?![\w/\\])"
)
_MARKED = re.compile(r"`([^`\n]{1,300})`")
_SPACED = re.compile(rf"([^:#`]*\S){_LINES}")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){1,8}")


class NamedFile(Struct, frozen=True):
    """A file that a text may name, with lines or a symbol in it."""

    path: str
    first: int = 0
    last: int = 0
    symbol: str = ""


class NamedSymbol(Struct, frozen=True):
    """A dotted name that may be a Python symbol."""

    name: str

    def places(self) -> Iterator[tuple[str, str]]:
        """Yield the files that may define it, with the symbol's name in them."""
        parts = self.name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            folder, symbol = "/".join(parts[:cut]), ".".join(parts[cut:])
            for root in ("", "src/"):
                yield f"{root}{folder}.py", symbol
                yield f"{root}{folder}/__init__.py", symbol


def named(text: str) -> list[NamedFile | NamedSymbol]:
    """Return what a text may name, each once, in the order of the text."""
    found: dict[NamedFile | NamedSymbol, None] = {}
    looked = text[:LONGEST]
    for match in _MARKED.finditer(looked):
        inside = match[1].strip()
        if _DOTTED.fullmatch(inside) and "/" not in inside:
            found[NamedSymbol(inside.removesuffix("()"))] = None
        if (whole := _SPACED.fullmatch(inside)) is not None and " " in whole[1]:
            found[_file(whole)] = None
    symbols = {one.name for one in found if isinstance(one, NamedSymbol)}
    for match in _PATH.finditer(looked):
        if match[1] in symbols:
            continue
        if "://" not in looked[max(0, match.start() - 3) : match.start() + 3]:
            found[_file(match)] = None
    return list(found)[:MOST]


def _file(match: re.Match[str]) -> NamedFile:
    first = int(match[2] or match[4] or 0)
    last = int(match[3] or match[5] or first)
    return NamedFile(match[1].rstrip("."), first, max(first, last), (match[6] or "").rstrip("."))
