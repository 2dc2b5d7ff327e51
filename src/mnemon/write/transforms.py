"""Named transforms for sanitization gates: text in, text out, and how many places changed."""

from __future__ import annotations

import re
from collections.abc import Callable

Transform = Callable[[str], tuple[str, int]]

_IDENTIFIERS = (
    (re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"), "[email]"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "[uuid]"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"), "[ip]"),
    (re.compile(r"(?<!\w)\+?\d{1,3}[ -]?\(?\d{2,4}\)?(?:[ -]?\d{2,4}){2,4}(?!\w)"), "[phone]"),
)
_SECRETS = (
    (re.compile(r"-----BEGIN ([A-Z ]{0,30})PRIVATE KEY-----.{0,8000}?-----END \1PRIVATE KEY-----", re.S), "[key]"),
    (re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,200}"), "[secret]"),
    (re.compile(r"\bgh[opsur]_[A-Za-z0-9]{20,255}\b"), "[secret]"),
    (re.compile(r"\bA(?:KIA|SIA)[A-Z0-9]{16}\b"), "[secret]"),
    (re.compile(r"\beyJ[\w-]{10,2000}\.[\w-]{10,4000}\.[\w-]{10,2000}"), "[secret]"),
    (re.compile(r"(?i)\b(password|passwd|secret|api[_-]?key|token)(\s{0,3}[:=]\s{0,3})\S{6,200}"), r"\1\2[secret]"),
)  # fmt: skip


def _replacing(patterns: tuple[tuple[re.Pattern[str], str], ...]) -> Transform:
    def transform(text: str) -> tuple[str, int]:
        total = 0
        for pattern, replacement in patterns:
            text, count = pattern.subn(replacement, text)
            total += count
        return text, total

    return transform


TRANSFORMS: dict[str, Transform] = {
    "strip_identifiers": _replacing(_IDENTIFIERS),
    "redact_secrets": _replacing(_SECRETS),
}
