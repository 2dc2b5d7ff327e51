"""Decision records in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from lukasa.app import open_decisions
from lukasa.model.errors import InvalidDecision
from tests.helpers.cli import ROOT, Shell
from tests.helpers.processes import finish, fork


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path / "data")


def test_the_life_of_a_decision(shell: Shell) -> None:
    """K3: made, listed, shown, accepted, superseded on both sides; the folder fits together throughout."""
    first = shell.json("adr", "new", "One writer for each file", "--decider", "ada", "--tag", "storage")
    assert (first["number"], first["status"]) == (1, "proposed")
    assert Path(first["path"]) == Path("docs/decisions/0001-one-writer-for-each-file.md")
    shell.run("adr", "status", "1", "accepted")
    shell.run("adr", "new", "Two writers", "--supersedes", "1")
    old, new = shell.json("adr", "list")["decisions"]
    assert (old["status"], old["superseded_by"], new["supersedes"]) == ("superseded", [2], [1])
    assert old["deciders"] == ["ada"]
    shell.run("adr", "new", "Three")
    shell.run("adr", "status", "2", "superseded", "--by", "3")
    assert shell.json("adr", "show", "3")["supersedes"] == [2]
    assert "superseded by 0003" in shell.run("adr", "list", "--status", "superseded")
    assert shell.json("adr", "check")["fits"] is True
    assert not shell.data.exists()  # decisions are a project's own files; no memory is opened for them


def test_a_number_is_never_given_again(shell: Shell) -> None:
    """K3: also not after the record that had it was deleted."""
    shell.run("adr", "new", "First")
    second = shell.json("adr", "new", "Second")
    Path(second["path"]).unlink()
    assert shell.json("adr", "new", "Third")["number"] == 3


def test_numbers_are_given_once_to_many(tmp_path: Path) -> None:
    """K3: four processes at once."""

    def make(who: int) -> None:
        for n in range(10):
            open_decisions(tmp_path).new(f"Same title {who} {n}")

    children = [fork(lambda who=who: make(who)) for who in range(4)]  # type: ignore[misc]
    assert [finish(child) for child in children] == [0] * 4
    assert [d.number for d in open_decisions(tmp_path).all()] == list(range(1, 41))


def test_mistakes_are_told(shell: Shell) -> None:
    """K3: typed errors for what cannot be, and nothing is changed."""
    assert shell.fails("adr", "list", code=1)["code"] == "not-found"
    shell.run("adr", "new", "First")
    assert shell.fails("adr", "status", "1", "done", code=2)["code"] == "invalid-input"
    assert shell.fails("adr", "status", "1", "superseded", code=2)["code"] == "invalid-input"
    assert shell.fails("adr", "status", "1", "superseded", "--by", "1", code=2)["code"] == "invalid-input"
    assert shell.fails("adr", "status", "1", "superseded", "--by", "9", code=1)["code"] == "not-found"
    assert shell.fails("adr", "new", "X", "--supersedes", "9", code=1)["code"] == "not-found"
    assert shell.json("adr", "show", "1")["status"] == "proposed"
    assert len(shell.json("adr", "list")["decisions"]) == 1


def test_a_damaged_folder_is_found_out(shell: Shell) -> None:
    """K3: check names every file and what to write there; its exit code is 3."""
    shell.run("adr", "new", "First")
    folder = Path("docs/decisions")
    (folder / "0002-x.md").write_text("no front matter\n")
    (folder / "0003-y.md").write_text("---\nstatus: superseded\ndate: 2026-11-16\nsuperseded-by: [9]\n---\n# 0003 Y\n")
    (folder / "README.md").write_text("An index.\n")
    told = shell.json("adr", "check", code=3)["faults"]
    assert [f["file"] for f in told] == ["0002-x.md", "0003-y.md"]
    assert "superseded-by names 0009, which is not here" in told[1]["what"]
    with pytest.raises(InvalidDecision):
        open_decisions(folder).all()
    assert shell.json("adr", "new", "Fourth")["number"] == 4


def test_our_own_records_fit() -> None:
    """K3"""
    assert open_decisions(ROOT / "docs" / "decisions").check() == []
