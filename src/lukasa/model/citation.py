"""Citations: what an entry says about the world outside memory, pinned so that it can be checked before it is used.

A citation pins a file or some of its lines, a symbol, a URL, a command's output, another entry, or a passage of the
corpus. A cited document is a `SourceLink`, because its versions are in memory. A check compares what was pinned with
what is there now.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from lukasa.model.events import canonical_json
from lukasa.model.text import content_hash

CITED, CHECKED = "citation.made", "citation.checked"  # events about an entry
MOST_CITATIONS = 32  # of one entry
MOST_TARGET = 1000  # characters


class Cited(StrEnum):
    """What a citation names."""

    FILE = "file"
    SYMBOL = "symbol"
    URL = "url"
    COMMAND = "command"
    MEMORY = "memory"
    PASSAGE = "passage"


class CitationVerdict(StrEnum):
    """What a check found."""

    VERIFIED = "verified"  # it is as it was
    MOVED = "moved"  # it is as it was, in another place
    CHANGED = "changed"  # it is there, and is something else
    GONE = "gone"  # it is not there any more
    UNCHECKED = "unchecked"  # nobody could look


AMISS = (CitationVerdict.CHANGED, CitationVerdict.GONE)
NOT_THERE = "it is not at its place, and the time was over before anybody found it elsewhere"
HOLDS = (CitationVerdict.VERIFIED, CitationVerdict.MOVED)


class Citation(Struct, frozen=True):
    """Something outside that an entry cites, as it was when somebody pinned it.

    `target` is a path relative to the project's root, a URL, a command, the id of an entry, or that of a document with
    the number of a passage, as in guide#12; `name` is of a symbol.
    `first` and `last` are lines, 0 for a whole file. `hash` is of what was cited, and empty if nobody has seen it.
    `around` has hashes of the lines before and after, and of the first one. `revision` is the commit of the project, or
    the version of the cited entry or document; `project` says which project it is, on whatever machine.
    """

    id: str
    entry: str
    kind: Cited
    target: str
    at: datetime
    name: str = ""
    first: int = 0
    last: int = 0
    hash: str = ""
    around: str = ""
    revision: str = ""
    project: str = ""
    by: Literal["writer", "rule"] = "writer"

    @property
    def label(self) -> str:
        """The target as a reader knows it: src/auth.py:10-20, src/auth.py:Settings, https://…"""
        if self.kind is Cited.SYMBOL:
            return f"{self.target}:{self.name}"
        return placed(self.target, self.first, self.last) if self.kind is Cited.FILE else self.target

    @property
    def spelling(self) -> str:
        """The citation as somebody writes it to cite the same again."""
        if self.kind is Cited.FILE:
            return self.label
        return f"{'document' if self.kind is Cited.PASSAGE else self.kind}:{self.label}"

    @property
    def key(self) -> tuple[str, ...]:
        """What two citations of the same thing share. Lines are part of it: two parts of a file are two things."""
        lines = () if self.kind is not Cited.FILE else (str(self.first), str(self.last))
        return (self.kind, self.target, self.name, *lines)


class CitationCheck(Struct, frozen=True):
    """The stored outcome of the last check. `path` and `line` say where it was found if it had moved."""

    citation: str
    entry: str
    verdict: CitationVerdict
    at: datetime
    path: str = ""
    line: int = 0
    why: str = ""
    verified_at: datetime | None = None


class CitedNow(Struct, frozen=True):
    """A citation with what a check says now. `where` is the new place of one that has moved.

    `last_verified` is when somebody last saw that it holds: when it was pinned, or at a check since.
    """

    citation: Citation
    verdict: CitationVerdict
    where: str = ""
    why: str = ""
    last_verified: datetime | None = None

    @property
    def said(self) -> str:
        """The verdict in the few words of a context line; empty if there is nothing to say."""
        match self.verdict:
            case CitationVerdict.CHANGED:
                return f"changed since: {self.citation.label}"
            case CitationVerdict.GONE:
                return f"gone: {self.citation.label}"
            case CitationVerdict.MOVED:
                return f"{self.citation.label} moved to {self.where}"
            case CitationVerdict.UNCHECKED if NOT_THERE in self.why:
                return f"not there now: {self.citation.label}"
            case _:
                return ""


def placed(path: str, first: int, last: int = 0) -> str:
    """Return a path with its lines: src/auth.py:10-20."""
    if not first:
        return path
    return f"{path}:{first}" if last in (0, first) else f"{path}:{first}-{last}"


def citations_text(citations: tuple[Citation, ...]) -> str:
    """All citations of an entry in one spelling, to which the log commits."""
    return canonical_json(
        [
            [c.id, c.kind, c.target, c.name, c.first, c.last, c.hash, c.around, c.revision, c.project, c.by]
            for c in citations
        ]
    )


def text_pin(text: str) -> str:
    """Return the pin of a text: line ends and space at their ends do not count."""
    return content_hash("\n".join(line.rstrip() for line in text.strip().splitlines()))[:32]
