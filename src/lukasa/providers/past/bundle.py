"""The files of one import: a single file, a folder, or a zip archive, read within bounds and never unpacked to a disk.

Nobody vouches for an archive. Its names are only labels here, so none can lead out of it; links in a folder are not
followed; and what comes out of an archive is counted, whatever the archive says about its sizes.
"""

from __future__ import annotations

import json
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from lukasa.model import system
from lukasa.model.errors import InvalidInput, UnreadablePast

MOST_FILES = 100_000
MOST_BYTES = 512 * 2**20  # of one file
MOST_UNPACKED = 1024 * 2**20  # of all that is read from an archive
MOST_TEXT = 16 * 2**20  # of a file that holds text for people
MOST_RATIO = 200  # of the size of a file in an archive to its packed size
_RATIO_FROM = 2**20
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_PIECE = 2**20


class Bundle:
    """The files at a path, by their names relative to it, with `/`."""

    def __init__(self, path: str, called: str = "") -> None:
        self.path = os.path.abspath(os.path.expanduser(path))
        self.shown = called or self.path  # what provenance and errors say: a file that was sent has no path
        self._zip: zipfile.ZipFile | None = None
        self._left = MOST_UNPACKED
        self._entries: dict[str, zipfile.ZipInfo] = {}
        try:
            about = os.stat(self.path)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is not a path"
            raise InvalidInput(f"{path[:300]!r} cannot be read: {why}", fix="name a file or folder") from None
        self.is_folder = stat.S_ISDIR(about.st_mode)
        if self.is_folder:
            self.names = tuple(self._walk())
        elif not stat.S_ISREG(about.st_mode):
            raise UnreadablePast(f"{path[:300]!r} is not a file or folder", fix="name a file or folder")
        elif self._begins(b"PK\x03\x04", b"PK\x05\x06"):
            self.names = tuple(self._unzip())
        else:
            self.names = (os.path.basename(self.path),)

    @property
    def is_archive(self) -> bool:
        return self._zip is not None

    @property
    def is_file(self) -> bool:
        return not self.is_folder and self._zip is None

    def close(self) -> None:
        if self._zip is not None:
            self._zip.close()

    def _begins(self, *marks: bytes) -> bool:
        try:
            with open(self.path, "rb") as stream:
                return stream.read(4).startswith(marks)
        except OSError as error:
            raise UnreadablePast(
                f"{self.path!r} cannot be read: {error.strerror}", fix="name a readable file"
            ) from None

    def _walk(self) -> Iterator[str]:
        left = MOST_FILES
        for folder, folders, files in os.walk(self.path):
            kept = (one for one in folders if one not in _SKIPPED and one != ".git")
            folders[:] = sorted(one for one in kept if not os.path.islink(os.path.join(folder, one)))
            for name in sorted(files):
                left -= 1
                if left < 0:
                    raise UnreadablePast(
                        f"{self.path!r} holds more than {MOST_FILES:,} files", fix="name a smaller folder"
                    )
                yield os.path.relpath(os.path.join(folder, name), self.path).replace(os.sep, "/")

    def _unzip(self) -> Iterator[str]:
        try:
            self._zip = zipfile.ZipFile(self.path)
            entries = self._zip.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, OSError) as error:
            raise UnreadablePast(
                f"the archive {self.shown!r} is damaged or only part of one", fix="download it again"
            ) from error
        if len(entries) > MOST_FILES:
            raise UnreadablePast(
                f"the archive {self.shown!r} holds more than {MOST_FILES:,} files", fix="import a smaller archive"
            )
        for entry in entries:
            if entry.is_dir():
                continue
            if entry.filename in self._entries:
                raise UnreadablePast(
                    f"the archive {self.shown!r} has two files called {entry.filename[:200]!r}", fix="download it again"
                )
            self._entries[entry.filename] = entry
            yield entry.filename

    # Names

    def ending(self, *endings: str) -> list[str]:
        """Return the names that end so; the case of an ending does not matter."""
        return [name for name in self.names if name.lower().endswith(endings)]

    def called(self, *names: str) -> list[str]:
        """Return the files of these names, in any folder."""
        return [name for name in self.names if name.rsplit("/", 1)[-1] in names]

    def place(self, name: str) -> str:
        """Return where a file is, for provenance and errors."""
        if self._zip is not None:
            return f"{self.shown} › {name}"
        return os.path.join(self.shown, *name.split("/")) if self.is_folder else self.shown

    def file(self, name: str) -> str:
        """Return the path of a file that is no part of an archive, and no link in a folder."""
        if not self.is_folder:
            return self.path
        path = os.path.join(self.path, *name.split("/"))
        if os.path.islink(path):
            raise UnreadablePast(f"{path!r} is a link, and may lead anywhere", fix="remove it, or copy its file there")
        return path

    def modified(self, name: str) -> datetime | None:
        """Return when a file was last changed."""
        try:
            if self._zip is not None:
                return datetime(*self._entries[name].date_time, tzinfo=UTC)
            return datetime.fromtimestamp(os.stat(self.file(name)).st_mtime, UTC)
        except (OSError, ValueError, KeyError):
            return None

    # Contents

    def read(self, name: str, most: int = MOST_BYTES) -> bytes:
        """Return a file; raise if it is larger than `most`, or no regular file."""
        data = self._unpacked(name, most) if self._zip is not None else self._opened(name, most)
        if len(data) > most:
            raise UnreadablePast(f"{self.place(name)!r} is larger than {most:,} bytes", fix="split it first")
        return data

    def head(self, name: str, size: int = 65_536) -> bytes:
        """Return the beginning of a file; nothing if it cannot be read."""
        try:
            if self._zip is None:
                return self._opened(name, size - 1, whole=False)
            with self._zip.open(self._entries[name]) as stream:
                return stream.read(size)
        except (UnreadablePast, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError):
            return b""

    def _opened(self, name: str, most: int, *, whole: bool = True) -> bytes:
        path = self.file(name)
        try:
            # A link in a folder may lead anywhere; the path that a person names may be a link.
            named = os.path.realpath(path) if self.is_file else path
            handle = system.open_file(named, os.O_RDONLY | system.NONBLOCK)
            with os.fdopen(handle, "rb") as stream:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise UnreadablePast(f"{path!r} is not a file", fix="remove it from the folder, or name a file")
                return stream.read(most + 1)
        except OSError as error:
            raise UnreadablePast(
                f"{path!r} cannot be read: {error.strerror}", fix="make it readable, or leave it out"
            ) from None

    def _unpacked(self, name: str, most: int) -> bytes:
        assert self._zip is not None
        entry, found, size = self._entries[name], list[bytes](), 0
        if entry.flag_bits & 1:
            raise UnreadablePast(f"{self.place(name)!r} is protected by a password", fix="unpack the archive first")
        try:
            with self._zip.open(entry) as stream:
                while piece := stream.read(_PIECE):
                    size += len(piece)
                    found.append(piece)
                    self._bound(name, size, len(piece), entry.compress_size, most)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
            raise UnreadablePast(f"{self.place(name)!r} is damaged", fix="download the archive again") from error
        return b"".join(found)

    def _bound(self, name: str, size: int, piece: int, packed: int, most: int) -> None:
        self._left -= piece
        if size > _RATIO_FROM and size > MOST_RATIO * max(1, packed):
            raise UnreadablePast(
                f"{self.place(name)!r} grows more than {MOST_RATIO}-fold", fix="unpack it yourself, if you trust it"
            )
        if size > most or self._left < 0:
            raise UnreadablePast(
                f"{self.place(name)!r} is larger than an import reads ({most:,} bytes of a file, "
                f"{MOST_UNPACKED:,} of an archive)",
                fix="unpack the archive, and import its parts",
            )

    def text(self, name: str) -> str:
        """Return a file with text for people."""
        data = self.read(name, MOST_TEXT)
        if b"\0" in data[:4096]:
            raise UnreadablePast(f"{self.place(name)!r} is not text", fix="leave it out, or convert it to UTF-8")
        return data.decode("utf-8-sig", "replace").replace("\r\n", "\n")

    def json(self, name: str) -> Any:
        """Return the JSON of a file."""
        return parsed(self.read(name), self.place(name))

    def listed(self, name: str) -> Iterator[tuple[int, Any]]:
        """Yield the number and the JSON of each item of a file with one JSON array, without parsing all at once."""
        data, place = self.read(name), self.place(name)
        try:
            items: list[msgspec.Raw] = msgspec.json.decode(data, type=list[msgspec.Raw])
        except (msgspec.MsgspecError, RecursionError):
            whole = parsed(data, place)
            if not isinstance(whole, list):
                raise malformed(place, "it is not a JSON array") from None
            yield from enumerate(whole, 1)
            return
        for number, item in enumerate(items, 1):
            yield number, parsed(bytes(item), f"{place}: item {number}")

    def lines(self, name: str) -> Iterator[tuple[int, Any]]:
        """Yield the number and the JSON of each line that is not blank."""
        for number, line in enumerate(self.read(name).splitlines(), 1):
            if line.strip():
                yield number, parsed(line, f"{self.place(name)}: line {number}")


def parsed(data: bytes, place: str) -> Any:
    """Return the JSON of these bytes; the error names the place."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        pass  # json also takes half a surrogate pair, which some exports hold, and says the line
    try:
        return json.loads(data.decode("utf-8-sig", "replace"))
    except json.JSONDecodeError as error:
        raise malformed(place, f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError):
        raise malformed(place, "its JSON nests too deeply, or holds a number that cannot be read") from None


def malformed(place: str, what: str) -> UnreadablePast:
    """Return the error for a file that is not what its format says."""
    return UnreadablePast(f"{place}: {what}", fix="export it again, or repair that place; nothing was written")
