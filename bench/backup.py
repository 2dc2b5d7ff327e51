"""A part of `bench.move`: what a backup costs while eight processes write, and whether any of their writes fails."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from lukasa import Lukasa
from lukasa.app import Settings, restore_backup

WRITERS = 8
WRITER = """
import sys, time
from lukasa import Lukasa
name, data, until = sys.argv[1], sys.argv[2], sys.argv[3]
with Lukasa.open(data, embedder="none") as memory:
    world, count, failed, longest = memory.workspace(f"w{int(name) % 3}"), 0, 0, 0.0
    print("ready", flush=True)
    sys.stdin.readline()
    import threading
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
    while not stop.is_set() and count < int(until):
        begun = time.perf_counter()
        try:
            world.put("workspace", f"Crate {count} of writer {name} holds lantern {name}-{count}")
            count += 1
        except Exception:
            failed += 1
        longest = max(longest, time.perf_counter() - begun)
    print(count, failed, longest, flush=True)
"""


def measure(data: Path, folder: Path) -> str:
    """Back up a data folder: alone, again, and under load; restore it. Return rows of a table and a sentence."""
    rows = []
    with Lukasa.open(data, embedder="none") as memory:
        for name in ("w0", "w1", "w2"):
            memory.workspace(name)
        for what in ("back up, the first time", "back up again, nothing changed"):
            begun = time.perf_counter()
            made = memory.backup(folder)
            seconds = time.perf_counter() - begun
            size = f"{made.written / 1e6:.1f} MB"
            rows.append(f"| {what} | {made.entries:,} | {made.entries / seconds:,.0f} | {size} |")
    command = [sys.executable, "-c", WRITER]
    environment = {**os.environ, "LUKASA_EMBEDDER": "none"}
    pipe = subprocess.PIPE
    writers = [
        subprocess.Popen([*command, str(n), str(data), "20000"], stdin=pipe, stdout=pipe, text=True, env=environment)
        for n in range(WRITERS)
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        _tell(writers)
        with Lukasa.open(data, embedder="none") as memory:
            begun = time.perf_counter()
            made = memory.backup(folder)
            seconds = time.perf_counter() - begun
        _tell(writers)
        ends = [writer.communicate()[0].split() for writer in writers]
    finally:
        for writer in writers:
            writer.kill()
    size = f"{made.written / 1e6:.1f} MB"
    rows.append(
        f"| back up under load of {WRITERS} writers | {made.entries:,} | {made.entries / seconds:,.0f} | {size} |"
    )
    begun = time.perf_counter()
    restore_backup(Settings.resolve(data=folder.with_name("back"), database="", env={}), folder)
    seconds = time.perf_counter() - begun
    rows.append(f"| restore | {made.entries:,} | {made.entries / seconds:,.0f} | |")
    written, failed = (sum(int(end[n]) for end in ends) for n in (0, 1))
    longest = max(float(end[2]) for end in ends)
    told = f"While it ran, the writers stored {written:,} entries, {failed} writes failed, and the longest took "
    return "\n".join(rows) + f"\n\n{told}{longest * 1000:,.0f} ms. A backup includes its restore on trial."


def _tell(writers: list[subprocess.Popen[str]]) -> None:
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
