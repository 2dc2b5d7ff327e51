"""Draw a terminal session as an SVG that plays by CSS alone and shows its end if the viewer wants no motion.

No script, no font and no request: the file is one picture. It has its own dark panel, so it reads the same on a light
and on a dark page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from rich.style import Style
from rich.text import Text

COLUMNS = 118
_CELL, _LINE, _SIZE, _PAD, _BAR = 8.0, 19, 13.3, 18, 30  # width of a letter, height of a line, both in pixels
_TYPING, _BLINK = 0.028, 0.35  # seconds a letter, and before a command's output
_READING, _HOLD = 0.9, 9.0  # seconds for a line to be read, and at the end before it begins again

_INK, _GROUND, _EDGE, _DIM, _PROMPT = "#d7dde5", "#0f1419", "#313a45", "#93a0b0", "#7fd1a8"
_PALETTE = {1: "#ff8f87", 2: "#7fd1a8", 3: "#e8c374", 4: "#8ab8ff", 5: "#d5a6ff", 6: "#7fd4dd"}


class Run(NamedTuple):
    """Text in one style."""

    text: str
    css: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """A line that is told or typed, and what the program printed after it."""

    line: str
    printed: tuple[tuple[Run, ...], ...] = ()

    @property
    def typed(self) -> bool:
        """Whether somebody types the line."""
        return self.line.startswith("$ ")

    def lines(self) -> list[str]:
        """Return the scene as plain text."""
        return [self.line, *("".join(run.text for run in row) for row in self.printed)]


def styled(row: str) -> tuple[Run, ...]:
    """Return a line with ANSI codes as runs of text, each with its style."""
    text = Text.from_ansi(row)
    return tuple(Run(part.plain, _css(part.spans[0].style if part.spans else "")) for part in text.divide(_edges(text)))


def _edges(text: Text) -> list[int]:
    return sorted({edge for span in text.spans for edge in (span.start, span.end)} - {0, len(text)})


def _css(style: str | Style) -> str:
    if isinstance(style, str):
        return ""
    parts = []
    if style.color is not None and style.color.number is not None and style.color.number % 8 in _PALETTE:
        parts.append(f"fill:{_PALETTE[style.color.number % 8]}")
    elif style.dim:
        parts.append(f"fill:{_DIM}")
    if style.bold:
        parts.append("font-weight:600")
    return ";".join(parts)


class _Shown(NamedTuple):
    """A row of the screen: its runs, and the seconds at which it appears and is typed to its end."""

    runs: tuple[Run, ...]
    appears: float
    ends: float


def drawn(scenes: Sequence[Scene]) -> str:
    """Return the picture of a session."""
    rows, seconds = _timed(scenes)
    width, height = COLUMNS * _CELL + 2 * _PAD, len(rows) * _LINE + 2 * _PAD + _BAR
    styles, body = [], []
    for number, row in enumerate(rows):
        top = _BAR + _PAD + number * _LINE
        styles.append(_keyframes(f"l{number}", row.appears, seconds))
        body.append(f'<g style="animation-name:l{number}">{_text(row.runs, top)}{_cover(number, row, top)}</g>')
        if row.ends > row.appears:
            styles.append(_typing(number, row, seconds))
    return _PICTURE.format(
        width=f"{width:g}",
        height=height,
        inner=f"{width - 2:g}",
        frame=height - 2,
        bar=_BAR,
        below=height - _BAR - 1,
        title=_TITLE,
        seconds=f"{seconds:g}",
        size=_SIZE,
        ink=_INK,
        ground=_GROUND,
        edge=_EDGE,
        styles="\n".join(styles),
        body="\n".join(body),
    )


_TITLE = "A terminal: a session tells Claude Code a fact and a rule, and the next session knows them."

_PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<title>{title}</title>
<style>
text{{font:{size}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:{ink};white-space:pre}}
.t>g{{animation:{seconds}s step-end infinite}}
.c{{opacity:0;animation:{seconds}s infinite}}
@media (prefers-reduced-motion:reduce){{.t>g,.c{{animation:none}}}}
{styles}
</style>
<rect x="1" y="1" width="{inner}" height="{frame}" rx="8" fill="{ground}" stroke="{edge}"/>
<g fill="{edge}"><circle cx="20" cy="17" r="5"/><circle cx="37" cy="17" r="5"/><circle cx="54" cy="17" r="5"/></g>
<clipPath id="s"><rect x="1" y="{bar}" width="{inner}" height="{below}"/></clipPath>
<g class="t" clip-path="url(#s)">
{body}
</g>
</svg>
"""


