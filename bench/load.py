"""A store of a given size, filled by handing entries with vectors to the store itself, and kept if asked.

A folder that was filled holds the store, and in `filled.json` what it holds and how fast that went: the same size is
not filled again. A store that another schema filled is refused when it is opened: remove it then.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from bench.made import DIMENSIONS, Table, questions, texts
from lukasa import Lukasa, Workspace
from lukasa.model.entry import Entry
from lukasa.model.ids import new_id
from lukasa.model.values import Curator, Kind, Lifetime, Origin, Trust
from lukasa.ports import Embedder, EmbeddingModel, Vector
from lukasa.storage.operations import Embedding, SaveEntry, Transaction

ASKED = 1_000
BATCH = 1_000


class FreeEmbedder:
    """The port over the seeded table."""

    def __init__(self) -> None:
        self.model = EmbeddingModel("free", DIMENSIONS, "bench")
        self._table = Table()

    def prepare(self, asked: Sequence[str]) -> None:
        self._table.prepare(asked)

    def embed_memories(self, given: Sequence[str]) -> Vector:
        vectors: Vector = self._table.vectors(given)
        return vectors

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._table.vectors([text])[0]
        return vector


class Filled(Struct, frozen=True):
    """What a folder holds: so many entries over so many scopes, and questions about them."""

    entries: int
    scopes: int
    per_second: float
    questions: list[str]

    def handles(self, world: Workspace) -> list[Workspace]:
        """A handle for each scope: workspaces of their own, over one store."""
        info = world.ctx.info
        return [
            world if not n else Workspace(replace(world.ctx, info=replace(info, id=f"{world.id}-{n}")))
            for n in range(self.scopes)
        ]


def fill(folder: Path, entries: int, scopes: int) -> None:
    given = texts(entries, 7)
    fill_with(folder, given, questions(ASKED, given, 11), FreeEmbedder(), scopes)


def fill_with(folder: Path, given: Sequence[str], asked: list[str], embedder: Embedder, scopes: int = 1) -> None:
    filled = Filled(len(given), scopes, 0.0, asked)
    with Lukasa.open(folder / "store", embedder=embedder) as memory:
        started = time.process_time()
        for transaction in transactions(filled.handles(memory.workspace("bench")), given, embedder):
            memory.workspace("bench").ctx.local.apply(transaction)
        spent = time.process_time() - started
    (folder / "filled.json").write_text(json.dumps(asdict(replace(filled, per_second=len(given) / spent))))


def filled(folder: Path) -> Filled:
    return Filled(**json.loads((folder / "filled.json").read_text()))


def transactions(handles: Sequence[Workspace], given: Sequence[str], embedder: Embedder) -> Iterator[Transaction]:
    ctx = handles[0].ctx
    places = [handle.ctx.scope("workspace") for handle in handles]
    origin = Origin("bench", "library", "in-process", Trust.AUTHOR)
    for at in range(0, len(given), BATCH):
        batch, now = given[at : at + BATCH], ctx.now
        operations = [
            SaveEntry(
                Entry(
                    id=new_id(),
                    scope=places[(at + i) % len(places)],
                    content=text,
                    kind=Kind.EPISODIC if i % 2 else Kind.SEMANTIC,
                    lifetime=Lifetime.LONG_TERM,
                    curator=Curator.AUTHOR,
                    source="user",
                    importance=0.5,
                    origin=origin,
                    trust=Trust.AUTHOR,
                    created_at=now,
                    updated_at=now,
                    confirmed_at=now,
                ),
                0,
                "entry.put",
                "bench",
                (),
                Embedding(embedder.model, vector),
            )
            for i, (text, vector) in enumerate(zip(batch, embedder.embed_memories(batch), strict=True))
        ]
        yield Transaction(ctx.actor, now, tuple(operations))
