"""Books: the chapters of an EPUB in reading order, with the titles that its table of contents gives them.

An archive says how large its files are, and may lie. What is read is counted, and reading stops at the bounds.
"""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from urllib.parse import unquote
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from msgspec import Struct

from lukasa.model.corpus import Part
from lukasa.model.errors import UnreadableDocument
from lukasa.providers.documents.decoding import decoded
from lukasa.providers.documents.html import read_page
from lukasa.providers.documents.limits import Limits, beyond

_FIX = "get the book again, and check that it opens in a reader"
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")  # hides fonts, and no text
_PAGES = ("application/xhtml+xml", "text/html")
_RATIO_FROM = 2**20  # bytes; a small file may well shrink to nothing
_DEEPEST = 200  # elements of XML within one another


class Book(Struct, frozen=True):
    title: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...]


def read_book(data: bytes, limits: Limits) -> Book:
    archive = _Archive(data, limits)
    root = archive.xml("META-INF/container.xml")
    package = next((found.get("full-path", "") for found in root.iter() if _name(found) == "rootfile"), "")
    if not package:
        raise UnreadableDocument("the book names no package document", fix=_FIX)
    described = archive.xml(package)
    items = {found.get("id", ""): found for found in described.iter() if _name(found) == "item"}
    hidden = _encrypted(archive)
    chapters = _chapters(archive, package, described, items)
    parts: list[Part] = []
    missing: list[str] = []
    characters = 0
    for path in _spine(package, described, items):
        if path in hidden:
            raise UnreadableDocument("the book is protected (DRM)", fix="use a copy without protection")
        if not archive.has(path):
            missing.append(posixpath.basename(path))
            continue
        if len(parts) > limits.parts or characters > limits.characters:
            beyond(
                f"it has more than {limits.parts:,} sections or {limits.characters:,} characters of text", "characters"
            )
        text, _ = decoded(archive.read(path), "")
        _, read = read_page(text, limits)
        characters += sum(len(part.text) for part in read)
        parts += _under(chapters.get(path, ()), read)
    if not parts:
        raise UnreadableDocument("the book has no text", fix="if its pages are pictures, give a version with text")
    title = next((found.text for found in described.iter() if _name(found) == "title" and found.text), "")
    notes = (f"chapters that the book names and does not hold: {', '.join(missing[:10])}",) if missing else ()
    return Book(" ".join(title.split()), tuple(parts), notes)


def _under(chapter: tuple[str, ...], parts: tuple[Part, ...]) -> Iterator[Part]:
    """Put the titles of the table of contents above the headings of the text, without saying one twice."""
    own = {heading.casefold() for heading in chapter}
    for part in parts:
        if len(chapter) == 1 and part.text.casefold() == chapter[0].casefold() and not part.headings:
            yield part  # a title page
        else:
            yield Part(part.text, (*chapter, *(heading for heading in part.headings if heading.casefold() not in own)))


def _spine(package: str, described: Element, items: dict[str, Element]) -> Iterator[str]:
    for found in described.iter():
        item = items.get(found.get("idref", "")) if _name(found) == "itemref" else None
        if item is None or item.get("media-type") not in _PAGES or "nav" in item.get("properties", "").split():
            continue
        yield _resolved(package, item.get("href", ""))


def _chapters(
    archive: _Archive, package: str, described: Element, items: dict[str, Element]
) -> dict[str, tuple[str, ...]]:
    """Return the path of titles for each file that the table of contents names. The first entry for a file counts."""
    nav = next((item for item in items.values() if "nav" in item.get("properties", "").split()), None)
    spine = next((found for found in described.iter() if _name(found) == "spine"), None)
    ncx = items.get(spine.get("toc", "") if spine is not None else "") if nav is None else None
    contents = nav if nav is not None else ncx
    if contents is None:
        return {}
    path = _resolved(package, contents.get("href", ""))
    if not archive.has(path):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    try:
        root = archive.xml(path)
    except UnreadableDocument:
        return {}  # the text can be read without its table of contents
    for titles, target in _listed(root) if nav is not None else _points(root):
        found.setdefault(_resolved(path, target), titles)
    return found


