"""What PostgreSQL spends on the statements of others: CPU time and memory of its backends, bytes of tables and log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

OTHERS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
SIZES = """
SELECT c.relname, pg_total_relation_size(c.oid)::bigint - coalesce((
    SELECT sum(pg_relation_size(i.indexrelid)) FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
    JOIN pg_am AS a ON a.oid = x.relam WHERE i.indrelid = c.oid AND a.amname = 'hnsw'
), 0)::bigint
FROM pg_class AS c WHERE c.relkind = 'r' AND c.relnamespace = %s::regnamespace
"""
HNSW = """
SELECT coalesce(sum(pg_relation_size(c.oid)), 0)::bigint FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam
WHERE a.amname = 'hnsw'
"""
QUIET = 0.02  # seconds after which a backend has slept again, so that its time is counted


class Backends:
    """The backends that serve the connections of others to one database, by a connection of its own."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._pids: list[int] = []

    def look(self) -> Backends:
        """Note which backends there are now."""
        time.sleep(QUIET)
        self._pids = [pid for (pid,) in self._connection.execute(OTHERS).fetchall()]
        return self

    def milliseconds(self) -> float:
        """The CPU time of the backends that were noted, to the nanosecond: psutil has hundredths of a second."""
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in self._pids) / 1e6

    def same(self) -> bool:
        """Whether the backends are those that were noted."""
        return self._pids == [pid for (pid,) in self._connection.execute(OTHERS).fetchall()]

    def memory(self) -> float:
        """Megabytes of the largest of them that are its own, without the buffers that all share."""
        held = [0]
        for pid in self._pids:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            held.append(sum(int(line.split()[1]) for line in lines if line.startswith("Private_")))
        return max(held) / 1024

    def log(self) -> int:
        """How many bytes the write-ahead log has had so far."""
        found = self._connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
        ((position,),) = found.fetchall()
        return int(position)

    def sizes(self, schema: str) -> dict[str, int]:
        """Bytes by table with its indexes; those for vectors are apart, as `hnsw`."""
        found = dict(self._connection.execute(SIZES, (schema,)).fetchall())
        ((graphs,),) = self._connection.execute(HNSW).fetchall()
        return {**found, "hnsw": graphs}

    def run(self, statement: str) -> None:
        self._connection.execute(statement.encode())


@contextmanager
def watching(url: str) -> Iterator[Backends]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield Backends(connection)
