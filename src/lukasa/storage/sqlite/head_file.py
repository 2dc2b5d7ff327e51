"""The head of the event log, once more beside the database: how far acknowledged writes had come.

A write-ahead log that vanishes takes commits with it, and leaves a sound database that has never heard of them. This
file has. It is written after each commit and not synced, so it may be older than the database, and costs a commit
nothing that can be measured; it is never newer, unless writes are gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from lukasa.model import system
from lukasa.storage.sqlite.store_files import HEAD, LOST

_RECORD = "{seq:020d} {digest:64}\n"
_SIZE = 20 + 1 + 64 + 1


class Head(NamedTuple):
    """The number of an event and its digest."""

    seq: int
    digest: str


DigestOf = Callable[[int], str | None]  # the digest of an event by its number; None if there is no such event


class HeadFile:
    def __init__(self, folder: Path) -> None:
        self._path, self._lost = folder / HEAD, folder / LOST

    def note(self, head: Head, *, back: bool = False) -> None:
        """Write a head, unless a newer one is there that another process wrote. `back` says to go back to it.

        Whatever the disk answers, the commit stands: a head that could not be written is an old one.
        """
        with suppress(OSError):
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | system.CLOEXEC, 0o600)
            try:
                before = _head_of(system.read_at(descriptor, _SIZE, 0))
                if before is None:
                    system.set_mode(descriptor, 0o600)
                if before is None or before.seq < head.seq or back:
                    system.write_at(descriptor, _RECORD.format(seq=head.seq, digest=head.digest).encode("ascii"), 0)
            finally:
                os.close(descriptor)

    def read(self) -> Head | None:
        """The head that was written last; None if there is none that can be read."""
        with suppress(OSError):
            return _head_of(self._path.read_bytes()[:_SIZE])
        return None

    def missing(self, now: Head, digest_of: DigestOf) -> list[Head]:
        """The heads that were written and are not in the log: the newest is of the last write that is gone."""
        noted = [self.read(), *self._given_up()]
        return sorted({one for one in noted if one is not None and not _holds(one, now, digest_of)})

    def _given_up(self) -> list[Head | None]:
        with suppress(OSError):
            return [_head_of(line + b"\n") for line in self._lost.read_bytes().splitlines()]
        return []

    def give_up(self, gone: Head, now: Head) -> None:
        """Keep the evidence of lost writes in a file of its own, and go on from the head that is there."""
        with suppress(OSError):
            descriptor = os.open(self._lost, os.O_WRONLY | os.O_CREAT | os.O_APPEND | system.CLOEXEC, 0o600)
            try:
                system.set_mode(descriptor, 0o600)
                os.write(descriptor, _RECORD.format(seq=gone.seq, digest=gone.digest).encode("ascii"))
            finally:
                os.close(descriptor)
            self.note(now, back=True)

    @property
    def evidence(self) -> Path:
        """The file that keeps what is known of lost writes."""
        return self._lost


def _holds(noted: Head, now: Head, digest_of: DigestOf) -> bool:
    return noted.seq <= now.seq and digest_of(noted.seq) == noted.digest


def _head_of(record: bytes) -> Head | None:
    """The head in a record; None if it is not whole."""
    number, _, digest = record.decode("ascii", "replace").removesuffix("\n").partition(" ")
    return Head(int(number), digest) if len(record) == _SIZE and number.isdecimal() else None
