"""The curated document: a page in the database, a file under git, and what happens when either is lost."""

from __future__ import annotations

import os
import shutil
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from lukasa import Lukasa, Workspace
from lukasa.app import open_curated_file
from lukasa.model.amendment import AmendmentState
from lukasa.model.errors import (
    GitError,
    GitMissing,
    InvalidContent,
    InvalidTransition,
    NotFound,
    ReadOnlyForAgents,
    Refused,
    StoreError,
)
from lukasa.model.values import Trust
from lukasa.providers.files.git import GitFile
from lukasa.service.curation.curated_document import sync
from lukasa.service.jobs.queue import reflect_now
from tests.helpers.cli import Shell
from tests.helpers.curating import git, promote, proposal, propose, subjects, work
from tests.helpers.making import FixedClock
from tests.helpers.processes import finish, fork


@pytest.fixture
def watcher(memory: Lukasa) -> Workspace:
    return memory.workspace("watched", preset="observer")


@pytest.fixture
def folder(memory: Lukasa, watcher: Workspace) -> Path:
    found = memory.folder(watcher)
    assert found is not None
    return found / "curated"


def test_a_promotion_is_a_line_a_version_and_a_commit(watcher: Workspace, folder: Path) -> None:
    """K1: one commit for each promotion, at once, whose message names the proposal."""
    first, second = promote(watcher, "Deploys go through the gate.", "Backups run at night.")
    assert watcher.curated.text.splitlines() == [
        "## Operations",
        "",
        "- (2026-11-15) Deploys go through the gate.",
        "- (2026-11-15) Backups run at night.",
    ]
    assert work(watcher) == []  # nothing is left to a worker
    assert (folder / "MEMORY.md").read_text() == watcher.curated.text + "\n"
    assert subjects(folder) == ["Promote: Deploys go through the gate.", "Promote: Backups run at night."]
    bodies = git(folder, "log", "--reverse", "--format=%b%x00").split("\0")
    assert first in bodies[0]
    assert second in bodies[1]
    assert git(folder, "status", "--porcelain", "MEMORY.md") == ""
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("preset", ["default", "tiered", "workspace", "anchored"])
def test_elsewhere_there_is_no_file(memory: Lukasa, preset: str) -> None:
    """K1: in the other presets it is a named entry with its history, and no file exists."""
    world = memory.workspace(preset, preset=preset)
    before = set(memory.folder(world).rglob("*"))  # type: ignore[union-attr]
    promote(world, "Deploys go through the gate.", "Backups run at night.")
    assert work(world) == []
    assert set(memory.folder(world).rglob("*")) == before  # type: ignore[union-attr]
    assert len(world.named_history("MEMORY")) == 2
    assert world.curated.path is None
    with pytest.raises(Refused):
        world.curated.export()


def test_it_is_loaded_everywhere_and_written_by_no_agent(world: Workspace) -> None:
    """K1, M7: no page before the first promotion; then it is in every context, and agents cannot write it."""
    assert "MEMORY" not in {named.name for named in world.named()}
    assert "## MEMORY" not in str(world.context())
    promote(world, "Deploys go through the gate.")
    assert "> - (2026-11-15) Deploys go through the gate." in str(world.acting(agent="scribe").context())
    with pytest.raises(ReadOnlyForAgents):
        world.acting(agent="scribe").edit_named("MEMORY", "mine now")


def test_an_entry_is_no_copy_of_the_page(world: Workspace) -> None:
    """D1, K1: the page is made from entries, so that saying the same again is no mirror of it."""
    promote(world, "Deploys of the gateway go through the gate on weekdays.")
    written = world.put("workspace", "Deploys of the gateway go through the gate on weekdays.")
    assert written.outcome == "stored"


def test_a_persons_edit_is_taken_in_first(watcher: Workspace, folder: Path) -> None:
    """K1: an edit of the file becomes a version of theirs, and what is promoted next stands beside it."""
    promote(watcher, "Deploys go through the gate.")
    work(watcher)
    file = folder / "MEMORY.md"
    file.write_text(file.read_text().replace("the gate", "gate B") + "\nMy own note.\n")
    promote(watcher, "Backups run at night.")
    work(watcher)
    text = watcher.curated.text
    assert "Deploys go through gate B." in text
    assert "My own note." in text
    assert "Backups run at night." in text
    assert [v.editor for v in watcher.curated.history()][1] == "author@file"
    assert subjects(folder)[1:] == ["Take in an edit of the file", "Promote: Backups run at night."]
    assert file.read_text() == text + "\n"


