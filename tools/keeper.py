"""Run one PostgreSQL server as a child, and end it when the process that it serves is gone, however that ended.

    python keeper.py PROCESS FOLDER|- LOG USER:GROUP|- COMMAND…

It prints the id of the server's process and goes on in the background. If FOLDER is given, it removes it after PROCESS
ended. It is a session of its own, so that neither Ctrl-C nor kill -9 of the other process leaves a server behind.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from typing import Any

import psutil

PAUSE = 0.2  # seconds between two looks at the process


def alive(process: psutil.Process) -> bool:
    """Return whether a process still works; one that only waits to be collected does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def keep(served: int, folder: str, log: str, owner: str, command: list[str]) -> int:
    """Run the command until it ends by itself or the served process is gone."""
    identity: dict[str, Any] = {}
    if owner != "-":
        user, group = (int(number) for number in owner.split(":"))
        identity = {"user": user, "group": group, "extra_groups": []}
    process = psutil.Process(served)
    with open(log, "ab") as out:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **identity)
    print(server.pid, flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever reads the id waits for the end of it
    while alive(process):
        try:
            return server.wait(PAUSE)
        except subprocess.TimeoutExpired:
            continue
    # PostgreSQL calls these an immediate and a fast shutdown. What will be removed need not be written first.
    server.send_signal(signal.SIGINT if folder == "-" else signal.SIGQUIT)
    code = server.wait()
    if folder != "-":
        shutil.rmtree(folder, ignore_errors=True)
    return code


if __name__ == "__main__":
    if os.fork():
        os._exit(0)  # nobody has to wait for the keeper
    os.setsid()
    sys.exit(keep(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]))
