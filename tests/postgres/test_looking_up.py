"""The corpus on a PostgreSQL database: the same commands, the same passages, and a worker that follows a folder."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from lukasa import Lukasa
from tests.fakes import FakeEmbedder
from tests.helpers.cli import Shell
from tests.helpers.documents import pdf
from tests.helpers.making import FixedClock


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "deploys.md").write_text("# Deploys\n\nTwo people.\n\n## On Fridays\n\nNobody deploys on a Friday.\n")
    (folder / "crane.pdf").write_bytes(pdf([["It lifts forty tonnes."], ["Oil the winch weekly."]], "Crane"))
    return folder


def test_the_commands_are_the_same(tmp_path: Path, database_url: str, shelf: Path) -> None:
    """X1, K4: add, search, read, change, prune and remove, each with the answers that SQLite gives."""
    answers = []
    for engine in ("", database_url):
        (shelf / "extra.md").write_text("# Extra\n\nThe rope is in the loft.\n")
        (shelf / "deploys.md").write_text("# Deploys\n\nTwo people.\n\n## On Fridays\n\nNobody deploys on a Friday.\n")
        settings = {"LUKASA_EMBEDDER": "none", **({"LUKASA_DATABASE": engine} if engine else {})}
        shell = Shell(tmp_path / f"data{len(engine)}", settings)
        told = [shell.json("corpus", "add", str(shelf), "--tag", "shelf", "--standing", "binding")["counts"]]
        (shelf / "deploys.md").write_text("# Deploys\n\nOne person is enough.\n")
        (shelf / "extra.md").unlink()
        told.append(shell.json("corpus", "add", str(shelf), "--prune")["counts"])
        for asked in ("winch", "one person", "rope loft"):
            hits = shell.json("corpus", "search", asked, "--tag", "shelf")["hits"]
            told.append([(hit["document"], hit["place"], hit["version"], hit["standing"]) for hit in hits])
        told.append(shell.json("corpus", "read", "shelf/crane.pdf", "--page", "2")["text"])
        told.append([one["id"] for one in shell.json("corpus", "list")["documents"]])
        told.append(len(shell.json("corpus", "history", "shelf/extra.md")["versions"]))
        assert "nothing wrong" in shell.run("doctor")
        answers.append(told)
    assert answers[0] == answers[1]
    assert answers[0][:2] == [{"added": 3}, {"unchanged": 1, "changed": 1, "removed": 1}]


def test_a_folder_is_followed(tmp_path: Path, database_url: str, shelf: Path) -> None:
    """X1, K4: the worker takes over what changed, with vectors, whichever engine keeps it."""
    clock = FixedClock()
    with Lukasa.open(tmp_path / "data", database=database_url, embedder=FakeEmbedder(), clock=clock) as memory:
        world = memory.workspace()
        world.watch_folder(str(shelf))
        (shelf / "sail.md").write_text("# Sail\n\nThe sail is on the roof.\n")
        (shelf / "crane.pdf").unlink()
        clock.time += timedelta(minutes=6)
        (run,) = [run for run in memory.worker().drain() if run.job.kind == "follow"]
        assert (run.outcome, run.result) == ("done", {"unchanged": 1, "added": 1, "removed": 1})
        assert world.search_corpus("where is the sail?")[0].document == "shelf/sail.md"
        assert world.ctx.embedder is not None
        assert world.ctx.local.unembedded_passages(world.ctx.embedder.model, 1) == []
