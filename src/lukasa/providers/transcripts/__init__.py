"""Read session files. The first lines decide the format; lines that cannot be read are reported by number."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterator
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from lukasa.model.errors import InvalidInput
from lukasa.ports import Recording
from lukasa.providers.transcripts import chatlog, claude_code, codex, messages
from lukasa.providers.transcripts.recording_builder import RecordingBuilder

MOST_FILE = 1_000_000_000
MOST_LINE = 32_000_000  # a line may hold a picture
MOST_DOCUMENT = 64_000_000  # a file that is parsed as a whole
LOOKED_AT = 50  # lines that decide the format
MOST_FOUND = 100_000
_LINED = (claude_code, codex, messages)
ACCEPTED = (
    "give a session file of Claude Code or Codex (JSONL), a list of chat messages (JSON or JSONL with role and "
    'content), or a chat log with lines like "User: …" or "[time] name: …"'
)


class FileReader:
    """Reads sessions from files on this machine."""

    def read(self, path: str, *, tail: int | None = None) -> Recording:
        with _opened(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if tail is None and size > MOST_FILE:
                raise InvalidInput(f"{path[:200]!r} is larger than {MOST_FILE:,} bytes", fix="split it first")
            if tail is not None and size > tail:
                stream.seek(size - tail)
                stream.readline(MOST_LINE)
            found = _lined(stream) or _document(stream, size) or _log(stream, size)
        if found is None:
            raise InvalidInput(f"{path[:200]!r} is not a session in a known format", fix=ACCEPTED)
        return found.recording()

    def walk(self, folder: str, patterns: Collection[str]) -> list[str]:
        root = Path(folder)
        if not root.is_dir():
            raise InvalidInput(f"{folder[:200]!r} is not a folder", fix="name the folder that holds the session files")
        fitting = (
            os.path.join(place, name)
            for place, _, names in os.walk(root)
            for name in names
            if any(fnmatch(name, pattern) for pattern in patterns)
        )
        found = [path for path in islice(fitting, MOST_FOUND) if os.path.isfile(path)]
        return sorted(found, key=lambda path: (self._began(path), path))

    def _began(self, path: str) -> float:
        """Return when a session began, in seconds since 1970; for a file that does not say, when it was changed."""
        try:
            began = self.read(path).started_at
        except InvalidInput:
            began = None
        return os.stat(path).st_mtime if began is None else began.timestamp()


def _opened(path: str) -> BinaryIO:
    """Open a regular file. A pipe would block, and a device may never end."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InvalidInput(f"{path[:200]!r} is not a file", fix=ACCEPTED)
        return open(path, "rb")
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        why = error.strerror if isinstance(error, OSError) else "it is not a path"
        raise InvalidInput(f"{path[:200]!r} cannot be read: {why}", fix="name a readable file") from error


def _lined(stream: BinaryIO) -> RecordingBuilder | None:
    """Read a file with one JSON object on each line, in the first format that fits one of its first lines."""
    begin = stream.tell()
    first = [data for _, data in islice(_records(stream), LOOKED_AT)]
    stream.seek(begin)
    kinds = (module for data in first if isinstance(data, dict) for module in _LINED if module.fits(data))
    module = next(kinds, None)
    if module is None:
        return None
    into = RecordingBuilder(module.NAME)
    for number, data in _records(stream):
        if not isinstance(data, dict) or not module.add(into, data):
            into.broken.append(number)
    return into


def _records(stream: BinaryIO) -> Iterator[tuple[int, Any]]:
    """Yield the number and the JSON of each line that is not blank; None for a line that is not JSON or too long."""
    number = 0
    while raw := stream.readline(MOST_LINE):
        number += 1
        whole = raw.endswith(b"\n") or len(raw) < MOST_LINE
        while not raw.endswith(b"\n") and raw and not whole:
            raw = stream.readline(MOST_LINE)
        if whole and not raw.strip():
            continue
        yield number, _json(raw) if whole else None


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def _document(stream: BinaryIO, size: int) -> RecordingBuilder | None:
    """Read one JSON document that holds messages."""
    stream.seek(0)
    if size > MOST_DOCUMENT or not stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"[", b"{")):
        return None
    stream.seek(0)
    into = RecordingBuilder(messages.NAME)
    return into if messages.document(into, _json(stream.read())) else None


def _log(stream: BinaryIO, size: int) -> RecordingBuilder | None:
    """Read a plain chat log."""
    stream.seek(0)
    head = stream.read(4096)
    if size > MOST_DOCUMENT or b"\x00" in head or head.lstrip()[:1] in (b"{", b""):
        return None
    stream.seek(0)
    into = RecordingBuilder(chatlog.NAME)
    text = stream.read().decode("utf-8-sig", "replace").replace("\r\n", "\n")
    return into if chatlog.read(into, text.split("\n")) else None
