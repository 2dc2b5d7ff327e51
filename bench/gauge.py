"""Gauges that every measured process reads alike: CPU and wall time of calls, resident memory, bytes on disk."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Times:
    """Milliseconds of each call, of CPU and on the clock. `beside` is the part of other processes."""

    cpu: tuple[float, ...]
    wall: tuple[float, ...]
    beside: tuple[float, ...] = ()

    def spread(self) -> dict[str, float]:
        ordered = sorted(self.cpu)
        spread = {
            "p50": statistics.median(ordered),
            "p95": ordered[int(len(ordered) * 0.95)],
            "wall": statistics.median(self.wall),
        }
        return spread | {"beside": statistics.median(self.beside)} if self.beside else spread

    def rate(self, each: int) -> dict[str, float]:
        """Things a second by the median call, each of which does so many."""
        return {
            "wall": each * 1000 / statistics.median(self.wall),
            "CPU": each * 1000 / statistics.median(self.cpu),
        }


def timed(work: Callable[[Any], object], given: Iterable[Any], beside: Callable[[], float] | None = None) -> Times:
    """Time the calls. `beside` gives the milliseconds of CPU that other processes have spent on them so far."""
    cpu, wall, others = [], [], []
    for one in given:
        before = beside() if beside else 0.0
        started, clock = time.process_time(), time.perf_counter()
        work(one)
        own, passed = (time.process_time() - started) * 1000, (time.perf_counter() - clock) * 1000
        spent = beside() - before if beside else 0.0
        cpu.append(own + spent)
        wall.append(passed)
        others.append(spent)
    return Times(tuple(cpu), tuple(wall), tuple(others) if beside else ())


def resident() -> float:
    """Megabytes of this process in memory now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def disk(folder: Path) -> float:
    """Megabytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20


def bandwidth(megabytes: int = 512) -> float:
    """Bytes a second that this machine reads from memory: the best of a sum, a copy and a product over many."""
    matrix = np.ones((megabytes * 2**20 // 4 // 384, 384), dtype=np.float32)
    target, query = np.empty_like(matrix), np.ones(384, dtype=np.float32)
    ways: list[tuple[Callable[[], object], int]] = [
        (matrix.sum, 1),
        (lambda: np.copyto(target, matrix), 2),  # what is written is moved too
        (lambda: matrix @ query, 1),
    ]
    best = 0.0
    for work, moved in ways:
        for _ in range(4):
            started = time.perf_counter()
            work()
            best = max(best, moved * matrix.nbytes / (time.perf_counter() - started))
    return best
