"""What a put, a read and a context cost on PostgreSQL, beside SQLite, LangGraph's store and a plain hybrid query.

    python -m bench.postgres [--sizes 10000,100000] [--million] [--reads 200] [--rounds 3] [--keep FOLDER]
                             [--results bench/RESULTS.md] [--costs bench/data/postgres.json]

CPU milliseconds of the process that asks and of the PostgreSQL backends that serve its connections, added up for each
call; wall time says more about the machine's other work. What the server does beside (checkpoints, autovacuum, writing
the log) is not in it. The server is a real one that the bench starts, on a folder of its own, with durable commits and
without parallel workers, so that a statement's whole time is that of its backend. A loader hands entries with vectors
to the store itself (`Store.apply`, a thousand in a transaction); reads, contexts and the measured puts go through the
public API, the same code on both engines. The embedder is free: vectors from a seeded table. The million is a thousand
workspaces of a thousand entries, of which each that is measured is asked for the first time by its process; what it
costs to ask them once more is told apart. A quarter of the machine's memory is the server's shared buffers, which have
pages from the rounds before; the busiest round is mostly the first, when they have not. All stores are measured in
turn, in several rounds, each in a process of its own; each figure is the median of its calmest round, for every store
alike.

`--keep` keeps filled stores, so that a rerun does not fill them again. Puts of earlier rounds stay: some hundreds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import psycopg

from bench import postgres_clients
from bench.backends import Backends, watching
from bench.gauge import disk, resident, timed
from bench.load import FreeEmbedder
from bench.made import texts
from bench.postgres_load import fill, held
from bench.postgres_report import LABELS, Row, report
from bench.section import write_section
from bench.speed import conditions, found_of_nearest, told
from lukasa import Lukasa, Memo
from lukasa.storage.postgres import sql, vector_indexes
from tools.cluster import Cluster, open_cluster

MILLION, WORKSPACES = 1_000_000, 1_000
CROWDED = (16_000, 16)  # entries and workspaces of the database that clients ask together
INDEXES = (0, 100, 1_000)
HERE = Path(__file__).parent
SETTINGS = {
    "shared_buffers": "6GB",
    "max_parallel_workers_per_gather": "0",
    "maintenance_work_mem": "1GB",
    "max_wal_size": "8GB",
    "jit": "off",
}


def measure(folder: Path, url: str, reads: int, seed: int) -> Row:
    """The store of a folder or of a database, opened as a process that begins does."""
    if not url:
        return _measured(folder, url, reads, seed, None)
    with watching(url) as backends:
        return _measured(folder, url, reads, seed, backends)


def _measured(folder: Path, url: str, reads: int, seed: int, backends: Backends | None) -> Row:
    about, embedder = held(folder), FreeEmbedder()
    asked, many = about.questions, about.workspaces
    embedder.prepare(asked)
    table = resident()
    look: Callable[[], Callable[[], float] | None] = lambda: backends.look().milliseconds if backends else None  # noqa: E731
    with Lukasa.open(folder / "store", database=url, embedder=embedder) as memory:
        worlds = about.worlds(memory)
        turns = [(worlds[n % many], question) for n, question in enumerate(asked)]
        for world, question in turns[-reads:]:
            world.read(question)
        read = timed(lambda turn: turn[0].read(turn[1]), turns[:reads], look())
        again = timed(lambda turn: turn[0].read(turn[1]), turns[-reads:], look())
        before = [world.context(question) for world, question in turns[-reads:][:20]]
        context = timed(lambda turn: turn[0].context(turn[1]), turns[reads : 2 * reads], look())
        assert all(map(str, before))
        used, backend = resident() - table, backends.memory() if backends else 0.0
        fresh, puts = texts(330, 13 + seed), cycle(worlds[-reads:])
        for world, _ in turns[-reads:][:10]:
            world.put("workspace", f"a first put of round {seed} in {world.name}")
        log = backends.log() if backends else 0
        single = timed(lambda text: next(puts).put("workspace", text), fresh[:30], look())
        written = (backends.log() - log) / 30 if backends else 0.0
        batches = [[Memo(text) for text in fresh[at : at + 100]] for at in (30, 130, 230)]
        batch = timed(lambda memos: next(puts).put_many("workspace", memos), batches, look())
        after = timed(lambda turn: turn[0].read(turn[1]), _after_puts(turns[: reads // 4], seed), look())
    return {
        "read": read.spread(),
        "again": again.spread(),
        "after a put": after.spread(),
        "context": context.spread(),
        "single": single.spread(),
        "batch": batch.spread(),
        "memory": used,
        "backend memory": backend,
        "log": written,
    }


def recall(folder: Path, url: str) -> float:
    """Of the ten nearest vectors, how many a search finds."""
    about, embedder = held(folder), FreeEmbedder()
    with Lukasa.open(folder / "store", database=url, embedder=embedder) as memory:
        return found_of_nearest(memory.workspace("bench-0"), embedder, about.entries, about.questions[:50])


def _after_puts(turns: Sequence[Any], seed: int) -> Any:
    for number, (world, question) in enumerate(turns):
        world.put("workspace", f"lantern {seed} {number} of {question}")
        yield world, question


class Stores:
    """The databases of one server, and the folders beside them."""

    def __init__(self, place: Path, cluster: Cluster, reads: int) -> None:
        self.place, self.cluster, self.reads = place, cluster, reads

    def url(self, name: str) -> str:
        """The address of a database, which is made if there is none."""
        with psycopg.connect(self.cluster.url(), autocommit=True) as admin:
            if admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone() is None:
                admin.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.cluster.url(name)

    def anew(self, name: str) -> str:
        with psycopg.connect(self.cluster.url(), autocommit=True) as admin:
            admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
        return self.url(name)


class Ours:
    """Lukasa at one size, on one engine."""

    def __init__(self, stores: Stores, engine: str, entries: int, workspaces: int = 1) -> None:
        self._stores, self._engine, self._size = stores, engine, (entries, workspaces)
        self._name = f"{engine}-{entries}-{workspaces}"
        self._folder = stores.place / self._name
        self._rounds: list[Row] = []
        self._recall: float | None = None

    def url(self) -> str:
        return self._stores.url(self._name) if self._engine == "postgres" else ""

    def fill(self) -> None:
        if (self._folder / "held.json").exists():
            return
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        url = self._stores.anew(self._name) if self._engine == "postgres" else ""
        fill(self._folder, url, *self._size)

    def measure(self, seed: int) -> None:
        if not self._rounds and self._size[1] == 1:  # before anything is put that the exact scan does not know
            self._recall = self._do("recall", seed)
        self._rounds.append(told(self._do("measure", seed)))

    def _do(self, step: str, seed: int) -> Any:
        told = ["--step", step, "--folder", str(self._folder), "--url", self.url(), "--seed", str(seed)]
        return _json([sys.executable, "-m", "bench.postgres", *told, "--reads", str(self._stores.reads)])

    def row(self) -> Row:
        about = held(self._folder)
        size = sum(about.sizes.values()) / 2**20 or disk(self._folder / "store")
        row = {"name": self._engine, "entries": about.entries, "workspaces": about.workspaces, "disk": size}
        row |= {"seconds": about.seconds, "indexing": about.indexing, "sizes": about.sizes, "empty": about.empty}
        row["recall"] = self._recall
        return row | calmest(self._rounds)


class Beside:
    """A store beside ours at one size, in the same server."""

    def __init__(self, stores: Stores, name: str, entries: int) -> None:
        self._stores, self._name, self._entries = stores, name, entries
        self._database = f"{name.split('-')[0]}-{entries}"  # both forms of the hybrid ask one table
        self._folder = stores.place / self._database
        self._rounds: list[Row] = []

    def fill(self) -> None:
        note = self._folder / "filled.json"
        if not note.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            self._stores.anew(self._database)
            note.write_text(json.dumps(self._do("fill")))

    def measure(self, seed: int) -> None:
        self._rounds.append(told(self._do("ask", f"{self._name}-{seed}-{time.time_ns() % 10**6}")))

    def row(self) -> Row:
        filled = json.loads((self._folder / "filled.json").read_text())
        row: Row = filled | {"name": self._name, "entries": self._entries, "workspaces": 1}
        return row | calmest(self._rounds)

    def _do(self, step: str, seed: str = "") -> Row:
        asked = [self._name, self._stores.url(self._database), str(self._entries), str(self._stores.reads), step]
        seeds = [str(int.from_bytes(seed.encode()[-3:]) % 10**6)] if seed else []
        found: Row = _json([sys.executable, "-m", "bench.postgres_peers", *asked, *seeds])
        return found


def calmest(rounds: Sequence[Row]) -> Row:
    """Each figure from the round in which the machine was least disturbed."""
    row = dict(rounds[0])
    for name, found in rounds[0].items():
        if isinstance(found, dict) and "p50" in found:
            row[name] = min((one[name] for one in rounds), key=lambda spread: float(spread["p50"]))
        elif isinstance(found, float):
            row[name] = min(one[name] for one in rounds)
    row["busiest"] = max(one["read"]["p50"] for one in rounds)
    return row


def _json(command: Sequence[str]) -> Any:
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE.parent)
    return json.loads(done.stdout.strip().splitlines()[-1])


def crowd(stores: Stores) -> list[Row]:
    """All clients through one server and two, and through such that are held back; of each, the best round."""
    ours = Ours(stores, "postgres", *CROWDED)
    ours.fill()
    process = stores.cluster.postmaster()
    assert process is not None
    folder, rounds = stores.place / f"postgres-{CROWDED[0]}-{CROWDED[1]}", list[Row]()
    ways = [(servers, slow) for slow in (False, True) for servers in (1, 2)]
    for _ in range(postgres_clients.ROUNDS):
        for servers, slow in ways:
            rounds.append(told(postgres_clients.through(servers, folder, ours.url(), process.pid, slow=slow)))
    best = []
    for way in ways:
        those = [one for one in rounds if (one["servers"], one["slow"]) == way]
        errors = [error for one in those for error in one["errors"]]
        best.append(max(those, key=lambda one: float(one["rate"])) | {"errors": len(errors), "first": errors[:3]})
    return best


def many_indexes(stores: Stores) -> list[Row]:
    """What partial indexes of other partitions cost those who have nothing to do with them, at the smallest size."""
    folder, rows, there = stores.place / "indexes", list[Row](), 0
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    url = stores.anew("indexes")
    fill(folder, url, 1_000, 1)
    other = "00000000-0000-7000-8000-000000000000"
    with psycopg.connect(url, autocommit=True) as admin:
        for wanted in INDEXES:
            for number in range(there, wanted):
                name = vector_indexes.index_name(other, number, 1)
                admin.execute(sql.vector_index(name, other, number, 1, 384).replace(" CONCURRENTLY", "").encode())
            there = wanted
            command = [sys.executable, "-m", "bench.postgres", "--step", "measure", "--folder", str(folder)]
            found = _json([*command, "--url", url, "--reads", "100", "--seed", str(50 + wanted)])
            rows.append(told({"indexes": wanted, **found}))
    return rows


def run(place: Path, options: argparse.Namespace) -> dict[str, Any]:
    cluster = open_cluster(place / "server")
    cluster.settings = SETTINGS
    cluster.start()
    try:
        stores = Stores(place, cluster, options.reads)
        sizes = [int(size) for size in options.sizes.split(",")]
        measured = [(size, 1) for size in sizes] + ([(MILLION, WORKSPACES)] if options.million else [])
        ours = [Ours(stores, engine, *size) for size in measured for engine in ("postgres", "sqlite")]
        others = [Beside(stores, name, size) for size in sizes for name in LABELS]
        every: list[Ours | Beside] = [*ours, *others]
        for store in every:
            began = time.monotonic()
            store.fill()
            print(f"filled in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        for seed in range(options.rounds):
            for store in every:
                store.measure(seed + int(time.time()) % 10**6)
        return {
            "reads": options.reads,
            "rounds": options.rounds,
            "ours": [store.row() for store in ours],
            "others": [store.row() for store in others],
            "clients": crowd(stores),
            "indexes": many_indexes(stores),
        }
    finally:
        cluster.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--million", action="store_true", help="also a million over a thousand workspaces")
    parser.add_argument("--rounds", type=int, default=3, help="times that everything is measured")
    parser.add_argument("--reads", type=int, default=200, help="at most a third of the thousand questions")
    parser.add_argument("--keep", type=Path, default=None, help="a folder for filled stores, which a rerun takes up")
    parser.add_argument("--results", type=Path, default=None, help="a file whose section on PostgreSQL to write")
    parser.add_argument("--costs", type=Path, default=None, help="a file for the figures, which bench.scale reads")
    parser.add_argument("--step", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step is not None:
        if options.step == "recall":
            print(recall(options.folder, options.url))
        else:
            print(json.dumps(measure(options.folder, options.url, options.reads, options.seed)))
        return
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as passing:
        place = (options.keep or Path(passing)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        found = run(place, options)
    text = report(found)
    print(text)
    if options.costs is not None:
        options.costs.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.results is not None:
        about = (__doc__ or "").split("\n\n")[2].replace("\n", " ")
        settings = ", ".join(f"{name} {value}" for name, value in SETTINGS.items())
        machine = f"{conditions(before)} PostgreSQL has {settings}. {options.reads} reads of each kind in "
        machine += f"{options.rounds} rounds."
        write_section(
            options.results, "postgres", f"## PostgreSQL\n\n`make bench-postgres`. {about} {machine}\n\n{text}"
        )


if __name__ == "__main__":
    main()
