"""What it costs to start: the library, the command, each hook, and the chat up to its prompt.

    python -m bench.start [--entries 1000] [--runs 15]

Every line is a process of its own, as a shell or Claude Code starts it, with compiled modules warm and memory in a
temporary folder. All lines take turns, so that a busy moment of the machine falls on all of them; the median is shown
with the fastest run beside it, and the ratio is that of the medians to `python -c pass`. What differs between the two
lines of a hook is the embedding model, which a prompt and a failure load to ask by meaning.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from bench.latency import fill, sentences
from mnemon import Mnemon

FOLDER = str(Path(tempfile.gettempdir()) / "a-project")
TRANSCRIPT_BYTES = 5_000_000
PROMPT = b"> "
COMMAND = [sys.executable, "-m", "mnemon.surfaces.cli.main"]
EVENTS: dict[str, dict[str, object]] = {
    "session-start": {"hook_event_name": "SessionStart", "source": "startup"},
    "prompt": {"hook_event_name": "UserPromptSubmit", "prompt": "who repaired the lantern near Veyra harbour?"},
    "tool-failure": {
        "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash",
        "tool_input": {"command": "make lantern"},
        "error": "Exit code 2\nlantern.c:12: the compass ledger is missing at Tern island",
    },
    "session-end": {"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"},
}
Start = Callable[[int], float]


def running(command: list[str], env: dict[str, str], stdin: Callable[[int], bytes] = lambda _: b"") -> Start:
    """From the start of a process to its end."""

    def run(number: int) -> float:
        given, started = stdin(number), time.perf_counter()
        subprocess.run(command, input=given, env=env, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started

    return run


def prompting(command: list[str], env: dict[str, str]) -> Start:
    """From the start of a process to its prompt on a terminal."""

    def run(number: int) -> float:
        ours, theirs = pty.openpty()
        started, shown = time.perf_counter(), b""
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)
        while not shown.endswith(PROMPT):
            shown += os.read(ours, 65536)
        took = time.perf_counter() - started
        os.write(ours, b"\x04")  # Ctrl-D: nothing was said, so nothing is kept
        process.wait(timeout=60)
        os.close(ours)
        return took

    return run


def hook(moment: str, embedder: str, env: dict[str, str], transcript: str = "") -> Start:
    """One moment, each time of another session, so that none has been told anything yet."""

    def event(number: int) -> bytes:
        session = f"{moment}-{embedder}-{bool(transcript)}-{number}"
        return json.dumps(
            {"session_id": session, "cwd": FOLDER, "transcript_path": transcript, **EVENTS[moment]}
        ).encode()

    return running([*COMMAND, "--embedder", embedder, "hook", moment], env, event)


def write_transcript(path: Path) -> str:
    """A session as Claude Code records it, with talk in which there is nothing to keep."""
    said = [
        {"type": kind, "message": {"content": f"{text}. " * 20}}
        for text in sentences(50)
        for kind in ("user", "assistant")
    ]
    page = "".join(json.dumps(record) + "\n" for record in said).encode()
    path.write_bytes(page * (TRANSCRIPT_BYTES // len(page) + 1))
    return str(path)


def starts(folder: Path, env: dict[str, str]) -> dict[str, Start]:
    def python(code: str) -> Start:
        return running([sys.executable, "-c", code], env)

    found = {
        "python -c pass": python("pass"),
        "python -c import numpy": python("import numpy"),
        "from mnemon import Mnemon": python("from mnemon import Mnemon"),
        "mnemon --version": running([*COMMAND, "--version"], env),
    }
    for moment in EVENTS:
        for embedder in ("none", "auto"):
            found[f"hook {moment}, embedder {embedder}"] = hook(moment, embedder, env)
    transcript = write_transcript(folder / "transcript.jsonl")
    found["hook session-end, 5 MB transcript"] = hook("session-end", "none", env, transcript)
    if find_spec("langgraph") is not None:
        found["mnemon chat, to its prompt"] = prompting([*COMMAND, "--embedder", "none", "chat"], env)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Mnemon.open(folder / "data", embedder="none") as memory:
            fill(memory.workspace("bench"), sentences(options.entries))
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        env = {**kept, "MNEMON_DATA": str(folder / "data"), "MNEMON_WORKSPACE": "bench", "MNEMON_CHAT": "none"}
        env |= {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "TERM": "xterm-256color"}
        lines = starts(folder, env)
        for start in lines.values():
            start(0)  # compiles, and warms the file cache
        times: dict[str, list[float]] = {line: [] for line in lines}
        for number in range(1, options.runs + 1):
            for line, start in lines.items():
                times[line].append(start(number) * 1000)
        base = statistics.median(times["python -c pass"])
        print(f"{'milliseconds':<36}{'median':>8}{'fastest':>9}{'× pass':>8}")
        for line, taken in times.items():
            median = statistics.median(taken)
            print(f"{line:<36}{median:>8.0f}{min(taken):>9.0f}{median / base:>8.1f}")


if __name__ == "__main__":
    main()
