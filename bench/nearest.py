"""How many of the nearest real vectors a search finds, by the form that a room of some size has in memory.

    python -m bench.nearest [--data FOLDER ...] [--vectors FOLDER] [--part 8] [--probed 0.12] [--results FILE]

The texts of all folders in one room, asked with all of their questions, beside an exact product. Each form is made of
the same vectors, as the store would make it if the room were of the size it is meant for: there are no more real texts
here than some ten thousand. `--vectors` takes up what `bench.quality` kept there. `--part` and `--probed` try other
shares than the store's: one row in so many after a first look, and how many of all lists are looked into.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from bench.dataset import load
from bench.section import write_section
from bench.speed_report import grid
from bench.vectors import Remembering
from lukasa.ports import Embedder
from lukasa.providers.embed import open_embedder
from lukasa.providers.embed.cached import default_cache
from lukasa.storage.sqlite import packed
from lukasa.storage.sqlite.packed import Floats, Packed, Sizes

EVERY = 10**9
LOOKED_FOR = (10, 60)
USUAL = packed.USUAL
FORMS = {
    f"a first look at {packed._FIRST} numbers (rooms up to {USUAL.lists:,})": Sizes(0, EVERY, EVERY),
    "lists (beyond)": Sizes(0, EVERY, 0),
}


def unit(rows: Floats) -> Floats:
    norms: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return norms.astype(np.float32)


def vectors(folders: list[Path], inner: Embedder, kept: Path | None) -> tuple[Floats, Floats]:
    """Of all texts, and of all questions."""
    texts, asked = [], []
    for folder in folders:
        embedder, data = Remembering(inner), load(folder)
        if kept is not None:
            embedder.load(kept / f"{folder.name}.npz")
        texts.append(embedder.embed_memories([turn["text"] for turn in data.corpus]))
        asked += [embedder.embed_query(query["text"]) for query in data.queries]
    return unit(np.concatenate(texts)), unit(np.stack(asked))


def found(ctx: Packed, queries: Floats, limit: int) -> float:
    """Of so many nearest, the share that a search finds; what is as near as the last of them counts as one of them."""
    vectors = ctx.floats(slice(None))
    exact = np.concatenate([np.sort(some @ vectors.T, axis=1)[:, -limit] for some in np.array_split(queries, 64)])
    shares = [
        np.count_nonzero(ctx.near(query, limit, None).cosines >= last - 1e-6) / limit
        for query, last in zip(queries, exact, strict=True)
    ]
    return float(np.mean(shares))


def report(texts: Floats, queries: Floats) -> str:
    numbers = np.arange(len(texts), dtype=np.int64)
    lines = []
    for name, sizes in FORMS.items():
        ctx = packed.imaged(packed.paired(numbers, numbers, texts), sizes)
        lines.append([name, *(f"{found(ctx, queries, limit):.3f}" for limit in LOOKED_FOR)])
    return grid(["", *(f"of the {limit} nearest" for limit in LOOKED_FOR)], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", default=[])
    parser.add_argument("--vectors", type=Path, default=None)
    parser.add_argument("--part", type=int, default=packed._PART)
    parser.add_argument("--probed", type=float, default=packed._PROBED)
    parser.add_argument("--results", type=Path, default=None)
    options = parser.parse_args()
    inner = open_embedder("default", default_cache())
    if inner is None or not options.data:
        parser.error("name a folder with --data, and pull the model first (`lukasa model pull`)")
    texts, queries = vectors(options.data, inner, options.vectors)
    packed._AHEAD = packed._FEWEST = 0  # in rooms so large as these forms are meant for, shares decide and not these
    packed._PART, packed._PROBED = options.part, options.probed
    about = (
        f"`make bench-nearest`. {len(texts):,} texts of the quality sets in one ctx, {len(queries):,} questions, the "
        "default embedder; each form as it is for a room of the size it is meant for. The first look keeps one row in "
        f"{options.part}; of all lists {options.probed:.0%} are looked into."
    )
    text = f"## Nearest, among real vectors\n\n{about}\n\n{report(texts, queries)}"
    print(text)
    if options.results is not None:
        write_section(options.results, "nearest", text)


if __name__ == "__main__":
    main()
