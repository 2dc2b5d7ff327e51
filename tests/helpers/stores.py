"""Values for tests of stores: entries, transactions, vectors. Deterministic unless told otherwise."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from msgspec.structs import replace

from lukasa.model.conversation import Channel, Conversation
from lukasa.model.entry import Document, Entry, NamedEntry, Scope
from lukasa.model.events import Actor
from lukasa.model.ids import new_id
from lukasa.model.selection import Selection
from lukasa.model.values import Curator, Kind, Lifetime, Origin, State, Trust
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage.operations import Embedding, Operation, SaveEntry, Transaction
from lukasa.storage.port import Store

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
ACTOR = Actor("ada", "library", "local")
WORK = Scope("workspace", (("workspace", "w1"),))
ROOM = Scope("channel", (("workspace", "w1"), ("channel", "c1")))
MODEL = EmbeddingModel("toy", 4, "d1")
OTHER_MODEL = EmbeddingModel("toy", 4, "d2")
OPEN = Selection((WORK,))


class Cosine(float):
    """Equal to another in the digits that do not depend on the form that vectors have in memory."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and abs(float(self) - float(other)) < 5e-5

    def __hash__(self) -> int:
        return 0


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def entry(content: str = "the cat sat on the mat", **changes: Any) -> Entry:
    base = Entry(
        id=new_id(),
        scope=WORK,
        content=content,
        kind=Kind.SEMANTIC,
        lifetime=Lifetime.LONG_TERM,
        curator=Curator.AGENT,
        source="user",
        importance=0.5,
        origin=Origin("ada", "library", "local", Trust.AGENT),
        trust=Trust.AGENT,
        created_at=NOW,
        updated_at=NOW,
        confirmed_at=NOW,
    )
    return replace(base, **changes)


def put(e: Entry, vector: Vector | None = None, model: EmbeddingModel = MODEL) -> SaveEntry:
    return SaveEntry(e, 0, "entry.added", "said so", embedding=None if vector is None else Embedding(model, vector))


def change(e: Entry, **changes: Any) -> SaveEntry:
    """The next version of an entry as it was read."""
    return SaveEntry(replace(e, **changes), e.version, "entry.updated", "said otherwise")


def move(e: Entry, state: State) -> SaveEntry:
    return SaveEntry(e.moved(state, at=later(60), cause="test", actor="ada"), e.version, f"entry.{state}", "test")


def commit(store: Store, *operations: Operation) -> None:
    store.apply(Transaction(ACTOR, NOW, operations))


def stored(store: Store, e: Entry) -> Entry:
    return store.entries([e.id])[e.id]


def unit(*numbers: float) -> Vector:
    vector = np.array(numbers, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def vector_of(text: str, dimensions: int = 4) -> Vector:
    """A direction that depends on the text alone."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    return unit(*np.random.default_rng(seed).standard_normal(dimensions))


def named(name: str = "VOICE", body: str = "Speak plainly.", **changes: Any) -> NamedEntry:
    return replace(NamedEntry(name, "workspace", body, NOW, "ada"), **changes)


def document(id: str, body: str = "Two people review.", **changes: Any) -> Document:
    return replace(Document(id, id, body, "ada", "current", 1.0, "canonical", 1, NOW), **changes)


def channel(name: str = "general", **changes: Any) -> Channel:
    return replace(Channel(new_id(), "w1", name, "", False, NOW), **changes)


def conversation(of: Channel, ref_code: str = "abcdefghijk", **changes: Any) -> Conversation:
    return replace(Conversation(new_id(), ref_code, of.id, NOW), **changes)
