"""What one PostgreSQL database carries, computed from what `make bench-postgres` measured.

    python -m bench.scale [--costs bench/data/postgres.json] [--page docs/explanation/scale.md]

It writes the tables of the page between their marks. Each figure is a measured cost times a number of entries,
workspaces or requests; nothing here is measured anew. A table says which numbers it assumes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.postgres_report import MILLION, one
from bench.section import write_section
from bench.speed_report import grid

COSTS = Path(__file__).with_name("data") / "postgres.json"
DAY = 86_400
# What the tables assume about use. Change them to fit yours.
READS_A_DAY, PUTS_A_DAY = 10, 5  # of each workspace, on average
PEAK = 4  # how much more is asked in the busiest hour than on average
ACTIVE = 0.02  # share of workspaces that are used within an hour: their rows should be in memory
BUSY = 0.6  # share of a core that may be in use on average, so that requests need not queue
CORES = 16  # of one machine for PostgreSQL
LARGE = 100_000  # entries of a large workspace, as it was measured
ROOM = 256 * 2**30  # bytes of memory of one machine for PostgreSQL
DISK = 8 * 2**40  # bytes of disk of one machine
XIDS = 2_000_000_000  # transactions after which old rows must have been frozen
STEPS = ((1_000_000, 1_000), (10_000_000, 100_000), (100_000_000, 1_000_000), (1_000_000_000, 10_000_000))


class Costs(Struct, frozen=True):
    """What was measured, in CPU milliseconds, bytes and megabytes, of small workspaces and of a large one."""

    read: float
    read_backend: float
    context: float
    context_backend: float
    put: float
    put_backend: float
    large_read: float
    large_read_backend: float
    large_put: float
    large_put_backend: float
    entry: float  # bytes of an entry in all tables and their indexes, without the graph
    graph: float  # bytes of an entry in the index for vectors of a large partition
    workspace: float  # bytes of a workspace without entries
    log: float  # bytes of write-ahead log of a put
    backend: float  # megabytes of a connection
    indexes: Sequence[
        tuple[int, float, float, float]
    ]  # so many indexes; of a read and a put; megabytes of a connection


def costs(found: Mapping[str, Any]) -> Costs:
    """Read what a bench found: the most workspaces stand for small ones, the most entries in one for a large one."""
    ours = found["ours"]
    many = one(ours, "postgres", MILLION) or min(ours, key=lambda row: (row["name"] != "postgres", row["entries"]))
    large = max((row for row in ours if row["name"] == "postgres" and row["workspaces"] == 1), key=_entries)
    sizes, empty = dict(many["sizes"]), many["empty"]
    graph = large["sizes"]["hnsw"] / large["entries"]
    few = one(ours, "postgres", 10_000) or large  # whose size without entries is that of the empty schema
    own = (sum(empty.values()) - sum(few["empty"].values())) / max(1, many["workspaces"] - few["workspaces"])
    return Costs(
        read=many["read"]["p50"],
        read_backend=many["read"]["beside"],
        context=many["context"]["p50"],
        context_backend=many["context"]["beside"],
        put=many["single"]["p50"],
        put_backend=many["single"]["beside"],
        large_read=large["read"]["p50"],
        large_read_backend=large["read"]["beside"],
        large_put=large["single"]["p50"],
        large_put_backend=large["single"]["beside"],
        entry=(sum(sizes.values()) - sizes["hnsw"] - sum(empty.values())) / many["entries"],
        graph=graph,
        workspace=own,
        log=many["log"],
        backend=max(row["backend memory"] for row in ours),
        indexes=[
            (row["indexes"], row["read"]["p50"], row["single"]["p50"], row["backend memory"])
            for row in found["indexes"]
        ],
    )


def _entries(row: Mapping[str, Any]) -> int:
    return int(row["entries"])


def measured(cost: Costs) -> str:
    """The costs themselves, and what a core does in a second."""

    def line(name: str, whole: float, backend: float) -> list[str]:
        cells = [f"{whole:.2f}", f"{backend:.2f}", f"{whole - backend:.2f}"]
        return [name, *cells, f"{1000 / backend:,.0f}", f"{1000 / (whole - backend):,.0f}"]

    lines = [
        line("read, a workspace of 1,000 entries", cost.read, cost.read_backend),
        line("context, a workspace of 1,000 entries", cost.context, cost.context_backend),
        line("put, a workspace of 1,000 entries", cost.put, cost.put_backend),
        line(f"read, a workspace of {LARGE:,} entries", cost.large_read, cost.large_read_backend),
        line(f"put, a workspace of {LARGE:,} entries", cost.large_put, cost.large_put_backend),
    ]
    head = ["CPU ms", "in all", "in PostgreSQL", "in the server", "a second and core of PostgreSQL"]
    sizes = [
        ["an entry, with its vector, versions and event", f"{cost.entry:,.0f}"],
        ["its place in the index for vectors of a large workspace", f"{cost.graph:,.0f}"],
        ["a workspace without entries", f"{cost.workspace:,.0f}"],
        ["write-ahead log of a put", f"{cost.log:,.0f}"],
    ]
    return grid([*head, "a second and core of the server"], lines) + "\n\n" + grid(["", "bytes"], sizes)


def steps(cost: Costs) -> str:
    """What so many entries over so many workspaces need, on the assumptions above."""
    plans = [_plan(cost, *step) for step in STEPS]
    head = ["", *(f"{entries:,} entries, {workspaces:,} workspaces" for entries, workspaces in STEPS)]
    return grid(head, [[name, *(plan[name] for plan in plans)] for name in plans[0]])


def _plan(cost: Costs, entries: int, workspaces: int) -> dict[str, str]:
    disk = entries * cost.entry + workspaces * cost.workspace
    reads, puts = (workspaces * each * PEAK / DAY for each in (READS_A_DAY, PUTS_A_DAY))
    base = (reads * cost.read_backend + puts * cost.put_backend) / 1000 / BUSY
    served = (reads * (cost.read - cost.read_backend) + puts * (cost.put - cost.put_backend)) / 1000 / BUSY
    machines = max(ceil(base / CORES), ceil(disk / DISK), ceil(disk * ACTIVE / ROOM))
    written = puts / PEAK * 2  # a put, and what it has counted or queued
    freezing = XIDS / written / DAY * machines
    return {
        "entries a workspace": f"{entries // workspaces:,}",
        "disk": _bytes(disk),
        "rows in use within an hour": _bytes(disk * ACTIVE),
        "reads a second at the peak": f"{reads:,.1f}",
        "puts a second at the peak": f"{puts:,.1f}",
        "cores for PostgreSQL": f"{max(1, ceil(base)):,}",
        "cores for servers": f"{max(1, ceil(served)):,}",
        "write-ahead log a day": _bytes(puts / PEAK * cost.log * DAY),
        "days until old rows must be frozen": f"{freezing:,.0f}",
        "machines for PostgreSQL": f"{machines:,}",
    }


def graphs(cost: Costs) -> str:
    """Large workspaces: what their indexes for vectors need, and how many one database bears."""
    lines = [
        [f"{count:,}", f"{count * LARGE:,}", _bytes(count * LARGE * cost.graph), _bytes(count * LARGE * cost.entry)]
        for count in (1, 10, 100, 1_000)
    ]
    held = grid(["large workspaces", "entries", "indexes for vectors, best in memory", "all other bytes"], lines)
    rows = [[f"{n:,}", f"{read:.2f}", f"{put:.2f}", f"{size:.0f}"] for n, read, put, size in cost.indexes]
    head = ["indexes for vectors in one database", "CPU ms of a read in a small workspace", "of a put there"]
    return held + "\n\n" + grid([*head, "MB of a connection"], rows)


def writers(cost: Costs) -> str:
    """Writers of one workspace come one after the other."""
    lines = [
        [name, f"{1000 / put:,.0f}", f"{1000 / backend:,.0f}"]
        for name, put, backend in (
            ("1,000 entries", cost.put, cost.put_backend),
            (f"{LARGE:,} entries", cost.large_put, cost.large_put_backend),
        )
    ]
    return grid(["a workspace of", "single puts a second", "if all but PostgreSQL cost nothing"], lines)


def connections(cost: Costs) -> str:
    lines = [
        [f"{servers:,}", f"{servers * 17:,}", _bytes(servers * 17 * cost.backend * 2**20)]
        for servers in (2, 10, 50, 200)
    ]
    return grid(["server and worker processes", "connections at most", "memory of their backends"], lines)


def _bytes(count: float) -> str:
    for unit, size in (("TB", 2**40), ("GB", 2**30), ("MB", 2**20)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count / 2**10:,.0f} kB"


def assumed() -> str:
    lines = [
        ["reads a day of each workspace", f"{READS_A_DAY}"],
        ["puts a day of each workspace", f"{PUTS_A_DAY}"],
        ["the busiest hour to the average, times", f"{PEAK}"],
        ["workspaces in use within an hour", f"{ACTIVE:.0%}"],
        ["use of a core on average, at most", f"{BUSY:.0%}"],
        ["a machine for PostgreSQL: cores, memory, disk", f"{CORES}, {_bytes(ROOM)}, {_bytes(DISK)}"],
    ]
    return grid(["assumed", ""], lines)


def tables(cost: Costs) -> dict[str, str]:
    """The tables of the page, by the name of their marks."""
    return {
        "costs": measured(cost),
        "assumed": assumed(),
        "steps": steps(cost),
        "writers": writers(cost),
        "connections": connections(cost),
        "graphs": graphs(cost),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--costs", type=Path, default=COSTS)
    parser.add_argument("--page", type=Path, default=None, help="a page whose tables to write")
    options = parser.parse_args()
    for name, table in tables(costs(json.loads(options.costs.read_text(encoding="utf-8")))).items():
        if options.page is None:
            print(f"{table}\n")
        else:
            write_section(options.page, name, table)


if __name__ == "__main__":
    main()
