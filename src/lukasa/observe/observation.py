"""What an observer found: one statement, how much it matters, whether to keep it, and where it was said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, convert, to_builtins

from lukasa.model.requests import Request
from lukasa.model.transcript import Role
from lukasa.model.values import Gate

Priority = Literal["high", "medium", "low"]
IMPORTANCE: dict[Priority, float] = {"high": 0.8, "medium": 0.5, "low": 0.3}


class Observation(Struct, frozen=True):
    """`start` and `end` are the span of the message that says it; empty if the words could not be found there."""

    text: str
    priority: Priority
    gate: Gate
    confidence: float
    category: str
    message: str
    start: int
    end: int
    role: Role = "user"
    reason: str = ""
    asked: Request | None = None  # as it was asked for, where somebody asked

    @property
    def importance(self) -> float:
        if self.asked is not None and self.asked.importance is not None:
            return self.asked.importance
        return IMPORTANCE[self.priority]

    def plain(self) -> dict[str, Any]:
        """Return it as JSON data, for a journal."""
        data: dict[str, Any] = to_builtins(self)
        return data

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Observation:
        return convert(data, cls)