def _timed(scenes: Sequence[Scene]) -> tuple[list[_Shown], float]:
    """Return the rows with their times, and how long the whole takes."""
    rows: list[_Shown] = []
    now = 0.6
    for scene in scenes:
        typing = len(scene.line) * _TYPING if scene.typed else 0.0
        rows += [_Shown(part, now, now + typing) for part in _wrapped(_told(scene))]
        now += typing + (_BLINK if scene.typed else _READING if scene.line else 0.2)
        for row in scene.printed:
            rows += [_Shown(part, now, now) for part in _wrapped(row)]
        now += _READING * len(scene.printed)
    return rows, round(now + _HOLD, 1)


def _told(scene: Scene) -> tuple[Run, ...]:
    if scene.typed:
        return (Run("$ ", f"fill:{_PROMPT}"), Run(scene.line[2:], "font-weight:600"))
    return (Run(scene.line, f"fill:{_DIM}"),)


def _wrapped(runs: tuple[Run, ...]) -> Iterator[tuple[Run, ...]]:
    """Yield the rows that a terminal makes of a line that is longer than it is wide."""
    row: list[Run] = []
    room = COLUMNS
    for run in runs:
        text = run.text
        while len(text) > room:
            row.append(run._replace(text=text[:room]))
            yield tuple(row)
            row, text, room = [], text[room:], COLUMNS
        row.append(run._replace(text=text))
        room -= len(text)
    yield tuple(row)


def _text(runs: tuple[Run, ...], top: float) -> str:
    """Return a row. Its length is given, so that columns stand below one another in every font."""
    plain = "".join(run.text for run in runs)
    if not plain.strip():
        return ""
    parts = "".join(_tspan(run) for run in runs if run.text)
    return f'<text x="{_PAD}" y="{top + 14:g}" textLength="{len(plain) * _CELL:g}">{parts}</text>'


def _tspan(run: Run) -> str:
    return f'<tspan style="{run.css}">{escape(run.text)}</tspan>' if run.css else escape(run.text)


def _cover(number: int, row: _Shown, top: float) -> str:
    """Return what hides the rest of a row while it is typed, with the cursor at its edge."""
    if row.ends == row.appears:
        return ""
    long = sum(len(run.text) for run in row.runs) * _CELL
    hiding = f'<rect x="{_PAD}" y="{top:g}" width="{long + 9:g}" height="{_LINE}" fill="{_GROUND}"/>'
    cursor = f'<rect x="{_PAD}" y="{top + 2:g}" width="8" height="15" fill="{_INK}"/>'
    return f'<g class="c" style="animation-name:c{number}">{hiding}{cursor}</g>'


def _keyframes(name: str, at: float, seconds: float) -> str:
    return f"@keyframes {name}{{0%{{opacity:0}}{_share(at, seconds)}{{opacity:1}}}}"


def _typing(number: int, row: _Shown, seconds: float) -> str:
    """Return the way of the cover: letter by letter to the right, and then away."""
    letters = sum(len(run.text) for run in row.runs)
    begins, ends = _share(row.appears, seconds), _share(row.ends, seconds)
    there = f"transform:translateX({letters * _CELL:g}px)"
    typed = f"opacity:1;transform:translateX(16px);animation-timing-function:steps({letters - 2})"
    done = f"opacity:1;{there};animation-timing-function:step-end"
    gone = _share(row.ends + _BLINK, seconds)
    return f"@keyframes c{number}{{0%,{begins}{{{typed}}}{ends}{{{done}}}{gone},to{{opacity:0;{there}}}}}"


def _share(at: float, seconds: float) -> str:
    return f"{100 * at / seconds:.2f}%"


def rows_of(picture: str) -> list[str]:
    """Return the text of a picture, row by row, without empty rows."""
    root = ElementTree.fromstring(re.sub(r'\sxmlns="[^"]+"', "", picture, count=1))
    return ["".join(text.itertext()) for text in root.iter("text")]


def rows_told(scenes: Sequence[Scene]) -> list[str]:
    """Return the text that a picture of these scenes has, row by row, without empty rows."""
    rows = ["".join(run.text for run in row.runs) for row in _timed(scenes)[0]]
    return [row for row in rows if row.strip()]
