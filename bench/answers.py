"""Answers: how many questions without an answer are told from those with one, and how much of a set is gathered.

    python -m bench.answers [--talks FOLDER] [--facts FOLDER] [--results FILE]

**Nothing is an answer.** Each question is asked twice through the public API: as memory is, and with its evidence
forgotten. At the confidence below which 5 % of the answerable questions fall, the table says how many of the others
fall too. The coefficients of `read/confidence.py` were fitted on the even half of each set; the odd half is told.

**All of it.** Questions that want a set, a sequence or a summary, by the product's own rule, and have two or more turns
of evidence: the share of the evidence among the first 20 of a ranking, and in what `gather` returns for a budget.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bench import offline
from bench.dataset import Dataset, halves, load
from bench.quality import TALK_RECIPES
from bench.recall import Recipe, TurnClock, at_once, ranking, told
from bench.section import write_section
from bench.vectors import Remembering
from lukasa import Lukasa, Workspace
from lukasa.ports import Embedder
from lukasa.providers.embed import open_embedder
from lukasa.providers.embed.cached import default_cache
from lukasa.read.coverage import wanted_coverage

MOST = 200  # questions of a scope: each costs three writes that reach the disk
FACT_SCOPE = 1  # of the fact sets: the second, the first was fitted on
BUDGETS = (500, 1_000, 2_000)
BINS = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """The confidence of one question with its evidence, if it has any, and without."""

    answerable: float | None
    unanswerable: float


@dataclass(frozen=True, slots=True)
class Told:
    """Of the questions of a set: the threshold that keeps 95 % of the answerable ones, and what it tells apart."""

    name: str
    asked: Sequence[Asked]

    @property
    def answerable(self) -> list[float]:
        return [one.answerable for one in self.asked if one.answerable is not None]

    @property
    def unanswerable(self) -> list[float]:
        return [one.unanswerable for one in self.asked]

    def said_so(self, kept: float = 0.95) -> float:
        """The share of unanswerable questions below the threshold that keeps this share of the answerable ones."""
        ordered = sorted(self.answerable)
        threshold = ordered[int((1 - kept) * len(ordered))]
        return sum(value < threshold for value in self.unanswerable) / len(self.unanswerable)

    def by_floor(self, floor: float) -> tuple[float, float]:
        """The shares of answerable and of unanswerable questions below a floor."""
        return (
            sum(value < floor for value in self.answerable) / len(self.answerable),
            sum(value < floor for value in self.unanswerable) / len(self.unanswerable),
        )


@contextmanager
def filled(
    data: Dataset, recipe: Recipe, embedder: Embedder
) -> Iterator[Iterator[tuple[Workspace, str, dict[str, str]]]]:
    """Yield the workspaces of the scopes, each with the ids of its entries by the ids of the set."""
    clock = TurnClock()

    def worlds(memory: Lukasa) -> Iterator[tuple[Workspace, str, dict[str, str]]]:
        for scope in data.scopes:
            world, known = memory.workspace(scope, spec=recipe.spec()), dict[str, str]()
            for session in data.sessions(scope):
                talk = world.at(conversation=world.start().id)
                for turns in at_once(session):
                    clock.time = told(turns[-1]["timestamp"])
                    written = talk.put_many("workspace", [recipe.memo(turn) for turn in turns])
                    known |= {turn["id"]: one.id for turn, one in zip(turns, written, strict=True)}
            clock.time += timedelta(hours=1)
            yield world, scope, known

    with tempfile.TemporaryDirectory() as place, Lukasa.open(place, embedder=embedder, clock=clock) as memory:
        yield worlds(memory)


def without_evidence(world: Workspace, question: str, evidence: Sequence[str]) -> Asked:
    """Ask, forget the evidence, ask again, and bring it back."""
    sure = world.read(question, tier="workspace", count=False).confidence
    for id in evidence:
        world.forget(id)
    unsure = world.read(question, tier="workspace", count=False).confidence
    for id in evidence:
        world.restore(id)
    return Asked(sure, unsure or 0.0)


def of_set(name: str, data: Dataset, recipe: Recipe, embedder: Embedder) -> Told:
    asked = []
    with filled(data, recipe, embedder) as worlds:
        for world, scope, known in worlds:
            for query in data.asked(scope)[:MOST]:
                gone = [known[id] for id in dict.fromkeys([*query["evidence"], *query.get("stale", ())]) if id in known]
                asked.append(without_evidence(world, query["text"], list(dict.fromkeys(gone))))
    return Told(name, asked)


def of_own(embedder: Embedder) -> Told:
    """Facts of one person: questions in other words, and questions that no fact answers; those with an odd number."""
    asked = []
    with tempfile.TemporaryDirectory() as place, Lukasa.open(place, embedder=embedder) as memory:
        world = memory.workspace()
        for fact in offline.FACTS.values():
            world.put("workspace", fact)
        for question in [*offline.ANSWERED][1::2]:
            asked.append(Asked(world.read(question, count=False).confidence, 0.0))
        for question in offline.UNANSWERED[1::2]:
            asked.append(Asked(None, world.read(question, count=False).confidence or 0.0))
    return Told("facts of one person, in other words", asked)


def reliability(told: Sequence[Told]) -> Iterator[str]:
    """Yield a row for each step of confidence: how often a question of it had its answer in memory."""
    rows = [(one, True) for each in told for one in each.answerable]
    rows += [(one, False) for each in told for one in each.unanswerable]
    for step in range(BINS):
        low, high = step / BINS, (step + 1) / BINS
        here = [right for sure, right in rows if low <= sure < high or (high == 1 and sure == 1)]
        if here:
            share = sum(here) / len(here)
            yield f"| {low:.1f} to {high:.1f} | {len(here)} | {share:.2f} | {'█' * round(20 * share)} |"


def coverage(data: Dataset, embedder: Embedder) -> Iterator[str]:
    """Yield a row for each way: the share of the evidence of questions that want all of something."""
    asked = [q for q in data.queries if wanted_coverage(q["text"]) and len(set(q["evidence"])) > 1]
    few = Dataset(data.name, data.corpus, tuple(asked))
    for recipe in TALK_RECIPES:
        if not recipe.alone and recipe.kind is not None:
            found = ranking(few, recipe, embedder)
            share = sum(len({*found[q["id"]][:20]} & {*q["evidence"]}) / len({*q["evidence"]}) for q in asked) / len(
                asked
            )
            yield f"| {recipe.name}, 20 hits | {share:.3f} | |"
    with filled(few, Recipe("Lukasa"), embedder) as worlds:
        got: dict[int, list[tuple[float, int]]] = {budget: [] for budget in BUDGETS}
        for world, scope, known in worlds:
            for query in few.asked(scope):
                wanted = {known[id] for id in query["evidence"] if id in known}
                for budget in BUDGETS:
                    gathered = world.gather(query["text"], tier="workspace", budget=budget)
                    here = {id for hit in gathered.hits for id in (hit.id, *(one.id for one in hit.earlier))}
                    got[budget].append((len(wanted & here) / len(wanted), len(here)))
    for budget, pairs in got.items():
        share, size = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
        yield f"| gather, {budget:,} tokens | {share:.3f} | {size:.0f} |"
    yield f"\n{len(asked)} questions."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--talks", type=Path)
    parser.add_argument("--facts", type=Path)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    opened = open_embedder("auto", default_cache())
    if opened is None:
        raise SystemExit("no embedding model; `lukasa model pull` fetches it")
    embedder = Remembering(opened)
    sets = [of_own(embedder)]
    rows: list[str] = []
    if given.facts:
        facts = load(given.facts)
        sets.append(
            of_set(
                "facts that override each other", facts.of([facts.scopes[FACT_SCOPE]]), Recipe("", kind=None), embedder
            )
        )
    if given.talks:
        talks = load(given.talks)
        held = talks.of(halves(talks)["held out"])
        sets.append(of_set("turns of conversations", held, Recipe(""), embedder))
        rows = list(coverage(held, embedder))
    body = [
        "## Nothing is an answer, and all of it",
        "",
        "Each question with its evidence in memory and with it forgotten, on scopes that nothing was fitted on.",
        "",
        "| set | answerable | unanswerable | say so at 95 % kept | below 0.12: answerable, unanswerable |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {one.name} | {len(one.answerable)} | {len(one.unanswerable)} | {one.said_so():.2f} "
            f"| {one.by_floor(0.12)[0]:.2f}, {one.by_floor(0.12)[1]:.2f} |"
            for one in sets
        ),
        "",
        "How often a question had its answer in memory, by the confidence of the read:",
        "",
        "| confidence | questions | had an answer | |",
        "| --- | ---: | ---: | --- |",
        *reliability(sets),
    ]
    if rows:
        body += ["", "Questions that want all of something: the share of their evidence that is returned.", ""]
        body += ["| way | share of the evidence | entries |", "| --- | ---: | ---: |", *rows]
    print("\n".join(body))
    if given.results:
        write_section(given.results, "answers", "\n".join(body))


if __name__ == "__main__":
    main()