def _listed(root: Element) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the entries of a navigation document, with the titles above them."""
    navs = [found for found in root.iter() if _name(found) == "nav"]
    toc = next(
        (nav for nav in navs if any(value == "toc" for key, value in nav.attrib.items() if key.endswith("type"))), None
    )
    start = toc if toc is not None else (navs[0] if navs else root)
    waiting: list[tuple[Element, tuple[str, ...]]] = [(start, ())]
    while waiting:
        element, above = waiting.pop()
        titles = above
        if _name(element) == "li":
            label = next((child for child in element if _name(child) in ("a", "span")), None)
            said = " ".join("".join(label.itertext()).split()) if label is not None else ""
            titles = (*above, said) if said else above
            if label is not None and said and (target := label.get("href")):
                yield titles, target
        waiting += [(child, titles) for child in reversed(element)]


def _points(root: Element) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the entries of an older table of contents (NCX), with the titles above them."""
    waiting: list[tuple[Element, tuple[str, ...]]] = [(root, ())]
    while waiting:
        element, above = waiting.pop()
        titles = above
        if _name(element) == "navPoint":
            label = next((child for child in element if _name(child) == "navLabel"), None)
            content = next((child for child in element if _name(child) == "content"), None)
            said = " ".join("".join(label.itertext()).split()) if label is not None else ""
            titles = (*above, said) if said else above
            if content is not None and said:
                yield titles, content.get("src", "")
        waiting += [(child, titles) for child in reversed(element)]


def _encrypted(archive: _Archive) -> set[str]:
    """Return the files that are encrypted, other than fonts."""
    if not archive.has("META-INF/encryption.xml"):
        return set()
    found = set()
    for data in archive.xml("META-INF/encryption.xml").iter():
        if _name(data) == "EncryptedData":
            ways = [one.get("Algorithm", "") for one in data if _name(one) == "EncryptionMethod"]
            if not any(way in _FONTS for way in ways):
                found |= {unquote(one.get("URI", "")) for one in data.iter() if _name(one) == "CipherReference"}
    return found


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _resolved(base: str, target: str) -> str:
    """Return the path in the archive that a link in one of its files means."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(target.partition("#")[0])))


class _Archive:
    """The files of an archive, read within bounds."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        self._limits = limits
        self._left = limits.unpacked_bytes
        try:
            self._zip = zipfile.ZipFile(BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, OSError) as error:
            raise UnreadableDocument("the archive is damaged or only part of one", fix=_FIX) from error
        entries = self._zip.infolist()
        if len(entries) > limits.entries:
            beyond(f"the archive has {len(entries):,} files, more than {limits.entries:,}", "entries")
        self._entries = {entry.filename: entry for entry in entries}
        if len(self._entries) < len(entries):
            raise UnreadableDocument("the archive has two files of one name", fix=_FIX)
        for entry in entries:
            if "\\" in entry.filename or entry.filename.startswith("/") or ".." in entry.filename.split("/"):
                raise UnreadableDocument(f"the archive has a file that points out of it: {entry.filename!r}", fix=_FIX)
            if entry.file_size > _RATIO_FROM and entry.file_size > limits.ratio * max(1, entry.compress_size):
                beyond(f"a file in the archive grows more than {limits.ratio}-fold: {entry.filename!r}", "ratio")
        if sum(entry.file_size for entry in entries) > limits.unpacked_bytes:
            self._too_large()

    def has(self, path: str) -> bool:
        return path in self._entries

    def read(self, path: str) -> bytes:
        entry = self._entries.get(path)
        if entry is None:
            raise UnreadableDocument(f"the book has no file {path!r}", fix=_FIX)
        if entry.flag_bits & 0x1:
            raise UnreadableDocument("the book is protected by a password", fix="use a copy without protection")
        try:
            with self._zip.open(entry) as stream:
                content = stream.read(self._left + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError) as error:
            raise UnreadableDocument(f"a file of the book is damaged: {path!r}", fix=_FIX) from error
        self._left -= len(content)
        if self._left < 0:
            self._too_large()
        return content

    def xml(self, path: str) -> Element:
        return parsed_xml(self.read(path), path)

    def _too_large(self) -> None:
        beyond(f"the archive unpacks to more than {self._limits.unpacked_bytes:,} bytes", "unpacked_bytes")


def parsed_xml(data: bytes, path: str) -> Element:
    """Parse XML that declares no entities: they can grow without bounds, or name files and addresses."""
    builder, depth = TreeBuilder(), 0
    parser = expat.ParserCreate(namespace_separator="}")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise UnreadableDocument(f"{path!r} nests deeper than {_DEEPEST}", fix=_FIX)
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def refuse(*about: object) -> None:
        raise UnreadableDocument(f"{path!r} declares entities, which are not read", fix=_FIX)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = builder.data, refuse
    try:
        parser.Parse(data, True)
        return builder.close()
    except (expat.ExpatError, LookupError, AssertionError) as error:
        raise UnreadableDocument(f"{path!r} is no well-formed XML: {error}", fix=_FIX) from error
