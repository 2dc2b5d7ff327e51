"""Benchmark data in a neutral form, and its halves.

    corpus.jsonl   {id, scope, session_id, timestamp, speaker, text}        one memory for each turn
    queries.jsonl  {id, scope, text, evidence: [ids], category, as_of?, stale?: [ids]}

`as_of` is when a question is asked: what came later is not known then, and "last week" counts from there.

Real data has holes in it, and every store is given what can be remembered of it: no turn without words, no more of one
than a memory may hold, and where no speaker or no time is told, a user and the time of the turn before.

Weights were chosen on the even scopes (in the order of the file, from 0) and are reported on the odd ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

Turn = dict[str, Any]
LONGEST, LONGEST_NAME = 20_000, 200  # characters of a turn or a question, and of who speaks
SPEAKER = "user"
BEGINNING = "2020-01-01T00:00:00"


@dataclass(frozen=True, slots=True)
class Dataset:
    name: str
    corpus: tuple[Turn, ...]
    queries: tuple[Turn, ...]

    @property
    def scopes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(turn["scope"] for turn in self.corpus))

    def turns(self, scope: str) -> list[Turn]:
        return [turn for turn in self.corpus if turn["scope"] == scope]

    def sessions(self, scope: str) -> list[list[Turn]]:
        return [list(turns) for _, turns in groupby(self.turns(scope), key=lambda turn: turn["session_id"])]

    def asked(self, scope: str) -> list[Turn]:
        return [query for query in self.queries if query["scope"] == scope]

    def of(self, scopes: Iterable[str]) -> Dataset:
        kept = set(scopes)
        return Dataset(
            self.name,
            tuple(turn for turn in self.corpus if turn["scope"] in kept),
            tuple(query for query in self.queries if query["scope"] in kept),
        )

    def save(self, folder: Path) -> None:
        """As `load` reads it."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, kept in (("corpus.jsonl", self.corpus), ("queries.jsonl", self.queries)):
            (folder / name).write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")


def load(folder: Path) -> Dataset:
    queries = tuple(query for query in map(_cleaned, rows(folder / "queries.jsonl")) if query["text"])
    return Dataset(folder.name, tuple(_turns(rows(folder / "corpus.jsonl"))), queries)


def _turns(given: Iterable[Turn]) -> Iterator[Turn]:
    time = BEGINNING
    for turn in map(_cleaned, given):
        time = turn.get("timestamp") or time
        if turn["text"]:
            speaker = " ".join(_clean(turn.get("speaker") or "").split())[:LONGEST_NAME].strip() or SPEAKER
            yield turn | {"timestamp": time, "speaker": speaker, "session_id": turn.get("session_id") or turn["scope"]}


def _cleaned(row: Turn) -> Turn:
    return row | {"text": _clean(row["text"] or "")}


def _clean(text: str) -> str:
    """Text that every store takes."""
    return text.replace("\0", " ").encode(errors="replace").decode().strip()[:LONGEST].strip()


def rows(path: Path) -> list[Turn]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def halves(data: Dataset) -> dict[str, tuple[str, ...]]:
    """Scopes by what they were used for: `tuned` and `held out`."""
    return {"tuned": data.scopes[0::2], "held out": data.scopes[1::2]}
