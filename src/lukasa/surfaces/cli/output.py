"""How anything reaches the screen: lines of styled spans for people, one JSON document for programs.

All text is made harmless here, at the last moment: a memory may hold escape codes, and must not drive the terminal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from msgspec import Struct

from lukasa.model.text import escape_controls, has_hidden_characters


class Span(Struct, frozen=True):
    """A piece of a line. Styles: title, good, warn, bad, dim, or none."""

    text: str
    style: str = ""


Line = tuple[Span, ...]
Lines = Iterable[Line]


def line(*parts: str | Span) -> Line:
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def title(text: str) -> Span:
    return Span(text, "title")


def good(text: str) -> Span:
    return Span(text, "good")


def warn(text: str) -> Span:
    return Span(text, "warn")


def bad(text: str) -> Span:
    return Span(text, "bad")


def dim(text: str) -> Span:
    return Span(text, "dim")


def block(text: str, indent: str = "", style: str = "") -> Iterator[Line]:
    """Text of several lines, each indented; a closing line break is the last line's own."""
    for part in text.removesuffix("\n").split("\n"):
        yield line(indent, Span(part, style))


def brief(text: str, width: int = 100) -> str:
    """One line of a text, cut where it gets long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else f"{flat[: width - 1]}…"


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[Line]:
    """Columns as wide as their widest cell; the last one is left ragged."""
    listed = [tuple(safe(cell) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *listed, strict=True)]
    for number, row in enumerate((heads, *listed)):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield line(Span("  ".join(cells).rstrip(), "dim" if number == 0 else ""))


def safe(text: str) -> str:
    return escape_controls(text)


def encode(data: Any, *, indent: int | None = 2) -> str:
    """JSON in which nothing can drive a terminal: what a reader would not see is written as an escape."""
    text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False)
    if not has_hidden_characters(text):
        return text
    return "".join(json.dumps(c)[1:-1] if has_hidden_characters(c) else c for c in text)


def write(lines: Lines, *, no_color: bool = False) -> None:
    if colourful(no_color):
        # rich is only worth its import where colour can be seen.
        import_module("lukasa.surfaces.cli.terminal").paint(lines)
        return
    for spans in lines:
        sys.stdout.write("".join(safe(span.text) for span in spans) + "\n")


def colourful(no_color: bool) -> bool:
    allowed = not (no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb")
    return allowed and sys.stdout.isatty()
