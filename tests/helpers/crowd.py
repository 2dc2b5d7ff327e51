"""Servers and workers as processes of their own on one database, and clients who write until each write is answered."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.helpers.cli import COMMAND, Shell
from tests.helpers.server import Client

# A worker whose death is noticed after a second, so that a test need not wait a minute for each.
WORKER = """
from datetime import timedelta
from lukasa.service.jobs.worker import Worker
from lukasa.surfaces.cli.main import cli
Worker.__init__.__kwdefaults__["lease"] = timedelta(seconds=2)
cli.main(["worker"])
"""


@dataclass
class Server:
    """A server process and the port that it got."""

    process: subprocess.Popen[str]
    port: int = 0

    def ready(self) -> bool:
        """Wait for what the server says when it is ready; false if it was killed before."""
        assert self.process.stdout is not None
        told = ""
        while not told.endswith("\n}\n") and (line := self.process.stdout.readline()):
            told += line
        with suppress(ValueError, KeyError):
            self.port = int(json.loads(told)["url"].rpartition(":")[2])
        return self.port > 0


@dataclass
class Crowd:
    """Servers and workers that somebody may kill; each is replaced by a new one."""

    shell: Shell
    places: dict[str, subprocess.Popen[Any]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    kills: int = 0

    def start(self, name: str) -> None:
        with self.log(name).open("a") as log:
            how: dict[str, Any] = {"env": self._environment(name), "stderr": log}
            self._start(name, how)

    def log(self, name: str) -> Path:
        """What all processes of that name have said of trouble."""
        return self.shell.data.with_name(f"{name}.log")

    def _start(self, name: str, how: dict[str, Any]) -> None:
        if name.startswith("server"):
            command = [*COMMAND, "serve", "--port", "0", "--no-open", "--json", "--no-worker"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **how)
            self.places[name] = process
            threading.Thread(target=self._listen, args=(name, process), daemon=True).start()
        else:
            command = [sys.executable, "-c", WORKER]
            self.places[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, **how)

    def _environment(self, name: str) -> dict[str, str]:
        """Each of them is on a machine of its own, so to say: they share the database and no folder."""
        return self.shell.environment(LUKASA_DATA=str(self.shell.data / name))

    def _listen(self, name: str, process: subprocess.Popen[str]) -> None:
        server = Server(process)
        if server.ready() and self.places.get(name) is process:
            self.ports[name] = server.port

    def kill(self, name: str) -> None:
        """Kill a process with -9 and start another in its place."""
        process = self.places[name]
        self.ports.pop(name, None)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        self.kills += 1
        self.start(name)

    def close(self) -> None:
        for process in self.places.values():
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@contextmanager
def crowd(shell: Shell, servers: int = 3, workers: int = 3) -> Iterator[Crowd]:
    made = Crowd(shell)
    try:
        for number in range(servers):
            made.start(f"server {number}")
        for number in range(workers):
            made.start(f"worker {number}")
        yield made
    finally:
        made.close()


@dataclass
class Writer:
    """A client that writes one text after another, each until a server has answered."""

    crowd: Crowd
    token: str
    name: str
    stop: threading.Event
    acknowledged: dict[str, str] = field(default_factory=dict)
    tries: int = 0
    refused: list[str] = field(default_factory=list)

    def run(self) -> None:
        dice, number = random.Random(self.name), 0
        while not self.stop.is_set():
            text = f"The crate {number} of {self.name} holds lantern {self.name}-{number}"
            self._until_answered(text, dice)
            number += 1

    def _until_answered(self, text: str, dice: random.Random) -> None:
        """Send it again until some server answers: the same text in the same place is one entry, not two."""
        while True:
            ports = list(self.crowd.ports.values())
            if not ports:
                if self.stop.wait(0.05):
                    return
                continue
            client = Client(dice.choice(ports), {"authorization": f"Bearer {self.token}"})
            self.tries += 1
            try:
                answer = client.post("/v1/workspaces/main/entries", {"content": text})
            except (OSError, HTTPException):
                if self.stop.wait(0.01):
                    return
                continue
            if answer.status in (200, 201):
                self.acknowledged[text] = answer.json["id"]
                return
            if answer.status not in (409, 429, 503):  # under way, too many, or the database is away: try again
                self.refused.append(f"{answer.status} {answer.body[:300]!r}")
                return
            if self.stop.is_set():
                return


@contextmanager
def writing(crowd: Crowd, token: str, clients: int = 8) -> Iterator[list[Writer]]:
    """Let clients write meanwhile; at the end, each has stopped."""
    stop = threading.Event()
    writers = [Writer(crowd, token, f"client{number}", stop) for number in range(clients)]
    threads = [threading.Thread(target=writer.run) for writer in writers]
    for thread in threads:
        thread.start()
    try:
        yield writers
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
