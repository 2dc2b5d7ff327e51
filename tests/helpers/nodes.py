"""Test node ids: whether a test of that id exists."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@lru_cache(maxsize=512)
def tests_in(file: str) -> frozenset[str]:
    """The names of the test functions of a file; none if there is no such file."""
    path = ROOT / file
    if not (file.startswith("tests/") and path.is_file()):
        return frozenset()
    found = ast.parse(path.read_text("utf-8")).body
    return frozenset(node.name for node in found if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


def exists(node: str) -> bool:
    """Say whether there is a test of this id; of a parametrised one, the id is that of the function."""
    file, _, name = node.partition("::")
    return name in tests_in(file)
