"""Find the files of a folder that hold documents, and read them.

Under git, a folder has the files that git knows or would add; elsewhere all but hidden ones and what programs make. A
link is not followed: what it names inside the folder is found by itself, and what is outside does not belong to the
folder. Only regular files are opened, without waiting, and up to a size.
"""

from __future__ import annotations

import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from lukasa.model import system
from lukasa.model.corpus import FoundFile, FoundFiles
from lukasa.model.errors import InvalidInput, NotFound, UnreadableDocument, UnreadableFile
from lukasa.providers.documents.formats import detect, is_known
from lukasa.providers.documents.limits import Limits
from lukasa.providers.files.git_questions import ask_git

MOST_FILES = 100_000
GIT_SECONDS = 60.0
_MADE = frozenset({"node_modules", "__pycache__", "venv", "target", "build", "dist", "site-packages", "vendor"})
_LOCKS = frozenset(
    {"package-lock.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "uv.lock", "cargo.lock", "composer.lock"}
)
_HEAD = 8192  # bytes that tell a text from other files
_SHOWN = 200
_SETTLED = 2.0  # seconds after which a change of a file has another time than the one before


class LocalFiles:
    """The files of this machine."""

    def __init__(self, limits: Limits | None = None, git: str = "git") -> None:
        self._most = (limits or Limits()).file_bytes
        self._git = git

    def find(self, path: str) -> FoundFiles:
        """Return the file at a path, or the documents of a folder; see `DocumentFiles`."""
        location = self.absolute(path)
        try:
            about = os.stat(location)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"there is no file or folder {path[:_SHOWN]!r}", fix="check the path") from None
        except (OSError, ValueError) as error:
            raise InvalidInput(f"{path[:_SHOWN]!r} cannot be read: {error}"[:300], fix="name another path") from None
        if stat.S_ISDIR(about.st_mode):
            return self._in_folder(location)
        if not stat.S_ISREG(about.st_mode):
            raise InvalidInput(f"{path[:_SHOWN]!r} is neither a file nor a folder", fix="name a file or a folder")
        file = FoundFile(location, os.path.basename(location), about.st_size, _stamp(about))
        return FoundFiles(location, is_folder=False, files=(file,))

    def _in_folder(self, folder: str) -> FoundFiles:
        skipped: Counter[str] = Counter()
        unreadable: list[str] = []
        files = []
        called = os.path.basename(folder) or "files"
        for path in self._known_to_git(folder) or self._walked(folder, skipped, unreadable):
            if (file := self._document(folder, called, path, skipped)) is not None:
                files.append(file)
                if len(files) > MOST_FILES:
                    raise InvalidInput(
                        f"{folder[:_SHOWN]!r} has more than {MOST_FILES:,} documents", fix="name a smaller folder"
                    )
        files.sort(key=lambda file: file.location)
        return FoundFiles(folder, True, tuple(files), dict(skipped), tuple(unreadable))

    def _known_to_git(self, folder: str) -> list[str]:
        """Return the paths of a folder under git that are not ignored; none if it is not under git, or ignored."""
        try:
            said = ask_git(
                folder,
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
                seconds=GIT_SECONDS,
                program=self._git,
            )
        except TimeoutError:
            return []
        return list(dict.fromkeys(os.fsdecode(said).split("\0")[:-1])) if said else []

    def _walked(self, folder: str, skipped: Counter[str], unreadable: list[str]) -> Iterator[str]:
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            try:
                found = sorted(os.scandir(here), key=lambda entry: entry.name)
            except OSError:
                unreadable += [here] if _is_storable(here) else []
                continue
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    if _own(entry.name):
                        waiting.append(entry.path)
                    else:
                        skipped["hidden and generated folders"] += 1
                else:
                    yield os.path.relpath(entry.path, folder)

    def _document(self, folder: str, called: str, path: str, skipped: Counter[str]) -> FoundFile | None:
        """Return a file of a folder, or count why it is none to add."""
        names = path.split(os.sep)
        if not _is_storable(path):
            skipped["names that are not UTF-8"] += 1
            return None
        location = os.path.join(folder, path)
        reason = "" if all(map(_own, names[:-1])) and not names[-1].startswith(".") else "hidden and generated files"
        try:
            about = os.lstat(location)
            if not reason:
                reason = self._reason(location, names[-1], about)
        except FileNotFoundError:
            return None  # removed, and git was not told
        except OSError:
            about = None  # whoever reads it says why it cannot be read
        if about is not None and stat.S_ISDIR(about.st_mode):
            reason = "repositories inside"
        if reason:
            skipped[reason] += 1
            return None
        size, stamp = (0, "") if about is None else (about.st_size, _stamp(about))
        return FoundFile(location, f"{called}/{path.replace(os.sep, '/')}", size, stamp)

    def _reason(self, location: str, name: str, about: os.stat_result) -> str:
        """Return why a file of a folder is not added; empty for one that is."""
        if stat.S_ISLNK(about.st_mode):
            return "links"
        if not stat.S_ISREG(about.st_mode):
            return "devices and pipes"
        if about.st_size == 0:
            return "empty files"
        if name.lower() in _LOCKS or ".min." in name:
            return "hidden and generated files"
        return "" if is_known(name) or _is_text(self._opened(location, _HEAD), name) else "files that are no text"

    def read(self, file: FoundFile) -> bytes:
        """Return the bytes of a file; see `DocumentFiles`."""
        shown = file.location[:_SHOWN]
        try:
            data = self._opened(file.location, self._most + 1)
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise UnreadableFile(
                f"{shown!r} cannot be read: {why}", fix="check that it is there, and its rights"
            ) from None
        if len(data) > self._most:
            raise UnreadableFile(f"{shown!r} has more than {self._most:,} bytes", fix="split the file")
        return data

    def _opened(self, location: str, most: int) -> bytes:
        """Return the first bytes of a regular file. OSError for everything else."""
        handle = system.open_file(location, os.O_RDONLY | system.NONBLOCK | system.NOCTTY)
        with os.fdopen(handle, "rb") as stream:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(0, "it is not a regular file")
            return stream.read(most)

    def absolute(self, path: str) -> str:
        """Return the absolute path without links and `~`. InvalidInput for what cannot be a path, or be stored."""
        if not path.strip() or "\0" in path or not _is_storable(path):
            raise InvalidInput(f"{path[:_SHOWN]!a} is not a path", fix="name a file or a folder, in UTF-8")
        return os.path.realpath(os.path.expanduser(path))

    def gone(self, location: str) -> bool:
        """Return whether there is no file at a path any more."""
        try:
            os.lstat(location)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False
        return False


def _own(name: str) -> bool:
    return not name.startswith(".") and name not in _MADE


def _is_storable(path: str) -> bool:
    """Say whether a path is text: a file system may hold names of any bytes."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _stamp(about: os.stat_result) -> str:
    """Return what changes with a file; nothing for one that has just changed, and may do so again in this moment."""
    return f"{about.st_size}:{about.st_mtime_ns}" if time.time() - about.st_mtime > _SETTLED else ""


def _is_text(head: bytes, name: str) -> bool:
    """Say whether a file without a known ending is a document: a text, or one that its first bytes tell."""
    with suppress(UnreadableDocument):
        return detect(head, name).kind in ("pdf", "epub", "html") or b"\0" not in head
    return False
