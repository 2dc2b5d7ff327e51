"""The main content of a web page: title, headings and text, without scripts, navigation and menus. Nothing is fetched.

The standard library's tokenizer is enough, because the text of a page does not need its exact tree. Nothing here
recurses, so nesting costs no stack.
"""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

from msgspec import Struct

from lukasa.model.corpus import Part
from lukasa.providers.documents.limits import Limits, beyond
from lukasa.providers.documents.sections import Sections

_VOID = frozenset("area base br col embed hr img input link meta param source track wbr keygen frame".split())
_SKIPPED = frozenset(
    """script style template noscript iframe object canvas audio video map select datalist button svg nav footer dialog
    frameset noframes rp rt""".split()
)
_ROLES = frozenset("navigation banner contentinfo search complementary menu menubar toolbar dialog alertdialog".split())
_CLASSES = frozenset(
    """nav navbar navigation menu sidebar breadcrumb breadcrumbs skip-link sr-only visually-hidden
    screen-reader-text headerlink cookie-banner cookie-consent share social-links noprint
    mw-editsection mw-jump-link navbox related-posts""".split()
)
_BLOCKS = frozenset(
    """address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hr html li main menu nav ol p pre section summary table tbody td
    tfoot th thead tr ul caption""".split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# What an opening tag closes, if it is still open right above.
_CLOSES: dict[str, frozenset[str]] = {
    "li": frozenset(("li", "p")),
    "dt": frozenset(("dt", "dd", "p")),
    "dd": frozenset(("dt", "dd", "p")),
    "tr": frozenset(("tr", "td", "th", "p")),
    "td": frozenset(("td", "th", "p")),
    "th": frozenset(("td", "th", "p")),
    "option": frozenset(("option",)),
    "body": frozenset(("head", "p")),
}
_DECLARED = re.compile(r"<!\[[^>]{0,1000}>")  # conditional comments, which the tokenizer does not know
_PLAIN_BREAK = re.compile(r"[ \t\f\v\n]+")
_ENOUGH = 200  # characters that make a main element the content of its page
_MENU = 3  # items in a row that are only links
_LINKED = 0.8  # of an item's text


class _Block(Struct):
    text: str
    level: int = 0
    """Of a heading; 0 for text."""
    tight: bool = False
    """It follows the block before without an empty line: an item of a list, a row of a table."""
    main: bool = False
    linked: int = 0
    """Characters that are links."""
    item: bool = False


class _Open(Struct):
    """An element that is open, and what it switched on."""

    tag: str
    skips: bool = False
    main: bool = False
    header: bool = False


def read_page(text: str, limits: Limits) -> tuple[str, tuple[Part, ...]]:
    """Return the title and the sections of a page."""
    title, blocks = _read(text, limits)
    sections = Sections(limits)
    for block in blocks:
        if block.level:
            sections.heading(block.level, block.text)
        else:
            sections.add(("" if block.tight else "\n") + block.text + "\n")
    first = next((block.text for block in blocks if block.level), "")
    return " ".join(title.split()) or first, sections.parts()


def _read(text: str, limits: Limits) -> tuple[str, list[_Block]]:
    reader = _Reader(limits)
    reader.feed(_DECLARED.sub("", _without_cdata(text)))
    reader.close()
    reader.flush()
    in_main = [block for block in reader.blocks if block.main]
    if sum(len(block.text) for block in in_main if not block.level) >= _ENOUGH:
        kept = in_main
        headline = next((block for block in reader.blocks if block.level == 1), None)
        if headline is not None and not headline.main and not any(block.level == 1 for block in kept):
            kept = [headline, *kept]  # it stands in a header above the main element
        return reader.title, kept
    return reader.title, _without_menus(reader.blocks)


def _without_cdata(text: str) -> str:
    """Return a page whose marked sections (XHTML's CDATA) are plain text."""
    if "<![CDATA[" not in text:
        return text
    before, *pieces = text.split("<![CDATA[")
    kept = [before]
    for piece in pieces:
        inside, end, after = piece.partition("]]>")
        kept.append(escape(inside, quote=False) + after if end else escape(piece, quote=False))
    return "".join(kept)


def _without_menus(blocks: list[_Block]) -> list[_Block]:
    """Leave out the lists whose items are only links: menus, tags, "related"."""
    kept: list[_Block] = []
    run: list[_Block] = []
    for block in [*blocks, _Block("")]:
        if block.item and block.linked >= _LINKED * len(block.text.lstrip(" -.0123456789")):
            run.append(block)
            continue
        kept += run if len(run) < _MENU else []
        run = []
        kept += [block] if block.text else []
    return kept or blocks  # a page of links is that, and no menu


class _Reader(HTMLParser):
    """Turns tags and text into blocks."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.blocks: list[_Block] = []
        self._limits = limits
        self._open: list[_Open] = []
        self._names: dict[str, int] = {}
        self._skipping = self._main = self._header = self._links = self._pre = 0
        self._level = 0  # of the heading that is open
        self._lists: list[int | None] = []  # the next number of each ordered list that is open, None for the others
        self._bullet = ""
        self._cells: list[str] | None = None
        self._text: list[str] = []
        self._linked = 0
        self._in_title = False
        self._characters = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            self._void(tag, dict(attrs))
            return
        self._close_implied(tag)
        if len(self._open) >= self._limits.nesting:
            beyond(f"its elements nest deeper than {self._limits.nesting:,}", "nesting")
        element = self._element(tag, dict(attrs))
        if tag in _BLOCKS and not self._pre:
            self._begin(tag)
        if tag == "pre":
            self._pre += 1
        elif tag == "a":
            self._links += 1
        elif tag == "title" and not self.title and "svg" not in self._names:
            self._in_title = True
        self._open.append(element)
        self._names[tag] = self._names.get(tag, 0) + 1
        self._skipping += element.skips
        self._main += element.main
        self._header += element.header

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """In XHTML an empty element may close itself; in HTML the slash of any other means nothing."""
        if tag in _VOID:
            self._void(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if not self._names.get(tag):
            return
        while self._open:
            closed = self._pop()
            if closed == tag:
                return

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title = (self.title + data)[:1000]
        if self._skipping or self._in_title or not data or (self._header and not self._main and not self._level):
            return
        self._characters += len(data)
        if self._characters > 4 * self._limits.characters:
            beyond(f"it has more than {self._limits.characters:,} characters of text", "characters")
        self._text.append(data)
        if self._links:
            self._linked += len(data.strip())

    def _element(self, tag: str, given: dict[str, str | None]) -> _Open:
        role = (given.get("role") or "").lower()
        classes = (given.get("class") or "").lower().split()
        hidden = "hidden" in given or given.get("aria-hidden") == "true"
        aside = (tag == "aside" or (tag == "form" and len(self._names) > 0)) and not self._main
        skips = tag in _SKIPPED or role in _ROLES or hidden or aside or not _CLASSES.isdisjoint(classes)
        return _Open(
            tag, skips and tag not in ("body", "html"), tag in ("main", "article") or role == "main", tag == "header"
        )

    def _void(self, tag: str, given: dict[str, str | None]) -> None:
        if tag == "br" and not self._skipping:
            self._text.append("\n" if self._pre else "\v")  # a break that survives the folding of spaces
        elif tag == "hr":
            self.flush()
        elif tag == "img" and (alt := (given.get("alt") or "").strip()):
            self.handle_data(f" {alt} ")

    def _close_implied(self, tag: str) -> None:
        closed = _CLOSES.get(tag, frozenset(("p",)) if tag in _BLOCKS else frozenset())
        while self._open and self._open[-1].tag in closed:
            self._pop()

    def _pop(self) -> str:
        element = self._open.pop()
        tag = element.tag
        self._names[tag] -= 1
        if tag == "title":
            self._in_title = False
        elif tag == "pre" and self._pre:
            self._flush_code()
        elif tag in ("td", "th") and self._cells is not None:
            self._cells.append(self._taken())
        elif tag == "tr":
            self._flush_row()
        elif tag in ("ul", "ol") and self._lists:
            self.flush()
            self._lists.pop()
        elif tag in _BLOCKS and not self._pre:
            if self._cells is None or tag in _HEADINGS:
                self.flush()
            else:
                self._text.append(" ")
        if tag == "a":
            self._links -= 1
        self._skipping -= element.skips
        self._main -= element.main
        self._header -= element.header
        return tag

    def _begin(self, tag: str) -> None:
        if self._cells is not None:
            if tag not in _HEADINGS and tag not in ("table", "pre", "tr"):
                self._text.append(" ")
                return
            self._flush_cells()  # a table that lays out the page
        self.flush()
        if tag in _HEADINGS:
            self._level = _HEADINGS[tag]
        elif tag in ("ul", "ol"):
            self._lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            number = self._lists[-1] if self._lists else None
            if number is not None:
                self._lists[-1] = number + 1
            self._bullet = "  " * max(0, min(len(self._lists), 12) - 1) + (
                f"{number}. " if number is not None else "- "
            )
        elif tag == "tr":
            self._cells = []

    def _taken(self) -> str:
        """Return the text so far as one paragraph, and begin a new one."""
        text = "".join(self._text)
        self._text = []
        text = _PLAIN_BREAK.sub(" ", text.replace("\v", "\x1f").replace("\xa0", " "))
        return re.sub(r" ?\x1f ?", "\n", text).strip()

    def flush(self) -> None:
        """End the paragraph, heading or item that is open."""
        if self._cells is not None:
            self._flush_cells()
        text, linked = self._taken(), self._linked
        level, self._level, bullet, self._linked = self._level, 0, self._bullet, 0
        if not text:
            return
        self._bullet = ""
        if level:
            self.blocks.append(_Block(text, level, main=self._main > 0, linked=linked))
            return
        tight = bool(bullet) and bool(self.blocks) and self.blocks[-1].item
        self.blocks.append(_Block(bullet + text, tight=tight, main=self._main > 0, linked=linked, item=bool(bullet)))

    def _flush_cells(self) -> None:
        """Give the cells so far as paragraphs."""
        cells, self._cells = [*(self._cells or []), self._taken()], None
        linked, self._linked = self._linked, 0
        self.blocks += [_Block(cell, main=self._main > 0, linked=linked) for cell in cells if cell]

    def _flush_row(self) -> None:
        if self._cells is None:
            return
        cells, self._cells = self._cells, None
        rest, linked, self._linked = self._taken(), self._linked, 0
        cells = [cell.replace("\n", " ") for cell in ([*cells, rest] if rest else cells)]
        if not any(cells):
            return
        tight = bool(self.blocks) and self.blocks[-1].text.startswith("| ")
        row = f"| {' | '.join(cells)} |" if len(cells) > 1 else cells[0]
        self.blocks.append(_Block(row, tight=tight, main=self._main > 0, linked=linked))

    def _flush_code(self) -> None:
        self._pre -= 1
        text = "".join(self._text).replace("\v", "\n").strip("\n")
        self._text, self._linked = [], 0
        if text.strip():
            self.blocks.append(_Block(f"```\n{text.rstrip()}\n```", main=self._main > 0))
