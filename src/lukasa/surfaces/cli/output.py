"""Print answers: lines of styled text for people, one JSON document for programs.

This module escapes all text before it is printed: an entry may hold control codes, and must not control the terminal.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import click
from msgspec import Struct

from lukasa.model.errors import DocumentMoved, InvalidInput, LukasaError, SpecError
from lukasa.model.errors import brief as shortened
from lukasa.model.text import escape_controls, has_hidden_characters
from lukasa.surfaces.cli.options import close

ID_HEADS = ("id", "entry")  # the columns of a table that hold ids
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LENGTHS = (18, 23, 28, 32, 36)


class StyledText(Struct, frozen=True):
    """A piece of a line. Styles: title, good, warn, bad, dim, or none."""

    text: str
    style: str = ""


Line = tuple[StyledText, ...]
Lines = Iterable[Line]


def line(*parts: str | StyledText) -> Line:
    return tuple(StyledText(part) if isinstance(part, str) else part for part in parts)


def many(count: int, word: str) -> str:
    """Return a count with its word: 1 entry, 2 entries."""
    plural = f"{word[:-1]}ies" if re.search(r"[^aeiou]y$", word) else f"{word}s"
    return f"{count:,} {word if count == 1 else plural}"


def title(text: str) -> StyledText:
    return StyledText(text, "title")


def good(text: str) -> StyledText:
    return StyledText(text, "good")


def warn(text: str) -> StyledText:
    return StyledText(text, "warn")


def bad(text: str) -> StyledText:
    return StyledText(text, "bad")


def dim(text: str) -> StyledText:
    return StyledText(text, "dim")


def block(text: str, indent: str = "", style: str = "") -> Iterator[Line]:
    """Yield a text line by line, each indented; a line break at the end adds no line."""
    for part in text.removesuffix("\n").split("\n"):
        yield line(indent, StyledText(part, style))


def brief(text: str, width: int = 100) -> str:
    """Return a text as one line, cut to a width."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else f"{flat[: width - 1]}…"


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[Line]:
    """Yield a table; each column is as wide as its widest cell. Ids are shown by their beginnings."""
    listed = [tuple(safe(cell) for cell in row) for row in rows]
    for column, head in enumerate(heads):
        if head in ID_HEADS:
            short = beginnings([row[column] for row in listed])
            listed = [(*row[:column], short[row[column]], *row[column + 1 :]) for row in listed]
    widths = [max(map(len, column)) for column in zip(heads, *listed, strict=True)]
    for number, row in enumerate((heads, *listed)):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield line(StyledText("  ".join(cells).rstrip(), "dim" if number == 0 else ""))


def beginnings(ids: Iterable[str]) -> dict[str, str]:
    """Return the beginning of each id that tells it from the others: at least its time. What is no id stays whole."""
    given = set(ids)
    whole = {one for one in given if _UUID.fullmatch(one)}
    length = next((n for n in _LENGTHS if len({one[:n] for one in whole}) == len(whole)), _LENGTHS[-1])
    return {one: one[:length] if one in whole else one for one in given}


def safe(text: str) -> str:
    """Escape control and formatting characters."""
    return escape_controls(text)


def encode(data: Any, *, indent: int | None = 2) -> str:
    """Encode as JSON; control and invisible characters are written as escapes, so they cannot control a terminal."""
    text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False)
    if not has_hidden_characters(text):
        return text
    return "".join(json.dumps(c)[1:-1] if has_hidden_characters(c) else c for c in text)


def write(lines: Lines, *, no_color: bool = False) -> None:
    if colourful(no_color):
        # Import rich only for a terminal with colour.
        import_module("lukasa.surfaces.cli.terminal").paint(lines)
        return
    for spans in lines:
        sys.stdout.write("".join(safe(span.text) for span in spans) + "\n")


def colourful(no_color: bool) -> bool:
    allowed = not (no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb")
    return allowed and sys.stdout.isatty()


FAILED, WRONG = 1, 2


def report(error: Exception, *, as_json: bool) -> int:
    """Print an error, and return the exit code."""
    code, message, fix = describe(error)
    diff = error.diff if isinstance(error, DocumentMoved) else ""
    if as_json:
        more = {"diff": diff} if diff else {}
        click.echo(encode({"error": {"code": code, "message": message, "fix": fix, **more}}))
    else:
        click.echo(f"error: {safe(message)}", err=True)
        for part in diff.splitlines():
            click.echo(f"  {safe(part)}", err=True)
        if fix:
            click.echo(f"  fix: {safe(fix)}", err=True)
    if os.environ.get("LUKASA_DEBUG") and not isinstance(error, click.ClickException):
        import_module("traceback").print_exception(error, file=sys.stderr)
    return exit_code(error)


def describe(error: Exception) -> tuple[str, str, str]:
    """Return an error's stable code, its message and its fix."""
    if isinstance(error, LukasaError):
        return error.code, error.message, _meant(error.message, error.fix) + error.fix
    if isinstance(error, click.UsageError):
        asked = error.ctx.command_path if error.ctx else "lukasa"
        return "usage", shortened(error.format_message()), f"see `{asked} --help`"
    if isinstance(error, click.ClickException):
        return "usage", shortened(error.format_message()), ""
    told = f"unexpected {type(error).__name__}: {shortened(error, 500)}"
    if os.environ.get("LUKASA_DEBUG"):
        return "unexpected", told, "please report this with the traceback"
    return "unexpected", told, "run the command again with LUKASA_DEBUG=1 and report the traceback"


LONGEST_SAID = 400  # characters of an error in which a wrong word is looked for
_WRONG_WORD = re.compile(r"(?:unknown|no) [\w ]+ '([^']{1,60})'")
_KNOWN_WORDS = re.compile(r"^use(?: one of)?: ([\w., -]+)$")


def _meant(message: str, fix: str) -> str:
    """Return the word that a person probably meant, where an error names a wrong one and its fix the known ones."""
    wrong, known = _WRONG_WORD.search(message[:LONGEST_SAID]), _KNOWN_WORDS.match(fix)
    near = close(wrong[1], known[1].split(", ")) if wrong and known else ""
    return f"did you mean {near!r}? Else " if near else ""


def exit_code(error: Exception) -> int:
    return WRONG if isinstance(error, InvalidInput | SpecError | click.UsageError) else FAILED
