"""Identifiers: time-ordered UUIDs for everything, and short reference codes for conversations."""

from __future__ import annotations

import hashlib
import os
import re
import time
import uuid

from lukasa.model.errors import InvalidInput

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
REF_CODE_LENGTH = 11


def new_id() -> str:
    """A UUIDv7: 48 bits of milliseconds, then 74 random bits. It is never reused, and sorts by time of creation."""
    chance, millis = os.urandom(10), f"{time.time_ns() // 1_000_000:012x}"
    digits = chance.hex()
    variant = "89ab"[chance[9] & 3]
    return f"{millis[:8]}-{millis[8:]}-7{digits[:3]}-{variant}{digits[3:6]}-{digits[6:18]}"


def derived_id(*parts: str) -> str:
    """The id that these parts always give: a repeated effect finds its first result instead of making a second one."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))


def new_ref_code() -> str:
    """Eleven base62 characters (65 bits): stable, URL-safe, short enough to read aloud."""
    # Of 128 random bits, so that no character is likelier than another; `secrets` would double the cost of a start.
    number, code = int.from_bytes(os.urandom(16), "big"), ""
    for _ in range(REF_CODE_LENGTH):
        number, digit = divmod(number, len(BASE62))
        code += BASE62[digit]
    return code


def parse_id(value: object, what: str = "id") -> str:
    """The canonical form of a UUID that a caller gave, or an InvalidInput error."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a string, not {type(value).__name__}", fix="give the UUID as text")
    try:
        return str(uuid.UUID(value))
    except ValueError:
        raise InvalidInput(
            f"{what} {value[:60]!r} is not a UUID", fix="copy the id from `lukasa list` or from a hit"
        ) from None


SHORT = 8
_PART = re.compile(r"[0-9a-f][0-9a-f-]{3,34}")


def short_id(id: str) -> str:
    """Return the end of an id, which a model reads for a fifth of the tokens, and which every verb takes for the id.

    It is the end, because ids of one minute begin alike.
    """
    return id[-SHORT:]


def is_part_of_id(value: object) -> bool:
    """Whether a text may be the beginning or the end of an id."""
    return isinstance(value, str) and _PART.fullmatch(value) is not None


def is_ref_code(value: str) -> bool:
    return len(value) == REF_CODE_LENGTH and all(c in BASE62 for c in value)
