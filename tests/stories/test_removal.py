"""Rename, merge and remove workspaces, and remove the account: nothing of what goes is left in any file."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from lukasa import Lukasa
from tests.helpers.cli import Shell

WORD = "quagmire"


def shell(data: Path, url: str = "") -> Shell:
    more = {"LUKASA_DATABASE": url} if url else {}
    return Shell(data, {"LUKASA_EMBEDDER": "none", "NO_COLOR": "1", **more})


def fill(home: Shell) -> None:
    """Use the word in a workspace in every way that leaves a trace, its name included."""
    name = f"{WORD}-works"
    home.run("workspace", "create", name, "--preset", "observer")
    home.put(f"The {WORD} is deep", "-w", name)
    ref = home.json("conversation", "start", "-w", name)["ref_code"]
    home.run("note", "set", "depth", f"{WORD} nine", "-w", name, "--conversation", ref)
    with Lukasa.open(home.data, embedder="none", database=home.env.get("LUKASA_DATABASE", "")) as memory:
        world = memory.existing(name)
        world.save_document("map", f"A map of the {WORD}")
        world.edit_named("VOICE", f"As calm as a {WORD}")
    home.run("read", WORD, "-w", name)
    home.json("grant", "create", "claude", "-w", name)
    home.put("The harbour stays")


def left(folder: Path) -> list[str]:
    """The files that hold the word."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes().lower()]


def test_nothing_of_a_workspace_is_left(tmp_path: Path) -> None:
    """B5, S1: after the removal no file has a word of it, its name included; other memory and the log are whole."""
    home = shell(tmp_path / "data")
    fill(home)
    assert left(home.data)
    shown = home.json("workspace", "remove", f"{WORD}-works")
    assert (shown["grants"], shown["rows"]["entries"], shown["rows"]["notes"]) == (["claude"], 1, 1)
    assert home.fails("workspace", "remove", f"{WORD}-works", "--confirm", "0" * 16, code=1)["code"] == "conflict"
    assert home.fails("workspace", "remove", f"{WORD}-works", "--confirm", "12", code=2)["code"] == "invalid-input"
    done = home.json("workspace", "remove", f"{WORD}-works", "--confirm", shown["digest"][:16])
    assert done["swept"]
    assert left(home.data) == []
    assert [one["name"] for one in home.json("workspace", "list")["workspaces"]] == ["main"]
    assert "The harbour stays" in home.run("read", "harbour")
    assert home.json("doctor")["healthy"]
    with Lukasa.open(home.data, embedder="none") as memory:
        assert memory.account.check() == []
        assert all(grant.revoked_at is not None for grant in memory.account.grants())


def test_a_removal_that_was_killed_is_finished(tmp_path: Path) -> None:
    """B5: with the store gone and the list not yet changed, the same command plans and finishes the rest."""
    home = shell(tmp_path / "data")
    fill(home)
    (id,) = [one["id"] for one in home.json("workspace", "list")["workspaces"] if one["name"].startswith(WORD)]
    for path in (home.data / "workspaces" / id).glob("memory.db*"):
        path.unlink()
    shown = home.json("workspace", "remove", f"{WORD}-works")
    home.run("workspace", "remove", f"{WORD}-works", "--confirm", shown["digest"])
    assert left(home.data) == []
    assert home.json("doctor")["healthy"]


def test_nothing_of_an_account_is_left(tmp_path: Path) -> None:
    """B5, S1: no file of the data folder has a word of it, and a new memory begins there."""
    home = shell(tmp_path / "data")
    fill(home)
    shown = home.json("account", "remove")
    assert shown["workspaces"] == ["main", f"{WORD}-works"]
    assert home.fails("account", "remove", "--confirm", "0" * 16, code=1)["code"] == "conflict"
    home.run("account", "remove", "--confirm", shown["digest"])
    assert [path for path in home.data.rglob("*") if path.is_file()] == []
    home.put("A new beginning")
    assert home.json("doctor")["healthy"]


def test_an_account_in_use_is_not_removed(tmp_path: Path) -> None:
    """B5: while a process has it open, nothing is removed."""
    home = shell(tmp_path / "data")
    home.put("Still here")
    digest = home.json("account", "remove")["digest"]
    with home.running(OPEN, str(home.data)):
        error = home.fails("account", "remove", "--confirm", digest, code=1)
    assert error["code"] == "store-busy"
    assert "Still here" in home.run("list")


