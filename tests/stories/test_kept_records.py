"""The log and the decision records in the git repository of the curated page, where a spec keeps them there."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from lukasa import Lukasa, Workspace
from lukasa.app import open_curated_file
from lukasa.model.errors import Refused, SpecError
from lukasa.providers.files.git import GitFile
from lukasa.spec import parse_spec, preset_text
from tests.helpers.cli import Shell
from tests.helpers.curating import git, promote, subjects, work
from tests.helpers.making import FixedClock


@pytest.fixture
def watcher(memory: Lukasa) -> Workspace:
    return memory.workspace("watched", preset="observer")


@pytest.fixture
def folder(memory: Lukasa, watcher: Workspace) -> Path:
    found = memory.folder(watcher)
    assert found is not None
    return found / "curated"


def in_git(folder: Path, name: str) -> str:
    return git(folder, "show", f"HEAD:{name}")


def test_the_lines_of_an_hour_are_one_commit(watcher: Workspace, folder: Path, clock: FixedClock) -> None:
    """K2: a line is on disk at once; the hour's lines are one commit, and nothing is left uncommitted."""
    watcher.slog.write("deploy", "sluice", "v3 on both gates", reason="leak")
    watcher.slog.write("restart", "pump", "after the deploy")
    assert watcher.slog.path == folder / "log.jsonl"
    assert len(watcher.slog.path.read_text().splitlines()) == 2
    assert work(watcher) == []  # not yet
    clock.time += timedelta(hours=1)
    work(watcher)
    assert subjects(folder) == ["Keep log.jsonl"]
    watcher.slog.write("fix", "pump", "a new seal")
    clock.time += timedelta(hours=1)
    work(watcher)
    assert subjects(folder) == ["Keep log.jsonl"] * 2
    assert in_git(folder, "log.jsonl") == (folder / "log.jsonl").read_text()
    clock.time += timedelta(hours=1)
    work(watcher)
    assert len(subjects(folder)) == 2


def test_a_decision_is_a_commit_at_once(watcher: Workspace, folder: Path) -> None:
    """K3: a new record and each change of one; beside the commits of the page, which stay whole."""
    promote(watcher, "Pumps start at four metres.")
    made = watcher.decisions.new("One pump for each gate")
    name = f"decisions/{made.file}"
    assert "status: proposed" in in_git(folder, name)
    watcher.decisions.set_status(made.number, "accepted")
    assert "status: accepted" in in_git(folder, name)
    newer = watcher.decisions.new("Two pumps for each gate", supersedes=(made.number,))
    assert "superseded-by: [0002]" in in_git(folder, name)
    assert in_git(folder, "decisions/.highest-number") == "2\n"
    assert subjects(folder)[0] == "Promote: Pumps start at four metres."
    assert len(subjects(folder)) == 4
    promote(watcher, "Gates close at dusk.")
    assert [d.number for d in watcher.decisions.all()] == [1, newer.number]
    assert in_git(folder, "MEMORY.md") == watcher.curated.text + "\n"
    assert len(watcher.curated.history()) == 2
    assert work(watcher) == []


def test_losing_the_database_and_the_machine(memory: Lukasa, watcher: Workspace, folder: Path) -> None:
    """K1, K2, K3: page, entries, log and decisions come back from a clone, and what is there already stays."""
    promote(watcher, "Pumps start at four metres.")
    watcher.slog.write("deploy", "sluice", "v3 on both gates")
    watcher.decisions.new("One pump for each gate")
    watcher.curated.export()
    clone = folder.parent.parent.parent.parent / "clone"
    git(folder, "clone", "-q", str(folder), str(clone))
    fresh = memory.workspace("fresh", preset="observer")
    made = fresh.curated.rebuild_from(open_curated_file(clone))
    assert made.outcomes == {"stored": 1}
    assert set(made.records) == {"log.jsonl", "decisions/0001-one-pump-for-each-gate.md", "decisions/.highest-number"}
    assert [e.tool for e in fresh.slog.query().entries] == ["sluice"]
    assert [d.title for d in fresh.decisions.all()] == ["One pump for each gate"]
    there = memory.folder(fresh)
    assert there is not None
    assert in_git(there / "curated", "log.jsonl") == in_git(folder, "log.jsonl")
    fresh.slog.write("fix", "pump", "a new seal")
    again = fresh.curated.rebuild_from(open_curated_file(clone))
    assert (again.changed, again.records) == (False, ())
    assert len(fresh.slog.query().entries) == 2


