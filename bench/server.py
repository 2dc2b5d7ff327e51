"""What the server costs: from its start to its first answer, at rest with the embedding model loaded, and for a call.

    python -m bench.server [--runs 5] [--calls 300]

Each run is a process of its own with compiled modules warm, on memory in a temporary folder. `ready` is from the start
of the process to the first answer of /health, `page` to that of the page; `resident` is the process's memory once the
model is loaded and nothing is asked. Calls go over one connection, one after the other.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lukasa import Lukasa

COMMAND = [sys.executable, "-m", "lukasa.surfaces.cli.main"]
SETTLED = 3.0  # seconds without growth after which the process is at rest


def ask(connection: http.client.HTTPConnection, path: str, token: str = "", body: object = None) -> int:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    data = None
    if body is not None:
        headers["content-type"], data = "application/json", json.dumps(body)
    connection.request("GET" if body is None else "POST", path, data, headers)
    reply = connection.getresponse()
    reply.read()
    return reply.status


def answered(port: int, path: str, started: float) -> float:
    """How long after the start a path is answered for the first time."""
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            if ask(connection, path) == 200:
                return time.perf_counter() - started
        except OSError:
            time.sleep(0.005)


def resident(pid: int) -> float:
    """Megabytes, once they have stopped growing."""
    last, since = 0.0, time.monotonic()
    while time.monotonic() - since < SETTLED:
        status = Path(f"/proc/{pid}/status").read_text()
        now = int(status.partition("VmRSS:")[2].split()[0]) / 1024
        if now > last + 1:
            last, since = now, time.monotonic()
        time.sleep(0.1)
    return last


def calls(port: int, token: str, count: int) -> dict[str, float]:
    """Milliseconds in the middle of so many calls."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    at = "/v1/workspaces/main"
    kinds: dict[str, tuple[str, object]] = {
        "health": ("/health", None),
        "list": (f"{at}/entries?limit=10", None),
        "read": (f"{at}/read", {"query": "who repaired the lantern?"}),
    }
    found: dict[str, float] = {}
    for name, (path, body) in kinds.items():
        taken = []
        for _ in range(count):
            began = time.perf_counter()
            assert ask(connection, path, token, body) == 200
            taken.append((time.perf_counter() - began) * 1000)
        found[name] = statistics.median(taken)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--calls", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with Lukasa.open(folder) as memory:
            memory.workspace().put_many("workspace", [f"Ines repaired lantern {n} at Tern island" for n in range(200)])
            token = memory.access.create("bench", workspaces=["main"], can=["read"]).token
        ready, page, memory_used, took = [], [], [], {}
        for number in range(given.runs):
            port = 7600 + os.getpid() % 300 + number
            command = [*COMMAND, "--data", folder, "serve", "--no-open", "--port", str(port)]
            started = time.perf_counter()
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            ready.append(answered(port, "/health", started))
            page.append(answered(port, "/", started))
            memory_used.append(resident(process.pid))
            if number == 0:
                took = calls(port, token, given.calls)
            process.terminate()
            process.wait()
        print(f"ready     {statistics.median(ready):6.2f} s   (fastest {min(ready):.2f} s)")
        print(f"page      {statistics.median(page):6.2f} s   (fastest {min(page):.2f} s)")
        print(
            f"resident  {statistics.median(memory_used):6.0f} MB  at rest, with the embedding model if it is installed"
        )
        for name, milliseconds in took.items():
            print(f"{name:<9} {milliseconds:6.1f} ms  a call")


if __name__ == "__main__":
    main()
