"""Deciding on what is there now, though others may be changing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lukasa.model.errors import Conflict

T = TypeVar("T")
ATTEMPTS = 12


def deciding_anew(attempt: Callable[[], T]) -> T:
    """Look, decide, apply; if somebody changed what was looked at in between, look again. Bounded."""
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except Conflict:
            continue
    return attempt()