class Locked(GitFile, frozen=True):
    """A folder that nobody can write to now."""

    def write(self, body: str, *, instead_of: str | None) -> bool:
        raise StoreError("the folder cannot be written", fix="try again")


def test_an_edit_and_a_promotion_made_meanwhile_both_hold(watcher: Workspace, folder: Path, clock: FixedClock) -> None:
    """K1: the file was edited after a promotion that it did not have yet; neither is lost."""
    promote(watcher, "Deploys go through the gate.")
    work(watcher)
    promote(Workspace(replace(watcher.ctx, curated_file=Locked(folder))), "Backups run at night.")  # the file is behind
    file = folder / "MEMORY.md"
    file.write_text(file.read_text() + "- (2026-11-15) Mine.\n")
    assert subjects(folder) == ["Promote: Deploys go through the gate."]
    clock.time += timedelta(minutes=5)
    work(watcher)
    assert {d.text for d in watcher.curated.lines()} == {
        "Deploys go through the gate.",
        "Backups run at night.",
        "Mine.",
    }
    assert len(subjects(folder)) == 3
    assert (folder / "MEMORY.md").read_text() == watcher.curated.text + "\n"


def test_a_persons_own_commit_is_kept(watcher: Workspace, folder: Path) -> None:
    """K1: somebody may commit by hand; their commit stays, and ours follow it."""
    promote(watcher, "Deploys go through the gate.")
    work(watcher)
    file = folder / "MEMORY.md"
    file.write_text(file.read_text() + "- (2026-11-15) By hand.\n")
    git(folder, "-c", "user.name=ada", "-c", "user.email=a@b.c", "commit", "-qam", "Mine")
    promote(watcher, "Backups run at night.")
    work(watcher)
    assert subjects(folder) == ["Promote: Deploys go through the gate.", "Mine", "Promote: Backups run at night."]
    assert "By hand." in watcher.curated.text


def test_what_is_no_text_is_refused_and_left(watcher: Workspace, folder: Path) -> None:
    """K1: a file that cannot be read is an error that says so; it is not overwritten."""
    promote(watcher, "Deploys go through the gate.")
    work(watcher)
    (folder / "MEMORY.md").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidContent, match="not UTF-8"):
        watcher.curated.export()
    assert (folder / "MEMORY.md").read_bytes() == b"\xff\xfe"


def test_a_crash_before_the_commit_heals(memory: Lukasa, watcher: Workspace, folder: Path, clock: FixedClock) -> None:
    """K1, T20: killed after the file was written, after the commit, before the journal: one commit in the end."""
    promote(Workspace(replace(watcher.ctx, curated_file=Locked(folder))), "Deploys go through the gate.")
    clock.time += timedelta(minutes=5)

    class DiesBefore(GitFile, frozen=True):
        def commit(self, *args: object, **kwargs: object) -> str:
            os.kill(os.getpid(), signal.SIGKILL)
            return ""

    class DiesAfter(GitFile, frozen=True):
        def commit(self, *args: object, **kwargs: object) -> str:
            super().commit(*args, **kwargs)  # type: ignore[arg-type]
            os.kill(os.getpid(), signal.SIGKILL)
            return ""

    for kind in (DiesBefore, DiesAfter):
        child = fork(lambda kind=kind: sync(replace(watcher.ctx, curated_file=kind(folder))))  # type: ignore[misc]
        assert finish(child) == -signal.SIGKILL
        assert (folder / "MEMORY.md").read_text() == watcher.curated.text + "\n"
    assert subjects(folder) == ["Promote: Deploys go through the gate."]
    work(watcher)
    assert subjects(folder) == ["Promote: Deploys go through the gate."]
    assert len(watcher.curated.history()) == 1


def test_losing_the_repository(watcher: Workspace, folder: Path) -> None:
    """K1: losing git, it is exported from the database, a commit for each version; also to another folder."""
    promote(watcher, "Deploys go through the gate.", "Backups run at night.")
    work(watcher)
    told = git(folder, "log", "--format=%s%n%b%n%ad")
    shutil.rmtree(folder)
    synced = watcher.curated.export()
    assert (synced.committed, synced.taken_in) == (2, False)
    assert git(folder, "log", "--format=%s%n%b%n%ad") == told
    elsewhere = open_curated_file(folder.parent / "elsewhere")
    assert watcher.curated.export(elsewhere).committed == 2
    assert watcher.curated.export(elsewhere).committed == 0


