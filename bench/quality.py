"""Retrieval quality through the public API: put every turn, read with every question, score the ranking.

    python -m bench.quality [--talks FOLDER] [--unseen FOLDER] [--facts FOLDER]
                            [--peers PYTHON] [--vectors FOLDER] [--results FILE] [--store postgres]

A folder has corpus.jsonl and queries.jsonl in the neutral form of `bench/dataset.py`. `--talks` is conversations whose
turns are remembered as episodes, told by category on the half that no weight was chosen on; `--unseen` is conversations
of which none was looked at for that, told as a whole. `--facts` is facts of which later ones override earlier ones,
remembered as such with rivals off and on. `--peers` is the interpreter of an environment with
`requirements-peers.txt`; `--vectors` keeps vectors between runs. `--store postgres` compares the engines instead: the
same conversations, the half that was held out of `--talks`, on SQLite and on a PostgreSQL that it starts. The figures
of each folder go to a section of their own in `--results`.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from bench.dataset import Dataset, halves, load, rows
from bench.recall import Ranking, Recipe, ranking
from bench.scoring import Row, score
from bench.section import write_section
from bench.vectors import Remembering
from lukasa.model import ids
from lukasa.providers.embed import open_embedder, open_second
from lukasa.providers.embed.cached import default_cache
from tools.cluster import open_cluster

COLUMNS = ("recall@5", "recall@10", "recall@20", "hit@10", "nDCG@10", "MRR")
FACT_COLUMNS = ("recall@10", "plain recall@10", "MRR", "fresh_first")
SAME = """One memory for each turn or fact, put and read through the public API of each store, 20 results a question,
inside its conversation. All vectors are of snowflake-arctic-embed-s (int8), the same for every store; Lukasa has those
of its model for other languages beside them, if that was pulled. Nothing is
drawn, so there is no seed; but ids are random and decide between equals, so that runs differ in the third place."""
ABOUT_TALKS = """Weights were fitted on the even conversations (in the order of the file, from 0) and then rounded; the
odd ones are held out of that, but their figures were seen while signals were being chosen."""
ABOUT_UNSEEN = "None of these conversations was looked at when signals and weights were chosen."
ABOUT_ROWS = """The rows of keyword, vector and rank fusion are Lukasa's signals on their own; where words are among
them, speakers' names are left out of the question. Peers are given it as it is. Where each turn is given as
"Name: text" alone, no conversation, kind, source or time is told, and all are put one after the other."""
ABOUT_ENGINES = """Of conversations on whose halves weights were fitted, the half that was held out. Both engines got
the same memories and the same vectors, and ids in the order of making: between equals, they decide alike here."""
TITLES = {"engines": "quality by engine"}
ABOUT_FACTS = """Facts of which later ones override earlier ones, in the order they were told. `fresh_first`: the
current fact stands above every stale one. Entries that are folded under a hit count right after it. Plain recall is
that of the questions whose fact was never overridden."""
OURS, WITHOUT = Recipe("Lukasa"), Recipe("Lukasa without a model", model=False)
TALK_RECIPES = (
    Recipe(
        "keyword only (BM25)", retrieval=(("signals", '["keyword"]'), ("weights", "{ keyword = 1.0 }")), model=False
    ),
    Recipe("vector only", retrieval=(("signals", '["vector"]'), ("weights", "{ vector = 1.0 }"))),
    Recipe(
        "plain rank fusion, k = 60",
        retrieval=(
            ("signals", '["keyword", "vector"]'),
            ("weights", "{ keyword = 1.0, vector = 1.0 }"),
            ("fusion", '"rrf"'),
        ),
    ),
    Recipe("Lukasa, no kind given", kind=None),
    Recipe('Lukasa, given "Name: text" alone', alone=True),
    WITHOUT,
    OURS,
)
KEEP_BOTH = """
[behaviour.conflict.workspace.semantic]
rule = "noop"
reason = "Measured: what ranking alone can do."
"""
FACT_RECIPES = (
    Recipe("rivals off, without a model", model=False, kind="semantic", more=KEEP_BOTH),
    Recipe("rivals on, without a model", model=False, kind="semantic"),
    Recipe("rivals off", kind="semantic", more=KEEP_BOTH),
    Recipe("rivals on", kind="semantic"),
)
PEERS = {"fts5": "bare FTS5, porter", "chroma": "Chroma", "langgraph": "LangGraph SqliteStore"}


def peer(name: str, python: str, folder: Path, vectors: Path, place: Path) -> Ranking:
    """A peer's ranking; empty if it cannot be run here, which it says itself on stderr."""
    target = place / f"{name}.jsonl"
    script = Path(__file__).with_name("peers.py")
    done = subprocess.run([python, str(script), name, str(folder), str(vectors), str(target)], check=False)
    if done.returncode:
        return {}
    return {row["id"]: row["ranked"] for row in rows(target)}


