"""Retrieval quality through the public API: put every turn, read with every question, score the ranking.

    python -m bench.quality DATA [--presets default,workspace] [--embedders auto,none] [--out FOLDER]

DATA is a folder with corpus.jsonl and queries.jsonl in the neutral form that `score.py` beside it reads. Each scope
of the data becomes a workspace, each turn an entry, with the turn's time as the clock's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mnemon import Memo, Mnemon
from mnemon.adapters.embed import open_embedder
from mnemon.adapters.embed.cached import default_cache

BATCH = 50


class TurnClock:
    """The time of the turn being put, then a moment after the last."""

    def __init__(self) -> None:
        self.time = datetime(2020, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


def rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def grouped(items: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    out: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for item in items:
        out[item["scope"]].append(item)
    return out


def run(data: Path, preset: str, setting: str, kind: str, folder: Path) -> Path:
    """One ranking for every question, as `score.py` wants it."""
    corpus, queries = grouped(rows(data / "corpus.jsonl")), grouped(rows(data / "queries.jsonl"))
    clock = TurnClock()
    target = folder / f"{data.name}-{preset}-{setting}.jsonl"
    embedder = open_embedder(setting, default_cache())
    with (
        tempfile.TemporaryDirectory() as place,
        Mnemon.open(place, embedder=embedder or "none", clock=clock) as memory,
        target.open("w", encoding="utf-8") as out,
    ):
        for scope, turns in corpus.items():
            world = memory.workspace(scope, preset=preset)
            known: dict[str, str] = {}
            for at in range(0, len(turns), BATCH):
                batch = turns[at : at + BATCH]
                clock.time = datetime.fromisoformat(batch[-1]["timestamp"]).replace(tzinfo=UTC)
                memos = [Memo(turn["text"], kind=kind, source=turn["speaker"]) for turn in batch]
                for turn, written in zip(batch, world.put_many("workspace", memos), strict=True):
                    known.setdefault(written.id, turn["id"])
            clock.time += timedelta(hours=1)
            for query in queries[scope]:
                hits = world.read(query["text"], tier="workspace", limit=20, count=False)
                out.write(json.dumps({"id": query["id"], "ranked": [known[hit.id] for hit in hits]}) + "\n")
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--presets", default="default,workspace")
    parser.add_argument("--embedders", default="auto,none")
    parser.add_argument("--kind", default="episodic")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    folder = options.out or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    for preset in options.presets.split(","):
        for setting in options.embedders.split(","):
            target = run(options.data, preset, setting, options.kind, folder)
            print(f"\n{options.data.name}: preset {preset}, embedder {setting}")
            score = options.data.parent.parent / "score.py"
            subprocess.run([sys.executable, str(score), str(options.data), str(target)], check=True)


if __name__ == "__main__":
    main()
