"""What reading a file may cost, and how a file that costs more is refused."""

from __future__ import annotations

from typing import NoReturn

from msgspec import Struct

from lukasa.model.errors import UnreadableDocument

_MEGABYTE = 2**20


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds on one file. A file beyond one of them is refused whole."""

    file_bytes: int = 64 * _MEGABYTE
    characters: int = 20_000_000
    """Of text that comes out."""
    pages: int = 5_000
    parts: int = 50_000
    nesting: int = 10_000
    """Elements of a web page that are open at once."""
    entries: int = 10_000
    """Files in an archive."""
    unpacked_bytes: int = 256 * _MEGABYTE
    """Of all that is read from an archive."""
    ratio: int = 200
    """Of the size of a file in an archive to its packed size, from a megabyte on."""
    seconds: float = 60.0
    cpu_seconds: int = 45
    memory: int = 1024 * _MEGABYTE
    """Of the process that parses."""


def beyond(what: str, limit: str) -> NoReturn:
    """Refuse a file, and name the limit that it exceeds."""
    raise UnreadableDocument(what, fix=f"split the file, or read it with a higher limit `{limit}`")
