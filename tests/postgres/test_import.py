"""Imports and projects on a database: the same counts, once, and one memory for a project from any machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.cli import Shell
from tests.helpers.pasts import MADE
from tests.stories.test_projects import clone, hook, repository


def shell(tmp_path: Path, database_url: str) -> Shell:
    return Shell(tmp_path, {"LUKASA_EMBEDDER": "none", "LUKASA_DATABASE": database_url})


@pytest.mark.parametrize("name", ["chatgpt", "claude_code", "mem0_export"])
def test_an_import_into_a_database_happens_once(name: str, tmp_path: Path, database_url: str) -> None:
    """B10: a second import into a database changes nothing, and its facts lead back to the file."""
    past, user = MADE[name](tmp_path), shell(tmp_path / "data", database_url)
    done = user.json("import", str(past.path))
    assert done["memories"]["stored"] == past.memories
    before = [user.json("events", "list", "--limit", "5000"), user.json("events", "list", "--account")]
    again = user.json("import", str(past.path))
    assert again["memories"] == {"known": past.memories}
    assert [user.json("events", "list", "--limit", "5000"), user.json("events", "list", "--account")] == before
    assert "imported" in json.dumps(user.json("list", "--all"))


def test_two_machines_with_one_database_share_a_project(tmp_path: Path, database_url: str) -> None:
    """A container with a clone, and nothing else of its own, has the memory of the project."""
    first, container = shell(tmp_path / "one", database_url), shell(tmp_path / "two", database_url)
    folder = repository(tmp_path / "harbour")
    place = hook(first, folder)["workspace"]
    assert hook(container, clone(folder, tmp_path / "app"), "s2")["workspace"] == place
    first.json("workspace", "create", "dock")
    first.json("project", "set", "dock", str(folder))
    assert hook(container, tmp_path / "app", "s3")["workspace"] == "dock"
