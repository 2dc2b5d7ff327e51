"""The files that memory keeps beside its store: search them for some words, and take the words out of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from lukasa.model.erasure import ERASED, Words
from lukasa.providers.files.git import GitFile
from lukasa.providers.files.safe_write import locked, os_errors, put_whole

_LOG = ".jsonl"  # lines that are added by many processes: changed where they lie, under the lock of the writers


class KeptFiles(Struct, frozen=True):
    """The files of a folder, without those that a store or a chat keeps in it (`but`), and without folders `apart`.

    Implements `lukasa.ports.ErasableFiles`. With `repository`, the history of the git repository there belongs to them.
    """

    folder: Path
    but: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    repository: Path | None = None

    def holding(self, words: Words) -> dict[str, int]:
        """Return by file how often it holds some words, in its text or in its name; git's history is one of them."""
        found: dict[str, int] = {}
        for path in self._files():
            with os_errors(path):
                count = words.count(path.read_bytes()) + words.found_in(path.name)
            if count:
                found[words.taken_out(str(path.relative_to(self.folder)))] = count
        if self.repository is not None and (held := GitFile(self.repository).holding(words)):
            found["the history of the curated document in git"] = held
        return found

    def erase(self, words: Words) -> None:
        """Take some words out of the files. To do it again changes nothing more."""
        git = GitFile(self.repository) if self.repository is not None and self.repository.is_dir() else None
        if git is not None:
            with git.locked():
                git.recover()
                git.erase(words)
        for path in self._files():
            if path.suffix == _LOG:
                _erase_lines(path, words)
                continue
            with os_errors(path):
                data = path.read_bytes()
            if (left := words.lines_out(data)) != data:
                put_whole(path, left, mode=path.stat().st_mode & 0o777)
            if words.found_in(path.name):
                path.rename(path.with_name(words.taken_out(path.name).replace(ERASED, "erased")))

    def elsewhere(self) -> Sequence[str]:
        """Return the names of git repositories elsewhere that may have a copy."""
        return GitFile(self.repository).remotes() if self.repository is not None and self.repository.is_dir() else ()

    def _files(self) -> Iterator[Path]:
        for place, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if name not in (".git", ".git.new", ".git.old", *self.apart)]
            for name in sorted(names):
                path = Path(place, name)
                kept = any(name == stem or name.startswith((f"{stem}-", f"{stem}.")) for stem in self.but)
                if not kept and path.is_file() and not path.is_symlink():
                    yield path


def _erase_lines(path: Path, words: Words) -> None:
    """Write over the words where they are: other processes add lines to the same file."""
    with locked(path), os_errors(path), path.open("r+b") as stream:
        data = stream.read()
        left = words.lines_out(data)
        if left != data:
            stream.seek(0)
            stream.write(left)
            stream.flush()
            os.fsync(stream.fileno())