def test_losing_git(watcher: Workspace, folder: Path) -> None:
    """K1, K2, K3: the next export makes the repository again, with everything in it."""
    promote(watcher, "Pumps start at four metres.")
    watcher.slog.write("deploy", "sluice", "v3 on both gates")
    made = watcher.decisions.new("One pump for each gate")
    shutil.rmtree(folder / ".git")
    watcher.curated.export()
    assert "v3 on both gates" in in_git(folder, "log.jsonl")
    assert "One pump for each gate" in in_git(folder, f"decisions/{made.file}")
    assert in_git(folder, "MEMORY.md") == watcher.curated.text + "\n"


def test_a_repository_that_fails_loses_nothing(watcher: Workspace, folder: Path, clock: FixedClock) -> None:
    """K3, T05: the record is written; a worker commits it when git works again."""
    promote(watcher, "Pumps start at four metres.")
    (folder / ".git" / "objects").rename(folder / ".git" / "away")
    made = watcher.decisions.new("One pump for each gate")
    assert (folder / "decisions" / made.file).exists()
    (folder / ".git" / "away").rename(folder / ".git" / "objects")
    clock.time += timedelta(minutes=5)
    work(watcher)
    assert "One pump for each gate" in in_git(folder, f"decisions/{made.file}")


def test_only_where_the_spec_says_so(memory: Lukasa, clock: FixedClock) -> None:
    """K2, K3: without `keep` the log stays where it was, no record is kept, and git has the page alone."""
    text = preset_text("observer")
    world = memory.workspace("plain", spec=text.replace('keep = ["log", "decisions"]', "keep = []"))
    place = memory.folder(world)
    assert place is not None
    world.slog.write("deploy", "sluice", "v3 on both gates")
    assert world.slog.path == place / "log.jsonl"
    with pytest.raises(Refused, match="keeps no decision records"):
        _ = world.decisions
    promote(world, "Pumps start at four metres.")
    clock.time += timedelta(hours=2)
    work(world)
    assert git(place / "curated", "ls-tree", "-r", "--name-only", "HEAD").split() == ["MEMORY.md"]
    with pytest.raises(SpecError, match="needs form"):
        parse_spec(text.replace('form = "git"', 'form = "named"'))


def test_a_repository_cannot_write_elsewhere(tmp_path: Path) -> None:
    """K3: of another repository only files of the known names and places come along."""
    source = tmp_path / "source"
    for name in ("decisions/0001-a.md", "deep/decisions/0002-b.md", "notes.txt", "other/log.jsonl"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("x")
    git(source, "init", "-q")
    git(source, "add", ".")
    git(source, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "all")
    assert set(GitFile(source).kept(("log.jsonl", "decisions/*.md"))) == {"decisions/0001-a.md"}


def test_from_the_command_line(tmp_path: Path) -> None:
    """K2, K3, U2: `slog` and `adr` of a workspace that keeps them, and `curated rebuild --from-repo`."""
    shell = Shell(tmp_path / "data")
    shell.run("workspace", "create", "w", "--preset", "observer")
    shell.run("workspace", "create", "v", "--preset", "observer")
    page = tmp_path / "page.md"
    page.write_text("## Operations\n\n- (2026-11-01) Pumps start at four metres.\n")
    shell.run("-w", "w", "curated", "rebuild", "--from-file", str(page))
    shell.run("-w", "w", "slog", "write", "deploy", "sluice", "v3 on both gates")
    made = shell.json("-w", "w", "adr", "new", "One pump for each gate")
    repository = Path(shell.json("-w", "w", "curated", "path")["path"]).parent
    assert Path(made["path"]).parent == repository / "decisions"
    assert shell.json("-w", "w", "adr", "check")["fits"]
    assert shell.json("-w", "w", "adr", "list")["decisions"][0]["number"] == 1
    shell.run("-w", "w", "curated", "export")
    back = shell.json("-w", "v", "curated", "rebuild", "--from-repo", str(repository))
    assert "log.jsonl" in back["records"]
    assert shell.json("-w", "v", "slog", "query")["count"] == 1
    assert shell.json("-w", "v", "adr", "show", "1")["title"] == "One pump for each gate"
    assert shell.fails("-w", "v", "curated", "rebuild", code=2)["code"] == "usage"
    other = shell.json("-w", "w", "adr", "new", "Elsewhere", "--dir", str(tmp_path / "elsewhere"))
    assert Path(other["path"]).parent == tmp_path / "elsewhere"
