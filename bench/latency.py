"""How long a read and a context take beside the embedder itself, at a given number of entries in one scope.

    python -m bench.latency [--entries 10000] [--reads 200]

Everything goes through the public API on a real SQLite store in a temporary folder. The embedder's own time is
measured in the same run, on the same questions, so that the figures are ratios and not promises.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lukasa import Lukasa, Memo, Workspace
from lukasa.ports import Embedder
from lukasa.providers.embed import open_embedder
from lukasa.providers.embed.cached import default_cache

NAMES = "Ada Bela Cato Dina Enzo Fara Gil Hana Ivo Jun Kaya Lev Mina Noor Otto Pia Quin Rosa Sami Tove".split()
VERBS = "repaired painted sold borrowed counted mapped tuned packed measured described".split()
THINGS = "lantern sail ledger anchor compass bridge kettle orchard violin furnace telescope granary".split()
PLACES = "Veyra harbour|the north quay|Old Mill lane|the glass market|the river school|Tern island".split("|")


def sentences(count: int, seed: int = 7) -> list[str]:
    rng = random.Random(seed)
    pick = rng.choice
    return [
        f"{pick(NAMES)} {pick(VERBS)} the {pick(THINGS)} number {n} near {pick(PLACES)} "
        f"with {pick(NAMES)} in year {1700 + n % 300}"
        for n in range(count)
    ]


def questions(count: int, seed: int = 11) -> list[str]:
    rng = random.Random(seed)
    pick = rng.choice
    return [f"what did {pick(NAMES)} do with the {pick(THINGS)} at {pick(PLACES)}, {n}?" for n in range(count)]


def fill(world: Workspace, texts: Sequence[str], batch: int = 100) -> float:
    started = time.perf_counter()
    for at in range(0, len(texts), batch):
        world.put_many("workspace", [Memo(text) for text in texts[at : at + batch]])
    return time.perf_counter() - started


def timed(work: Callable[[str], object], asked: Sequence[str]) -> list[float]:
    out = []
    for question in asked:
        started = time.perf_counter()
        work(question)
        out.append((time.perf_counter() - started) * 1000)
    return out


def line(name: str, times: Sequence[float], base: float) -> str:
    ordered = sorted(times)
    p50, p95 = statistics.median(ordered), ordered[int(len(ordered) * 0.95)]
    return f"{name:<22}{p50:>10.1f}{p95:>10.1f}{p50 / base:>12.2f}"


def measure(embedder: Embedder, folder: Path, entries: int, reads: int) -> None:
    with Lukasa.open(folder, embedder=embedder) as memory:
        world = memory.workspace("bench")
        seconds = fill(world, sentences(entries))
        rate = f"{entries / seconds:,.0f}/s, embedding included"
        print(f"{entries:,} entries put in batches of 100 in {seconds:.1f} s ({rate})")
        world.read("warm up the caches, please")
        batches = [questions(reads, seed) for seed in (1, 2, 3)]
        alone = timed(embedder.embed_query, batches[0])
        base = statistics.median(alone)
        print(f"\n{'milliseconds':<22}{'p50':>10}{'p95':>10}{'× embedder':>12}")
        print(line("embedder alone", alone, base))
        print(line("read", timed(world.read, batches[1]), base))
        print(line("context", timed(world.context, batches[2]), base))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--reads", type=int, default=200)
    options = parser.parse_args()
    embedder = open_embedder("default", default_cache())
    if embedder is None:
        raise SystemExit("the default embedding model is needed; run `make model`")
    with tempfile.TemporaryDirectory() as folder:
        measure(embedder, Path(folder), options.entries, options.reads)


if __name__ == "__main__":
    main()
