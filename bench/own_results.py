"""Retrieval on our own sets: a diary, notes, exact tokens, other languages, and questions over two facts.

    python -m bench.own_results [--facts FOLDER] [--vectors FOLDER] [--results FILE]

The sets of `bench.own_sets` are made from seeds, so every run has the same; the chains of `bench.chains` take the facts
of FactConsolidation. Each is put and read through the public API with the default model, and with the one for other
languages beside it. Bare FTS5, the vectors alone and their plain rank fusion (k = 60) search the same texts.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from bench.chains import chains
from bench.dataset import Dataset, halves, load
from bench.own_sets import SETS
from bench.peers import Data, fts5
from bench.quality import conditions, table
from bench.recall import LIMIT, Ranking, Recipe, ranking
from bench.scoring import Row, score, score_one
from bench.section import write_section
from bench.vectors import Remembering
from lukasa.providers.embed import open_embedder, open_second
from lukasa.providers.embed.cached import default_cache

COLUMNS = ("hit@1", "recall@5", "recall@10", "nDCG@10", "MRR")
FACTS = ("factconsolidation_sh_6k", "factconsolidation_sh_32k")  # the larger scopes take hours on a shared machine
DRAWS = 2_000
ABOUT = """Sets of our own, none a conversation and none published: `bench/own_sets.py` makes them from seeds, and
its notes, passages and facts in other languages were written for it. Weights and thresholds were chosen on the even
scopes; the tables have the odd ones, whose figures decided nothing but were seen meanwhile. The chains are built over
the facts of FactConsolidation, whose own questions are over one fact each in our data: chosen on the scope of 6k
tokens, told of that of 32k. Bare FTS5, vectors and plain rank fusion (k = 60) search the same texts with the vectors of
the default model. They know no times."""


def plain(data: Dataset, embedder: Remembering) -> dict[str, Ranking]:
    """The rankings of bare FTS5, of the vectors alone, and of both by rank fusion."""
    given = Data.__new__(Data)
    given.corpus = {scope: data.turns(scope) for scope in data.scopes}
    given.queries = {scope: data.asked(scope) for scope in data.scopes}
    words = dict(fts5(given))
    meaning: Ranking = {}
    for scope in data.scopes:
        turns = data.turns(scope)
        vectors = embedder.embed_memories([turn["text"] for turn in turns])
        for query in data.asked(scope):
            order = np.argsort(-(vectors @ embedder.embed_query(query["text"])))[: 5 * LIMIT]
            meaning[query["id"]] = [turns[at]["id"] for at in order.tolist()]
    fused = {id: _fused([words[id], meaning[id]]) for id in words}
    return {"bare FTS5, porter": words, "vectors alone": meaning, "plain rank fusion": fused}


def _fused(rankings: Sequence[Sequence[str]]) -> list[str]:
    totals: dict[str, float] = {}
    for ranked in rankings:
        for place, id in enumerate(ranked, 1):
            totals[id] = totals.get(id, 0.0) + 1 / (60 + place)
    return sorted(totals, key=lambda id: -totals[id])[:LIMIT]


def difference(data: Dataset, ours: Ranking, theirs: Ranking) -> str:
    """The mean difference of recall@10 with its 95 % interval, by a paired bootstrap over the questions."""
    each = [
        score_one(ours.get(q["id"], ()), q["evidence"])["recall@10"]
        - score_one(theirs.get(q["id"], ()), q["evidence"])["recall@10"]
        for q in data.queries
    ]
    rng = random.Random(29)
    means = sorted(sum(rng.choices(each, k=len(each))) / len(each) for _ in range(DRAWS))
    low, high = means[DRAWS // 40], means[-DRAWS // 40]
    return f"{sum(each) / len(each):+.3f} ({low:+.3f} to {high:+.3f})"


def scored(data: Dataset, found: Ranking) -> dict[str, Row]:
    """Scores by category; hit@1 says that the first result is evidence."""
    by_category = score(data.queries, found)
    for category, row in by_category.items():
        asked = [q for q in data.queries if category in (q["category"], "ALL")]
        row["hit@1"] = sum(bool({*found.get(q["id"], [])[:1]} & {*q["evidence"]}) for q in asked) / len(asked)
    return by_category


def found(data: Dataset, kind: str | None, vectors: Path | None) -> dict[str, Ranking]:
    """What every way finds. Vectors are taken up from a folder and kept there, if it is named."""
    inner, other = open_embedder("default", default_cache()), open_second("default", default_cache())
    if inner is None:
        raise SystemExit("pull the model first (`lukasa model pull`)")
    embedder, second = Remembering(inner), None if other is None else Remembering(other)
    if vectors is not None:
        embedder.load(vectors / f"{data.name}.npz")
        if second is not None:
            second.load(vectors / f"{data.name}-second.npz")
    print(data.name, file=sys.stderr, flush=True)
    return {
        **plain(data, embedder),
        "Lukasa without a model": ranking(data, Recipe("", kind=kind, model=False), embedder),
        "Lukasa": ranking(data, Recipe("", kind=kind), embedder, second=second),
    }


def told(name: str, data: Dataset, rankings: dict[str, Ranking]) -> Iterator[str]:
    """The table of one set, or of a part of it: of the scopes that nothing was chosen on."""
    kept = data.of(halves(data)["held out"])
    rows = {way: scored(kept, ranked)["ALL"] for way, ranked in rankings.items()}
    yield from ("", f"**{name}**, {len(kept.queries)} questions:", "", *table(rows, COLUMNS))
    better = difference(kept, rankings["Lukasa"], rankings["plain rank fusion"])
    yield from ("", f"Lukasa against plain rank fusion, recall@10: {better}.")
    categories = {f"{c} ({row['n']:.0f})": row for c, row in scored(kept, rankings["Lukasa"]).items() if c != "ALL"}
    if len(categories) > 1:
        yield from ("", "Lukasa by category:", "", *table(categories, COLUMNS))


def over_facts(folder: Path, vectors: Path | None) -> Iterator[str]:
    """Questions over one fact and over two, of the same facts."""
    facts = load(folder)
    few = facts.of([scope for scope in facts.scopes if scope in FACTS])
    two = chains(few, 100)
    both = Dataset(folder.name, few.corpus, (*few.queries, *two.queries))
    rankings = found(both, "semantic", vectors)
    yield from told("one fact (FactConsolidation)", few, rankings)
    yield from told("two hops (chains over its facts)", two, rankings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=Path, default=None)
    parser.add_argument("--vectors", type=Path, default=None)
    parser.add_argument("--results", type=Path, default=None)
    options = parser.parse_args()
    lines: list[str] = []
    for name, make in SETS.items():
        data = make()
        lines += told(name, data, found(data, "episodic" if name == "diary" else None, options.vectors))
    if options.facts is not None:
        lines += over_facts(options.facts, options.vectors)
    text = "\n".join(["## Our own sets", "", ABOUT, "", conditions(None), *lines])
    print(text)
    if options.results is not None:
        write_section(options.results, "own sets", text)


if __name__ == "__main__":
    main()
