"""A write-ahead log that vanishes takes acknowledged writes with it: that is noticed, and said plainly."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from lukasa import Lukasa
from lukasa.model.errors import LostWrites
from tests.helpers.cli import Shell
from tests.helpers.processes import fork, kill


def written_and_killed(folder: Path, count: int) -> Path:
    """The folder of a workspace into which a process wrote until it was killed; its log was not written back."""
    with Lukasa.open(folder, embedder="none") as memory:
        place = memory.folder(memory.workspace("novel"))
    ready, told = os.pipe()

    def work() -> None:
        world = Lukasa.open(folder, embedder="none").workspace("novel")
        for number in range(count):
            world.put("workspace", f"Fact number {number} of the archive")
        os.write(told, b"!")
        os.read(os.pipe()[0], 1)  # until it is killed

    child = fork(work)
    os.read(ready, 1)
    kill(child)
    assert place is not None
    assert (place / "memory.db-wal").exists()
    return place


def count(folder: Path) -> int:
    with Lukasa.open(folder, embedder="none") as memory:
        return len(memory.workspace("novel").entries("workspace"))


def test_a_log_that_is_there_loses_nothing(tmp_path: Path) -> None:
    """After kill -9 with its log in place, nothing is missing and nothing is said."""
    written_and_killed(tmp_path, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert count(tmp_path) == 5
    shell = Shell(tmp_path, {"LUKASA_EMBEDDER": "none", "LUKASA_WORKSPACE": "novel"})
    assert shell.json("doctor")["healthy"] is True


def test_a_vanished_log_is_noticed(tmp_path: Path) -> None:
    """Opening warns once, and the doctor says which writes are gone and what to do until the loss is accepted."""
    place = written_and_killed(tmp_path, 5)
    for side in ("memory.db-wal", "memory.db-shm"):
        (place / side).unlink()
    with pytest.warns(LostWrites, match="memory.db-wal vanished"):
        assert count(tmp_path) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert count(tmp_path) == 0
    shell = Shell(tmp_path, {"LUKASA_EMBEDDER": "none", "LUKASA_WORKSPACE": "novel"})
    for number in range(9):  # past the event that was the last one: the log goes on, the loss is not forgotten
        shell.put(f"Fact number {number} of the harbour")
    found = shell.json("doctor", code=3)["workspace"]["findings"]
    assert [finding["what"] for finding in found] == ["lost"]
    assert "restore the newest copy of the whole folder" in found[0]["detail"]
    assert shell.call("doctor", "--repair").exit_code == 3
    (place / "head.lost").unlink()
    assert shell.json("doctor")["healthy"] is True


def test_the_command_line_tells_a_person(tmp_path: Path) -> None:
    """The first command after the loss notes it on stderr in one line, and still answers."""
    place = written_and_killed(tmp_path, 3)
    for side in ("memory.db-wal", "memory.db-shm"):
        (place / side).unlink()
    shell = Shell(tmp_path, {"LUKASA_EMBEDDER": "none", "LUKASA_WORKSPACE": "novel"})
    first, second = shell.process("list"), shell.process("list")
    assert first.returncode == second.returncode == 0
    assert first.stderr.startswith(b"note: writes up to event")
    assert b"Warning" not in first.stderr
    assert second.stderr == b""


def test_a_head_file_that_is_old_or_torn_says_nothing(tmp_path: Path) -> None:
    """A power cut may leave an older head file or half of one; neither is a reason to worry anybody."""
    place = written_and_killed(tmp_path, 2)
    assert count(tmp_path) == 2
    head = place / "head"
    older = head.read_bytes()
    shell = Shell(tmp_path, {"LUKASA_EMBEDDER": "none", "LUKASA_WORKSPACE": "novel"})
    shell.put("The archive has four floors")
    for content in (older, older[:30], b"", b"\x00" * len(older), b"\xff" * 500):
        head.write_bytes(content)
        assert shell.json("doctor")["healthy"] is True
    head.unlink()
    assert shell.json("doctor")["healthy"] is True
