"""Read feeds (RSS, Atom, JSON Feed), and find those that a page names. Entities that XML declares are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit
from xml.etree.ElementTree import Element

from lukasa.model.discovery import Feed, FeedItem, FeedLink
from lukasa.model.errors import UnreadableDocument
from lukasa.providers.documents.epub import parsed_xml

FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml"})
MOST_BYTES = 8 * 2**20
_MOST_ITEMS = 500
_MOST_LINKS = 10
_HEAD = 400_000  # characters of a page in which it names its feeds
_LONGEST_TITLE, _LONGEST_SUMMARY, _LONGEST_ID = 300, 4_000, 1_000
_FIX = "give the address of an RSS, Atom or JSON feed"
_TAG = re.compile(r"<[^<>]{0,2000}>")


def is_feed(data: bytes, media_type: str) -> bool:
    """Say whether an answer is a feed, by its type or by how it begins."""
    if media_type.partition(";")[0].strip().lower() in FEED_TYPES:
        return True
    head = data[:2_000].lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"{"):
        return b"jsonfeed.org/version" in head
    return bool(
        re.match(rb"(<\?xml[^>]{0,200}>|<!--.{0,500}?-->|<\?[^>]{0,300}>|\s)*<(rss|feed|rdf:RDF)[\s>]", head, re.DOTALL)
    )


def read_feed(data: bytes, url: str) -> Feed:
    """Return the feed in these bytes; UnreadableDocument if there is none."""
    if len(data) > MOST_BYTES:
        raise UnreadableDocument(f"the feed has more than {MOST_BYTES:,} bytes", fix=_FIX)
    head = data[:100].lstrip(b"\xef\xbb\xbf \t\r\n")
    try:
        title, items = _from_json(data, url) if head.startswith(b"{") else _from_xml(data, url)
    except RecursionError:
        raise UnreadableDocument("the feed nests too deep", fix=_FIX) from None
    found: dict[str, FeedItem] = {}
    for item in items:
        found.setdefault(item.id, item)
        if len(found) >= _MOST_ITEMS:
            break
    return Feed(_line(title, _LONGEST_TITLE), tuple(found.values()))


def _from_json(data: bytes, url: str) -> tuple[str, Iterator[FeedItem]]:
    try:
        read: Any = json.loads(data)
    except ValueError:
        raise UnreadableDocument("the feed is no well-formed JSON", fix=_FIX) from None
    items = read.get("items") if isinstance(read, dict) else None
    if not isinstance(items, list):
        raise UnreadableDocument("the feed has no list of items", fix=_FIX)

    def each() -> Iterator[FeedItem]:
        for item in items:
            if isinstance(item, dict):
                said = {name: str(value) for name, value in item.items() if isinstance(value, str | int | float)}
                text = said.get("summary") or said.get("content_text") or said.get("content_html") or ""
                yield _item(
                    said.get("id", ""),
                    said.get("title", ""),
                    said.get("url") or said.get("external_url") or "",
                    text,
                    said.get("date_published", ""),
                    url,
                )

    return str(read.get("title") or ""), each()


def _from_xml(data: bytes, url: str) -> tuple[str, Iterator[FeedItem]]:
    root = parsed_xml(data, url[:200])
    kind = _name(root)
    if kind not in ("rss", "feed", "RDF"):
        raise UnreadableDocument(f"{url[:200]!r} is no feed", fix=_FIX)
    channel = root if kind == "feed" else next((one for one in root if _name(one) == "channel"), root)
    title = next((_text(one) for one in channel if _name(one) == "title"), "")
    holder = root if kind == "RDF" else channel
    return title, (_entry(one, url) for one in holder if _name(one) in ("item", "entry"))


def _entry(element: Element, url: str) -> FeedItem:
    said: dict[str, str] = {}
    link = ""
    for one in element:
        name = _name(one)
        if name == "link":
            rel, href = one.get("rel", "alternate"), one.get("href") or _text(one)
            if rel == "alternate" and not link:
                link = href
        else:
            said.setdefault(name, _text(one))
    if not link and element.find("guid") is not None and said.get("guid", "").startswith(("http://", "https://")):
        guid = element.find("guid")
        link = said["guid"] if guid is not None and guid.get("isPermaLink", "true") == "true" else ""
    text = said.get("summary") or said.get("description") or said.get("content") or said.get("encoded") or ""
    published = said.get("published") or said.get("pubDate") or said.get("updated") or said.get("date") or ""
    return _item(said.get("guid") or said.get("id") or "", said.get("title", ""), link, text, published, url)


def _item(id: str, title: str, link: str, text: str, published: str, base: str) -> FeedItem:
    where = ""
    with suppress(ValueError):
        joined = urljoin(base, link.strip()) if link.strip() else ""
        where = joined if urlsplit(joined).scheme in ("http", "https") else ""
    summary = _plain(text, _LONGEST_SUMMARY)
    named = _line(_plain(title, _LONGEST_TITLE), _LONGEST_TITLE)
    key = id.strip()[:_LONGEST_ID] or where
    if not key:
        key = sha256(f"{named}\n{summary}".encode("utf-8", "replace")).hexdigest()
    return FeedItem(key, named or _line(summary, 80) or where, where, summary, _line(published, 60))


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _text(element: Element) -> str:
    return "".join(element.itertext()).strip()


def _plain(text: str, most: int) -> str:
    """Return a text without markup. What a feed escaped twice is no markup either."""
    return " ".join(unescape(_TAG.sub(" ", unescape(text[: 8 * most]))).split())[:most]


def _line(text: str, most: int) -> str:
    return " ".join(text.split())[:most]


def feed_links(page: str, url: str) -> tuple[FeedLink, ...]:
    """Return the feeds that a page of HTML names in its head."""
    reader = _Links()
    reader.feed(page[:_HEAD])
    found: dict[str, FeedLink] = {}
    for href, title in reader.found:
        with suppress(ValueError):
            where = urljoin(urljoin(url, reader.base), href.strip())
            if urlsplit(where).scheme in ("http", "https"):
                found.setdefault(where, FeedLink(where, _line(title, _LONGEST_TITLE)))
    return tuple(_first(found.values(), _MOST_LINKS))


def _first(links: Iterable[FeedLink], most: int) -> list[FeedLink]:
    return [link for number, link in enumerate(links) if number < most]


class _Links(HTMLParser):
    """Collects the links to feeds."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "base" and not self.base:
            self.base = given.get("href", "")
        words = given.get("rel", "").lower().split()
        if tag == "link" and "alternate" in words and given.get("type", "").strip().lower() in FEED_TYPES:
            self.found.append((given.get("href", ""), given.get("title", "")))
