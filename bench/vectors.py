"""Vectors computed once: several recipes, peers in another environment and later runs share them through a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lukasa.ports import Embedder, EmbeddingModel, Vector


@dataclass
class Remembering:
    """An embedder that computes each text once."""

    inner: Embedder
    memories: dict[str, Vector] = field(default_factory=dict)
    queries: dict[str, Vector] = field(default_factory=dict)

    @property
    def model(self) -> EmbeddingModel:
        return self.inner.model

    def embed_memories(self, texts: Sequence[str]) -> Vector:
        new = [text for text in dict.fromkeys(texts) if text not in self.memories]
        if new:
            self.memories.update(zip(new, self.inner.embed_memories(new), strict=True))
        return np.stack([self.memories[text] for text in texts])

    def embed_query(self, text: str) -> Vector:
        if text not in self.queries:
            self.queries[text] = self.inner.embed_query(text)
        return self.queries[text]

    def save(self, path: Path) -> None:
        kept = {"model": self.model.key, "memories": list(self.memories), "queries": list(self.queries)}
        rows = [*self.memories.values(), *self.queries.values()]
        np.savez(path, texts=np.array(json.dumps(kept)), vectors=np.stack(rows))

    def load(self, path: Path) -> None:
        """Take up what an earlier run computed with the same model; what another computed is left."""
        if not path.is_file():
            return
        with np.load(path) as stored:
            kept, vectors = json.loads(str(stored["texts"])), stored["vectors"]
        if kept["model"] == self.model.key:
            count = len(kept["memories"])
            self.memories.update(zip(kept["memories"], vectors[:count], strict=True))
            self.queries.update(zip(kept["queries"], vectors[count:], strict=True))
