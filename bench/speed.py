"""What a read, a context and a put cost, by the size of memory, beside other stores and beside what was asked.

    python -m bench.speed [--sizes 1000,10000,100000] [--million] [--reads 200] [--rounds 3] [--peers PYTHON]
                          [--only a,b] [--bound 360] [--keep FOLDER] [--results bench/RESULTS.md]

CPU milliseconds of the whole process, threads included, unless a row says otherwise; wall time says more about the
machine's other work. Each size is filled, compared with an exact scan and measured in a process of its own, so that
memory can be compared. A loader hands entries with vectors to the store itself (`Store.apply`, a thousand in a
transaction); reads, contexts and the measured puts go through the public API. The embedder is free: vectors from a
seeded table, so that only a store's own work is counted; the default embedder is measured apart. What is measured
comes after the first read and as many others as are measured then, in every store alike; what the first one costs is
told apart. A store that takes long is asked for a minute of CPU, and twenty questions at least. Of a thousand scopes,
each that is measured is asked for the first time; what it costs to ask them once more is told apart, and so is a read
right after a put of another text. Texts end in a number of their own, by which a put sees soonest that nothing says the
same; what single puts cost without it is told apart. All stores are measured in turn, in several rounds, each a process
on a copy of the store; each figure is the median of its calmest round, for every store alike.

`--peers` is the interpreter of an environment with `requirements-peers.txt`: the same texts, questions and vectors go
through each store of `bench/speed_peers.py`, which has `--bound` seconds of CPU to be filled and as many to answer.
`--keep` keeps filled stores, so that a rerun does not fill them again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from bench import latency
from bench.gauge import bandwidth, disk, resident, timed
from bench.load import ASKED, FreeEmbedder, fill, fill_with, filled
from bench.made import texts
from bench.plot import growth
from bench.section import write_section
from bench.speed_report import LABELS, Row, report
from lukasa import Lukasa, Memo, Workspace
from lukasa.model.selection import Selection
from lukasa.model.values import Visibility
from lukasa.providers.embed import open_embedder
from lukasa.providers.embed.cached import default_cache

MILLION = 1_000_000
NEAREST = 10
SAME_STORE = {"chroma-scoped": "chroma"}  # asked in another way, filled in the same one
HERE = Path(__file__).parent


class Timed:
    """A store that adds up the CPU time spent in each of its methods."""

    def __init__(self, store: Any, spent: dict[str, float]) -> None:
        self._store, self._spent = store, spent

    @contextmanager
    def snapshot(self) -> Iterator[Timed]:
        with self._store.snapshot() as store:
            yield Timed(store, self._spent)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def called(*args: Any, **named: Any) -> Any:
            started = time.process_time()
            try:
                return method(*args, **named)
            finally:
                self._spent[name] += time.process_time() - started

        return called


def shares(handles: Sequence[Workspace], asked: Sequence[str]) -> dict[str, float]:
    """CPU milliseconds of a read by what the store was asked; `rank and rest` is what happens outside of it."""
    spent: dict[str, float] = defaultdict(float)
    ctx = handles[0].ctx
    local, account = Timed(ctx.local, spent), Timed(ctx.account, spent)
    watched = [Workspace(replace(handle.ctx, local=local, account=account)) for handle in handles]
    started = time.process_time()
    for n, question in enumerate(asked):
        watched[n % len(watched)].read(question)
    total = time.process_time() - started
    stages = {name: seconds * 1000 / len(asked) for name, seconds in sorted(spent.items(), key=lambda s: -s[1])}
    return stages | {"rank and rest": (total - sum(spent.values())) * 1000 / len(asked)}


def recall(folder: Path, reads: int) -> float:
    """Of the ten nearest vectors, how many the store in the folder finds."""
    held, embedder = filled(folder), FreeEmbedder()
    with Lukasa.open(folder / "store", embedder=embedder) as memory:
        return found_of_nearest(memory.workspace("bench"), embedder, held.entries, held.questions[: min(reads, 50)])


def found_of_nearest(world: Workspace, embedder: FreeEmbedder, entries: int, asked: Sequence[str]) -> float:
    """Of the ten nearest by exact product over all vectors, how many the store finds; what is as near as the last of
    them, in the digits that a store tells, counts as one of them."""
    queries = np.stack([embedder.embed_query(question) for question in asked])
    best = np.full((len(asked), NEAREST), -1.0, dtype=np.float32)
    given, ctx = texts(entries, 7), world.ctx
    for at in range(0, len(given), 50_000):
        cosines = queries @ embedder.embed_memories(given[at : at + 50_000]).T
        best = np.sort(np.hstack([best, cosines]), axis=1)[:, -NEAREST:]
    selection = Selection((ctx.scope("workspace"),), frozenset({Visibility.OPEN}), ctx.owners)
    found = [ctx.local.nearest(selection, embedder.model, query, NEAREST) for query in queries]
    hits = [
        float(sum(n.cosine >= exact[0] - 1e-5 for n in near)) / NEAREST for near, exact in zip(found, best, strict=True)
    ]
    return statistics.mean(hits)


def measure(folder: Path, reads: int, rounds: int = 10) -> Row:
    """The store in the folder, opened as a process that begins does."""
    held, before = filled(folder), resident()
    embedder = FreeEmbedder()
    embedder.prepare(held.questions)
    table, size = resident() - before, disk(folder / "store")
    started = time.process_time()
    with Lukasa.open(folder / "store", embedder=embedder) as memory:
        handles = held.handles(memory.workspace("bench"))
        handles[0].read(held.questions[0])
        first = (time.process_time() - started) * 1000
        for n, question in enumerate(held.questions[-reads:]):  # of a thousand scopes, others than are measured
            handles[(n + held.scopes // 2) % held.scopes].read(question)
        turns = [(handles[n % held.scopes], question) for n, question in enumerate(held.questions[: 3 * reads])]
        read = timed(lambda turn: turn[0].read(turn[1]), turns[:reads])
        stages = shares(handles, held.questions[reads : 2 * reads])
        again = timed(lambda turn: turn[0].read(turn[1]), zip(cycle(handles), held.questions[-reads:], strict=False))
        context = timed(lambda turn: turn[0].context(turn[1]), turns[2 * reads :])
        memory_used = resident() - table
        fresh, alone = texts(125 * rounds, 13), 20 * rounds
        batches = [[Memo(text) for text in fresh[at : at + 100]] for at in range(alone, 120 * rounds, 100)]
        single = timed(lambda text: handles[0].put("workspace", text), fresh[:alone])
        common = timed(lambda text: handles[0].put("workspace", text), unnumbered(alone, 17))
        batch = timed(lambda memos: handles[0].put_many("workspace", memos), batches)
        after = timed(handles[0].read, after_puts(handles[0], fresh[120 * rounds :], held.questions))
    return {
        "name": "Lukasa",
        "entries": held.entries,
        "scopes": held.scopes,
        "filled a second": held.per_second,
        "first": first,
        "read": read.spread(),
        "again": again.spread(),
        "after a put": after.spread(),
        "stages": stages,
        "context": context.spread(),
        "single": single.rate(1),
        "common": common.rate(1),
        "batch": batch.rate(100),
        "memory": memory_used,
        "disk": size,
    }


def unnumbered(count: int, seed: int) -> list[str]:
    """Texts without the number at their end: each of their words is in others too, and common in a large memory."""
    return [text.rpartition(" ")[0] for text in texts(count, seed)]


def after_puts(handle: Workspace, given: Sequence[str], asked: Sequence[str]) -> Iterator[str]:
    """Questions, each to be asked right after a text was put."""
    for text, question in zip(given, asked, strict=False):
        handle.put("workspace", text)
        yield question


def with_model(folder: Path, entries: int, reads: int) -> Row | None:
    """The default embedder's own share, and a read and a context with it; None where it was not pulled."""
    embedder = open_embedder("default", default_cache())
    if embedder is None:
        return None
    if not (folder / "filled.json").exists():
        fill_with(folder, latency.sentences(entries), latency.questions(ASKED), embedder)
    asked = filled(folder).questions
    with Lukasa.open(folder / "store", embedder=embedder) as memory:
        world = memory.workspace("bench")
        world.read("warm up the caches, please")
        return {
            "entries": entries,
            "embedder": timed(embedder.embed_query, asked[:reads]).spread(),
            "read": timed(world.read, asked[reads : 2 * reads]).spread(),
            "context": timed(world.context, asked[2 * reads : 3 * reads]).spread(),
        }


