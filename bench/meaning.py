"""What a memory decides about a sentence: is it kept word for word, beside others, and is the newer one first?

    python -m bench.meaning [--data FOLDER] [--embedder auto] [--misses] [--results FILE] [--json]

Every sentence or pair has a workspace of its own and goes through the public API, with the default preset and no
language model. The folder holds up to four files, one JSON object a line:

    statements.jsonl  `text` is put on purpose: it must be stored, and stored unchanged
    keeps.jsonl       `a` and `b` are both true: both stay active, and `question_a` and `question_b` each find their own
    speakers.jsonl    `speaker_a` says `a`, `speaker_b` says `b`: both stay active with their speakers
    updates.jsonl     `new` comes after `old`: `question` returns `new` above `old`, and `old` is folded or in history
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.section import write_section
from bench.speed_report import grid
from lukasa import Lukasa, State, Workspace
from lukasa.providers.embed import open_embedder
from lukasa.providers.embed.cached import default_cache
from lukasa.read.rank import Hit

DATA = Path("../shared/bench/data/meaning")
Row = Mapping[str, str]


@dataclass
class Score:
    """Counts over all rows, and the rows that went wrong with the reason."""

    counts: Counter[str] = field(default_factory=Counter)
    misses: list[tuple[str, str]] = field(default_factory=list)

    def count(self, what: str, happened: bool) -> None:
        self.counts[what] += happened

    def wrong(self, what: str, row: Row) -> None:
        self.counts[what] += 1
        self.misses.append((what, row["id"]))


def statement(world: Workspace, row: Row, score: Score) -> None:
    """Put one text on purpose."""
    written = world.put("workspace", row["text"])
    if written.entry is None:
        score.wrong("statements discarded", row)
    elif written.entry.content != row["text"]:
        score.wrong("statements changed", row)
    elif written.entry.state is not State.ACTIVE:
        score.wrong("statements held", row)


def keep(world: Workspace, row: Row, score: Score) -> None:
    """Put two sentences that are both true, and ask for each."""
    _pair(world, row, "keeps", score, ("", ""))


def speakers(world: Workspace, row: Row, score: Score) -> None:
    """Put two speakers' sentences, and ask for each."""
    _pair(world, row, "speakers", score, (row["speaker_a"], row["speaker_b"]))


def _pair(world: Workspace, row: Row, name: str, score: Score, sources: tuple[str, str]) -> None:
    for side, source in zip("ab", sources, strict=True):
        world.put("workspace", row[side], source=source)
    kept = {(entry.content, entry.source) for entry in world.entries("workspace") if entry.state is State.ACTIVE}
    expected = {(row[side], source or "user") for side, source in zip("ab", sources, strict=True)}
    if not expected <= kept:
        score.wrong(f"{name} lost", row)
    for side in "ab":
        score.counts[f"{name} asked"] += 1
        if row[side] not in [hit.content for hit in world.read(row[f"question_{side}"])]:
            score.wrong(f"{name} not found", row)


def update(world: Workspace, row: Row, score: Score) -> None:
    """Put a statement and its update, and ask."""
    old = world.put("workspace", row["old"]).id
    new = world.put("workspace", row["new"]).id
    hits = list(world.read(row["question"]).hits)
    order = [hit.content for hit in hits]
    place = order.index(row["new"]) if row["new"] in order else len(order)
    above = row["new"] in order and row["old"] not in order[:place]
    score.count("updates, new above old", above)
    if not above:
        score.misses.append(("updates, new not above old", row["id"]))
    score.count("updates, old folded", any(_folds(hit, old) for hit in hits if hit.id == new))
    score.count("updates, old retired", world.get(old).state is not State.ACTIVE)
    if row["old"] not in [version.entry.content for version in world.history(old)]:
        score.wrong("updates, old lost from history", row)


def _folds(hit: Hit, id: str) -> bool:
    """Whether an entry is folded under a hit."""
    return id in [earlier.id for earlier in getattr(hit, "earlier", ())]


JUDGES: dict[str, Callable[[Workspace, Row, Score], None]] = {
    "statements": statement,
    "keeps": keep,
    "speakers": speakers,
    "updates": update,
}


def rows(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def measure(folder: Path, *, embedder: Any = "auto") -> Score:
    """Judge every row of the folder's files."""
    score = Score()
    for name, judge in JUDGES.items():
        listed = rows(folder / f"{name}.jsonl")
        score.counts[name] = len(listed)
        with tempfile.TemporaryDirectory() as place, Lukasa.open(place, embedder=embedder) as memory:
            for row in listed:
                judge(memory.workspace(row["id"], preset="default"), row, score)
    return score


def _embedder(setting: str) -> str:
    """The name of the embedder that a setting stands for."""
    found = open_embedder(setting, default_cache())
    return "none" if found is None else found.model.name


def report(score: Score) -> str:
    """The figures as a table: what happened, how often, of how many."""
    of = {
        "statements discarded": "statements",
        "statements changed": "statements",
        "statements held": "statements",
        "keeps lost": "keeps",
        "keeps not found": "keeps asked",
        "speakers lost": "speakers",
        "speakers not found": "speakers asked",
        "updates, new above old": "updates",
        "updates, old folded": "updates",
        "updates, old retired": "updates",
        "updates, old lost from history": "updates",
    }
    return grid(["", "", "of"], [[what, str(score.counts[what]), str(score.counts[all])] for what, all in of.items()])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--misses", action="store_true", help="list the ids of the rows that went wrong")
    parser.add_argument("--results", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if not any((given.data / f"{name}.jsonl").exists() for name in JUDGES):
        parser.error(f"no data set in {given.data}: name its folder with --data")
    score = measure(given.data, embedder=given.embedder)
    if given.json:
        json.dump(score.counts, sys.stdout, indent=2)
        return
    about = (
        "`make bench-meaning`. Each sentence or pair in a workspace of its own, through the public API, default "
        f"preset, no language model, embedder {_embedder(given.embedder)}. The set is half of a larger one; the other "
        "half is held back."
    )
    text = f"## Meaning: what is kept, and what comes first\n\n{about}\n\n{report(score)}"
    print(text)
    if given.misses:
        print("".join(f"\n{what}: {id}" for what, id in score.misses))
    if given.results is not None:
        write_section(given.results, "meaning", text)


if __name__ == "__main__":
    main()
