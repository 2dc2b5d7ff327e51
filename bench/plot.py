"""How cost grows with the size of memory, as an SVG with two logarithmic axes; no library is needed for that."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT = 830, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 310, 30, 40
COLOURS = ("#1a5a82", "#1b6437", "#7a4f00", "#9c2029", "#6a3d9a", "#b15928", "#565d65", "#c2185b", "#00838f", "#827717")
Points = Sequence[tuple[float, float]]


def growth(rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> str:
    """CPU milliseconds of a read, a context and a put of ours, and of a search elsewhere, by the number of entries."""
    single = [row for row in rows if row["scopes"] == 1]
    series: dict[str, Points] = {
        "Lukasa: read": [(row["entries"], row["read"]["p50"]) for row in single],
        "Lukasa: context": [(row["entries"], row["context"]["p50"]) for row in single],
        "Lukasa: put, of 100 at once": [(row["entries"], 1000 / row["batch"]["CPU"]) for row in single],
    }
    for name, label in labels.items():
        found = [(row["entries"], row["read"]["p50"]) for row in others if row["name"] == name and "read" in row]
        series |= {label: found} if found else {}
    return log_log(series, "entries in one scope", "CPU milliseconds, median")


def log_log(series: Mapping[str, Points], across: str, up: str) -> str:
    drawn = {name: points for name, points in series.items() if points}
    xs = [x for points in drawn.values() for x, _ in points]
    ys = [y for points in drawn.values() for _, y in points]
    plane = Plane(_decades(xs), _decades(ys))
    body = [*plane.frame(), _text(LEFT, TOP - 12, up, "start"), _text(WIDTH - RIGHT, HEIGHT - 6, across, "end")]
    for number, (name, points) in enumerate(drawn.items()):
        body += plane.line(points, COLOURS[number % len(COLOURS)], ours=name.startswith("Lukasa"))
        y = TOP + 8 + number * 20
        body.append(f'<circle cx="{WIDTH - RIGHT + 18}" cy="{y - 4}" r="4" fill="{COLOURS[number % len(COLOURS)]}"/>')
        body.append(_text(WIDTH - RIGHT + 28, y, name, "start"))
    said = escape(f"{up}, by {across}")
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{said}" {box}><title>{said}</title>'
    return "\n".join([opening, ground, *body, "</svg>", ""])


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


class Plane:
    """Where values are in the drawing: whole decades along both sides."""

    def __init__(self, across: tuple[int, int], up: tuple[int, int]) -> None:
        self._across, self._up = across, up

    def x(self, value: float) -> float:
        low, high = self._across
        return round(LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        low, high = self._up
        return round(HEIGHT - BOTTOM - (math.log10(value) - low) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    def frame(self) -> Iterator[str]:
        for decade in range(self._across[0], self._across[1] + 1):
            x = self.x(10**decade)
            yield f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#d0d0d0"/>'
            yield _text(x, HEIGHT - BOTTOM + 16, f"{10**decade:,}", "middle")
        for decade in range(self._up[0], self._up[1] + 1):
            y = self.y(10.0**decade)
            yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#d0d0d0"/>'
            yield _text(LEFT - 6, y + 4, f"{10.0**decade:g}", "end")

    def line(self, points: Points, colour: str, *, ours: bool) -> Iterator[str]:
        places = [(self.x(x), self.y(y)) for x, y in sorted(points)]
        path = " ".join(f"{x},{y}" for x, y in places)
        style = "" if ours else ' stroke-dasharray="5 4"'
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{style}/>'
        for x, y in places:
            yield f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    style = 'font-family="sans-serif" font-size="12" fill="#333333"'
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" {style}>{escape(text)}</text>'
