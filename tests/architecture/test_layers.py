"""The house as a rule: who may import whom, and what may not be in the source."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "lukasa"

# Each package, and the packages it may import. Siblings never import one another.
ALLOWED = {
    "model": set(),
    "spec": {"model"},
    "ports": {"model", "spec"},
    "storage": {"model", "ports"},
    "write": {"model", "spec", "ports", "storage"},
    "read": {"model", "spec", "ports", "storage"},
    "observe": {"model", "spec", "ports", "storage"},
    "curated": {"model", "spec", "ports", "storage"},
    "upkeep": {"model", "spec", "ports", "storage"},
    "service": {"model", "spec", "ports", "storage", "write", "read", "observe", "curated", "upkeep"},
    "providers": {"model", "ports"},
    "app": {"model", "spec", "ports", "storage", "service", "providers"},
    "surfaces": {"model", "spec", "ports", "storage", "service", "app", "read", "write", "curated", "upkeep", ""},
    "": {"app", "model", "service", "read"},
    "langgraph": {"surfaces"},
    "anthropic": {"surfaces"},
}
FILES = sorted(SOURCE.rglob("*.py"))


def room(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


def imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    """Every module imported, its line, and whether the import stands inside a function."""
    tree = ast.parse(path.read_text("utf-8"))
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
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno, id(node) in nested
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("import_module", "late"):
            # Loaded by name when it is needed: that may stand in a function, but the layers hold for it as well.
            named = node.args[0]
            if isinstance(named, ast.Constant) and isinstance(named.value, str):
                yield named.value, node.lineno, False


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_layers(path: Path) -> None:
    """Layers: a room imports only itself and the rooms below it, and nothing of ours inside a function."""
    here = room(path)
    for module, line, nested in imports(path):
        if module.split(".")[0] != "lukasa":
            continue
        there = module.split(".")[1] if "." in module else ""
        assert there == here or there in ALLOWED[here], f"{path}:{line} {here or 'lukasa'} imports {module}"
        assert not nested, f"{path}:{line} imports {module} inside a function"


def test_every_room_is_in_the_plan() -> None:
    """Layers: a new package must be given its place in the table above."""
    assert {room(path) for path in FILES} <= set(ALLOWED)


def test_the_core_stays_lean() -> None:
    """Install: few direct dependencies, all of them bounded from below."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert len(project["dependencies"]) <= 7
    assert all(">=" in requirement for requirement in project["dependencies"])


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_code_from_data(path: Path) -> None:
    """T57: nothing in the source turns data into code."""
    banned = {"pickle", "marshal", "shelve", "yaml", "dill"}
    assert not banned & {module.split(".")[0] for module, _, _ in imports(path)}
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not {"eval", "exec", "compile"} & calls
