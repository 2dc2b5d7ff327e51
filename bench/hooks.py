"""What a hook costs the session that waits for it: CPU and wall time of whole processes.

    python -m bench.hooks [--entries 1000] [--runs 15]

Each hook runs as Claude Code runs it, in a process of its own, with compiled modules warm and memory in a temporary
folder. The median of the runs is shown; the ratio is to `python -c pass` of the same batch. What differs between
the two lines of a hook is the embedding model, which a prompt and a failure load to ask by meaning.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.latency import fill, sentences
from mnemon import Mnemon

FOLDER = str(Path(tempfile.gettempdir()) / "a-project")
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


def cost(command: list[str], stdin: bytes, env: dict[str, str]) -> tuple[float, float]:
    """CPU and wall time of one process, in milliseconds."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, input=stdin, env=env, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu * 1000, wall * 1000


def median(command: list[str], stdin: list[bytes], env: dict[str, str]) -> tuple[float, float]:
    cost(command, stdin[0], env)  # compiles, and warms the file cache
    cpu, wall = zip(*(cost(command, given, env) for given in stdin[1:]), strict=True)
    return statistics.median(cpu), statistics.median(wall)


def events(moment: str, embedder: str, runs: int) -> list[bytes]:
    """The same event in as many sessions as there are runs, so that none has been told anything yet."""
    given = ({"session_id": f"{moment}-{embedder}-{n}", "cwd": FOLDER, **EVENTS[moment]} for n in range(runs + 1))
    return [json.dumps(event).encode() for event in given]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder) / "data")
        with Mnemon.open(data, embedder="none") as memory:
            fill(memory.workspace("bench"), sentences(options.entries))
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        env = {**kept, "MNEMON_DATA": data, "MNEMON_WORKSPACE": "bench", "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
        base_cpu, base_wall = median([sys.executable, "-c", "pass"], [b""] * (options.runs + 1), env)
        print(f"{'milliseconds':<34}{'CPU':>8}{'wall':>8}{'× pass':>9}")
        print(f"{'python -c pass':<34}{base_cpu:>8.0f}{base_wall:>8.0f}{1:>9.1f}")
        numpy = median([sys.executable, "-c", "import numpy"], [b""] * (options.runs + 1), env)
        print(f"{'python -c import numpy':<34}{numpy[0]:>8.0f}{numpy[1]:>8.0f}{numpy[0] / base_cpu:>9.1f}")
        for moment in EVENTS:
            for embedder in ("none", "auto"):
                command = [sys.executable, "-m", "mnemon.surfaces.cli.main", "--embedder", embedder, "hook", moment]
                cpu, wall = median(command, events(moment, embedder, options.runs), env)
                print(f"{f'{moment}, embedder {embedder}':<34}{cpu:>8.0f}{wall:>8.0f}{cpu / base_cpu:>9.1f}")


if __name__ == "__main__":
    main()
