"""Benchmark data in a neutral form, and its halves.

    corpus.jsonl   {id, scope, session_id, timestamp, speaker, text}        one memory for each turn
    queries.jsonl  {id, scope, text, evidence: [ids], category, stale?: [ids]}

Weights were chosen on the even scopes (in the order of the file, from 0) and are reported on the odd ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

Turn = dict[str, Any]


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


def load(folder: Path) -> Dataset:
    return Dataset(folder.name, tuple(rows(folder / "corpus.jsonl")), tuple(rows(folder / "queries.jsonl")))


def rows(path: Path) -> list[Turn]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def halves(data: Dataset) -> dict[str, tuple[str, ...]]:
    """Scopes by what they were used for: `tuned` and `held out`."""
    return {"tuned": data.scopes[0::2], "held out": data.scopes[1::2]}