def test_losing_the_database(memory: Lukasa, watcher: Workspace, folder: Path) -> None:
    """K1: losing the database, the page and an entry for each line come from git; doing it twice changes nothing."""
    promote(watcher, "Deploys go through the gate.", "Backups run at night.")
    work(watcher)
    kept = git(folder, "show", "HEAD:MEMORY.md").removesuffix("\n")
    fresh = memory.workspace("fresh", preset="observer")
    made = fresh.curated.rebuild(kept)
    assert subjects(memory.folder(fresh) / "curated") == ["Rebuild from a file"]  # type: ignore[operator]
    assert (made.changed, made.outcomes, fresh.curated.text) == (True, {"stored": 2}, watcher.curated.text)
    again = fresh.curated.rebuild(kept)
    assert (again.changed, again.outcomes, again.page.version) == (False, {"merged": 2}, 1)
    (found,) = [e for e in fresh.entries("workspace") if "Backups" in e.content]
    assert found.trust is Trust.IMPORTED


def test_an_old_repository_goes_on_under_a_new_database(memory: Lukasa, watcher: Workspace, folder: Path) -> None:
    """K1: a repository that another database made is continued, not made again."""
    promote(watcher, "Deploys go through the gate.", "Backups run at night.")
    work(watcher)
    fresh = memory.workspace("fresh", preset="observer")
    there = memory.folder(fresh)
    assert there is not None
    shutil.copytree(folder, there / "curated")
    fresh.curated.rebuild((there / "curated" / "MEMORY.md").read_text().removesuffix("\n"))
    promote(fresh, "Logs stay for a week.")
    work(fresh)
    assert len(subjects(there / "curated")) == 3


def test_a_promotion_can_be_taken_back(watcher: Workspace, folder: Path) -> None:
    """K1, B3: the line goes, what came after stays, the proposal waits again, and the file follows."""
    first, second = promote(watcher, "Deploys go through the gate.", "Backups run at night.")
    watcher.curated.undo(1)
    assert [d.text for d in watcher.curated.lines()] == ["Backups run at night."]
    assert proposal(watcher, first).state is AmendmentState.REVIEW
    assert proposal(watcher, second).state is AmendmentState.PROMOTED
    assert subjects(folder)[2:] == ["Take back a change"]
    agree(watcher, folder)
    with pytest.raises(Refused, match="nothing of version 1"):
        watcher.curated.undo(1)
    with pytest.raises(NotFound):
        watcher.curated.undo(9)
    with pytest.raises(Refused):
        watcher.acting(agent="scribe").curated.undo()


def agree(watcher: Workspace, folder: Path) -> None:
    """MEMORY.md, the database and git say the same, and no job waits."""
    assert work(watcher) == []
    assert (folder / "MEMORY.md").read_text() == watcher.curated.text + "\n" == git(folder, "show", "HEAD:MEMORY.md")


def test_every_way_to_change_the_page_is_a_commit_at_once(watcher: Workspace, folder: Path) -> None:
    """K1, B3: approve, undo of the proposal, approve again, an edit of the page, undo by event: a commit each."""
    (id,) = promote(watcher, "Lamps on the pier burn until two.")
    agree(watcher, folder)
    undone = watcher.undo(id)
    assert (undone.named, watcher.curated.lines(), proposal(watcher, id).state) == ("MEMORY", [], AmendmentState.REVIEW)
    agree(watcher, folder)
    with pytest.raises(InvalidTransition, match="is not on the page"):
        watcher.undo(id)
    watcher.approve(id, text="Lamps on the pier burn until three.")
    agree(watcher, folder)
    watcher.edit_named("MEMORY", f"{watcher.curated.text}\n\nMy own words.")
    agree(watcher, folder)
    (event,) = [
        e for e in watcher.ctx.local.events(subject="MEMORY", action="curated.changed") if e.detail["version"] == 3
    ]
    watcher.undo(event.seq)
    assert (watcher.curated.lines(), "My own words." in watcher.curated.text) == ([], True)
    agree(watcher, folder)
    assert [s.split(":")[0].split(" by ")[0] for s in subjects(folder)] == [
        "Promote",
        "Take back a change",
        "Promote",
        "Edit",
        "Take back a change",
    ]


