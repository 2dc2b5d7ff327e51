"""A host's settings file: read strictly, changed in place, written atomically, and restored byte by byte.

Everything else stays as it was: the order of keys, formatting and comments, line ends, the mode of the file, and a
symbolic link to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from lukasa.model import system
from lukasa.model.errors import Conflict, InvalidInput, StoreError
from lukasa.surfaces.hooks.json_text import parsed, respelled

MOST_BYTES = 10_000_000
_BOM = "\ufeff"
_FIX = "repair it first; nothing was written"
Settings = dict[str, Any]


class SettingsFile(Struct, frozen=True):
    """A file as it was read: its path, its bytes (None if it does not exist) and its text without a byte order mark."""

    path: Path
    raw: bytes | None
    text: str

    @property
    def backup(self) -> Path:
        return self.path.with_name(f"{self.path.name}.before-lukasa")

    def encoded(self, text: str) -> bytes:
        marked = self.raw is not None and self.raw.startswith(_BOM.encode())
        return (_BOM * marked + text).encode("utf-8")


def read(path: Path) -> SettingsFile:
    """Read the file. A missing file is an empty text; a file that cannot be read is refused."""
    real = Path(os.path.realpath(path))
    try:
        if real.exists() and not real.is_file():
            raise InvalidInput(f"{real} is not a file", fix="move it out of the way; nothing was written")
        raw = real.read_bytes()
    except FileNotFoundError:
        return SettingsFile(real, None, "")
    except OSError as error:
        raise InvalidInput(f"{real} cannot be read: {error.strerror}", fix="make it readable") from error
    if len(raw) > MOST_BYTES:
        raise InvalidInput(f"{real} is larger than {MOST_BYTES:,} bytes", fix=_FIX)
    try:
        return SettingsFile(real, raw, raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InvalidInput(f"{real} is not text in UTF-8", fix=_FIX) from None


def json_settings(text: str, path: Path, *, comments: bool = False) -> Settings:
    """Return the settings in a JSON text; refuse what its host could not read either."""
    if not text.strip():
        return {}
    try:
        found = parsed(text, comments=comments).value
    except ValueError as error:
        raise InvalidInput(f"{path} is not valid JSON: {str(error)[:200]}", fix=_FIX) from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{path} does not hold a JSON object", fix=_FIX)
    return found


def json_change(text: str, path: Path, change: Callable[[Settings], Settings], *, comments: bool = False) -> str:
    """Return a JSON text with changed settings; the text itself if nothing changes."""
    settings = json_settings(text, path, comments=comments)
    changed = change(settings)
    if json.dumps(changed) == json.dumps(settings):
        return text
    if not text.strip():
        return json.dumps(changed, ensure_ascii=False, indent=2) + "\n"
    try:
        return respelled(text, changed, comments=comments)
    except ValueError as error:
        raise InvalidInput(f"{path}: {error}", fix="change it by hand; nothing was written") from None


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
