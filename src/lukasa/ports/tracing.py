"""Following work from outside: a span is a name, some facts, and the time between entering and leaving."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Span = Callable[[str, Mapping[str, Any]], AbstractContextManager[None]]


def no_span(name: str, about: Mapping[str, Any]) -> AbstractContextManager[None]:
    return nullcontext()
