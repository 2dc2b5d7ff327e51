"""The embedder port: text to unit vectors, with the model's identity beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from lukasa.model.frozen import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "NDArray[np.float32]"


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """Identity of a model. Vectors of two different identities are never compared.

    `floor` is the cosine that unrelated texts reach under this model: below it, nearness says nothing.
    """

    name: str
    dimensions: int
    digest: str = ""
    floor: float = field(default=0.0, compare=False)

    @property
    def key(self) -> str:
        return f"{self.name}/{self.dimensions}/{self.digest[:16]}"


class Embedder(Protocol):
    """Turns text into L2-normalised float32 vectors; a dot product is then the cosine."""

    @property
    def model(self) -> EmbeddingModel: ...

    def embed_memories(self, texts: Sequence[str]) -> Vector:
        """One row a text, in order; shape (len(texts), dimensions)."""
        ...

    def embed_query(self, text: str) -> Vector:
        """One vector of shape (dimensions,)."""
        ...
