"""An append-only file of lines. Every writer opens it for appending, takes a lock, and writes one line at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from lukasa.model.errors import StoreFull
from lukasa.providers.files.private import locked, os_errors

MOST_LINE = 1_000_000


class AppendedLines(Struct, frozen=True):
    path: Path

    def append(self, line: str) -> None:
        data = line.encode("utf-8") + b"\n"
        with locked(self.path) as descriptor, os_errors(self.path):
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data  # somebody was cut off in mid-line; their bytes stay, on a line of their own
            if os.write(descriptor, data) != len(data):
                raise StoreFull(f"{self.path} took only a part of the line", fix="make room, then write it again")
            os.fsync(descriptor)

    def lines(self) -> Iterator[bytes]:
        try:
            stream = self.path.open("rb")
        except FileNotFoundError:
            return
        with stream, os_errors(self.path):
            while line := stream.readline(MOST_LINE):
                yield line
