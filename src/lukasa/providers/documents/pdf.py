"""The text of a PDF, page by page, under the headings of its outline."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from msgspec import Struct

from lukasa.model.corpus import Part
from lukasa.model.errors import UnreadableDocument
from lukasa.providers.documents.limits import Limits, beyond
from lukasa.providers.documents.sections import Sections

PACKAGE = "pypdfium2"
_DAMAGED = "get the file again, and check that it opens in a reader"
_MOST_OUTLINE = 20_000  # entries
_DEEPEST_OUTLINE = 15
# PDFium gives U+FFFE, or a control character, for the hyphen of a word that goes on in the next line.
_HYPHENATED = re.compile(r"(?<=\w)[\ufffe\x02\xad]\s*\n?")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_DIGITS = re.compile(r"\d+")
_NUMBERED = re.compile(r"[\da-z][\d.]{0,12}")  # before the title of a section
_RUNNING = 4  # pages on which the same line stands at the edge, for it to be a running title
_NUMBER = re.compile(r"[\s\-–—|]*(?:\d{1,4}|[ivxlc]{1,7})[\s\-–—|]*")
_LONGEST_RUNNING = 120


class _Entry(Struct, frozen=True):
    level: int
    title: str


class Pages(Struct, frozen=True):
    title: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...]


def read_pdf(data: bytes, limits: Limits) -> Pages:
    pdfium: Any = import_module(PACKAGE)
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower() or getattr(error, "err_code", None) == pdfium.raw.FPDF_ERR_PASSWORD:
            raise UnreadableDocument(
                "the PDF is protected by a password", fix="save a copy without the password"
            ) from error
        raise UnreadableDocument("the PDF is damaged or only part of one", fix=_DAMAGED) from error
    count = len(document)
    if count > limits.pages:
        beyond(f"it has {count:,} pages, more than {limits.pages:,}", "pages")
    pages, broken = _texts(document, count, limits, pdfium.PdfiumError)
    empty = [number for number, text in enumerate(pages, 1) if not text.strip() and number not in broken]
    if len(empty) + len(broken) == count:
        if broken or not count:
            raise UnreadableDocument("no page of the PDF can be read", fix=_DAMAGED)
        counted = f"{count:,} page{'' if count == 1 else 's'}"
        raise UnreadableDocument(
            f"the PDF has {counted} and no text: they are pictures", fix="recognise its text (OCR) first"
        )
    notes = [f"no text on {_ranges(empty)}"] if empty else []
    notes += [f"could not read {_ranges(sorted(broken))}"] if broken else []
    if running := _running(pages):
        pages = [_without_edges(text, running) for text in pages]
    title = " ".join(str(document.get_metadata_dict().get("Title", "")).split())
    parts = _parts(pages, _outline(document, count, pdfium.PdfiumError), limits)
    return Pages(title, parts, tuple(notes))


def _texts(document: Any, count: int, limits: Limits, broke: type[Exception]) -> tuple[list[str], set[int]]:
    texts: list[str] = []
    broken: set[int] = set()
    characters = 0
    for index in range(count):
        try:
            page = document[index]
            words = page.get_textpage()
            held = words.count_chars()
            if characters + held > limits.characters:
                beyond(f"it has more than {limits.characters:,} characters of text", "characters")
            text = str(words.get_text_range())
            words.close()
            page.close()
        except broke:
            broken.add(index + 1)
            text = ""
        characters += len(text)
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        texts.append(_CONTROLS.sub(" ", _HYPHENATED.sub("", text)))
    return texts, broken


def _outline(document: Any, count: int, broke: type[Exception]) -> dict[int, list[_Entry]]:
    """Return the entries of the outline by the page that they lead to, from 1."""
    found: dict[int, list[_Entry]] = {}
    try:
        for number, mark in enumerate(document.get_toc(max_depth=_DEEPEST_OUTLINE)):
            if number >= _MOST_OUTLINE:
                break
            target = mark.get_dest()
            index = target.get_index() if target is not None else None
            title = " ".join(mark.get_title().split())
            if index is not None and 0 <= index < count and title:
                found.setdefault(index + 1, []).append(_Entry(mark.level + 1, title))
    except broke:
        return found
    return found


def _parts(pages: Sequence[str], outline: dict[int, list[_Entry]], limits: Limits) -> tuple[Part, ...]:
    """Cut each page where its text has a title of the outline. A title that is not there begins with the page."""
    sections = Sections(limits)
    for number, text in enumerate(pages, 1):
        sections.page(number)
        at = 0
        for entry in outline.get(number, ()):
            place = _place(text, entry.title, at)
            if place is not None:
                sections.add(text[at : place[0]])
                at = place[1]
            sections.heading(entry.level, entry.title)
        sections.add(text[at:])
    return sections.parts()


def _place(text: str, title: str, start: int) -> tuple[int, int] | None:
    """Find the lines that are the title, whatever its spaces and its number are."""
    wanted, at = title.casefold(), start
    lines = text[start:].splitlines(keepends=True)
    for number, line in enumerate(lines):
        for count in (1, 2, 3):
            said = "".join(lines[number : number + count])
            if len(said) > len(title) * 3 + 40:
                break
            words = said.casefold().split()
            if " ".join(words) == wanted or (words and _NUMBERED.fullmatch(words[0]) and " ".join(words[1:]) == wanted):
                return at, at + len(said)
        at += len(line)
    return None


def _running(pages: Sequence[str]) -> set[str]:
    """Return the lines that are first or last on several pages, numbers aside: running titles and page numbers."""
    seen = Counter(edge for text in pages for edge in set(_edges(text)))
    return {edge for edge, times in seen.items() if times >= _RUNNING}


def _edges(text: str) -> Iterator[str]:
    lines = [line for line in text.split("\n") if line.strip()]
    for line in (*lines[:1], *lines[-1:]):
        if len(line) <= _LONGEST_RUNNING:
            yield _edge(line)


def _edge(line: str) -> str:
    """Return what stays the same of a line from page to page."""
    return "" if _NUMBER.fullmatch(line) else _DIGITS.sub("0", line.strip())


def _without_edges(text: str, running: set[str]) -> str:
    lines = text.split("\n")
    filled = [at for at, line in enumerate(lines) if line.strip()]
    for at in {filled[0], filled[-1]} if filled else ():
        if _edge(lines[at]) in running:
            lines[at] = ""
    return "\n".join(lines)


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers of pages as a person writes them: `pages 3, 5–7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    said = [f"{first}" if first == last else f"{first}–{last}" for first, last in runs[:20]]
    more = ", …" if len(runs) > 20 else ""
    return f"{'page' if len(numbers) == 1 else 'pages'} {', '.join(said)}{more}"
