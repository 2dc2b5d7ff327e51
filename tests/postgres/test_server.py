"""The PostgreSQL that the tests use is a real one: it has pgvector, keeps what it committed, and ends with its run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import LiteralString

import psutil
import psycopg
import pytest

from tests.helpers.postgres import Postgres, require
from tests.helpers.processes import until
from tools.cluster import open_cluster
from tools.keeper import alive

ROOT = Path(__file__).parents[2]

NUMBERS: LiteralString = "SELECT n FROM numbers ORDER BY n"


def fill(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE numbers (n int PRIMARY KEY)")
        connection.execute("INSERT INTO numbers SELECT generate_series(1, 3)")


def numbers(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute(NUMBERS)]


def test_pgvector_orders_by_cosine(database_url: str) -> None:
    """PostgreSQL: the server brings pgvector, and <=> puts the nearest direction first."""
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE TABLE ways (name text, way vector(2))")
        connection.execute("INSERT INTO ways VALUES ('north', '[0,5]'), ('north-east', '[2,2]'), ('east', '[1,0]')")
        found = connection.execute("SELECT name FROM ways ORDER BY way <=> '[9,1]'").fetchall()
    assert found == [("east",), ("north-east",), ("north",)]


@pytest.mark.parametrize("end", ["stop", "crash", "kill"])
def test_committed_rows_survive_an_end(own_postgres: Postgres, end: str) -> None:
    """PostgreSQL: a stop, an immediate shutdown and kill -9 lose no committed row, and the address stays the same."""
    cluster = own_postgres.cluster
    fill(cluster.url())
    getattr(cluster, end)()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(cluster.url())
    cluster.start()
    assert numbers(cluster.url()) == [1, 2, 3]


def test_a_database_is_empty_and_goes_with_its_test(postgres: Postgres) -> None:
    """PostgreSQL: each test has a database of its own, which is dropped even while a connection uses it."""
    with postgres.database() as url:
        left_open = psycopg.connect(url)
        assert left_open.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
    with pytest.raises(psycopg.OperationalError):
        left_open.execute("SELECT 1")
    left_open.close()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


def test_a_template_is_made_once(postgres: Postgres) -> None:
    """PostgreSQL: a database from a template has its rows; only the first caller prepares the template."""
    prepared: list[str] = []

    def prepare(url: str) -> None:
        prepared.append(url)
        fill(url)

    for _ in range(2):
        with postgres.database(postgres.template("numbers_once", prepare)) as url:
            assert numbers(url) == [1, 2, 3]
    assert len(prepared) == 1


def test_a_password_is_needed(postgres: Postgres) -> None:
    """PostgreSQL: the server is on loopback, and yet lets nobody in without the password."""
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(postgres.cluster.url(secret=False))


def test_a_killed_run_leaves_no_server() -> None:
    """PostgreSQL: after kill -9 of the process that runs the tests, neither its server nor the folder of it is left."""
    require()
    code = "import os, sys; from tests.helpers.postgres import started; cluster = started(os.getpid()); "
    code += "print(cluster.folder, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        server = open_cluster(folder).postmaster()
        assert isinstance(server, psutil.Process)
        run.kill()
    until(lambda: not alive(server) and not folder.exists())
