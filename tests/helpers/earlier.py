"""A store that an earlier version wrote, as files that are kept: today's code cannot make one."""

from __future__ import annotations

import gzip
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"


def first_schema(folder: Path) -> Path:
    """Of the first schema: 69 facts with vectors, whose packs have one byte for each number; a lantern without; one
    more that was dropped again, so that the last numbers are gone; and four reports, the first of them the third by
    its time."""
    folder.mkdir(mode=0o700)
    memory = folder / "memory.db"
    memory.touch(mode=0o600)
    memory.write_bytes(gzip.decompress((DATA / "schema-1.db.gz").read_bytes()))
    return folder