def talks(data: Dataset, embedder: Remembering, python: str | None, place: Path) -> dict[str, Ranking]:
    """What each recipe and each peer finds."""
    rankings = {}
    other = open_second("default", default_cache())
    second = Remembering(other) if other is not None else None
    for recipe in TALK_RECIPES:
        print(f"{data.name}: {recipe.name}", file=sys.stderr, flush=True)
        rankings[recipe.name] = ranking(data, recipe, embedder, second=second)
    if python is not None:
        for query in data.queries:
            embedder.embed_query(query["text"])  # peers are given the whole question, and every turn
        embedder.embed_memories([turn["text"] for turn in data.corpus])
        embedder.save(place / "vectors.npz")
        data.save(place / data.name)
        for name, label in PEERS.items():
            print(f"{data.name}: {label}", file=sys.stderr, flush=True)
            found = peer(name, python, place / data.name, place / "vectors.npz", place)
            rankings |= {label: found} if found else {}
    return rankings


def engines(data: Dataset, embedder: Remembering, database: str) -> list[str]:
    """The same conversations in SQLite and in PostgreSQL: the ranking should not tell which."""
    scored: dict[str, Row] = {}
    for recipe in (OURS, WITHOUT):
        for name, url in (("SQLite", ""), ("PostgreSQL", database)):
            label = f"{recipe.name}, {name}"
            print(f"{data.name}: {label}", file=sys.stderr, flush=True)
            with ids_in_order():
                scored[label] = score(data.queries, ranking(data, recipe, embedder, url))["ALL"]
    many = f"{len(data.queries):,} questions of {len(data.scopes)} conversations:"
    return ["", many, "", *table(scored, COLUMNS)]


@contextmanager
def ids_in_order() -> Iterator[None]:
    """Let ids follow one another as they are made, so that they decide alike between equals in another run."""
    ticks = count(1)
    clock = SimpleNamespace(time_ns=lambda: 1_800_000_000_000_000_000 + next(ticks) * 1_000_000)
    with patch.object(ids, "time", clock):
        yield


def halves_told(data: Dataset, rankings: Mapping[str, Ranking]) -> list[str]:
    lines = []
    for half, scopes in halves(data).items():
        lines += _told(f"The half that was {half}", data.of(scopes), rankings)
    return lines + _by_category("on the half that was held out", data.of(halves(data)["held out"]), rankings)


def whole_told(data: Dataset, rankings: Mapping[str, Ranking]) -> list[str]:
    return _told("All of them", data, rankings) + _by_category("all of them", data, rankings)


def _told(which: str, data: Dataset, rankings: Mapping[str, Ranking]) -> list[str]:
    scored = {name: score(data.queries, found)["ALL"] for name, found in rankings.items()}
    many = f"{len(data.queries):,} questions of {len(data.scopes)} conversations"
    return ["", f"{which} ({many}):", "", *table(scored, COLUMNS)]


def _by_category(which: str, data: Dataset, rankings: Mapping[str, Ranking]) -> list[str]:
    lines = []
    for recipe in (OURS, WITHOUT):
        by_category = score(data.queries, rankings[recipe.name])
        named = {f"{c} ({row['n']:.0f})": row for c, row in sorted(by_category.items()) if c != "ALL"}
        lines += ["", f"{recipe.name} by category, {which}:", "", *table(named, COLUMNS)]
    return lines