def test_triage_commits_each_promotion_and_its_undo_takes_them_back(watcher: Workspace, folder: Path) -> None:
    """O4, K1, B3: a commit for each promotion by rules; undo of the job is a commit for each as well."""
    texts = [
        f"The chart of basin {n} is in /srv/charts/{name}.sqlite" for n, name in enumerate(("tern", "gull", "auk"))
    ]
    for text in texts:
        watcher.put("workspace", text, importance=0.9)
    ids = {a.id for a in reflect_now(watcher.ctx, chat=None).proposals}
    while more := reflect_now(watcher.ctx, chat=None).proposals:
        ids |= {a.id for a in more}
    assert {proposal(watcher, id).state for id in ids} == {AmendmentState.PROMOTED}
    assert len(subjects(folder)) == 3
    agree(watcher, folder)
    for job in watcher.jobs(kind="triage"):
        watcher.undo(job.id)
    assert watcher.curated.lines() == []
    assert {proposal(watcher, id).state for id in ids} == {AmendmentState.REVIEW}
    assert subjects(folder)[3:] == ["Take back a change"] * 3
    agree(watcher, folder)


def test_without_git_the_file_is_there(watcher: Workspace, folder: Path) -> None:
    """K1: no git is said plainly; the file is written, and commits come once there is one."""
    without = Workspace(replace(watcher.ctx, curated_file=GitFile(folder, program="no-such-git")))
    id = propose(watcher, "Deploys go through the gate.", state=AmendmentState.REVIEW)
    assert without.approve(id).trouble == "git is not installed on this machine"
    synced = without.curated.export()
    assert (synced.committed, synced.trouble) == (0, "git is not installed on this machine")
    assert (folder / "MEMORY.md").read_text() == watcher.curated.text + "\n"
    with pytest.raises(GitMissing):
        without.ctx.curated_file.commit("x", version=1, message="m", author="a", at=watcher.ctx.now)  # type: ignore[union-attr]
    (folder / "MEMORY.md").write_text(watcher.curated.text + "\n- (2026-11-15) Mine.\n")
    assert without.curated.export().taken_in
    assert watcher.curated.export().committed == 2


def test_a_broken_repository_is_told(watcher: Workspace, folder: Path) -> None:
    """K1: git's own failure is a typed error; the page and the file are as they should be."""
    promote(watcher, "Deploys go through the gate.")
    work(watcher)
    shutil.rmtree(folder / ".git" / "objects")
    promote(watcher, "Backups run at night.")
    with pytest.raises(GitError, match="git "):
        watcher.curated.export()
    assert "Backups run at night." in (folder / "MEMORY.md").read_text()


def test_settings_and_hooks_of_others_do_not_matter(
    watcher: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """K1: no user config is needed, and none is heeded: neither identity nor signing nor hooks."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[commit]\n\tgpgsign = true\n[core]\n\thooksPath = /nonexistent\n[user]\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    promote(watcher, "Deploys go through the gate.")
    work(watcher)
    monkeypatch.delenv("GIT_DIR")
    hook = folder / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    promote(watcher, "Backups run at night.")
    work(watcher)
    assert len(subjects(folder)) == 2


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    found = Shell(tmp_path / "cli")
    found.run("workspace", "create", "w", "--preset", "observer")
    return found


def test_the_verbs(shell: Shell, tmp_path: Path) -> None:
    """K1, U2: show, path, history, rebuild, export, undo."""
    assert "Nothing is curated here yet" in shell.run("-w", "w", "curated", "show")
    page = tmp_path / "page.md"
    page.write_text("## Operations\n\n- (2026-11-01) Deploys go through the gate.\n")
    assert shell.json("-w", "w", "curated", "rebuild", "--from-file", str(page))["outcomes"] == {"stored": 1}
    assert "Deploys go through the gate." in shell.run("-w", "w", "curated", "show")
    made = shell.json("-w", "w", "curated", "export")
    assert made["committed"] == 0  # the rebuild has committed it
    assert shell.run("-w", "w", "curated", "path").strip() == made["path"]
    assert len(shell.json("-w", "w", "curated", "history")["versions"]) == 1
    assert shell.json("-w", "w", "curated", "undo")["version"] == 2
    assert shell.fails("curated", "path", code=1)["code"] == "refused"
    assert shell.json("-w", "w", "curated", "export", "--dir", str(tmp_path / "copy"))["committed"] == 2
