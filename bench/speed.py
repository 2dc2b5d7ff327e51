"""What a read, a context and a put cost in CPU time, by the size of memory, and where the time of a read goes.

    python -m bench.speed [--sizes 1000,10000,100000] [--million] [--reads 200] [--results bench/RESULTS.md]

CPU milliseconds of the whole process, threads included; wall time says more about the machine's other work. Each size
runs in a process of its own, so that memory can be compared. The store is filled by a loader that hands entries with
vectors to the store itself (`Store.apply`, a thousand in a transaction); reads, contexts and the measured puts go
through the public API. The embedder is free: vectors from a seeded table, so that only Mnemon's own work is counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from bench.beside import langgraph
from bench.section import write_section
from mnemon import Memo, Mnemon, Workspace
from mnemon.model.entry import Entry
from mnemon.model.ids import new_id
from mnemon.model.values import Curator, Kind, Lifetime, Origin, Trust, Visibility
from mnemon.ports.embedder import EmbeddingModel, Vector
from mnemon.ports.store import Embedding, SaveEntry, Selection, Transaction

DIMENSIONS = 384
WORDS = 30_000
PUTS = 1_000
MILLION = 1_000_000


class FreeEmbedder:
    """Clustered unit vectors from a seeded table, by the text's checksum: near enough to real ones, at no cost."""

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        self.model = EmbeddingModel("free", DIMENSIONS, "bench")
        self._centres = rng.standard_normal((512, DIMENSIONS), dtype=np.float32)
        self._noise = rng.standard_normal((65_536, DIMENSIONS), dtype=np.float32)

    def embed_memories(self, texts: Sequence[str]) -> Vector:
        marks = np.array([crc32(text.encode()) for text in texts], dtype=np.int64)
        vectors = self._centres[marks % 512] + 0.8 * self._noise[marks // 512 % 65_536]
        unit: Vector = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self.embed_memories([text])[0]
        return vector


def _word(number: int) -> str:
    syllables = "ba ke li mo nu ra se ti vo zu da fe gi ho ju pa".split()
    return "".join(syllables[number >> shift & 15] for shift in (12, 8, 4, 0))


def texts(count: int, seed: int) -> list[str]:
    """Sentences of twelve words whose frequencies fall as those of a language do."""
    rng = np.random.default_rng(seed)
    words = [_word(n) for n in range(WORDS)]
    picks = np.minimum(rng.zipf(1.25, size=(count, 12)) - 1 + rng.integers(0, 40, size=(count, 12)), WORDS - 1)
    return [" ".join([words[n] for n in row]) + f" {number}" for number, row in enumerate(picks.tolist())]


def questions(count: int, stored: Sequence[str], seed: int) -> list[str]:
    """Four words of an entry that is there, common or rare as they come, and one of another."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, len(stored), size=(count, 2)).tolist()
    return [f"what about {' '.join(stored[a].split()[4:8])} and {stored[b].split()[2]}" for a, b in places]


def load(world: Workspace, given: Sequence[str], embedder: FreeEmbedder, scopes: int) -> list[Workspace]:
    """The entries spread over as many scopes, each of which answers to one of the handles returned."""
    handles = [
        world if not n else Workspace(replace(world.room, info=replace(world.room.info, id=f"{world.id}-{n}")))
        for n in range(scopes)
    ]
    places = [handle.room.scope("workspace") for handle in handles]
    origin = Origin("bench", "library", "in-process", Trust.AUTHOR)
    for at in range(0, len(given), 1000):
        batch, now = given[at : at + 1000], world.room.now
        operations = [
            SaveEntry(
                Entry(
                    id=new_id(),
                    scope=places[(at + i) % scopes],
                    content=text,
                    kind=Kind.EPISODIC if i % 2 else Kind.SEMANTIC,
                    lifetime=Lifetime.LONG_TERM,
                    curator=Curator.AUTHOR,
                    source="user",
                    importance=0.5,
                    origin=origin,
                    trust=Trust.AUTHOR,
                    created_at=now,
                    updated_at=now,
                    confirmed_at=now,
                ),
                0,
                "entry.put",
                "bench",
                (),
                Embedding(embedder.model, vector),
            )
            for i, (text, vector) in enumerate(zip(batch, embedder.embed_memories(batch), strict=True))
        ]
        world.room.local.apply(Transaction(world.room.actor, now, tuple(operations)))
    return handles


class Timed:
    """A store that adds up the CPU time spent in each of its methods."""

    def __init__(self, store: Any, spent: dict[str, float]) -> None:
        self._store, self._spent = store, spent

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def timed(*args: Any, **named: Any) -> Any:
            started = time.process_time()
            try:
                return method(*args, **named)
            finally:
                self._spent[name] += time.process_time() - started

        return timed


def cpu(work: Callable[[Any], object], given: Sequence[Any]) -> list[float]:
    out = []
    for one in given:
        started = time.process_time()
        work(one)
        out.append((time.process_time() - started) * 1000)
    return out


def spread(times: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"p50": statistics.median(ordered), "p95": ordered[int(len(ordered) * 0.95)]}


def shares(handles: Sequence[Workspace], asked: Sequence[str]) -> dict[str, float]:
    """CPU milliseconds of a read by what the store was asked; `rank and rest` is what happens outside of it."""
    spent: dict[str, float] = defaultdict(float)
    room = handles[0].room
    local, account = Timed(room.local, spent), Timed(room.account, spent)
    watched = [Workspace(replace(handle.room, local=local, account=account)) for handle in handles]
    started = time.process_time()
    for n, question in enumerate(asked):
        watched[n % len(watched)].read(question)
    total = time.process_time() - started
    stages = {name: seconds * 1000 / len(asked) for name, seconds in sorted(spent.items(), key=lambda s: -s[1])}
    return stages | {"rank and rest": (total - sum(spent.values())) * 1000 / len(asked)}


def resident() -> float:
    """Megabytes of this process in memory now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def recall(world: Workspace, embedder: FreeEmbedder, given: Sequence[str], asked: Sequence[str]) -> float:
    """Of the ten nearest by exact product over all vectors, how many the store finds."""
    matrix = embedder.embed_memories(given)
    selection = Selection((world.room.scope("workspace"),), frozenset({Visibility.OPEN}), world.room.owners)
    found: list[float] = []
    for question in asked:
        query = embedder.embed_query(question)
        floor = np.sort(matrix @ query)[-10]
        near = world.room.local.nearest(selection, embedder.model, query, 10)
        found.append(sum(n.cosine >= floor - 1e-6 for n in near) / 10)
    return statistics.mean(found)


def measure(folder: Path, entries: int, scopes: int, reads: int) -> dict[str, Any]:
    given, embedder = texts(entries, 7), FreeEmbedder()
    asked = questions(3 * reads, given, 11)
    table = resident()
    out: dict[str, Any] = {"entries": entries, "scopes": scopes}
    with Mnemon.open(folder, embedder=embedder) as memory:
        started = time.process_time()
        handles = load(memory.workspace("bench"), given, embedder, scopes)
        out["load per second"] = entries / (time.process_time() - started)
        if scopes == 1:
            out["recall@10"] = recall(handles[0], embedder, given, asked[: min(reads, 50)])
    out["disk MB"] = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 2**20
    del given
    started = time.process_time()
    with Mnemon.open(folder, embedder=embedder) as memory:
        world = memory.workspace("bench")
        handles = [Workspace(replace(world.room, info=handle.room.info)) for handle in handles]
        handles[0].read(asked[0])
        out["open and first read"] = (time.process_time() - started) * 1000
        turn = iter(range(10**9))
        out["read"] = spread(cpu(lambda q: handles[next(turn) % scopes].read(q), asked[:reads])[reads // 10 :])
        out["stages"] = shares(handles, asked[reads : 2 * reads])
        out["context"] = spread(cpu(lambda q: handles[next(turn) % scopes].context(q), asked[2 * reads :]))
        out["memory MB"] = resident() - table
        fresh = texts(PUTS, 13)
        batches = [[Memo(text) for text in fresh[at : at + 100]] for at in range(0, PUTS, 100)]
        wall = time.perf_counter()
        times = cpu(lambda memos: handles[0].put_many("workspace", memos), batches)
        out["put"] = {
            "per second CPU": 100_000 / statistics.median(times),
            "per second wall": PUTS / (time.perf_counter() - wall),
        }
    return out


def table(results: Sequence[dict[str, Any]]) -> str:
    head = [f"{r['entries']:,}" + (f" over {r['scopes']:,} scopes" if r["scopes"] > 1 else "") for r in results]
    rows: list[tuple[str, list[str]]] = [
        ("read p50", [f"{r['read']['p50']:.1f}" for r in results]),
        ("read p95", [f"{r['read']['p95']:.1f}" for r in results]),
    ]
    for name in dict.fromkeys(name for r in results for name in r["stages"]):
        rows.append((f"· {name}", [f"{r['stages'].get(name, 0):.2f}" for r in results]))
    rows += [
        ("context p50", [f"{r['context']['p50']:.1f}" for r in results]),
        ("open and first read", [f"{r['open and first read']:.0f}" for r in results]),
        ("puts a second of CPU, batches of 100", [f"{r['put']['per second CPU']:,.0f}" for r in results]),
        ("puts a second, wall", [f"{r['put']['per second wall']:,.0f}" for r in results]),
        ("vector recall at 10", [f"{r['recall@10']:.3f}" if "recall@10" in r else "" for r in results]),
        ("memory, MB", [f"{r['memory MB']:.0f}" for r in results]),
        ("disk, MB", [f"{r['disk MB']:.0f}" for r in results]),
    ]
    lines = [f"| CPU ms unless named | {' | '.join(head)} |", "| --- |" + " ---: |" * len(head)]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows)])


