"""The corpus: documents to look things up in, as they are read from their source and cut into passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct, field


class Part(Struct, frozen=True):
    """A piece of a document in its own order: the text under one heading, or of one page."""

    text: str
    headings: tuple[str, ...] = ()
    """The headings above the text, the broadest first."""
    page: int | None = None
    """The page in the source, from 1, if it has pages."""
    line: int | None = None
    """The line in the source on which the text begins, from 1, if it has lines."""


class ParsedDocument(Struct, frozen=True):
    """What a parser makes of a source: plain text by parts, and no markup."""

    title: str
    media_type: str
    parts: tuple[Part, ...]
    language: str = ""
    """The programming language of source code, such as `python`."""
    notes: tuple[str, ...] = ()
    """What the parser left out, in words for the owner: pages without text, a size limit that was reached."""
    text: str = ""
    """The whole text of a file that is a text, with its markup; other files have their parts alone."""

    @property
    def body(self) -> str:
        """The whole document as text: that of the file, or else the parts under their headings as markdown."""
        return self.text or "\n\n".join(_under_headings(self.parts))


def _under_headings(parts: tuple[Part, ...]) -> Iterator[str]:
    """Give the texts of parts, each after those of its headings that the part before did not have."""
    above: tuple[str, ...] = ()
    for part in parts:
        shared = 0
        while shared < min(len(above), len(part.headings)) and above[shared] == part.headings[shared]:
            shared += 1
        for level, heading in enumerate(part.headings[shared:], shared + 1):
            yield f"{'#' * min(level, 6)} {heading}"
        yield part.text
        above = part.headings


class Passage(Struct, frozen=True):
    """A piece of a version of a document, of a size that a search can return."""

    document: str
    version: int
    number: int
    """Its place in the document, from 0."""
    text: str
    headings: tuple[str, ...] = ()
    page: int | None = None
    line: int | None = None
    tags: tuple[str, ...] = ()

    @property
    def indexed(self) -> str:
        """The text that searches compare: the headings above the passage, then the passage."""
        return "\n".join((*self.headings, self.text))


class DocumentSource(Struct, frozen=True):
    """Where a document of the corpus was read, and what it was then: a source with the same digest is unchanged."""

    document: str
    location: str
    """An absolute path, or a URL."""
    media_type: str
    digest: str
    """SHA-256 of the bytes that were read."""
    read_at: datetime
    etag: str = ""
    modified: str = ""
    """What the server said of the version: the headers ETag and Last-Modified. Of a file, `modified` is its stamp."""
    notes: tuple[str, ...] = ()


class PassageFilters(Struct, frozen=True):
    """What a search of passages is limited to. An empty field does not filter; of tags, a passage must have all."""

    collections: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.collections or self.tags or self.documents)


NO_PASSAGE_FILTERS = PassageFilters()


class FoundPassage(Struct, frozen=True):
    """A passage that a search found. The score is higher for a better one."""

    passage: Passage
    score: float


class Unsplit(Struct, frozen=True):
    """A document of which there are no passages yet: an earlier version stored it, or its passages were damaged."""

    document: str


class Watch(Struct, frozen=True):
    """A folder or a feed that the worker looks at again and again, and what it knows of it."""

    id: str
    kind: Literal["folder", "feed"]
    location: str
    collection: str
    created_at: datetime
    due_at: datetime
    """When the worker looks next."""
    checked_at: datetime | None = None
    etag: str = ""
    modified: str = ""
    failures: int = 0
    """How often in a row it could not be read."""
    error: str = ""
    seen: tuple[str, ...] = ()
    """The newest ids of a feed, bounded in number."""
    version: int = 1


class FoundFile(Struct, frozen=True):
    """A file to add to the corpus."""

    location: str
    """Its absolute path."""
    name: str
    """Its path below the parent of the folder that was named, with `/`: what the document is called."""
    size: int
    stamp: str = ""
    """What changes with the file: its size and the time of its last change. Empty for one that has just changed."""


class FoundFiles(Struct, frozen=True):
    """What there is to add at a path."""

    location: str
    is_folder: bool
    files: tuple[FoundFile, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    """How many files a folder has that are not added, by the reason."""
    unreadable: tuple[str, ...] = ()
    """Folders that could not be looked into."""


AddOutcome = Literal["added", "changed", "unchanged", "failed", "gone", "removed"]


class AddedFile(Struct, frozen=True):
    """What became of one file or address that was to be added.

    `gone` is a document whose file is no longer there, and `removed` one that was removed for that reason.
    """

    location: str
    outcome: AddOutcome
    document: str = ""
    version: int = 0
    passages: int = 0
    characters: int = 0
    notes: tuple[str, ...] = ()
    error: str = ""
    fix: str = ""


class AddedFiles(Struct, frozen=True):
    """What became of everything that was to be added, in the order of the files."""

    files: tuple[AddedFile, ...]
    skipped: Mapping[str, int] = field(default_factory=dict)
    dry_run: bool = False

    @property
    def counts(self) -> dict[AddOutcome, int]:
        """How many files have each outcome, without those that none has."""
        found: dict[AddOutcome, int] = {}
        for one in self.files:
            found[one.outcome] = found.get(one.outcome, 0) + 1
        return found

    def of(self, outcome: AddOutcome) -> list[AddedFile]:
        """The files with this outcome."""
        return [one for one in self.files if one.outcome == outcome]
