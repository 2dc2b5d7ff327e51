"""Ports to files that people read with their own tools: the curated document, the structured log, decision records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from lukasa.model.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit of the curated file: the version it says it is of, or None for somebody else's, and the text in it."""

    id: str
    version: int | None
    body: str


class CuratedFile(Protocol):
    """MEMORY.md in a folder of its own, under git. The file can be had without git; commits cannot."""

    @property
    def path(self) -> Path: ...
    def locked(self) -> AbstractContextManager[None]:
        """One process at a time writes the file or commits."""
        ...

    def read(self) -> str | None:
        """The text as it lies there, without its closing line break; None if there is no file."""
        ...

    def write(self, body: str, *, instead_of: str | None) -> bool:
        """Put the text there whole, unless the file is no longer what was read: then nothing happens, and False."""
        ...

    def commits(self) -> Iterator[Committed]:
        """The newest first. GitMissing if there is no git, GitError if it cannot."""
        ...

    def commit(self, body: str, *, version: int, message: str, author: str, at: datetime) -> str:
        """One commit with this text, whatever lies in the folder now; its id. Makes the repository if there is none."""
        ...


class LogFile(Protocol):
    """Lines that are added and never changed, by any number of processes at once."""

    @property
    def path(self) -> Path: ...
    def append(self, line: str) -> None:
        """On disk as a line of its own when this returns, also after a line that was cut off."""
        ...

    def lines(self) -> Iterator[bytes]:
        """Oldest first, without line breaks. A last line without one is still being written, or was cut off."""
        ...


class DecisionFolder(Protocol):
    """A folder of markdown files, and the highest number that any of them ever had."""

    @property
    def path(self) -> Path: ...
    def locked(self) -> AbstractContextManager[None]:
        """One process at a time changes the folder."""
        ...

    def names(self) -> list[str]: ...
    def read(self, name: str) -> str: ...
    def create(self, name: str, text: str) -> None:
        """A file that was not there. Conflict if it is."""
        ...

    def replace(self, name: str, text: str) -> None: ...
    def highest(self) -> int:
        """The mark that `reserve` left; 0 if there is none."""
        ...

    def reserve(self, number: int) -> None:
        """Remember on disk that the number is taken, before a file has it."""
        ...
