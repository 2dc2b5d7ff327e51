"""What taking memory out, bringing it in and backing it up costs: entries a second.

    python -m bench.move [--entries 20000] [--embedded 2000] [--results bench/RESULTS.md]

A workspace of generated entries, every fifth of them changed once, is exported and brought into new folders. Vectors of
the first measurements are made up, since a model would be all that they measure; the last one embeds with the model.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import backup
from bench.section import write_section
from lukasa import Lukasa, Memo
from lukasa.app import Settings, import_whole, open_export
from tests.fakes import FakeEmbedder

DIMENSIONS = 384
BEGINNINGS = "har cra lan moo gul anc rop kee".split()
WORDS = [f"{begin}{end}" for begin in BEGINNINGS for end in "bour ne tern ring let".split()]
FILES = (
    ("export", "plain.jsonl", False),
    ("export, packed with gzip", "packed.jsonl.gz", False),
    ("export with vectors", "vectors.jsonl", True),
)


def text(number: int, dice: random.Random) -> str:
    return f"Note {number}: the {' '.join(dice.choices(WORDS, k=12))} was seen on day {number % 365}"


def fill(data: Path, count: int) -> None:
    dice = random.Random(7)
    with Lukasa.open(data, embedder=FakeEmbedder(DIMENSIONS)) as memory:
        world = memory.workspace("main")
        for first in range(0, count, 200):
            made = world.put_many("workspace", [Memo(text(n, dice)) for n in range(first, min(first + 200, count))])
            for one in made[::5]:
                world.update(one.id, importance=0.7)


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def whole(data: Path, file: Path) -> None:
    with open_export(file) as found:
        done = import_whole(Settings.resolve(data=data, database="", env={}), found, lambda rows: None)
        assert done is not None


def merged(data: Path, file: Path) -> None:
    with Lukasa.open(data, embedder="none") as memory:
        memory.workspace("main").put("workspace", "Something that is here already")
        memory.import_file(file, into="main")


def embedded(data: Path, file: Path) -> None:
    """Import without vectors, and compute them with the default model."""
    whole(data, file)
    with Lukasa.open(data) as memory:
        while memory.existing("main").backfill(500):
            pass


def measure(folder: Path, count: int, few: int) -> str:
    load = os.getloadavg()[0]
    fill(folder / "data", count)
    fill(folder / "small", few)
    rows: list[tuple[str, int, float, str]] = []

    def note(what: str, of: int, work: Callable[[], object], file: Path | None = None) -> None:
        seconds = timed(work)
        size = f"{file.stat().st_size / 1e6:.1f} MB" if file is not None else ""
        rows.append((what, of, seconds, size))

    with Lukasa.open(folder / "data", embedder="none") as memory:
        for told, name, more in FILES:
            note(told, count, partial(memory.export, folder / name, vectors=more), folder / name)
        memory.export(folder / "main.jsonl", workspace="main")
    with Lukasa.open(folder / "small", embedder="none") as memory:
        memory.export(folder / "small.jsonl")
    note("verify a file", count, lambda: open_export(folder / "plain.jsonl").close())
    note("import into a new folder, without vectors", count, lambda: whole(folder / "a", folder / "plain.jsonl"))
    note("import into a new folder, with vectors", count, lambda: whole(folder / "b", folder / "vectors.jsonl"))
    note("merge into a workspace that is used", count, lambda: merged(folder / "c", folder / "main.jsonl"))
    note("the same file again, which changes nothing", count, lambda: merged(folder / "c", folder / "main.jsonl"))
    if Settings.resolve(data=folder, database="", env={}).embedder_status().available:
        note("import, and embed with the model", few, lambda: embedded(folder / "d", folder / "small.jsonl"))
    backed_up = backup.measure(folder / "data", folder / "backups")
    lines = "\n".join(f"| {what} | {of:,} | {of / seconds:,.0f} | {size} |" for what, of, seconds, size in rows)
    return f"""## Take out and bring in

`make bench-move`: a workspace on SQLite with {count:,} entries of 20 words, every fifth of them changed
once, so with {count + count // 5:,} versions and as many events, and vectors of {DIMENSIONS} dimensions. An import into
a new folder verifies the file, copies every row, compares all rows and checks the copy like `doctor`.
{os.cpu_count()} cores; before it began, {load:.1f} processes wanted one.

| | entries | entries a second | file |
| --- | --- | --- | --- |
{lines}
{backed_up}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("--embedded", type=int, default=2_000)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        told = measure(Path(folder), options.entries, options.embedded)
    print(told)
    if options.results is not None:
        write_section(options.results, "move", told)


if __name__ == "__main__":
    main()
