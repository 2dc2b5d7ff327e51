"""Formats that are text: markdown, reStructuredText, plain text, source code and notebooks.

They are read in this process. Every rule here takes one line at a time and bounded stretches of it, so the time grows
with the size of the file and with nothing else. Markdown keeps what shows structure (bullets, rows of tables, fences,
backticks) and loses the rest of its markup. A line of the text is a line of the source, so that a passage can be
cited by its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from lukasa.model.corpus import Part
from lukasa.model.errors import UnreadableDocument
from lukasa.providers.documents.limits import Limits
from lukasa.providers.documents.sections import Sections

Titled = tuple[str, tuple[Part, ...]]

_LONG_LINE = 5_000  # characters; a longer line is data, and its markup is left in it
FENCE = re.compile(r" {0,3}(?:[-*+] +|\d{1,9}[.)] +)?(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_CLOSING = re.compile(r"(?:^|[ \t])#+[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_ANCHOR = re.compile(r"\{#[\w:.-]{1,100}\}$")
_NO_PARAGRAPH = re.compile(r"\s*(?:[-*+>|#]|\d{1,9}[.)])\s|\s*\||\s*$")
_META_TITLE = re.compile(r"title\s*[:=]\s*(.+)", re.IGNORECASE)
_TAGS = re.compile(
    r"</?(?:a|abbr|b|blockquote|br|center|code|details|div|em|figure|figcaption|font|h[1-6]|hr|i|img|kbd|li"
    r"|mark|ol|p|picture|s|samp|small|source|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul|var|video)\b[^<>]{0,500}>",
    re.IGNORECASE,
)
_INLINE = re.compile(
    r"(?P<code>`{1,3}[^`]{1,500}`{1,3})"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|!?\[(?P<link>[^\[\]]{0,500})\]"
    r"(?:\([^()\s]{0,1000}(?:\([^()\s]{0,200}\)[^()\s]{0,200})?(?:\s+[\"'][^\"']{0,300}[\"'])?\)|\[[^\[\]]{0,100}\])"
    r"|(?P<strong>\*{2,3}|(?<!\w)_{2,3})(?=\S)(?P<heavy>[^*_\n]{1,500}?)(?<=\S)(?P=strong)"
    r"|(?P<em>\*|(?<!\w)_)(?=[^\s*_])(?P<light>[^*_\n]{1,500}?)(?<=[^\s*_])(?P=em)(?!\w)"
)


def markdown(text: str, limits: Limits) -> Titled:
    """Return the title and the sections. The front matter gives the title, or else the first heading of level 1."""
    sections = Sections(limits)
    title = add_markdown(sections, text)
    return title, sections.parts()


def add_markdown(sections: Sections, text: str, numbered: bool = True) -> str:
    """Add markdown to the sections, and return its title. A part of a larger file has no line numbers of its own."""
    title, lines, first = _front_matter(text)
    headline, fence, comment = "", "", False
    before = ""  # the line before, if a line below may make it a heading
    pending: tuple[str, int] | None = None

    def give() -> None:
        nonlocal pending
        if pending:
            sections.add(pending[0] + "\n", pending[1] if numbered else None)
        pending = None

    for number, line in enumerate(lines, first):
        line = line.rstrip()
        if fence:
            give()
            pending = (line, number)
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        if comment or "<!--" in line:
            line, comment = _without_comment(line, comment)
        if opened := FENCE.match(line):
            give()
            fence, pending, before = opened[1], (line, number), ""
            continue
        found = _ATX.match(line)
        level, heading = (len(found[1]), _CLOSING.sub("", found[2] or "")) if found else (0, "")
        under = None if found else _SETEXT.match(line)
        if under and before and pending:
            level, heading, pending = (1 if under[1][0] == "=" else 2), before, None
        if level:
            heading = inline(_ANCHOR.sub("", heading.rstrip())).replace("`", "")
            give()
            sections.heading(level, heading, number)
            headline = headline or (heading if level == 1 else "")
            before = ""
            continue
        give()
        plain = inline(line)
        pending = (plain, number)
        before = "" if _NO_PARAGRAPH.match(line) or line.startswith("    ") else plain
    give()
    return title or headline


def _front_matter(text: str) -> tuple[str, list[str], int]:
    """Return the title that the front matter gives, the lines after it, and the number of the first of them."""
    lines = text.split("\n")
    if lines and lines[0].rstrip() in ("---", "+++"):
        for at, line in enumerate(lines[1:200], 1):
            if line.rstrip() == lines[0].rstrip():
                named = (found for row in lines[1:at] if (found := _META_TITLE.match(row)))
                return next((found[1].strip().strip("\"'") for found in named), ""), lines[at + 1 :], at + 2
    return "", lines, 1


def _without_comment(line: str, inside: bool) -> tuple[str, bool]:
    """Take HTML comments out of a line. Say whether one is still open."""
    kept = []
    while line:
        before, mark, line = line.partition("-->" if inside else "<!--")
        if not inside:
            kept.append(before)
        if mark:
            inside = not inside
    return "".join(kept), inside


def inline(line: str) -> str:
    """Take links, emphasis and HTML out of a line of markdown."""
    if len(line) > _LONG_LINE:
        return line
    if "<" in line:
        line = _outside_code(line)
    if not any(mark in line for mark in "[*_\\"):
        return line
    for _ in range(3):  # emphasis in a link in emphasis
        plain = _INLINE.sub(_plain, line)
        if plain == line or "`" in line or "\\" in line:
            return plain
        line = plain
    return line


def _outside_code(line: str) -> str:
    """Take HTML tags out of what is not between backticks."""
    pieces = line.split("`")
    return "`".join(piece if at % 2 else _TAGS.sub("", piece) for at, piece in enumerate(pieces))


def _plain(found: re.Match[str]) -> str:
    if found["code"]:
        return found["code"]
    inner = found["escaped"] or found["link"] or found["heavy"] or found["light"] or ""
    return inner if found["escaped"] else _INLINE.sub(_plain, inner)


_ADORNMENT = re.compile(r"([=\-`:.'\"~^_*+#<>])\1{2,}\s*$")
_FIELD = re.compile(r"(?:\.\. _[^:]{1,100}:|\.\. (?:toctree|contents|index|meta|highlight)::|:orphan:)")


def restructuredtext(text: str, limits: Limits) -> Titled:
    """Return the title and the sections. The first underline that is used marks level 1, the next new one level 2."""
    sections, levels, title = Sections(limits), list[str](), ""
    lines = [line.rstrip() for line in text.split("\n")]
    at = 0
    while at < len(lines):
        line, below = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
        over = bool(_ADORNMENT.match(line)) and at + 2 < len(lines) and lines[at + 2] == line and below.strip() != ""
        under = bool(line) and not line[0].isspace() and _ADORNMENT.match(below) and len(below) >= min(len(line), 3)
        if over or (under and not _ADORNMENT.match(line)):
            heading, style = (below.strip(), line[0] * 2) if over else (line, below[0])
            if style not in levels:
                levels.append(style)
            sections.heading(levels.index(style) + 1, heading, at + 1)
            title = title or heading
            at += 3 if over else 2
            continue
        sections.add(("" if _FIELD.match(line) else line) + "\n", at + 1)
        at += 1
    return title, sections.parts()


def text(content: str, limits: Limits) -> Titled:
    """Return the text. Form feeds, as in printed standards, begin pages."""
    sections, line = Sections(limits), 1
    pages = content.split("\f")
    for number, page in enumerate(pages, 1):
        if len(pages) > 1:
            sections.page(number)
        sections.add(page, line)
        line += page.count("\n")
    return "", sections.parts()


class _Cell(msgspec.Struct):
    cell_type: str = ""
    source: str | list[str] = ""


class _Notebook(msgspec.Struct):
    cells: list[_Cell]
    metadata: dict[str, Any] = {}


def notebook(content: str, limits: Limits) -> Titled:
    """Return the texts of a notebook and its code between fences. Outputs are left out."""
    try:
        book = msgspec.json.decode(content, type=_Notebook)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UnreadableDocument(
            f"it is called a notebook, and is none of version 4: {error}",
            fix="save it again as a notebook of version 4",
        ) from error
    sections, title = Sections(limits), ""
    language = str(book.metadata.get("kernelspec", {}).get("language", "")) if book.metadata else ""
    for cell in book.cells:
        source = cell.source if isinstance(cell.source, str) else "".join(cell.source)
        if cell.cell_type == "markdown":
            title = add_markdown(sections, source, numbered=False) or title
            sections.add("\n")
        elif source.strip():
            fence = "```" if cell.cell_type == "code" else ""
            sections.add(f"{fence}{language}\n{source}\n{fence}\n\n" if fence else f"{source}\n\n")
    return title, sections.parts()


_WORDS = (
    "abstract async const data default export extern external final inline internal local native open override"
    " partial private protected pub public sealed static suspend"
    " unsafe virtual volatile transient synchronized constexpr friend explicit template"
)
_MODIFIERS = rf"(?:(?:{'|'.join(_WORDS.split())})(?:\([^)\n]{{0,40}}\))?\s+){{0,6}}"
_CONTAINERS = (
    "class|interface|trait|impl|struct|enum|record|object|module|namespace|protocol|extension|mixin|defmodule"
    "|package|mod"
)
_DEFINITION = re.compile(
    rf"(?P<indent>[ \t]*)(?P<name>{_MODIFIERS}"
    rf"(?:(?P<container>{_CONTAINERS})|def|defp|func|fun|fn|function\*?|sub|macro_rules!|type|typealias|union"
    r"|procedure|create)\b"
    r"[^\n{;]{0,200})",
    re.IGNORECASE,
)
_SHELL = re.compile(r"(?P<indent>)(?P<name>[\w:-]{1,80}\s*\(\))\s*\{")
# A line of C that ends a signature: it begins at the margin, has a name before a parenthesis, and is no call.
_C = re.compile(r"(?P<indent>)(?P<name>[A-Za-z_][\w:<>,*& \t]{0,120}[ \t*&~]\w[\w:~]{0,80}\s*\([^;]{0,300})$")
_ASSIGNED = re.compile(
    r"(?P<indent>)(?P<name>(?:export\s+)?(?:default\s+)?(?:const|let|var)\s+\w{1,80})\s*"
    r"(?::[^=\n]{1,100})?=\s*(?:async\b|function\b|\(|class\b|\w+\s*=>)"
)
_HEADER = re.compile(r"[ \t]*(?:@|#(?!include|define|if|endif|else|pragma)|//|/\*|\*|--|;;|\"\"\"@|\[[A-Z])")
_PROSE = frozenset("json yaml toml ini xml csv diff css tex".split())
_C_LIKE = frozenset(("c", "cpp", "objective-c", "csharp", "java"))


def code(content: str, language: str, limits: Limits) -> Titled:
    """Return a part for each definition at the margin, and for each member of a class. Data has one part.

    The rule looks at lines and not at a syntax tree: it holds for every language, and no input can break it. (Python's
    own `ast` ends the whole process on an expression that nests deep enough.)
    """
    sections = Sections(limits)
    if language in _PROSE:
        sections.add(content, 1)
        return "", sections.parts()
    lines = content.split("\n")
    starts = dict(_definitions(lines, language))
    for number, line in enumerate(lines):
        if number in starts:
            level, name = starts[number]
            sections.heading(level, name, number + 1)
        sections.add(line + "\n", number + 1)
    return "", sections.parts()


def _definitions(lines: list[str], language: str) -> Iterator[tuple[int, tuple[int, str]]]:
    """Yield the line on which each definition begins, with its comment and decorators, its level and its name."""
    inside, member, quote = False, "", ""
    after = 0  # the first line that belongs to no definition yet
    for number, line in enumerate(lines):
        if len(line) > _LONG_LINE:
            continue
        if language == "python":
            if quote:
                quote = "" if line.count(quote) % 2 else quote
                continue
            quote = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")
        if not line or (line[0] in " \t" and not inside):
            continue
        found = _DEFINITION.match(line) or _ASSIGNED.match(line)
        if not found and language == "shell":
            found = _SHELL.match(line)
        if not found and language in _C_LIKE:
            found = _C.match(line)
        if not found:
            continue
        indent = found["indent"]
        if not indent:
            level, inside, member = 1, bool(found.groupdict().get("container")), ""
        elif inside and member in ("", indent) and not _HEADER.match(line):
            level, member = 2, indent
        else:
            continue
        start = number
        while start > after and _HEADER.match(lines[start - 1]) and _indent(lines[start - 1]) == indent:
            start -= 1
        after = number + 1
        yield start, (level, " ".join(found["name"].rstrip(" :({=\\").split())[:120])


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
