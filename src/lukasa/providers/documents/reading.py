"""Bytes of a known format to a document: in this process for small texts, and in a process of its own for the rest."""

from __future__ import annotations

import re

from msgspec import Struct

from lukasa.model.corpus import ParsedDocument, Part
from lukasa.model.errors import UnreadableDocument
from lukasa.model.text import storable
from lukasa.providers.documents import plain
from lukasa.providers.documents.decoding import decoded
from lukasa.providers.documents.epub import read_book
from lukasa.providers.documents.formats import MEDIA_TYPES, Format
from lukasa.providers.documents.html import read_page
from lukasa.providers.documents.limits import Limits, beyond
from lukasa.providers.documents.pdf import read_pdf

_LONGEST_TITLE = 300
_META_CHARSET = re.compile(r"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_XML_ENCODING = re.compile(r"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})")
_TEXTS = ("markdown", "restructuredtext", "code", "text")
_WITHIN = 2048  # bytes in which a page declares its encoding


class Request(Struct, frozen=True):
    """A file for the process that parses: what is known of it, and the number of bytes that follow."""

    name: str
    format: Format
    limits: Limits
    size: int


class Reply(Struct, frozen=True):
    """What became of a file: a document, or why there is none."""

    document: ParsedDocument | None = None
    error: str = ""
    fix: str = ""


def read(data: bytes, name: str, form: Format, limits: Limits) -> ParsedDocument:
    """Parse a file. Raises UnreadableDocument, which does not name the file yet."""
    title, parts, notes, text = _parsed(data, form, limits)
    if not parts:
        raise UnreadableDocument("it has no text", fix="give a file that holds text")
    if sum(len(part.text) for part in parts) > limits.characters:
        beyond(f"it has more than {limits.characters:,} characters of text", "characters")
    title = " ".join(storable(title).split())[:_LONGEST_TITLE] or own_name(name, form)
    notes = tuple(note for note in (form.note, *notes) if note)
    return ParsedDocument(title, MEDIA_TYPES[form.kind], parts, form.language, notes, text)


def _parsed(data: bytes, form: Format, limits: Limits) -> tuple[str, tuple[Part, ...], tuple[str, ...], str]:
    """Return title, parts and notes, and the text of a file that is one."""
    if form.kind == "pdf":
        pages = read_pdf(data, limits)
        return pages.title, tuple(map(_clean, pages.parts)), pages.notes, ""
    if form.kind == "epub":
        book = read_book(data, limits)
        return book.title, tuple(map(_clean, book.parts)), book.notes, ""
    content, note = decoded(data, _declared(data, form))
    match form.kind:
        case "html":
            title, parts = read_page(content, limits)
            if not parts:
                raise UnreadableDocument(
                    "the page has no text of its own: a program in the browser may fill it",
                    fix="save the page from a browser, or print it as PDF",
                )
            parts = tuple(map(_clean, parts))
        case "markdown":
            title, parts = plain.markdown(content, limits)
        case "restructuredtext":
            title, parts = plain.restructuredtext(content, limits)
        case "notebook":
            title, parts = plain.notebook(content, limits)
            parts = tuple(map(_clean, parts))
        case "code":
            title, parts = plain.code(content, form.language, limits)
        case _:
            title, parts = plain.text(content, limits)
    return title, parts, (note,), content if form.kind in _TEXTS else ""


def _clean(part: Part) -> Part:
    """Return a part that can be stored: entities, fonts and JSON may name characters that are none."""
    if storable(part.text) == part.text and all(storable(heading) == heading for heading in part.headings):
        return part
    return Part(storable(part.text), tuple(map(storable, part.headings)), part.page, part.line)


def _declared(data: bytes, form: Format) -> str:
    """Return the encoding that the server named, or else the page itself."""
    if form.charset or form.kind != "html":
        return form.charset
    beginning = data[:_WITHIN].decode("latin-1")
    found = _XML_ENCODING.match(beginning) or _META_CHARSET.search(beginning)
    return found[1] if found else ""


def own_name(name: str, form: Format) -> str:
    """Return the name of a file without its folders, for a document that has no title. Source code keeps its ending."""
    last = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    shown, dot, _ = last.rpartition(".")
    kept = last if form.kind == "code" or not (dot and shown) else shown
    return storable(kept)[:_LONGEST_TITLE] or "document"
