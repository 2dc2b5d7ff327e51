"""What the command line forgives: short ids, mistyped words, groups without a command."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from lukasa.surfaces.http import links
from tests.helpers.cli import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


@pytest.fixture
def ids(shell: Shell) -> list[str]:
    """Two entries, by their ids."""
    texts = ("The villain is called Malachar", "The ship is called Vey")
    return [shell.put(text) for text in texts]


def test_the_beginning_of_an_id_is_enough(shell: Shell, ids: list[str]) -> None:
    """U2: every command that takes an id takes its beginning, in capitals too, and as an option's value."""
    first, second = (id[:18] for id in ids)
    assert "Malachar" in shell.run("get", first)
    assert "Malachar" in shell.run("get", first.upper())
    assert shell.json("history", first)["versions"] != []
    assert shell.json("why", "villain", first)["id"] == ids[0]
    derived = shell.put("Malachar wears red", "--derived-from", second)
    assert shell.json("get", derived)["derived_from"] == [ids[1]]
    assert shell.json("action", "link", "mail-1", first, second)["entries"] == ids
    assert shell.json("forget", second)["id"] == ids[1]
    assert shell.json("restore", second)["id"] == ids[1]


def test_a_beginning_of_several_ids_is_refused_with_them(shell: Shell, ids: list[str]) -> None:
    """U2: nothing is forgotten by guessing."""
    told = shell.call("forget", ids[0][:4])
    assert told.exit_code == 2
    assert "ids begin with" in told.stderr
    assert "give more of its characters" in told.stderr
    assert len(shell.json("list")["entries"]) == 2


@pytest.mark.parametrize("given", ["0000", "beef1", "01a1f5ee-ffff-ffff", "no-id-at-all"])
def test_what_begins_no_id_is_answered_as_before(shell: Shell, ids: list[str], given: str) -> None:
    """U2: the error names what was given."""
    told = shell.call("get", given)
    assert told.exit_code in (1, 2)
    assert given in told.stderr


def test_tables_show_short_ids_that_are_enough(shell: Shell, ids: list[str]) -> None:
    """U2: a list shows the beginning that tells its entries apart, and `--json` the whole id."""
    rows = shell.run("list").splitlines()[1:]
    short = [row.split()[0] for row in rows]
    assert all(13 <= len(one) < 36 for one in short)
    assert sorted(shell.json("get", one)["id"] for one in short) == sorted(ids)
    assert {UUID(entry["id"]).version for entry in shell.json("list")["entries"]} == {7}


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["raed", "villain"], "`cli read`"),
        (["chanel", "list"], "`cli channel`"),
        (["channel", "lsit"], "`cli channel list`"),
        (["-w", "mian", "list"], "'main'"),
        (["put", "x y z", "--kind", "semntic"], "'semantic'"),
        (["list", "--tier", "wrokspace"], "'workspace'"),
        (["list", "--state", "actve"], "'active'"),
        (["put", "x y z", "--lifetime", "long-trem"], "'long_term'"),
    ],
)
def test_a_mistyped_word_is_named(shell: Shell, ids: list[str], words: list[str], meant: str) -> None:
    """U2: commands, values and workspaces say what was probably meant; nothing is done."""
    told = shell.call(*words)
    assert told.exit_code in (1, 2)
    assert f"id you mean {meant}?" in told.stderr
    assert "mean" not in shell.call("xqzzy").stderr


@pytest.mark.parametrize("group", ["channel", "grant", "conversation", "workspace", "corpus", "transcripts", "spec"])
def test_a_group_alone_shows_its_help(shell: Shell, group: str) -> None:
    """U2: a group without a command is a question: its help, on stdout, with exit code 0."""
    told = shell.call(group)
    assert (told.exit_code, told.stderr) == (0, "")
    assert f" {group} [OPTIONS] COMMAND" in told.stdout
    assert "Commands:" in told.stdout


def test_alone_it_names_the_running_server(shell: Shell, ids: list[str]) -> None:
    """U1: `lukasa` alone tells where the page is, and `--json` gives the same as data."""

    async def beside_a_server() -> tuple[str, dict[str, Any]]:
        async with links.handing_out(shell.data / "account", 4711, lambda: "http://127.0.0.1:4711/in#x"):
            return await asyncio.to_thread(shell.run), await asyncio.to_thread(shell.json)

    told, data = asyncio.run(beside_a_server())
    assert "the server runs at http://127.0.0.1:4711" in told
    assert (data["servers"], data["entries"], data["exists"]) == ([4711], 2, True)
    assert len(told.splitlines()) == 5