def alone(entries: int, scopes: int, reads: int) -> dict[str, Any]:
    """One measurement in a process of its own."""
    command = [sys.executable, "-m", "bench.speed", "--one", str(entries), "--scopes", str(scopes)]
    done = subprocess.run([*command, "--reads", str(reads)], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--million", action="store_true", help="also a million, in one scope and over a thousand")
    parser.add_argument("--reads", type=int, default=200)
    parser.add_argument("--results", type=Path, default=None, help="a file whose section on speed to write")
    parser.add_argument("--one", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--scopes", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(Path(folder), options.one, options.scopes, options.reads)))
        return
    runs = [(int(size), 1) for size in options.sizes.split(",")] + [(MILLION, 1), (MILLION, 1000)] * options.million
    results = [alone(size, scopes, options.reads) for size, scopes in runs]
    text = table(results)
    ours = next((r for r in results if r["entries"] == 10_000), None)
    if ours is not None:
        given, embedder = texts(10_000, 7), FreeEmbedder()
        text += "\n\n" + langgraph(given, questions(options.reads, given, 11), embedder, ours)
    print(text)
    if options.results is not None:
        about = (__doc__ or "").split("\n\n")[2]
        write_section(options.results, "speed", f"## Speed\n\n`make bench-speed`. {about}\n\n{text}")


if __name__ == "__main__":
    main()