def _json(command: Sequence[str], bound: int | None = None) -> Any:
    """What a process of its own prints last; how it does is seen on stderr.

    A bound is of CPU seconds, which a busy machine does not use up; a process that only waits has ten times as long.
    """
    limited = ["sh", "-c", f'ulimit -t {bound}; exec "$@"', "sh", *command] if bound else command
    until = 10 * bound if bound else None
    done = subprocess.run(limited, check=True, stdout=subprocess.PIPE, text=True, timeout=until, cwd=HERE.parent)
    return json.loads(done.stdout.strip().splitlines()[-1])


class Ours:
    """Our store of one size: filled once, and measured on a copy, since what is measured is written to."""

    def __init__(self, place: Path, entries: int, scopes: int, reads: int) -> None:
        self._place, self._folder = place, place / f"lukasa-{entries}-{scopes}"
        self._size = ["--sizes", str(entries), "--scopes", str(scopes)]
        self._told = [sys.executable, "-m", "bench.speed", "--reads", str(reads), "--folder"]
        self._alone = scopes == 1
        self._rounds: list[Row] = []

    def fill(self) -> None:
        if not (self._folder / "filled.json").exists():
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir(parents=True)
            _json([*self._told, str(self._folder), "--step", "fill", *self._size])

    def measure(self) -> None:
        with tempfile.TemporaryDirectory(dir=self._place) as copy:
            shutil.copytree(self._folder, copy, dirs_exist_ok=True)
            self._rounds.append(told(_json([*self._told, copy, "--step", "measure"])))

    def row(self) -> Row:
        row = calmest(self._rounds)
        return row | {"recall": _json([*self._told, str(self._folder), "--step", "recall"])} if self._alone else row


