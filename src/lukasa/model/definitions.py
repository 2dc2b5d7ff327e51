"""Find the definition of a symbol in a source file: its first and last line.

Python files are parsed. In other languages a definition is a line that begins with a word such as `function`, `fn` or
`class` before the name, with the deeper indented lines below it: enough to find it again, not to understand it.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from lukasa.model.source_text import SourceText

PYTHON = (".py", ".pyi")
MOST_PARSED = 400_000  # characters of a Python file; a longer one is read like one of another language
_WORDS = (
    "def|class|function|func|fn|fun|const|let|var|val|type|struct|enum|union|interface|trait|impl|module|mod|namespace"
    "|package|protocol|extension|object|record|sub|proc|static|macro_rules!|defmodule|defp|defmacro"
)


def definition(path: str, source: SourceText, name: str) -> tuple[int, int] | None:
    """Return the lines that define a symbol, such as `load` or `Settings.load`; None if the file has no such one."""
    if source.binary:
        return None
    if path.endswith(PYTHON) and len(source.text) <= MOST_PARSED:
        if source.definitions is None:
            source.definitions = _parsed(source.text)
        if source.definitions:
            return source.definitions.get(name)
    return _by_words(source, name)


def _parsed(text: str) -> dict[str, tuple[int, int]]:
    """Return the definitions of a Python file by their qualified names; none if it does not parse."""
    found: dict[str, tuple[int, int]] = {}
    try:
        _gather(ast.parse(text), "", found)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return found


def _gather(node: ast.AST, prefix: str, found: dict[str, tuple[int, int]]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([child.lineno, *(mark.lineno for mark in child.decorator_list)])
            found.setdefault(prefix + child.name, (first, child.end_lineno or child.lineno))
            _gather(child, f"{prefix}{child.name}.", found)
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found.setdefault(prefix + target.id, (child.lineno, child.end_lineno or child.lineno))
        elif isinstance(child, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            _gather(child, prefix, found)


def _by_words(source: SourceText, name: str) -> tuple[int, int] | None:
    """Find each part of a qualified name inside the block of the part before it."""
    lines = source.text.split("\n")
    first, last = 1, len(lines)
    for depth, part in enumerate(re.split(r"\.|::|#", name)):
        numbers = range(first + (1 if depth else 0), last + 1)
        at = next((n for n in numbers if re.match(_pattern(part), lines[n - 1][:400])), None)
        if at is None:
            return None
        first, last = at, _block(lines, at)
    return first, last


@lru_cache(maxsize=256)
def _pattern(name: str) -> str:
    named = re.escape(name)
    begins = rf"[ \t]*(?:[\w@#.()\[\]<>&*-]+[ \t]+){{0,6}}?(?:{_WORDS})[ \t]+(?:\([^)]*\)[ \t]*)?[*&]?{named}(?!\w)"
    given = rf"[ \t]*(?:export[ \t]+)?{named}[ \t]*(?:\([ \t]*\)[ \t]*\{{|[:=](?!=))"
    return rf"(?:{begins}|{given})"


def _block(lines: list[str], at: int) -> int:
    """Return the last line of the block that begins at a line: the deeper ones below it, and what closes it."""
    depth, last = _indent(lines[at - 1]), at
    for number in range(at + 1, len(lines) + 1):
        line = lines[number - 1]
        if not line.strip():
            continue
        if _indent(line) > depth or (_indent(line) == depth and number == at + 1 and line.strip() == "{"):
            last = number
            continue
        if _indent(line) == depth and re.match(r"[ \t]*(?:[)}\]]|end\b)", line):
            last = number
            if re.match(r"[ \t]*[)\]][^{]*\{\s*$", line):  # the end of its arguments, not of its body
                continue
        break
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
