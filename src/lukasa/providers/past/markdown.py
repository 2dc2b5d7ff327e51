"""Markdown as memories: front matter, and the statements that a page of notes or rules holds, word for word.

A list item with all that is indented under it is a statement, and so is a paragraph. A block of code belongs to the
statement before it. Headings say what statements are about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"(?P<indent> {0,3})(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?P<said>\S.*)$")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)$")
_RULE = re.compile(r"\s{0,3}(?:[-*_]\s*){3,}$")
_INCLUDE = re.compile(r"@[\w./~-]+\s*$")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_KEY = re.compile(r"([A-Za-z][\w .-]{0,60}):(?:[ \t]+(.*))?$")
MOST_WHOLE = 2_000  # characters of a page that stays one statement


class Said(NamedTuple):
    """A statement of a page: the line where it begins, the headings above it, and its words.

    `lead` is the line that announces the list which an item is of, as in "When you write tests:".
    """

    line: int
    headings: tuple[str, ...]
    text: str
    item: bool = False
    lead: str = ""


class Page(NamedTuple):
    front: dict[str, str | list[str]]
    body: str
    first: int  # the line of the file where the body begins

    def word(self, key: str) -> str:
        found = self.front.get(key, "")
        return found if isinstance(found, str) else " ".join(found)

    def words(self, key: str) -> list[str]:
        found = self.front.get(key, [])
        return [one.strip() for one in found.split(",") if one.strip()] if isinstance(found, str) else found


def page(text: str) -> Page:
    """Return a page with its front matter apart."""
    found = _FRONT.match(text)
    if found is None:
        return Page({}, text, 1)
    return Page(_front(found[1]), text[found.end() :], text[: found.end()].count("\n") + 1)


def _front(text: str) -> dict[str, str | list[str]]:
    """Read the keys of front matter: texts, and lists in either spelling. All else in it stays out."""
    found: dict[str, str | list[str]] = {}
    key = ""
    for line in text.split("\n"):
        if (named := _KEY.match(line)) is not None:
            key, value = named[1], (named[2] or "").strip()
            listed = value[1:-1].split(",") if value.startswith("[") and value.endswith("]") else None
            found[key] = _bare(value) if listed is None else [_bare(one) for one in listed if one.strip()]
        elif key and (item := line.strip()).startswith("- "):
            before = found[key]
            found[key] = [*(before if isinstance(before, list) else []), _bare(item[2:])]
    return found


def _bare(value: str) -> str:
    said = value.strip()
    return said[1:-1] if len(said) > 1 and said[0] == said[-1] and said[0] in "\"'" else said


def statements(text: str, first: int = 1) -> Iterator[Said]:
    """Yield the statements of a page. A line that only announces a list is no statement of its own."""
    found = list(_blocks(text, first))
    lead = ""
    for number, said in enumerate(found):
        if not said.item:
            after = found[number + 1] if number + 1 < len(found) else None
            announces = said.text.endswith(":") and "\n" not in said.text
            lead = said.text.rstrip(": ") if announces and after is not None and after.item else ""
            if lead:
                continue
        yield said._replace(lead=lead)


def _blocks(text: str, first: int) -> Iterator[Said]:
    """Yield the items and paragraphs of a page."""
    headings: list[str] = []
    block: list[str] = []
    begun, fence, item = 0, "", False
    plain = _uncommented(text)

    def ended() -> Iterator[Said]:
        said = _dedented(block).strip()
        if said and not _INCLUDE.fullmatch(said):
            yield Said(begun, tuple(one for one in headings if one), said, item)
        block.clear()

    lines = plain.split("\n")
    following = _following(lines)
    for number, line in enumerate(lines, first):
        mark = _FENCE.match(line)
        if fence or mark is not None:
            if mark is not None and not fence:
                fence = mark[1][:3]
                begun = begun if block else number
            elif mark is not None and mark[1].startswith(fence):
                fence = ""
            block.append(line)
            continue
        indented = line[:1] in (" ", "\t")
        if not line.strip():
            # An item goes on after a blank line if the next one is indented; code after a paragraph belongs to it.
            after = following[number - first]
            if block and ((item and after[:1] in (" ", "\t")) or _FENCE.match(after)):
                block.append("")
            else:
                yield from ended()
                item = False
            continue
        if (heading := _HEADING.match(line)) is not None and not (item and indented):
            yield from ended()
            item, level = False, len(heading[1])
            headings[level - 1 :] = [*[""] * (level - 1 - len(headings)), _title(heading[2])]
            continue
        if _RULE.match(line):
            yield from ended()
            item = False
            continue
        found = _ITEM.match(line)
        if found is not None and not (item and len(found["indent"]) > 1):
            yield from ended()
            item, begun = True, number
            block.append(found["said"])
            continue
        if not block:
            begun = number
        block.append(line)
    yield from ended()


def _title(heading: str) -> str:
    """Return the words of a heading, without the marks that may close it."""
    words = heading.rstrip()
    before, _, last = words.rpartition(" ")
    return before.rstrip() if before.strip() and not last.strip("#") else words


def _uncommented(text: str) -> str:
    """Return a text without its comments, with as many lines."""
    kept: list[str] = []
    at = 0
    while (begin := text.find("<!--", at)) >= 0 and (end := text.find("-->", begin)) >= 0:
        kept += [text[at:begin], "\n" * text.count("\n", begin, end)]
        at = end + 3
    return "".join((*kept, text[at:]))


def _following(lines: list[str]) -> list[str]:
    """Return for each line the next one that says something; empty for the last."""
    found, after = [""] * len(lines), ""
    for number in range(len(lines) - 1, -1, -1):
        found[number] = after
        after = lines[number] if lines[number].strip() else after
    return found


def _dedented(block: list[str]) -> str:
    """Return the lines of a statement, without the indentation that its list gives them."""
    rest = [line for line in block[1:] if line.strip()]
    indent = min((len(line) - len(line.lstrip(" \t")) for line in rest), default=0)
    return "\n".join([*block[:1], *(line[indent:] if line.strip() else "" for line in block[1:])])


def sections(text: str, most: int = MOST_WHOLE, first: int = 1) -> Iterator[Said]:
    """Yield a page in as few pieces as fit `most` characters each: whole, or by headings, or by paragraphs."""
    if len(text.strip()) <= most:
        if text.strip():
            yield Said(first + _blank(text), (), text.strip())
        return
    start, kept, heading, fence = first, list[str](), "", ""
    size = 0  # of what is kept
    for number, line in enumerate(text.split("\n"), first):
        mark = _FENCE.match(line)
        fence = ("" if fence else mark[1][:3]) if mark is not None and (not fence or mark[1][:3] == fence) else fence
        found = None if fence else _HEADING.match(line)
        if not kept and not line.strip():
            start = number + 1
            continue
        if found is not None or (size > most and not line.strip() and not fence) or size + len(line) > 4 * most:
            if said := "\n".join(kept).strip():
                yield Said(start, (heading,) if heading else (), said)
            size = 0
            start, kept, heading = number, [], _title(found[2]) if found is not None else heading
        kept.append(line)
        size += len(line) + 1
    if said := "\n".join(kept).strip():
        yield Said(start, (heading,) if heading else (), said)


def _blank(text: str) -> int:
    """Return how many lines a text begins with that say nothing."""
    return text[: len(text) - len(text.lstrip())].count("\n")


def tag(heading: str) -> str:
    """Return a heading as a tag."""
    return re.sub(r"[^\w]+", "-", heading.lower()).strip("-")[:60]