def calmest(rounds: Sequence[Row]) -> Row:
    """Each figure from the round in which the machine was least disturbed."""
    row = dict(min(rounds, key=lambda found: found["read"]["p50"]))
    row["first"] = min((found["first"] for found in rounds if "first" in found), default=None)
    for reads in ("context", "again", "after a put"):
        row[reads] = min((found[reads] for found in rounds if reads in found), key=_median, default=None)
    for puts in ("single", "common", "batch"):
        rates = [found[puts] for found in rounds if puts in found]
        row[puts] = max(rates, key=lambda rate: rate["CPU"], default=None)
    row["busiest"] = max(found["read"]["p50"] for found in rounds)
    return {name: figure for name, figure in row.items() if figure is not None}


def _median(spread: dict[str, float]) -> float:
    return spread["p50"]


class Beside:
    """A store beside ours, of one size; where there is no measurement, why not."""

    def __init__(self, place: Path, python: str, name: str, entries: int, options: argparse.Namespace) -> None:
        self._place, self._folder = place, place / f"{SAME_STORE.get(name, name)}-{entries}"
        self._told = [python, "-m", "bench.speed_peers", name]
        self._size = [str(entries), str(options.reads)]
        self._bound: int = options.bound
        self._row: Row = {"name": name, "entries": entries}
        self._rounds: list[Row] = []

    def fill(self) -> None:
        if not (self._folder / "filled.json").exists():
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir(parents=True)
            filling = self._do(self._folder, "fill")
            if "missing" in filling:
                self._row |= filling
                return
            (self._folder / "filled.json").write_text(json.dumps(filling))
        self._row |= json.loads((self._folder / "filled.json").read_text())

    def measure(self) -> None:
        if "missing" in self._row:
            return
        with tempfile.TemporaryDirectory(dir=self._place) as copy:
            shutil.copytree(self._folder, copy, dirs_exist_ok=True)
            found = told(self._do(Path(copy), "ask"))
        if "missing" in found:
            self._row |= found
        else:
            self._rounds.append(found)

    def row(self) -> Row:
        return self._row if "missing" in self._row else self._row | calmest(self._rounds)

    def _do(self, folder: Path, step: str) -> Row:
        doing = "filling" if step == "fill" else "asking"
        try:
            found: Row = _json([*self._told, str(folder), *self._size, step], self._bound)
        except subprocess.TimeoutExpired:
            return {"missing": f"{doing} not done within {10 * self._bound} s"}
        except subprocess.CalledProcessError as failed:
            if -failed.returncode in (signal.SIGKILL, signal.SIGXCPU):
                return {"missing": f"{doing} not done within {self._bound} s of CPU"}
            return {"missing": f"{doing} failed here with status {failed.returncode}"}
        return found


