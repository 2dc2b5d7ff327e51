"""The corpus: documents to look things up in, as they are read from their source and cut into passages."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct


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
    """What the server said of the version: the headers ETag and Last-Modified."""
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
