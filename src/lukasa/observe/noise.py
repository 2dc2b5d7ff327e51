"""Clean a session before any of it is stored: remove noise, Lukasa's own text and secrets.

    asides       tool calls and their output, thoughts, summaries, system prompts, subagents
    own words    text that Lukasa injected, found by its marks or by its form
    harness      reminders, echoes of commands, notices in brackets
    dumps        encoded data, very long lines, long listings
    secrets      keys, tokens, passwords, by the detector of lukasa.model.secrets

Every removal is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from lukasa.model.echo import unharnessed, unmarked
from lukasa.model.transcript import Utterance
from lukasa.observe.sentences import sentences
from lukasa.ports import Piece

Redact = Callable[[str], tuple[str, int]]
MOST_CHARACTERS = 20_000  # of one message
MOST_FAILURE = 500  # characters up to which the output of a failed tool is kept
LISTING_LINES = 40
_DATA = re.compile(r"data:[\w./+-]{1,60};base64,[\w+/=-]+|(?<![\w+/])[A-Za-z0-9+/_-]{160,}={0,2}(?![\w+/])")
_LONG_LINE = re.compile(r"^[^\n]{2000,}$", re.MULTILINE)
_FENCE = re.compile(r"[ \t]{0,3}(```|~~~)")
_FENCE_END = re.compile(r"[ \t]{0,3}(```|~~~)[ \t]*")


class Cleaned(Struct, frozen=True):
    """The messages in order, and the number of removals of each sort."""

    utterances: tuple[Utterance, ...]
    stripped: Mapping[str, int]


def clean(pieces: Iterable[Piece], redact: Redact, *, place: int = 0) -> Cleaned:
    """Clean the pieces that somebody said and drop the others; positions are counted from `place`."""
    stripped: Counter[str] = Counter()
    kept: dict[str, Utterance] = {}
    for piece in pieces:
        if piece.id in kept:
            continue
        if piece.aside and not _worth_keeping(piece):
            stripped[piece.aside] += 1
            continue
        text = cleaned(piece.text, redact, stripped)
        if not text:
            stripped["empty"] += 1
            continue
        kept[piece.id] = Utterance(piece.id, piece.role, text, place + len(kept), piece.at)
    return Cleaned(tuple(kept.values()), dict(stripped))


def _worth_keeping(piece: Piece) -> bool:
    """Whether to keep the output of a tool: a short failure may happen again; other output can be produced again."""
    return piece.aside == "tool-result" and piece.failed and 0 < len(piece.text.strip()) <= MOST_FAILURE


def cleaned(text: str, redact: Redact, stripped: Counter[str] | None = None) -> str:
    """Clean one text and count the removals."""
    counts = Counter[str]() if stripped is None else stripped
    for name, step in (("own-memory", unmarked), ("harness", unharnessed)):
        shorter = step(text)
        counts[name] += shorter != text
        text = shorter
    text, secrets = redact(text)  # before dumps are shortened: half a secret looks like none
    shorter = _without_dumps(text)
    counts["secret"] += secrets
    counts["dump"] += shorter != text
    text = shorter
    for name in [name for name, count in counts.items() if not count]:
        del counts[name]
    return text.strip()


def _without_dumps(text: str) -> str:
    text = _DATA.sub("[data]", text)
    text = _LONG_LINE.sub(_line, text)
    if "```" in text or "~~~" in text:
        text = "\n".join(_without_listings(text.split("\n")))
    return _shortened(text) if len(text) > MOST_CHARACTERS else text


def _shortened(text: str) -> str:
    """Leave out the middle of a long message. The sentences at both edges stay whole, or go with it.

    Only an endless sentence is cut: what is left of it is still too long to be observed.
    """
    tail = MOST_CHARACTERS // 3
    head, rest = MOST_CHARACTERS - tail, len(text) - tail
    spans = sentences(text)
    head = max((span.end for span in spans if head / 2 < span.end <= head), default=head)
    rest = min((span.start for span in spans if rest <= span.start < rest + tail / 2), default=rest)
    return f"{text[:head]}\n\n[… {rest - head:,} characters]\n\n{text[rest:]}"


def _line(found: re.Match[str]) -> str:
    """Shorten a long line without spaces, which a machine made; a long line of words is a paragraph and stays."""
    line = found[0]
    return line if line.count(" ") * 12 > len(line) else f"{line[:300]} [… a line of {len(line):,} characters]"


def _without_listings(lines: Sequence[str]) -> Iterator[str]:
    """Replace long listings by their number of lines, in one pass. A fence that nothing closes is text."""
    ends = {found[1]: n for n, line in enumerate(lines) if (found := _FENCE_END.fullmatch(line))}
    at = 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        if opened is None or ends.get(opened[1], -1) <= at:
            yield lines[at]
            at += 1
            continue
        end = at + 1
        while (closed := _FENCE_END.fullmatch(lines[end])) is None or closed[1] != opened[1]:
            end += 1
        yield from lines[at : end + 1] if end - at <= LISTING_LINES else (f"[a listing of {end - at} lines]",)
        at = end + 1
