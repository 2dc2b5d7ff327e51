"""Named transforms for sanitization gates: each takes a text and returns the new text and the number of changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from lukasa.model.echo import HEDGES
from lukasa.model.secrets import redact
from lukasa.model.values import Trust
from lukasa.spec.types import SanitizationGate


class Transform(Protocol):
    def __call__(self, text: str, trust: Trust = Trust.AUTHOR) -> tuple[str, int]:
        """Return the text that may enter, given the trust in its source, and the number of changes."""
        ...


# A date or a span of years has the digits of a phone number, and is none.
_YEAR, _MONTH, _DAY = r"(?:1[5-9]|20)\d\d", r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
_DATE = rf"(?!(?:{_YEAR}-{_MONTH}-{_DAY}|{_DAY}-{_MONTH}-{_YEAR}|{_YEAR}-{_YEAR})(?![\d-]))"
_IDENTIFIERS = (
    (re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"), "[email]"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "[uuid]"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"), "[ip]"),
    (
        re.compile(
            rf"(?<!\w)(?<!\d-){_DATE}\+?\d{{1,3}}[ -]?{_DATE}\(?\d{{2,4}}\)?(?:[ -]?{_DATE}\d{{2,4}}){{2,4}}(?!\w)"
        ),
        "[phone]",
    ),
)


def _replacing(patterns: tuple[tuple[re.Pattern[str], str], ...]) -> Transform:
    def transform(text: str, trust: Trust = Trust.AUTHOR) -> tuple[str, int]:
        total = 0
        for pattern, replacement in patterns:
            text, count = pattern.subn(replacement, text)
            total += count
        return text, total

    return transform


def _redacted(text: str, trust: Trust = Trust.AUTHOR) -> tuple[str, int]:
    return redact(text)


def _hedged(text: str, trust: Trust = Trust.AUTHOR) -> tuple[str, int]:
    hedge = HEDGES.get(trust, "")
    if not hedge or text.startswith(tuple(HEDGES.values())):
        return text, 0
    return f"{hedge}{text}", 1


_RESERVED = (
    re.compile(r"\[(private|internal|confidential)\].*?(?:\[/\1\]|\Z)", re.IGNORECASE | re.DOTALL),
    re.compile(r"^[ \t>*-]*(?:private|internal|confidential)\s{0,3}:.*(?:\n|\Z)", re.IGNORECASE | re.MULTILINE),
)


def _open_part(text: str, trust: Trust = Trust.AUTHOR) -> tuple[str, int]:
    """Remove parts that the writer marked as internal: spans in [private]…[/private], lines "Internal: …"."""
    total = 0
    for pattern in _RESERVED:
        text, count = pattern.subn("", text)
        total += count
    return (text.strip() if total else text), total


TRANSFORMS: dict[str, Transform] = {
    "strip_identifiers": _replacing(_IDENTIFIERS),
    "redact_secrets": _redacted,
    "hedge_by_provenance": _hedged,
    "auth_scoped_subset": _open_part,
}


def crossing(gates: Sequence[SanitizationGate]) -> str:
    """Say which boundaries a text crossed."""
    return f"it crosses a boundary: {', '.join(dict.fromkeys(gate.boundary for gate in gates))}"


def through(gates: Iterable[SanitizationGate], text: str, trust: Trust) -> tuple[str, dict[str, int]]:
    """Return a text after the transforms of these gates, and how often each of them changed it."""
    changes: dict[str, int] = {}
    for gate in gates:
        for name in gate.transforms:
            text, count = TRANSFORMS[name](text, trust)
            changes[name] = changes.get(name, 0) + count
    return text, {name: count for name, count in changes.items() if count}
