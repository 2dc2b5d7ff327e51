"""Serve on a real PostgreSQL, to try it: `make run-postgres`.

    python -m tools.run_postgres FOLDER COMMAND…

The program starts PostgreSQL with its data in FOLDER, prints the URL, runs COMMAND with `--database URL`, and stops
PostgreSQL when the command ends. COMMAND gets the URL without the password, because everybody on a machine can read the
arguments of a program; it finds the password in the file that `PGPASSFILE` names.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tools.cluster import HOST, USER, Cluster, ClusterError, open_cluster


def main(folder: Path, command: list[str]) -> int:
    """Return the exit code of the command."""
    cluster = open_cluster(folder)
    cluster.start()
    print(f"PostgreSQL runs with its data in {folder}, until this program ends: {cluster.url()}", flush=True)
    try:
        return run(cluster, command)
    finally:
        if cluster.postmaster() is not None:
            cluster.stop()


def run(cluster: Cluster, command: list[str]) -> int:
    """Run the command on the server's database, and hand it the signals that ask for an end."""
    passwords = cluster.folder / "passwords"
    passwords.touch(mode=0o600)
    passwords.write_text(f"{HOST}:{cluster.port}:*:{USER}:{cluster.password}\n", "utf-8")
    child = subprocess.Popen(
        [*command, "--database", cluster.url(secret=False)], env={**os.environ, "PGPASSFILE": str(passwords)}
    )
    signal.signal(signal.SIGINT, lambda *_: None)  # a terminal sends it to the command as well
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
    except ClusterError as error:
        sys.exit(str(error))
