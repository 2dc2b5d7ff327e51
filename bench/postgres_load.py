"""Fill a store for the PostgreSQL bench, on either engine, and say what it holds.

Entries go in with their vectors, a thousand in a transaction, through the store's own `apply`. Many workspaces are
filled one after the other. On PostgreSQL, the job that makes vector indexes runs once at the end, and then a VACUUM, as
autovacuum would run later.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from bench.backends import watching
from bench.load import ASKED, FreeEmbedder, transactions
from bench.made import questions, texts
from lukasa import Lukasa, Workspace

SCHEMA = "lukasa"


class Held(Struct, frozen=True):
    """What was filled: so many entries over so many workspaces, and a question for each turn."""

    entries: int
    workspaces: int
    questions: list[str]
    seconds: float = 0.0  # on the clock, without the indexes for vectors
    indexing: float = 0.0  # on the clock, for these
    sizes: dict[str, int] = {}
    empty: dict[str, int] = {}  # sizes when there were workspaces and no entry

    def worlds(self, memory: Lukasa) -> list[Workspace]:
        return [memory.workspace(f"bench-{number}") for number in range(self.workspaces)]


def held(folder: Path) -> Held:
    return Held(**json.loads((folder / "held.json").read_text()))


def fill(folder: Path, url: str, entries: int, workspaces: int) -> None:
    """Fill a folder, or the database at `url` if there is one; what it holds is noted in the folder in any case."""
    given, embedder, each = texts(entries, 7), FreeEmbedder(), entries // workspaces
    parts = [given[at : at + each] for at in range(0, entries, each)]
    asked = [question for part in parts for question in questions(ASKED // workspaces, part, 11 + len(part[0]))]
    about = Held(entries, workspaces, asked)
    with Lukasa.open(folder / "store", database=url, embedder=embedder) as memory:
        worlds = about.worlds(memory)
        empty = sizes(url)
        began = time.perf_counter()
        for world, part in zip(worlds, parts, strict=True):
            for transaction in transactions([world], part, embedder):
                world.ctx.local.apply(transaction)
        filled = time.perf_counter()
        if url:
            for world in worlds if each >= 5_000 else ():
                world.ctx.local.index_vectors()
        indexed = time.perf_counter()
    if url:
        with watching(url) as backends:
            backends.run("VACUUM ANALYZE")
    about = Held(entries, workspaces, asked, filled - began, indexed - filled, sizes(url), empty)
    (folder / "held.json").write_text(json.dumps(asdict(about)))


def sizes(url: str) -> dict[str, int]:
    if not url:
        return {}
    with watching(url) as backends:
        return backends.sizes(SCHEMA)
