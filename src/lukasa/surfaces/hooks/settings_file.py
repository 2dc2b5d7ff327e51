"""A harness's settings file: read strictly, written atomically, and restored byte by byte.

Everything else stays as it was: the order of keys, the indentation, the line ends, the mode of the file, and a symbolic
link to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from lukasa.model import system
from lukasa.model.errors import Conflict, InvalidInput, StoreError

MOST_BYTES = 10_000_000
_BOM = "\ufeff"
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class SettingsFile(Struct, frozen=True):
    """A file as it was read: its path, its bytes (None if it does not exist) and its settings."""

    path: Path
    raw: bytes | None
    settings: dict[str, Any]

    @property
    def backup(self) -> Path:
        return self.path.with_name(f"{self.path.name}.before-lukasa")

    @property
    def text(self) -> str:
        return "" if self.raw is None else self.raw.decode("utf-8")

    def spelled(self, settings: dict[str, Any]) -> bytes:
        """Encode settings with this file's indentation and line ends."""
        text = self.text
        indent = _INDENT.search(text)
        spelled = json.dumps(settings, ensure_ascii=False, indent=indent[1] if indent else 2)
        if text.endswith("\n") or self.raw is None:
            spelled += "\n"
        if "\r\n" in text:
            spelled = spelled.replace("\n", "\r\n")
        return (_BOM * text.startswith(_BOM) + spelled).encode("utf-8")


def read(path: Path) -> SettingsFile:
    """Read the file. A missing file has no settings; a file that cannot be read is refused."""
    real = Path(os.path.realpath(path))
    try:
        if real.exists() and not real.is_file():
            raise InvalidInput(f"{real} is not a file", fix="move it out of the way; nothing was written")
        raw = real.read_bytes()
    except FileNotFoundError:
        return SettingsFile(real, None, {})
    except OSError as error:
        raise InvalidInput(f"{real} cannot be read: {error.strerror}", fix="make it readable") from error
    return SettingsFile(real, raw, _parsed(raw, real))


def _parsed(raw: bytes, path: Path) -> dict[str, Any]:
    fix = "repair it first; nothing was written"
    if len(raw) > MOST_BYTES:
        raise InvalidInput(f"{path} is larger than {MOST_BYTES:,} bytes", fix=fix)
    if not raw.strip():
        return {}
    try:
        found = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not valid JSON: {str(error)[:200]}", fix=fix) from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{path} does not hold a JSON object", fix=fix)
    return found


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse one with a repeated key, because writing it back would lose a value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object holds the same key twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def write(file: SettingsFile, content: bytes | None, *, keep: bool) -> None:
    """Replace the file, or remove it if `content` is None. Raise if it changed since it was read.

    With `keep`, the first write makes a backup; without, the backup is removed.
    """
    if read(file.path).raw != file.raw:
        raise Conflict(f"{file.path} changed since it was read", fix="run the command again")
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        if keep and file.raw is not None and not file.backup.exists():
            _replace(file.backup, file.raw, _mode(file.path))
        if content is None:
            file.path.unlink(missing_ok=True)
        else:
            _replace(file.path, content, _mode(file.path))
        if not keep:
            file.backup.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{file.path} cannot be written: {error.strerror}", fix="make its folder writable") from error


def _mode(path: Path) -> int:
    """Return the file's mode, or the mode of a new file."""
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _replace(path: Path, content: bytes, mode: int) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            system.set_mode(stream.fileno(), mode)
            os.fsync(stream.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
