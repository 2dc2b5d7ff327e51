"""Nothing leaves the machine unless it was configured to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.helpers.cli import ROOT
from tests.helpers.processes import TORTURE

GUARD = ROOT / "tests" / "helpers" / "offline_guard"
SECRETS = ("_API_KEY", "_BASE_URL", "_PROXY", "_proxy")

# A day's work in one process, so that it is started once: every surface that runs without a model provider.
SESSION = r"""
import io, json, os, sys
from lukasa.surfaces.cli.main import cli

def run(*args, given=""):
    sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()))
    try:
        cli.main(list(args))
    except SystemExit as end:
        assert not end.code, (args, end.code)

open("handbook.html", "w").write(
    '<html><head><link rel="alternate" type="application/rss+xml" href="https://host.example/feed"></head><body>'
    '<p>The lantern is at the <a href="https://host.example/">gate</a>.</p><img src="https://host.example/x.png"></body>'
)
os.mkdir("books")
open("books/page.md", "w").write("# Gate\n\n![map](https://host.example/map.png)\n\nSee https://host.example/more\n")
event = {"session_id": "s1", "cwd": ".", "transcript_path": "none.jsonl"}
run("put", "The villain is called Malachar", "--importance", "0.8")
run("read", "who is the villain?", "--json")
run("context", "continue chapter three")
run("list", "--tier", "workspace")
run("chat", "Keep track of this: the ferry leaves at noon")
run("hook", "session-start", given=json.dumps({**event, "hook_event_name": "SessionStart", "source": "startup"}))
run("hook", "prompt", given=json.dumps({**event, "hook_event_name": "UserPromptSubmit", "prompt": "who is it?"}))
run("hook", "session-end", given=json.dumps({**event, "hook_event_name": "SessionEnd", "reason": "exit"}))
run("corpus", "add", "handbook.html")
run("corpus", "search", "where is the lantern?", "--json")
run("corpus", "read", "handbook.html")
run("corpus", "watch", "books")
run("read", "lantern", "--discoveries")
run("discover", "list")
run("feed", "list")
run("worker", "--once")
run("model", "status")
run("embed")
run("tour")
run("scrub", "plan", "--tier", "workspace")
run("doctor")
print("the session ended well")
"""


def child(tmp_path: Path, program: str, *before: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LUKASA_")}
    path = os.pathsep.join([str(GUARD), str(ROOT / "src")])
    here = {"PYTHONPATH": path, "LUKASA_DATA": str(tmp_path / "data"), "OFFLINE_LOG": str(tmp_path / "attempts")}
    environment = {key: value for key, value in kept.items() if not key.endswith(SECRETS)} | here
    return subprocess.run(
        [*before, sys.executable, "-c", program],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def attempts(tmp_path: Path) -> str:
    return (tmp_path / "attempts").read_text("utf-8")


def test_a_session_reaches_for_no_network(tmp_path: Path) -> None:
    """T62: put, read, context, chat, hooks, worker, embedding, tour: everything works, and nothing was tried.

    The guard hears what Python does. The long run also takes every interface away, so that nothing else can either.
    """
    done = child(tmp_path, SESSION, *(("unshare", "-rn") if TORTURE else ()))
    assert done.stdout.endswith("the session ended well\n"), done.stdout[-2000:] + done.stderr[-2000:]
    assert attempts(tmp_path) == ""


def test_the_guard_sees_what_it_should(tmp_path: Path) -> None:
    """T62: an address, a name and a datagram are noted and kept back; this machine's own addresses are not."""
    program = (
        "import socket\n"
        "def tried(f, *args):\n"
        "    try: f(*args)\n"
        "    except OSError: pass\n"
        "tried(socket.socket().connect, ('192.0.2.1', 80))\n"
        "tried(socket.getaddrinfo, 'example.invalid', 443)\n"
        "tried(socket.socket(type=socket.SOCK_DGRAM).sendto, b'x', ('192.0.2.1', 53))\n"
        "tried(socket.socket().connect, ('127.0.0.1', 9))\n"
        "tried(socket.getaddrinfo, 'localhost', 80)\n"
        "tried(socket.socket(socket.AF_UNIX).connect, 'no-such-file')\n"
    )
    assert child(tmp_path, program).returncode == 0
    seen = attempts(tmp_path).splitlines()
    assert [line.split()[0] for line in seen] == ["socket.connect", "socket.getaddrinfo", "socket.sendto"]
