"""The loop guard: what Mnemon said itself is marked, and never taken for what somebody else said.

A harness keeps what a hook injects in its transcript, people paste it back, and compaction cuts it in half. So the
document is known by its marks, and by its own shape where the marks are gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mnemon.read.context import PREAMBLE

OPEN = "<mnemon-memory>"
CLOSE = "</mnemon-memory>"
_TITLE = "# Memory of workspace "
_SHAPE = re.compile(
    r"> |- .* \[tier=.*\]$|## .* \[named .*\]$|## Standing rules and preferences$|## Recalled from the "
)


def marked(document: str) -> str:
    """A document with the marks by which it is known again. Quoted text cannot close it: its lines begin with "> "."""
    return f"{OPEN}\n{document.rstrip()}\n{CLOSE}\n"


def unmarked(text: str) -> str:
    """A text without anything that Mnemon injected."""
    if OPEN not in text and _TITLE not in text:
        return text
    return "\n".join(_others(text.split("\n")))


def _others(lines: Sequence[str]) -> Iterator[str]:
    last_close = max((n for n, line in enumerate(lines) if _closes(line)), default=-1)
    at = 0
    while at < len(lines):
        line = lines[at]
        if OPEN in line and not line.lstrip().startswith("> "):
            before, _, after = line.partition(OPEN)
            if CLOSE not in after and at < last_close:
                at = next(n for n in range(at + 1, len(lines)) if _closes(lines[n]))
                after = lines[at]
            yield from filter(str.strip, (before, after.partition(CLOSE)[2] if CLOSE in after else after))
            at += 1
        elif line.lstrip().startswith(_TITLE):
            at = _document_end(lines, at + 1)
        else:
            yield line
            at += 1


def _closes(line: str) -> bool:
    return line.lstrip().startswith(CLOSE)


def _document_end(lines: Sequence[str], at: int) -> int:
    """Where a document without its marks ends: at the first line that none of its parts can have."""
    while at < len(lines) and _of_document(lines[at].strip()):
        at += 1
    return at


def _of_document(line: str) -> bool:
    known = (PREAMBLE, "Nothing is remembered here yet.", ">", "")
    return line in known or _SHAPE.match(line) is not None