def told(row: Any) -> Any:
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def step(options: argparse.Namespace) -> object:
    """One step in this process, for the process that started it."""
    if options.step == "fill":
        fill(options.folder, int(options.sizes), options.scopes)
        return True
    if options.step == "model":
        return with_model(options.folder, int(options.sizes), options.reads)
    if options.step == "recall":
        return recall(options.folder, options.reads)
    return measure(options.folder, options.reads)


def run(place: Path, options: argparse.Namespace) -> tuple[list[Row], list[Row], Row | None]:
    """All of it: every store is filled, and then all are measured in turn, round after round, so that a busy time of
    the machine hits none of them alone. Each round is told as it comes."""
    sizes = [int(size) for size in options.sizes.split(",")]
    python = str(Path(options.peers).absolute()) if options.peers else ""
    compared = [size for size in sizes if size >= 10_000] or sizes
    ours = [Ours(place, entries, 1, options.reads) for entries in sizes]
    ours += [Ours(place, MILLION, scopes, options.reads) for scopes in (1, 1000) if options.million]
    names = options.only.split(",") if python else ()
    others = [Beside(place, python, name, entries, options) for name in names for entries in compared]
    stores: list[Ours | Beside] = [*ours, *others]
    for store in stores:
        store.fill()
    for _ in range(options.rounds):
        for store in stores:
            store.measure()
    folder = place / "model-10000"
    if not (folder / "filled.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    command = [sys.executable, "-m", "bench.speed", "--step", "model", "--sizes", "10000", "--folder", str(folder)]
    model: Row | None = told(_json([*command, "--reads", str(options.reads)]))
    return [store.row() for store in ours], [store.row() for store in others], model


def conditions(before: float) -> str:
    """The machine, and how busy it was: CPU time grows too where others use the same caches."""
    load = f"load average {before:.1f} when it began and {os.getloadavg()[0]:.1f} when it ended"
    return f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, {load}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--million", action="store_true", help="also a million, in one scope and over a thousand")
    parser.add_argument("--rounds", type=int, default=3, help="times that everything is measured")
    parser.add_argument("--reads", type=int, default=200, help="at most a third of the thousand questions")
    parser.add_argument("--peers", default=None, help="the interpreter of an environment with requirements-peers.txt")
    parser.add_argument("--only", default=",".join(LABELS), help="the stores to run beside ours")
    parser.add_argument("--bound", type=int, default=360, help="seconds of CPU a store beside ours has for a step")
    parser.add_argument("--keep", type=Path, default=None, help="a folder for filled stores, which a rerun takes up")
    parser.add_argument("--results", type=Path, default=None, help="a file whose section on speed to write")
    parser.add_argument("--step", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--scopes", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.only.split(",")) - set(LABELS):
        parser.error(f"no such store: {', '.join(sorted(unknown))}; there are {', '.join(LABELS)}")
    if options.step is not None:
        print(json.dumps(step(options)))
        return
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as passing:
        place = options.keep or Path(passing)
        place.mkdir(parents=True, exist_ok=True)
        rows, others, model = run(place.resolve(), options)
    text = report(rows, others, model, bandwidth())
    print(text)
    if options.results is not None:
        drawn = options.results.with_name("speed.svg")
        drawn.write_text(growth(rows, others, LABELS), encoding="utf-8")
        about = (__doc__ or "").split("\n\n")[2].replace("\n", " ")
        machine = (
            f"{conditions(before)} {options.reads} reads of each kind after as many others, in {options.rounds} "
            "rounds, of which each figure is the median of the calmest, for every store alike."
        )
        plot = f"![CPU milliseconds by the size of memory]({drawn.name})"
        write_section(
            options.results, "speed", f"## Speed\n\n`make bench-speed`. {about} {machine}\n\n{plot}\n\n{text}"
        )


if __name__ == "__main__":
    main()
