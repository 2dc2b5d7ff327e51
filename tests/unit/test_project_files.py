"""The files of a project: what is inside is read within bounds, and nothing outside is ever opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lukasa.model.errors import LukasaError, OutsideProject, UnreadableFile
from lukasa.model.source_text import SourceText
from lukasa.providers.files.projects import FolderProject, LocalProjects, remote_name
from lukasa.write.named_files import NamedFile, NamedSymbol, named
from tests.helpers.repository import git


@pytest.fixture
def project(tmp_path: Path) -> FolderProject:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "auth.py").write_text("one\ntwo\n")
    (tmp_path / "secret.txt").write_text("do not read me\n")
    return FolderProject(folder)


def outside(project: FolderProject, tmp_path: Path) -> list[str]:
    (project.root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (project.root / "folder").symlink_to(tmp_path)
    (project.root / "null").symlink_to("/dev/null")
    git(project.root, "init", "-q")
    return [
        "../secret.txt",
        "src/../../secret.txt",
        str(tmp_path / "secret.txt"),
        "/etc/passwd",
        "/proc/self/environ",
        "/dev/zero",
        "~/.ssh/id_rsa/../../../../../etc/passwd",
        "link.txt",
        "folder/secret.txt",
        "null",
        ".git/config",
        "src/../.git/HEAD",
        "a\0b",
        "",
    ]


def test_no_path_leads_out_of_the_project(
    project: FolderProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B16: links, dots, absolute paths, devices and git's own files are refused before anything is opened."""
    paths, opened = outside(project, tmp_path), list[Any]()
    real = os.open

    def noted(path: Any, *rest: Any, **more: Any) -> int:
        opened.append(path)
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", noted)
    for path in paths:
        assert project.relative(path) is None
        with pytest.raises((OutsideProject, UnreadableFile)):
            project.read(path)
    assert opened == []


def test_what_is_no_plain_file_of_a_fair_size_is_refused(project: FolderProject) -> None:
    """B16: a FIFO would wait for ever and a huge file take all memory; both are typed errors, at once."""
    os.mkfifo(project.root / "pipe")
    with (project.root / "huge.bin").open("wb") as huge:
        huge.truncate(50_000_000_000)
    for path in ("pipe", "huge.bin", "src"):
        with pytest.raises(UnreadableFile):
            project.read(path)
    assert project.read("src/none.py") is None


def test_an_absolute_path_or_a_link_inside_is_the_file_itself(project: FolderProject) -> None:
    """B16: every spelling of a file of the project is one path."""
    (project.root / "also.py").symlink_to(project.root / "src" / "auth.py")
    for path in ("src/auth.py", "./src/auth.py", "src/../src/auth.py", str(project.root / "src/auth.py"), "also.py"):
        assert project.relative(path) == "src/auth.py"


def test_a_file_is_read_again_when_it_changes(project: FolderProject) -> None:
    """B16: the cache knows a file by its time, size and inode."""
    first = project.read("src/auth.py")
    assert project.read("src/auth.py") is first
    (project.root / "src" / "auth.py").write_text("one\ntwo\nthree\n")
    again = project.read("src/auth.py")
    assert again is not None
    assert len(again) == 3


@pytest.mark.parametrize(
    ("data", "same"),
    [
        (b"a\r\nb\r\n", True),
        (b"\xef\xbb\xbfa  \nb\t\n\n\n", True),
        (b"a\nb", True),
        (b"a\n b\n", False),
        (b"a\n\nb\n", False),
        (b"A\nb\n", False),
    ],
)
def test_what_editors_change_does_not_count(data: bytes, same: bool) -> None:
    """B16: line ends, a mark at the beginning and space at the end say nothing; indentation does."""
    assert (SourceText(data).pin == SourceText(b"a\nb\n").pin) is same


def test_a_closing_brace_is_only_found_between_its_lines() -> None:
    """B16: a line that is there many times is the one between the same lines, or none."""
    before = SourceText(b"def a():\n    return 1\n}\ndef b():\n    return 2\n}\ndef c():\n    return 3\n}\n")
    pin, around = before.pin_lines(6, 6), before.around(6, 6)
    moved = SourceText(b"# new\ndef a():\n    return 1\n}\ndef b():\n    return 2\n}\ndef c():\n    return 3\n}\n")
    found = moved.find(6, 6, pin, around)
    assert found is not None
    assert found.first == 7
    assert SourceText(b"x\n}\ny\n}\nz\n}\n").find(6, 6, pin, around) is None


