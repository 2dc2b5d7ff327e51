"""Take what a location names: a file of this machine or an address, as bytes with a media type and a name."""

from __future__ import annotations

import hashlib
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from lukasa.model.corpus import DocumentSource, FoundFile, ParsedDocument
from lukasa.model.errors import InvalidInput, UnreadableDocument
from lukasa.ports import DocumentFiles
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.service.corpus.documents import DOCUMENT_LIMIT

UPLOAD = "upload:"  # begins the location of what a client sent, which has no place of its own


class Taken(Struct, frozen=True):
    """The bytes at a location, and what is known of them."""

    location: str
    name: str
    """What the document is called: a path below the folder that was named, or the host and path of an address."""
    data: bytes
    media_type: str = ""
    etag: str = ""
    modified: str = ""

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def is_url(location: str) -> bool:
    """Say whether a location is an address on the network."""
    return location.lower().startswith(("http://", "https://"))


def files_of(ctx: CallContext) -> DocumentFiles:
    """Return the files of this machine."""
    if ctx.files is None:
        raise InvalidInput("this memory cannot read files", fix="open memory from a folder")
    return ctx.files()


def take(ctx: CallContext, place: FoundFile | str, known: DocumentSource | None = None) -> Taken | None:
    """Return what a file or a URL holds now; None if a server says that it has not changed since it was `known`."""
    if isinstance(place, FoundFile):
        return Taken(place.location, place.name, files_of(ctx).read(place), modified=place.stamp)
    if ctx.fetcher is None:
        raise InvalidInput(
            f"{place[:200]!r} is an address, and this memory fetches none", fix="save the page as a file, and add that"
        )
    seen = (known.etag, known.modified) if known is not None else ("", "")
    found = ctx.fetcher().fetch(place, etag=seen[0], modified=seen[1])
    if found.data is None:
        return None
    return Taken(place, name_of_url(place), found.data, found.media_type, found.etag, found.modified)


def name_of_url(url: str) -> str:
    """Return host and path of an address, as a name for a document."""
    parts = urlsplit(url)
    return f"{parts.hostname or ''}{unquote(parts.path)}".rstrip("/") or "page"


def parse(ctx: CallContext, taken: Taken) -> ParsedDocument:
    """Return the document in what was taken. UnreadableDocument if there is none, or one that is too long."""
    if ctx.parser is None:
        raise InvalidInput("this memory cannot read documents", fix="open memory from a folder")
    parsed = ctx.parser().parse(taken.data, name=taken.name, media_type=taken.media_type)
    if len(parsed.body) > DOCUMENT_LIMIT:
        raise UnreadableDocument(
            f"{taken.name[:200]}: it has {len(parsed.body):,} characters, more than {DOCUMENT_LIMIT:,}",
            fix="split the file",
        )
    return parsed


def one_line(text: str) -> str:
    """Return a text that nobody trusts as a name: one line of at most so many characters, and nothing that turns it."""
    flat = " ".join(text.split())
    clean = flat if inputs.is_one_line(flat) else "".join(c for c in flat if inputs.is_one_line(c))
    return clean[: inputs.MAX_LABEL].strip()
