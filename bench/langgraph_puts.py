"""How many gathered `aput`s a second LukasaStore takes beside LangGraph's own AsyncSqliteStore.

    python -m bench.langgraph_puts [--puts 5000] [--rounds 5] [--results bench/RESULTS.md]

Both stores are on disk and take the same values without an index, by turns, so that a busy machine slows both. The
figure to compare is the ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from langgraph.store.base import BaseStore
from langgraph.store.sqlite import AsyncSqliteStore

from bench.section import write_section
from lukasa.langgraph import LukasaStore


async def gathered(store: BaseStore, count: int, round_: int) -> float:
    """Put new values, all started at once; return how many were put in a second."""
    started = time.perf_counter()
    puts = (store.aput(("n", str(i % 7)), f"{round_}-{i}", {"text": f"value {i}", "i": i}) for i in range(count))
    await asyncio.gather(*puts)
    return count / (time.perf_counter() - started)


async def one_by_one(store: BaseStore, count: int, round_: int) -> float:
    """Put new values, each after the other is kept."""
    started = time.perf_counter()
    for i in range(count):
        await store.aput(("s",), f"{round_}-{i}", {"text": f"value {i}", "i": i})
    return count / (time.perf_counter() - started)


async def measure(folder: Path, count: int, rounds: int) -> str:
    load = os.getloadavg()[0]
    rows: dict[str, list[tuple[float, float]]] = {"gathered": [], "one by one": []}
    async with (
        LukasaStore.open(folder / "ours", embedder="none") as ours,
        AsyncSqliteStore.from_conn_string(str(folder / "theirs.db")) as theirs,
    ):
        await theirs.setup()
        for round_ in range(rounds):
            rows["gathered"].append((await gathered(ours, count, round_), await gathered(theirs, count, round_)))
            few = count // 10
            rows["one by one"].append((await one_by_one(ours, few, round_), await one_by_one(theirs, few, round_)))
    lines = "\n".join(_row(name, figures) for name, figures in rows.items())
    return f"""## Gathered puts of a LangGraph store

`make bench-langgraph`: {count:,} values in each of {rounds} rounds, put by `asyncio.gather` and a tenth of them one by
one; the median of the rounds. Both stores are files on this disk. LukasaStore also writes an event with a salted
commitment for each value, chained to the one before. {os.cpu_count()} cores; before it began, {load:.1f} processes
wanted one.

| puts a second | LukasaStore | AsyncSqliteStore | ratio |
| --- | --- | --- | --- |
{lines}
"""


def _row(name: str, figures: Sequence[tuple[float, float]]) -> str:
    ours, theirs = (statistics.median(column) for column in zip(*figures, strict=True))
    return f"| {name} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--puts", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        told = asyncio.run(measure(Path(folder), options.puts, options.rounds))
    print(told)
    if options.results is not None:
        write_section(options.results, "langgraph", told)


if __name__ == "__main__":
    main()