def test_the_same_project_has_one_name_everywhere(tmp_path: Path) -> None:
    """B16: clones by https and ssh share a name without a password; a worktree is the same project."""
    spellings = (
        "https://user:secret@Host.org/team/mill.git",
        "git@host.org:team/mill.git",
        "ssh://git@host.org:22/team/mill",
        "https://host.org/team/mill/",
    )
    assert {remote_name(one) for one in spellings} == {"host.org/team/mill"}
    here = tmp_path / "here"
    here.mkdir()
    git(here, "init", "-q")
    (here / "a.txt").write_text("a\n")
    git(here, "add", "-A")
    git(here, "commit", "-q", "-m", "one")
    before = FolderProject(here).identity
    assert before == f"commit:{git(here, 'rev-list', '--max-parents=0', 'HEAD')}"
    git(here, "remote", "add", "origin", spellings[0])
    git(here, "worktree", "add", "-q", str(tmp_path / "there"))
    there = FolderProject(tmp_path / "there")
    assert there.identity == "git:host.org/team/mill"
    assert there.revision() == git(here, "rev-parse", "HEAD")
    assert there.is_called(before)
    assert not there.is_called("git:host.org/team/other")


def test_home_and_the_root_of_the_disk_are_no_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B16: a folder is a project, but not everything a person has; one that a file named must be under git."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "plain" / "deep").mkdir(parents=True)
    found = LocalProjects(None)
    assert found.at(str(tmp_path)) is found.at("/") is found.at("") is found.at(str(tmp_path / "none")) is None
    assert found.at(str(tmp_path / "plain"), in_git=True) is None
    assert getattr(found.at(str(tmp_path / "plain")), "root", None) == tmp_path / "plain"
    git(tmp_path / "plain", "init", "-q")
    assert getattr(found.at(str(tmp_path / "plain" / "deep"), in_git=True), "root", None) == tmp_path / "plain"


def test_a_folder_that_became_another_project_is_not_known(tmp_path: Path) -> None:
    """B16: the noted folder counts only while the project in it has the same name."""
    folder = tmp_path / "mill"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", "https://host.org/mill")
    here = LocalProjects(tmp_path / "data")
    at = here.at(str(folder))
    assert at is not None
    here.remember(at)
    assert LocalProjects(tmp_path / "data").known("git:host.org/mill") is not None
    git(folder, "remote", "set-url", "origin", "https://host.org/other")
    assert LocalProjects(tmp_path / "data").known("git:host.org/mill") is None
    (tmp_path / "data" / "projects.json").write_text("[1, broken")
    assert LocalProjects(tmp_path / "data").known("git:host.org/mill") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Tokens are made in src/auth.py:42.", [NamedFile("src/auth.py", 42, 42)]),
        ("See `src/auth.py:10-20`, then README.md", [NamedFile("src/auth.py", 10, 20), NamedFile("README.md")]),
        ("(lib/a.ts#L3-L9)", [NamedFile("lib/a.ts", 3, 9)]),
        ("tests/test_a.py::test_b fails", [NamedFile("tests/test_a.py", symbol="test_b")]),
        ("`lukasa.app.Settings` has it", [NamedSymbol("lukasa.app.Settings")]),
        ("`docs/two words.md` says so", [NamedFile("docs/two words.md"), NamedFile("docs/two"), NamedFile("words.md")]),
        ("Look at https://host.org/src/auth.py please", []),
        ("Version 3.11 costs 4.50 and/or nothing, e.g. this", [NamedFile("and/or"), NamedFile("e.g")]),
        ("Makefile and src/Makefile", [NamedFile("src/Makefile")]),
    ],
)
def test_sentences_name_files(text: str, found: list[Any]) -> None:
    """B16: what looks like a path is looked for; an address on the web is none."""
    assert named(text) == found


def test_hostile_names_of_a_repository_run_nothing(tmp_path: Path) -> None:
    """B16: a repository's own settings start no program when a check asks git."""
    folder = tmp_path / "trap"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    first = git(folder, "rev-parse", "HEAD")
    marker = tmp_path / "ran"
    for name in ("core.fsmonitor", "diff.external", "core.pager", "diff.x.command", "filter.x.clean"):
        git(folder, "config", name, f"touch {marker}")
    (folder / ".gitattributes").write_text("* diff=x filter=x\n")
    (folder / "a.txt").rename(folder / "b.txt")
    project = FolderProject(folder)
    assert project.renamed("a.txt", first, float("inf")) is None
    assert list(project.candidates("a.txt", float("inf"))) == ["b.txt"]
    assert project.mentions("a", ".txt", float("inf")) == ["b.txt"]
    assert not marker.exists()


def test_errors_of_the_file_system_are_typed(project: FolderProject) -> None:
    """W9: a name that no file can have is an error of ours."""
    with pytest.raises(LukasaError):
        project.read("x" * 5000)
