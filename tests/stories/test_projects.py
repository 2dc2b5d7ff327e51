"""One project, one memory: the hooks find a project's workspace in every folder of it, and nobody else's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lukasa.service.project_names import workspace_name
from tests.helpers.cli import Shell
from tests.helpers.repository import git

REMOTE = "https://ana:s3cret@Git.Example.org/ana/Harbour.git"


@pytest.fixture
def user(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def hook(user: Shell, folder: Path, session: str = "s", moment: str = "session-start") -> dict[str, Any]:
    event = {"session_id": session, "cwd": str(folder), "hook_event_name": "SessionStart", "source": "startup"}
    found: dict[str, Any] = user.json("hook", moment, input=json.dumps(event))
    return found


def repository(folder: Path, remote: str = REMOTE, words: str = "first") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "a.txt").write_text(words)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", words)
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


def clone(of: Path, to: Path, remote: str = REMOTE) -> Path:
    git(to.parent, "clone", "-q", "--no-hardlinks", str(of), str(to))
    git(to, "remote", "set-url", "origin", remote) if remote else git(to, "remote", "remove", "origin")
    return to


def test_a_worktree_a_clone_and_a_renamed_folder_share_one_memory(user: Shell, tmp_path: Path) -> None:
    """One project, one memory: what is put in one folder is given in all, however the remote is spelled."""
    first = repository(tmp_path / "harbour")
    place = hook(user, first)["workspace"]
    assert place.startswith("harbour-")
    user.json("-w", place, "put", "The crane is closed on Mondays", "--kind", "procedural", "--importance", "0.9")

    git(first, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    second = clone(first, tmp_path / "another", "git@git.example.org:ana/harbour.git")
    (second / "deep").mkdir()
    for number, folder in enumerate((tmp_path / "tree", second, second / "deep")):
        given = hook(user, folder, f"s{number}")
        assert given["workspace"] == place
        assert "crane is closed" in given["text"]
    shutil.move(second, tmp_path / "renamed")
    assert hook(user, tmp_path / "renamed", "s9")["workspace"] == place
    assert len(user.json("workspace", "list")["workspaces"]) == 1
    assert "s3cret" not in json.dumps([user.json("project", "list"), user.json("events", "list", "--account")])


def test_without_a_remote_the_first_commit_tells(user: Shell, tmp_path: Path) -> None:
    """A repository without a remote is known by its first commit: after a rename, and after it gets a remote."""
    first = repository(tmp_path / "notes", remote="")
    place = hook(user, first)["workspace"]
    shutil.move(first, tmp_path / "papers")
    assert hook(user, tmp_path / "papers", "s2")["workspace"] == place
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "-q", str(tmp_path / "papers"), str(copy))
    assert hook(user, copy, "s3")["workspace"] == place
    git(tmp_path / "papers", "remote", "add", "origin", REMOTE)
    hook(user, tmp_path / "papers", "s4")
    assert user.json("project", "show", str(tmp_path / "papers"))["workspace"] != ""


def test_a_remote_that_is_added_or_renamed_keeps_the_memory(user: Shell, tmp_path: Path) -> None:
    """The project in a folder stays the same one when it gets a remote, or when its remote gets another name."""
    folder = repository(tmp_path / "harbour", remote="")
    place = hook(user, folder)["workspace"]
    for number, change in enumerate((["remote", "add"], ["remote", "set-url"])):
        git(folder, *change, "origin", f"https://git.example.org/ana/name-{number}")
        assert hook(user, folder, f"s{number}")["workspace"] == place
    assert hook(user, clone(folder, tmp_path / "c", "https://git.example.org/ana/name-1"), "s8")["workspace"] == place


def test_a_forged_remote_opens_nothing(user: Shell, tmp_path: Path) -> None:
    """An unpacked archive may name any remote in .git/config: without the project's history it gets a workspace of its
    own, and says so. The owner can join it."""
    place = hook(user, repository(tmp_path / "harbour"))["workspace"]
    user.json("-w", place, "put", "The vault code is in the blue folder", "--importance", "0.9")
    forged = repository(tmp_path / "forged", words="another history")
    event = json.dumps({"session_id": "x", "cwd": str(forged), "hook_event_name": "SessionStart", "source": "startup"})
    done = user.call("hook", "session-start", "--json", input=event)
    given = json.loads(done.stdout)
    assert given["workspace"] not in (place, "")
    assert "vault" not in given["text"]
    assert "first" not in given["workspace"]
    assert "does not begin with commit" in done.stderr
    shown = user.json("project", "show", str(forged))
    assert (shown["how"], shown["workspace"]) == ("apart", given["workspace"])

    user.json("project", "set", place, str(forged))
    assert hook(user, forged, "y")["workspace"] == place
    other = repository(tmp_path / "forged2", words="a third history")
    assert hook(user, other, "z")["workspace"] not in (place, given["workspace"])  # the owner spoke of one folder
    assert hook(user, tmp_path / "harbour", "s2")["workspace"] == place


def test_a_git_folder_that_points_to_another_project_counts_for_nothing(user: Shell, tmp_path: Path) -> None:
    """Links and files named .git that lead to a private repository on this machine do not open its memory."""
    private = repository(tmp_path / "private")
    place = hook(user, private)["workspace"]
    head = git(private, "rev-parse", "HEAD")
    tricks = {name: tmp_path / name for name in ("file", "link", "common", "refs", "head")}
    for folder in tricks.values():
        folder.mkdir()
    (tricks["file"] / ".git").write_text(f"gitdir: {private / '.git'}\n")
    (tricks["link"] / ".git").symlink_to(private / ".git")
    for name in ("common", "refs", "head"):
        git(tricks[name], "init", "-q")
        git(tricks[name], "remote", "add", "origin", REMOTE)
        (tricks[name] / ".git" / "objects" / "info" / "alternates").write_text(f"{private / '.git' / 'objects'}\n")
    (tricks["common"] / ".git" / "commondir").write_text(f"{private / '.git'}\n")
    shutil.rmtree(tricks["refs"] / ".git" / "refs")
    (tricks["refs"] / ".git" / "refs").symlink_to(private / ".git" / "refs")
    (tricks["head"] / ".git" / "HEAD").unlink()
    (tricks["head"] / ".git" / "HEAD").symlink_to(private / ".git" / "HEAD")
    for number, folder in enumerate(tricks.values()):
        assert hook(user, folder, f"t{number}")["workspace"] != place, folder
    assert head


def test_a_fork_with_its_own_remote_has_its_own_memory(user: Shell, tmp_path: Path) -> None:
    """A fork shares its first commit with the original. Its remote is another one, so its memory is, too."""
    first = repository(tmp_path / "harbour")
    place = hook(user, first)["workspace"]
    fork = clone(first, tmp_path / "fork", "https://git.example.org/mallory/harbour")
    assert hook(user, fork, "f")["workspace"] != place


def test_a_shallow_clone_waits_for_its_owner(user: Shell, tmp_path: Path) -> None:
    """A clone without history cannot show whose it is: it stays apart until the owner says so."""
    first = repository(tmp_path / "harbour")
    (first / "b.txt").write_text("second")
    git(first, "add", "-A")
    git(first, "commit", "-q", "-m", "second")
    place = hook(user, first)["workspace"]
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{first}", str(shallow))
    git(shallow, "remote", "set-url", "origin", REMOTE)
    assert hook(user, shallow, "x")["workspace"] != place
    user.json("project", "set", place, str(shallow))
    assert hook(user, shallow, "y")["workspace"] == place


def test_a_workspace_from_before_keeps_its_project(user: Shell, tmp_path: Path) -> None:
    """An install that found its workspace by the folder keeps it, and other clones of the project join it."""
    first = repository(tmp_path / "harbour")
    old = workspace_name(str(first))
    user.json("workspace", "create", old)
    user.json("-w", old, "put", "The pilot is called Olga", "--importance", "0.9")
    assert hook(user, first)["workspace"] == old
    assert hook(user, clone(first, tmp_path / "another"), "s2")["workspace"] == old
    # A second clone that had a workspace of its own keeps that one until its owner says otherwise.
    third = clone(first, tmp_path / "third")
    own = workspace_name(str(third))
    user.json("workspace", "create", own)
    assert hook(user, third, "s3")["workspace"] == own
    user.json("project", "set", old, str(third))
    assert hook(user, third, "s4")["workspace"] == old


def test_another_project_at_the_same_path_has_its_own_memory(user: Shell, tmp_path: Path) -> None:
    """A folder is emptied and another project cloned into it: it does not get the memory of the one before."""
    folder = repository(tmp_path / "work")
    place = hook(user, folder)["workspace"]
    shutil.rmtree(folder)
    repository(folder, "https://git.example.org/zoe/garden", "other")
    assert hook(user, folder, "s2")["workspace"] != place


def test_a_project_is_set_forgotten_and_listed(user: Shell, tmp_path: Path) -> None:
    """The owner sees and changes which workspace a project has; forgetting removes no memory."""
    folder = repository(tmp_path / "harbour")
    planned = user.json("project", "show", str(folder))
    assert (planned["how"], planned["exists"]) == ("new", False)
    assert user.json("workspace", "list")["workspaces"] == []
    first = hook(user, folder)["workspace"]
    assert first == planned["workspace"] == user.run("hook", "workspace", str(folder)).strip()
    assert user.json("project", "show", str(folder))["how"] == "identity"
    user.json("workspace", "create", "dock")
    assert user.json("project", "set", "dock", str(folder))["workspace"] == "dock"
    assert hook(user, clone(folder, tmp_path / "c"), "s2")["workspace"] == "dock"
    assert {one["name"] for one in user.json("project", "list")["projects"]} == {"dock"}
    user.json("project", "forget", str(folder))
    assert user.json("project", "list")["projects"] == []
    third = hook(user, folder, "s3")["workspace"]
    assert third not in (first, "dock")
    assert {one["name"] for one in user.json("workspace", "list")["workspaces"]} == {first, "dock", third}
    assert user.fails("project", "set", "nowhere", str(folder), code=1)["code"] == "not-found"
    assert user.fails("project", "forget", str(tmp_path), code=1)["code"] == "not-found"
    assert "harbour" in user.run("project", "show", str(folder))
    assert "harbour" in user.run("project", "list")


def test_a_folder_without_git_is_known_by_its_path(user: Shell, tmp_path: Path) -> None:
    """Without git nothing changes; and when it becomes a repository, it keeps its memory."""
    folder = tmp_path / "plain"
    folder.mkdir()
    place = hook(user, folder)["workspace"]
    assert place == workspace_name(str(folder))
    git(folder, "init", "-q")
    assert hook(user, folder, "s2")["workspace"] == place
    (folder / "a").write_text("a")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a")
    git(folder, "remote", "add", "origin", REMOTE)
    assert hook(user, folder, "s3")["workspace"] == place
    assert hook(user, clone(folder, tmp_path / "c"), "s4")["workspace"] == place


def test_an_import_goes_to_the_workspace_of_the_project(user: Shell, tmp_path: Path) -> None:
    """Rules of a repository are imported into the memory that the hooks use in its folder."""
    folder = repository(tmp_path / "harbour")
    place = hook(user, folder)["workspace"]
    (folder / "AGENTS.md").write_text("Run the tests before each commit.\n")
    assert user.json("import", str(folder / "AGENTS.md"))["workspaces"] == {place: 1}


def test_two_first_sessions_at_once_make_one_workspace(user: Shell, tmp_path: Path) -> None:
    """Two processes that start the first session of a project at the same moment use one workspace."""
    folder = repository(tmp_path / "harbour")
    event = json.dumps({"session_id": "a", "cwd": str(folder), "hook_event_name": "SessionStart", "source": "startup"})
    words = ["-m", "lukasa.surfaces.cli.main", "hook", "session-start", "--json"]
    env = {**os.environ, "LUKASA_DATA": str(user.data), "LUKASA_EMBEDDER": "none", "LUKASA_WORKER": "off"}
    started = [subprocess.Popen([sys.executable, *words], stdin=-1, stdout=-1, env=env, text=True) for _ in range(2)]
    told = [json.loads(one.communicate(event, timeout=60)[0]) for one in started]
    assert told[0]["workspace"] == told[1]["workspace"]
    assert len(user.json("workspace", "list")["workspaces"]) == 1
