"""Every requirement that this version claims is named by the test that shows it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CLAIMED = """P1 P2 P3 P4 P5 P6 M1 M2 M3 M4 M5 M6 M7 M8 M9 D1 D2 D3 D4 D5 D6 W1 W2 W3 W4 W5 W7 W9 R1 R2 R3 R4 R6 R7 R8 R9
C1 C2 C3 C4 C5 L1 L2 L3 K2 K3 O2 O5 O8 X1 X2 X3 X4 U1 U2 B1 B2 B3 B7 B9 B11 B14 T1 T01 T03 T06 T11 T14 T16 T18 T20 T21
T22 T23 T24 T54 T61
U5 T55 O6 O7 W6 W8 T2 T04 H1 H2 H3 T07 T42 T62 O3 O4 B6 K1
U4 T02 T09 T45 R5 R10
O1 O9 B4 B8 B13 T05
U3 T08 T56""".split()
_ID = re.compile(r"\b([A-Z])(\d{1,2})(?:\s*[–-]\s*([A-Z])(\d{1,2}))?\b")


@cache
def named() -> set[str]:
    """All ids in the docstrings of tests; a range such as P1–P6 names each of them."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found |= ids(ast.get_docstring(node) or "")
    return found


def ids(text: str) -> set[str]:
    out: set[str] = set()
    for letter, first, end_letter, last in _ID.findall(text):
        out.add(letter + first)
        if end_letter == letter:
            out |= {f"{letter}{n}" for n in range(int(first), int(last) + 1)}
    return out


@pytest.mark.parametrize("id", CLAIMED)
def test_a_requirement_is_shown(id: str) -> None:
    """Each requirement id of this version stands in the docstring of a test."""
    assert id in named()
