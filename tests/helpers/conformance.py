"""The page of what the sources ask for and which tests show it: `make conformance` runs the tests and writes it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from tests.helpers.nodes import ROOT

PAGE = ROOT / "docs" / "reference" / "conformance.md"
NOT_YET = "not yet"
PASS, FAIL = "pass", "**fails**"
TITLES = {
    "S0": "A memory in tiers (`tiered`)",
    "S1": "A memory that keeps itself tidy (`workspace`)",
    "S2": "An observer of sessions (`observer`)",
    "S3": "Scenarios of an agent's memory (`workspace`)",
    "S4": "Primitives of any agent's memory (`anchored`)",
}
HEAD = """# Conformance

Five documents describe what Lukasa does: S0 to S4. This page states what each of them asks for, in our own words, and
names the tests that show it. `make conformance` runs these tests and writes the page; the suite fails if a statement
has no test, if a test is gone, or if the page is not of today. *Not yet* marks what a later version brings.
"""


@dataclass(frozen=True)
class Statement:
    """One thing that a source asks for, and the tests that show it; none if it is still to come."""

    source: str
    section: str
    text: str
    tests: tuple[str, ...]


def statements() -> list[Statement]:
    """Return every statement of the data file, in its order."""
    parts = tomllib.loads((ROOT / "tests" / "conformance.toml").read_text("utf-8"))["part"]
    return [
        Statement(part["source"], part["section"], text, tuple(_node(test) for test in tests if test != NOT_YET))
        for part in parts
        for text, *tests in part["statements"]
    ]


def listed() -> list[list[str]]:
    """Return the statements as they are written, to check that each has a test or says that it has none yet."""
    parts = tomllib.loads((ROOT / "tests" / "conformance.toml").read_text("utf-8"))["part"]
    return [list(statement) for part in parts for statement in part["statements"]]


def _node(short: str) -> str:
    file, _, name = short.partition("::")
    folder, _, stem = file.rpartition("/")
    return f"tests/{folder or 'stories'}/test_{stem}.py::test_{name}"


def render(results: Mapping[str, bool]) -> str:
    """Return the page. A test without a result counts as passed, so that the suite can tell an old page."""
    found = statements()
    done = sum(bool(one.tests) for one in found)
    lines = [HEAD, f"{done} of {len(found)} statements have their tests; {len(found) - done} are not yet there.", ""]
    source = section = ""
    for one in found:
        if one.source != source:
            source = one.source
            lines += [f"## {source}: {TITLES[source]}", ""]
        if (one.source, one.section) != (source, section):
            section = one.section
            lines += [f"### {source}, {section}", "", "| statement | shown by | result |", "| --- | --- | --- |"]
            lines += [_row(other, results) for other in found if (other.source, other.section) == (source, section)]
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _row(one: Statement, results: Mapping[str, bool]) -> str:
    if not one.tests:
        return f"| {one.text} | | not yet |"
    result = PASS if all(results.get(test, True) for test in one.tests) else FAIL
    return f"| {one.text} | {'<br>'.join(f'`{test}`' for test in one.tests)} | {result} |"


def ran(nodes: list[str]) -> dict[str, bool]:
    """Run tests, and say for each whether all its cases passed."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *nodes],
            cwd=ROOT,
            check=False,
        )
        results = dict.fromkeys(nodes, False)
        seen: dict[str, list[bool]] = {}
        for node, passed in _cases(report):
            seen.setdefault(node, []).append(passed)
        return results | {node: all(outcomes) for node, outcomes in seen.items()}


def _cases(report: Path) -> Iterator[tuple[str, bool]]:
    for case in ElementTree.parse(report).iter("testcase"):
        module, name = case.get("classname", ""), case.get("name", "")
        passed = case.find("failure") is None and case.find("error") is None
        yield f"{module.replace('.', '/')}.py::{name.partition('[')[0]}", passed


def main() -> int:
    nodes = list(dict.fromkeys(test for one in statements() for test in one.tests))
    results = ran(nodes)
    PAGE.write_text(render(results), "utf-8")
    return int(not all(results.get(node, False) for node in nodes))


if __name__ == "__main__":
    sys.exit(main())
