"""The text of a file as citations see it: normalised lines, their hashes, and where cited lines are now.

Line ends, a byte order mark, white space at the end of a line and empty lines at the end of a file do not count:
editors change them without changing what a file says. Indentation counts, because in some languages it is the meaning.
"""

from __future__ import annotations

import hashlib
import re
from functools import cached_property

from msgspec import Struct

PIN = 32  # hexadecimal digits of a pin
LINE = 12  # hexadecimal digits for one line
TELLING = 12  # word characters from which a text is hardly there twice by chance
_START, _END = "^", "$"


class Found(Struct, frozen=True):
    """The place of cited lines in a file."""

    first: int
    last: int


class SourceText:
    """The lines of a file, without what does not count. Hashes are made when somebody asks, and kept."""

    def __init__(self, data: bytes) -> None:
        text = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = [line.rstrip(b" \t\f\v") for line in text.split(b"\n")]
        while lines and not lines[-1]:
            lines.pop()
        self.lines = lines
        self.binary = b"\0" in data[:8192]
        self.raw = hashlib.sha256(data).hexdigest()[:PIN] if self.binary else ""
        self.definitions: dict[str, tuple[int, int]] | None = None  # of a Python file, once somebody has parsed it

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def pin(self) -> str:
        """The hash of the whole file."""
        return self.raw or pin_of(self.lines)

    @cached_property
    def line_hashes(self) -> list[str]:
        return [_line_hash(line) for line in self.lines]

    @cached_property
    def text(self) -> str:
        """The lines as text; what is not UTF-8 in them is replaced."""
        return b"\n".join(self.lines).decode("utf-8", "replace")

    def pin_lines(self, first: int, last: int) -> str:
        """Return the hash of some lines; lines count from 1."""
        return pin_of(self.lines[first - 1 : last])

    def around(self, first: int, last: int) -> str:
        """Return hashes of the nearest lines before and after that are not empty, and of the first line."""
        before = next((line for line in reversed(self.lines[max(0, first - 4) : first - 1]) if line), None)
        after = next((line for line in self.lines[last : last + 3] if line), None)
        begins = self.lines[first - 1] if first <= len(self.lines) else b""
        return " ".join(
            (
                _line_hash(before) if before is not None else _START,
                _line_hash(after) if after is not None else _END,
                _line_hash(begins),
            )
        )

    def find(self, first: int, last: int, pin: str, around: str) -> Found | None:
        """Return where lines are now that were pinned at these numbers.

        Of several places that have the same text, the one between the same lines is meant, then the one that has not
        moved, then the nearest. A text that says little, such as a closing brace, is only found between its lines.
        """
        size, begins = last - first + 1, around.rpartition(" ")[2]
        if last <= len(self.lines) and self.pin_lines(first, last) == pin and self.around(first, last) == around:
            return Found(first, last)
        best: tuple[int, bool, int] | None = None
        place = 0
        for at in range(1, len(self.lines) - size + 2):
            if self.line_hashes[at - 1] != begins or self.pin_lines(at, at + size - 1) != pin:
                continue
            shared = _shared(self.around(at, at + size - 1), around)
            if not shared and not _telling(self.lines[at - 1 : at - 1 + size]):
                continue
            rank = (shared, at == first, -abs(at - first))
            if best is None or rank > best:
                best, place = rank, at
        return Found(place, place + size - 1) if best is not None else None


def pin_of(lines: list[bytes]) -> str:
    return hashlib.sha256(b"\n".join(lines)).hexdigest()[:PIN]


def _line_hash(line: bytes) -> str:
    return hashlib.blake2b(line, digest_size=LINE // 2).hexdigest()


def _shared(one: str, other: str) -> int:
    return sum(a == b for a, b in zip(one.split(" ")[:2], other.split(" ")[:2], strict=False))


def _telling(lines: list[bytes]) -> bool:
    return len(re.findall(rb"\w", b" ".join(lines)[:400])) >= TELLING
