"""Charts as SVG and markdown as HTML, for the owner's page.

The page's style sheet colours the charts: each part has a class, and a plain colour as a default. Every text of a chart
goes through one escaping function, because names of tiers and actions come from users. The HTML of markdown is inert:
no raw HTML, no images, and links only to the web and to mail.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from html import escape
from importlib import import_module
from typing import Any

from msgspec import Struct

from lukasa.model.entry import Access, Entry
from lukasa.model.telemetry import Tally
from lukasa.read.decay import decay_factor, frequency, last_seen, relevance
from lukasa.spec.types import Decay, DecayModel

WIDTH, HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 24, 28
_STEPS = 80
_UNWRITABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_SHORTEST, _LONGEST = timedelta(days=1), timedelta(days=5 * 365)
_COLOURS = ("#1a5a82", "#7a4f00", "#1b6437", "#9c2029", "#565d65")


class Plane(Struct, frozen=True):
    """The position of values in the drawing: x in [0, 1] from left to right, y in [0, top] from bottom to top."""

    top: float
    height: int = HEIGHT

    def x(self, share: float) -> float:
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        inner = self.height - _TOP - _BOTTOM
        return round(_TOP + inner * (1 - value / self.top), 1)

    def points(self, values: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{self.x(x)},{self.y(y)}" for x, y in values)


# An entry's relevance over time


def decay_curve(
    entry: Entry, access: Access | None, decay: Decay, now: datetime, closed_at: datetime | None = None
) -> str:
    """Draw the relevance of an entry: from its last use until now, and its future if nobody reads it."""
    used = frequency(access)

    def at(moment: datetime) -> float:
        return relevance(entry.importance, decay_factor(decay, entry, access, moment, closed_at), used)

    start = min(last_seen(entry, access), now)
    end = now + _horizon(at, now)
    plane = Plane(max(at(start), at(now), 0.05) * 1.1)
    span = (end - start) / _STEPS
    curve = [(number / _STEPS, at(start + span * number)) for number in range(_STEPS + 1)]
    here = (now - start) / (end - start)
    past = [*(point for point in curve if point[0] < here), (here, at(now))]
    ahead = [(here, at(now)), *(point for point in curve if point[0] > here)]
    steady = decay.model in (DecayModel.NONE, DecayModel.EXEMPT)
    title = f"Relevance {at(now):.3f} now" + (", and it does not decay" if steady else "")
    dots = f'<circle class="dot" cx="{plane.x(here)}" cy="{plane.y(at(now))}" r="4" fill="{_COLOURS[0]}"/>'
    body = [
        *_scale(plane),
        _line("curve", plane.points(past)),
        _line("ahead", plane.points(ahead)),
        *_threshold(plane, decay),
        dots,
        _text(plane.x(0), HEIGHT - 8, _day(start), "start"),
        _text(plane.x(1), HEIGHT - 8, _day(end), "end"),
    ]
    if 0.12 < here < 0.88:
        body.append(_text(plane.x(here), HEIGHT - 8, "now", "middle"))
    return _svg(title, body)


def _horizon(at: Callable[[datetime], float], now: datetime) -> timedelta:
    """Return the time until a tenth of the relevance is left, so that any decay shows; a year if it stays."""
    floor, length = at(now) / 10, _SHORTEST
    while length < _LONGEST:
        if at(now + length) <= floor:
            return length
        length *= 1.5
    return timedelta(days=365) if at(now + _LONGEST) > at(now) * 0.99 else _LONGEST


def _threshold(plane: Plane, decay: Decay) -> Iterator[str]:
    if decay.model is DecayModel.FORCING and decay.threshold < plane.top:
        y = plane.y(decay.threshold)
        yield f'<line class="floor" x1="{plane.x(0)}" x2="{plane.x(1)}" y1="{y}" y2="{y}" stroke="{_COLOURS[1]}"/>'
        yield _text(plane.x(1), y - 4, f"awaits disposition below {decay.threshold:g}", "end")


# Growth of memory


def growth(days: Sequence[tuple[date, Mapping[str, int]]]) -> str:
    """Draw the number of entries at the end of each day, a line for each tier."""
    tiers = list(dict.fromkeys(tier for _, counts in days for tier in counts))
    if not days or not tiers:
        return _svg("No entries yet", [_text(WIDTH / 2, HEIGHT / 2, "nothing yet", "middle")])
    plane = Plane(_round_up(max(max(counts.values(), default=0) for _, counts in days)))
    body = [*_scale(plane, whole=True)]
    last = max(len(days) - 1, 1)
    for number, tier in enumerate(tiers):
        values = [(index / last, counts.get(tier, 0)) for index, (_, counts) in enumerate(days)]
        drawn = values if len(values) > 1 else [values[0], (1.0, values[0][1])]
        colour = _COLOURS[number % len(_COLOURS)]
        body.append(_line(f"line s{number % len(_COLOURS)}", plane.points(drawn), colour))
        body.extend(_key(number, tier, colour))
    body.append(_text(plane.x(0), HEIGHT - 8, _day(days[0][0]), "start"))
    body.append(_text(plane.x(1), HEIGHT - 8, _day(days[-1][0]), "end"))
    totals = ", ".join(f"{tier} {days[-1][1].get(tier, 0)}" for tier in tiers)
    return _svg(f"Entries by tier: {totals}", body)


def _key(number: int, name: str, colour: str) -> Iterator[str]:
    x = _LEFT + 8 + number * 145
    yield f'<circle class="k{number % len(_COLOURS)}" cx="{x}" cy="9" r="4" fill="{colour}"/>'
    yield _text(x + 9, 13, name[:12], "start", "strong")


# Telemetry


def daily(days: Sequence[tuple[date, int, int]]) -> str:
    """Draw the number of steps on each day, and of failed ones."""
    total, bad = sum(count for _, count, _ in days), sum(failed for _, _, failed in days)
    told = f"{total} steps in {len(days)} days, {bad} of them failed"
    return _by_day(days, told if days else "No steps reported yet")


def tokens(days: Sequence[tuple[date, int]]) -> str:
    """Draw the tokens of memory that went to agents on each day."""
    total = sum(count for _, count in days)
    told = f"{total:,} tokens of memory to agents in {len(days)} days"
    return _by_day([(day, count, 0) for day, count in days], told if days else "Nothing went to an agent yet")


def _by_day(days: Sequence[tuple[date, int, int]], told: str) -> str:
    if not days:
        return _svg(told, [_text(WIDTH / 2, HEIGHT / 2, "nothing yet", "middle")])
    plane = Plane(_round_up(max(count for _, count, _ in days)))
    width = min(48.0, max(2.0, (WIDTH - _LEFT - _RIGHT) / len(days) - 3))
    body = [*_scale(plane, whole=True)]
    for number, (_, count, failed) in enumerate(days):
        x = round(plane.x(number / len(days)) + 1.5, 1)
        body.append(_bar("column", x, plane.y(count), width, plane.y(0) - plane.y(count), _COLOURS[0]))
        if failed:
            body.append(_bar("column bad", x, plane.y(failed), width, plane.y(0) - plane.y(failed), _COLOURS[3]))
    body.append(_text(plane.x(0), HEIGHT - 8, _day(days[0][0]), "start"))
    body.append(_text(plane.x(1), HEIGHT - 8, _day(days[-1][0]), "end"))
    return _svg(told, body)


def durations(tallies: Sequence[Tally]) -> str:
    """Draw the mean duration of each step, the slowest first."""
    rows = sorted((t for t in tallies if t.count), key=lambda t: -t.mean_ms)[:12]
    if not rows:
        return _svg("No steps reported yet", [_text(WIDTH / 2, 20, "nothing yet", "middle")], 40)
    longest, left = max(rows[0].mean_ms, 0.001), 210
    body = []
    for number, tally in enumerate(rows):
        y = 8 + number * 24
        length = max(2.0, (WIDTH - left - 90) * tally.mean_ms / longest)
        body.append(_text(left - 8, y + 13, f"{tally.component} {tally.action}"[:34], "end"))
        body.append(_bar("column", left, y, round(length, 1), 16, _COLOURS[0]))
        body.append(_text(round(left + length + 6, 1), y + 13, f"{tally.mean_ms:.1f} ms", "start", "strong"))
    return _svg("Mean duration by step", body, 16 + len(rows) * 24, "chart rows")


# Parts of a chart


def _scale(plane: Plane, *, whole: bool = False) -> Iterator[str]:
    for share in (0.0, 0.5, 1.0):
        value = plane.top * share
        y = plane.y(value)
        yield f'<line class="frame" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}" stroke="#9a9a9a"/>'
        yield _text(_LEFT - 6, y + 4, f"{value:.0f}" if whole else f"{value:.2f}", "end")


def _line(kind: str, points: str, colour: str = _COLOURS[0]) -> str:
    return f'<polyline class="{kind}" points="{points}" fill="none" stroke="{colour}"/>'


def _bar(kind: str, x: float, y: float, width: float, height: float, colour: str) -> str:
    size = f'width="{width:.1f}" height="{max(height, 0):.1f}"'
    return f'<rect class="{kind}" x="{x}" y="{y}" {size} rx="2" fill="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str, kind: str = "label") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}" font-size="11">{_safe(text)}</text>'


def _svg(title: str, body: Sequence[str], height: int = HEIGHT, kind: str = "chart") -> str:
    label = _safe(title)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" role="img" aria-label="{label}" '
        f'viewBox="0 0 {WIDTH} {height}"><title>{label}</title>'
    )
    return opening + "".join(body) + "</svg>"


def _safe(text: str) -> str:
    """Escape a text, and replace the control characters that XML cannot contain."""
    return escape(_UNWRITABLE.sub("\ufffd", text))


def _day(moment: date) -> str:
    return moment.strftime("%Y-%m-%d")


def _round_up(value: float) -> float:
    """Return the next round number for a scale."""
    if value <= 4:
        return 4
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 5, 8, 10) if step * power >= value)


# Markdown

_LINKS = ("http://", "https://", "mailto:", "#")


def rendered(text: str) -> str:
    """Return markdown as inert HTML. The page checks the targets of links once more when it shows them."""
    # markdown-it comes with the server's packages; a process that renders nothing does not load it.
    parser: Any = import_module("markdown_it").MarkdownIt("commonmark", {"html": False, "linkify": False})
    parser.enable("table").enable("strikethrough").disable("image")  # an image would be a request to another server
    parser.validateLink = lambda url: url.strip().lower().startswith(_LINKS)
    return str(parser.render(text))