def test_a_workspace_in_use_is_not_removed(tmp_path: Path) -> None:
    """B5: while another process has it open, nothing of it is removed."""
    home = shell(tmp_path / "data")
    home.put("Still here")
    digest = home.json("workspace", "remove", "main")["digest"]
    with home.running(OPEN, str(home.data)):
        error = home.fails("workspace", "remove", "main", "--confirm", digest, code=1)
    assert error["code"] == "store-busy"
    assert "Still here" in home.run("list")


OPEN = """
import sys
from lukasa import Lukasa
with Lukasa.open(sys.argv[1], embedder="none") as memory:
    memory.existing("main").read("here")
    print("open", flush=True)
    sys.stdin.read()
"""


def test_nothing_of_a_workspace_is_left_in_a_database(tmp_path: Path, own_database: str) -> None:
    """B5: on PostgreSQL no table has a row of it, and after the rewriting no file of the server has a word."""
    home = shell(tmp_path / "data", own_database)
    fill(home)
    assert words_in(own_database)
    shown = home.json("workspace", "remove", f"{WORD}-works")
    done = home.json("workspace", "remove", f"{WORD}-works", "--confirm", shown["digest"])
    assert done["swept"]
    assert words_in(own_database) == []
    assert left(home.data) == []
    assert "The harbour stays" in home.run("read", "harbour")
    assert home.json("doctor")["healthy"]
    gone = home.json("account", "remove")
    assert home.json("account", "remove", "--confirm", gone["digest"])["swept"]
    with psycopg.connect(own_database) as db:
        for table in (b"heads", b"accounts"):
            assert db.execute(b"SELECT count(*) FROM lukasa." + table).fetchone() == (0,)


@pytest.fixture
def own_database(database_url: str) -> str:
    return database_url


def words_in(url: str) -> list[str]:
    """The files of the database that hold the word, as the server reads them from its disk."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CHECKPOINT")
        found = db.execute(
            "SELECT c.oid::regclass::text, pg_relation_filepath(c.oid) FROM pg_class AS c"
            " WHERE c.relkind IN ('r', 'i', 't') AND c.relnamespace::regnamespace::text IN ('lukasa', 'pg_toast')"
        ).fetchall()
        return [
            name
            for name, path in found
            if path
            and (row := db.execute("SELECT pg_read_binary_file(%s, 0, 100000000, true)", (path,)).fetchone())
            and row[0]
            and WORD.encode() in bytes(row[0]).lower()
        ]


def test_a_workspace_gets_another_name(tmp_path: Path) -> None:
    """S1: its memory, its id and its grants are under the new name; a name that is taken is refused."""
    home = shell(tmp_path / "data")
    home.put("The harbour stays")
    home.run("workspace", "create", "other")
    renamed = home.json("workspace", "rename", "main", "saga")
    assert "The harbour stays" in home.run("-w", "saga", "read", "harbour")
    assert home.fails("workspace", "rename", "saga", "other", code=1)["code"] == "conflict"
    assert home.fails("workspace", "rename", "none", "some", code=1)["code"] == "not-found"
    assert home.fails("workspace", "rename", "saga", "two\nlines", code=2)["code"] == "invalid-input"
    found = {one["name"]: one["id"] for one in home.json("workspace", "list")["workspaces"]}
    assert found["saga"] == renamed["id"]


def test_two_workspaces_become_one(tmp_path: Path) -> None:
    """S1: a dry run first; then all of the one is in the other, each thing once, and the first stays as it is."""
    home = shell(tmp_path / "data")
    home.put("The harbour stays")
    home.put("The harbour stays", "-w", "main")
    home.run("workspace", "create", "drafts")
    home.put("The gull sleeps on the mast", "-w", "drafts")
    home.put("The harbour stays", "-w", "drafts")
    planned = home.json("workspace", "merge", "drafts", "main", "--dry-run")
    assert planned["stores"][0]["counts"]["entries"] == {"new": 1, "known": 1}
    assert len(home.json("list")["entries"]) == 1
    home.json("workspace", "merge", "drafts", "main", "--confirm", planned["digest"])
    assert len(home.json("list")["entries"]) == 2
    assert "mast" in home.run("read", "gull")
    assert len(home.json("list", "-w", "drafts")["entries"]) == 2
    assert home.fails("workspace", "merge", "main", "main", code=2)["code"] == "invalid-input"
    assert home.json("doctor")["healthy"]
