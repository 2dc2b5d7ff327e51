"""The structured log in its file: many writers, a writer that is killed, and answers that lead on."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from lukasa import Lukasa
from lukasa.curated.slog import LogQuery, select
from lukasa.model.errors import Refused
from lukasa.model.values import Trust
from lukasa.providers.files.record_files import AppendedLines
from tests.helpers.cli import Shell
from tests.helpers.processes import finish, fork


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def test_what_is_written_is_found(shell: Shell) -> None:
    """K2: write, query, tail; the file is one JSON object a line with five fields."""
    shell.run("slog", "write", "deploy", "gateway", "v1.4 on both hosts", "--reason", "the retry storm")
    shell.run("slog", "write", "restart", "worker", "-", input="stuck on a lock")
    (found,) = shell.json("slog", "query", "--tool", "gateway")["entries"]
    assert (found["action"], found["detail"], found["reason"]) == ("deploy", "v1.4 on both hosts", "the retry storm")
    assert "stuck on a lock" in shell.run("slog", "tail")
    (file,) = shell.data.glob("workspaces/*/log.jsonl")
    assert [set(map(str.strip, row.split('"')[1::4])) for row in file.read_text().splitlines()] == [
        {"timestamp", "action", "tool", "detail", "reason"}
    ] * 2
    assert file.stat().st_mode & 0o777 == 0o600


def test_answers_lead_on(shell: Shell) -> None:
    """K2: each JSON answer holds the commands to run next, and they run."""
    for n in range(5):
        shell.run("slog", "write", "fix", "worker", f"it's no. {n}")
    page = shell.json("slog", "query", "--grep", "it's", "--limit", "2")
    seen = [e["detail"] for e in page["entries"]]
    while "next" in page["links"]:
        words = shlex.split(page["links"]["next"])
        page = shell.json(*words[1:-1])
        seen += [e["detail"] for e in page["entries"]]
    assert seen == [f"it's no. {n}" for n in (4, 3, 2, 1, 0)]
    made = shell.json("slog", "write", "fix", "worker", "again")
    assert shell.json(*shlex.split(made["links"]["self"])[1:-1])["entries"][0]["detail"] == "again"


def test_a_wrong_call_is_told(shell: Shell) -> None:
    """K2: typed errors, and nothing is written."""
    assert shell.fails("slog", "write", "Fixed it", "worker", "x", code=2)["code"] == "invalid-input"
    assert shell.json("slog", "tail")["entries"] == []


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    """K2: four processes, every line whole, and all of them there."""
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        path = memory.workspace("w").slog.path

    def write(who: int) -> None:
        with Lukasa.open(tmp_path / "data", embedder="none") as memory:
            for n in range(50):
                memory.workspace("w").slog.write("fix", f"worker-{who}", f"{n} " + "x" * 3000)

    children = [fork(lambda who=who: write(who)) for who in range(4)]  # type: ignore[misc]
    assert [finish(child) for child in children] == [0] * 4
    page = select(AppendedLines(path).lines(), LogQuery(limit=1000))
    assert page.skipped == ()
    for who in range(4):
        mine = [int(e.detail.split()[0]) for e in reversed(page.entries) if e.tool == f"worker-{who}"]
        assert mine == list(range(50))


def test_a_line_that_was_cut_off_stays_and_is_skipped(tmp_path: Path) -> None:
    """K2: after kill -9 in mid-write the torn bytes are passed over and never edited, and the next line is whole."""
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        log = memory.workspace("w").slog
        log.write("fix", "worker", "one")
        with log.path.open("ab") as stream:
            os.write(stream.fileno(), b'{"timestamp": "2026-11-16T09:00:00+00:00", "act')
        torn = log.path.read_bytes()
        assert ([e.detail for e in log.query().entries], log.query().skipped) == (["one"], (2,))
        log.write("fix", "worker", "two")
        assert log.path.read_bytes().startswith(torn + b"\n")
        assert ([e.detail for e in log.query().entries], log.query().skipped) == (["two", "one"], (2,))


def test_who_may_write(tmp_path: Path) -> None:
    """K2: agents log what they do; text that was merely read does not. Memory no log file has no log."""
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        world = memory.workspace("w")
        world.acting(agent="scribe").slog.write("ingest", "book", "chapter one")
        with pytest.raises(Refused):
            world.acting(trust=Trust.UNTRUSTED).slog.write("ingest", "book", "chapter two")
    with Lukasa.open(in_memory=True, embedder="none") as memory, pytest.raises(Refused, match="no log file"):
        memory.workspace("w").slog.query()
