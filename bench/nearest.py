"""How many of the nearest real vectors a search finds, by the form that a partition of some size has in memory.

    python -m bench.nearest [--data FOLDER ...] [--vectors FOLDER] [--part 8] [--probed 0.12] [--results FILE]

The texts of all folders are one partition, which is asked all of their questions and compared with an exact scan. Each
form is made of the same vectors, as the index would make it for a partition of the size it is meant for: there are only
some ten thousand real texts here. `--vectors` loads the vectors that `bench.quality` kept. `--part` and `--probed` try
other shares than the index's: one row in so many is compared by its tail, and so many of the lists are probed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from bench.dataset import load
from bench.section import write_section
from bench.speed_report import grid
from bench.vectors import Remembering
from lukasa.index import ann
from lukasa.index.ann import Floats, QuantisedVectors, Sizes
from lukasa.ports import Embedder
from lukasa.providers.embed import open_embedder
from lukasa.providers.embed.cached import default_cache

EVERY = 10**9
LOOKED_FOR = (10, 60)
USUAL = ann.USUAL
FORMS = {
    f"projection, head of {ann.HEAD} (partitions up to {USUAL.lists:,})": Sizes(0, EVERY, EVERY),
    "inverted lists (beyond)": Sizes(0, EVERY, 0),
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


def found(index: QuantisedVectors, queries: Floats, limit: int) -> float:
    """Of so many nearest, the share that a search finds; what is as near as the last of them counts as one of them."""
    vectors = index.floats(slice(None))
    exact = np.concatenate([np.sort(some @ vectors.T, axis=1)[:, -limit] for some in np.array_split(queries, 64)])
    shares = [
        np.count_nonzero(index.search(query, limit, None).cosines >= last - 1e-6) / limit
        for query, last in zip(queries, exact, strict=True)
    ]
    return float(np.mean(shares))


def report(texts: Floats, queries: Floats) -> str:
    numbers = np.arange(len(texts), dtype=np.int64)
    lines = []
    for name, sizes in FORMS.items():
        index = ann.projected(ann.quantised_int16(numbers, numbers, texts), sizes)
        lines.append([name, *(f"{found(index, queries, limit):.3f}" for limit in LOOKED_FOR)])
    return grid(["", *(f"of the {limit} nearest" for limit in LOOKED_FOR)], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", default=[])
    parser.add_argument("--vectors", type=Path, default=None)
    parser.add_argument("--part", type=int, default=ann._RESCORED_SHARE)
    parser.add_argument("--probed", type=float, default=ann._PROBED)
    parser.add_argument("--results", type=Path, default=None)
    options = parser.parse_args()
    inner = open_embedder("default", default_cache())
    if inner is None or not options.data:
        parser.error("name a folder with --data, and pull the model first (`lukasa model pull`)")
    texts, queries = vectors(options.data, inner, options.vectors)
    ann._RESCORED = ann._FEWEST_PROBED = 0  # in partitions as large as these forms are meant for, shares decide
    ann._RESCORED_SHARE, ann._PROBED = options.part, options.probed
    about = (
        f"`make bench-nearest`. {len(texts):,} texts of the quality sets in one partition, {len(queries):,} questions, "
        "the default embedder; each form as for a partition of the size it is meant for. One row in "
        f"{options.part} is compared by its tail; {options.probed:.0%} of the lists are probed."
    )
    text = f"## Nearest, among real vectors\n\n{about}\n\n{report(texts, queries)}"
    print(text)
    if options.results is not None:
        write_section(options.results, "nearest", text)


if __name__ == "__main__":
    main()
