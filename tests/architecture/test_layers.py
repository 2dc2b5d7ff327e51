"""The layers as a rule: who may import whom, and what may not be in the source. Three tests, each over all files."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "lukasa"
FILES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
PAGE = ROOT / "docs" / "explanation" / "architecture.md"


def layers() -> dict[str, set[str]]:
    """The table of docs/explanation/architecture.md: each layer, and the layers that it may import."""
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", below)) for name, below in rows}


def layer(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return "lukasa" if parts == ("__init__",) else parts[0]


def imports(tree: ast.Module) -> Iterator[tuple[str, int, bool]]:
    """Every module imported, its line, and whether the import is inside a function."""
    nested = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, id(node) in nested
        elif isinstance(node, ast.ImportFrom) and node.module == "lukasa":
            for alias in node.names:
                packaged = (SOURCE / alias.name).is_dir()
                yield f"lukasa.{alias.name}" if packaged else "lukasa", node.lineno, id(node) in nested
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno, id(node) in nested
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
            # Loaded by name when it is first used: that may be in a function, but the layers hold for it as well.
            named = node.args[0]
            if isinstance(named, ast.Constant) and isinstance(named.value, str):
                yield named.value, node.lineno, False


def test_layers() -> None:
    """Layers: a layer imports only itself and those of its row in the table, and nothing of ours in a function."""
    allowed, wrong = layers(), []
    assert {layer(path) for path in FILES} == set(allowed)
    for path, tree in FILES.items():
        for module, line, nested in imports(tree):
            top, *rest = module.split(".")
            there = rest[0] if rest else top
            if top == "lukasa" and (nested or there not in {layer(path), *allowed[layer(path)]}):
                where = " in a function" if nested else ""
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}{where}")
    assert not wrong


def test_no_code_from_data() -> None:
    """T57: nothing in the source turns data into code."""
    modules, calls, wrong = {"pickle", "marshal", "shelve", "yaml", "dill"}, {"eval", "exec", "compile"}, []
    for path, tree in FILES.items():
        found = {module.split(".")[0] for module, _, _ in imports(tree)} & modules
        found |= {
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in calls
        }
        wrong += [f"{path.relative_to(ROOT)} uses {name}" for name in found]
    assert not wrong


def test_the_core_stays_lean() -> None:
    """Install: few direct dependencies, all of them bounded from below."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert len(project["dependencies"]) <= 7
    assert all(">=" in requirement for requirement in project["dependencies"])
