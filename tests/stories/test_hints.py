"""Commands that an answer suggests work as they stand; and growth counts what was dropped."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lukasa import Lukasa
from lukasa.spec import preset_text
from tests.helpers.cli import Shell
from tests.helpers.making import FixedClock


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


def test_the_hint_of_a_queue_decides_about_its_first_entry(tmp_path: Path, shell: Shell) -> None:
    """D3: what `disposition list` suggests names the workspace, and works as it stands."""
    spec = preset_text("workspace").replace('policy = "corroborate"', 'policy = "dispose"')
    spec = spec.replace("rate = 0.995", "rate = 0.995\nthreshold = 0.1")
    with Lukasa.open(shell.data, embedder="none", clock=FixedClock(datetime(2024, 1, 1, tzinfo=UTC))) as memory:
        world = memory.workspace("my queue", spec=spec)
        id = world.put("workspace", "The gate squeaked on Monday", lifetime="short_term").id
    told = shell.run("-w", "my queue", "disposition", "list")
    (hint,) = re.findall(r"`lukasa (.*)` decides", told.replace("\n", " "))
    assert id in shell.run(*shlex.split(hint))
    assert shell.json("-w", "my queue", "disposition", "list")["waiting"] == []