def facts(data: Dataset, embedder: Remembering) -> list[str]:
    found: dict[str, Row] = {}
    for recipe in FACT_RECIPES:
        print(f"{data.name}: {recipe.name}", file=sys.stderr, flush=True)
        scored = score(data.queries, ranking(data, recipe, embedder))
        found[recipe.name] = scored["ALL"] | {"plain recall@10": scored.get("plain", {}).get("recall@10", 0.0)}
        print(table({recipe.name: found[recipe.name]}, FACT_COLUMNS)[-1], file=sys.stderr, flush=True)
    asked = sum(bool(query.get("stale")) for query in data.queries)
    told = f"{len(data.corpus):,} facts, {len(data.queries)} questions, {asked} of them with a stale fact:"
    asked_for = "| asked for | | at least 0.985 | | at least 0.970 |"
    return ["", told, "", *table(found, FACT_COLUMNS), asked_for]


@contextmanager
def a_postgres(folder: Path) -> Iterator[str]:
    """Give the URL of a PostgreSQL server that runs meanwhile."""
    cluster = open_cluster(folder, removed=True)
    cluster.start()
    try:
        yield cluster.url()
    finally:
        cluster.remove()


def table(scored: Mapping[str, Row], columns: Sequence[str]) -> list[str]:
    lines = ["| | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    return lines + [
        f"| {name} | " + " | ".join(f"{row[c]:.3f}" if c in row else "" for c in columns) + " |"
        for name, row in scored.items()
    ]


def conditions(python: str | None) -> str:
    ours = {name: version(name) for name in ("lukasa", "apsw", "numpy", "onnxruntime")}
    theirs = {}
    if python is not None:
        freeze = subprocess.run([python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True).stdout
        wanted = r"^(chromadb|langgraph-checkpoint-sqlite|sqlite-vec)==(.+)$"
        theirs = dict(re.findall(wanted, freeze, re.MULTILINE))
    listed = ", ".join(f"{name} {number}" for name, number in {**ours, **theirs}.items())
    return f"Python {platform.python_version()}, {platform.machine()}, {listed}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--talks", type=Path, action="append", default=[])
    parser.add_argument("--unseen", type=Path, action="append", default=[])
    parser.add_argument("--facts", type=Path, action="append", default=[])
    parser.add_argument("--peers", default=None)
    parser.add_argument("--vectors", type=Path, default=None)
    parser.add_argument("--results", type=Path, default=None)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    options = parser.parse_args()
    inner = open_embedder("default", default_cache())
    sorts = {sort: getattr(options, sort) for sort in ("talks", "unseen", "facts")}
    if inner is None or not any(sorts.values()):
        parser.error("name a folder with --talks, --unseen or --facts, and pull the model first (`lukasa model pull`)")
    machine = conditions(options.peers)
    with tempfile.TemporaryDirectory() as place:
        for folder, sort in [(folder, sort) for sort, folders in sorts.items() for folder in folders]:
            embedder = Remembering(inner)
            kept = options.vectors / f"{folder.name}.npz" if options.vectors else None
            if kept is not None:
                embedder.load(kept)
            data = load(folder)
            if options.store == "postgres":
                sort = "engines"
                held_out = data.of(halves(data)["held out"]) if folder in options.talks else data
                with a_postgres(Path(place) / "postgres") as database:
                    about, lines = ABOUT_ENGINES, engines(held_out, embedder, database)
            elif sort == "facts":
                about, lines = ABOUT_FACTS, facts(data, embedder)
            else:
                rankings = talks(data, embedder, options.peers, Path(place))
                halved = sort == "talks"
                about = f"{ABOUT_TALKS if halved else ABOUT_UNSEEN}\n{ABOUT_ROWS}"
                lines = (halves_told if halved else whole_told)(data, rankings)
            title = TITLES.get(sort, "quality")
            text = "\n".join([f"## {title.capitalize()}: {folder.name}", "", SAME, about, "", machine, *lines])
            print(text)
            if options.results is not None:
                write_section(options.results, f"{title} {folder.name}", text)
            if kept is not None:
                kept.parent.mkdir(parents=True, exist_ok=True)
                embedder.save(kept)


if __name__ == "__main__":
    main()
