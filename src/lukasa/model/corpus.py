"""The corpus: documents to look things up in, as they are read from their source and cut into passages."""

from __future__ import annotations

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
