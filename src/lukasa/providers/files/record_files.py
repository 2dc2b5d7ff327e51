"""Records of work on disk: the append-only log of a workspace, and a folder of decision records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from lukasa.model import system
from lukasa.model.errors import Conflict, InvalidDecision, NotFound, StoreFull
from lukasa.providers.files.safe_write import locked, make_folder, os_errors, put_whole

MARK = ".highest-number"
LOCK = ".lock"
MOST_BYTES = 1_000_000
MOST_LINE = 1_000_000


class AppendedLines(Struct, frozen=True):
    """An append-only file of lines. Each writer takes a lock and writes one line at once."""

    path: Path

    def append(self, line: str) -> None:
        data = line.encode("utf-8") + b"\n"
        make_folder(self.path.parent)
        with locked(self.path) as descriptor, os_errors(self.path):
            size = os.fstat(descriptor).st_size
            if size and system.read_at(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data  # an earlier writer was cut off in mid-line; keep its bytes on a line of their own
            if os.write(descriptor, data) != len(data):
                raise StoreFull(
                    f"only a part of the line was written to {self.path}", fix="free disk space, then write it again"
                )
            os.fsync(descriptor)

    def lines(self) -> Iterator[bytes]:
        try:
            stream = self.path.open("rb")
        except FileNotFoundError:
            return
        with stream, os_errors(self.path):
            while line := stream.readline(MOST_LINE):
                yield line


class DecisionFiles(Struct, frozen=True):
    """A folder of decision records. A hidden file in it holds the highest number that was ever given."""

    path: Path

    @contextmanager
    def locked(self) -> Iterator[None]:
        with os_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path / LOCK):
            yield

    def names(self) -> list[str]:
        with os_errors(self.path):
            if not self.path.is_dir():
                raise NotFound(
                    f"there is no folder {self.path}",
                    fix="create it with `lukasa adr new TITLE`, or name another with --dir",
                )
            return sorted(p.name for p in self.path.iterdir() if p.suffix == ".md" and not p.name.startswith("."))

    def read(self, name: str) -> str:
        path = self.path / name
        with os_errors(path), path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        try:
            if len(data) <= MOST_BYTES:
                return data.decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError:
            pass
        raise InvalidDecision(
            f"{name} is not UTF-8 text of at most {MOST_BYTES:,} bytes", fix="save it as UTF-8, or shorten it"
        )

    def create(self, name: str, text: str) -> None:
        path = self.path / name
        with os_errors(path):
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.CLOEXEC, 0o644)
            except FileExistsError:
                raise Conflict(f"{path} exists already", fix="choose another title") from None
        with os_errors(path):
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(text.encode("utf-8"))
                stream.flush()
                os.fsync(stream.fileno())
            system.sync(self.path)

    def replace(self, name: str, text: str) -> None:
        put_whole(self.path / name, text.encode("utf-8"), mode=0o644)

    def highest(self) -> int:
        mark = self.path / MARK
        with os_errors(mark):
            if not mark.exists():
                return 0
            text = mark.read_text("utf-8", "replace").strip()
        if not (text.isascii() and text.isdigit()):
            raise InvalidDecision(f"{mark} does not hold a number", fix="write the highest number ever used into it")
        return int(text)

    def reserve(self, number: int) -> None:
        put_whole(self.path / MARK, f"{number}\n".encode(), mode=0o644)
