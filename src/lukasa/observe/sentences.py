"""Find the whole sentences of a message, each by its span. Linear in the length of the message.

A sentence never loses a part: an abbreviation, a number, a wrapped line, an open bracket or quotation does not end it.
If it is unclear whether a sentence ends, it goes on: two sentences in one lose nothing, and half a sentence may say the
opposite. A list marker is layout and no part of a sentence. A list belongs to the sentence with a colon before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct


class SentenceSpan(Struct, frozen=True):
    """The position of a sentence in its message."""

    start: int
    end: int


class _Paragraph(Struct, frozen=True):
    """Lines that may share a sentence. From `whole` on, no mark ends a sentence: a list belongs to its first line."""

    start: int
    end: int
    whole: int


_FENCE = re.compile(r"[ \t]{0,3}(```|~~~)")
# Lines that quote others or come from a machine: mail quotes, tables, diffs, stack traces. And headings.
_FOREIGN = re.compile(r"[ \t]*+(?:>|\||\+{3}|-{3}|@@|diff |at \S+\(|File \"|#{1,6} )")
_ITEM = re.compile(r"[ \t]*+(?:[-*•–]|\d{1,2}[.)])[ \t]++(?:\[[ xX]\][ \t]++)?")
_MARKS = ".!?…。！？"
_CLOSERS = "\"'”“’»)]*_"
_END = re.compile(rf"[{_MARKS}]++[{re.escape(_CLOSERS)}]*+")
_WRAPPED = 60  # characters of a line that its writer probably wrapped
# Short forms with a vowel; those without one need no list.
_SHORT_FORMS = frozenset(
    """approx prof ca abs evtl gem inkl exkl zzgl sog gen col dept est fig abt rev gov sen fam geb gest ing dipl capt
    ave mio insb allg einschl""".split()
)
_MAY_END = frozenset("etc usw inc ltd co corp tel no nr art max min std sec jun vol".split())
_AFTER_A_NAME = frozenset("is are was has and or ist war hat und oder".split())  # "Yahoo! is …"
_VOWELS = frozenset("aeiouyäöüàáâèéêíîóôúû")


def sentences(text: str) -> list[SentenceSpan]:
    """Return the spans of the sentences of a message, without listings and quotations."""
    return [span for paragraph in _paragraphs(text) for span in _split(text, paragraph)]


def _lines(text: str) -> Iterator[tuple[int, str | None]]:
    """Yield each line with its start; None stands for a line of a listing, or of somebody else."""
    at, fence = 0, ""
    for line in text.split("\n"):
        start, at = at, at + len(line) + 1
        mark = _FENCE.match(line)
        if mark is not None and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
            yield start, None
        else:
            yield start, None if fence or _FOREIGN.match(line) else line.rstrip()


def _paragraphs(text: str) -> Iterator[_Paragraph]:
    """Join the lines that may share a sentence."""
    start = end = whole = -1
    before, gap = "", False
    for at, line in _lines(text):
        if not line:
            before, gap = before if line is not None else "", True
            continue
        item = _ITEM.match(line)
        listed = item is not None and (before.endswith(":") or (whole >= 0 and not gap))
        if start >= 0 and not listed and (gap or item is not None or not _continues(before, line)):
            yield _Paragraph(start, end, whole if whole >= 0 else end)
            start = whole = -1
        if start < 0:
            start = at + (item.end() if item is not None else 0)
        elif listed and whole < 0:
            whole = at
        before, gap, end = line, False, at + len(line)
    if start >= 0:
        yield _Paragraph(start, end, whole if whole >= 0 else end)


def _continues(before: str, line: str) -> bool:
    """Say whether a line goes on with the line before it. After a full stop it may: a short form has one, too."""
    last = before.rstrip(_CLOSERS)[-1:]
    return last in f"{_MARKS},;:-–—" or line.lstrip()[:1].islower() or len(before) >= _WRAPPED


def _split(text: str, paragraph: _Paragraph) -> Iterator[SentenceSpan]:
    """Yield the sentences of a paragraph."""
    said = text[paragraph.start : paragraph.end]
    whole = paragraph.whole - paragraph.start
    balance = _Balance(said)
    start = 0
    for mark in _END.finditer(said, 0, whole):
        balanced = balance.closed(mark.end())
        if balanced and mark.end() < len(said) and _ends(said, mark):
            yield from _trimmed(said, start, mark.end(), paragraph.start)
            start = mark.end()
    yield from _trimmed(said, start, len(said), paragraph.start)


def _trimmed(said: str, start: int, end: int, offset: int) -> Iterator[SentenceSpan]:
    bare = said[start:end]
    start += len(bare) - len(bare.lstrip())
    end -= len(bare) - len(bare.rstrip())
    if start < end:
        yield SentenceSpan(offset + start, offset + end)


class _Balance:
    """Count the open quotation marks and brackets of a text, up to positions in order. An unclosed one counts not."""

    def __init__(self, text: str) -> None:
        self._text = text
        low = "„" in text  # the mark that closes a German quotation opens an English one
        self._pairs = [p for p in ("()", "[]", "«»", "„“" if low else "“”") if text.count(p[0]) == text.count(p[1])]
        self._straight = text.count('"') % 2 == 0
        self._at = self._open = self._quotes = 0

    def closed(self, at: int) -> bool:
        """Return whether nothing is open at a position."""
        part = self._text[self._at : at]
        self._at = at
        self._open += sum(part.count(pair[0]) - part.count(pair[1]) for pair in self._pairs)
        self._quotes += part.count('"')
        return self._open <= 0 and not (self._straight and self._quotes % 2)


def _ends(said: str, mark: re.Match[str]) -> bool:
    """Say whether a mark inside a paragraph ends a sentence."""
    if any(wide in mark[0] for wide in "。！？"):
        return True
    if not said[mark.end()].isspace():
        return False
    after = said[mark.end() : mark.end() + 40].split(maxsplit=1)
    following = after[0] if after else ""
    low = following[:1].islower()
    if not following or (mark[0][-1] in _CLOSERS and not low):
        return True
    if mark[0][-1] in _CLOSERS or mark[0].startswith(("..", "…")):
        return not low  # words that somebody says inside a sentence, or a pause
    if mark[0].startswith("!"):
        return following.lower() not in _AFTER_A_NAME
    return mark[0] != "." or not _short_form(said, mark.start(), following)


def _short_form(said: str, at: int, following: str) -> bool:
    """Say whether the full stop at a position may belong to a short form, an initial or a German ordinal."""
    before = said[max(0, at - 40) : at]
    words = before.split()
    word = words[-1].lstrip("([\"'„“«") if words and not before[-1:].isspace() else ""
    low = word.lower()
    if word.isdigit():
        return len(word) < 3  # "am 9. Mai"
    if len(word) == 1 or low in _SHORT_FORMS or ("." in word and all(len(part) <= 2 for part in low.split(".", 8))):
        return word not in ("I", "")
    if low in _MAY_END or following[:1].islower():
        alone = len(words) < 2 or words[-2][-1:] in _MARKS  # "Hi. my name is …"
        likely = low in _MAY_END or (len(word) <= 4 and not alone and not said[:1].islower())
        return likely and (following[:1].islower() or following[:1].isdigit())
    return len(word) <= 5 and word.isalpha() and not word.isupper() and _VOWELS.isdisjoint(low)
