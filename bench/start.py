"""What it costs to start: the library, the command, each hook, and the chat up to its prompt.

    python -m bench.start [--entries 1000] [--runs 15]

Every line is a process of its own, as a shell or Claude Code starts it, with compiled modules warm and memory in a
temporary folder. All lines take turns, so that a busy moment of the machine falls on all of them; the median is shown
with the fastest run beside it, the processor time of the process (user and system), which other programs disturb less,
and the ratio of the medians to `python -c pass`. What differs between the two lines of a hook is the embedding model,
which a prompt and a failure load to ask by meaning.

A hook is measured until its process has ended, as a harness waits for it. The end of a session leaves its transcript to
a worker in the background, which is no part of the hook. For the one of 5 MB none is started, so that it does not take
the machine from the lines that follow; the last hook does start one, for a short transcript, and the next line waits
until that is done.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from bench.latency import fill, sentences
from lukasa import Lukasa
from lukasa.model.job import JobState

FOLDER = str(Path(tempfile.gettempdir()) / "a-project")
TRANSCRIPT_BYTES = 5_000_000
PROMPT = b"> "
COMMAND = [sys.executable, "-m", "lukasa.surfaces.cli.main"]
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
Start = Callable[[int], tuple[float, float]]  # the seconds that a run took, and those of the processor
WORKED, UNWORKED = "data", "data-without-a-worker"
WAITING = 0.05


def running(command: list[str], env: dict[str, str], stdin: Callable[[int], bytes] = lambda _: b"") -> Start:
    """From the start of a process to its end."""

    def run(number: int) -> tuple[float, float]:
        given, used, started = stdin(number), processor(), time.perf_counter()
        subprocess.run(command, input=given, env=env, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started, processor() - used

    return run


def processor() -> float:
    """What all processes took that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def afterwards(start: Start, then: Callable[[], None]) -> Start:
    def run(number: int) -> tuple[float, float]:
        took = start(number)
        then()
        return took

    return run


def prompting(command: list[str], env: dict[str, str]) -> Start:
    """From the start of a process to its prompt on a terminal."""

    def run(number: int) -> tuple[float, float]:
        ours, theirs = pty.openpty()
        used, started, shown = processor(), time.perf_counter(), b""
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)
        while not shown.endswith(PROMPT):
            shown += os.read(ours, 65536)
        took = time.perf_counter() - started
        os.write(ours, b"\x04")  # Ctrl-D: nothing was said, so nothing is kept
        process.wait(timeout=60)
        os.close(ours)
        return took, processor() - used

    return run


def hook(moment: str, embedder: str, env: dict[str, str], transcript: str = "") -> Start:
    """One moment, each time of another session, so that none has been told anything yet."""

    def event(number: int) -> bytes:
        session = f"{moment}-{embedder}-{Path(transcript).stem}-{number}"
        return json.dumps(
            {"session_id": session, "cwd": FOLDER, "transcript_path": transcript, **EVENTS[moment]}
        ).encode()

    return running([*COMMAND, "--embedder", embedder, "hook", moment], env, event)


def record(role: str, text: str) -> dict[str, object]:
    about = {"parentUuid": None, "isSidechain": False, "userType": "external", "cwd": FOLDER, "version": "2.1.0"}
    said = {"type": role, "message": {"role": role, "content": text}, "uuid": str(uuid.uuid4())}
    return {**about, **said, "sessionId": "a-session", "timestamp": "2026-11-02T10:00:00.000Z"}


def write_transcript(path: Path, size: int) -> str:
    """A session as Claude Code records it, with talk in which there is nothing to keep."""
    said = [(role, f"{text}. " * 20) for text in sentences(50) for role in ("user", "assistant")]
    page = "".join(json.dumps(record(role, text)) + "\n" for role, text in said).encode()
    path.write_bytes(page * (size // len(page) + 1))
    return str(path)


def starts(folder: Path, env: dict[str, str]) -> dict[str, Start]:
    def python(code: str) -> Start:
        return running([sys.executable, "-c", code], env)

    found = {
        "python -c pass": python("pass"),
        "python -c import numpy": python("import numpy"),
        "from lukasa import Lukasa": python("from lukasa import Lukasa"),
        "lukasa --version": running([*COMMAND, "--version"], env),
    }
    for moment in EVENTS:
        for embedder in ("none", "auto"):
            found[f"hook {moment}, embedder {embedder}"] = hook(moment, embedder, env)
    long = write_transcript(folder / "long.jsonl", TRANSCRIPT_BYTES)
    alone = {**env, "LUKASA_WORKER": "off", "LUKASA_DATA": str(folder / UNWORKED)}
    found["hook session-end, 5 MB transcript"] = hook("session-end", "none", alone, long)
    short = write_transcript(folder / "short.jsonl", 1)
    found["hook session-end, starting a worker"] = afterwards(
        hook("session-end", "none", env, short), lambda: rest(folder / WORKED)
    )
    if find_spec("langgraph") is not None:
        found["lukasa chat, to its prompt"] = prompting([*COMMAND, "--embedder", "none", "chat"], env)
    return found


def rest(data: Path) -> None:
    """Wait until every session is observed that a worker was started for."""
    with Lukasa.open(data, embedder="none") as memory:
        world = memory.workspace("bench")
        while any(not job.attempts or job.state is JobState.RUNNING for job in world.jobs(kind="observe")):
            time.sleep(WAITING)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for data in (WORKED, UNWORKED):
            with Lukasa.open(folder / data, embedder="none") as memory:
                fill(memory.workspace("bench"), sentences(options.entries))
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        env = {**kept, "LUKASA_DATA": str(folder / WORKED), "LUKASA_WORKSPACE": "bench", "LUKASA_CHAT": "none"}
        env |= {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "TERM": "xterm-256color"}
        lines = starts(folder, env)
        for start in lines.values():
            start(0)  # compiles, and warms the file cache
        times: dict[str, list[tuple[float, float]]] = {line: [] for line in lines}
        for number in range(1, options.runs + 1):
            for line, start in lines.items():
                times[line].append(start(number))
        report(times)


def report(times: dict[str, list[tuple[float, float]]]) -> None:
    print(f"{'milliseconds':<36}{'median':>8}{'fastest':>9}{'× pass':>8}{'processor':>11}")
    base = statistics.median(took for took, _ in times["python -c pass"])
    for line, taken in times.items():
        whole, used = ([run[n] for run in taken] for n in (0, 1))
        median = statistics.median(whole)
        shown = f"{median * 1000:>8.0f}{min(whole) * 1000:>9.0f}{median / base:>8.1f}"
        print(f"{line:<36}{shown}{statistics.median(used) * 1000:>11.0f}")


if __name__ == "__main__":
    main()
