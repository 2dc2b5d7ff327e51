"""Look at what a URL names: a page, a feed, the item of a feed, or a repository."""

from __future__ import annotations

import hashlib
from typing import Literal
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from lukasa.corpus import discovery_note
from lukasa.model.corpus import DocumentSource, ParsedDocument, Part
from lukasa.model.discovery import FeedItem, FeedLink, Kind, Repository
from lukasa.model.errors import FetchFailed, InvalidInput, Refused, UnreadableDocument
from lukasa.ports import Fetched, Web
from lukasa.service.call import CallContext
from lukasa.service.corpus.locations import one_line

_REPOSITORY = "application/vnd.git"
_FORGES = frozenset({"github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "git.sr.ht"})

Choice = Literal["auto", "page", "repository"]
CHOICES: tuple[Choice, ...] = ("auto", "page", "repository")


class Request(Struct, frozen=True):
    """What to discover, and why."""

    url: str
    context: str = ""
    kind: Choice = "auto"
    tags: tuple[str, ...] = ()
    local: bool = False
    """Whether a file:// URL may name a repository of this machine: the owner typed it."""
    item: FeedItem | None = None
    """The item of a feed that named the URL: the site's robots.txt is asked, and the item may stand in for its page."""
    public_only: bool = False
    whole: bool = False
    """Whether a page is wanted that may be unchanged, for what it links."""


class Looked(Struct, frozen=True):
    """What was found at a URL."""

    url: str
    kind: Kind
    parsed: ParsedDocument
    digest: str
    etag: str = ""
    modified: str = ""
    tags: tuple[str, ...] = ()
    feeds: tuple[FeedLink, ...] = ()


def web(ctx: CallContext) -> Web:
    """Return the way to the web."""
    if ctx.fetcher is None:
        raise InvalidInput("this memory fetches nothing", fix="open memory from a folder")
    return ctx.fetcher()


def looked(ctx: CallContext, request: Request, known: DocumentSource | None) -> Looked | None:
    """Return what is at a URL; None if it has not changed since it was `known`."""
    kind = _kind(request)
    if kind == "repository":
        return _repository(ctx, request)
    if kind == "either":
        try:
            return _repository(ctx, request)
        except FetchFailed:
            pass  # a page of a forge that is no repository
    if request.item is not None and not request.item.url:
        return _of_item(request.item, request.url)
    etag, modified = (known.etag, known.modified) if known is not None and not request.whole else ("", "")
    try:
        fetched = web(ctx).fetch(
            request.url,
            etag=etag,
            modified=modified,
            public_only=request.public_only,
            robots=request.item is not None,
        )
        return None if fetched.data is None else _page(ctx, request, fetched)
    except (FetchFailed, UnreadableDocument, Refused):
        if request.item is None:
            raise
        return _of_item(request.item, request.url)


def _kind(request: Request) -> str:
    parts = urlsplit(request.url)
    if request.kind != "auto":
        return request.kind
    if parts.scheme == "file" or parts.path.rstrip("/").endswith(".git") or parts.scheme not in ("http", "https"):
        return "repository"  # other addresses of git are refused with what to give instead
    folders = [part for part in parts.path.split("/") if part]
    forge = (parts.hostname or "").removeprefix("www.") in _FORGES
    return "either" if forge and len(folders) == 2 and not parts.query else "page"


def _page(ctx: CallContext, request: Request, fetched: Fetched) -> Looked:
    data = fetched.data or b""
    if ctx.parser is None:
        raise InvalidInput("this memory cannot read documents", fix="open memory from a folder")
    if web(ctx).is_feed(fetched):
        feed = web(ctx).feed(fetched)
        parts = tuple(Part(f"{item.title}\n\n{item.summary}".strip(), (feed.title,)) for item in feed.items[:50])
        parsed = ParsedDocument(feed.title or request.url, "application/xml", parts)
        links: tuple[FeedLink, ...] = (FeedLink(fetched.url, feed.title),)
    else:
        named = urlsplit(fetched.url)
        name = f"{named.hostname or ''}{unquote(named.path)}"
        parsed = ctx.parser().parse(data, name=name, media_type=fetched.media_type)
        links = web(ctx).feed_links(fetched)
    if not parsed.parts:
        raise UnreadableDocument(f"{request.url[:200]}: it has no text", fix="give a page that holds text")
    digest = hashlib.sha256(data).hexdigest()
    return Looked(
        fetched.url,
        "item" if request.item is not None else "page",
        parsed,
        digest,
        fetched.etag,
        fetched.modified,
        feeds=links,
    )


def _of_item(item: FeedItem, url: str) -> Looked:
    """Return what a feed itself says of an item whose page cannot be had."""
    said = item.summary or item.title or url
    notes = ("its page could not be read; this is the feed's own text",) if item.url else ()
    parsed = ParsedDocument(item.title or url, "text/plain", (Part(said),), notes=notes)
    return Looked(url, "item", parsed, hashlib.sha256(said.encode()).hexdigest())


def _repository(ctx: CallContext, request: Request) -> Looked:
    found = web(ctx).clone(request.url, local=request.local)
    parts: list[Part] = []
    notes: list[str] = []
    title = ""
    for file in found.documents:
        try:
            if ctx.parser is None:
                raise InvalidInput("this memory cannot read documents", fix="open memory from a folder")
            parsed = ctx.parser().parse(file.data, name=file.path)
        except UnreadableDocument:
            notes.append(f"{one_line(file.path)} could not be read")
            continue
        title = title or parsed.title
        parts += (replace(part, headings=(one_line(file.path), *part.headings), line=None) for part in parsed.parts)
    if found.left_out:
        notes.append(f"{found.left_out} more documents were left out: there is room for a few")
    parts.append(Part(discovery_note.tree(found), ("Files",)))
    parsed = ParsedDocument(title or _repository_name(found), _REPOSITORY, tuple(parts), notes=tuple(notes))
    known = [name.lower() for name, share in discovery_note.languages(found)[:3] if share >= 0.1]
    return Looked(
        request.url, "repository", parsed, hashlib.sha256(found.commit.encode()).hexdigest(), tags=tuple(known)
    )


def _repository_name(found: Repository) -> str:
    return urlsplit(found.url).path.rstrip("/").rpartition("/")[2].removesuffix(".git") or "repository"
