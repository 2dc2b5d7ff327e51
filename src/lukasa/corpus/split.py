"""Cut a document into passages of a size that a search can return.

A passage is a stretch of the text of one part, so it has one page and one path of headings, and it is cited by them.
Cuts fall where they cost least: between paragraphs, or before a list, a table or a fence that fits whole into the
next passage, then between their lines, then between sentences, lines and words. Only a text without any of these is
cut between two characters.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from msgspec import Struct

from lukasa.model.corpus import ParsedDocument, Part, Passage
from lukasa.model.errors import InvalidInput


class Sizes(Struct, frozen=True):
    """Characters of a passage at most, and of the end of a passage that the next one repeats at most."""

    most: int = 1_100
    overlap: int = 150

    def __post_init__(self) -> None:
        if self.most < 50 or not 0 <= self.overlap <= self.most // 3:
            raise InvalidInput(
                f"passages of {self.most} characters cannot overlap by {self.overlap}",
                fix="give a size of 50 characters or more, and an overlap of at most a third of it",
            )


DEFAULT = Sizes()

_FULL = 0.5  # of the size: a passage is at least so full before a cut between paragraphs, sentences or words
_SENTENCE = re.compile(
    r"[.!?…]{1,8}[\"'”’»)\]]{0,8}(?=\s{1,50}[^\sa-zà-öø-ÿ])\s{1,50}"  # not before a small letter: "e.g. this"
    r"|[。！？｡؟۔।]{1,8}[」』”’）)]{0,8}\s{0,50}"
)
_SHORT = 0.3  # of the size: a definition that is joined with its neighbour
_TAIL = 20  # characters that show whether a sentence or paragraph has ended
_ENDED = re.compile(r"(?:[.!?…:。！？｡؟۔।][\"'”’»)\]」』）]*\s*|\n[ \t]*\n\s*)$")
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_LINE = re.compile(r"\n")
_SPACE = re.compile(r"\s+")
_FILLED = re.compile(r"\S")
_MARGIN = re.compile(r"\n[ \t]{0,50}\n(?=\S)")  # code that begins anew at the margin
_FENCE = re.compile(r" {0,3}(?:[-*+] +|\d{1,9}[.)] +)?(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+•‣▪]|\d{1,4}[.)])\s+\S")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_MARKS = re.compile("[\u0300-\u036f\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")


class _Block(Struct, frozen=True):
    """A fence, list or table: it is kept whole if it fits, and cut between its lines if not."""

    start: int
    end: int


class _Blocks:
    """The blocks of a text, in order."""

    def __init__(self, blocks: Iterable[_Block]) -> None:
        self._all = list(blocks)
        self._starts = [block.start for block in self._all]

    def around(self, position: int) -> _Block | None:
        """Return the block that a cut at the position would break."""
        at = bisect_left(self._starts, position) - 1
        return self._all[at] if at >= 0 and position < self._all[at].end else None

    def last_outside(self, pattern: re.Pattern[str], text: str, least: int, limit: int) -> int | None:
        """Return the last place between two positions where a match ends and no block is broken."""
        ends = [found.end() for found in pattern.finditer(text, max(0, least - 1), limit)]
        return next((end for end in reversed(ends) if end >= least and self.around(end) is None), None)


def split(document: ParsedDocument, *, document_id: str, version: int, sizes: Sizes = DEFAULT) -> tuple[Passage, ...]:
    """Return the passages in the order of the document. All its words are in them."""
    is_code = bool(document.language)
    passages: list[Passage] = []
    for part in _joined(document.parts, sizes) if is_code else document.parts:
        line, counted = part.line, 0
        for start, end in _spans(part.text, sizes, is_code):
            if line is not None:
                line += part.text.count("\n", counted, start)
                counted = start
            text = part.text[start:end]
            passages.append(Passage(document_id, version, len(passages), text, part.headings, part.page, line))
    return tuple(passages)


def _joined(parts: Sequence[Part], sizes: Sizes) -> Iterator[Part]:
    """Join the short definitions of source code with their neighbours, under the headings that they share.

    Code says its own names, so nothing is lost; in prose the heading is often the only line that names the subject.
    """
    held: Part | None = None
    for part in parts:
        joined = None if held is None else _together(held, part, sizes)
        if joined is None and held is not None:
            yield held
        held = joined or part
    if held is not None:
        yield held


def _together(held: Part, part: Part, sizes: Sizes) -> Part | None:
    if min(len(held.text), len(part.text)) > sizes.most * _SHORT or held.line is None or part.line is None:
        return None
    gap = part.line - held.line - held.text.count("\n")
    if gap < 1 or len(held.text) + gap + len(part.text) > sizes.most:
        return None
    shared = takewhile(lambda both: both[0] == both[1], zip(held.headings, part.headings, strict=False))
    return Part(held.text + "\n" * gap + part.text, tuple(one for one, _ in shared), held.page, held.line)


def _spans(text: str, sizes: Sizes, is_code: bool) -> Iterator[tuple[int, int]]:
    """Yield where each passage begins and ends. None begins or ends with an empty line."""
    blocks = _Blocks(() if is_code else _blocks(text))
    start, cut, length = 0, 0, len(text.rstrip())
    while cut < length:
        fresh = _FILLED.search(text, cut)
        new = fresh.start() if fresh else length
        start = _filled(text, start, sizes, is_code)
        if new - start > sizes.most * _FULL:
            start = _filled(text, cut, sizes, is_code)  # so many empty lines that there is no room to repeat anything
        if length - start <= sizes.most:
            yield start, length
            return
        cut = _cut(text, start, max(new, start), sizes, blocks, is_code)
        yield start, start + len(text[start:cut].rstrip())
        start = _again(text, start, cut, sizes, blocks, is_code)


def _filled(text: str, start: int, sizes: Sizes, is_code: bool) -> int:
    """Return the first position from here on that is no space. Code keeps the indentation of its first line."""
    found = _FILLED.search(text, start)
    if found is None:
        return len(text)
    margin = max(start, text.rfind("\n", start, found.start()) + 1)
    whole_line = margin == 0 or text[margin - 1] == "\n"
    return margin if is_code and whole_line and found.start() - margin < sizes.most // 4 else found.start()


def _cut(text: str, start: int, after: int, sizes: Sizes, blocks: _Blocks, is_code: bool) -> int:
    """Return where a passage that begins at `start` ends. It holds something that is not before `after`."""
    limit = start + sizes.most
    least = max(start + int(sizes.most * _FULL), after + 1)
    if is_code:
        found = (
            _last(_MARGIN, text, least, limit)
            or _last(_PARAGRAPH, text, least, limit)
            or _last(_LINE, text, after + 1, limit)
        )
    elif (block := blocks.around(limit)) is None:
        found = blocks.last_outside(_PARAGRAPH, text, least, limit) or blocks.last_outside(
            _SENTENCE, text, least, limit
        )
    elif block.start > after and block.end - block.start <= sizes.most:
        found = block.start  # it fits whole into the next passage
    else:
        found = _last(_LINE, text, max(block.start, after) + 1, limit)
    return (
        found
        or _last(_SENTENCE, text, least, limit)
        or _last(_LINE, text, least, limit)
        or _last(_SPACE, text, least, limit)
        or _last(_SPACE, text, after + 1, limit)
        or _between(text, limit, after + 1)
    )


def _last(pattern: re.Pattern[str], text: str, least: int, limit: int) -> int | None:
    """Return the end of the last match that ends between two positions."""
    ends = [found.end() for found in pattern.finditer(text, max(0, least - 1), limit)]
    return ends[-1] if ends and ends[-1] >= least else None


def _between(text: str, limit: int, least: int) -> int:
    """Return a place between two characters, not before one that belongs to the character before it."""
    place = limit
    while place > least and place > limit - 20 and _MARKS.match(text, place):
        place -= 1
    return place


def _again(text: str, start: int, cut: int, sizes: Sizes, blocks: _Blocks, is_code: bool) -> int:
    """Return where the next passage begins: with the last sentences, lines or words of this one."""
    least = max(cut - sizes.overlap, start + 1)
    block = blocks.around(cut)
    if block is None and (ahead := blocks.around(cut + 1)) is not None and ahead.end - ahead.start <= sizes.most:
        least = max(least, ahead.end - sizes.most)  # the block stays whole
    by_lines = is_code or block is not None
    whole = not by_lines and _ENDED.search(text[max(0, cut - _TAIL) : cut]) is not None
    within = (_LINE,) if by_lines else (_PARAGRAPH, _SENTENCE) if whole else (_PARAGRAPH, _SENTENCE, _LINE, _SPACE)
    for pattern in within:
        for found in pattern.finditer(text, max(0, least - 1), cut):
            if least <= found.end() < cut and text[found.end() : cut].strip():
                return found.end()
    unspaced = not by_lines and not whole and not _SPACE.search(text, least, cut)
    return least if unspaced and least < cut else cut


def _blocks(text: str) -> Iterator[_Block]:
    """Yield fences, lists and tables in order."""
    fence, kind = "", ""
    start = position = end = 0
    for line in text.splitlines(keepends=True):
        here, position = position, position + len(line)
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
                yield _Block(start, position)
            continue
        opened = _FENCE.match(line)
        now = "fence" if opened else "table" if _ROW.match(line) else "list" if _ITEM.match(line) else ""
        if kind == "list" and not now and line.strip() and line[0] in " \t":
            now = "list"  # the item goes on
        if now != kind:
            if kind:
                yield _Block(start, end)
            start = here
        kind, end = now, position
        if opened:
            fence, kind, start = opened[1], "", here
    if fence or kind:
        yield _Block(start, len(text))
