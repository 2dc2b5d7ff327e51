"""Commands that an answer suggests work as they stand; and growth counts what was dropped."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from lukasa import Lukasa
from tests.helpers.cli import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def test_the_hint_of_a_scrub_names_the_workspace(shell: Shell) -> None:
    """H1: what `scrub plan` suggests empties the workspace that was planned, and not another one."""
    shell.run("workspace", "create", "my novel")
    shell.run("-w", "my novel", "put", "The villain is called Malachar")
    shell.run("put", "Main stays as it is")
    told = shell.run("-w", "my novel", "scrub", "plan", "--tier", "workspace")
    (hint,) = re.findall(r"`lukasa (.*)` does it", told.replace("\n", " "))
    assert "removed" in shell.run(*shlex.split(hint))
    assert shell.json("-w", "my novel", "list")["entries"] == []
    assert len(shell.json("list")["entries"]) == 1


def test_growth_falls_when_entries_are_retired(tmp_path: Path) -> None:
    """U5: a forgotten entry is no longer counted at the end of the day."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("main")
        world.put("workspace", "The heron is grey")
        world.forget(world.put("workspace", "The swan is black").id)
        assert dict(world.survey().growth[-1].counts) == {"workspace": 1}
