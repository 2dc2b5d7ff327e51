"""On a system without what only Linux and macOS have: the portable part of the suite, with the fallbacks forced."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.cli import ROOT

ELSEWHERE = ROOT / "tests" / "helpers" / "elsewhere"
# Each with what stays out: modes of files, and tests whose subject is a fork or a group of processes.
PORTABLE = ["tests/unit/test_sqlite_files.py", "tests/unit/test_folders.py", "tests/stories/test_lent_means.py"]
MORE = [
    "tests/stories/test_cli_memory.py",
    "tests/stories/test_processes.py",
    "tests/stories/test_serve.py",
    "tests/stories/test_export.py",
    "tests/stories/test_backup.py",
    "tests/stories/test_slog.py",
    "tests/stories/test_projects.py",
    "tests/unit/test_chat_command.py",
]
NOT_THERE = "private or fork or child or children or left_behind or postgres or umask or mode"


def run(files: list[str], folder: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(ELSEWHERE), "USERNAME": "owner"}
    options = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-k", f"not ({NOT_THERE})"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--basetemp={folder / 'tests'}", *files],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def test_the_portable_part_works_without_what_windows_lacks(tmp_path: Path) -> None:
    """Portability: databases, locks, folders, links and programs, without fcntl, modes, groups and sockets as files."""
    assert " passed" in run(PORTABLE, tmp_path)


@pytest.mark.skipif("LUKASA_TORTURE" not in os.environ, reason="long: LUKASA_TORTURE=1")
def test_much_of_the_suite_works_without_what_windows_lacks(tmp_path: Path) -> None:
    """Portability: the command line, many processes, the server, exports, backups and programs as well."""
    assert " passed" in run(MORE, tmp_path)
