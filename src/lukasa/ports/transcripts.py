"""The port for recorded sessions: a file in, what stands in it out, with what nobody said marked as such."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Literal, Protocol

from lukasa.model.frozen import dataclass
from lukasa.model.transcript import Role

Aside = Literal["", "harness", "sidechain", "summary", "system", "thinking", "tool-call", "tool-result", "other"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that a record holds. `aside` says what it is if it was not said: a tool's output, a summary …

    `id` is the same whenever the file is read again. `failed` marks the output of a tool that did not do its work.
    """

    id: str
    role: Role
    text: str
    at: datetime | None = None
    aside: Aside = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Recording:
    """A session as its file tells it. Without an id of its own, a session is known by the ids of its pieces.

    `broken` are the lines that could not be read.
    """

    format: str
    session: str
    title: str
    started_at: datetime | None
    pieces: tuple[Piece, ...]
    broken: tuple[int, ...] = ()


class TranscriptReader(Protocol):
    def read(self, path: str, *, tail: int | None = None) -> Recording:
        """The session in a file, or with `tail` what the last so many bytes hold of it.

        Raises InvalidInput for a file that cannot be read or is none of the formats; a broken line is only reported.
        """
        ...

    def walk(self, folder: str, patterns: Collection[str]) -> list[str]:
        """The files of a folder and those below it that fit a pattern, the one changed last as the last."""
        ...
