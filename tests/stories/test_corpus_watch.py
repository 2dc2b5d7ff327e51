"""The worker follows folders: what changes, comes and goes is taken over, and an absent folder loses nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.errors import InvalidInput, NotFound, Refused
from lukasa.service.corpus import watching
from tests.fakes import FakeEmbedder
from tests.helpers.making import FixedClock


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder=FakeEmbedder(), clock=clock) as memory:
        yield memory


@pytest.fixture
def world(memory: Lukasa) -> Workspace:
    return memory.workspace()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "notes"
    made.mkdir()
    for name in ("oil", "rope"):
        write(made / f"{name}.md", f"# {name}\n\nThe {name} is in the cellar.\n")
    return made


def write(path: Path, text: str) -> None:
    """Write a file that changed a while ago."""
    path.write_text(text)
    then = path.stat().st_mtime_ns - 10**10
    os.utime(path, ns=(then, then))


def look(memory: Lukasa, clock: FixedClock, minutes: float = 6) -> dict[str, int]:
    """Let time pass and the worker work; what it did with followed folders."""
    clock.time += timedelta(minutes=minutes)
    runs = memory.worker().drain()
    assert [run.error for run in runs if run.error] == []
    return next((dict(run.result) for run in runs if run.job.kind == "follow"), {})


def test_a_followed_folder_is_kept_up_to_date(
    memory: Lukasa, world: Workspace, folder: Path, clock: FixedClock
) -> None:
    """K4: changed, new and vanished files are taken over; the owner's standing of a document stays."""
    world.add_to_corpus(str(folder / "oil.md"), standing="canonical")
    begun, done = world.watch_folder(str(folder), collection="house")
    assert (done.counts, begun.failures) == ({"added": 1, "unchanged": 1}, 0)
    assert look(memory, clock, minutes=1) == {}
    assert look(memory, clock) == {"unchanged": 2}
    write(folder / "oil.md", "# oil\n\nThe oil is in the attic now.\n")
    write(folder / "sail.md", "# sail\n\nThe sail is on the roof.\n")
    (folder / "rope.md").unlink()
    assert look(memory, clock) == {"changed": 1, "added": 1, "removed": 1}
    assert world.search_corpus("attic")[0].standing == "canonical"
    assert world.search_corpus("sail roof")[0].collection == "house"
    assert all("rope" not in hit.text for hit in world.search_corpus("rope cellar"))
    (one,) = world.watches()
    assert (one.error, one.checked_at) == ("", clock.time)
    world.unwatch(str(folder))
    write(folder / "sail.md", "# sail\n\nThe sail is gone.\n")
    assert look(memory, clock) == {}
    assert "roof" in world.get_document("notes/sail.md").body


def test_an_absent_folder_keeps_its_documents(
    memory: Lukasa, world: Workspace, folder: Path, clock: FixedClock
) -> None:
    """K4: a folder that is gone or empty may be a disk that is not mounted: it is told, and nothing is removed."""
    world.watch_folder(str(folder))
    away = folder.with_name("away")
    folder.rename(away)
    assert look(memory, clock) == {"failed": 1}
    (one,) = world.watches()
    assert (one.failures, "no file or folder" in one.error, one.due_at - clock.time) == (
        1,
        True,
        2 * watching.EVERY,
    )
    folder.mkdir()
    look(memory, clock, minutes=11)
    (one,) = world.watches()
    assert (one.failures, "not mounted" in one.error) == (2, True)
    assert len(world.documents()) == 2
    folder.rmdir()
    away.rename(folder)
    assert look(memory, clock, minutes=30) == {"unchanged": 2}
    assert (world.watches()[0].failures, world.watches()[0].error) == (0, "")


def test_a_file_that_fails_is_tried_again_when_it_changes(
    memory: Lukasa, world: Workspace, folder: Path, clock: FixedClock
) -> None:
    """K4: one bad file is told, costs nothing at the next look, and does not keep out the others."""
    world.watch_folder(str(folder))
    (folder / "bad.pdf").write_bytes(b"no pdf at all")
    then = (folder / "bad.pdf").stat().st_mtime_ns - 10**10
    os.utime(folder / "bad.pdf", ns=(then, then))
    write(folder / "sail.md", "# sail\n\nThe sail is on the roof.\n")
    assert look(memory, clock) == {"failed": 1, "added": 1, "unchanged": 2}
    assert "bytes are not one" in world.watches()[0].error
    assert look(memory, clock) == {"unchanged": 3}
    assert "bytes are not one" in world.watches()[0].error
    shutil.move(folder / "bad.pdf", folder / "bad.txt")
    assert look(memory, clock) == {"added": 1, "unchanged": 3}
    assert world.watches()[0].error == ""


def test_only_the_owner_follows(world: Workspace, folder: Path) -> None:
    """K5: an agent neither adds nor follows, and what is no folder is not followed."""
    agent = world.acting(agent="helper")
    for act in (
        lambda: agent.watch_folder(str(folder)),
        lambda: agent.add_to_corpus(str(folder)),
        lambda: agent.add_upload("a.md", b"text"),
        lambda: agent.unwatch("x"),
        agent.watches,
    ):
        with pytest.raises(Refused):
            act()
    assert world.documents() == []
    with pytest.raises(InvalidInput):
        world.watch_folder(str(folder / "oil.md"))
    with pytest.raises(NotFound):
        world.unwatch(str(folder))


def test_passages_have_vectors_at_once_or_by_the_worker(memory: Lukasa, world: Workspace, tmp_path: Path) -> None:
    """K4: few passages are embedded when they are added, and many by the job that fills vectors."""
    embedder = world.ctx.embedder
    assert embedder is not None
    (tmp_path / "one.md").write_text("# One\n\nThe lantern burns.\n")
    world.add_to_corpus(str(tmp_path / "one.md"))
    assert world.ctx.local.unembedded_passages(embedder.model, 10) == []
    (tmp_path / "many.md").write_text("\n\n".join(f"# Part {n}\n\nThe ship {n} sails." for n in range(300)))
    world.add_to_corpus(str(tmp_path / "many.md"))
    assert world.ctx.local.unembedded_passages(embedder.model, 10)
    while world.ctx.local.unembedded_passages(embedder.model, 1):
        assert world.backfill() > 0
